import type { PostgresClient } from 'open-payments-server/postgres'
import { memoryBalance, type PeerBalance } from '../ilp/connector.js'
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

/** Balances in tables of the wallet's own. Each entry and the new balance are written in one statement. */
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
      added_at timestamptz NOT NULL DEFAULT now(),
      PRIMARY KEY (wallet, peer, id)
    )`,
  )
  return {
    of: (peer) => ({
      async add(id, amount) {
        await query(
          `WITH entry AS (
            INSERT INTO wallet_peer_entries VALUES ($1, $2, $3, $4)
              ON CONFLICT DO NOTHING RETURNING amount
          )
          INSERT INTO wallet_peer_balances SELECT $1, $2, amount FROM entry
            ON CONFLICT (wallet, peer)
              DO UPDATE SET balance = wallet_peer_balances.balance + excluded.balance`,
          [wallet, peer, id, `${amount}`],
        )
        const { rows } = await query(
          `SELECT amount::text FROM wallet_peer_entries
            WHERE wallet = $1 AND peer = $2 AND id = $3`,
          [wallet, peer, id],
        )
        return rows[0]?.['amount'] === `${amount}`
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
