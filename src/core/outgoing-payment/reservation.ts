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
import { type ListEntry, retained } from '../stored.js'
import { isSameClient, type MayHaveClient, type Requester } from './authority.js'
import { confirmationExpired, confirmationRequired, waitsForOwner } from './confirmation.js'
import {
  type DeclineReason,
  type DeclineRefusal,
  type OutgoingPayment,
  type OutgoingPaymentEvent,
  type OutgoingPaymentFields,
  type OutgoingPaymentPolicy,
  outgoingPaymentEvent,
  type PaymentRecord,
  type ReservedPayment,
} from './record.js'

/** How long the host may take to decide about a payment. Durations are in milliseconds. */
export interface ReservationPolicy {
  /** How long one call of the host is waited for. */
  readonly decideMs: number
  /** How long after that a hold of the call may still take effect, measured by any clock. */
  readonly lateMs: number
}

/**
 * Decides about a request whose payment may have been reserved, declined or created by an earlier one. A payment about
 * which the host is being asked is unchanged and reserved: the request waits for that decision. If that call was lost
 * or has failed, the request asks again, with a token of the same grant. While the payment waits for its owner, the
 * request is refused as the first one was.
 *
 * @returns `undefined` if there is no payment, or another client or the owner requested it.
 */
export function decideRepeat(
  found: PaymentRecord | undefined,
  request: Requester & Pick<OutgoingPaymentFields, 'requestHash' | 'commandId'>,
  now: Instant,
  policy: ReservationPolicy,
):
  | Changed<ReservedPayment, OutgoingPaymentEvent>
  | Unchanged<PaymentRecord>
  | Refused<'request_differs' | 'confirmation_required' | DeclineRefusal>
  | undefined {
  const earlier = repeated(found, request)
  if (!earlier?.ok) return earlier
  const payment = earlier.value
  if (payment.state === 'declined') return declinedFor(payment)
  if (payment.state !== 'reserved' || payment.commandId === request.commandId) {
    return unchanged(payment)
  }
  if (waitsForOwner(payment) && now < payment.confirmation.until) {
    return confirmationRequired(payment.confirmation)
  }
  // The owner has no grant: then both have none, because both have the same client.
  return mayAskAgain(payment, now) && payment.grantId === request.grantId
    ? changed(askAgain(payment, request.commandId, now, policy))
    : unchanged(payment)
}

/**
 * Checks whether a request repeats the one that created a payment. A repeat gets the same payment, even if the
 * quote has expired, the window has ended or the budget is spent.
 *
 * @returns `undefined` if there is no payment, or another client or the owner created it.
 */
export function repeated(
  payment: PaymentRecord | undefined,
  request: MayHaveClient & Pick<OutgoingPaymentFields, 'requestHash'>,
): Result<PaymentRecord, Refused<'request_differs'>> | undefined {
  // The owner has no client, and neither has a payment that does not exist.
  if (payment === undefined || !isSameClient(payment, request)) return undefined
  return payment.requestHash === request.requestHash
    ? ok(payment)
    : refused('request_differs', 'this quote or key was used for another payment')
}

/** Whether no call of the host about a payment is in progress, and it is not too late for another one. */
export function mayAskAgain({ askUntil, dueAt }: ReservedPayment, now: Instant): boolean {
  return now >= askUntil && now < dueAt
}

/** Returns the payment if it was reserved by another command, whose request is asking the host about it. */
export function reservedByOther(
  payment: PaymentRecord,
  commandId: string,
): ReservedPayment | undefined {
  return payment.state === 'reserved' && payment.commandId !== commandId ? payment : undefined
}

export function askTimes(now: Instant, { decideMs, lateMs }: ReservationPolicy) {
  const askUntil = now + decideMs
  return { askUntil, dueAt: askUntil + lateMs }
}

/**
 * Asks the host again, after a call that was lost or failed. Its hold may still take effect, whatever becomes of the
 * payment.
 */
export function askAgain(
  payment: ReservedPayment,
  commandId: string,
  now: Instant,
  policy: ReservationPolicy,
): ReservedPayment {
  const version = payment.version + 1
  const next = { ...payment, version, commandId, updatedAt: now, ...askTimes(now, policy) }
  return { ...next, lateHoldsUntil: payment.dueAt }
}

/** Ends a call of the host that failed, so that a repeat of the request can ask again at once. */
export function endAsk(payment: ReservedPayment, commandId: string, now: Instant): ReservedPayment {
  return { ...payment, version: payment.version + 1, commandId, updatedAt: now, askUntil: now }
}

/** Creates a reserved payment that the host allows. What its owner has confirmed stays in the record. */
export function createReserved(
  payment: ReservedPayment,
  { commandId, lists }: { readonly commandId: string; readonly lists: readonly ListEntry[] },
  now: Instant,
  { holdMs }: OutgoingPaymentPolicy,
): Changed<OutgoingPayment, OutgoingPaymentEvent> {
  const { askUntil: _askUntil, refusal: _refusal, ...kept } = payment
  const version = payment.version + 1
  const holdUntil = now + holdMs
  const times = { updatedAt: now, holdUntil, dueAt: holdUntil }
  const next: OutgoingPayment = { ...kept, version, commandId, state: 'created', lists, ...times }
  return changed(next, outgoingPaymentEvent('outgoing-payment.created', next, now))
}

/**
 * Ends a reserved payment that is not created. It is kept as long as any other that has ended: a request with its key
 * that came later would be about another payment of the same id, of which the host may know the end.
 */
export function declinePayment(
  payment: ReservedPayment,
  { refusal, reason, details }: DeclineReason,
  commandId: string,
  now: Instant,
  { retentionMs }: OutgoingPaymentPolicy,
): Changed<ReservedPayment, OutgoingPaymentEvent> {
  const { lists: _waiting, ...kept } = payment
  const next: ReservedPayment = {
    ...kept,
    version: payment.version + 1,
    commandId,
    state: 'declined',
    refusal: { refusal, reason, ...(details !== undefined && { details }) },
    updatedAt: now,
    endedAt: now,
    ...retained(now + retentionMs),
  }
  return changed(next, outgoingPaymentEvent('outgoing-payment.declined', next, now))
}

export function declinedFor(payment: ReservedPayment): Refused<DeclineRefusal> {
  const { refusal, reason, details } = payment.refusal ?? undecided(payment)
  return { ...refused(refusal, reason), ...(details !== undefined && { details }) }
}

export function undecided(payment: ReservedPayment): Refused<DeclineRefusal> {
  return waitsForOwner(payment)
    ? confirmationExpired
    : refused('payment_not_allowed', 'the host did not decide in time')
}
