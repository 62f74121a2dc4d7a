import type {
  Amount,
  Asset,
  IncomingPaymentServices,
  Instant,
  JsonObject,
} from 'open-payments-server'
import { parseValue } from 'open-payments-server/core'
import * as v from 'valibot'
import { isObject } from '../../../src/protocol/json.js'
import {
  bodyOf,
  type IncomingPaymentBody,
  ilpBody,
  incomingPaymentBody,
  ownerBody,
  publicViewBody,
} from './bodies.js'
import type { Context } from './context.js'
import { type Call, ended, waitFor } from './deadline.js'
import type { Outgoing } from './message.js'
import { type Refused, receiverClosed, refused } from './refusal.js'

/** An incoming payment that accepts money, in this wallet or in another one. */
export interface Receiver {
  /** The asset in which it receives. */
  readonly asset: Asset
  /** What it has received so far, from everybody, in `asset`. */
  readonly receivedAmount: Amount
  /** The amount that is still missing, if the payment has an amount. */
  readonly wanted?: Amount
  /** Absent if it is not known for sure. */
  readonly walletAddress?: string
  /** The last instant at which it accepts money. Absent if its wallet does not say. */
  readonly expiresAt?: Instant
  /** What its creator says about it, such as a description. Of another wallet: anything, so show it as text. */
  readonly metadata?: JsonObject
  /** How to pay it over Interledger. Absent for a payment of this wallet. */
  readonly ilp?: { readonly ilpAddress: string; readonly sharedSecret: string }
}

/** The result of `receiverOf`. */
export type FoundReceiver = { readonly ok: true; readonly receiver: Receiver } | Refused

/** What anybody may read of an incoming payment. */
export interface PublicReceiver {
  /** Where a grant for the whole incoming payment is requested. */
  readonly authServer: string
  /** What it has received so far, in the receiver's asset. Absent if its wallet does not say. */
  readonly receivedAmount?: Amount
}

/** The result of `publicReceiverOf`. */
export type FoundPublicReceiver = ({ readonly ok: true } & PublicReceiver) | Refused

/** The incoming payments of the wallet that the client belongs to. */
export interface OwnReceivers {
  /** The origin of the wallet, which the client never requests for a receiver. */
  readonly baseUrl: string
  readonly incomingPayments: Pick<IncomingPaymentServices, 'get' | 'idOf'>
}

interface Terms {
  readonly completed: boolean
  readonly incomingAmount?: Amount | undefined
  readonly receivedAmount: Amount
  readonly expiresAt?: Instant | undefined
  readonly metadata?: unknown
}

/** Returns the receiver if it accepts money. */
export function receiverFrom(terms: Terms, now: Instant): FoundReceiver {
  const { completed, incomingAmount, receivedAmount, expiresAt, metadata } = terms
  if (completed) return receiverClosed('the incoming payment is complete', receivedAmount)
  if (expiresAt !== undefined && now > expiresAt) {
    return receiverClosed('the incoming payment has expired', receivedAmount)
  }
  const { assetCode, assetScale } = receivedAmount
  const asset = { assetCode, assetScale }
  const receiver = {
    ...{ asset, receivedAmount },
    ...(expiresAt !== undefined && { expiresAt }),
    ...(isObject(metadata) && { metadata: metadata as JsonObject }),
  }
  if (incomingAmount === undefined) return { ok: true, receiver }
  const [asked, received] = [parseValue(incomingAmount.value), parseValue(receivedAmount.value)]
  if (asked === undefined || received === undefined || asked <= received) {
    return receiverClosed('the incoming payment has received its amount', receivedAmount)
  }
  const wanted = { ...asset, value: `${asked - received}` }
  return { ok: true, receiver: { ...receiver, wanted } }
}

const unknown = 'the incoming payment does not exist'

