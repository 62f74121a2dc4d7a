import { databaseOn } from 'create-open-payments-server/databases/postgres'
import { createWallet } from 'create-open-payments-server/wallet/wallet'
import { Pool } from 'pg'
import { startDemoWallet } from '../../examples/demo/wallet.js'
import { noFee } from '../support/created-wallet.js'

/** What all processes of a wallet share, and the port of this one. */
export interface WalletProcess {
  readonly baseUrl: string
  readonly port: number
  readonly connectionString: string
  readonly schema: string
  /** 32 bytes in hexadecimal digits. */
  readonly secret: string
}

/** Runs a process of a wallet until its parent disconnects. It sends nothing of its own between requests. */
async function main(options: WalletProcess): Promise<void> {
  const disconnected = new Promise((resolve) => process.once('disconnect', resolve))
  const { baseUrl, port, connectionString, schema } = options
  const pool = new Pool({ connectionString, options: `-c search_path=${schema}` })
  const bytes = Buffer.from(options.secret, 'hex')
  const secrets = { sessionSecret: bytes, paymentDetailsSecret: bytes }
  const { stop } = await startDemoWallet({
    adapter: 'express',
    outboundTimeoutMs: 60_000,
    baseUrl,
    port,
    database: databaseOn(pool),
    create: (settings, database, ports) => ({
      wallet: createWallet({ ...settings, ...secrets }, database, { ...ports, exchanges: noFee }),
      work: () => ({ stop: async () => undefined }),
    }),
  })
  process.send?.('ready')
  await disconnected
  await stop()
  await pool.end()
}

await main(JSON.parse(process.argv[2] ?? ''))
