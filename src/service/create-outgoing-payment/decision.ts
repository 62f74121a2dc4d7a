import type { PayingItem } from '../../core/budget/paying-items.js'
import type { Budget, SpentAmounts } from '../../core/budget/record.js'
import { totalSpent } from '../../core/budget/spent.js'
import { itemSpent } from '../../core/budget/status.js'
import type { Refused } from '../../core/decision.js'
import {
  type CreationPolicy,
  decideCreation,
  type Terms,
} from '../../core/outgoing-payment/create.js'
import type { DeclineRefusal, PaymentRecord } from '../../core/outgoing-payment/record.js'
import { decideRepeat, reservedByOther } from '../../core/outgoing-payment/reservation.js'
import type { Quote, QuoteRefusal } from '../../core/quote.js'
import { budgetKey, candidatesIn, countedIn, sharedCommit } from '../budgets.js'
import { paymentListsOf } from '../lists.js'
import type { Read } from '../load.js'
import { type Outdated, outdated } from '../reserved-payment.js'
import { nextUsedKey, orderKeyMs } from '../used-key.js'
import type { Change, Decided, Write } from '../write/write.js'
import { type Payer, type PayingServer, requesterFor } from './paying-server.js'
import { type IdentifiedRequest, type Naming, paymentKey, quoteKey, repeatOf } from './request.js'
import type { Snapshot } from './snapshot.js'

/** Everything that the decision about a request depends on. */
interface Attempt {
  readonly request: IdentifiedRequest
  readonly payer: Payer
  readonly snapshot: Snapshot
  /** Absent for a repeat: its terms are those of the payment that exists. */
  readonly terms: Terms | undefined
}

/** A payment that exists, created or only reserved, and the amounts spent under the token. */
interface CreatedOrReserved {
  readonly ok: true
  readonly payment: PaymentRecord
  /** Absent for a repeat with the same signature. */
  readonly spent?: SpentAmounts
}

/** Why a payment is neither created nor reserved. */
export type CreationRefused = Refused<
  QuoteRefusal | 'request_differs' | DeclineRefusal | 'confirmation_required'
>

type PaymentOutcome = CreatedOrReserved | CreationRefused | Outdated

/** The write that creates or reserves the payment, unless an identical earlier request has done so. */
export function paymentWrite(deps: PayingServer, attempt: Attempt): Write<PaymentOutcome> {
  const { request, payer, snapshot } = attempt
  const { reads, records, isNew, limits } = snapshot
  const { grantId: id, grantVersion: version } = payer.token ?? {}
  const isGuarded = deps.hasGrants && id !== undefined && version !== undefined
  return {
    reads,
    // The host gave the price and the limits of a new payment after the records were loaded.
    basis: { type: isNew ? 'assumed' : 'loaded', records },
    together: sharedCommit(
      { walletAddress: request.input.walletAddress, ...requesterFor(payer) },
      limits.some(({ source }) => source === 'account'),
    ),
    ...(isGuarded && { guard: { record: { kind: 'grant', id, version }, ifChanged: outdated } }),
    decide: (read) =>
      decideNamed(attempt, read) ??
      decideEarlier(deps, attempt, read) ??
      decideNew(deps, attempt, read),
  }
}

/** Decides about a repeat with the same signature, which gets the payment without the amounts that are spent now. */
export function decideRepeated(
  deps: PayingServer,
  attempt: Attempt,
  read: Read,
): Decided<PaymentOutcome> | undefined {
  const { id, naming } = attempt.request
  if (naming !== undefined && naming.idIn(read(naming.key)) !== id) return renamed
  const earlier = decideEarlier(deps, attempt, read)
  if (!earlier?.result.ok) return earlier
  const { ok, payment } = earlier.result
  return { ...earlier, result: { ok, payment } }
}

/** The payment has another id than the snapshot says. */
const renamed = { type: 'interim', result: outdated } as const

/** Decides that the records have to be loaded again, if a concurrent request has named another payment. */
function decideNamed(
  { request: { id, naming } }: Attempt,
  read: Read,
): Decided<PaymentOutcome> | undefined {
  const named = naming?.idIn(read(naming.key))
  return [undefined, id, naming?.removedId].includes(named) ? undefined : renamed
}

