import * as v from 'valibot'
import type { RafikiWebhook, Recipient } from '../src/index.js'

/** A receiver that was written for Rafiki: what it reads of a webhook, in our words. */
interface Host {
  readonly recipient: Recipient
  /** The types that it acts on. It answers 200 to others, or logs them. */
  readonly types: RegExp
  readonly schema: v.GenericSchema
}

const uuid = v.pipe(v.string(), v.uuid())
const anyText = v.string()
const dateTime = v.pipe(v.string(), v.isoTimestamp())
const uint64 = v.pipe(
  v.string(),
  v.regex(/^\d+$/),
  v.check((text) => BigInt(text) < 2n ** 64n, 'must be less than 2^64'),
)
const scale = v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(255))
const amount = v.strictObject({ value: uint64, assetCode: v.string(), assetScale: scale })
const anyMetadata = v.optional(v.record(v.string(), v.unknown()))

/** Version 1.1.0 of Rafiki's own description. It demands `expiresAt` of outgoing payments, which Rafiki never sends. */
const published = v.variant('type', [
  v.strictObject({
    id: uuid,
    type: v.picklist([
      'incoming_payment.created',
      'incoming_payment.completed',
      'incoming_payment.expired',
    ]),
    data: v.object({
      id: uuid,
      walletAddressId: uuid,
      client: v.optional(v.pipe(v.string(), v.url())),
      completed: v.boolean(),
      incomingAmount: v.optional(amount),
      receivedAmount: amount,
      metadata: anyMetadata,
      createdAt: dateTime,
      expiresAt: dateTime,
    }),
  }),
  v.strictObject({
    id: uuid,
    type: v.picklist([
      'outgoing_payment.created',
      'outgoing_payment.completed',
      'outgoing_payment.failed',
    ]),
    data: v.object({
      id: uuid,
      walletAddressId: uuid,
      client: v.optional(v.pipe(v.string(), v.url())),
      state: v.picklist(['FUNDING', 'SENDING', 'FAILED', 'COMPLETED']),
      receiver: v.pipe(v.string(), v.url()),
      debitAmount: amount,
      receiveAmount: amount,
      sentAmount: v.optional(amount),
      metadata: anyMetadata,
      createdAt: dateTime,
      error: v.optional(anyText),
      stateAttempts: v.pipe(v.number(), v.integer()),
      balance: uint64,
      // Ours is the id that `auth.grants` takes, which is no UUID.
      grantId: v.optional(anyText),
    }),
  }),
])

const coerced = v.object({
  value: v.pipe(
    v.string(),
    v.check((text) => Number.isFinite(Number(text))),
  ),
  assetCode: v.string(),
  assetScale: v.number(),
})
const described = v.optional(v.object({ description: v.optional(v.string()) }))

/** The wallet of the test network validates each webhook, and looks up the wallet address by its id. */
const testNetwork = v.variant('type', [
  v.object({
    id: anyText,
    type: v.picklist([
      'incoming_payment.created',
      'incoming_payment.completed',
      'incoming_payment.expired',
    ]),
    data: v.object({
      id: anyText,
      walletAddressId: uuid, // its primary key
      client: v.nullish(anyText),
      createdAt: anyText,
      expiresAt: anyText,
      completed: v.boolean(),
      receivedAmount: coerced,
      incomingAmount: v.optional(coerced),
      metadata: described,
    }),
  }),
  v.object({
    id: anyText,
    type: v.picklist([
      'outgoing_payment.created',
      'outgoing_payment.completed',
      'outgoing_payment.failed',
    ]),
    data: v.object({
      id: anyText,
      walletAddressId: uuid,
      state: anyText,
      receiver: anyText,
      debitAmount: coerced,
      receiveAmount: coerced,
      sentAmount: coerced,
      stateAttempts: v.number(),
      createdAt: anyText,
      balance: v.literal('0'), // any other makes it withdraw liquidity
      client: v.nullish(anyText),
      metadata: described,
      error: v.optional(anyText),
      cardDetails: v.optional(
        v.object({
          data: v.object({ signature: v.string(), payload: v.string() }),
          requestId: v.string(),
          initiatedAt: v.string(),
        }),
      ),
    }),
  }),
])

const goAmount = v.object({ value: uint64, assetCode: v.string(), assetScale: scale })

