import {
  type Amount,
  type Asset,
  amountValueMax,
  parseValue,
  sameAmount,
  sameAsset,
} from './amount.js'
import {
  type Changed,
  changed,
  type Refused,
  refused,
  type Unchanged,
  unchanged,
} from './decision.js'
import { isCounted, type TransferRecord } from './incoming-payment/transfer.js'
import type { Instant } from './instant.js'
import { refusedPublicly } from './public-reasons.js'
import { type JsonObject, retained, type Stored } from './stored.js'

/**
 * The record of an incoming payment. It does not contain the payment methods, which are derived from its id on
 * each read, so the store contains no secrets.
 *
 * @see Open Payments OpenAPI, schema `incoming-payment`
 */
export interface IncomingPayment extends Stored {
  readonly walletAddress: string
  /** The client that created it and may read it: see `clientId`. Absent if the host created it. */
  readonly client?: string
  /** The asset of the wallet address. */
  readonly asset: Asset
  /** The amount to receive; absent if the payment has no target amount. */
  readonly incomingAmount?: Amount
  /** The value received so far, in units of `asset`. */
  readonly received: string
  readonly completed: boolean
  readonly createdAt: Instant
  /** When this version was written, by the clock of the server that wrote it. Clients do not see it. */
  readonly updatedAt: Instant
  /** The last instant at which it accepts funds. */
  readonly expiresAt: Instant
  /** Until when the record is kept if the payment receives funds. Before it does, `retainUntil` can be earlier. */
  readonly paidRetainUntil: Instant
  /**
   * Set when the event of its expiry is recorded. The payment then accepts no funds, even on a server whose clock is
   * before `expiresAt`. Until then, whether it accepts funds depends only on `expiresAt`.
   */
  readonly expiryRecorded?: true
  /** Set if the host cancelled the payment. `expiresAt` is then when it did, and the expiry is recorded. */
  readonly cancellation?: Cancellation
  readonly metadata?: JsonObject
}

/** The end of an incoming payment before its time, by the host. */
export interface Cancellation {
  /** The reason of the host. Clients do not see it. */
  readonly reason?: string
}

/** What happened to an incoming payment. */
export type IncomingPaymentEvent = IncomingPaymentChanged | IncomingPaymentReceived

/** The payment was created, or ended. */
export interface IncomingPaymentChanged extends IncomingPaymentEventMembers {
  readonly type:
    | 'incoming-payment.created'
    | 'incoming-payment.completed'
    | 'incoming-payment.expired'
  /** Of `expired` alone: true if the host cancelled the payment before its expiry. */
  readonly cancelled?: true
}

/** The payment accepted funds. */
export interface IncomingPaymentReceived extends IncomingPaymentEventMembers {
  readonly type: 'incoming-payment.received'
  /** The host's id of the transfer, as passed to `receive`. */
  readonly transferId: string
  /** What this transfer added to `receivedAmount`. */
  readonly amount: Amount
}

/** What every event of an incoming payment says. */
export interface IncomingPaymentEventMembers {
  /** When it happened, by the clock of the server that recorded it. */
  readonly at: Instant
  readonly incomingPaymentId: string
  readonly walletAddress: string
  /** The client that created the payment. Absent if the host created it. */
  readonly client?: string
  /** Total received, after this event. */
  readonly receivedAmount: Amount
  /** The amount to receive, in the asset of the wallet address; absent if any amount is accepted. */
  readonly incomingAmount?: Amount
}

/** How long incoming payments live, and are kept. */
export interface IncomingPaymentPolicy {
  /** Lifetime of a payment whose client specifies no `expiresAt`, in milliseconds. */
  readonly expiryDefaultMs: number
  /** The latest accepted `expiresAt`, in milliseconds from now. */
  readonly expiryMaxMs: number
  /** How long a payment that received funds is kept after its expiry, in milliseconds. */
  readonly retentionMs: number
  /** How long a payment that received nothing is kept after its expiry, in milliseconds. */
  readonly unpaidRetentionMs: number
}

/** The incoming payment to create. */
export interface CreateIncomingPayment {
  readonly commandId: string
  readonly id: string
  readonly walletAddress: string
  /** The asset of the wallet address. */
  readonly asset: Asset
  /** Absent if the host creates the payment. */
  readonly client?: string
  /** The amount to receive: positive, and in `asset`. Default: any amount is accepted. */
  readonly incomingAmount?: Amount
  /** In the future, by at most `expiryMaxMs`. Default: after `expiryDefaultMs`. */
  readonly expiresAt?: Instant
  readonly metadata?: JsonObject
  /**
   * The lists of the store that contain the payment, such as that of its wallet address; the lists' names are yours.
   */
  readonly lists: NonNullable<Stored['lists']>
}

