import type { MayPay, ResourceServer } from 'open-payments-server'
import { postgresStore } from 'open-payments-server/postgres'
import type { Pool, PoolClient } from 'pg'

// #region hold
/** Holds what a payment debits for a minute, or refuses it: `policy.mayPay`. */
export function holdFunds(pool: Pool): MayPay {
  return ({ holdId, outgoingPaymentId, walletAddress, debitAmount }) =>
    postgresStore.transaction(pool, async (client: PoolClient) => {
      // First: the insert locks this row too, and two calls would wait for each other.
      const account = 'SELECT 1 FROM ledger_accounts WHERE id = $1 FOR UPDATE'
      await client.query(account, [walletAddress])
      const { rowCount } = await client.query(
        `INSERT INTO ledger_holds (hold_id, payment_id, account_id, amount)
          SELECT $1, $2, $3, $4::numeric
          WHERE $4::numeric <= (
            SELECT coalesce(sum(amount), 0) FROM ledger_entries WHERE account_id = $3
          ) - (
            SELECT coalesce(sum(amount), 0) FROM ledger_holds
            WHERE account_id = $3 AND hold_id <> $1
          )
          ON CONFLICT (hold_id) DO UPDATE SET ends_at = excluded.ends_at`,
        [holdId, outgoingPaymentId, walletAddress, debitAmount.value],
      )
      if (rowCount !== 1) return { ok: false, refusal: 'funds_insufficient' }
      return { ok: true, held: holdId }
    })
}
// #endregion hold

// #region release
/** Releases ended holds whose payments do not exist or have ended. Call it often. */
export async function releaseHolds(pool: Pool, { outgoingPayments }: ResourceServer) {
  const ended = 'ends_at < clock_timestamp()'
  const query = `SELECT hold_id, payment_id FROM ledger_holds WHERE ${ended}`
  const { rows } = await pool.query(query)
  let failure: { error: unknown } | undefined
  for (const { hold_id: holdId, payment_id: paymentId } of rows) {
    try {
      const payment = await outgoingPayments.get(paymentId)
      if (payment !== undefined && payment.endedAt === undefined) continue
      // `ended` again: a repeated request may have extended the hold meanwhile.
      const release = `DELETE FROM ledger_holds WHERE hold_id = $1 AND ${ended}`
      await pool.query(release, [holdId])
    } catch (error) {
      failure = { error } // the other holds do not wait for this one
    }
  }
  if (failure !== undefined) throw failure.error
}
// #endregion release
