import * as v from 'valibot'
import type { Amount } from '../core/amount.js'
import type { Instant } from '../core/instant.js'
import { formatInstant } from '../core/instant.js'
import type { Json, JsonObject } from '../core/json.js'
import { hasFailed, type OutgoingPayment, sentAmount } from '../core/outgoing-payment/record.js'
import type { Price, PriceQuery, Quote } from '../core/quote.js'
import { ok, type Result } from '../core/result.js'
import type { PriceRefusal } from '../ports/pricing.js'
import { isObject } from './json.js'
import { readMetadata } from './metadata.js'
import {
  amountSchema,
  objectOf,
  type Parsed,
  parseWith,
  receiverSchema,
  requestObjectOf,
  urlSchema,
} from './schema.js'

/** A request to create a quote. */
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
  return ok({
    walletAddress,
    receiver,
    ...(debitAmount && { debitAmount }),
    ...(receiveAmount && { receiveAmount }),
  })
}

const priceSchema = objectOf(
  v.object({
    ok: v.literal(true),
    debitAmount: amountSchema,
    receiveAmount: amountSchema,
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
    const { refusal, reason, minDebitAmount } = parsed.value
    return ok({
      ok: false,
      refusal,
      ...(reason === undefined ? {} : { reason }),
      ...(minDebitAmount && { minDebitAmount }),
    })
  }
  const parsed = parseWith(priceSchema, answer)
  if (!parsed.ok) return parsed
  const { debitAmount, receiveAmount, expiresAt } = parsed.value
  const amounts = { debitAmount, receiveAmount }
  return ok(ok(expiresAt === undefined ? amounts : { ...amounts, expiresAt }))
}

/** A request to create an outgoing payment, from a quote or directly to an incoming payment. */
export type OutgoingPaymentRequest = {
  readonly walletAddress: string
  readonly metadata?: JsonObject
} & (
  | { readonly quoteId: string }
  | { readonly incomingPayment: string; readonly debitAmount: Amount }
)

const byQuoteSchema = requestObjectOf(
  v.strictObject({
    walletAddress: urlSchema,
    quoteId: urlSchema,
    metadata: v.optional(v.unknown()),
  }),
)

const toIncomingPaymentSchema = requestObjectOf(
  v.strictObject({
    walletAddress: urlSchema,
    incomingPayment: receiverSchema,
    debitAmount: amountSchema,
    metadata: v.optional(v.unknown()),
  }),
)

/**
 * Reads the body of `POST /outgoing-payments`.
 *
 * @see Open Payments OpenAPI, operation `create-outgoing-payment`
 */
export function readOutgoingPaymentRequest(body: Json | undefined): Parsed<OutgoingPaymentRequest> {
  const direct = isObject(body) && (body['incomingPayment'] ?? null) !== null
  const parsed = direct ? parseWith(toIncomingPaymentSchema, body) : parseWith(byQuoteSchema, body)
  if (!parsed.ok) return parsed
  const metadata = readMetadata(body)
  if (!metadata.ok) return metadata
  const { metadata: _copied, ...asked } = parsed.value
  return ok({ ...asked, ...metadata.value })
}

/** A quote on the wire (Open Payments OpenAPI, schema `quote`). */
export interface QuoteBody {
  readonly id: string
  readonly walletAddress: string
  readonly receiver: string
  readonly debitAmount: Amount
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

/** An outgoing payment on the wire (Open Payments OpenAPI, schema `outgoing-payment`). */
export interface OutgoingPaymentBody {
  readonly id: string
  readonly walletAddress: string
  readonly quoteId?: string
  readonly failed: boolean
  readonly receiver: string
  readonly debitAmount: Amount
  readonly receiveAmount: Amount
  readonly sentAmount: Amount
  readonly metadata?: JsonObject
  readonly createdAt: string
}

/** Returns the body for a payment. `urls` are the URLs of the payment and its quote. */
export function outgoingPaymentBody(
  payment: OutgoingPayment,
  urls: { readonly id: string; readonly quoteId?: string },
  now: Instant,
): OutgoingPaymentBody {
  const { walletAddress, receiver, debitAmount, receiveAmount, metadata } = payment
  return {
    id: urls.id,
    walletAddress,
    ...(urls.quoteId === undefined ? {} : { quoteId: urls.quoteId }),
    failed: hasFailed(payment, now),
    receiver,
    debitAmount,
    receiveAmount,
    sentAmount: sentAmount(payment),
    ...(metadata === undefined ? {} : { metadata }),
    createdAt: formatInstant(payment.createdAt),
  }
}
