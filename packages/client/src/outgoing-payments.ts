import type { Amount } from 'open-payments-server'
import type * as v from 'valibot'
import { bodyOf, hasOriginOf, isAtLeast, outgoingPaymentBody } from './bodies.js'
import type { Context } from './context.js'
import type { Call } from './deadline.js'
import { invalid } from './exchange.js'
import type { IssuedGrant } from './grant.js'
import type { Outgoing } from './message.js'
import { notAt, type Refused, refused } from './refusal.js'
import { type Address, addressFrom, collectionAt } from './wallet-address.js'

/** What both kinds of payments have. */
export interface PaymentTerms {
  /** The wallet address that pays, or the result of `addressOf`. */
  readonly walletAddress: string | Address
  readonly grant: IssuedGrant
  readonly metadata?: Readonly<Record<string, unknown>>
}

/** A payment by its quote, which pays once, however often the call is made. */
export interface PaymentByQuote extends PaymentTerms {
  /** The URL of the quote. */
  readonly quote: string
}

/** A payment without a quote. */
export interface DirectPayment extends PaymentTerms {
  /** The URL of the incoming payment. */
  readonly receiver: string
  /** What the payer is debited in all, the wallet's fees included, in the asset of the account. */
  readonly debitAmount: Amount
  /**
   * Names the payment, so that a repeat gets the same one: 1 to 255 printable ASCII characters. Servers other than
   * open-payments-server may ignore it; there, a repeat pays again.
   */
  readonly idempotencyKey: string
}

/** An outgoing payment to create. */
export type PaymentRequest = PaymentByQuote | DirectPayment

/**
 * An outgoing payment, as its wallet returns it.
 *
 * @see Open Payments OpenAPI, schema `outgoing-payment`
 */
export interface Payment {
  /** The URL of the payment, for `getPayment`. */
  readonly id: string
  /** The URL of the incoming payment. */
  readonly receiver: string
  /**
   * True once it has ended without sending everything: `sentAmount` is the part that it sent. False while it runs and
   * after it has completed, which Open Payments does not tell apart: the receiver shows what arrived.
   */
  readonly failed: boolean
  /** What the payment may debit in all, the wallet's fees included, in the asset of the account. */
  readonly debitAmount: Amount
  /** What is to arrive at the receiver, in the receiver's asset. Absent if the wallet does not say. */
  readonly receiveAmount?: Amount
  /** What has been sent until now. */
  readonly sentAmount: Amount
  /** What the grant has spent, in the answer to a creation. */
  readonly spent?: {
    /** What its payments debit, if a limit counts that. */
    readonly debitAmount?: Amount
    /** What arrives by them, if a limit counts that. */
    readonly receiveAmount?: Amount
  }
}

/** The result of `createPayment` and `getPayment`. */
export type FoundPayment = { readonly ok: true; readonly payment: Payment } | Refused

export async function createPaymentAt(
  context: Context,
  call: Call,
  asked: PaymentRequest,
): Promise<FoundPayment> {
  const { grant, metadata } = asked
  const address = await addressFrom(context, call, asked.walletAddress)
  if (!address.ok) return address
  const { id, authServer } = address.value
  const url = collectionAt(address.value, 'outgoing-payments')
  // The address may lie: another server must not get the token.
  if (authServer !== grant.authServer) {
    return refused(
      'response_invalid',
      `${id} names ${authServer}, but the grant is of ${grant.authServer}`,
    )
  }
  if (!hasOriginOf(url, grant.resourceServer)) return notAt(url, grant.resourceServer)
  const common = { walletAddress: id, ...(metadata !== undefined && { metadata }) }
  const byQuote = 'quote' in asked
  const body = byQuote
    ? { ...common, quoteId: asked.quote }
    : { ...common, incomingPayment: asked.receiver, debitAmount: asked.debitAmount }
  const request: Outgoing = {
    ...{ method: 'POST', url, body, token: grant.token },
    ...(byQuote
      ? { creates: 'same_quote' }
      : { idempotencyKey: asked.idempotencyKey, creates: 'same_key' }),
  }
  const read = await bodyOf(outgoingPaymentBody, request, context.exchange(call, request))
  if (!read.ok) return byQuote ? paidBefore(context, call, asked, url, read) : read
  const { walletAddress = id } = read.value
  const isAsked =
    hasOriginOf(read.value.id, url) && walletAddress === id && isOrdered(read.value, asked)
  if (!isAsked) return invalid(request, 'with another payment')
  return { ok: true, payment: paymentOf(read.value) }
}

function isOrdered(payment: PaymentBody, asked: PaymentRequest): boolean {
  if ('quote' in asked) return (payment.quoteId ?? asked.quote) === asked.quote
  const isWithin = isAtLeast(asked.debitAmount, payment.debitAmount)
  return payment.receiver === asked.receiver && isWithin
}

/**
 * Rafiki says of a quote that has ended and of one that was paid the same: "invalid quote". The payment of a quote has
 * the id of the quote there, so that a read tells which of both it is.
 */
async function paidBefore(
  { exchange }: Context,
  call: Call,
  { grant, quote }: PaymentByQuote,
  collection: string,
  refusal: Refused,
): Promise<FoundPayment> {
  const { answer, reason } = refusal
  if (refusal.refusal !== 'outcome_unknown' || answer?.status !== 400) return refusal
  const url = `${collection}/${quote.slice(quote.lastIndexOf('/') + 1)}`
  const request: Outgoing = { method: 'GET', url, token: grant.token }
  const read = await bodyOf(outgoingPaymentBody, request, exchange(call, request))
  if (!read.ok) {
    return read.refusal === 'not_found' ? refused('request_refused', reason, { answer }) : refusal
  }
  const { id, quoteId } = read.value
  return id === url && quoteId === quote ? { ok: true, payment: paymentOf(read.value) } : refusal
}

export async function getPaymentAt(
  { exchange }: Context,
  call: Call,
  grant: IssuedGrant,
  url: string,
): Promise<FoundPayment> {
  if (!hasOriginOf(url, grant.resourceServer)) return notAt(url, grant.resourceServer)
  const request: Outgoing = { method: 'GET', url, token: grant.token }
  const read = await bodyOf(outgoingPaymentBody, request, exchange(call, request))
  if (!read.ok) return read
  if (read.value.id !== url) return invalid(request, 'with another payment')
  return { ok: true, payment: paymentOf(read.value) }
}

type PaymentBody = v.InferOutput<typeof outgoingPaymentBody>

function paymentOf(body: PaymentBody): Payment {
  const { id, receiver, failed, debitAmount, receiveAmount, sentAmount } = body
  const { grantSpentDebitAmount: debit, grantSpentReceiveAmount: receive } = body
  const spent = {
    ...(debit !== undefined && { debitAmount: debit }),
    ...(receive !== undefined && { receiveAmount: receive }),
  }
  return {
    ...{ id, receiver, failed, debitAmount, sentAmount },
    ...(receiveAmount !== undefined && { receiveAmount }),
    ...((debit ?? receive) !== undefined && { spent }),
  }
}
