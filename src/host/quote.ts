import type { Amount } from '../core/amount.js'
import type { Refused } from '../core/decision.js'
import type { Instant } from '../core/instant.js'
import type { Quote } from '../core/quote.js'
import type { JsonObject } from '../core/stored.js'
import { urlSchema } from '../protocol/schema.js'
import type { QuoteOperations } from '../service/quote.js'
import { given } from '../util/given.js'
import { exactly, type Members, readInput, string } from '../util/input.js'
import { InvalidInputError } from '../util/invalid-input.js'
import { askedPayment, requireOneAmount } from './asked-payment.js'

/** The owner of an account asks for the price of a payment, in the host's own app. */
export interface QuoteCreation {
  /** The wallet address to debit. */
  readonly walletAddress: string
  /** URL of the incoming payment to pay. */
  readonly receiver: string
  /** At most one of the two. Default: the amount of the incoming payment, as `pricing` says. */
  readonly debitAmount?: Amount
  /** What is to arrive at the receiver, in the receiver's asset. */
  readonly receiveAmount?: Amount
}

/** A quote as hosts see it. */
export interface QuoteView {
  readonly quoteId: string
  readonly walletAddress: string
  /**
   * Wallet address of the client that requested it, or the URN of its key's thumbprint. Absent if the owner of the
   * account did, with `quotes.create`.
   */
  readonly client?: string
  readonly receiver: string
  /** Wallet address of the receiver; absent if `pricing` did not name it. */
  readonly receiverWalletAddress?: string
  /** What the payer is debited in all, your fees included, in the asset of the account. */
  readonly debitAmount: Amount
  /** What arrives at the receiver, in the receiver's asset. */
  readonly receiveAmount: Amount
  /** When it was created. */
  readonly createdAt: Instant
  /** The quote is valid before this instant. */
  readonly expiresAt: Instant
}

/** Why a call of the host for an owner is refused. */
export interface RefusedOrder<Refusal extends string> {
  readonly ok: false
  readonly refusal: Refusal
  /** For the operator, in plain words. */
  readonly reason: string
  /** What a client would learn of the reason; absent if it would learn nothing. */
  readonly details?: JsonObject
}

/** Why a payment cannot be priced. Minor versions add members: give a `switch` a `default`. */
export type QuoteCreationRefusal =
  | 'wallet_address_unknown'
  | 'wallet_address_inactive'
  | 'receiver_invalid'
  | 'amount_invalid'
  | 'amount_missing'
  | 'amount_too_small'
  | 'quote_expired'

/** The operations on quotes that the host calls. */
export interface QuoteServices {
  /**
   * Prices a payment for the owner of an account. Only `outgoingPayments.create` can pay with the quote; no client can
   * read it.
   *
   * @throws {InvalidInputError} for an invalid request, and without `pricing`.
   */
  create(
    request: QuoteCreation,
  ): Promise<{ readonly ok: true; readonly quote: QuoteView } | RefusedOrder<QuoteCreationRefusal>>
  /**
   * Resolves to a quote of a client or an owner, or to `undefined` if the id is unknown.
   *
   * @throws {InvalidInputError} without `pricing`.
   */
  get(quoteId: string): Promise<QuoteView | undefined>
}

const creation = exactly({
  walletAddress: urlSchema,
  ...askedPayment,
} satisfies Members<QuoteCreation>)

/** @param quotes absent without `pricing`. */
export function quoteServices(
  quotes: Pick<QuoteOperations, 'createForOwner' | 'load'> | undefined,
): QuoteServices {
  function priced(path: string) {
    if (quotes === undefined) throw new InvalidInputError(path, 'needs the option pricing')
    return quotes
  }
  return {
    async create(request) {
      const { walletAddress, receiver, debitAmount, receiveAmount } = readInput(
        'request',
        creation,
        request,
      )
      requireOneAmount('request', { debitAmount, receiveAmount })
      const amounts = given({ debitAmount, receiveAmount })
      const asked = { walletAddress, receiver, ...amounts }
      const answer = await priced('request').createForOwner(asked)
      return answer.ok ? { ok: true, quote: quoteView(answer.quote) } : refusedOrder(answer)
    },
    async get(quoteId) {
      readInput('quoteId', string, quoteId)
      const quote = await priced('quoteId').load(quoteId)
      return quote && quoteView(quote)
    },
  }
}

export function refusedOrder<Refusal extends string>({
  refusal,
  reason,
  details,
}: Pick<Refused<Refusal>, 'refusal' | 'reason' | 'details'>): RefusedOrder<Refusal> {
  return { ok: false, refusal, reason, ...(details !== undefined && { details }) }
}

function quoteView(quote: Quote): QuoteView {
  const { id: quoteId, walletAddress, client, receiver, receiverWalletAddress } = quote
  const { debitAmount, receiveAmount, createdAt, expiresAt } = quote
  return {
    quoteId,
    walletAddress,
    ...(client !== undefined && { client }),
    receiver,
    ...(receiverWalletAddress !== undefined && { receiverWalletAddress }),
    debitAmount,
    receiveAmount,
    createdAt,
    expiresAt,
  }
}