/** Why an incoming payment cannot be created as requested. Minor versions add members: give a `switch` a `default`. */
export type CreateRefusal = 'amount_invalid' | 'expiry_invalid'

/**
 * Creates an incoming payment.
 *
 * @returns the record to write, with its event, or a refusal: `amount_invalid` for an amount in another asset, or one
 *   that is not positive; `expiry_invalid` for an `expiresAt` that is not in the future, or too far in it.
 *
 * @example
 * ```ts
 * import { createIncomingPayment } from 'open-payments-server/core'
 *
 * const week = 7 * 86_400_000
 * const created = createIncomingPayment(
 *   {
 *     commandId: 'command-1',
 *     id: 'wallet01payment-1',
 *     walletAddress: 'https://wallet.example/alice',
 *     asset: { assetCode: 'USD', assetScale: 2 },
 *     incomingAmount: { value: '2500', assetCode: 'USD', assetScale: 2 },
 *     lists: [],
 *   },
 *   Date.now(),
 *   { expiryDefaultMs: week, expiryMaxMs: week, retentionMs: week, unpaidRetentionMs: week },
 * )
 * console.log(created.ok ? created.record : created.reason)
 * ```
 */
export function createIncomingPayment(
  command: CreateIncomingPayment,
  now: Instant,
  policy: IncomingPaymentPolicy,
): Changed<IncomingPayment, IncomingPaymentEvent> | Refused<CreateRefusal> {
  const { incomingAmount, expiresAt = now + policy.expiryDefaultMs, ...rest } = command
  if (incomingAmount !== undefined) {
    if (!sameAsset(incomingAmount, command.asset)) {
      return refusedPublicly(
        'amount_invalid',
        'incomingAmount',
        'must be in the asset of the wallet address',
      )
    }
    const value = parseValue(incomingAmount.value)
    if (value === undefined || value === 0n) {
      return refusedPublicly('amount_invalid', 'incomingAmount', 'must be positive')
    }
  }
  if (!Number.isSafeInteger(expiresAt))
    return refused('expiry_invalid', 'expiresAt must be an integer')
  if (expiresAt <= now) {
    return refusedPublicly('expiry_invalid', 'expiresAt', 'must be in the future')
  }
  if (expiresAt > now + policy.expiryMaxMs) {
    return refusedPublicly('expiry_invalid', 'expiresAt', 'must be earlier')
  }
  // In Node 20, a literal that begins with a spread takes 1 µs for each member that the spread object lacks.
  const payment: IncomingPayment = {
    version: 1,
    ...rest,
    received: '0',
    completed: false,
    createdAt: now,
    updatedAt: now,
    expiresAt,
    dueAt: expiresAt + 1,
    ...retainPaymentUntil(expiresAt, policy),
    ...(incomingAmount !== undefined && { incomingAmount }),
  }
  return changed(payment, paymentEvent('incoming-payment.created', payment, now))
}

/**
 * Returns until when a payment is kept: longer if it receives funds. Both periods begin at its expiry, even if it
 * completes earlier.
 */
function retainPaymentUntil(
  expiresAt: Instant,
  { unpaidRetentionMs, retentionMs }: IncomingPaymentPolicy,
) {
  return { retainUntil: expiresAt + unpaidRetentionMs, paidRetainUntil: expiresAt + retentionMs }
}

/** The host reports funds that arrived for the payment. */
export interface ReceiveFunds {
  readonly type: 'receive'
  readonly commandId: string
  /** The id of the record by which the transfer counts once. */
  readonly recordId: string
  /** The host's id of the transfer, for the event. */
  readonly transferId: string
  /** What arrived, in the asset of the wallet address: positive. */
  readonly amount: Amount
  /** Whether to refuse an amount above what is left of `incomingAmount`. Default: all that has arrived is counted. */
  readonly refuseExcess?: boolean
  /** If its commit is decided later, the transfer is closed instead. Default: it may be counted at any time. */
  readonly notAfter?: Instant
  /** When this attempt to commit is decided, which `notAfter` is compared with. Default: the time of the command. */
  readonly decidedAt?: Instant
  /** The record with this id, if the transfer has been counted or closed. */
  readonly recorded?: TransferRecord | undefined
}

/** The client or the host ends the payment, which then accepts no more funds. */
export interface CompleteIncomingPayment {
  readonly type: 'complete'
  readonly commandId: string
}

