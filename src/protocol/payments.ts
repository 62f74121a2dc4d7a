import * as v from 'valibot'
import type { Amount } from '../core/amount.js'
import type { Instant, Json, JsonObject } from '../core/decision.js'
import { type IncomingPayment, receivedAmount } from '../core/incoming-payment.js'
import { formatInstant, parseInstant } from '../core/instant.js'
import type { PaymentMethod } from '../ports/payment-methods.js'
import { encodeUtf8 } from './bytes.js'
import { depthOf, isObject } from './json.js'
import { amountSchema, objectOf, type Parsed, parseWith, refusing, urlSchema } from './schema.js'

/** What a client instance asks for when it creates an incoming payment. */
export interface IncomingPaymentRequest {
  readonly walletAddress: string
  readonly incomingAmount?: Amount
  readonly expiresAt?: Instant
  readonly metadata?: JsonObject
}

const metadataBytesMax = 8 * 1024
const metadataDepthMax = 8

const requestSchema = objectOf(
  v.strictObject({
    walletAddress: urlSchema,
    incomingAmount: v.optional(amountSchema),
    expiresAt: v.optional(v.pipe(v.string(), refusing(instantProblem))),
    metadata: v.optional(v.unknown()),
  }),
)

function instantProblem(text: string): string | undefined {
  return parseInstant(text) === undefined
    ? 'is no RFC 3339 date-time with an offset and at most milliseconds'
    : undefined
}

/**
 * Reads the body of `POST /incoming-payments`.
 *
 * @see Open Payments OpenAPI, operation `create-incoming-payment`
 */
export function readIncomingPaymentRequest(body: Json | undefined): Parsed<IncomingPaymentRequest> {
  const parsed = parseWith(requestSchema, body)
  if (!('value' in parsed)) return parsed
  const { walletAddress, incomingAmount, expiresAt } = parsed.value
  // Not the schema's copy: metadata is given back key for key, as it was parsed.
  const metadata = isObject(body) ? body['metadata'] : undefined
  const problem = metadata === undefined ? undefined : metadataProblem(metadata)
  if (problem !== undefined) return { path: 'metadata', problem }
  const expiry = expiresAt === undefined ? undefined : parseInstant(expiresAt)
  return {
    value: {
      walletAddress,
      ...(incomingAmount === undefined ? {} : { incomingAmount }),
      ...(expiry === undefined ? {} : { expiresAt: expiry }),
      ...(isObject(metadata) ? { metadata } : {}),
    },
  }
}

function metadataProblem(metadata: Json): string | undefined {
  if (!isObject(metadata)) return 'is of the wrong type'
  if (depthOf(metadata, metadataDepthMax) === undefined) {
    return `is nested more than ${metadataDepthMax} levels deep`
  }
  return encodeUtf8(JSON.stringify(metadata)).length > metadataBytesMax
    ? `is larger than ${metadataBytesMax} bytes`
    : undefined
}

/** An incoming payment on the wire (Open Payments OpenAPI, schema `incoming-payment`). */
export interface IncomingPaymentBody {
  readonly id: string
  readonly walletAddress: string
  readonly completed: boolean
  readonly incomingAmount?: Amount
  readonly receivedAmount: Amount
  readonly expiresAt: string
  readonly metadata?: JsonObject
  readonly createdAt: string
}

export function incomingPaymentBody(payment: IncomingPayment, id: string): IncomingPaymentBody {
  const { incomingAmount, metadata } = payment
  return {
    id,
    walletAddress: payment.walletAddress,
    completed: payment.completed,
    ...(incomingAmount === undefined ? {} : { incomingAmount }),
    receivedAmount: receivedAmount(payment),
    expiresAt: formatInstant(payment.expiresAt),
    ...(metadata === undefined ? {} : { metadata }),
    createdAt: formatInstant(payment.createdAt),
  }
}

/** The same with the details by which it can be paid (schema `incoming-payment-with-methods`). */
export function incomingPaymentWithMethods(
  payment: IncomingPayment,
  id: string,
  methods: readonly PaymentMethod[],
): IncomingPaymentBody & { readonly methods: readonly PaymentMethod[] } {
  return { ...incomingPaymentBody(payment, id), methods }
}
