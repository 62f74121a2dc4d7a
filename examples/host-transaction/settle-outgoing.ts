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
  readonly credit: bigint
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
 * Debits what a report has added to a payment, or credits what was refunded; in one
 * currency, what does not arrive is your fee. Holds no more than what may be debited.
 */
export async function post(client: PoolClient, posting: Posting): Promise<void> {
  const { payment, debit } = posting
  const { paymentId, walletAddress, debitAmount, sentAmount, endedAt } = payment
  await client.query(
    `INSERT INTO ledger_entries (transfer_id, account_id, amount)
      SELECT $1, account_id, amount
      FROM (
        VALUES ($2, -$3::numeric), ($4, $3 - $5::numeric), ('fees', $5::numeric)
      ) AS line (account_id, amount)
      WHERE amount <> 0`,
    [
      transferOf(posting),
      walletAddress,
      debit.toString(),
      settlementAccount(sentAmount.assetCode),
      feeOf(posting).toString(),
    ],
  )
  // After the entries, which lock the account: `holdFunds` locks it before the holds.
  if (endedAt !== undefined) {
    const ended = 'DELETE FROM ledger_holds WHERE payment_id = $1 AND NOT released'
    await client.query(ended, [paymentId])
  } else {
    const rest = `${BigInt(debitAmount.value) - BigInt(sentAmount.value)}`
    const part = 'UPDATE ledger_holds SET amount = $2 WHERE payment_id = $1'
    await client.query(part, [paymentId, rest])
  }
}

/** Your fee in a report: with another currency, it is in your rate. */
export function feeOf({ payment, debit, credit }: Posting): bigint {
  const { debitAmount: from, receiveAmount: to } = payment
  const isSame = from.assetCode === to.assetCode && from.assetScale === to.assetScale
  return isSame ? debit - credit : 0n
}

/** A transfer for each change, named by what was sent and delivered before it. */
export function transferOf({ payment, debit, credit }: Posting): string {
  const { paymentId, sentAmount, deliveredAmount } = payment
  const sent = BigInt(sentAmount.value) - debit
  const delivered = BigInt(deliveredAmount.value) - credit
  const isFirst = sent === 0n && delivered === 0n
  return isFirst ? paymentId : `${paymentId} after ${sent} ${delivered}`
}
// #endregion settled
