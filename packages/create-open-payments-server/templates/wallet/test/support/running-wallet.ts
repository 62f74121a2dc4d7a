import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { openDemoAccounts } from '../../src/ledger.js'
import type { WalletSettings } from '../../src/settings.js'
import { startWallet } from '../../src/start.js'
import { migrate } from '../../src/tables.js'
import { createWallet } from '../../src/wallet.js'
import { freshDatabase } from '../fresh-database.js'

export const demoPassword = 'correct horse'

export type TestWallet = Awaited<ReturnType<typeof runningWallet>>

/** Starts the wallet on a free port, with an empty database. */
export async function runningWallet(more: Pick<WalletSettings, 'confirmAbove'> = {}) {
  const port = await freePort()
  const database = await freshDatabase()
  const settings = {
    ...more,
    baseUrl: `http://localhost:${port}`,
    sessionSecret: randomBytes(32),
    paymentDetailsSecret: randomBytes(32),
    demoPassword,
  }
  const { baseUrl } = settings
  await migrate(database)
  await openDemoAccounts(database, baseUrl)
  const wallet = createWallet(settings, database)
  const stop = await startWallet(wallet, { port, host: 'localhost' })
  return {
    baseUrl,
    balanceOf: async (owner: string) => (await wallet.ledger.find(`${baseUrl}/${owner}`))?.balance,
    async stop() {
      await stop()
      await database.close()
    },
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0)
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