/** Looks an incoming payment of the own wallet up. Resolves to `undefined` for the URL of another one. */
export async function findOwn(
  { clock }: Context,
  call: Call,
  { baseUrl, incomingPayments }: OwnReceivers,
  url: string,
): Promise<FoundReceiver | undefined> {
  const id = incomingPayments.idOf(url)
  if (id === undefined) {
    const isOwn = URL.canParse(url) && new URL(url).origin === new URL(baseUrl).origin
    return isOwn ? refused('not_found', unknown, { publicReason: unknown }) : undefined
  }
  try {
    const payment = await waitFor(call, Promise.resolve(incomingPayments.get(id)))
    if (payment === undefined) return refused('not_found', unknown, { publicReason: unknown })
    const { walletAddress, incomingAmount, receivedAmount, status, expiresAt, metadata } = payment
    const completed = status === 'completed'
    const found = receiverFrom(
      { completed, incomingAmount, receivedAmount, expiresAt, metadata },
      clock.now(),
    )
    return found.ok ? { ...found, receiver: { ...found.receiver, walletAddress } } : found
  } catch (error) {
    if (call.signal.aborted) return ended(call, 'the own incoming payment was read')
    throw error
  }
}

/** @see Open Payments OpenAPI, schema `public-incoming-payment` */
export async function readPublic(
  { exchange }: Context,
  call: Call,
  url: string,
): Promise<FoundPublicReceiver> {
  const request: Outgoing = { method: 'GET', url, isSigned: false }
  const read = await bodyOf(publicViewBody, request, exchange(call, request))
  if (!read.ok) return notReceiver(read)
  const { authServer, receivedAmount } = read.value
  return { ok: true, authServer, ...(receivedAmount !== undefined && { receivedAmount }) }
}

/**
 * Reads an incoming payment of another wallet, in three steps: its public view names its authorization server; that
 * server grants `read-all` without consent; the payment is read with the token, and says how it can be paid.
 */
export async function findReceiver(
  context: Context,
  call: Call,
  url: string,
): Promise<FoundReceiver> {
  const view = await readPublic(context, call, url)
  if (!view.ok) return view
  const { authServer } = view
  const use = { authServer, at: url, type: 'incoming-payment', actions: ['read-all'] } as const
  const request: Outgoing = { method: 'GET', url }
  const sending = context.tokens.send(call, use, request)
  const read = await bodyOf(incomingPaymentBody, request, sending)
  if (!read.ok) return notReceiver(read)
  if (read.value.id !== url) {
    const reason = 'the receiver returned another incoming payment'
    return refused('response_invalid', reason, { publicReason: reason })
  }
  const found = receiverIn(read.value, context.clock.now())
  if (!found.ok) return found
  if (found.receiver.ilp === undefined) {
    return refused('receiver_unpayable', `${url} has no Interledger payment method`)
  }
  const walletAddress = await ownerOf(context, call, url, read.value.walletAddress)
  return walletAddress === undefined
    ? found
    : { ...found, receiver: { ...found.receiver, walletAddress } }
}

/** Converts an incoming payment of another wallet, which may have no Interledger payment method. */
export function receiverIn(payment: IncomingPaymentBody, now: Instant): FoundReceiver {
  const found = receiverFrom(payment, now)
  if (!found.ok) return found
  for (const method of payment.methods) {
    const read = v.safeParse(ilpBody, method)
    if (!read.success) continue
    const { ilpAddress, sharedSecret } = read.output
    return { ok: true, receiver: { ...found.receiver, ilp: { ilpAddress, sharedSecret } } }
  }
  return found
}

/**
 * Returns the wallet address of a payment if its own document names the resource server of the payment. Otherwise, the
 * server at the receiver's URL, which the client chose, could name any wallet address, such as one that the owner of
 * the paying account permits.
 */
async function ownerOf(
  { exchange }: Context,
  call: Call,
  url: string,
  claimed: string,
): Promise<string | undefined> {
  const request: Outgoing = { method: 'GET', url: claimed, isSigned: false }
  const read = await bodyOf(ownerBody, request, exchange(call, request))
  if (!read.ok || read.value.id !== claimed) return undefined
  const collection = `${read.value.resourceServer.replace(/\/$/, '')}/incoming-payments/`
  // As it is requested: `..` in it leads out of the collection.
  return new URL(url).href.startsWith(collection) ? claimed : undefined
}

/** Says what is wrong with a receiver, as far as its payer may know. */
export function notReceiver<Refusal extends Refused>(refusal: Refusal): Refusal {
  if (refusal.refusal === 'not_found') return { ...refusal, publicReason: unknown }
  if (refusal.refusal !== 'response_invalid') return refusal
  return { ...refusal, publicReason: 'its server did not respond with an incoming payment' }
}