/** Records the expiry of a payment and emits its event. */
export interface ExpireIncomingPayment {
  readonly type: 'expire'
  readonly commandId: string
}

/** The host ends the payment, which then has expired for its clients. */
export interface CancelIncomingPayment extends Cancellation {
  readonly type: 'cancel'
  readonly commandId: string
}

/** A command to an incoming payment. */
export type IncomingPaymentCommand =
  | ReceiveFunds
  | CompleteIncomingPayment
  | ExpireIncomingPayment
  | CancelIncomingPayment

/** Why funds that arrived are not counted. Minor versions add members: give a `switch` a `default`. */
export type ReceiveRefusal =
  | 'transfer_closed'
  | 'transfer_mismatch'
  | 'payment_completed'
  | 'payment_expired'
  | 'amount_invalid'
  | 'incoming_amount_exceeded'

/** The refusals of each command. Minor versions add members: give a `switch` a `default`. */
export interface IncomingPaymentRefusals {
  readonly receive: ReceiveRefusal
  readonly complete: 'payment_expired'
  readonly expire: 'payment_open'
  readonly cancel: 'payment_completed' | 'payment_expired'
}

/** What became of a command to an incoming payment, with the refusals of its type. */
export type IncomingPaymentDecision<Type extends keyof IncomingPaymentRefusals> =
  | Changed<IncomingPayment, IncomingPaymentEvent>
  | Unchanged<IncomingPayment>
  | Refused<IncomingPaymentRefusals[Type]>

/**
 * The state machine of an incoming payment. Pure and total: a command whose id is on the record changes nothing.
 *
 * - `receive`: a transfer that has been counted gives the same result again, even after completion or expiry. A
 *   transfer that exceeds `incomingAmount` is accepted in full and completes the payment. Transfers after completion or
 *   after `expiresAt` are refused. A transfer that would be counted after its `notAfter` is refused with
 *   `transfer_closed`: commit `closedTransfer` with this result, so that no earlier attempt can count it any more.
 * - `complete`: a payment that has not received its `incomingAmount`, or has none, accepts no more funds. An expired
 *   payment cannot be completed: it has ended, and would have two final events.
 * - `expire`: records once that a payment has expired. Clients see no difference: a payment accepts no funds after
 *   `expiresAt` even if this has not run. A completed payment does not expire.
 * - `cancel`: an open payment expires at once, because a client that reads `completed` may take it for paid. What it
 *   has received stays counted. A payment that has completed or expired has ended, and is refused; a cancelled one is
 *   unchanged, with its first reason.
 *
 * @example
 * ```ts
 * import { decideIncomingPayment } from 'open-payments-server/core'
 *
 * const amount = { value: '100', assetCode: 'USD', assetScale: 2 }
 * const ids = { commandId: 'command-2', recordId: 'wallet01hash-1', transferId: 'rail-1' }
 * const command = { type: 'receive', ...ids, amount } as const
 * const decided = decideIncomingPayment<'receive'>(incomingPayment, command, Date.now())
 * console.log(decided.ok ? decided.record.received : decided.reason)
 * ```
 */
export function decideIncomingPayment<Type extends keyof IncomingPaymentRefusals>(
  payment: IncomingPayment,
  command: Extract<IncomingPaymentCommand, { readonly type: Type }>,
  now: Instant,
): IncomingPaymentDecision<Type>
export function decideIncomingPayment(
  payment: IncomingPayment,
  command: IncomingPaymentCommand,
  now: Instant,
): IncomingPaymentDecision<keyof IncomingPaymentRefusals> {
  if (payment.commandId === command.commandId) return unchanged(payment)
  switch (command.type) {
    case 'receive':
      return receive(payment, command, now)
    case 'complete':
      return complete(payment, command, now)
    case 'expire':
      return expire(payment, command, now)
    case 'cancel':
      return cancel(payment, command, now)
  }
}

