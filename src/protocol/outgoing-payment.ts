import * as v from 'valibot'
import type { Amount } from '../core/amount.js'
import { ok } from '../core/decision.js'
import { formatInstant, type Instant } from '../core/instant.js'
import { hasFailed, type OutgoingPayment, sentAmount } from '../core/outgoing-payment/record.js'
import type { Json, JsonObject } from '../core/stored.js'
import { isObject } from './json.js'
import {
  amountSchema,
  type Parsed,
  parseWith,
  readMetadata,
  receiverSchema,
  requestObjectOf,
  urlSchema,
} from './schema.js'
import { resourceUrl } from './url.js'

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
  /** What the payment may debit in all, the wallet's fees included, in the asset of the account. */
  readonly debitAmount: Amount
  /** What is to arrive at the receiver, in the receiver's asset. */
  readonly receiveAmount: Amount
  /** What the payment has debited so far, in the asset of the account. */
  readonly sentAmount: Amount
  readonly metadata?: JsonObject
  readonly createdAt: string
}

type OutgoingPaymentContent = Pick<
  OutgoingPayment,
  | 'walletAddress'
  | 'receiver'
  | 'debitAmount'
  | 'receiveAmount'
  | 'sent'
  | 'state'
  | 'holdUntil'
  | 'metadata'
  | 'publicReason'
  | 'createdAt'
>

/** `urls` are the URLs of the payment and its quote. */
export function outgoingPaymentBody(
  payment: OutgoingPaymentContent,
  urls: { readonly id: string; readonly quoteId?: string },
  now: Instant,
): OutgoingPaymentBody {
  const { walletAddress, receiver, debitAmount, receiveAmount } = payment
  const metadata = publicMetadata(payment)
  return {
    id: urls.id,
    walletAddress,
    ...(urls.quoteId !== undefined && { quoteId: urls.quoteId }),
    failed: hasFailed(payment, now),
    receiver,
    debitAmount,
    receiveAmount,
    sentAmount: sentAmount(payment),
    ...(metadata !== undefined && { metadata }),
    createdAt: formatInstant(payment.createdAt),
  }
}

/**
 * Returns the metadata of the client, with the public reason of a failure where deployed clients read it. A member that
 * the client sent is never replaced.
 */
function publicMetadata({
  metadata,
  publicReason,
}: OutgoingPaymentContent): JsonObject | undefined {
  if (publicReason === undefined) return metadata
  return { cancellationReason: publicReason, ...metadata }
}

export function outgoingPaymentResource(
  payment: OutgoingPaymentContent & Pick<OutgoingPayment, 'id' | 'quoteId'>,
  baseUrl: string,
  now: Instant,
): OutgoingPaymentBody {
  const { id, quoteId } = payment
  const urls = {
    id: resourceUrl(baseUrl, 'outgoing-payments', id),
    ...(quoteId !== undefined && { quoteId: resourceUrl(baseUrl, 'quotes', quoteId) }),
  }
  return outgoingPaymentBody(payment, urls, now)
}
