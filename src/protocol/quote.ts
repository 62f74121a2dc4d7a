import * as v from 'valibot'
import type { Amount } from '../core/amount.js'
import { ok, type Result } from '../core/decision.js'
import { formatInstant } from '../core/instant.js'
import type { Price, PriceQuery, Quote } from '../core/quote.js'
import type { Json } from '../core/stored.js'
import type { PriceRefusal } from '../ports/host.js'
import { given } from '../util/given.js'
import { publicReasonSchema } from './host-answers.js'
import {
  amountSchema,
  objectOf,
  type Parsed,
  parseWith,
  receiverSchema,
  requestObjectOf,
  urlSchema,
} from './schema.js'

export interface QuoteRequest extends PriceQuery {
  readonly walletAddress: string
}

const quoteRequestSchema = v.pipe(
  requestObjectOf(
    v.strictObject({
      walletAddress: urlSchema,
      receiver: receiverSchema,
      method: v.literal('ilp'),
      debitAmount: v.optional(amountSchema),
      receiveAmount: v.optional(amountSchema),
    }),
  ),
  v.check(
    ({ debitAmount, receiveAmount }) => !(debitAmount && receiveAmount),
    'must not contain both debitAmount and receiveAmount',
  ),
)

/**
 * Reads the body of `POST /quotes`.
 *
 * @see Open Payments OpenAPI, operation `create-quote`
 */
export function readQuoteRequest(body: Json | undefined): Parsed<QuoteRequest> {
  const parsed = parseWith(quoteRequestSchema, body)
  if (!parsed.ok) return parsed
  const { walletAddress, receiver, debitAmount, receiveAmount } = parsed.value
  return ok({ walletAddress, receiver, ...given({ debitAmount, receiveAmount }) })
}

const priceSchema = objectOf(
  v.object({
    ok: v.literal(true),
    debitAmount: amountSchema,
    receiveAmount: amountSchema,
    receiverWalletAddress: v.optional(urlSchema),
    expiresAt: v.optional(v.pipe(v.number(), v.safeInteger('must be an integer'))),
  }),
)

const priceRefusalSchema = objectOf(
  v.object({
    refusal: v.picklist([
      'receiver_invalid',
      'amount_missing',
      'amount_too_small',
      'amount_invalid',
    ]),
    reason: v.optional(v.string()),
    publicReason: publicReasonSchema,
    minDebitAmount: v.optional(amountSchema),
  }),
)

/**
 * Reads the value that the host's `price` returned, as strictly as a request, because it is stored and sent to
 * clients. Unknown members are dropped.
 */
export function readPriceAnswer(answer: unknown): Parsed<Result<Price, PriceRefusal>> {
  if (Object(answer).ok === false) {
    const parsed = parseWith(priceRefusalSchema, answer)
    if (!parsed.ok) return parsed
    const { refusal, reason, publicReason, minDebitAmount } = parsed.value
    return ok({
      ok: false,
      refusal,
      ...given({ reason, publicReason, minDebitAmount }),
    })
  }
  const parsed = parseWith(priceSchema, answer)
  if (!parsed.ok) return parsed
  const { debitAmount, receiveAmount, receiverWalletAddress, expiresAt } = parsed.value
  return ok(ok({ debitAmount, receiveAmount, ...given({ receiverWalletAddress, expiresAt }) }))
}

/** A quote on the wire (Open Payments OpenAPI, schema `quote`). */
export interface QuoteBody {
  readonly id: string
  readonly walletAddress: string
  readonly receiver: string
  /** What the payer is debited in all, the wallet's fees included, in the asset of the account. */
  readonly debitAmount: Amount
  /** What arrives at the receiver, in the receiver's asset. */
  readonly receiveAmount: Amount
  readonly method: 'ilp'
  readonly createdAt: string
  readonly expiresAt: string
}

export function quoteBody(quote: Quote, id: string): QuoteBody {
  const { walletAddress, receiver, debitAmount, receiveAmount, method } = quote
  const { createdAt, expiresAt } = quote
  return {
    id,
    walletAddress,
    receiver,
    debitAmount,
    receiveAmount,
    method,
    createdAt: formatInstant(createdAt),
    expiresAt: formatInstant(expiresAt),
  }
}
