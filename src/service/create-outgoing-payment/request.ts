import type { Amount } from '../../core/amount.js'
import type { Instant } from '../../core/instant.js'
import type { JsonObject, Stored } from '../../core/stored.js'
import type { RecordKey } from '../../ports/store.js'
import { canonicalJson } from '../../protocol/json.js'
import { isUuid, newUuid } from '../../protocol/uuid.js'
import { shortHashText } from '../../util/hash.js'
import type { Call, ServiceContext } from '../context.js'
import { isSameSignature, type SignedCall, type UsedSignature } from '../signed-call.js'
import { type UsedKey, usedKeyId } from '../used-key.js'
import { type Payer, requesterFor } from './paying-server.js'

/** The payment to create: from a quote, or directly to an incoming payment, which is priced now. */
export type PaymentInput = OrderMembers & {
  readonly walletAddress: string
  readonly metadata?: JsonObject
} & (
    | { readonly quoteId: string }
    | {
        readonly incomingPayment: string
        /** A client always sends it. The owner may give either amount, or none. */
        readonly debitAmount?: Amount
        readonly receiveAmount?: Amount
      }
  )

/** What only the order of the owner contains. */
interface OrderMembers {
  readonly data?: JsonObject
  readonly resourceOwner?: string
  readonly countsInAccountLimits?: true
}

/** The call that requests a payment: signed by a client, or made by the host for the owner. */
export interface PaymentCall extends Call, Pick<SignedCall, 'run'> {
  readonly replay?: SignedCall['replay']
}

export interface IdentifiedRequest {
  readonly input: PaymentInput
  /** The short hash of the request, by which a repeat is recognized. */
  readonly requestHash: string
  /** The id of the payment: the quote's, or that of the payment that exists, or else a new one. */
  readonly id: string
  readonly commandId: string
  readonly receivedAt: Instant
  /** Absent for a payment by a quote, whose payment has its id. */
  readonly naming?: Naming
  readonly namespace: string
  readonly grantNamespace: string
}

/** The record that names the payment of a request without a quote: of its idempotency key, or of its signature. */
export interface Naming {
  readonly key: RecordKey
  /** The records to load: this one, and that of an earlier request with the same bytes, which was refused. */
  readonly keys: readonly RecordKey[]
  /** Whether the record is that of an idempotency key: of a client, or of an order. */
  readonly isOfKey: boolean
  /** Whether the record names its payment also after that was removed, so that the key never pays again. */
  readonly isOfOrder: boolean
  /** The payment that the record names, and that was removed since. */
  readonly removedId?: string
  /** Returns the id of the payment that the record names. */
  idIn(record: Stored | undefined): string | undefined
}

/** Identifies the payment of a request, and what makes another request a repeat of it. */
export async function identify(
  context: ServiceContext,
  input: PaymentInput,
  client: string | undefined,
  call: PaymentCall,
  idempotencyKey: string | undefined,
): Promise<IdentifiedRequest> {
  const { now: receivedAt, commandId } = call
  const namespace = await context.namespace()
  const id = 'quoteId' in input ? input.quoteId : newUuid(receivedAt, context.random)
  const naming =
    'quoteId' in input
      ? undefined
      : idempotencyKey === undefined
        ? namingSignature(call)
        : client === undefined
          ? namingOrder(await usedKeyId(namespace, idempotencyKey, `owner ${input.walletAddress}`))
          : namingKey(await usedKeyId(namespace, idempotencyKey, `client ${client}`), call)
  return {
    input,
    id,
    commandId,
    receivedAt,
    requestHash: await shortHashText(canonicalJson(input)),
    ...(naming !== undefined && { naming }),
    namespace,
    grantNamespace: await context.grantNamespace(),
  }
}

function namingKey(id: string, { replay }: PaymentCall): Naming {
  const key = { kind: 'replay', id } as const
  return {
    key,
    // A success that does not write the other record cannot assume that it does not exist.
    keys: replay === undefined || replay.bySuccess ? [key] : [key, replay.key],
    isOfKey: true,
    isOfOrder: false,
    idIn: (record) => (record as UsedKey | undefined)?.resultId,
  }
}

function namingOrder(id: string): Naming {
  const key = { kind: 'replay', id } as const
  const idIn = (record: Stored | undefined) => (record as UsedKey | undefined)?.resultId
  return { key, keys: [key], isOfKey: true, isOfOrder: true, idIn }
}

/** Without a quote or a key, only a byte-identical repeat of the request is about the same payment. */
function namingSignature({ replay }: PaymentCall): Naming | undefined {
  if (replay === undefined) return undefined
  return {
    key: replay.key,
    keys: [replay.key],
    isOfKey: false,
    isOfOrder: false,
    idIn(record) {
      const used = record as UsedSignature | undefined
      return used && isSameSignature(used, replay) ? used.resultId : undefined
    },
  }
}

/** Returns the keys of a payment and, by a quote, of the quote. Empty for an invalid id. */
export function keysOfPayment({ id, naming }: Pick<IdentifiedRequest, 'id' | 'naming'>) {
  const keys: readonly RecordKey[] = [paymentKey({ id }), quoteKey({ id })]
  return naming === undefined ? (isUuid(id) ? keys : []) : keys.slice(0, 1)
}

/** Returns what makes another request a repeat of this one: the same of the same client. */
export function repeatOf({ requestHash, commandId }: IdentifiedRequest, payer: Payer) {
  return { requestHash, commandId, ...requesterFor(payer) }
}

export function paymentKey({ id }: Pick<IdentifiedRequest, 'id'>): RecordKey {
  return { kind: 'outgoing-payment', id }
}

export function quoteKey({ id }: Pick<IdentifiedRequest, 'id'>): RecordKey {
  return { kind: 'quote', id }
}
