import type { Amount, Asset } from '../core/amount.js'
import {
  type Budget,
  budgetId,
  itemStatus,
  type PayingItem,
  payingItems,
  type SpentAmounts,
  totalSpent,
} from '../core/budget.js'
import { ok, type Refused, type Result, refused } from '../core/decision.js'
import type { Instant } from '../core/instant.js'
import { waitsUnderOther } from '../core/outgoing-payment/confirmation.js'
import { type CreationPolicy, decideCreation, type Terms } from '../core/outgoing-payment/create.js'
import {
  type DeclineRefusal,
  isCreated,
  type OutgoingPayment,
  type PaymentRecord,
  type ReservedPayment,
} from '../core/outgoing-payment/record.js'
import { decideRepeat, type Repeat, reservedByOther } from '../core/outgoing-payment/reservation.js'
import type { Quote, QuoteRefusal } from '../core/quote.js'
import { ownerLimits, type SetLimit } from '../core/spending-limits.js'
import type { JsonObject } from '../core/stored.js'
import type {
  AccountLimits,
  ActiveToken,
  MayPay,
  TokenRefusal,
  WalletAddresses,
} from '../ports/host.js'
import type { RecordKey } from '../ports/store.js'
import { idAt, isIdOf } from '../protocol/credential.js'
import { canonicalJson } from '../protocol/json.js'
import { toBase64url } from '../util/bytes.js'
import { hashText } from '../util/hash.js'
import { type AccountRefusal, activeAccount } from './accounts.js'
import {
  budgetKey,
  budgetKeysOf,
  candidatesIn,
  countedIn,
  limitsOfAccount,
  openBudgetKeys,
  sharedCommit,
} from './budgets.js'
import type { ServiceContext } from './context.js'
import { paymentListsOf } from './lists.js'
import { loadRecords, nameOf, type Read, type Records, readerOf } from './load.js'
import { createPreload, type Preload } from './preload.js'
import type { PricingRefused, QuoteOperations } from './quote.js'
import {
  declineIfGrantEnded,
  type Outdated,
  outdated,
  settleReserved,
  waitForDecision,
} from './reserved-payment.js'
import type { SeenBudgets } from './seen-budgets.js'
import type { Replayed, SignedCall } from './signed-call.js'
import { ContentionError } from './store-errors.js'
import type { Decided, Write } from './write/write.js'

/** The payment to create: from a quote, or directly to an incoming payment, which is priced now. */
export type PaymentInput = {
  readonly walletAddress: string
  readonly metadata?: JsonObject
} & (
  | { readonly quoteId: string }
  | { readonly incomingPayment: string; readonly debitAmount: Amount }
)

/** The client that creates the payment, and its token. */
interface Spender {
  readonly client: string
  readonly token: ActiveToken
  /** Introspects the token again, because the grant may have changed when a commit lost a race. */
  renew(): Promise<Result<ActiveToken, Refused<TokenRefusal>>>
  /** The records that each introspection loads with the grant. Default: nothing. */
  readonly preload?: Preload | undefined
}

interface PaymentCreationPorts {
  /** Whether the grants are in the store of this commit, which then guards the version of the payment's grant. */
  readonly hasGrants: boolean
  readonly walletAddresses: WalletAddresses
  readonly quotes: QuoteOperations
  readonly seenBudgets: SeenBudgets
  /** Decides for the host whether a payment may be created. Default: every payment. */
  readonly mayPay?: MayPay | undefined
  /** Returns the limits of an account. Default: none has any. */
  readonly accountLimits?: AccountLimits | undefined
}

/** A payment, and the amounts spent under the token in the windows that are open when its request arrives. */
export interface PaymentAnswer {
  readonly ok: true
  readonly payment: OutgoingPayment
  readonly spent: SpentAmounts
}

/** Another request waits for the host's decision about the same payment: a repeat gets it. */
const askedAlready = refused('busy', 'another request is asking the host about the payment')

type PaymentCreationRefused =
  | typeof askedAlready
  | Refused<AccountRefusal | QuoteRefusal | TokenRefusal | 'request_differs'>
  | Refused<DeclineRefusal | 'confirmation_required'>
  | PricingRefused

interface Dependencies extends PaymentCreationPorts {
  readonly context: ServiceContext
  readonly policy: CreationPolicy
}

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
  ports: PaymentCreationPorts,
  policy: CreationPolicy,
) {
  const deps = { ...ports, context, policy }
  return {
    preloadFor: (input: PaymentInput) => preloadFor(deps, input),
    create: (input: PaymentInput, spender: Spender, call: SignedCall, idempotencyKey?: string) =>
      pay(deps, input, spender, call, idempotencyKey),
  }
}

