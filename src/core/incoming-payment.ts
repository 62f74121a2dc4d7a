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
  type Decision,
  type Instant,
  type JsonObject,
  type Refused,
  refused,
  type Stored,
  type Unchanged,
  unchanged,
} from './decision.js'

/**
 * An incoming payment as it is stored. The details by which it can be paid are not in it: they are made
 * from its id whenever they are asked for, so that no secret lies in the store.
 *
 * @see Open Payments OpenAPI, schema `incoming-payment`
 */
export interface IncomingPayment extends Stored {
  readonly walletAddress: string
  /** The client instance that created it and may read it: see `clientId`. */
  readonly client: string
  readonly asset: Asset
  /** The most that should be paid in; absent if any amount is welcome. */
  readonly incomingAmount?: Amount
  /** The value paid in so far, in units of `asset`. */
  readonly received: string
  readonly completed: boolean
  readonly createdAt: Instant
  readonly expiresAt: Instant
  /** Set once the event of its expiry has been recorded. What it may receive is read off `expiresAt` alone. */
  readonly expiryRecorded?: true
  readonly metadata?: JsonObject
}

/** One arrival of funds, stored so that it counts once however often it is reported. */
export interface Transfer extends Stored {
  readonly paymentId: string
  readonly amount: Amount
}

/** What happened to an incoming payment. */
export interface IncomingPaymentEvent {
  readonly type:
    | 'incoming-payment.created'
    | 'incoming-payment.received'
    | 'incoming-payment.completed'
    | 'incoming-payment.expired'
  readonly at: Instant
  readonly incomingPaymentId: string
  readonly walletAddress: string
  readonly client: string
  /** Total received, after this event. */
  readonly receivedAmount: Amount
  readonly incomingAmount?: Amount
}

export interface IncomingPaymentPolicy {
  /** Applies when the client names no `expiresAt`, in milliseconds. */
  readonly expiryDefaultMs: number
  /** The furthest `expiresAt` accepted, in milliseconds from now. */
  readonly expiryMaxMs: number
  /** How long the record is kept after its expiry, in milliseconds. */
  readonly retentionMs: number
}

export interface CreateIncomingPayment {
  readonly commandId: string
  readonly id: string
  readonly walletAddress: string
  readonly asset: Asset
  readonly client: string
  readonly incomingAmount?: Amount
  readonly expiresAt?: Instant
  readonly metadata?: JsonObject
  readonly lists: NonNullable<Stored['lists']>
}

export type CreateRefusal = 'amount_invalid' | 'expiry_invalid'

/** Creates an incoming payment that has received nothing yet. */
export function createIncomingPayment(
  command: CreateIncomingPayment,
  now: Instant,
  policy: IncomingPaymentPolicy,
): Changed<IncomingPayment, IncomingPaymentEvent> | Refused<CreateRefusal> {
  const { incomingAmount, expiresAt = now + policy.expiryDefaultMs, ...rest } = command
  if (incomingAmount !== undefined) {
    if (!sameAsset(incomingAmount, command.asset)) {
      return refused('amount_invalid', 'incomingAmount is not in the asset of the wallet address')
    }
    const value = parseValue(incomingAmount.value)
    if (value === undefined || value === 0n) {
      return refused('amount_invalid', 'incomingAmount is not a positive amount')
    }
  }
  if (!Number.isSafeInteger(expiresAt))
    return refused('expiry_invalid', 'expiresAt must be an integer')
  if (expiresAt <= now) return refused('expiry_invalid', 'expiresAt is not in the future')
  if (expiresAt > now + policy.expiryMaxMs) {
    return refused('expiry_invalid', 'expiresAt is later than the policy allows')
  }
  const payment: IncomingPayment = {
    ...rest,
    version: 1,
    received: '0',
    completed: false,
    createdAt: now,
    expiresAt,
    dueAt: expiresAt + 1,
    retainUntil: expiresAt + policy.retentionMs,
    ...(incomingAmount === undefined ? {} : { incomingAmount }),
  }
  return changed(payment, paymentEvent('incoming-payment.created', payment, now))
}

/** Funds have arrived with the payment's details. */
export interface ReceiveFunds {
  readonly type: 'receive'
  readonly commandId: string
  readonly amount: Amount
}

export type ReceiveRefusal =
  | 'transfer_mismatch'
  | 'payment_completed'
  | 'payment_expired'
  | 'amount_invalid'

/**
 * Decides whether a payment takes the funds that arrived for it.
 *
 * An arrival that has been counted gives the earlier answer, also after completion or expiry. Overshoot
 * is taken whole and completes the payment; whatever comes later is rejected, as is everything once the
 * clock has passed `expiresAt`.
 */
