import { type Amount, valueOr } from '../amount.js'
import type { Budget } from '../budget/record.js'
import { type HeldAmounts, release } from '../budget/release.js'
import { type Changed, changed, type Refused } from '../decision.js'
import type { Instant } from '../instant.js'
import type {
  AccountLimitRefusal,
  ConditionsRefusal,
  GrantConditions,
  LimitsRefusal,
} from '../limits.js'
import { type JsonObject, retained, type Stored } from '../stored.js'
import {
  type AllOrNone,
  isUnderGrant,
  type Requester,
  requesterOf,
  type UnderGrant,
} from './authority.js'

/**
 * The record of an outgoing payment: `created → begun → completed | failed`. The host sends the payment; the
 * record contains what clients can read of it, and what it reserves in the budget of its grant.
 *
 * @see Open Payments OpenAPI, schema `outgoing-payment`
 */
export type OutgoingPayment = OutgoingPaymentFields & AllOrNone<UnderGrant>

/** The members of an outgoing payment, whatever allows it. */
export interface OutgoingPaymentFields extends Stored {
  readonly walletAddress: string
  /**
   * Ids of the other budgets that count it, for the limits that an owner has set; absent if there are none. While it
   * waits for its owner, the budget of the waiting payments of its grant instead of those of the account.
   */
  readonly limitBudgetIds?: readonly string[]
  /** Id of the quote that it was created from; the payment has the same id. */
  readonly quoteId?: string
  /** The short hash of the request, by which a repeat is recognized. */
  readonly requestHash: string
  /** URL of the incoming payment that is paid. */
  readonly receiver: string
  /** Wallet address of the receiver; absent if `pricing` did not name it. */
  readonly receiverWalletAddress?: string
  /** The maximum to debit. */
  readonly debitAmount: Amount
  /** The amount to deliver to the receiver. */
  readonly receiveAmount: Amount
  /** The value debited so far, in the asset of `debitAmount`. */
  readonly sent: string
  /** The value delivered so far, in the asset of `receiveAmount`. */
  readonly delivered: string
  readonly state: 'created' | 'begun' | 'completed' | 'failed'
  /** When its request arrived: the payment counts in the window of this instant. */
  readonly createdAt: Instant
  /** When this version was written, by the clock of the server that wrote it. Clients do not see it. */
  readonly updatedAt: Instant
  /** The host must begin the payment before this instant. Otherwise it fails and its reservation is released. */
  readonly holdUntil: Instant
  /** When it ended; absent until then. */
  readonly endedAt?: Instant
  /** The reason for the failure, as text from the host or the library. Clients do not see it. */
  readonly failure?: string
  /** The reason for the failure, as text that the host published to the client. */
  readonly publicReason?: string
  readonly metadata?: JsonObject
  /** Data of the host, such as about the card that its owner pays with. No client sees it, and no event contains it. */
  readonly data?: JsonObject
  /**
   * The part of which nobody knows whether it arrives, in the asset of `debitAmount`. While the payment is begun,
   * `sent` does not include it; once it has ended, `sent` does, until the doubt is decided.
   */
  readonly inDoubt?: {
    readonly amount: string
    readonly since: Instant
    readonly reason: string
    readonly decidedBy?: 'attempts'
  }
  /** What became of the part that was in doubt: the values by which `sent` and `delivered` are less than reported. */
  readonly decided?: {
    readonly amount: string
    readonly refunded: string
    readonly undelivered: string
  }
  /**
   * The host was asked about it before, without an answer, and a hold of that call can take effect until this instant.
   * The event of its end is not delivered earlier.
   */
  readonly lateHoldsUntil?: Instant
  /** Absent unless the host has required that the resource owner confirms the payment. */
  readonly confirmation?: Confirmation
}

/** The confirmation of one payment by the resource owner of its grant, or by the owner who ordered it. */
export interface Confirmation {
  /** URL of the host's page where the owner confirms. */
  readonly url: string
  /** The owner can confirm before this instant. */
  readonly until: Instant
  /** Who confirmed the payment, and when. Absent until then. */
  readonly given?: { readonly resourceOwner: string; readonly at: Instant }
  /** The owner's conditions for payments, if the grant is not in this store and has some. */
  readonly conditions?: GrantConditions
  /** The owner who ordered the payment, if the host has named one. */
  readonly resourceOwner?: string
  /** Whether the limits of the account count a payment that the owner ordered. The limits count every other payment. */
  readonly countsInAccountLimits?: true
}

