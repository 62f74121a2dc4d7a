import type { SettlementTotals } from '../core/attempts/settlement.js'
import type { DecideDoubtRefusal } from '../core/outgoing-payment/doubt.js'
import type { OutgoingPaymentRefusals, Totals } from '../core/outgoing-payment.js'
import type { OutgoingPaymentServices, ReportResult } from '../host/outgoing-payment.js'
import type { OutgoingPaymentView } from '../host/outgoing-payment-view.js'
import type { Settled } from './views.js'

/** Nobody else may decide what is in doubt: the driver would not know of it. */
const decidedBy = 'attempts' as const

/** The functions of `outgoingPayments` that `reportSettled` calls, also those of a transaction. */
export type SettledPayments = Pick<
  OutgoingPaymentServices,
  'get' | 'reportSent' | 'fail' | 'decideDoubt'
>

/** The result of `reportSettled`: that of the call of `outgoingPayments` that the report needed. */
export type ReportedSettlement = ReportResult<
  OutgoingPaymentRefusals['report-sent'] | OutgoingPaymentRefusals['fail'] | DecideDoubtRefusal
>

/**
 * Reports to an outgoing payment, which has begun, what its settlement has brought. The amount of the settlement is the
 * `receiveAmount` of the payment; what is debited follows from its price, rounded up.
 *
 * - while the settlement runs: what is proven, and what is in doubt;
 * - once it has ended: the payment completes, or fails with what arrived and what is in doubt, which is debited;
 * - after that: what was in doubt is decided once nothing is, and what did not arrive is refunded. What is `withdrawn`
 *   stays debited, and is yours to refund.
 *
 * With the `outgoingPayments` of a transaction, debit `debit` of the result beside it; it is negative for a refund, and
 * zero for a repeat.
 *
 * @param settled of `settle`, called with the id and the `receiveAmount` of the payment.
 * @throws {InvalidInputError} for an invalid id, and the errors of the store.
 *
 * @example
 * ```ts
 * import { type Attempts, reportSettled } from 'open-payments-server/attempts'
 *
 * async function send(transfers: Attempts, id: string, amount: bigint) {
 *   const settled = await transfers.settle({ id, amount })
 *   const reported = await reportSettled(wallet.resources.outgoingPayments, id, settled)
 *   if (!reported.ok) throw new Error(reported.reason)
 *   return settled.state === 'again' ? settled : undefined // with `retryAt`: the event is delivered again
 * }
 * ```
 */
export async function reportSettled(
  outgoingPayments: SettledPayments,
  paymentId: string,
  settled: Settled,
): Promise<ReportedSettlement> {
  const payment = await outgoingPayments.get(paymentId)
  if (payment === undefined) {
    const reason = `no outgoing payment has the id ${paymentId}`
    return { ok: false, refusal: 'payment_unknown', reason }
  }
  const unchanged = { ok: true, changed: false, payment, debit: 0n, credit: 0n } as const
  const { debitAmount, inDoubt, refundedAmount } = payment
  const hasEnded = settled.state === 'ended'
  const { arrived, doubtful } = knownFrom(settled)
  const totals = totalsAt(payment, arrived)
  if (payment.endedAt !== undefined && (inDoubt ?? refundedAmount) !== undefined) {
    if (!hasEnded || doubtful > 0n) return unchanged
    return outgoingPayments.decideDoubt(paymentId, refundAt(payment, totals))
  }
  const all = totalsAt(payment, arrived + doubtful)
  const isDebited = [totals, all].every(({ sentAmount: { value } }) => {
    return value === payment.sentAmount.value
  })
  // By rounding, what is delivered of it may differ.
  if (hasEnded && payment.endedAt !== undefined && isDebited) {
    return unchanged
  }
  const known = hasEnded ? totals : belowWhole(payment, totals)
  const value = BigInt(all.sentAmount.value) - BigInt(known.sentAmount.value)
  // By rounding, it can be nothing.
  const doubt = value > 0n &&
    settled.doubt && {
      inDoubt: { amount: { ...debitAmount, value: `${value}` }, ...settled.doubt, decidedBy },
    }
  if (!hasEnded) return outgoingPayments.reportSent(paymentId, { ...known, ...doubt })
  if (totals.sentAmount.value === debitAmount.value) {
    return outgoingPayments.reportSent(paymentId, { ...totals, final: true })
  }
  const reason = settled.reason !== undefined && { reason: settled.reason }
  return outgoingPayments.fail(paymentId, { ...all, ...doubt, ...reason })
}

/**
 * By rounding, a part can have the whole price. Such a part must not complete the payment while the rest may still
 * arrive.
 */
function belowWhole({ debitAmount, receiveAmount }: OutgoingPaymentView, totals: Totals): Totals {
  const { sentAmount, deliveredAmount } = totals
  const isWhole = deliveredAmount.value === receiveAmount.value
  if (isWhole || sentAmount.value !== debitAmount.value) return totals
  return { ...totals, sentAmount: { ...debitAmount, value: `${BigInt(debitAmount.value) - 1n}` } }
}

/** While it runs, only what is proven is reported as sent, because totals cannot recede. */
function knownFrom({ state, totals }: Settled) {
  const { proven, byWord, inDoubt } = totals
  return state === 'ended'
    ? { arrived: arrivedAtEnd(totals), doubtful: inDoubt }
    : { arrived: proven, doubtful: byWord + inDoubt }
}

/** What counts once a settlement has ended. What was debited by a word stays so: no report can refund it. */
export function arrivedAtEnd({ proven, byWord, withdrawn }: SettlementTotals): bigint {
  return proven + byWord + withdrawn
}

/**
 * Returns the totals of a payment of which an amount has arrived, in the unit of `receiveAmount`: what is sent follows
 * from its price, rounded up. More than was ordered can arrive, if a word of the other side was wrong; it counts as the
 * order.
 *
 * @example
 * ```ts
 * import { totalsAt } from 'open-payments-server/attempts'
 *
 * const dollars = { assetCode: 'USD', assetScale: 2 }
 * const price = { debitAmount: { value: '102', ...dollars }, receiveAmount: { value: '100', ...dollars } }
 * console.log(totalsAt(price, 50n).sentAmount.value) // '51'
 * ```
 */
export function totalsAt(
  { debitAmount, receiveAmount }: Pick<OutgoingPaymentView, 'debitAmount' | 'receiveAmount'>,
  arrived: bigint,
): Totals {
  const [debit, receive] = [BigInt(debitAmount.value), BigInt(receiveAmount.value)]
  const delivered = arrived < receive ? arrived : receive
  const sent = receive === 0n ? 0n : (delivered * debit + receive - 1n) / receive
  return {
    sentAmount: { ...debitAmount, value: `${sent}` },
    deliveredAmount: { ...receiveAmount, value: `${delivered}` },
  }
}

/** What was debited when the payment ended, and is not what arrived, is refunded. */
function refundAt(
  { debitAmount, sentAmount, refundedAmount }: OutgoingPaymentView,
  { sentAmount: arrived, deliveredAmount }: Totals,
) {
  const debited = BigInt(sentAmount.value) + BigInt(refundedAmount?.value ?? 0)
  const refund = debited - BigInt(arrived.value)
  const refunded = { ...debitAmount, value: `${refund > 0n ? refund : 0n}` }
  return { refunded, deliveredAmount, decidedBy }
}
