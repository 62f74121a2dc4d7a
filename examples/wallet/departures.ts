import type { OutgoingPayment, ResourceServices, Totals } from 'open-payments-server'
import { decideOutgoingPayment } from 'open-payments-server/core'

/** What the rail says of a payment that it was to send: totals so far, all attempts together. */
export type Departure =
  | ({ readonly type: 'settle'; readonly final?: boolean } & Partial<Totals>)
  | ({ readonly type: 'fail'; readonly reason?: string } & Partial<Totals>)

export type Departed =
  | { readonly ok: true; readonly payment: OutgoingPayment }
  | { readonly ok: false; readonly refusal: string }

/**
 * Records what the rail has sent of a payment, and credits the receiver if that is in this very wallet. The
 * same report may come again at any time, and counts once. One that was not answered has to come again before
 * there is another.
 *
 * The receiver is credited before the payer's payment is settled: whoever crashes in between has the whole
 * amount reserved still, and the report that comes again ends it. In a database of one's own both are one
 * transaction: see examples/host-transaction.
 *
 * @param departure what it leaves out stays as it was reported last. Without it everything has been sent.
 * @returns `undefined` if there is no such payment.
 */
export async function depart(
  { incomingPayments, outgoingPayments }: ResourceServices,
  paymentId: string,
  departure: Departure | undefined,
): Promise<Departed | undefined> {
  const begun = await outgoingPayments.begin(paymentId)
  // Begun or over already: whether the report still fits is for its own decision.
  if (!begun.ok && begun.refusal === 'payment_lapsed') return begun
  const payment = await outgoingPayments.get(paymentId)
  if (payment === undefined) return undefined
  const report = { ...(departure ?? everythingOf(payment)) }
  const totals = { ...soFar(payment), ...report }

  // What cannot be recorded must not be credited.
  const rehearsal = { ...totals, commandId: 'rehearsal' }
  const decided = decideOutgoingPayment(payment, rehearsal, Date.now(), rehearsalPolicy)
  if (decided.outcome === 'refused') return { ok: false, refusal: decided.refusal }

  const credited = await credit(incomingPayments, payment, totals)
  if (!credited.ok) {
    // The receiver takes no more, and will not tomorrow: the money has not left, and the payer may spend it
    // on something else. A mismatch is another matter. It says that another report was first.
    if (credited.refusal !== 'transfer_mismatch') {
      await outgoingPayments.fail({ paymentId, reason: `the receiver: ${credited.refusal}` })
    }
    return credited
  }
  const { type, ...said } = totals
  return type === 'fail'
    ? outgoingPayments.fail({ paymentId, ...said })
    : outgoingPayments.reportSent({ paymentId, ...said })
}

const rehearsalPolicy = { holdMs: 0, retentionMs: 0 }

function everythingOf({ debitAmount, receiveAmount }: OutgoingPayment): Departure {
  return { type: 'settle', sentAmount: debitAmount, deliveredAmount: receiveAmount }
}

function soFar({ debitAmount, receiveAmount, sent, delivered }: OutgoingPayment): Totals {
  return {
    sentAmount: { ...debitAmount, value: sent },
    deliveredAmount: { ...receiveAmount, value: delivered },
  }
}

/**
 * Credits what has been delivered since the last report. Its transfer is named by the total that it starts
 * from: the same report again counts nothing, and of two that disagree one is counted and the other refused.
 */
async function credit(
  incomingPayments: ResourceServices['incomingPayments'],
  { id, receiver, delivered }: OutgoingPayment,
  { deliveredAmount }: Totals,
): Promise<Departed | { readonly ok: true }> {
  const paymentId = incomingPayments.idOf(receiver)
  const more = BigInt(deliveredAmount.value) - BigInt(delivered)
  if (paymentId === undefined || more === 0n) return { ok: true }
  const transferId = `outgoing-payment ${id} from ${delivered}`
  const amount = { ...deliveredAmount, value: `${more}` }
  const received = await incomingPayments.receive({ paymentId, transferId, amount })
  return received.ok ? { ok: true } : { ok: false, refusal: received.refusal }
}
