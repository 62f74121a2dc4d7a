import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { openDatabase } from 'create-open-payments-server/databases/postgres'
import { prepare } from 'create-open-payments-server/wallet/prepare'
import { readSettings } from 'create-open-payments-server/wallet/settings'
import { startWallet } from 'create-open-payments-server/wallet/start'
import { createWithStartPage } from 'create-open-payments-server/wallet/start-page/index'
import { type Program, type ProgramOptions, runWith, standardOutput } from 'open-payments-programs'
import { openEmbedded } from './embedded-database.js'

const usage = `Usage: npm start

Serves the wallet that "npm create open-payments-server" writes, on http://localhost:3000, until it is interrupted. It
takes its settings from the environment:

  PORT           the port
  BASE_URL       the public origin; http://localhost:PORT by default
  DATABASE_URL   a PostgreSQL, instead of an embedded one that forgets
  DEMO_PASSWORD  the password of the owners, instead of a new one, which it prints
  -h, --help     print this text
  --version      print the version

Exit code: 0 after SIGINT or SIGTERM, 1 if the wallet cannot start, 2 for arguments.
`

const program = {
  name: 'npm start --',
  usage,
  manifest: new URL('../../package.json', import.meta.url),
  options: {},
} as const satisfies Program<ProgramOptions>

/** Runs the wallet until it is asked to stop, and resolves to its exit code. */
export function runWallet(args: readonly string[]): Promise<number> {
  return runWith(program, args, standardOutput, async () => {
    try {
      await serve(process.env)
      return 0
    } catch (error) {
      // What its operator can repair needs no stack. A refused connection has a code and no message.
      const { message, code } = error as NodeJS.ErrnoException
      console.error(`The wallet cannot start: ${message || code}`)
      return 1
    }
  })
}

async function serve(environment: NodeJS.ProcessEnv): Promise<void> {
  const { DATABASE_URL: url } = environment
  // A created wallet has these in its .env.
  environment['DATABASE'] = url || 'embedded'
  environment['DEMO_PASSWORD'] ||= randomBytes(6).toString('base64url')
  for (const name of ['SESSION_SECRET', 'PAYMENT_DETAILS_SECRET']) {
    environment[name] ||= randomBytes(32).toString('base64url')
  }
  const settings = readSettings()
  const { baseUrl } = settings
  const asked = Promise.race([once(process, 'SIGTERM'), once(process, 'SIGINT')])
  console.log(`The wallet opens ${url ? 'PostgreSQL' : 'a new database of PGlite'}.`)
  const database = url ? openDatabase(url) : await openEmbedded()
  try {
    await prepare(database, baseUrl)
    const wallet = await createWithStartPage(settings, database)
    const stop = await startWallet(wallet, settings)
    console.log(`Open first:       ${baseUrl}/`)
    console.log(`Wallet addresses: ${baseUrl}/alice and ${baseUrl}/bob`)
    console.log(`Sign in:          as alice or bob, with the password ${settings.demoPassword}`)
    await asked
    await stop()
  } finally {
    await database.close()
  }
}
