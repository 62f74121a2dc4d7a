import type { EventHandler, MayPay } from 'open-payments-server'
import { postgresStore } from 'open-payments-server/postgres'
import type { Pool, PoolClient } from 'pg'

// #region hold
/** Holds what a payment debits, or refuses it: `policy.mayPay`. */
export function holdFunds(pool: Pool): MayPay {
  return ({ outgoingPaymentId, walletAddress, debitAmount, isPreview }) =>
    postgresStore.transaction(pool, async (client: PoolClient) => {
      // First: the insert locks this row too, and two calls would wait for each other.
      const account = 'SELECT 1 FROM ledger_accounts WHERE id = $1 FOR UPDATE'
      await client.query(account, [walletAddress])
      const { rowCount } = await client.query(
        `INSERT INTO ledger_holds (payment_id, account_id, amount)
          SELECT $1, $2, $3::numeric
          WHERE $3::numeric <= (
            SELECT coalesce(sum(amount), 0) FROM ledger_entries WHERE account_id = $2
          ) - (
            SELECT coalesce(sum(amount), 0) FROM ledger_holds
            WHERE account_id = $2 AND payment_id <> $1 AND NOT released
          )
          ON CONFLICT (payment_id) DO UPDATE SET amount = excluded.amount
          WHERE NOT ledger_holds.released`,
        [outgoingPaymentId, walletAddress, debitAmount.value],
      )
      // Or the payment has ended, and nobody waits for this answer.
      if (rowCount !== 1) return { ok: false, refusal: 'funds_insufficient' }
      // No event would release the hold of a preview.
      const release = 'DELETE FROM ledger_holds WHERE payment_id = $1'
      if (isPreview) await client.query(release, [outgoingPaymentId])
      return { ok: true }
    })
}
// #endregion hold

// #region release
/**
 * Releases what is held for a payment that has ended: a handler of events. It leaves a
 * mark: a call of `mayPay` that was stopped for minutes could hold the amount after
 * that, and no event would release it.
 */
export function releaseFunds(pool: Pool): EventHandler {
  return async (event) => {
    switch (event.type) {
      case 'outgoing-payment.completed':
      case 'outgoing-payment.failed':
      case 'outgoing-payment.declined': {
        await pool.query(
          `INSERT INTO ledger_holds (payment_id, account_id, amount, released)
            SELECT $1, id, 0, true FROM ledger_accounts WHERE id = $2 FOR UPDATE
            ON CONFLICT (payment_id) DO UPDATE SET amount = 0, released = true`,
          [event.outgoingPaymentId, event.walletAddress],
        )
      }
    }
  }
}
// #endregion release
