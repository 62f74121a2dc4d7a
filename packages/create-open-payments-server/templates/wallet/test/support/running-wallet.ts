import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { startWallet } from '../../src/start.js'
import { freshDatabase } from '../fresh-database.js'

export const demoPassword = 'correct horse'

export type TestWallet = Awaited<ReturnType<typeof runningWallet>>

/** Starts the wallet on a free port, with an empty database. */
export async function runningWallet() {
  const port = await freePort()
  const database = await freshDatabase()
  const settings = {
    port,
    host: 'localhost',
    baseUrl: `http://localhost:${port}`,
    database: '',
    sessionSecret: randomBytes(32),
    paymentDetailsSecret: randomBytes(32),
    demoPassword,
  }
  const { wallet, baseUrl, stop } = await startWallet(settings, database)
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
