import type { OutgoingPaymentServices, ResourceServer, Totals } from 'open-payments-server'
import { postgresStore } from 'open-payments-server/postgres'
import type { Pool, PoolClient } from 'pg'
import { settlementAccount } from './tables.js'

type Resources = Pick<ResourceServer, 'within'>

/**
 * Debits an account by the sent amount of an outgoing payment, releases its holds and settles the payment finally,
 * in one transaction. It may be called again with the same totals at any time, for example after it has thrown: it
 * debits once.
 *
 * @returns the result of `reportSent`. After a refusal nothing was written.
 */
export function settleOutgoing(
  pool: Pool,
  resources: Resources,
  paymentId: string,
  totals: Totals,
): ReturnType<OutgoingPaymentServices['reportSent']> {
  return postgresStore.transaction(pool, async (client: PoolClient, store) => {
    const { outgoingPayments } = resources.within(store)
    const result = await outgoingPayments.reportSent(paymentId, { ...totals, final: true })
    if (result.ok && result.changed && result.payment.sent !== '0') {
      const { id, walletAddress, debitAmount } = result.payment
      await client.query(
        `INSERT INTO ledger_entries (transfer_id, account_id, amount)
          VALUES ($1, $2, -$3::numeric), ($1, $4, $3::numeric)`,
        [id, walletAddress, result.payment.sent, settlementAccount(debitAmount.assetCode)],
      )
    }
    // After the entries, which lock the account: `holdFunds` locks the account before the holds, too.
    if (result.ok) {
      await client.query('DELETE FROM ledger_holds WHERE payment_id = $1', [paymentId])
    }
    return result
  })
}
