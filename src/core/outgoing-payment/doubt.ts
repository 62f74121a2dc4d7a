import { type Amount, parseValue, sameAsset, valueOr } from '../amount.js'
import {
  type Changed,
  changed,
  ok,
  type Refused,
  type Result,
  refused,
  type Unchanged,
  unchanged,
} from '../decision.js'
import type { Instant } from '../instant.js'
import { retained } from '../stored.js'
import {
  hasEnded,
  type OutgoingPayment,
  type OutgoingPaymentPolicy,
  retainPaymentUntil,
} from './record.js'

/** A part of a payment of which nobody knows whether it arrives. */
export interface PaymentDoubt {
  /** The part, positive, in the asset of `debitAmount`. */
  readonly amount: Amount
  /** Since when the oldest part of it is in doubt, in milliseconds since 1970. */
  readonly since: Instant
  /** For the operator, such as the name of the peer: 1 to 256 characters. */
  readonly reason: string
  /**
   * Who decides it after the end. `'attempts'`: the driver that settles the payment, by `reportSettled`. It alone knows
   * what was sent, so `decideDoubt` refuses anybody else. Default: the host.
   */
  readonly decidedBy?: 'attempts'
}

/** The totals that have been reported, with what was refunded of them since. */
export interface ReportedTotals {
  readonly sent: string
  readonly delivered: string
}

/** Returns the totals as the last report had them, with which a repeat of the report is compared. */
export function reportedTotals({ sent, delivered, decided }: OutgoingPayment): ReportedTotals {
  return {
    sent: plus(sent, decided?.refunded),
    delivered: plus(delivered, decided?.undelivered),
  }
}

function plus(value: string, more = '0'): string {
  return (valueOr(0n, value) + valueOr(0n, more)).toString()
}

/** Whether a report has the doubt of the last one, also if it has been decided since. */
export function isSameDoubt(
  { inDoubt, decided, state }: OutgoingPayment,
  doubt: OutgoingPayment['inDoubt'],
): boolean {
  if (state !== 'begun') return (inDoubt ?? decided)?.amount === doubt?.amount
  const { amount, since, reason } = inDoubt ?? {}
  return amount === doubt?.amount && since === doubt?.since && reason === doubt?.reason
}

/**
 * Reads the doubt of a report. While a payment runs, only what is proven is sent, so the doubt comes on top of it. In
 * the report that ends the payment, the doubt is a part of what was sent, because it is debited until it is decided.
 */
export function readDoubt(
  { debitAmount }: OutgoingPayment,
  doubt: PaymentDoubt | undefined,
  { sent }: ReportedTotals,
  ends: boolean,
): Result<OutgoingPayment['inDoubt'], Refused<'amount_invalid' | 'totals_exceeded'>> {
  if (doubt === undefined) return ok(undefined)
  const { amount, since, reason, decidedBy } = doubt
  const value = sameAsset(amount, debitAmount) ? parseValue(amount.value) : undefined
  if (value === undefined || value === 0n) {
    return refused('amount_invalid', 'inDoubt is not a positive amount in the asset of debitAmount')
  }
  const most = ends ? valueOr(0n, sent) : valueOr(0n, debitAmount.value) - valueOr(0n, sent)
  if (value > most) {
    const what = ends ? 'the total sent, which includes it' : 'what is left of the payment'
    return refused('totals_exceeded', `inDoubt is more than ${what}`)
  }
  return ok({ amount: amount.value, since, reason, ...(decidedBy !== undefined && { decidedBy }) })
}

/** The host has found out what became of the part in doubt of a payment that has ended. */
export interface DecideDoubt {
  readonly commandId: string
  /** What did not arrive and goes back to the payer, from zero to the amount in doubt. The rest has arrived. */
  readonly refunded: Amount
  /** What was delivered in total. Default: as much less as the price of the payment says, rounded up. */
  readonly deliveredAmount?: Amount
  /** Who decides, as the report of the doubt has said it. `reportSettled` passes it. */
  readonly decidedBy?: 'attempts'
}