/**
 * A payment about which the host's `mayPay` is asked, or which waits for its owner's confirmation:
 * `reserved → created | declined`. Its budget counts it and its amounts are fixed, but it is in no list of payments,
 * only in those of payments that wait for their owner, and clients do not find it. It is kept after it was declined, so
 * that repeats of its request get the same refusal.
 */
export type ReservedPayment = AllOrNone<UnderGrant> &
  Omit<OutgoingPaymentFields, 'state' | 'holdUntil'> & {
    readonly state: 'reserved' | 'declined'
    /**
     * The host is being asked until this instant. A repeat of the request may ask again afterwards. While the payment
     * waits for its owner, this is when the owner's time ends.
     */
    readonly askUntil: Instant
    /**
     * When nobody can hold funds for it any more, or the owner's time ends: a sweep declines it from then on, and
     * removes it once declined.
     */
    readonly dueAt: Instant
    /** Why it was declined. Absent while it is reserved. */
    readonly refusal?: DeclineReason
  }

/** The refusal of a repeat of the request for a declined payment. */
export type DeclineReason = Pick<Refused<DeclineRefusal>, 'refusal' | 'reason' | 'details'>

/**
 * Why a reserved payment is declined: by the host, by its owner, or because its grant has changed. Minor versions add
 * members: give a `switch` a `default`.
 */
export type DeclineRefusal =
  | 'funds_insufficient'
  | 'payment_not_allowed'
  | 'confirmation_declined'
  | 'confirmation_expired'
  | 'grant_ended'
  | LimitsRefusal
  | AccountLimitRefusal
  | ConditionsRefusal

/** The record of a payment: kind `outgoing-payment`. */
export type PaymentRecord = OutgoingPayment | ReservedPayment

/** How long outgoing payments wait for the host, and are kept. */
export interface OutgoingPaymentPolicy {
  /** How long the host can begin a payment after its creation, in milliseconds. */
  readonly holdMs: number
  /** How long the record is kept after its end, in milliseconds. */
  readonly retentionMs: number
}

/** What happened to an outgoing payment. Without `client` and `grantId`, the owner of the account ordered it. */
export type OutgoingPaymentEvent = Requester & {
  readonly type:
    | 'outgoing-payment.created'
    | 'outgoing-payment.begun'
    | 'outgoing-payment.sent'
    | 'outgoing-payment.completed'
    | 'outgoing-payment.failed'
    | 'outgoing-payment.declined'
  /** When it happened, by the clock of the server that recorded it. */
  readonly at: Instant
  readonly outgoingPaymentId: string
  readonly walletAddress: string
  /** URL of the incoming payment that is paid. */
  readonly receiver: string
  /** What the payment may debit in all, your fees included, in the asset of the account: what you hold. */
  readonly debitAmount: Amount
  /** What is to arrive at the receiver, in the receiver's asset. */
  readonly receiveAmount: Amount
  /** Total debited, after this event. */
  readonly sentAmount: Amount
  /** Total delivered, after this event. */
  readonly deliveredAmount: Amount
  /** Of `failed` alone: whether the host had begun the payment. If not, nothing was sent. */
  readonly begun?: boolean
}

export function hasEnded({ state }: PaymentRecord): boolean {
  return state === 'completed' || state === 'failed' || state === 'declined'
}

/** Whether the payment exists for clients and for the calls of the host. */
export function isCreated(payment: PaymentRecord): payment is OutgoingPayment {
  return payment.state !== 'reserved' && payment.state !== 'declined'
}

/**
 * Whether the payment has failed. A payment that was not begun in time has failed even before a sweep records it.
 *
 * @example
 * ```ts
 * import { hasFailed } from 'open-payments-server/core'
 *
 * hasFailed(outgoingPayment, outgoingPayment.holdUntil) // true, unless it has begun
 * ```
 */
export function hasFailed(
  { state, holdUntil }: Pick<OutgoingPayment, 'state' | 'holdUntil'>,
  now: Instant,
): boolean {
  return state === 'failed' || (state === 'created' && now >= holdUntil)
}

/**
 * Returns what a payment reserves in each of its budgets: its full amounts until it ends, and then the amounts actually
 * sent and delivered. The total of a budget is the sum over its payments. A payment that has ended and sent nothing
 * does not count as a payment.
 *
 * @example
 * ```ts
 * import { heldBy } from 'open-payments-server/core'
 *
 * const { debitAmount } = heldBy(outgoingPayment) // a bigint, in the asset of the account
 * ```
 */
