import type { Amount } from '../../core/amount.js'
import type { Instant } from '../../core/instant.js'
import type { OutgoingPayment } from '../../core/outgoing-payment/record.js'
import type { JsonObject } from '../../core/stored.js'
import type { RecordKey } from '../../ports/store.js'
import { idAt, isIdOf } from '../../protocol/credential.js'
import { canonicalJson } from '../../protocol/json.js'
import { toBase64url } from '../../util/bytes.js'
import { hashText } from '../../util/hash.js'
import type { ServiceContext } from '../context.js'
import type { SignedCall } from '../signed-call.js'

/** The payment to create: from a quote, or directly to an incoming payment, which is priced now. */
export type PaymentInput = {
  readonly walletAddress: string
  readonly metadata?: JsonObject
} & (
  | { readonly quoteId: string }
  | { readonly incomingPayment: string; readonly debitAmount: Amount }
)

/** A request for a payment, and the records that it is about. */
export interface IdentifiedRequest extends Pick<OutgoingPayment, 'client' | 'requestHash'> {
  readonly input: PaymentInput
  readonly id: string
  readonly commandId: string
  /** When the request was received. */
  readonly receivedAt: Instant
  /**
   * Whether this request waits while another asks the host about the same payment. False if the id is derived from the
   * signature: only a replay has the same id.
   */
  readonly waits: boolean
  /** Whether a byte-identical repeat gets the payment that exists. */
  readonly isRepeatable: boolean
  readonly paymentKey: RecordKey
  readonly quoteKey: RecordKey
  /** The keys of the payment and its quote; empty for an id of another server. */
  readonly paymentKeys: readonly RecordKey[]
  readonly namespace: string
  readonly grantNamespace: string
}

/** Identifies the payment of a request, and what makes another request a repeat of it. */
export async function identify(
  context: ServiceContext,
  input: PaymentInput,
  client: string,
  { now: receivedAt, commandId, replay, proof }: SignedCall,
  idempotencyKey: string | undefined,
): Promise<IdentifiedRequest> {
  const namespace = await context.namespace()
  const isByQuote = 'quoteId' in input
  const id = isByQuote
    ? input.quoteId
    : idempotencyKey === undefined
      ? await idOfSignature(namespace, client, proof)
      : namespace + (await hashText(`${client} ${idempotencyKey}`)).slice(0, 28)
  const paymentKey = { kind: 'outgoing-payment', id } as const
  const quoteKey = { kind: 'quote', id } as const
  return {
    input,
    id,
    commandId,
    receivedAt,
    client,
    requestHash: await hashText(canonicalJson(input)),
    waits: isByQuote || idempotencyKey !== undefined,
    // With an idempotency key, a byte-identical repeat is as harmless as any other.
    isRepeatable: idempotencyKey !== undefined && replay?.of === 'signature',
    paymentKey,
    quoteKey,
    paymentKeys: isByQuote ? keysOfQuoted(namespace, id) : [paymentKey],
    namespace,
    grantNamespace: await context.grantNamespace(),
  }
}

/** Derives an id from a signature, so that a byte-identical repeat finds a payment about which nobody has decided. */
async function idOfSignature(
  namespace: string,
  client: string,
  { signature, createdAt }: SignedCall['proof'],
): Promise<string> {
  const hash = await hashText(`${client} signature ${toBase64url(signature)}`)
  return idAt(namespace, createdAt, hash.slice(0, 22))
}

/** Returns the keys of a payment and its quote. Empty for an id of another server, which a store need not accept. */
export function keysOfQuoted(namespace: string, id: string): readonly RecordKey[] {
  const keys: readonly RecordKey[] = [
    { kind: 'outgoing-payment', id },
    { kind: 'quote', id },
  ]
  return isIdOf(namespace, id) ? keys : []
}
