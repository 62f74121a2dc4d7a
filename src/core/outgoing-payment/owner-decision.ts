import { type Amount, sameAmount } from '../amount.js'
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
import { confirmationExpired, type WaitingPayment, waitsForOwner } from './confirmation.js'
import type {
  DeclineRefusal,
  OutgoingPaymentEvent,
  PaymentRecord,
  ReservedPayment,
} from './record.js'
import {
  askAgain,
  askTimes,
  declinedFor,
  mayAskAgain,
  type ReservationPolicy,
} from './reservation.js'

/** What the owner has seen of a payment: what is paid, and to whom. */
export interface ShownPayment {
  /** URL of the incoming payment that is paid. */
  readonly receiver: string
  readonly debitAmount: Amount
  readonly receiveAmount: Amount
}

/** The owner confirms one payment, as it was shown. */
export interface ConfirmPayment {
  readonly commandId: string
  readonly resourceOwner: string
  readonly shown: ShownPayment
}

/** Why the owner's decision has no effect. */
export type ConfirmRefusal = 'payment_unknown' | 'payment_differs' | 'confirmation_expired'

/** The payment, about which the host is asked if it is still reserved, or why the confirmation has no effect. */
export type ConfirmDecision =
  | Changed<ReservedPayment, OutgoingPaymentEvent>
  | Unchanged<PaymentRecord>
  | Refused<ConfirmRefusal>

/** Why the owner cannot decline a payment. */
export type DeclineByOwnerRefusal = 'payment_unknown' | 'payment_confirmed' | DeclineRefusal

export const unknownConfirmation = refused(
  'payment_unknown',
  'no payment with this id waits for its owner',
)

/**
 * Decides about the confirmation of a payment by its owner. The payment stays reserved: the host is asked again, and
 * may now hold its funds. A repeat of the confirmation asks again if that call was lost or has failed, and gets the
 * payment or the refusal once there is one.
 */
export function confirmByOwner(
  found: PaymentRecord | undefined,
  { commandId, resourceOwner, shown }: ConfirmPayment,
  now: Instant,
  policy: ReservationPolicy,
): ConfirmDecision {
  if (found?.confirmation === undefined) return unknownConfirmation
  if (!isShown(found, shown)) {
    return refused('payment_differs', 'the payment is not the one that was shown')
  }
  if (found.state !== 'reserved' || found.commandId === commandId) return unchanged(found)
  const { confirmation, version } = found
  if (!waitsForOwner(found)) {
    return mayAskAgain(found, now)
      ? changed(askAgain(found, commandId, now, policy))
      : unchanged(found)
  }
  if (now >= confirmation.until) return confirmationExpired
  return changed({
    ...found,
    version: version + 1,
    commandId,
    updatedAt: now,
    ...askTimes(now, policy),
    confirmation: { ...confirmation, given: { resourceOwner, at: now } },
  })
}

/** Returns the payment if its owner can decline it, or the reason why not. */
export function declinableByOwner(
  payment: PaymentRecord,
  now: Instant,
): Result<WaitingPayment, Refused<DeclineByOwnerRefusal>> {
  if (payment.confirmation === undefined) return unknownConfirmation
  if (payment.state === 'declined') return declinedFor(payment)
  if (!waitsForOwner(payment)) {
    return refused('payment_confirmed', 'the owner has confirmed the payment')
  }
  return now < payment.confirmation.until ? ok(payment) : confirmationExpired
}

function isShown(payment: PaymentRecord, shown: ShownPayment): boolean {
  return (
    payment.receiver === shown.receiver &&
    sameAmount(payment.debitAmount, shown.debitAmount) &&
    sameAmount(payment.receiveAmount, shown.receiveAmount)
  )
}
