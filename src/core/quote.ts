import { type Amount, type Asset, parseValue, sameAmount, sameAsset } from './amount.js'
import {
  type Changed,
  changed,
  type Instant,
  type Refused,
  refused,
  type Stored,
} from './decision.js'
import { ok, type Result } from './result.js'

/**
 * What a payment would cost, promised for a while to the client instance that asked.
 *
 * @see Open Payments OpenAPI, schema `quote`
 */
export interface Quote extends Stored {
  readonly walletAddress: string
  /** The client instance that asked, and the only one that may use it: see `clientId`. */
  readonly client: string
  /** URL of the incoming payment that would be paid. */
  readonly receiver: string
  readonly method: 'ilp'
  readonly debitAmount: Amount
  readonly receiveAmount: Amount
  readonly createdAt: Instant
  /** The quote is good until then, and no longer at that instant. */
  readonly expiresAt: Instant
}

/** Somebody was told what a payment would cost. */
export interface QuoteEvent {
  readonly type: 'quote.created'
  readonly at: Instant
  readonly quoteId: string
  readonly walletAddress: string
  readonly client: string
  readonly receiver: string
  readonly debitAmount: Amount
  readonly receiveAmount: Amount
}

export interface QuotePolicy {
  /** Life of a quote, in milliseconds, if its price does not end sooner. */
  readonly lifetimeMs: number
  /** How long the record is kept after its expiry, in milliseconds. */
  readonly retentionMs: number
}

/** What was asked for: one of the amounts, or neither where the receiver says how much it wants. */
export interface PriceQuery {
  readonly receiver: string
  readonly debitAmount?: Amount
  readonly receiveAmount?: Amount
}

/** What a payment costs, and how long that holds. */
export interface Price {
  readonly debitAmount: Amount
  readonly receiveAmount: Amount
  /** When the price ends, if that is before the quote would. */
  readonly expiresAt?: Instant
}

/** What is wrong with a price as an answer to what was asked; `undefined` if nothing is. */
export function priceProblem(price: Price, query: PriceQuery, asset: Asset): string | undefined {
  for (const name of ['debitAmount', 'receiveAmount'] as const) {
    const value = parseValue(price[name].value)
    if (value === undefined || value === 0n) return `${name} is no positive amount`
    const asked = query[name]
    if (asked !== undefined && !sameAmount(asked, price[name])) {
      return `${name} is not the amount that was asked for`
    }
  }
  return sameAsset(price.debitAmount, asset)
    ? undefined
    : 'debitAmount is not in the asset of the wallet address'
}

export interface CreateQuote extends Price {
  readonly commandId: string
  readonly id: string
  readonly walletAddress: string
  readonly client: string
  readonly receiver: string
}

/** Promises a price. */
export function createQuote(
  { expiresAt: priceEndsAt, ...command }: CreateQuote,
  now: Instant,
  { lifetimeMs, retentionMs }: QuotePolicy,
): Changed<Quote, QuoteEvent> | Refused<'quote_expired'> {
  const expiresAt = Math.min(now + lifetimeMs, priceEndsAt ?? Number.POSITIVE_INFINITY)
  if (!(expiresAt > now)) return refused('quote_expired', 'the price has ended already')
  const retainUntil = expiresAt + retentionMs
  const quote: Quote = {
    ...command,
    version: 1,
    method: 'ilp',
    createdAt: now,
    expiresAt,
    dueAt: retainUntil,
    retainUntil,
  }
  return changed(quote, quoteEvent(quote))
}

/** Who wants to pay by a quote, and from where. */
export interface QuoteUse {
  readonly walletAddress: string
  readonly client: string
}

export type QuoteRefusal = 'quote_unknown' | 'quote_expired' | 'quote_mismatch'

/** The quote, or why it cannot be used. To others than the client instance that asked there is none. */
export function usableQuote(
  quote: Quote | undefined,
  { walletAddress, client }: QuoteUse,
  now: Instant,
): Result<Quote, Refused<QuoteRefusal>> {
  if (quote === undefined || quote.client !== client) {
    return refused('quote_unknown', 'this client has no such quote')
  }
  if (quote.walletAddress !== walletAddress) {
    return refused('quote_mismatch', 'the quote is for another wallet address')
  }
  return now >= quote.expiresAt ? refused('quote_expired', 'the quote has expired') : ok(quote)
}

function quoteEvent(quote: Quote): QuoteEvent {
  const { id: quoteId, createdAt: at, walletAddress, client } = quote
  const { receiver, debitAmount, receiveAmount } = quote
  const amounts = { debitAmount, receiveAmount }
  return { type: 'quote.created', at, quoteId, walletAddress, client, receiver, ...amounts }
}
