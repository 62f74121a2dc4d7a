import { once } from 'node:events'
import type { Server } from 'node:http'
import { startBackground } from './background.js'
import { openDemoAccounts } from './ledger.js'
import { listen } from './listen.js'
import { migrate } from './migrate.js'
import { serverOf } from './server.js'
import type { Settings } from './settings.js'
import type { Database } from './sql.js'
import { createWallet, type Wallet } from './wallet.js'

export interface RunningWallet {
  readonly wallet: Wallet
  readonly baseUrl: string
  /** Finishes the current work and accepts no more. The database stays open. */
  stop(): Promise<void>
}

/** Starts the wallet, and resolves when it accepts requests. */
export async function startWallet(settings: Settings, database: Database): Promise<RunningWallet> {
  const { port, host, baseUrl } = settings
  await migrate(database)
  await openDemoAccounts(database, baseUrl)
  const wallet = createWallet(settings, database)
  const server = await serverOf(wallet)
  await listen(server, port, host)
  const background = startBackground(wallet)
  return {
    wallet,
    baseUrl,
    async stop() {
      await Promise.all([close(server), background.stop()])
    },
  }
}

/** Closes connections as soon as they are idle. */
async function close(server: Server): Promise<void> {
  const closed = once(server, 'close')
  const closing = setInterval(() => server.closeIdleConnections(), 50)
  server.close()
  await closed
  clearInterval(closing)
}
