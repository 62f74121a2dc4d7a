import { type Amount, parseValue, sameAsset, valueOr } from './amount.js'
import {
  type Decision,
  type HostReasons,
  ok,
  type Refused,
  type Result,
  refused,
  unchanged,
} from './decision.js'
import type { Instant } from './instant.js'
import {
  isSameDoubt,
  type PaymentDoubt,
  type ReportedTotals,
  readDoubt,
  reportedTotals,
} from './outgoing-payment/doubt.js'
import {
  hasEnded,
  nextPayment,
  type OutgoingPayment,
  type OutgoingPaymentEvent,
  type OutgoingPaymentPolicy,
} from './outgoing-payment/record.js'

/** The host claims the payment to send it. It can no longer lapse. */
export interface BeginPayment {
  readonly type: 'begin'
  readonly commandId: string
}

/** The total amounts sent and delivered, over all attempts. */
export interface Totals {
  /** Total debited so far, in the asset of `debitAmount`. */
  readonly sentAmount: Amount
  /** Total delivered so far, in the asset of `receiveAmount`. */
  readonly deliveredAmount: Amount
}

/** The host reports the totals. With the full amount, or with `final`, the payment is complete. */
export interface ReportSent extends Totals {
  readonly type: 'report-sent'
  readonly commandId: string
  /** True if the host will send no more, although the payment allows more. */
  readonly final?: boolean
  /**
   * What may arrive and is not proven. While the payment runs, it is not a part of the totals; in the report that ends
   * it, `sentAmount` includes it. Default: nothing is in doubt any more.
   */
  readonly inDoubt?: PaymentDoubt
}

/**
 * The host gives up. The amounts sent stay charged; the rest returns to the budget. If only one total is reported, the
 * other is derived from it at the price of the payment, rounded up.
 */
export interface FailPayment extends Partial<Totals>, HostReasons {
  readonly type: 'fail'
  readonly commandId: string
  /** The part of `sentAmount` that is not proven. Default: nothing is in doubt. */
  readonly inDoubt?: PaymentDoubt
}

/** The resource owner or the host cancels a payment that has not been begun. */
export interface CancelPayment extends HostReasons {
  readonly type: 'cancel'
  readonly commandId: string
}

/** The host did not begin the payment before its hold expired. */
export interface LapsePayment {
  readonly type: 'lapse'
  readonly commandId: string
}

/** A command to an outgoing payment. */
export type OutgoingPaymentCommand =
  | BeginPayment
  | ReportSent
  | FailPayment
  | CancelPayment
  | LapsePayment

/** Why reported totals are refused. Minor versions add members: give a `switch` a `default`. */
export type TotalsRefusal = 'amount_invalid' | 'totals_receded' | 'totals_exceeded'

/** The refusals of each command. Minor versions add members: give a `switch` a `default`. */
export interface OutgoingPaymentRefusals {
  readonly begin: 'payment_begun' | 'payment_lapsed' | 'payment_over'
  readonly 'report-sent': 'payment_not_begun' | 'payment_over' | TotalsRefusal
  readonly fail: 'payment_not_begun' | 'payment_over' | 'payment_sent' | TotalsRefusal
  readonly cancel: 'payment_begun' | 'payment_over'
  readonly lapse: 'payment_begun' | 'payment_held' | 'payment_over'
}

/** What became of a command to an outgoing payment, with the refusals of its type. */
export type OutgoingPaymentDecision<Type extends keyof OutgoingPaymentRefusals> = Decision<
  OutgoingPayment,
  OutgoingPaymentEvent,
  OutgoingPaymentRefusals[Type]
>

/**
 * The state machine of an outgoing payment. Pure and total: a command whose id is on the record, or a report of
 * totals that are already recorded, changes nothing.
 *
 * @example
 * ```ts
 * import { decideOutgoingPayment } from 'open-payments-server/core'
 *
 * const command = { type: 'begin', commandId: 'command-2' } as const
 * const policy = { holdMs: 86_400_000, retentionMs: 365 * 86_400_000 }
 * const decided = decideOutgoingPayment<'begin'>(outgoingPayment, command, Date.now(), policy)
 * console.log(decided.ok ? decided.record.state : decided.reason)
 * ```
 */
