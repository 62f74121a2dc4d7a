import { type Refused, refused } from '../decision.js'
import { formatInstant, type Instant } from '../instant.js'
import type { Confirmation, PaymentRecord, ReservedPayment } from './record.js'

/** The longest time that an owner has to confirm a payment, in milliseconds: its budget counts it meanwhile. */
export const confirmationMaxMs = 86_400_000

/** A reserved payment that its owner has to confirm. The host is not asked about it meanwhile. */
export interface WaitingPayment extends ReservedPayment {
  readonly confirmation: Confirmation
}

/** Whether a payment waits for its owner, or its owner's time has ended. */
export function waitsForOwner(payment: PaymentRecord): payment is WaitingPayment {
  const { state, confirmation } = payment
  return state === 'reserved' && confirmation !== undefined && confirmation.given === undefined
}

/** Whether a payment waits for its owner under another grant, which may have ended since. */
export function waitsUnderOther(
  payment: PaymentRecord,
  grantId: string,
): payment is WaitingPayment {
  return waitsForOwner(payment) && payment.grantId !== grantId
}

/** Lets a payment wait for its owner, after the host has answered that the owner must confirm it. */
export function awaitConfirmation(
  payment: ReservedPayment,
  confirmation: Confirmation,
  commandId: string,
  now: Instant,
): WaitingPayment {
  const { until } = confirmation
  const version = payment.version + 1
  const times = { updatedAt: now, askUntil: until, dueAt: until }
  return { ...payment, version, commandId, confirmation, ...times }
}

/** The refusal of requests for a payment that waits for its owner. The client shows the owner the URL. */
export function confirmationRequired({
  url,
  until,
}: Confirmation): Refused<'confirmation_required'> {
  const required = refused('confirmation_required', 'the owner has not confirmed the payment')
  return { ...required, details: { url, until: formatInstant(until) } }
}

export const confirmationExpired = refused(
  'confirmation_expired',
  'the owner did not confirm the payment in time',
)

export const confirmationDeclined = refused(
  'confirmation_declined',
  'the owner declined the payment',
)
