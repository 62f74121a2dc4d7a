import type { AccessItem, Amount, Asset } from 'open-payments-server'
import * as v from 'valibot'
import {
  amountSchema,
  assetMembers,
  printableText,
  requestObjectOf,
} from '../../../src/protocol/schema.js'
import { type Exchanged, invalid } from './exchange.js'
import type { Answer, Outgoing } from './message.js'
import { cut, type Refused } from './refusal.js'

/*
 * What the client uses of the responses. Other members may be anything, and a `null` counts as absent: servers differ
 * there, and none of it decides about money.
 */

const tokenLengthMax = 8_192
const nameLengthMax = 256

/** A URL that is requested later, or compared. Whether it may be requested is decided then. */
const url = v.pipe(v.string(), v.maxLength(2_048), v.check(isHttp, 'must be an absolute URL'))
const token = printableText(tokenLengthMax)

function isHttp(text: string): boolean {
  return /^https?:\/\/[\x21-\x7e]+$/.test(text) && !text.includes('\\') && URL.canParse(text)
}

const instant = v.pipe(
  v.string(),
  v.transform((text) => Date.parse(text)),
  v.check((ms) => !Number.isNaN(ms), 'must be an instant'),
)

export const walletAddressBody = requestObjectOf(
  v.object({
    id: url,
    publicName: v.optional(
      v.pipe(
        v.string(),
        v.transform((name) => cut(name, nameLengthMax)),
      ),
    ),
    ...assetMembers,
    authServer: url,
    resourceServer: url,
  }),
)

/** Less of a wallet address, to know whose a payment is. */
export const ownerBody = requestObjectOf(v.object({ id: v.string(), resourceServer: url }))

export const publicViewBody = requestObjectOf(
  v.object({ authServer: url, receivedAmount: v.optional(amountSchema) }),
)

export const incomingPaymentBody = v.pipe(
  requestObjectOf(
    v.object({
      id: v.string(),
      walletAddress: url,
      completed: v.boolean(),
      incomingAmount: v.optional(amountSchema),
      receivedAmount: amountSchema,
      expiresAt: v.optional(instant),
      metadata: v.optional(v.unknown()),
      methods: v.optional(v.array(v.unknown()), []),
    }),
  ),
  v.check(
    ({ incomingAmount, receivedAmount }) =>
      incomingAmount === undefined || sameAsset(incomingAmount, receivedAmount),
    'must have amounts of one asset',
  ),
)

export type IncomingPaymentBody = v.InferOutput<typeof incomingPaymentBody>

/** One of `methods`: other types have other members. */
export const ilpBody = requestObjectOf(
  v.object({
    type: v.literal('ilp'),
    ilpAddress: printableText(1_023),
    sharedSecret: printableText(256),
  }),
)

const accessItem = v.custom<AccessItem>(
  (item) => typeof (Object(item) as { readonly type?: unknown }).type === 'string',
  'must have a type',
)

export const tokenBody = requestObjectOf(
  v.object({
    value: token,
    manage: url,
    expires_in: v.optional(
      v.pipe(v.number(), v.minValue(0), v.maxValue(Number.MAX_SAFE_INTEGER / 2_000)),
    ),
    access: v.optional(v.array(accessItem), []),
  }),
)

const continueBody = requestObjectOf(
  v.object({
    uri: url,
    wait: v.optional(v.pipe(v.number(), v.minValue(0), v.maxValue(86_400))),
    access_token: requestObjectOf(v.object({ value: token })),
  }),
)

/** The response to a grant request and to a continuation: issued, pending, or both members absent. */
export const grantBody = requestObjectOf(
  v.object({
    access_token: v.optional(tokenBody),
    continue: v.optional(continueBody),
    interact: v.optional(
      requestObjectOf(
        v.object({
          redirect: v.string(),
          finish: v.optional(printableText(tokenLengthMax)),
        }),
      ),
    ),
  }),
)

export const rotationBody = requestObjectOf(v.object({ access_token: tokenBody }))

export const quoteBody = requestObjectOf(
  v.object({
    id: url,
    walletAddress: v.optional(url),
    receiver: v.string(),
    debitAmount: amountSchema,
    receiveAmount: amountSchema,
    expiresAt: v.optional(instant),
  }),
)

export const outgoingPaymentBody = v.pipe(
  requestObjectOf(
    v.object({
      id: url,
      walletAddress: v.optional(url),
      quoteId: v.optional(v.string()),
      failed: v.optional(v.boolean(), false),
      receiver: v.string(),
      debitAmount: amountSchema,
      receiveAmount: v.optional(amountSchema),
      sentAmount: amountSchema,
      grantSpentDebitAmount: v.optional(amountSchema),
      grantSpentReceiveAmount: v.optional(amountSchema),
    }),
  ),
  v.check(
    ({ debitAmount, sentAmount }) => sameAsset(debitAmount, sentAmount),
    'must send the asset that it debits',
  ),
)

export type Read<Value> = { readonly ok: true; readonly value: Value } | Refused

/** Waits for the response to a request, and reads its body. */
export async function bodyOf<Schema extends v.GenericSchema>(
  schema: Schema,
  request: Outgoing,
  sending: Promise<Exchanged>,
): Promise<Read<v.InferOutput<Schema>>> {
  const sent = await sending
  return sent.ok ? readBody(schema, sent.answer, request) : sent
}

/** Reads the body of a response. What is wrong with it counts as a response that is not what was asked for. */
export function readBody<Schema extends v.GenericSchema>(
  schema: Schema,
  { status, body }: Answer,
  request: Outgoing,
): Read<v.InferOutput<Schema>> {
  const read = v.safeParse(schema, body, { abortEarly: true })
  if (read.success) return { ok: true, value: read.output }
  const path = read.issues[0].path?.map(({ key }) => String(key)).join('.')
  const what = body === undefined ? 'no JSON that can be read' : `an invalid ${path ?? 'body'}`
  return invalid(request, `with status ${status} and ${what}`)
}

/** Whether a URL has the origin of another, so that a token of that server may be sent to it. */
export function hasOriginOf(text: string, server: string): boolean {
  return URL.canParse(text) && new URL(text).origin === new URL(server).origin
}

export function sameAsset(one: Asset, other: Asset): boolean {
  return one.assetCode === other.assetCode && one.assetScale === other.assetScale
}

export function sameAmounts(one: Amount | undefined, other: Amount | undefined): boolean {
  return (
    one?.value === other?.value &&
    one?.assetCode === other?.assetCode &&
    one?.assetScale === other?.assetScale
  )
}

/** Whether an amount is at least another in the same asset. */
export function isAtLeast(amount: Amount, least: Amount): boolean {
  return sameAsset(amount, least) && BigInt(amount.value) >= BigInt(least.value)
}
