import { once } from 'node:events'
import { openDatabase } from './database.js'
import { openDemoAccounts } from './ledger.js'
import { readSettings } from './settings.js'
import { startWallet } from './start.js'
import { createWithStartPage } from './start-page/index.js'
import { migrate } from './tables.js'

async function main(): Promise<void> {
  const settings = readSettings()
  console.log(`The wallet starts on port ${settings.port}. It opens its database first.`)
  const database = openDatabase(settings.database)
  const { baseUrl } = settings
  await migrate(database)
  await openDemoAccounts(database, baseUrl)
  const wallet = await createWithStartPage(settings, database)
  const stop = await startWallet(wallet, settings)
  console.log(`Open first:       ${baseUrl}/`)
  console.log(`Wallet addresses: ${baseUrl}/alice and ${baseUrl}/bob`)
  console.log(
    `Connected apps:   ${baseUrl}/apps (sign in as alice or bob with DEMO_PASSWORD of .env)`,
  )
  console.log(`Keys of apps:     ${baseUrl}/keys`)
  console.log(`Check it:         npx open-payments-doctor --allow-private ${baseUrl}/alice`)

  await Promise.race([once(process, 'SIGTERM'), once(process, 'SIGINT')])
  await stop()
  await database.close()
}

try {
  await main()
} catch (error) {
  // What its operator can repair needs no stack. A refused connection has a code and no message.
  const { message, code } = error as NodeJS.ErrnoException
  console.error(`The wallet cannot start: ${message || code}`)
  process.exit(1)
}