/**
 * Returns what to load with the grant, so that a payment by a quote needs one load: all of its records. The budgets are
 * those that this process has seen with the grant, or else that of a grant for outgoing payments without an interval.
 * The id of another payment depends on the client, which only the grant names.
 */
async function preloadFor(
  { context, hasGrants, seenBudgets }: Dependencies,
  input: PaymentInput,
): Promise<Preload | undefined> {
  if (!hasGrants || !('quoteId' in input)) return undefined
  const paymentKeys = keysOfQuoted(await context.namespace(), input.quoteId)
  const namespace = await context.grantNamespace()
  return createPreload((grantId) => {
    const first = { budgetId: budgetId({ namespace, grantId }, { itemId: '1' }, {}) }
    return [...paymentKeys, ...(seenBudgets.guess(grantId) ?? [budgetKey(first)])]
  })
}

/** Returns the keys of a payment and its quote. Empty for an id of another server, which a store need not accept. */
function keysOfQuoted(namespace: string, id: string): readonly RecordKey[] {
  const keys: readonly RecordKey[] = [
    { kind: 'outgoing-payment', id },
    { kind: 'quote', id },
  ]
  return isIdOf(namespace, id) ? keys : []
}

async function pay(
  deps: Dependencies,
  input: PaymentInput,
  spender: Spender,
  call: SignedCall,
  idempotencyKey: string | undefined,
): Promise<PaymentAnswer | PaymentCreationRefused | Replayed> {
  const { context, mayPay } = deps
  const newEnd = () => context.pacing.elapsedMs() + context.storeTimeoutMs
  let endsAt = newEnd()

  // 1. Identify the payment, and determine what makes another request a repeat of this one.
  const request = await identify(context, input, spender.client, call, idempotencyKey)
  let { token } = spender
  let terms: Terms | undefined
  let ofAccount: readonly SetLimit[] = []
  let { waits } = request

  for (;;) {
    // 2. Load what the payment depends on. If another request is asking the host about it, wait for that decision. If
    // its owner can no longer confirm it, decline it.
    let snapshot = await snapshotOf(deps, request, token, ofAccount, spender.preload)
    const { reserved, isAsked } = snapshot
    if (reserved !== undefined) {
      if (waits && isAsked) {
        if (await waitForDecision(deps, reserved, endsAt)) continue
        return askedAlready
      }
      const isOfOther = waitsUnderOther(reserved, token.grantId)
      if (isOfOther && (await declineIfGrantEnded(deps, reserved))) continue
    }

    // 3. Determine the terms of a new payment, and get the limits of its account.
    if (snapshot.isNew && terms === undefined) {
      const agreed = await termsOf(deps, request)
      if (!agreed.ok) return agreed
      const { walletAddress } = input
      ofAccount = await limitsOfAccount(
        deps,
        { ...agreed.value.account, walletAddress },
        request.receivedAt,
      )
      snapshot = await withLimits(deps, token, snapshot, ofAccount)
      terms = agreed.value.terms
      // The host may have taken long for the price and the limits. It now gets its whole time to decide, and this
      // request its whole time for races.
      snapshot = { ...snapshot, now: context.clock.now() }
      endsAt = newEnd()
    }

    // 4. Decide: create or reserve the payment, if the grant is as it was introspected.
    const attempt = { request, token, snapshot, terms }
    const answer = await call.run(paymentWrite(deps, attempt), (read) =>
      decideReplayed(deps, attempt, read),
    )
    if (!answer.ok && answer.refusal !== 'outdated') return answer
    if (!answer.ok) {
      // This also loads what the payment depends on, if there is a preload.
      const renewed = await spender.renew()
      if (!renewed.ok) return renewed
      if (context.pacing.elapsedMs() > endsAt) throw new ContentionError()
      token = renewed.value
      continue
    }
    const { payment, spent } = answer
    deps.seenBudgets.see(payment.id, budgetKeysOf(payment))
    if (isCreated(payment)) return { ok: true, payment, spent }

    // 5. Ask the host about the reserved payment, and create or decline it, or let it wait for its owner.
    const settled = await settleReserved(deps, mayPay, payment, token)
    if (settled.ok) return { ...settled, spent }
    if (settled.refusal !== 'outdated') return settled
    waits = true
  }
}

