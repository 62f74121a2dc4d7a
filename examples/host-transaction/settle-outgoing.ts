import type {
  OutgoingPaymentServices,
  OutgoingPaymentView,
  ResourceServer,
  Totals,
} from 'open-payments-server'
import { type ReportedSettlement, reportSettled, type Settled } from 'open-payments-server/attempts'
import { postgresStore } from 'open-payments-server/postgres'
import type { Pool, PoolClient } from 'pg'
import { settlementAccount } from './tables.js'

type Resources = Pick<ResourceServer, 'within'>

/** The result of a report that was accepted. */
export interface Posting {
  readonly payment: OutgoingPaymentView
  readonly debit: bigint
}

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
    if (result.ok) await post(client, result)
    return result
  })
}

// #region settled
/** Reports what a settlement has brought so far, and posts it, in one transaction. */
export function postSettled(
  pool: Pool,
  resources: Resources,
  paymentId: string,
  settled: Settled,
): Promise<ReportedSettlement> {
  return postgresStore.transaction(pool, async (client: PoolClient, store) => {
    const { outgoingPayments } = resources.within(store)
    const result = await reportSettled(outgoingPayments, paymentId, settled)
    if (result.ok) await post(client, result)
    return result
  })
}

/**
 * Debits what a report has added to a payment, or credits what was refunded, and holds
 * no more than what may still be debited.
 */
export async function post(client: PoolClient, posting: Posting): Promise<void> {
  const { payment, debit } = posting
  const { paymentId, walletAddress, debitAmount, sentAmount, endedAt } = payment
  const sent = BigInt(sentAmount.value)
  if (debit !== 0n) {
    const other = settlementAccount(sentAmount.assetCode)
    await client.query(
      `INSERT INTO ledger_entries (transfer_id, account_id, amount)
        VALUES ($1, $2, -$3::numeric), ($1, $4, $3::numeric)`,
      [transferOf(paymentId, sent - debit), walletAddress, debit.toString(), other],
    )
  }
  // After the entries, which lock the account: `holdFunds` locks it before the holds.
  if (endedAt !== undefined) {
    const ended = 'DELETE FROM ledger_holds WHERE payment_id = $1 AND NOT released'
    await client.query(ended, [paymentId])
  } else {
    const rest = `${BigInt(debitAmount.value) - sent}`
    const part = 'UPDATE ledger_holds SET amount = $2 WHERE payment_id = $1'
    await client.query(part, [paymentId, rest])
  }
}

/** A transfer for each change: what the payment had sent before names it. */
export function transferOf(paymentId: string, sentBefore: bigint): string {
  return sentBefore === 0n ? paymentId : `${paymentId} after ${sentBefore}`
}
// #endregion settled
