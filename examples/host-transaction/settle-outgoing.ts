import type { OutgoingPaymentServices, ResourceServer, Totals } from 'open-payments-server'
import { postgresStore } from 'open-payments-server/postgres'
import type { Pool, PoolClient } from 'pg'
import { settlementAccount } from './tables.js'

type Resources = Pick<ResourceServer, 'within'>

/** What the rail reports: whether the payment arrived, and what was sent and delivered in all. */
export type Outcome = Totals & { readonly arrived: boolean }

/** Completes a payment, or fails it. */
export async function endPayment(
  outgoingPayments: Pick<OutgoingPaymentServices, 'reportSent' | 'fail'>,
  paymentId: string,
  { arrived, ...totals }: Outcome,
) {
  if (!arrived) return outgoingPayments.fail(paymentId, totals)
  return outgoingPayments.reportSent(paymentId, { ...totals, final: true })
}

/**
 * Completes or fails an outgoing payment, debits the account by what was sent, and releases the hold, in one
 * transaction. It may be called again with the same outcome at any time, for example after it has thrown: it debits
 * once.
 *
 * @returns the result of `reportSent` or `fail`. After a refusal nothing was written.
 */
export function settleOutgoing(
  pool: Pool,
  resources: Resources,
  paymentId: string,
  outcome: Outcome,
): ReturnType<typeof endPayment> {
  return postgresStore.transaction(pool, async (client: PoolClient, store) => {
    const { outgoingPayments } = resources.within(store)
    const result = await endPayment(outgoingPayments, paymentId, outcome)
    if (result.ok && result.changed && result.payment.sentAmount.value !== '0') {
      const { walletAddress, sentAmount } = result.payment
      await client.query(
        `INSERT INTO ledger_entries (transfer_id, account_id, amount)
          VALUES ($1, $2, -$3::numeric), ($1, $4, $3::numeric)`,
        [paymentId, walletAddress, sentAmount.value, settlementAccount(sentAmount.assetCode)],
      )
    }
    // After the entries, which lock the account: `holdFunds` locks the account before the holds, too.
    if (result.ok) {
      await client.query('DELETE FROM ledger_holds WHERE payment_id = $1', [paymentId])
    }
    return result
  })
}
