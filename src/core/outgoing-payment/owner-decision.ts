import { type Amount, sameAmount } from '../amount.js'
import type { Budget, BudgetPolicy, CountedLimit } from '../budget/record.js'
import { chargeTo } from '../budget.js'
import { ok, type Refused, type Result, refused, type Unchanged, unchanged } from '../decision.js'
import type { Instant } from '../instant.js'
import type { AccountLimitRefusal } from '../limits.js'
import {
  confirmationExpired,
  type Moved,
  type WaitingPayment,
  waitingLimitsOf,
  waitsForOwner,
} from './confirmation.js'
import {
  type DeclineRefusal,
  heldBy,
  type PaymentRecord,
  type ReservedPayment,
  releaseFrom,
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
  /** What the payer is debited in all, the wallet's fees included, in the asset of the account. */
  readonly debitAmount: Amount
  /** What arrives at the receiver, in the receiver's asset. */
  readonly receiveAmount: Amount
}

export interface ConfirmPayment {
  readonly commandId: string
  readonly resourceOwner: string
  readonly shown: ShownPayment
  /** The prefix of the ids of budgets. */
  readonly namespace: string
  /** The limits of the account at the instant of the confirmation, if they count the payment. */
  readonly limits: readonly CountedLimit[]
}

/**
 * Why the owner's decision has no effect. A payment that exceeds a limit of the account waits further. Minor versions
 * add members: give a `switch` a `default`.
 */
export type ConfirmRefusal =
  | 'payment_unknown'
  | 'payment_differs'
  | 'confirmation_expired'
  | AccountLimitRefusal

/** The payment, about which the host is asked if it is still reserved, or why the confirmation has no effect. */
export type ConfirmDecision =
  | ({ readonly ok: true; readonly outcome: 'changed' } & Moved)
  | Unchanged<PaymentRecord>
  | Refused<ConfirmRefusal>

/** How long the host may take to decide, and budgets are kept. */
export interface ConfirmationPolicy {
  readonly reservations: ReservationPolicy
  readonly budgets: BudgetPolicy
}

/** Why the owner cannot decline a payment. Minor versions add members: give a `switch` a `default`. */
export type DeclineByOwnerRefusal = 'payment_unknown' | 'payment_confirmed' | DeclineRefusal

export const unknownConfirmation = refused(
  'payment_unknown',
  'no payment with this id waits for its owner',
)

/**
 * Decides about the confirmation of a payment by its owner. The payment stays reserved: the host is asked again, and
 * may now hold its funds. The limits of the account count it from now on, in the windows of this instant. A repeat of
 * the confirmation asks again if that call was lost or has failed, and gets the payment or the refusal once there is
 * one.
 *
 * @param budgetOf returns a budget that counts the payment.
 */
export function confirmByOwner(
  found: PaymentRecord | undefined,
  { commandId, resourceOwner, shown, namespace, limits }: ConfirmPayment,
  budgetOf: (id: string) => Budget | undefined,
  now: Instant,
  { reservations, budgets: policy }: ConfirmationPolicy,
): ConfirmDecision {
  if (found?.confirmation === undefined) return unknownConfirmation
  if (!isShown(found, shown)) {
    return refused('payment_differs', 'the payment is not the one that was shown')
  }
  if (found.state !== 'reserved' || found.commandId === commandId) return unchanged(found)
  const { confirmation, version } = found
  if (!waitsForOwner(found)) {
    return mayAskAgain(found, now)
      ? moved(askAgain(found, commandId, now, reservations))
      : unchanged(found)
  }
  if (now >= confirmation.until) return confirmationExpired
  const charged = chargeTo(limits, found, { commandId }, now, policy)
  if (!charged.ok) {
    return refused(
      'account_limit_exceeded',
      'a limit of the account does not allow the payment now',
    )
  }
  const { limitBudgetIds = [], ...kept } = found
  const waiting = waitingLimitsOf(found, namespace).map(({ budgetId }) => budgetId)
  const counting = [
    ...limitBudgetIds.filter((id) => !waiting.includes(id)),
    ...charged.value.map(({ id }) => id),
  ]
  const next = {
    ...kept,
    version: version + 1,
    commandId,
    ...(counting.length > 0 && { limitBudgetIds: counting }),
    updatedAt: now,
    ...askTimes(now, reservations),
    confirmation: { ...confirmation, given: { resourceOwner, at: now } },
  }
  const freed = releaseFrom(waiting, budgetOf, {
    payment: found,
    held: heldBy(found),
    commandId,
  })
  return moved(next, [...freed, ...charged.value])
}

function moved(record: ReservedPayment, budgets: readonly Budget[] = []) {
  return { ok: true, outcome: 'changed', record, budgets } as const
}

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
