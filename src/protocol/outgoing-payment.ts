import * as v from 'valibot'
import type { Amount } from '../core/amount.js'
import type { Instant } from '../core/instant.js'
import { formatInstant } from '../core/instant.js'
import type { Json, JsonObject } from '../core/json.js'
import { hasFailed, type OutgoingPayment, sentAmount } from '../core/outgoing-payment/record.js'
import { ok } from '../core/result.js'
import { isObject } from './json.js'
import { readMetadata } from './metadata.js'
import {
  amountSchema,
  type Parsed,
  parseWith,
  receiverSchema,
  requestObjectOf,
  urlSchema,
} from './schema.js'

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
