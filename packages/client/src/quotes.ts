import type { Amount, Instant } from 'open-payments-server'
import type * as v from 'valibot'
import { bodyOf, hasOriginOf, quoteBody, sameAmounts } from './bodies.js'
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
  readonly debitAmount?: Amount
  readonly receiveAmount?: Amount
}

export interface Quote {
  readonly id: string
  readonly receiver: string
  readonly debitAmount: Amount
  readonly receiveAmount: Amount
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
  const { id, authServer, asset } = address.value
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
  const quote = read.value
  const isAsked =
    quote.receiver === receiver &&
    hasOriginOf(quote.id, url) &&
    sameAmounts(quote.debitAmount, { ...asset, value: quote.debitAmount.value }) &&
    (debitAmount === undefined || BigInt(quote.debitAmount.value) <= BigInt(debitAmount.value)) &&
    (receiveAmount === undefined || isAtLeast(quote.receiveAmount, receiveAmount))
  // A program that pays it would not compare it.
  return isAsked
    ? { ok: true, quote: quoteOf(quote) }
    : invalid(request, 'with a quote of another payment than the one that was asked for')
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
  if (read.value.id !== url) return invalid(request, 'with another quote')
  return { ok: true, quote: quoteOf(read.value) }
}

function isAtLeast(quoted: Amount, { value, ...asset }: Amount): boolean {
  const isSameAsset = sameAmounts(quoted, { ...asset, value: quoted.value })
  return isSameAsset && BigInt(quoted.value) >= BigInt(value)
}

function quoteOf(body: v.InferOutput<typeof quoteBody>): Quote {
  const { id, receiver, debitAmount, receiveAmount, expiresAt } = body
  return { id, receiver, debitAmount, receiveAmount, ...(expiresAt !== undefined && { expiresAt }) }
}
