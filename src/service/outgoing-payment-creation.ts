import type { SpentAmounts } from '../core/budget.js'
import { type Refused, refused } from '../core/decision.js'
import type { Spending } from '../core/limits.js'
import { type Repeat, repeated } from '../core/outgoing-payment/create.js'
import type { OutgoingPayment } from '../core/outgoing-payment/record.js'
import { ok, type Result } from '../core/result.js'
import { newId } from '../protocol/credential.js'
import { canonicalJson } from '../protocol/json.js'
import { hashText } from '../util/hash.js'
import { activeAccount } from './account.js'
import type { ServiceContext } from './mechanism/context.js'
import { consumeNonce, type SignedCall } from './mechanism/nonces.js'
import type { Replayed } from './mechanism/transact.js'
import type { SpendingPolicy } from './outgoing-payment.js'
import { commitCombined } from './outgoing-payment-combined.js'
import { readFor } from './outgoing-payment-read.js'
import type {
  Created,
  Creation,
  CreationDependencies,
  CreationPorts,
  PaymentCreationRefused,
  PaymentInput,
  Read,
  Requested,
  Spender,
} from './outgoing-payment-request.js'
import type { PricingRefused } from './quote.js'

/** A payment, and the amounts spent under the token in the windows that are open when its request arrives. */
export interface PaymentAnswer {
  readonly ok: true
  readonly payment: OutgoingPayment
  readonly spent: SpentAmounts
}

/** Creates an outgoing payment, or returns the one that an identical earlier request created. */
export type PaymentCreation = (
  input: PaymentInput,
  spender: Spender,
  call: SignedCall,
  key?: { readonly idempotencyKey?: string },
) => Promise<PaymentAnswer | PaymentCreationRefused | Replayed>

/**
 * Creates the operation that creates outgoing payments. One commit contains the payment, budget, event,
 * used signature and the guard on the grant.
 *
 * The id of a payment is that of its quote, or is derived from the client instance and the idempotency key. There is
 * therefore at most one payment, a repeat finds it, and no further record is needed.
 */
export function createPaymentCreation(
  context: ServiceContext,
  ports: CreationPorts,
  policy: SpendingPolicy,
): PaymentCreation {
  const deps = { ...ports, context, limits: { ...policy.payments, ...policy.budgets } }

  return async function create(input, spender, call, { idempotencyKey } = {}) {
    const requested = await identify(deps, input, spender, call, idempotencyKey)
    const read = await readKeyed(deps, requested)
    const keyed = repeated(read?.payment, requested.repeat)
    if (keyed !== undefined) {
      await consumeSignature(deps, call)
      return answerEarlier(deps, requested, keyed)
    }

    const priced = await priceOf(deps, requested)
    if (!priced.ok) return answerUnpriced(deps, requested, priced)
    const creation = { ...withId(deps, requested, priced.value), read }
    const decided = await commitCombined(deps, creation)
    if (decided.ok) return answerCreated(deps, requested, decided)
    return answerConcurrent(deps, creation, decided)
  }
}

/** Fixes what identifies a request: its client instance, its content and its idempotency key. */
async function identify(
  { context }: CreationDependencies,
  input: PaymentInput,
  spender: Spender,
  call: SignedCall,
  idempotencyKey: string | undefined,
): Promise<Requested> {
  const { client } = spender
  const [namespace, grantNamespace] = [await context.namespace(), await context.grantNamespace()]
  const repeat = { client, requestHash: await hashText(canonicalJson(input)) }
  const requested = { input, spender, call, namespace, grantNamespace, repeat }
  if (idempotencyKey === undefined) return requested
  return { ...requested, keyedId: namespace + (await idOfKey(client, idempotencyKey)) }
}

/** Derives an id of the same length as random ids, so that clients cannot distinguish them. */
async function idOfKey(client: string, idempotencyKey: string): Promise<string> {
  return (await hashText(`${client} ${idempotencyKey}`)).slice(0, 22)
}

type Earlier = Result<OutgoingPayment, Refused<'request_differs'>>