/** A request for a payment, and the records that it is about. */
interface IdentifiedRequest extends Repeat {
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

async function identify(
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

/** The records that a request depends on. */
interface Snapshot {
  /** The time of the decision: read before the load, and again after the host gave the price and the limits. */
  readonly now: Instant
  readonly reads: readonly RecordKey[]
  readonly records: Records
  /** The items for outgoing payments of the token, at the time of the request. */
  readonly items: readonly PayingItem[]
  /** The limits that the owner has set for the grant and the account, at the time of the request. */
  readonly limits: readonly SetLimit[]
  /** Whether no earlier request of the client has created or reserved the payment. */
  readonly isNew: boolean
  /** The payment, if an earlier request of the client has reserved it: it waits for the host or for its owner. */
  readonly reserved: ReservedPayment | undefined
  /** Whether the earlier request may still be asking the host about it. */
  readonly isAsked: boolean
}

async function snapshotOf(
  { context: { clock, store }, policy, seenBudgets }: Dependencies,
  request: IdentifiedRequest,
  { access, grantId, conditions }: ActiveToken,
  ofAccount: readonly SetLimit[],
  preload: Preload | undefined,
): Promise<Snapshot> {
  const { paymentKeys, paymentKey, receivedAt, grantNamespace: namespace } = request
  const now = clock.now()
  const items = payingItems(access, { namespace, grantId }, receivedAt)
  const limits = [
    ...ownerLimits(conditions?.limits, { namespace, grantId }, receivedAt),
    ...ofAccount,
  ]
  const counting = openBudgetKeys([...items, ...limits])
  seenBudgets.see(grantId, counting)
  const reads = [...paymentKeys, ...counting]
  const records = preload?.takeIfComplete(reads) ?? (await loadRecords(store, reads))
  const found = readerOf(records)<PaymentRecord>(paymentKey)
  const earlier = decideRepeat(found, { grantId, ...request }, now, policy.reservations)
  return {
    now,
    reads,
    records,
    items,
    limits,
    isNew: earlier === undefined,
    reserved: earlier && found && reservedByOther(found, request.commandId),
    isAsked: earlier?.outcome === 'unchanged',
  }
}

/**
 * Loads the budgets of the account's limits that the snapshot lacks. The two loads are not one snapshot, so the commit
 * compares their versions.
 */
async function withLimits(
  { context: { store }, seenBudgets }: Dependencies,
  { grantId }: ActiveToken,
  snapshot: Snapshot,
  ofAccount: readonly SetLimit[],
): Promise<Snapshot> {
  if (ofAccount.length === 0) return snapshot
  const limits = [...snapshot.limits, ...ofAccount]
  seenBudgets.see(grantId, openBudgetKeys([...snapshot.items, ...limits]))
  const keys = openBudgetKeys(ofAccount)
  const missing = keys.filter((key) => !snapshot.records.has(nameOf(key)))
  const records = new Map([...snapshot.records, ...(await loadRecords(store, missing))])
  return { ...snapshot, records, reads: [...snapshot.reads, ...keys], limits }
}

/** The terms of a new payment, and the asset of its account. */
interface Agreed {
  readonly terms: Terms
  readonly account: Asset
}

/** Prices a payment without a quote. A quote contains its price, so only its account is checked. */
async function termsOf(
  { walletAddresses, quotes }: Dependencies,
  { input, client, receivedAt }: IdentifiedRequest,
): Promise<Result<Agreed, PaymentCreationRefused>> {
  const { walletAddress } = input
  if ('quoteId' in input) {
    const account = await activeAccount(walletAddresses, walletAddress)
    if (!account.ok) return account
    return ok({ terms: { type: 'quote', quoteId: input.quoteId }, account: account.value })
  }
  const { incomingPayment: receiver, debitAmount } = input
  const priced = await quotes.price({ walletAddress, receiver, debitAmount }, client)
  if (!priced.ok) return priced
  const { expiresAt = Number.POSITIVE_INFINITY, ...amounts } = priced.value
  return expiresAt > receivedAt
    ? ok({ terms: { type: 'price', price: { ...amounts, receiver } }, account: debitAmount })
    : refused('quote_expired', 'the price has already expired')
}

/** Everything that the decision about a request depends on. */
interface Attempt {
  readonly request: IdentifiedRequest
  readonly token: ActiveToken
  readonly snapshot: Snapshot
  /** Absent for a repeat: its terms are those of the payment that exists. */
  readonly terms: Terms | undefined
}

/** A payment that exists, or that this request has to ask the host about. */
interface Requested extends Omit<PaymentAnswer, 'payment'> {
  readonly payment: PaymentRecord
}

type PaymentOutcome = Requested | PaymentCreationRefused | Outdated

/** The write that creates or reserves the payment, unless an identical earlier request has done so. */
function paymentWrite(deps: Dependencies, attempt: Attempt): Write<PaymentOutcome> {
  const { request, token, snapshot } = attempt
  const { reads, records, isNew, limits } = snapshot
  const { grantId: id, grantVersion: version } = token
  const isGuarded = deps.hasGrants && version !== undefined
  return {
    reads,
    assumed: { records, hostAskedSince: isNew },
    together: sharedCommit(
      { grantId: id, walletAddress: request.input.walletAddress },
      limits.some(({ source }) => source === 'account'),
    ),
    ...(isGuarded && { guard: { record: { kind: 'grant', id, version }, ifChanged: outdated } }),
    decide: (read) => decideEarlier(deps, attempt, read) ?? decideNew(deps, attempt, read),
  }
}

/** Decides about a byte-identical repeat of the request. `undefined` refuses it as a replay. */
function decideReplayed(
  deps: Dependencies,
  attempt: Attempt,
  read: Read,
): Decided<PaymentOutcome> | undefined {
  const earlier = decideEarlier(deps, attempt, read)
  const isAnswered = attempt.request.isRepeatable || earlier?.changes !== undefined
  // Otherwise the client gets the same refusal as before, but neither the payment nor a hint that it exists.
  return isAnswered || (earlier && isDeclined(earlier.result)) ? earlier : undefined
}

/** Whether a request gets the refusal that an identical earlier one got. */
function isDeclined(result: PaymentOutcome): boolean {
  return !result.ok && result.refusal !== 'request_differs' && result.refusal !== 'outdated'
}

/** Decides about a repeat of the request whose payment exists. */
function decideEarlier(
  { policy }: Dependencies,
  { request, token: { grantId }, snapshot: { now, items } }: Attempt,
  read: Read,
): Decided<PaymentOutcome> | undefined {
  const { paymentKey, commandId } = request
  const earlier = decideRepeat(read(paymentKey), { grantId, ...request }, now, policy.reservations)
  if (earlier === undefined) return undefined
  if (!earlier.ok) return { result: earlier, tookEffect: true }
  const { record: payment } = earlier
  if (reservedByOther(payment, commandId))
    return { result: outdated, tookEffect: true, isInterim: true }
  const result = { ok: true, payment, spent: spentOf(items, read) } as const
  return earlier.outcome === 'changed'
    ? { changes: [{ kind: 'outgoing-payment', next: payment }], result }
    : { result, tookEffect: true }
}

/** Decides about a payment that does not exist. */
function decideNew(
  { policy, mayPay }: Dependencies,
  { request, token, snapshot, terms }: Attempt,
  read: Read,
): Decided<PaymentOutcome> {
  // The payment was in the snapshot, and has been removed since.
  if (terms === undefined) return { result: outdated, isInterim: true }
  const { input, id, commandId, receivedAt, client, requestHash, namespace, quoteKey } = request
  const { walletAddress, metadata } = input
  const { grantId, conditions } = token
  const requested = {
    client,
    requestHash,
    commandId,
    id,
    namespace: request.grantNamespace,
    grantId,
    walletAddress,
    ...(metadata !== undefined && { metadata }),
    ...(conditions !== undefined && { conditions }),
    lists: paymentListsOf(namespace, { walletAddress, client, grantId }, receivedAt),
    terms,
    ...(mayPay !== undefined && { askedAt: snapshot.now }),
  }
  const quote = terms.type === 'quote' ? read<Quote>(quoteKey) : undefined
  const { items } = snapshot
  const candidates = candidatesIn(items, walletAddress, read)
  const limits = countedIn(snapshot.limits, read)
  const decision = decideCreation(requested, { quote, candidates, limits }, receivedAt, policy)
  if (!decision.ok) return { result: decision }
  const { record: payment, events, budget, limitBudgets } = decision
  return {
    changes: [
      { kind: 'outgoing-payment', next: payment, events },
      ...[budget, ...limitBudgets].map((next) => ({ kind: 'budget', next }) as const),
    ],
    result: { ok: true, payment, spent: spentOf(items, read, budget) },
  }
}

/** Returns what payments have spent in the open windows, with the budget that a new payment has charged. */
function spentOf(items: readonly PayingItem[], read: Read, charged?: Budget): SpentAmounts {
  const spent = items.map((item) => {
    const budget = item.open && read<Budget>(budgetKey(item.open))
    return itemStatus(item, item.open?.budgetId === charged?.id ? charged : budget).spent
  })
  return totalSpent(spent)
}
