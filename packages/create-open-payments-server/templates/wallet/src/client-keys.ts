import type { PublicJwk } from 'open-payments-server'
import type { Database, Sql } from './sql.js'

/** A public key that the owner of an account registered for an app. */
export interface ClientKey extends PublicJwk {
  /** What the owner calls it. */
  readonly name: string
  /** Milliseconds since 1970. */
  readonly addedAt: number
}

/** The keys that owners registered. `wallet.ts` publishes them in the `jwks.json` of their account. */
export interface ClientKeys {
  /** Resolves to the keys of an account, the oldest first. */
  of(walletAddress: string): Promise<readonly ClientKey[]>
  /** Adds a key, or resolves to a sentence for the owner that says why not. */
  add(walletAddress: string, key: ClientKey): Promise<string | undefined>
  revoke(walletAddress: string, kid: string): Promise<void>
}

/** Other wallets read no more than this of a `jwks.json`. */
const keysMax = 20

export function clientKeysOn({ sql, transaction }: Database): ClientKeys {
  return {
    of: (walletAddress) => keysOf(sql, walletAddress),
    add: (walletAddress, key) => transaction((inside) => add(inside, walletAddress, key)),
    async revoke(walletAddress, kid) {
      await sql('DELETE FROM client_keys WHERE wallet_address = ? AND kid = ?', walletAddress, kid)
    },
  }
}

async function add(sql: Sql, walletAddress: string, key: ClientKey): Promise<string | undefined> {
  const { kid, x, name, addedAt } = key
  // Keeps others from adding a key to this account until the transaction ends.
  await sql('UPDATE accounts SET locks = locks + 1 WHERE wallet_address = ?', walletAddress)
  const known = await keysOf(sql, walletAddress)
  if (known.some((each) => each.x === x)) return 'Your account already has this key.'
  if (known.some((each) => each.kid === kid)) {
    return 'Your account already has a key with this key ID.'
  }
  if (known.length >= keysMax) {
    return `Your account has ${keysMax} keys, which is the most. Please revoke one first.`
  }
  await sql(
    'INSERT INTO client_keys (wallet_address, kid, x, name, added_at) VALUES (?, ?, ?, ?, ?)',
    walletAddress,
    kid,
    x,
    name,
    addedAt,
  )
  return undefined
}

async function keysOf(sql: Sql, walletAddress: string): Promise<readonly ClientKey[]> {
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