/** Resolves to the payment with this id, if this request repeats the one that created it. */
async function findEarlier(
  { payments }: CreationDependencies,
  id: string,
  repeat: Repeat,
): Promise<Earlier | undefined> {
  return repeated(await payments.load(id), repeat)
}

/** Reads the payment that has the request's key, and with it what a new payment depends on. */
async function readKeyed(
  { context, mayPay }: CreationDependencies,
  requested: Requested,
): Promise<Read | undefined> {
  const { keyedId: payment, spender } = requested
  if (payment === undefined) return undefined
  const also = { payment, nonce: mayPay !== undefined }
  return readFor(context.store, requested, spender.token, also)
}

/**
 * Consumes the signature of a repeat with an idempotency key. The key makes the repeat harmless, so the response is the
 * same if an identical request in the same second has consumed the signature.
 */
async function consumeSignature(
  { context }: CreationDependencies,
  { replay }: SignedCall,
): Promise<void> {
  if (replay.guard?.of === 'signature') await consumeNonce(context, replay, ok(undefined))
}

/** Prices a payment without a quote. A quote contains its price, so only its account is checked here. */
async function priceOf(
  { walletAddresses, quotes }: CreationDependencies,
  { input, spender, call }: Requested,
): Promise<Result<Spending | undefined, PricingRefused>> {
  const { walletAddress } = input
  if ('quoteId' in input) {
    const account = await activeAccount(walletAddresses, walletAddress)
    return account.ok ? ok(undefined) : account
  }
  const { incomingPayment: receiver, debitAmount } = input
  const priced = await quotes.price({ walletAddress, receiver, debitAmount }, spender.client)
  if (!priced.ok) return priced
  const { expiresAt = Number.POSITIVE_INFINITY, debitAmount: debited, receiveAmount } = priced.value
  if (!(expiresAt > call.now)) return refused('quote_expired', 'the price has already expired')
  return ok({ debitAmount: debited, receiveAmount, receiver })
}

/** Answers a request without a price. A repeat still returns its payment after the account was closed. */
async function answerUnpriced(
  deps: CreationDependencies,
  requested: Requested,
  unpriced: PricingRefused,
): Promise<PaymentAnswer | PaymentCreationRefused> {
  const { input, repeat } = requested
  const earlier = 'quoteId' in input ? await findEarlier(deps, input.quoteId, repeat) : undefined
  return earlier === undefined ? unpriced : answerEarlier(deps, requested, earlier)
}

function withId(
  { context }: CreationDependencies,
  requested: Requested,
  price: Spending | undefined,
): Creation {
  const { input, keyedId, namespace } = requested
  const id = 'quoteId' in input ? input.quoteId : (keyedId ?? newId(namespace, context.random))
  return { ...requested, id, ...(price && { price }) }
}

async function answerCreated(
  { payments }: CreationDependencies,
  { spender, call }: Requested,
  { payment, spent }: Created,
): Promise<PaymentAnswer> {
  return { ok: true, payment, spent: spent ?? (await payments.spentUnder(spender.token, call.now)) }
}

async function answerEarlier(
  deps: CreationDependencies,
  requested: Requested,
  earlier: Earlier,
): Promise<PaymentAnswer | PaymentCreationRefused> {
  if (!earlier.ok) return earlier
  return answerCreated(deps, requested, { ok: true, payment: earlier.value })
}

/**
 * Answers a refused request. If a concurrent request with identical bytes was faster, both share its payment
 * through the idempotency key.
 */
async function answerConcurrent(
  deps: CreationDependencies,
  creation: Creation,
  declined: PaymentCreationRefused | Replayed,
): Promise<PaymentAnswer | PaymentCreationRefused | Replayed> {
  const { keyedId, repeat, call } = creation
  const isIdentical = declined.refusal === 'replayed' && call.replay.guard?.of === 'signature'
  if (!isIdentical || keyedId === undefined) return declined
  const earlier = await findEarlier(deps, keyedId, repeat)
  return earlier === undefined ? declined : answerEarlier(deps, creation, earlier)
}