export function decideOutgoingPayment<Type extends keyof OutgoingPaymentRefusals>(
  payment: OutgoingPayment,
  command: Extract<OutgoingPaymentCommand, { readonly type: Type }>,
  now: Instant,
  policy: OutgoingPaymentPolicy,
): OutgoingPaymentDecision<Type>
export function decideOutgoingPayment(
  payment: OutgoingPayment,
  command: OutgoingPaymentCommand,
  now: Instant,
  policy: OutgoingPaymentPolicy,
): OutgoingPaymentDecision<keyof OutgoingPaymentRefusals> {
  if (payment.commandId === command.commandId) return unchanged(payment)
  switch (command.type) {
    case 'begin':
      return begin(payment, command, now, policy)
    case 'report-sent':
      return reportSent(payment, command, now, policy)
    case 'fail':
      return fail(payment, command, now, policy)
    case 'cancel':
      return cancel(payment, command, now, policy)
    case 'lapse':
      return lapse(payment, command, now, policy)
  }
}

function begin(
  payment: OutgoingPayment,
  { commandId }: BeginPayment,
  now: Instant,
  policy: OutgoingPaymentPolicy,
): OutgoingPaymentDecision<'begin'> {
  if (payment.state === 'begun') return refused('payment_begun', 'the payment has been begun')
  if (hasEnded(payment)) return over(payment)
  if (now >= payment.holdUntil) {
    return refused('payment_lapsed', 'the payment was not begun before its hold expired')
  }
  return nextPayment(payment, { state: 'begun' }, 'outgoing-payment.begun', commandId, now, policy)
}

function reportSent(
  payment: OutgoingPayment,
  command: ReportSent,
  now: Instant,
  policy: OutgoingPaymentPolicy,
): OutgoingPaymentDecision<'report-sent'> {
  if (payment.state === 'created') return notBegun
  if (payment.state === 'failed') return over(payment)
  const totals = readTotals(payment, command)
  if (!totals.ok) return totals
  const { sent, delivered } = totals.value
  const completed = command.final === true || isWhole(payment, totals.value)
  const ends = completed || payment.state === 'completed'
  const doubt = readDoubt(payment, command.inDoubt, totals.value, ends)
  if (!doubt.ok) return doubt
  const hasSameTotals = isSame(payment, totals.value)
  const same = hasSameTotals && isSameDoubt(payment, doubt.value)
  if (payment.state === 'completed') return same ? unchanged(payment) : over(payment)
  if (same && !completed) return unchanged(payment)
  const inDoubt = doubt.value && { inDoubt: doubt.value }
  const changes = { sent, delivered, state: completed ? 'completed' : 'begun', ...inDoubt } as const
  const type = completed ? 'outgoing-payment.completed' : 'outgoing-payment.sent'
  const next = nextPayment(payment, changes, type, command.commandId, now, policy)
  // Nothing was sent: the host only reports its doubt.
  return hasSameTotals && !completed ? { ...next, events: [] } : next
}

function fail(
  payment: OutgoingPayment,
  command: FailPayment,
  now: Instant,
  policy: OutgoingPaymentPolicy,
): OutgoingPaymentDecision<'fail'> {
  if (payment.state === 'created') return notBegun
  if (payment.state === 'completed') return over(payment)
  const totals = readTotals(payment, command)
  if (!totals.ok) return totals
  const doubt = readDoubt(payment, command.inDoubt, totals.value, true)
  if (!doubt.ok) return doubt
  if (payment.state === 'failed') {
    const same = isSame(payment, totals.value) && isSameDoubt(payment, doubt.value)
    return same ? unchanged(payment) : over(payment)
  }
  if (isWhole(payment, totals.value) && doubt.value === undefined) {
    return refused('payment_sent', 'the payment has been sent in full, so it cannot fail')
  }
  const changes = {
    ...inProportion(payment, totals.value, command),
    ...failed(command.reason, command.publicReason),
    ...(doubt.value && { inDoubt: doubt.value }),
  }
  return nextPayment(payment, changes, 'outgoing-payment.failed', command.commandId, now, policy)
}