/** Why the decision about a part in doubt has no effect. Minor versions add members: give a `switch` a `default`. */
export type DecideDoubtRefusal =
  | 'payment_not_ended'
  | 'doubt_decided'
  | 'decided_by_attempts'
  | 'amount_invalid'
  | 'totals_exceeded'

/**
 * Decides the doubt of a payment that has ended: what was refunded has not been sent, and counts back in the budgets
 * that count the payment, which are those of the window in which it was created. A repeat changes nothing.
 *
 * @example
 * ```ts
 * import { decideDoubt } from 'open-payments-server/core'
 *
 * const refunded = { value: '1000', assetCode: 'USD', assetScale: 2 }
 * const policy = { holdMs: 86_400_000, retentionMs: 365 * 86_400_000 }
 * const command = { commandId: 'command-4', refunded }
 * const decided = decideDoubt(outgoingPayment, command, Date.now(), policy)
 * console.log(decided.ok ? decided.record.sent : decided.reason)
 * ```
 */
export function decideDoubt(
  payment: OutgoingPayment,
  { commandId, refunded, deliveredAmount, decidedBy }: DecideDoubt,
  now: Instant,
  policy: OutgoingPaymentPolicy,
): Changed<OutgoingPayment, never> | Unchanged<OutgoingPayment> | Refused<DecideDoubtRefusal> {
  if (payment.commandId === commandId) return unchanged(payment)
  if (!hasEnded(payment)) {
    return refused('payment_not_ended', 'the payment has not ended: report its totals instead')
  }
  const value = sameAsset(refunded, payment.debitAmount) ? parseValue(refunded.value) : undefined
  if (value === undefined) {
    return refused('amount_invalid', 'refunded is not an amount in the asset of debitAmount')
  }
  const { inDoubt, decided, ...rest } = payment
  if (inDoubt === undefined) {
    return decided?.refunded === value.toString()
      ? unchanged(payment)
      : refused('doubt_decided', 'nothing of the payment is in doubt, or it was decided otherwise')
  }
  if (inDoubt.decidedBy !== decidedBy) {
    const reason = 'a driver of attempts decides what is in doubt: call its decide'
    return refused('decided_by_attempts', reason)
  }
  if (value > valueOr(0n, inDoubt.amount)) {
    return refused('totals_exceeded', 'refunded is more than the amount in doubt')
  }
  const sent = valueOr(0n, payment.sent) - value
  const delivered = deliveredOf(payment, { sent, refunded: value }, deliveredAmount)
  if (!delivered.ok) return delivered
  const undelivered = valueOr(0n, payment.delivered) - delivered.value
  return changed({
    ...rest,
    version: payment.version + 1,
    commandId,
    updatedAt: now,
    sent: sent.toString(),
    delivered: delivered.value.toString(),
    decided: {
      amount: inDoubt.amount,
      refunded: value.toString(),
      undelivered: undelivered.toString(),
    },
    ...retained(retainPaymentUntil(now, policy)),
  })
}

/** Returns the total delivered after a refund, which never rises. */
function deliveredOf(
  { debitAmount, receiveAmount, delivered }: OutgoingPayment,
  { sent, refunded }: { readonly sent: bigint; readonly refunded: bigint },
  given: Amount | undefined,
): Result<bigint, Refused<'amount_invalid' | 'totals_exceeded'>> {
  const before = valueOr(0n, delivered)
  if (given === undefined) {
    const [debit, receive] = [valueOr(0n, debitAmount.value), valueOr(0n, receiveAmount.value)]
    const atPrice = (value: bigint) => (debit === 0n ? 0n : (value * receive + debit - 1n) / debit)
    if (sent === 0n) return ok(0n)
    // More may have been delivered than the price says: a refund takes only its own part of it.
    const rest = before - atPrice(refunded)
    if (atPrice(sent) >= before) return ok(before)
    const isMore = rest > atPrice(sent)
    return ok(isMore ? rest : atPrice(sent))
  }
  const value = sameAsset(given, receiveAmount) ? parseValue(given.value) : undefined
  if (value === undefined) {
    return refused('amount_invalid', 'deliveredAmount is not in the asset of receiveAmount')
  }
  return value > before
    ? refused('totals_exceeded', 'deliveredAmount is more than what was reported')
    : ok(value)
}
