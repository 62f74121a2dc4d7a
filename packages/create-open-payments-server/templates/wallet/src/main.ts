import { once } from 'node:events'
import { observeBacklog } from 'open-payments-server/opentelemetry'
import { openDatabase } from './database.js'
import { prepare } from './prepare.js'
import { perMinute } from './rate-limit.js'
import { isProduction, readSettings, type Settings } from './settings.js'
import { startWallet } from './start.js'
import { createWithStartPage } from './start-page/index.js'

async function main(): Promise<void> {
  const settings = readSettings()
  console.log(`The wallet starts on port ${settings.port}. It opens its database first.`)
  const database = openDatabase(settings.database)
  await prepare(database, settings.baseUrl)
  // Outside of production, the doctor and the tests call more often than an app does.
  const ports = isProduction() ? { rateLimit: perMinute(300) } : {}
  const wallet = await createWithStartPage(settings, database, ports)
  const stop = await startWallet(wallet, settings)
  // Gauges of events that wait, once you register an SDK of OpenTelemetry: alert on them.
  observeBacklog({
    authorizationServer: wallet.auth.events,
    resourceServer: wallet.resources.events,
  })
  announce(settings)

  await Promise.race([once(process, 'SIGTERM'), once(process, 'SIGINT')])
  await stop()
  await database.close()
}

function announce({ baseUrl }: Settings): void {
  if (isProduction()) {
    console.log(`It serves ${baseUrl}. A load balancer asks at /ready.`)
    return
  }
  console.log(`Open first:       ${baseUrl}/`)
  console.log(`Wallet addresses: ${baseUrl}/alice and ${baseUrl}/bob`)
  console.log(
    `Connected apps:   ${baseUrl}/apps (sign in as alice or bob with DEMO_PASSWORD of .env)`,
  )
  console.log(`Keys of apps:     ${baseUrl}/keys`)
  console.log(`Check it:         npx open-payments-doctor --allow-private ${baseUrl}/alice`)
}

try {
  await main()
} catch (error) {
  // What its operator can repair needs no stack. A refused connection has a code and no message.
  const { message, code } = error as NodeJS.ErrnoException
  console.error(`The wallet cannot start: ${message || code}`)
  process.exit(1)
}
