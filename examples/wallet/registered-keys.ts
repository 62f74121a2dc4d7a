import type { PublicJwk } from 'open-payments-server'
import type { PostgresClient } from 'open-payments-server/postgres'
import { openTable } from '../ilp/own-table.js'

/** A public key that the owner of an account registered for an app. */
export interface RegisteredKey extends PublicJwk {
  /** What the owner calls it. */
  readonly name: string
  /** Milliseconds since 1970. */
  readonly addedAt: number
}

/** The keys that owners registered, by the URL of their account. They are published in its `jwks.json`. */
export interface RegisteredKeys {
  /** Resolves to the keys of an account, the oldest first. */
  of(account: string): Promise<readonly RegisteredKey[]>
  /** Adds a key unless the account has the same key, another with its `kid`, or as many keys as it may have. */
  add(account: string, key: RegisteredKey): Promise<'added' | KeyConflict>
  revoke(account: string, kid: string): Promise<void>
}

export type KeyConflict = 'known' | 'kidTaken' | 'full'

/** With the key of the demo itself 20, the most that this library reads of another wallet. */
export const registeredKeysMax = 19

function conflictOf(keys: readonly RegisteredKey[], { kid, x }: PublicJwk) {
  if (keys.some((key) => key.x === x)) return 'known'
  if (keys.some((key) => key.kid === kid)) return 'kidTaken'
  return keys.length >= registeredKeysMax ? 'full' : undefined
}

/** Keys in the memory of this process. */
export function memoryRegisteredKeys(): RegisteredKeys {
  const kept = new Map<string, readonly RegisteredKey[]>()
  const of = (account: string) => kept.get(account) ?? []
  return {
    of: async (account) => of(account),
    async add(account, key) {
      const conflict = conflictOf(of(account), key)
      if (conflict === undefined) kept.set(account, [...of(account), key])
      return conflict ?? 'added'
    },
    async revoke(account, kid) {
      const others = of(account).filter((key) => key.kid !== kid)
      kept.set(account, others)
    },
  }
}

/** Keys in a table of the wallet's own. Each has one of the slots of its account, so that no race adds too many. */
export async function postgresRegisteredKeys(
  database: PostgresClient,
  wallet: string,
): Promise<RegisteredKeys> {
  const query = await openTable(
    database,
    `wallet_keys (
      wallet text NOT NULL,
      account text NOT NULL,
      slot integer NOT NULL,
      kid text NOT NULL,
      x text NOT NULL,
      name text NOT NULL,
      added_at bigint NOT NULL,
      PRIMARY KEY (wallet, account, slot),
      UNIQUE (wallet, account, kid),
      UNIQUE (wallet, account, x)
    )`,
  )

  async function of(account: string): Promise<readonly RegisteredKey[]> {
    const { rows } = await query(
      `SELECT kid, x, name, added_at::text FROM wallet_keys
        WHERE wallet = $1 AND account = $2 ORDER BY wallet_keys.added_at, slot`,
      [wallet, account],
    )
    return rows.map(({ kid, x, name, added_at }) => ({ kid, x, name, addedAt: Number(added_at) }))
  }

  return {
    of,
    async add(account, key) {
      const { kid, x, name, addedAt } = key
      for (;;) {
        const conflict = conflictOf(await of(account), key)
        if (conflict !== undefined) return conflict
        const { rows } = await query(
          `INSERT INTO wallet_keys (wallet, account, slot, kid, x, name, added_at)
            SELECT $1, $2, free.slot, $3, $4, $5, $6::bigint
              FROM generate_series(1, ${registeredKeysMax}) AS free (slot)
              WHERE NOT EXISTS (SELECT 1 FROM wallet_keys AS used
                WHERE used.wallet = $1 AND used.account = $2 AND used.slot = free.slot)
              LIMIT 1
            ON CONFLICT DO NOTHING RETURNING slot`,
          [wallet, account, kid, x, name, addedAt],
        )
        if (rows.length === 1) return 'added'
        // Another request took the slot, the kid or the key.
      }
    },
    async revoke(account, kid) {
      const statement = 'DELETE FROM wallet_keys WHERE wallet = $1 AND account = $2 AND kid = $3'
      await query(statement, [wallet, account, kid])
    },
  }
}
