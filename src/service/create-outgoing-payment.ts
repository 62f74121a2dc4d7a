import { permits } from '../core/access.js'
import type { Amount } from '../core/amount.js'
import {
  type Budget,
  type BudgetPolicy,
  itemStatus,
  type PayingItem,
  payingItems,
  type SpentAmounts,
  totalSpent,
} from '../core/budget.js'
import { ok, type Refused, type Result, refused } from '../core/decision.js'
import type { Instant } from '../core/instant.js'
import type { Spending } from '../core/limits.js'
import { createOutgoingPayment, type Repeat } from '../core/outgoing-payment/create.js'
import {
  type DeclineRefusal,
  isCreated,
  type OutgoingPayment,
  type OutgoingPaymentPolicy,
  type PaymentRecord,
  type ReservedPayment,
} from '../core/outgoing-payment/record.js'
import {
  decideRepeat,
  type ReservationPolicy,
  reserveOutgoingPayment,
} from '../core/outgoing-payment/reservation.js'
import { type Quote, type QuoteRefusal, usableQuote } from '../core/quote.js'
import type { JsonObject } from '../core/stored.js'
import type { ActiveToken, MayPay, TokenRefusal, WalletAddresses } from '../ports/host.js'
import type { RecordKey } from '../ports/store.js'
import { idAt, isIdOf } from '../protocol/credential.js'
import { canonicalJson } from '../protocol/json.js'
import { toBase64url } from '../util/bytes.js'
import { hashText } from '../util/hash.js'
import { type AccountRefusal, activeAccount, type ServiceContext } from './context.js'
import { paymentListsOf } from './lists.js'
import { loadOne, loadRecords, type Read, type Records, readerOf } from './load.js'
import type { PricingRefused, QuoteOperations } from './quote.js'
import { expire, type Outdated, outdated, settleReserved } from './reserved-payment.js'
import type { Replayed, SignedCall } from './signed-call.js'
import { ContentionError } from './store-guard.js'
import type { Decided, Write } from './write/write.js'

/** The payment to create: from a quote, or directly to an incoming payment, which is priced now. */
export type PaymentInput = {
  readonly walletAddress: string
  readonly metadata?: JsonObject
} & (
  | { readonly quoteId: string }
  | { readonly incomingPayment: string; readonly debitAmount: Amount }
)

/** The client instance that creates the payment, and its token. */
interface Spender {
  readonly client: string
  readonly token: ActiveToken
  /** Introspects the token again, because the grant may have changed when a commit lost a race. */
  renew(): Promise<Result<ActiveToken, Refused<TokenRefusal>>>
}

interface PaymentCreationPorts {
  /** Whether the grants are in the store of this commit, which then guards the version of the payment's grant. */
  readonly hasGrants: boolean
  readonly walletAddresses: WalletAddresses
  readonly quotes: QuoteOperations
  /** Decides for the host whether a payment may be created. Default: every payment. */
  readonly mayPay?: MayPay | undefined
}

/** A payment, and the amounts spent under the token in the windows that are open when its request arrives. */
export interface PaymentAnswer {
  readonly ok: true
  readonly payment: OutgoingPayment
  readonly spent: SpentAmounts
}

type PaymentCreationRefused =
  | Refused<AccountRefusal | QuoteRefusal | TokenRefusal | 'request_differs'>
  | Refused<DeclineRefusal>
  | PricingRefused

export type CreationPolicy = OutgoingPaymentPolicy & BudgetPolicy & ReservationPolicy

/** Creates an outgoing payment, or returns the one that an identical earlier request created. */
export type PaymentCreation = ReturnType<typeof createPaymentCreation>

/**
 * Returns the operation that creates an outgoing payment, or answers with the one that an identical earlier request
 * created. One commit contains the payment, its budget, its event, the replay record and the guard on the grant.
 *
 * If the host decides about payments, this commit reserves the payment: nobody sees it. Then the host is asked, and a
 * second commit creates the payment or declines it. At most one request asks at a time; the others wait for its
 * decision. See docs/spending.md.
 *
 * A payment has the id of its quote, or an id derived from the idempotency key or the signature. There is therefore at
 * most one payment, a repeat finds it, and no further record is needed.
 */