/** Decides about a repeat of the request whose payment exists. */
function decideEarlier(
  { policy }: PayingServer,
  { request, payer, snapshot: { now, items } }: Attempt,
  read: Read,
): Decided<PaymentOutcome> | undefined {
  const { commandId } = request
  const earlier = decideRepeat(
    read(paymentKey(request)),
    repeatOf(request, payer),
    now,
    policy.reservations,
  )
  if (earlier === undefined) return undefined
  if (!earlier.ok) return { type: 'repeat', result: earlier }
  const { record: payment } = earlier
  if (reservedByOther(payment, commandId)) return { type: 'interim', result: outdated }
  const result = { ok: true, payment, spent: spentOf(items, read) } as const
  return earlier.outcome === 'changed'
    ? {
        type: 'commit',
        changes: [{ kind: 'outgoing-payment', next: payment }],
        result,
        ...namedBySignature(request),
      }
    : { type: 'repeat', result, ...namedBySignature(request) }
}

/** Returns the id of the payment for the record of the signature, if no quote and no idempotency key names it. */
function namedBySignature({ id, naming }: IdentifiedRequest): { readonly resultId?: string } {
  return naming === undefined || naming.isOfKey ? {} : { resultId: id }
}

/** Decides about a payment that does not exist. */
function decideNew(
  { policy, mayPay }: PayingServer,
  { request, payer, snapshot, terms }: Attempt,
  read: Read,
): Decided<PaymentOutcome> {
  // The payment was in the snapshot, and has been removed since.
  if (terms === undefined) return { type: 'interim', result: outdated }
  const { input, id, commandId, receivedAt, requestHash, namespace, naming } = request
  const { walletAddress, metadata, data } = input
  const { conditions } = payer.token ?? {}
  const requester = requesterFor(payer)
  const requested = {
    requestHash,
    commandId,
    id,
    namespace: request.grantNamespace,
    walletAddress,
    ...(metadata !== undefined && { metadata }),
    ...(data !== undefined && { data }),
    ...(conditions !== undefined && { conditions }),
    lists: paymentListsOf(namespace, { walletAddress, ...requester }, receivedAt),
    terms,
    ...(mayPay !== undefined && { askedAt: snapshot.now }),
    ...requester,
  }
  const quote = terms.type === 'quote' ? read<Quote>(quoteKey(request)) : undefined
  const { items } = snapshot
  const candidates = candidatesIn(items, walletAddress, read)
  const limits = countedIn(snapshot.limits, read)
  const decision = decideCreation(requested, { quote, candidates, limits }, receivedAt, policy)
  if (!decision.ok) return { type: 'answer', result: decision }
  const { record: payment, events, budget, limitBudgets } = decision
  return {
    type: 'commit',
    changes: [
      { kind: 'outgoing-payment', next: payment, events },
      ...[...(budget ? [budget] : []), ...limitBudgets].map(
        (next) => ({ kind: 'budget', next }) as const,
      ),
      ...(naming?.isOfKey ? [nameByKey(naming, payment, read, policy)] : []),
    ],
    ...namedBySignature(request),
    result: { ok: true, payment, spent: spentOf(items, read, budget) },
  }
}

/** Returns the change that lets an idempotency key name a new payment. */
function nameByKey(
  { key, isOfOrder }: Naming,
  { id: resultId, commandId, createdAt, requestHash }: PaymentRecord,
  read: Read,
  { payments: { holdMs, retentionMs } }: CreationPolicy,
): Change {
  const used = nextUsedKey(key.id, read(key), { resultId, commandId })
  const next = isOfOrder
    ? { ...used, requestHash, dueAt: createdAt + Math.max(holdMs + retentionMs, orderKeyMs) }
    : { ...used, dueAt: createdAt + holdMs + retentionMs }
  return { ...key, next }
}

/** Returns what payments have spent in the open windows, with the budget that a new payment has charged. */
function spentOf(items: readonly PayingItem[], read: Read, charged?: Budget): SpentAmounts {
  const spent = items.map((item) => {
    const budget = item.open && read<Budget>(budgetKey(item.open))
    const isCharged = charged !== undefined && item.open?.budgetId === charged.id
    return itemSpent(item, isCharged ? charged : budget)
  })
  return totalSpent(spent)
}