function cancel(
  payment: OutgoingPayment,
  { commandId, reason = 'cancelled', publicReason }: CancelPayment,
  now: Instant,
  policy: OutgoingPaymentPolicy,
): OutgoingPaymentDecision<'cancel'> {
  if (payment.state === 'begun') return refused('payment_begun', 'the payment has been begun')
  if (payment.state === 'failed' && payment.sent === '0') return unchanged(payment)
  if (hasEnded(payment)) return over(payment)
  const changes = failed(reason, publicReason)
  return nextPayment(payment, changes, 'outgoing-payment.failed', commandId, now, policy)
}

function lapse(
  payment: OutgoingPayment,
  { commandId }: LapsePayment,
  now: Instant,
  policy: OutgoingPaymentPolicy,
): OutgoingPaymentDecision<'lapse'> {
  if (payment.state === 'begun') return refused('payment_begun', 'the payment has been begun')
  if (hasEnded(payment)) return over(payment)
  if (now < payment.holdUntil) return refused('payment_held', 'the payment may still be begun')
  const changes = failed('not begun in time')
  return nextPayment(payment, changes, 'outgoing-payment.failed', commandId, now, policy)
}

/**
 * Reads totals, which must not decrease and must not exceed the amounts of the payment, because the budget counts
 * only those.
 */
function readTotals(
  payment: OutgoingPayment,
  { sentAmount, deliveredAmount }: Partial<Totals>,
): Result<ReportedTotals, Refused<TotalsRefusal>> {
  const totals = { ...reportedTotals(payment) }
  for (const [name, amount, most] of [
    ['sent', sentAmount, payment.debitAmount],
    ['delivered', deliveredAmount, payment.receiveAmount],
  ] as const) {
    if (amount === undefined) continue
    const value = sameAsset(amount, most) ? parseValue(amount.value) : undefined
    if (value === undefined)
      return refused('amount_invalid', `${name} is not an amount in its asset`)
    if (value < valueOr(0n, totals[name])) {
      return refused('totals_receded', `${name} is less than an earlier report`)
    }
    if (value > valueOr(0n, most.value)) {
      return refused('totals_exceeded', `${name} is more than the payment allows`)
    }
    totals[name] = amount.value
  }
  return ok(totals)
}

/**
 * Derives the total that a report omits. A limit counts one of the two totals, so if one increases, the other must
 * increase in proportion. Otherwise an amount that was sent could be spent again.
 */
function inProportion(
  { debitAmount, receiveAmount }: OutgoingPayment,
  { sent, delivered }: ReportedTotals,
  { sentAmount, deliveredAmount }: Partial<Totals>,
): ReportedTotals {
  if ((sentAmount === undefined) === (deliveredAmount === undefined)) return { sent, delivered }
  const [debit, receive] = [valueOr(0n, debitAmount.value), valueOr(0n, receiveAmount.value)]
  return sentAmount === undefined
    ? { sent: atLeast(sent, valueOr(0n, delivered) * debit, receive), delivered }
    : { sent, delivered: atLeast(delivered, valueOr(0n, sent) * receive, debit) }
}

/** Returns a total, or the quotient rounded up if that is more. */
function atLeast(total: string, dividend: bigint, divisor: bigint): string {
  const quotient = divisor === 0n ? 0n : (dividend + divisor - 1n) / divisor
  return quotient > valueOr(0n, total) ? quotient.toString() : total
}

/** Whether the totals are those of the last report. */
function isSame(payment: OutgoingPayment, { sent, delivered }: ReportedTotals): boolean {
  const last = reportedTotals(payment)
  return sent === last.sent && delivered === last.delivered
}

/** Whether the full amount has been sent or delivered. */
function isWhole(
  { debitAmount, receiveAmount }: OutgoingPayment,
  { sent, delivered }: ReportedTotals,
): boolean {
  return sent === debitAmount.value || delivered === receiveAmount.value
}

const notBegun = refused('payment_not_begun', 'the payment has not been begun')

function over({ state }: OutgoingPayment) {
  return refused('payment_over', `the payment has ${state}`)
}

function failed(failure?: string, publicReason?: string) {
  return {
    state: 'failed',
    ...(failure !== undefined && { failure }),
    ...(publicReason !== undefined && { publicReason }),
  } as const
}