export function createPaymentCreation(
  context: ServiceContext,
  { hasGrants, walletAddresses, quotes, mayPay }: PaymentCreationPorts,
  policy: CreationPolicy,
) {
  const { clock, pacing } = context
  const reservations = { context, hasGrants, policy }

  return async function create(
    input: PaymentInput,
    { client, token: introspected, renew }: Spender,
    call: SignedCall,
    idempotencyKey?: string,
  ): Promise<PaymentAnswer | PaymentCreationRefused | Replayed> {
    const endsAt = pacing.elapsedMs() + context.storeTimeoutMs

    // 1. Identify the payment, and what makes another request a repeat of this one.
    const request = await requestOf(context, input, client, call, idempotencyKey)
    let price: Spending | undefined
    let { waits } = request

    for (let token = introspected; ; ) {
      // 2. Read the quote, the payment and the budgets.
      const now = clock.now()
      const snapshot = await snapshotOf(context, request, token, call.now)
      const repeat = { ...request, grantId: token.grantId }
      const earlier = decideRepeat(snapshot.payment, repeat, now, policy)

      // Another request is asking the host about the payment: wait for its decision.
      const other = earlier?.ok && askedByOther(earlier.record, call)
      if (other && waits) {
        if (pacing.elapsedMs() >= endsAt) {
          throw new ContentionError('another request is asking the host about the payment')
        }
        if (now < other.dueAt) await decidedByOther(context, other, endsAt)
        else await expire(reservations, other)
        continue
      }

      // 3. Price a payment without a quote. A quote contains its price, so only its account is checked.
      if (earlier === undefined && price === undefined) {
        const { walletAddress } = input
        if ('quoteId' in input) {
          const account = await activeAccount(walletAddresses, walletAddress)
          if (!account.ok) return account
        } else {
          const priced = await priceOf(input, client, call.now, quotes)
          if (!priced.ok) return priced
          price = priced.value
        }
      }

      // 4. Create or reserve the payment, if the grant is as it was introspected: it may have been revoked since.
      const isPriced = earlier === undefined
      const deciding = {
        call,
        request,
        token,
        now,
        snapshot,
        price,
        isPriced,
        policy,
        reserves: !!mayPay,
      }
      const { grantId: id, grantVersion: version } = token
      const answer = await call.commit({
        ...creation(deciding),
        ...(hasGrants &&
          version !== undefined && {
            guard: { version: { kind: 'grant', id, version }, outdated },
          }),
      })
      if (answer.ok) {
        const { payment, spent } = answer
        if (isCreated(payment)) return { ok: true, payment, spent }

        // 5. Ask the host about the reserved payment, and create or decline it.
        const settled = await settleReserved(reservations, mayPay, payment, token)
        if (settled.ok) return { ...settled, spent }
        if (settled.refusal !== 'outdated') return settled
        waits = true
        continue
      }
      if (answer.refusal !== 'outdated') return answer
      const renewed = await renew()
      if (!renewed.ok) return renewed
      if (pacing.elapsedMs() > endsAt) throw new ContentionError()
      token = renewed.value
    }
  }
}

/** A request for a payment, and the records that it is about. */
interface IdentifiedRequest extends Repeat {
  readonly input: PaymentInput
  readonly id: string
  readonly commandId: string
  /** Whether it waits for the decision about another request. Otherwise that has the same bytes, and this is a replay. */
  readonly waits: boolean
  /** Whether a byte-identical repeat gets the payment that exists. */
  readonly isRepeatable: boolean
  readonly paymentKey: RecordKey
  readonly quoteKey: RecordKey
  /** The keys of the payment and its quote. Empty for an id of another server, which a store need not accept. */
  readonly own: readonly RecordKey[]
  readonly namespace: string
  readonly grantNamespace: string
}

