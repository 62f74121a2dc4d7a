import { databaseOn } from 'create-open-payments-server/databases/postgres'
import { clientKeysOn } from 'create-open-payments-server/wallet/client-keys'
import { type Exchanges, exchangeFor } from 'create-open-payments-server/wallet/exchange'
import { openAccount } from 'create-open-payments-server/wallet/ledger'
import type { Database } from 'create-open-payments-server/wallet/sql'
import { createWallet, type Wallet } from 'create-open-payments-server/wallet/wallet'
import { freePort } from 'open-payments-programs'
import { databaseOn as databaseOnPglite } from '../../examples/created-wallet/embedded-database.js'
import { type DemoOptions, startDemoWallet } from '../../examples/demo/wallet.js'
import { emptyPglite, freshPostgres, servers } from './databases.js'

export type CreatedWallet<Kind extends Wallet = Wallet> = Awaited<
  ReturnType<typeof startCreatedWallet<Kind>>
>

/** Prices without a fee. */
export const noFee: Exchanges = exchangeFor({ basisPoints: 0n, fixed: 0n })

type Options<Kind extends Wallet> = Partial<Omit<DemoOptions<Kind>, 'create'>> &
  Pick<DemoOptions<Kind>, 'create'>

/** How a wallet is created that sends payments at once, without a fee. */
export const plainWallet: DemoOptions<Wallet>['create'] = (settings, database, ports) => ({
  wallet: createWallet(settings, database, { ...ports, exchanges: noFee }),
})

/** A database without tables: a schema where there is a server, because a PGlite takes ten times as much CPU time. */
async function emptyDatabase(): Promise<Database> {
  if (servers.PostgreSQL === undefined) return databaseOnPglite(await emptyPglite())
  const { schema, connect, drop } = await freshPostgres({ migrated: false })
  return { ...databaseOn(connect({ options: `-c search_path=${schema}` })), close: drop }
}

/** Starts a wallet of `npm create`, on an empty database by default. Alice has much, also in an account in euros. */
export async function startCreatedWallet<Kind extends Wallet>(options: Options<Kind>) {
  const { baseUrl = `http://localhost:${await freePort()}` } = options
  const { database = await emptyDatabase() } = options
  const defaults = { adapter: 'express', outboundTimeoutMs: 60_000, baseUrl, database } as const
  const { wallet, stop } = await startDemoWallet({ ...defaults, ...options })
  await database.sql("UPDATE accounts SET balance = 1000000000 WHERE owner = 'alice'")
  const euros = { assetCode: 'EUR', assetScale: 2, balance: 1_000_000_000n }
  await openAccount(database, { url: `${baseUrl}/alice-euros`, owner: 'alice', ...euros })
  return {
    baseUrl,
    wallet,
    /** Publishes a key in the key set of an account. */
    async publish(walletAddress: string, { kid, x }: { readonly kid: string; readonly x: string }) {
      await clientKeysOn(database).add(walletAddress, { kid, x, name: 'test', addedAt: 0 })
    },
    async stop() {
      await stop()
      if (options.database === undefined) await database.close()
    },
  }
}
