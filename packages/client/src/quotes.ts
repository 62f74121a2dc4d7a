import type { Amount, Instant } from 'open-payments-server'
import type * as v from 'valibot'
import { bodyOf, hasOriginOf, isAtLeast, quoteBody } from './bodies.js'
import type { Context } from './context.js'
import type { Call } from './deadline.js'
import { invalid } from './exchange.js'
import type { Outgoing } from './message.js'
import { notAt, type Refused } from './refusal.js'
import { type Address, addressFrom, collectionAt } from './wallet-address.js'

/** A quote to create: one of the amounts, or neither if the incoming payment has one. */
export interface QuoteRequest {
  /** The wallet address that pays, or the result of `addressOf`. */
  readonly walletAddress: string | Address
  /** The URL of the incoming payment. */
  readonly receiver: string
  /** What the payer is to be debited in all, the wallet's fees included, in the asset of the account. */
  readonly debitAmount?: Amount
  /** What is to arrive at the receiver, in the receiver's asset. */
  readonly receiveAmount?: Amount
}

/**
 * A quote, as its wallet returns it.
 *
 * @see Open Payments OpenAPI, schema `quote`
 */
export interface Quote {
  /** The URL of the quote, for `createPayment`. */
  readonly id: string
  /** The URL of the incoming payment. */
  readonly receiver: string
  /** What the payer is debited in all, the wallet's fees included, in the asset of the account. */
  readonly debitAmount: Amount
  /** What arrives at the receiver, in the receiver's asset. */
  readonly receiveAmount: Amount
  /** When the quote expires. Absent if the wallet does not say. */
  readonly expiresAt?: Instant
}

/** The result of `createQuote` and `getQuote`. */
export type FoundQuote = { readonly ok: true; readonly quote: Quote } | Refused

export async function createQuoteAt(
  context: Context,
  call: Call,
  { walletAddress, receiver, debitAmount, receiveAmount }: QuoteRequest,
): Promise<FoundQuote> {
  const address = await addressFrom(context, call, walletAddress)
  if (!address.ok) return address
  const { id, authServer } = address.value
  const url = collectionAt(address.value, 'quotes')
  const body = {
    ...{ walletAddress: id, receiver, method: 'ilp' },
    ...(debitAmount !== undefined && { debitAmount }),
    ...(receiveAmount !== undefined && { receiveAmount }),
  }
  const request: Outgoing = { method: 'POST', url, body }
  const use = { authServer, at: url, type: 'quote', actions: ['create'] } as const
  const read = await bodyOf(quoteBody, request, context.tokens.send(call, use, request))
  if (!read.ok) return read
  const wrong = hasOriginOf(read.value.id, url)
    ? differenceOf(read.value, address.value, { receiver, debitAmount, receiveAmount })
    : 'is at another server'
  // A program that pays it would not compare it.
  return wrong === undefined
    ? { ok: true, quote: quoteOf(read.value) }
    : invalid(request, `with a quote that ${wrong}`)
}

export async function getQuoteAt(
  context: Context,
  call: Call,
  walletAddress: string | Address,
  url: string,
): Promise<FoundQuote> {
  const address = await addressFrom(context, call, walletAddress)
  if (!address.ok) return address
  const { authServer, resourceServer } = address.value
  const request: Outgoing = { method: 'GET', url }
  if (!hasOriginOf(url, resourceServer)) return notAt(url, resourceServer)
  const use = { authServer, at: url, type: 'quote', actions: ['read'] } as const
  const read = await bodyOf(quoteBody, request, context.tokens.send(call, use, request))
  if (!read.ok) return read
  const { id } = read.value
  const wrong = id === url ? differenceOf(read.value, address.value) : `is ${id}`
  return wrong === undefined
    ? { ok: true, quote: quoteOf(read.value) }
    : invalid(request, `with a quote that ${wrong}`)
}

type QuoteBody = v.InferOutput<typeof quoteBody>

type Asked = {
  readonly [Name in 'receiver' | 'debitAmount' | 'receiveAmount']?: QuoteRequest[Name] | undefined
}

/** Describes how a quote differs from what was asked for, and from the account that pays. */
function differenceOf(quote: QuoteBody, { id, asset }: Address, asked: Asked = {}) {
  const { walletAddress = id, receiver, debitAmount, receiveAmount } = quote
  const { receiver: payee = receiver, debitAmount: most, receiveAmount: least } = asked
  if (walletAddress !== id) return `is of ${walletAddress}`
  if (receiver !== payee) return `pays ${receiver}, not ${payee}`
  if (!isAtLeast(debitAmount, { ...asset, value: '0' })) {
    return `debits ${textOf(debitAmount)}, which is not the asset of the account`
  }
  if (most !== undefined && !isAtLeast(most, debitAmount)) {
    return `debits ${textOf(debitAmount)}, more than ${textOf(most)}`
  }
  if (least !== undefined && !isAtLeast(receiveAmount, least)) {
    return `delivers ${textOf(receiveAmount)}, less than ${textOf(least)}`
  }
  return undefined
}

function textOf({ value, assetCode, assetScale }: Amount): string {
  return `${value} of ${assetCode} with scale ${assetScale}`
}

function quoteOf(body: QuoteBody): Quote {
  const { id, receiver, debitAmount, receiveAmount, expiresAt } = body
  return { id, receiver, debitAmount, receiveAmount, ...(expiresAt !== undefined && { expiresAt }) }
}