async function requestOf(
  context: ServiceContext,
  input: PaymentInput,
  client: string,
  { commandId, replay, proof }: SignedCall,
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
    client,
    requestHash: await hashText(canonicalJson(input)),
    waits: isByQuote || idempotencyKey !== undefined,
    // With an idempotency key, a byte-identical repeat is as harmless as any other.
    isRepeatable: idempotencyKey !== undefined && replay?.of === 'signature',
    paymentKey,
    quoteKey,
    own: isIdOf(namespace, id) ? [paymentKey, ...(isByQuote ? [quoteKey] : [])] : [],
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

/** What a request reads before its payment is priced. */
interface Snapshot {
  /** The items for outgoing payments of the token, at the time of the request. */
  readonly items: readonly PayingItem[]
  readonly payment: PaymentRecord | undefined
  readonly reads: readonly RecordKey[]
  readonly known: Records
}

async function snapshotOf(
  context: ServiceContext,
  { own, paymentKey, grantNamespace: namespace }: IdentifiedRequest,
  { access, grantId }: ActiveToken,
  now: Instant,
): Promise<Snapshot> {
  const items = payingItems(access, { namespace, grantId }, now)
  const reads = [...own, ...items.flatMap(({ open }) => (open ? [budgetKey(open)] : []))]
  const known = await loadRecords(context.store, reads)
  return { items, payment: readerOf(known)(paymentKey), reads, known }
}

/** Prices a payment without a quote. */
async function priceOf(
  input: Exclude<PaymentInput, { readonly quoteId: string }>,
  client: string,
  now: Instant,
  quotes: QuoteOperations,
): Promise<Result<Spending, PaymentCreationRefused>> {
  const { walletAddress, incomingPayment: receiver, debitAmount } = input
  const priced = await quotes.price({ walletAddress, receiver, debitAmount }, client)
  if (!priced.ok) return priced
  const { expiresAt = Number.POSITIVE_INFINITY, ...amounts } = priced.value
  return expiresAt > now
    ? ok({ ...amounts, receiver })
    : refused('quote_expired', 'the price has already expired')
}

/** Returns the payment if another request is asking the host about it. */
function askedByOther(payment: PaymentRecord, { commandId }: SignedCall) {
  const isOther = payment.state === 'reserved' && payment.commandId !== commandId
  return isOther ? payment : undefined
}

const pollMs = 100

/** Waits until the record of a payment has changed, or until the time of the call about it is over. */
async function decidedByOther(
  { store, random, pacing, clock }: ServiceContext,
  { id, version, askUntil }: ReservedPayment,
  endsAt: number,
): Promise<void> {
  for (;;) {
    const [byte = 0] = random.getRandomValues(new Uint8Array(1))
    await pacing.sleep((pollMs * byte) / 255)
    const found = await loadOne(store, { kind: 'outgoing-payment', id })
    if (found?.version !== version || clock.now() >= askUntil || pacing.elapsedMs() >= endsAt)
      return
  }
}

/** Everything that the decision to create a payment depends on. */
interface Deciding {
  readonly call: SignedCall
  readonly request: IdentifiedRequest
  readonly token: ActiveToken
  readonly now: Instant
  readonly snapshot: Snapshot
  /** The price; absent for a payment by a quote. */
  readonly price: Spending | undefined
  readonly policy: CreationPolicy
  /** Whether a port was called for the price since the snapshot. */
  readonly isPriced: boolean
  /** Whether the payment is reserved, because the host decides about it. */
  readonly reserves: boolean
}

/** A payment that exists, or that this request has to ask the host about. */
interface Created extends Omit<PaymentAnswer, 'payment'> {
  readonly payment: PaymentRecord
}

type Creation = Created | PaymentCreationRefused | Outdated

/** The write that creates or reserves a payment, unless an identical earlier request has done so. */
function creation(deciding: Deciding): Write<Creation> {
  const { call, request, token, now, snapshot, policy } = deciding
  const { reads, known, items } = snapshot
  const { isRepeatable, paymentKey } = request

  function earlierIn(read: Read): Decided<Creation> | undefined {
    const repeat = { ...request, grantId: token.grantId }
    const earlier = decideRepeat(read(paymentKey), repeat, now, policy)
    if (!earlier?.ok) return earlier && { result: earlier, isRepeat: true }
    const { record } = earlier
    if (askedByOther(record, call)) return { result: outdated, isRepeat: true }
    const result = { ok: true, payment: record, spent: spentOf(items, read) } as const
    return earlier.outcome === 'changed'
      ? { changes: [{ kind: 'outgoing-payment', next: record }], result }
      : { result, isRepeat: true }
  }

  return {
    reads,
    known: { records: known, isOld: deciding.isPriced },
    together: `grant ${token.grantId}`,
    decide: (read) => earlierIn(read) ?? decideCreation(deciding, read),
    repeated(read) {
      const earlier = earlierIn(read)
      if (earlier === undefined || isRepeatable || earlier.changes !== undefined) return earlier
      const { result } = earlier
      // The same refusal as before, but neither the payment nor a hint that it exists.
      const isDeclined = !result.ok && result.refusal !== 'request_differs' && result !== outdated
      return isDeclined ? earlier : undefined
    },
  }
}

function decideCreation(
  { call, request, token, snapshot, price, policy, reserves }: Deciding,
  read: Read,
): Decided<Creation> {
  const { items } = snapshot
  const { input, id, client, requestHash, namespace, grantNamespace, quoteKey } = request
  const { walletAddress, metadata } = input
  const { now, commandId } = call
  const { grantId, conditions } = token
  const isByQuote = 'quoteId' in input
  // A payment that existed a moment ago was not priced.
  if (!isByQuote && price === undefined) return { result: outdated }
  const terms = price
    ? ok(price)
    : usableQuote(read<Quote>(quoteKey), { walletAddress, client }, now)
  if (!terms.ok) return { result: terms }
  const { receiver, receiverWalletAddress, debitAmount, receiveAmount } = terms.value
  const command = {
    client,
    requestHash,
    commandId,
    id,
    namespace: grantNamespace,
    grantId,
    walletAddress,
    ...(isByQuote && { quoteId: id }),
    receiver,
    ...(receiverWalletAddress && { receiverWalletAddress }),
    debitAmount,
    receiveAmount,
    ...(metadata && { metadata }),
    ...(conditions && { conditions }),
    lists: paymentListsOf(namespace, { walletAddress, client, grantId }, now),
    candidates: items
      .filter(({ item }) => permits([item], 'outgoing-payment', 'create', walletAddress))
      .map(({ item, open }) => {
        const budget = open && read<Budget>(budgetKey(open))
        return budget === undefined ? { item } : { item, budget }
      }),
  }
  const decision = (reserves ? reserveOutgoingPayment : createOutgoingPayment)(command, now, policy)
  if (!decision.ok) return { result: decision }
  const { record: payment, events, budget } = decision
  return {
    changes: [
      { kind: 'outgoing-payment', next: payment, events },
      { kind: 'budget', next: budget },
    ],
    result: { ok: true, payment, spent: spentOf(items, read, budget) },
  }
}

function budgetKey({ budgetId: id }: { readonly budgetId: string }) {
  return { kind: 'budget', id } as const
}

/** Returns what payments have spent in the open windows, with the budget that a new payment has charged. */
function spentOf(items: readonly PayingItem[], read: Read, charged?: Budget): SpentAmounts {
  const spent = items.map((item) => {
    const budget = item.open && read<Budget>(budgetKey(item.open))
    return itemStatus(item, item.open?.budgetId === charged?.id ? charged : budget).spent
  })
  return totalSpent(spent)
}
