import type { PostgresClient } from 'open-payments-server/postgres'
import { memoryBalance, type PeerBalance } from './connector.js'
import { openTable } from './own-table.js'

/** What the peers of the wallet owe it. */
export interface PeerBalances {
  /** Returns the balance of the peer with this ILP address. */
  of(peer: string): PeerBalance
  /** Removes entries of packets that no peer repeats any more. Their amounts stay in the balance. */
  prune(): Promise<void>
}

/** Balances in the memory of this process. */
export function memoryPeerBalances(): PeerBalances {
  const balances = new Map<string, PeerBalance>()
  return {
    of(peer) {
      const balance = balances.get(peer) ?? memoryBalance()
      balances.set(peer, balance)
      return balance
    },
    prune: async () => {},
  }
}

/** Balances in tables of the wallet's own. An entry and the new balance are written in one statement. */
export async function postgresPeerBalances(
  database: PostgresClient,
  wallet: string,
): Promise<PeerBalances> {
  const query = await openTable(
    database,
    `wallet_peer_balances (
      wallet text NOT NULL,
      peer text NOT NULL,
      balance numeric NOT NULL,
      PRIMARY KEY (wallet, peer)
    )`,
  )
  await openTable(
    database,
    `wallet_peer_entries (
      wallet text NOT NULL,
      peer text NOT NULL,
      id text NOT NULL,
      amount numeric NOT NULL,
      is_repeated boolean NOT NULL DEFAULT false,
      added_at timestamptz NOT NULL DEFAULT now(),
      PRIMARY KEY (wallet, peer, id)
    )`,
  )
  /** Adds an entry, or marks it as repeated. If two calls add it at once, one fails as a whole. */
  async function add(peer: string, id: string, amount: bigint, max?: bigint) {
    const { rows } = await query(
      `WITH known AS (
          UPDATE wallet_peer_entries SET is_repeated = true
            WHERE wallet = $1 AND peer = $2 AND id = $3 RETURNING amount
        ), counted AS (
          INSERT INTO wallet_peer_balances SELECT $1, $2, $4::numeric
            WHERE NOT EXISTS (SELECT FROM known) AND ($5::numeric IS NULL OR $4::numeric <= $5::numeric)
            ON CONFLICT (wallet, peer)
              DO UPDATE SET balance = wallet_peer_balances.balance + excluded.balance
              WHERE $5::numeric IS NULL
                OR wallet_peer_balances.balance + excluded.balance <= $5::numeric
            RETURNING peer
        ), entry AS (
          INSERT INTO wallet_peer_entries SELECT $1, $2, $3, $4::numeric FROM counted
            RETURNING amount
        )
        SELECT amount::text, false AS is_new FROM known
          UNION ALL SELECT amount::text, true FROM entry`,
      [wallet, peer, id, `${amount}`, max === undefined ? null : `${max}`],
    )
    const [entry] = rows
    return entry && { amount: BigInt(entry['amount']), isNew: entry['is_new'] === true }
  }

  return {
    of: (peer) => ({
      async add(...entry) {
        for (let attempt = 1; ; attempt++) {
          try {
            return await add(peer, ...entry)
          } catch (error) {
            if (attempt === attemptsMax || !isConflict(error)) throw error
          }
        }
      },
      async release(id) {
        // The balance is locked before the entry, as by `add`, so that the two cannot wait for each other.
        await query(
          `WITH balance AS (
            SELECT FROM wallet_peer_balances WHERE wallet = $1 AND peer = $2 FOR UPDATE
          ), released AS (
            DELETE FROM wallet_peer_entries
              WHERE EXISTS (SELECT FROM balance)
                AND wallet = $1 AND peer = $2 AND id = $3 AND NOT is_repeated
              RETURNING amount
          )
          UPDATE wallet_peer_balances SET balance = wallet_peer_balances.balance - released.amount
            FROM released WHERE wallet = $1 AND peer = $2`,
          [wallet, peer, id],
        )
      },
      async value() {
        const { rows } = await query(
          'SELECT balance::text FROM wallet_peer_balances WHERE wallet = $1 AND peer = $2',
          [wallet, peer],
        )
        return BigInt(rows[0]?.['balance'] ?? 0)
      },
    }),
    async prune() {
      // Settlements stay: somebody may report one again much later.
      await query(
        `DELETE FROM wallet_peer_entries
          WHERE wallet = $1 AND id NOT LIKE 'settlement %' AND added_at < now() - interval '1 day'`,
        [wallet],
      )
    },
  }
}

const attemptsMax = 5

/** Another call has added the entry: a unique violation. */
function isConflict(error: unknown): boolean {
  return (error as { readonly code?: unknown }).code === '23505'
}