export function decideIncomingPayment(
  payment: IncomingPayment,
  transfer: Transfer | undefined,
  command: ReceiveFunds,
  now: Instant,
): Decision<IncomingPayment, IncomingPaymentEvent, ReceiveRefusal> {
  if (payment.commandId === command.commandId) return unchanged(payment)
  const { amount } = command
  if (transfer !== undefined) {
    return transfer.paymentId === payment.id && sameAmount(transfer.amount, amount)
      ? unchanged(payment)
      : refused('transfer_mismatch', 'the transfer id was used for another payment or amount')
  }
  const value = parseValue(amount.value)
  if (value === undefined || value === 0n || !sameAsset(amount, payment.asset)) {
    return refused('amount_invalid', 'not a positive amount in the asset of the payment')
  }
  if (payment.completed) return refused('payment_completed', 'the payment is complete')
  if (now > payment.expiresAt) return refused('payment_expired', 'the payment has expired')
  const before = parseValue(payment.received)
  const wanted = payment.incomingAmount && parseValue(payment.incomingAmount.value)
  const total = before === undefined ? undefined : before + value
  if (total === undefined || total > amountValueMax) {
    return refused('amount_invalid', 'the total exceeds 64 bits')
  }
  const completed = wanted !== undefined && total >= wanted
  const next: IncomingPayment = {
    ...payment,
    version: payment.version + 1,
    commandId: command.commandId,
    received: total.toString(),
    completed,
    ...(completed ? retired(payment) : {}),
  }
  const received = paymentEvent('incoming-payment.received', next, now)
  return completed
    ? changed(next, received, paymentEvent('incoming-payment.completed', next, now))
    : changed(next, received)
}

/** Nobody is going to pay any more: the client instance says so, or the host. */
export interface CompletePayment {
  readonly type: 'complete'
  readonly commandId: string
}

/**
 * Completes a payment that has received less than its `incomingAmount`, or has none. It takes no more funds
 * from then on. Time is no obstacle: what is complete after its expiry takes as little as it did before.
 */
export function completeIncomingPayment(
  payment: IncomingPayment,
  { commandId }: CompletePayment,
  now: Instant,
): Changed<IncomingPayment, IncomingPaymentEvent> | Unchanged<IncomingPayment> {
  if (payment.completed) return unchanged(payment)
  const next: IncomingPayment = {
    ...payment,
    ...retired(payment),
    version: payment.version + 1,
    commandId,
    completed: true,
  }
  return changed(next, paymentEvent('incoming-payment.completed', next, now))
}

/** A payment's time has passed: tell those who listen. */
export interface ExpirePayment {
  readonly type: 'expire'
  readonly commandId: string
}

/**
 * Records that a payment has expired, once. It changes nothing that a client sees: a payment takes no funds
 * after `expiresAt` whether or not this has run. A completed payment does not expire.
 */
export function expireIncomingPayment(
  payment: IncomingPayment,
  { commandId }: ExpirePayment,
  now: Instant,
): Decision<IncomingPayment, IncomingPaymentEvent, 'payment_open'> {
  if (payment.completed || payment.expiryRecorded) return unchanged(payment)
  if (now <= payment.expiresAt) return refused('payment_open', 'the payment has not expired')
  const next: IncomingPayment = {
    ...payment,
    ...retired(payment),
    version: payment.version + 1,
    commandId,
    expiryRecorded: true,
  }
  return changed(next, paymentEvent('incoming-payment.expired', next, now))
}

/** Nothing more will happen to the payment: what is due next is the end of its retention. */
function retired({ expiresAt, retainUntil = expiresAt }: IncomingPayment) {
  return { dueAt: retainUntil, retainUntil }
}

/** How long the record of a transfer is kept: longer than its payment, which may be asked about until then. */
export function retainTransferUntil({
  expiresAt,
  retainUntil = expiresAt,
}: IncomingPayment): Instant {
  return retainUntil + day
}

const day = 86_400_000

/** Whether funds are still welcome: what decides if payment details are handed out. */
export function isOpen(payment: IncomingPayment, now: Instant): boolean {
  return !payment.completed && now <= payment.expiresAt
}

export function receivedAmount({ received, asset }: IncomingPayment): Amount {
  return { value: received, ...asset }
}

function paymentEvent(
  type: IncomingPaymentEvent['type'],
  payment: IncomingPayment,
  at: Instant,
): IncomingPaymentEvent {
  return {
    type,
    at,
    incomingPaymentId: payment.id,
    walletAddress: payment.walletAddress,
    client: payment.client,
    receivedAmount: receivedAmount(payment),
    ...(payment.incomingAmount === undefined ? {} : { incomingAmount: payment.incomingAmount }),
  }
}
