import { type Amount, parseValue } from '../amount.js'
import type { HeldAmounts } from '../budget.js'
import { type Changed, changed, type Instant, type JsonObject, type Stored } from '../decision.js'

/**
 * An outgoing payment as it is stored: `created → begun → completed | failed`. The host sends it; this is
 * what clients may know of it, and what it holds of its grant's budget.
 *
 * @see Open Payments OpenAPI, schema `outgoing-payment`
 */
export interface OutgoingPayment extends Stored {
  readonly walletAddress: string
  /** The client instance that created it and may read it: see `clientId`. */
  readonly client: string
  readonly grantId: string
  /** The granted item that it was charged to. */
  readonly itemId: string
  /** Id of the budget that counts it: of the window in which it was created. */
  readonly budgetId: string
  /** Id of the quote that it was created by; it is the payment's own id too. */
  readonly quoteId?: string
  /** SHA-256 of what was asked for: a repeat has to ask for the same. */
  readonly requestHash: string
  /** URL of the incoming payment that is paid. */
  readonly receiver: string
  /** The most that may be debited. */
  readonly debitAmount: Amount
  /** What the receiver should get. */
  readonly receiveAmount: Amount
  /** The value debited so far, in the asset of `debitAmount`. */
  readonly sent: string
  /** The value delivered so far, in the asset of `receiveAmount`. */
  readonly delivered: string
  readonly state: 'created' | 'begun' | 'completed' | 'failed'
  readonly createdAt: Instant
  /** Until then the host may begin to send it; then it fails, and gives back what it holds. */
  readonly holdUntil: Instant
  readonly endedAt?: Instant
  /** Why it failed, in the host's own words or ours; clients do not see it. */
  readonly failure?: string
  readonly metadata?: JsonObject
}

export interface OutgoingPaymentPolicy {
  /** How long a payment waits to be begun, in milliseconds. */
  readonly holdMs: number
  /** How long the record is kept after its end, in milliseconds. */
  readonly retentionMs: number
}

/** What happened to an outgoing payment. */
export interface OutgoingPaymentEvent {
  readonly type:
    | 'outgoing-payment.created'
    | 'outgoing-payment.begun'
    | 'outgoing-payment.settled'
    | 'outgoing-payment.completed'
    | 'outgoing-payment.failed'
  readonly at: Instant
  readonly outgoingPaymentId: string
  readonly walletAddress: string
  readonly client: string
  readonly grantId: string
  /** URL of the incoming payment that is paid. */
  readonly receiver: string
  readonly debitAmount: Amount
  readonly receiveAmount: Amount
  /** Total debited, after this event. */
  readonly sentAmount: Amount
  /** Total delivered, after this event. */
  readonly deliveredAmount: Amount
}

/** Whether nothing more can happen to the payment. */
export function isOver({ state }: OutgoingPayment): boolean {
  return state === 'completed' || state === 'failed'
}

/** Whether the payment has failed, recorded or not: what was not begun in time can never be sent. */
export function hasFailed({ state, holdUntil }: OutgoingPayment, now: Instant): boolean {
  return state === 'failed' || (state === 'created' && now >= holdUntil)
}

/**
 * What a payment holds of its budget, in units of its amounts: all of them as long as it may be sent, and once
 * it has ended what was really sent. What a budget has spent is the sum of what its payments hold.
 */
export function heldBy(payment: OutgoingPayment): HeldAmounts {
  const { sent, delivered, debitAmount, receiveAmount } = payment
  const ended = isOver(payment)
  return {
    debitAmount: parseValue(ended ? sent : debitAmount.value) ?? 0n,
    receiveAmount: parseValue(ended ? delivered : receiveAmount.value) ?? 0n,
  }
}

/** The total debited so far. */
export function sentAmount({ sent, debitAmount }: OutgoingPayment): Amount {
  return { ...debitAmount, value: sent }
}

/** The payment's next version: every transition goes through here, so that none forgets the bookkeeping. */
export function nextPayment(
  payment: OutgoingPayment,
  changes: Partial<Pick<OutgoingPayment, 'state' | 'sent' | 'delivered' | 'failure'>>,
  type: OutgoingPaymentEvent['type'],
  commandId: string,
  now: Instant,
  { retentionMs }: OutgoingPaymentPolicy,
): Changed<OutgoingPayment, OutgoingPaymentEvent> {
  // Begun, a payment waits for the host alone; nothing is due of it until it has ended.
  const { dueAt: _dueAt, ...rest } = payment
  const moved: OutgoingPayment = { ...rest, ...changes, version: payment.version + 1, commandId }
  const retainUntil = now + retentionMs
  const next = isOver(moved) ? { ...moved, endedAt: now, dueAt: retainUntil, retainUntil } : moved
  return changed(next, outgoingPaymentEvent(type, next, now))
}

export function outgoingPaymentEvent(
  type: OutgoingPaymentEvent['type'],
  payment: OutgoingPayment,
  at: Instant,
): OutgoingPaymentEvent {
  const { id: outgoingPaymentId, walletAddress, client, grantId, receiver } = payment
  const { debitAmount, receiveAmount, delivered } = payment
  return {
    type,
    at,
    outgoingPaymentId,
    walletAddress,
    client,
    grantId,
    receiver,
    debitAmount,
    receiveAmount,
    sentAmount: sentAmount(payment),
    deliveredAmount: { ...receiveAmount, value: delivered },
  }
}