export function heldBy(payment: PaymentRecord): HeldAmounts {
  const { sent, delivered, debitAmount, receiveAmount } = payment
  const ended = hasEnded(payment)
  return {
    debitAmount: valueOr(0n, ended ? sent : debitAmount.value),
    receiveAmount: valueOr(0n, ended ? delivered : receiveAmount.value),
    payments: ended && sent === '0' && delivered === '0' ? 0 : 1,
  }
}

export function budgetIdsOf(payment: PaymentRecord): readonly string[] {
  const { limitBudgetIds = [] } = payment
  return isUnderGrant(payment) ? [payment.budgetId, ...limitBudgetIds] : limitBudgetIds
}

/** Releases what a payment no longer reserves, in each of its budgets. Returns those that change. */
export function releasedBudgets(
  before: PaymentRecord,
  after: PaymentRecord,
  budgetOf: (id: string) => Budget | undefined,
): readonly Budget[] {
  const { commandId } = after
  return releaseFrom(budgetIdsOf(before), budgetOf, {
    payment: before,
    held: heldBy(before),
    holds: heldBy(after),
    commandId,
  })
}

const nothing: HeldAmounts = { debitAmount: 0n, receiveAmount: 0n, payments: 0 }

/**
 * Releases in these budgets what a payment no longer reserves there. Returns those that change.
 *
 * @param change `holds` is what it still reserves. Default: nothing.
 */
export function releaseFrom(
  budgetIds: readonly string[],
  budgetOf: (id: string) => Budget | undefined,
  change: {
    readonly payment: PaymentRecord
    readonly held: HeldAmounts
    readonly holds?: HeldAmounts
    readonly commandId: string
  },
): readonly Budget[] {
  const { payment, held, holds = nothing, commandId } = change
  return budgetIds.flatMap((id) => {
    const budget = budgetOf(id)
    return (budget && release(budget, held, holds, commandId, payment)) ?? []
  })
}

/** The total debited so far. */
export function sentAmount({
  sent,
  debitAmount,
}: Pick<PaymentRecord, 'sent' | 'debitAmount'>): Amount {
  return { ...debitAmount, value: sent }
}

/** Returns a payment as its creation left it, for a repeat of the request that created it. */
export function asCreated(payment: OutgoingPayment): OutgoingPayment {
  const {
    endedAt: _endedAt,
    failure: _failure,
    publicReason: _publicReason,
    ...ofPayment
  } = payment
  const { inDoubt: _inDoubt, decided: _decided, ...kept } = ofPayment
  return { ...kept, state: 'created', sent: '0', delivered: '0', updatedAt: payment.createdAt }
}

/**
 * Returns the next version of a payment. Every transition uses it to update version and retention. A payment in doubt
 * is kept until that is decided.
 */
export function nextPayment(
  payment: OutgoingPayment,
  changes: Partial<
    Pick<OutgoingPayment, 'state' | 'sent' | 'delivered' | 'failure' | 'publicReason' | 'inDoubt'>
  >,
  type: OutgoingPaymentEvent['type'],
  commandId: string,
  now: Instant,
  policy: OutgoingPaymentPolicy,
): Changed<OutgoingPayment, OutgoingPaymentEvent> {
  // A payment that has been begun waits for the host, so it has no due time until it ends.
  const { dueAt: _dueAt, inDoubt: _inDoubt, ...rest } = payment
  const version = payment.version + 1
  const moved: OutgoingPayment = { ...rest, ...changes, version, commandId, updatedAt: now }
  const isOver = moved.inDoubt === undefined && retained(retainPaymentUntil(now, policy))
  const next = hasEnded(moved) ? { ...moved, endedAt: now, ...isOver } : moved
  const event = outgoingPaymentEvent(type, next, now)
  const isFailure = type === 'outgoing-payment.failed'
  return changed(next, isFailure ? { ...event, begun: payment.state === 'begun' } : event)
}

/** Returns until when a payment is kept: for `retentionMs` after it ends, and its doubt is decided. */
export function retainPaymentUntil(
  endedAt: Instant,
  { retentionMs }: OutgoingPaymentPolicy,
): Instant {
  return endedAt + retentionMs
}

export function outgoingPaymentEvent(
  type: OutgoingPaymentEvent['type'],
  payment: PaymentRecord,
  at: Instant,
): OutgoingPaymentEvent {
  const { id: outgoingPaymentId, walletAddress, receiver } = payment
  const { debitAmount, receiveAmount, delivered } = payment
  return {
    type,
    at,
    outgoingPaymentId,
    walletAddress,
    ...requesterOf(payment),
    receiver,
    debitAmount,
    receiveAmount,
    sentAmount: sentAmount(payment),
    deliveredAmount: { ...receiveAmount, value: delivered },
  }
}
