import { type Amount, type Asset, parseValue, sameAmount, sameAsset } from './amount.js'
import { type Changed, changed, ok, type Refused, type Result, refused } from './decision.js'
import type { Instant } from './instant.js'
import { isSameClient } from './outgoing-payment/authority.js'
import { refusedPublicly } from './public-reasons.js'
import { retained, type Stored } from './stored.js'

/**
 * The price of a payment, which the client that requested it can use until it expires.
 *
 * @see Open Payments OpenAPI, schema `quote`
 */
export interface Quote extends Stored {
  readonly walletAddress: string
  /** The client that created the quote. No other may use it. See `clientId`. Absent if the owner requested it. */
  readonly client?: string
  /** URL of the incoming payment to pay. */
  readonly receiver: string
  /** Wallet address of the receiver; absent if the price did not name it. */
  readonly receiverWalletAddress?: string
  readonly method: 'ilp'
  /** What the payer is debited in all, the wallet's fees included, in the asset of the account. */
  readonly debitAmount: Amount
  /** What arrives at the receiver, in the receiver's asset. */
  readonly receiveAmount: Amount
  readonly createdAt: Instant
  /** The quote is valid before this instant. */
  readonly expiresAt: Instant
}

/** A client, or the owner of the account, received a quote. */
export interface QuoteEvent {
  readonly type: 'quote.created'
  /** When it happened, by the clock of the server that recorded it. */
  readonly at: Instant
  readonly quoteId: string
  readonly walletAddress: string
  /** Absent if the owner of the account requested it. */
  readonly client?: string
  readonly receiver: string
  /** What the payer is debited in all, the wallet's fees included, in the asset of the account. */
  readonly debitAmount: Amount
  /** What arrives at the receiver, in the receiver's asset. */
  readonly receiveAmount: Amount
}

/** How long quotes are valid, and are kept. */
export interface QuotePolicy {
  /** Lifetime of a quote, in milliseconds, if its price does not expire earlier. */
  readonly lifetimeMs: number
  /** How long the record is kept after the quote expires, in milliseconds. */
  readonly retentionMs: number
}

/** A request for a price: with one amount, or with neither if the receiver specifies the amount. */
export interface PriceQuery {
  readonly receiver: string
  /** What the payer is to be debited in all, your fees included, in the asset of the account. */
  readonly debitAmount?: Amount
  /** What is to arrive at the receiver, in the receiver's asset. */
  readonly receiveAmount?: Amount
}

/** The price of a payment, and how long it is valid. */
export interface Price {
  /** What the payer is debited in all, your fees included: positive, and in the asset of the account. */
  readonly debitAmount: Amount
  /** What arrives at the receiver: positive, and in the receiver's asset. */
  readonly receiveAmount: Amount
  /**
   * The wallet address of the receiver: the `walletAddress` of the incoming payment, read from its server. Without it,
   * a grant with the condition `receivers` cannot pay.
   */
  readonly receiverWalletAddress?: string
  /** When the price expires, if that is before the end of the quote's lifetime. */
  readonly expiresAt?: Instant
}

/** Returns the reason why a price does not answer a query, or `undefined` if it does. */
export function priceProblem(price: Price, query: PriceQuery, asset: Asset): string | undefined {
  for (const name of ['debitAmount', 'receiveAmount'] as const) {
    const value = parseValue(price[name].value)
    if (value === undefined || value === 0n) return `${name} is not a positive amount`
    const asked = query[name]
    if (asked !== undefined && !sameAmount(asked, price[name])) {
      return `${name} is not the amount in the query`
    }
  }
  return sameAsset(price.debitAmount, asset)
    ? undefined
    : 'debitAmount is not in the asset of the wallet address'
}

/** Returns a price without the instant at which it expires, or refuses if that has come. */
export function unexpired(
  { expiresAt = Number.POSITIVE_INFINITY, ...price }: Price,
  now: Instant,
): Result<Omit<Price, 'expiresAt'>, Refused<'quote_expired'>> {
  return now < expiresAt ? ok(price) : refused('quote_expired', 'the price has already expired')
}

export interface CreateQuote extends Price {
  readonly commandId: string
  readonly id: string
  readonly walletAddress: string
  readonly client?: string
  readonly receiver: string
}

export function createQuote(
  { expiresAt: priceEndsAt, ...command }: CreateQuote,
  now: Instant,
  policy: QuotePolicy,
): Changed<Quote, QuoteEvent> | Refused<'quote_expired'> {
  const expiresAt = Math.min(now + policy.lifetimeMs, priceEndsAt ?? Number.POSITIVE_INFINITY)
  if (!(expiresAt > now)) return refused('quote_expired', 'the price has already expired')
  const quote: Quote = {
    version: 1,
    ...command,
    method: 'ilp',
    createdAt: now,
    expiresAt,
    ...retained(retainQuoteUntil(expiresAt, policy)),
  }
  return changed(quote, quoteEvent(quote))
}

/** Returns until when a quote is kept: for `retentionMs` after it expires, whether or not it was used. */
function retainQuoteUntil(expiresAt: Instant, { retentionMs }: QuotePolicy): Instant {
  return expiresAt + retentionMs
}

/** The client that pays with a quote, if it is not the owner, and the wallet address it pays from. */
interface QuoteUse {
  readonly walletAddress: string
  readonly client?: string
}

export type QuoteRefusal = 'quote_unknown' | 'quote_expired' | 'quote_mismatch'

/** Checks that a client, or the owner, can use a quote. Others cannot tell that the quote exists. */
export function usableQuote(
  quote: Quote | undefined,
  use: QuoteUse,
  now: Instant,
): Result<Quote, Refused<QuoteRefusal>> {
  if (quote === undefined || !isSameClient(quote, use)) {
    return refused('quote_unknown', 'there is no such quote of this client or owner')
  }
  if (quote.walletAddress !== use.walletAddress) {
    return refusedPublicly(
      'quote_mismatch',
      'walletAddress',
      'must be the wallet address of the quote',
    )
  }
  return now >= quote.expiresAt
    ? refusedPublicly('quote_expired', 'quoteId', 'has expired')
    : ok(quote)
}

function quoteEvent(quote: Quote): QuoteEvent {
  const { id: quoteId, createdAt: at, walletAddress, client } = quote
  const { receiver, debitAmount, receiveAmount } = quote
  const ofClient = client !== undefined && { client }
  return {
    type: 'quote.created',
    ...{ at, quoteId, walletAddress, ...ofClient, receiver, debitAmount, receiveAmount },
  }
}
