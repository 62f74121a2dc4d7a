import type { KeyConflict, OwnedKey, OwnerKeys } from 'open-payments-pages'
import { lock } from './ledger.js'
import type { Database, Sql } from './sql.js'

/** Other wallets read no more than this of a `jwks.json`. */
const keysMax = 20

/** The keys that owners registered. `wallet.ts` publishes them in the `jwks.json` of their account. */
export function clientKeysOn({ sql, transaction }: Database): OwnerKeys {
  return {
    of: (walletAddress) => keysOf(sql, walletAddress),
    add: (walletAddress, key) => transaction((inside) => add(inside, walletAddress, key)),
    async revoke(walletAddress, kid) {
      await sql('DELETE FROM client_keys WHERE wallet_address = ? AND kid = ?', walletAddress, kid)
    },
  }
}

async function add(sql: Sql, walletAddress: string, key: OwnedKey): Promise<'added' | KeyConflict> {
  const { kid, x, name, addedAt } = key
  await lock(sql, walletAddress)
  const known = await keysOf(sql, walletAddress)
  if (known.some((each) => each.x === x)) return 'known'
  if (known.some((each) => each.kid === kid)) return 'kidTaken'
  if (known.length >= keysMax) return 'full'
  await sql(
    'INSERT INTO client_keys (wallet_address, kid, x, name, added_at) VALUES (?, ?, ?, ?, ?)',
    walletAddress,
    kid,
    x,
    name,
    addedAt,
  )
  return 'added'
}

async function keysOf(sql: Sql, walletAddress: string): Promise<readonly OwnedKey[]> {
  const rows = await sql(
    'SELECT * FROM client_keys WHERE wallet_address = ? ORDER BY added_at, kid',
    walletAddress,
  )
  return rows.map((row) => ({
    kid: `${row['kid']}`,
    x: `${row['x']}`,
    name: `${row['name']}`,
    addedAt: Number(row['added_at']),
  }))
}