/** The Interledger app decodes times as RFC 3339, and takes the last segment of the receiver for its id. */
const interledgerApp = v.variant('type', [
  v.object({
    id: anyText,
    type: v.picklist([
      'incoming_payment.created',
      'incoming_payment.completed',
      'incoming_payment.expired',
    ]),
    data: v.object({
      id: anyText,
      walletAddressId: anyText,
      createdAt: dateTime,
      expiresAt: dateTime,
      incomingAmount: v.optional(goAmount),
      receivedAmount: goAmount,
      completed: v.boolean(),
    }),
  }),
  v.object({
    id: anyText,
    type: v.picklist(['outgoing_payment.created', 'outgoing_payment.completed']),
    data: v.object({
      id: anyText,
      walletAddressId: anyText,
      state: v.string(),
      receiver: v.pipe(v.string(), v.regex(/\/incoming-payments\/[^/]+$/)),
      debitAmount: goAmount,
      receiveAmount: goAmount,
      sentAmount: goAmount,
      stateAttempts: v.pipe(v.number(), v.integer()),
      createdAt: dateTime,
      updatedAt: dateTime, // Rafiki no longer sends it
      balance: v.string(),
    }),
  }),
])

/** A wallet on DynamoDB keeps a transaction by the id of the payment, and its own notes in the metadata. */
const nestWallet = v.object({
  id: anyText,
  type: anyText,
  data: v.object({
    id: anyText,
    walletAddressId: anyText,
    receiver: v.optional(v.string()),
    receiveAmount: v.optional(amount),
    incomingAmount: v.optional(amount),
    metadata: anyMetadata,
  }),
})

/** A bank with a review reads what arrived, and forwards the body as it is. */
const bankWithReview = v.object({
  id: v.pipe(v.string(), v.minLength(1)),
  type: v.pipe(v.string(), v.minLength(1)),
  data: v.object({
    id: anyText,
    walletAddressId: v.pipe(v.string(), v.minLength(1)),
    receivedAmount: amount,
    client: v.optional(anyText),
    metadata: anyMetadata,
  }),
})

/** Rafiki's own account servicing entity books what was sent, and gives back the rest. */
const mockEntity = v.object({
  id: anyText,
  type: anyText,
  data: v.pipe(
    v.object({ walletAddressId: anyText, debitAmount: amount, sentAmount: amount }),
    v.check(
      ({ debitAmount, sentAmount }) => BigInt(sentAmount.value) <= BigInt(debitAmount.value),
      'more was sent than debited',
    ),
  ),
})

/** Rafiki's card service answers the terminal that waits for this request. */
const cardService = v.object({
  id: uuid,
  type: v.picklist(['outgoing_payment.funded', 'outgoing_payment.cancelled']),
  data: v.object({
    id: uuid,
    cardDetails: v.object({
      requestId: uuid,
      initiatedAt: v.optional(dateTime),
      data: v.optional(v.record(v.string(), v.unknown())),
    }),
    metadata: v.optional(
      v.looseObject({
        cardPaymentFailureReason: v.optional(v.picklist(['invalid_signature', 'invalid_request'])),
      }),
    ),
  }),
})

const entity = 'account servicing entity'

/** Read at commits of 2025 and 2026. */
export const hosts: Readonly<Record<string, Host>> = {
  'the description of Rafiki': { recipient: entity, types: /./, schema: published },
  'the wallet of the test network': { recipient: entity, types: /./, schema: testNetwork },
  'the Interledger app': {
    recipient: entity,
    types: /^(?:incoming_payment|outgoing_payment\.(?:created|completed))/,
    schema: interledgerApp,
  },
  'a wallet on Nest and DynamoDB': { recipient: entity, types: /./, schema: nestWallet },
  'a bank with a review': { recipient: entity, types: /^incoming/, schema: bankWithReview },
  'the account servicing entity of Rafiki': {
    recipient: entity,
    types: /^outgoing_payment\.(?:completed|failed)$/,
    schema: mockEntity,
  },
  'the card service of Rafiki': { recipient: 'card service', types: /./, schema: cardService },
}

/** Returns the hosts that cannot read a webhook, and why. */
export function refusalsOf(webhook: RafikiWebhook, recipient: Recipient): readonly string[] {
  return Object.entries(hosts).flatMap(([name, host]) => {
    if (host.recipient !== recipient || !host.types.test(webhook.type)) return []
    const read = v.safeParse(host.schema, webhook)
    return read.success
      ? []
      : read.issues.map((issue) => `${name}: ${v.getDotPath(issue)}: ${issue.message}`)
  })
}