function receive(
  payment: IncomingPayment,
  { commandId, transferId, amount, refuseExcess, notAfter, decidedAt, recorded }: ReceiveFunds,
  now: Instant,
): IncomingPaymentDecision<'receive'> {
  if (recorded !== undefined) {
    if (!isCounted(recorded)) return refused('transfer_closed', 'the transfer has been closed')
    return recorded.paymentId === payment.id && sameAmount(recorded.amount, amount)
      ? unchanged(payment)
      : refused('transfer_mismatch', 'the transfer id was used for another payment or amount')
  }
  const value = parseValue(amount.value)
  if (value === undefined || value === 0n || !sameAsset(amount, payment.asset)) {
    return refused(
      'amount_invalid',
      'the amount is not positive, or is not in the asset of the payment',
    )
  }
  if (payment.completed) return completedAlready
  if (!acceptsFunds(payment, now)) return expired
  const before = parseValue(payment.received)
  const wanted = payment.incomingAmount && parseValue(payment.incomingAmount.value)
  const total = before === undefined ? undefined : before + value
  if (total === undefined || total > amountValueMax) {
    return refused('amount_invalid', 'the total exceeds 64 bits')
  }
  if (refuseExcess && wanted !== undefined && total > wanted) {
    return refused('incoming_amount_exceeded', 'the payment would receive more than incomingAmount')
  }
  if (notAfter !== undefined && (decidedAt ?? now) > notAfter) {
    return refused('transfer_closed', 'the transfer would be counted after its notAfter')
  }
  const completed = wanted !== undefined && total >= wanted
  const next: IncomingPayment = {
    ...payment,
    version: payment.version + 1,
    commandId,
    updatedAt: now,
    received: total.toString(),
    completed,
    retainUntil: payment.paidRetainUntil,
    ...(completed && { dueAt: payment.paidRetainUntil }),
  }
  const { assetCode, assetScale } = amount
  const received = {
    type: 'incoming-payment.received',
    ...eventMembers(next, now),
    transferId,
    amount: { value: amount.value, assetCode, assetScale },
  } as const
  return completed
    ? changed(next, received, paymentEvent('incoming-payment.completed', next, now))
    : changed(next, received)
}

function complete(
  payment: IncomingPayment,
  { commandId }: CompleteIncomingPayment,
  now: Instant,
): IncomingPaymentDecision<'complete'> {
  if (payment.completed) return unchanged(payment)
  if (!acceptsFunds(payment, now)) return expired
  const next = { ...ended(payment, commandId, now), completed: true }
  return changed(next, paymentEvent('incoming-payment.completed', next, now))
}

function expire(
  payment: IncomingPayment,
  { commandId }: ExpireIncomingPayment,
  now: Instant,
): IncomingPaymentDecision<'expire'> {
  if (payment.completed || payment.expiryRecorded) return unchanged(payment)
  if (now <= payment.expiresAt) return refused('payment_open', 'the payment has not expired')
  const next: IncomingPayment = { ...ended(payment, commandId, now), expiryRecorded: true }
  return changed(next, paymentEvent('incoming-payment.expired', next, now))
}

function cancel(
  payment: IncomingPayment,
  { commandId, reason }: CancelIncomingPayment,
  now: Instant,
): IncomingPaymentDecision<'cancel'> {
  if (payment.cancellation !== undefined) return unchanged(payment)
  if (payment.completed) return completedAlready
  if (!acceptsFunds(payment, now)) return expired
  const next: IncomingPayment = {
    ...ended(payment, commandId, now),
    expiresAt: now,
    expiryRecorded: true,
    cancellation: reason === undefined ? {} : { reason },
  }
  const event = { type: 'incoming-payment.expired', ...eventMembers(next, now) } as const
  return changed(next, { ...event, cancelled: true })
}

const completedAlready = refused('payment_completed', 'the payment is complete')
const expired = refused('payment_expired', 'the payment has expired')

/** Returns the next version of a payment that accepts no more funds: it is next due at the end of its retention. */
function ended(payment: IncomingPayment, commandId: string, now: Instant): IncomingPayment {
  const { expiresAt, retainUntil = expiresAt, version } = payment
  return {
    ...payment,
    version: version + 1,
    commandId,
    updatedAt: now,
    ...retained(retainUntil),
  }
}

/** Whether the payment still accepts funds. Clients receive payment methods only then. */
export function acceptsFunds(payment: IncomingPayment, now: Instant): boolean {
  return !payment.completed && !payment.expiryRecorded && now <= payment.expiresAt
}

export function receivedAmount({
  received,
  asset,
}: Pick<IncomingPayment, 'received' | 'asset'>): Amount {
  return { value: received, ...asset }
}

function paymentEvent(
  type: IncomingPaymentChanged['type'],
  payment: IncomingPayment,
  at: Instant,
): IncomingPaymentEvent {
  return { type, ...eventMembers(payment, at) }
}

function eventMembers(payment: IncomingPayment, at: Instant): IncomingPaymentEventMembers {
  return {
    at,
    incomingPaymentId: payment.id,
    walletAddress: payment.walletAddress,
    ...(payment.client !== undefined && { client: payment.client }),
    receivedAmount: receivedAmount(payment),
    ...(payment.incomingAmount !== undefined && { incomingAmount: payment.incomingAmount }),
  }
}
