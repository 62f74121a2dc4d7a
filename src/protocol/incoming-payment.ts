import * as v from 'valibot'
import type { Amount } from '../core/amount.js'
import { ok } from '../core/decision.js'
import { type IncomingPayment, receivedAmount } from '../core/incoming-payment.js'
import { formatInstant, type Instant, parseInstant } from '../core/instant.js'
import type { Json, JsonObject } from '../core/stored.js'
import type { IlpPaymentMethod } from '../ports/host.js'
import {
  amountSchema,
  type Parsed,
  parseWith,
  readMetadata,
  requestObjectOf,
  urlSchema,
} from './schema.js'

export interface IncomingPaymentRequest {
  readonly walletAddress: string
  readonly incomingAmount?: Amount
  readonly expiresAt?: Instant
  readonly metadata?: JsonObject
}

const instantSchema = v.pipe(
  v.string(),
  v.rawTransform(({ dataset, addIssue, NEVER }) => {
    const instant = parseInstant(dataset.value)
    if (instant !== undefined) return instant
    addIssue({ message: 'must be an RFC 3339 date-time with an offset' })
    return NEVER
  }),
)

const requestSchema = requestObjectOf(
  v.strictObject({
    walletAddress: urlSchema,
    incomingAmount: v.optional(amountSchema),
    expiresAt: v.optional(instantSchema),
    metadata: v.optional(v.unknown()),
  }),
)

/**
 * Reads the body of `POST /incoming-payments`.
 *
 * @see Open Payments OpenAPI, operation `create-incoming-payment`
 */
export function readIncomingPaymentRequest(body: Json | undefined): Parsed<IncomingPaymentRequest> {
  const parsed = parseWith(requestSchema, body)
  if (!parsed.ok) return parsed
  const { walletAddress, incomingAmount, expiresAt } = parsed.value
  const metadata = readMetadata(body)
  if (!metadata.ok) return metadata
  return ok({
    walletAddress,
    ...(incomingAmount !== undefined && { incomingAmount }),
    ...(expiresAt !== undefined && { expiresAt }),
    ...metadata.value,
  })
}

/** An incoming payment on the wire (Open Payments OpenAPI, schema `incoming-payment`). */
export interface IncomingPaymentBody {
  readonly id: string
  readonly walletAddress: string
  readonly completed: boolean
  /** The amount to receive, in the asset of the wallet address; absent if any amount is accepted. */
  readonly incomingAmount?: Amount
  /** What it has received so far, in the asset of the wallet address. */
  readonly receivedAmount: Amount
  readonly expiresAt: string
  readonly metadata?: JsonObject
  readonly createdAt: string
}

type IncomingPaymentContent = Pick<
  IncomingPayment,
  | 'walletAddress'
  | 'completed'
  | 'incomingAmount'
  | 'received'
  | 'asset'
  | 'expiresAt'
  | 'metadata'
  | 'createdAt'
>

export function incomingPaymentBody(
  payment: IncomingPaymentContent,
  id: string,
): IncomingPaymentBody {
  const { incomingAmount, metadata } = payment
  return {
    id,
    walletAddress: payment.walletAddress,
    completed: payment.completed,
    ...(incomingAmount !== undefined && { incomingAmount }),
    receivedAmount: receivedAmount(payment),
    expiresAt: formatInstant(payment.expiresAt),
    ...(metadata !== undefined && { metadata }),
    createdAt: formatInstant(payment.createdAt),
  }
}

/** An incoming payment with its payment methods (schema `incoming-payment-with-methods`). */
export function incomingPaymentWithMethods(
  payment: IncomingPayment,
  id: string,
  methods: readonly IlpPaymentMethod[],
): IncomingPaymentBody & { readonly methods: readonly IlpPaymentMethod[] } {
  return Object.assign(incomingPaymentBody(payment, id), { methods })
}

/** An incoming payment as unauthenticated requests see it (schema `public-incoming-payment`). */
interface PublicIncomingPaymentBody {
  readonly receivedAmount: Amount
  /** URL of the grant endpoint for access to the full payment. */
  readonly authServer: string
}

export function publicIncomingPayment(
  payment: IncomingPayment,
  authServer: string,
): PublicIncomingPaymentBody {
  return { receivedAmount: receivedAmount(payment), authServer }
}
