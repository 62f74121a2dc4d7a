import type {
  OutgoingPayment,
  OutgoingPaymentView,
  ResourceServices,
  Totals,
} from 'open-payments-server'
import { decideOutgoingPayment } from 'open-payments-server/core'

/** A report of the rail on an outgoing payment, with cumulative totals over all attempts. */
export type RailReport =
  | ({ readonly type: 'report-sent'; readonly final?: boolean } & Partial<Totals>)
  | ({ readonly type: 'fail'; readonly reason?: string } & Partial<Totals>)

export type ReportResult =
  | { readonly ok: true; readonly payment: OutgoingPaymentView }
  | { readonly ok: false; readonly refusal: string }

/**
 * Records what the rail has sent of a payment, and credits the receiver if it is in the same wallet. The rail
 * may repeat a report at any time; it counts once. A report without a response must be repeated before the
 * next one.
 *
 * The receiver is credited before the payer's payment is settled. After a crash in between, the whole amount
 * is still reserved, and the repeated report settles it. A host with its own database uses one transaction
 * for both: see examples/host-transaction.
 *
 * @param report missing members keep their last reported values. Without a report, everything has been sent.
 * @returns `undefined` if the payment does not exist.
 */
export async function applyReport(
  { incomingPayments, outgoingPayments }: ResourceServices,
  paymentId: string,
  report: RailReport | undefined,
): Promise<ReportResult | undefined> {
  const begun = await outgoingPayments.begin(paymentId)
  // The payment may already be begun or over: the decision below checks whether the report still applies.
  if (!begun.ok && begun.refusal === 'payment_lapsed') return begun
  const payment = await outgoingPayments.getRecord(paymentId)
  if (payment === undefined) return undefined
  const current = { ...(report ?? everythingOf(payment)) }
  const totals = { ...soFar(payment), ...current }

  // Credit only what can also be recorded.
  const rehearsal = { ...totals, commandId: 'rehearsal' }
  const decided = decideOutgoingPayment(payment, rehearsal, Date.now(), rehearsalPolicy)
  if (decided.outcome === 'refused') return { ok: false, refusal: decided.refusal }

  const credited = await credit(incomingPayments, payment, totals)
  if (!credited.ok) {
    // The receiver will never accept more: the money was not sent, and the payer may spend it on something
    // else. A mismatch is different: it means that another report was first.
    if (credited.refusal !== 'transfer_mismatch') {
      const reason = `receiver: ${credited.refusal}`
      const publicReason = 'the receiver did not accept the payment'
      await outgoingPayments.fail(paymentId, { reason, publicReason })
    }
    return credited
  }
  const { type, ...said } = totals
  return type === 'fail'
    ? outgoingPayments.fail(paymentId, said)
    : outgoingPayments.reportSent(paymentId, said)
}

const rehearsalPolicy = { holdMs: 0, retentionMs: 0 }

function everythingOf({ debitAmount, receiveAmount }: OutgoingPayment): RailReport {
  return { type: 'report-sent', sentAmount: debitAmount, deliveredAmount: receiveAmount }
}

function soFar({ debitAmount, receiveAmount, sent, delivered }: OutgoingPayment): Totals {
  return {
    sentAmount: { ...debitAmount, value: sent },
    deliveredAmount: { ...receiveAmount, value: delivered },
  }
}

/**
 * Credits what has been delivered since the last report. The transfer id contains the previous total: a
 * repeated report counts nothing, and of two contradictory reports one is counted and the other refused.
 */
async function credit(
  incomingPayments: ResourceServices['incomingPayments'],
  { id, receiver, delivered }: OutgoingPayment,
  { deliveredAmount }: Totals,
): Promise<ReportResult | { readonly ok: true }> {
  const paymentId = incomingPayments.idOf(receiver)
  const more = BigInt(deliveredAmount.value) - BigInt(delivered)
  if (paymentId === undefined || more === 0n) return { ok: true }
  const transferId = `outgoing-payment ${id} from ${delivered}`
  const amount = { ...deliveredAmount, value: `${more}` }
  const received = await incomingPayments.receive(paymentId, { transferId, amount })
  return received.ok ? { ok: true } : { ok: false, refusal: received.refusal }
}
