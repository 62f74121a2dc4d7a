import { type Amount, type Instant, InvalidInputError } from 'open-payments-server'
import { bodyOf, hasOriginOf, incomingPaymentBody, sameAmounts, sameAsset } from './bodies.js'
import type { Context } from './context.js'
import type { Call } from './deadline.js'
import { invalid } from './exchange.js'
import type { Outgoing } from './message.js'
import { notReceiver, type Receiver, readPublic, receiverIn } from './receiver.js'
import type { Refused } from './refusal.js'
import { type Address, addressFrom, collectionAt } from './wallet-address.js'

/** An incoming payment to create at another wallet. */
export interface ReceiverRequest {
  /** The wallet address that receives, or a payment pointer, or the result of `addressOf`. */
  readonly walletAddress: string | Address
  /** Default: any amount. */
  readonly incomingAmount?: Amount
  /**
   * When the incoming payment expires. Required, because nobody can find one whose creation has an unknown outcome:
   * a short lifetime ends it.
   */
  readonly expiresAt: Instant
  /** For the wallet of the receiver, such as a description, and a reference of yours. */
  readonly metadata?: Readonly<Record<string, unknown>>
}

/** The result of `createReceiver`. */
export type CreatedReceiver =
  | { readonly ok: true; readonly url: string; readonly receiver: Receiver }
  | Refused

export async function createReceiverAt(
  context: Context,
  call: Call,
  { walletAddress, incomingAmount, expiresAt, metadata }: ReceiverRequest,
): Promise<CreatedReceiver> {
  const expiry = new Date(expiresAt)
  if (typeof expiresAt !== 'number' || Number.isNaN(expiry.getTime())) {
    throw new InvalidInputError('request.expiresAt', 'must be an instant, in milliseconds')
  }
  const address = await addressFrom(context, call, walletAddress)
  if (!address.ok) return address
  const { id, authServer, asset } = address.value
  const url = collectionAt(address.value, 'incoming-payments')
  const body = {
    walletAddress: id,
    expiresAt: expiry.toISOString(),
    ...(incomingAmount !== undefined && { incomingAmount }),
    ...(metadata !== undefined && { metadata }),
  }
  const request: Outgoing = { method: 'POST', url, body, creates: 'never' }
  const use = { authServer, at: url, type: 'incoming-payment', actions: ['create'] } as const
  const sending = context.tokens.send(call, use, request)
  const read = await bodyOf(incomingPaymentBody, request, sending)
  if (!read.ok) return read
  const created = read.value
  const isAsked =
    hasOriginOf(created.id, url) &&
    created.walletAddress === id &&
    sameAsset(created.receivedAmount, asset) &&
    sameAmounts(created.incomingAmount, incomingAmount)
  if (!isAsked) {
    return invalid(request, 'with another incoming payment than the one that was asked for')
  }
  const found = receiverIn(created, context.clock.now())
  if (!found.ok) return found
  return { ok: true, url: created.id, receiver: { ...found.receiver, walletAddress: id } }
}

/** The result of `completeReceiver`. */
export type CompletedReceiver = { readonly ok: true; readonly receivedAmount: Amount } | Refused

/** Completes an incoming payment that this client has created. */
export async function completeReceiverAt(
  context: Context,
  call: Call,
  url: string,
): Promise<CompletedReceiver> {
  const view = await readPublic(context, call, url)
  if (!view.ok) return view
  const { authServer } = view
  const use = { authServer, at: url, type: 'incoming-payment', actions: ['complete'] } as const
  const request: Outgoing = { method: 'POST', url: `${url}/complete` }
  const sending = context.tokens.send(call, use, request)
  const read = await bodyOf(incomingPaymentBody, request, sending)
  if (!read.ok) return notReceiver(read)
  const { id, completed, receivedAmount } = read.value
  if (id !== url || !completed) return invalid(request, 'without completing the payment')
  return { ok: true, receivedAmount }
}
