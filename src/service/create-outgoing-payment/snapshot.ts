import { budgetId, type PayingItem, payingItems } from '../../core/budget/paying-items.js'
import { type Refused, refused } from '../../core/decision.js'
import type { Instant } from '../../core/instant.js'
import type { PaymentRecord, ReservedPayment } from '../../core/outgoing-payment/record.js'
import { decideRepeat, reservedByOther } from '../../core/outgoing-payment/reservation.js'
import { ownerLimits, type SetLimit } from '../../core/spending-limits.js'
import type { RecordKey } from '../../ports/store.js'
import { budgetKey, openBudgetKeys } from '../budgets.js'
import { loadRecords, nameOf, type Records, readerOf } from '../load.js'
import { type LoadedWithGrant, loadedWithGrant } from '../loaded-with-grant.js'
import { type HostKey, otherThan } from '../used-key.js'
import type { Payer, PayingServer } from './paying-server.js'
import {
  type IdentifiedRequest,
  keysOfPayment,
  type PaymentInput,
  paymentKey,
  repeatOf,
} from './request.js'

/**
 * Returns what to load with the grant, so that a payment by a quote needs one load: all of its records. The budgets are
 * those that this process has seen with the grant, or else that of a grant for outgoing payments without an interval.
 * The id of another payment depends on the client, which only the grant names.
 */
export async function loadedForPayment(
  { context, hasGrants, seenBudgets }: PayingServer,
  input: PaymentInput,
): Promise<LoadedWithGrant | undefined> {
  if (!hasGrants || !('quoteId' in input)) return undefined
  const paymentKeys = keysOfPayment({ id: input.quoteId })
  const namespace = await context.grantNamespace()
  return loadedWithGrant(context.namespace, (grantId) => {
    const first = { budgetId: budgetId({ namespace, grantId }, { itemId: '1' }, {}) }
    return [...paymentKeys, ...(seenBudgets.guess(grantId) ?? [budgetKey(first)])]
  })
}

export interface Snapshot {
  /** The request, with the id of the payment that exists, if an earlier request has created or reserved one. */
  readonly request: IdentifiedRequest
  /** The time of the decision. Read again after the host gave the price and the limits. */
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
  /** Why the request has no payment: its key names one that was removed since. */
  readonly removed?: Refused<'payment_unknown'> | Refused<'request_differs'>
  /** Whether this request cannot ask the host about it now: another may be asking, or its grant is another one. */
  readonly isAsked: boolean
}

/** Loads what a request depends on as one snapshot: the one that was loaded with the grant, if it has all of it. */
export async function snapshotOf(
  deps: PayingServer,
  request: IdentifiedRequest,
  payer: Payer,
  ofAccount: readonly SetLimit[],
  withGrant: LoadedWithGrant | undefined,
): Promise<Snapshot> {
  const { clock, store } = deps.context
  const { policy, seenBudgets } = deps
  const { naming } = request
  const now = clock.now()
  const { items, limits: ofGrant } = underGrant(request, payer)
  const limits = [...ofGrant, ...ofAccount]
  const counting = openBudgetKeys([...items, ...limits])
  if (payer.token !== undefined) seenBudgets.see(payer.token.grantId, counting)
  const reads = [...(naming?.keys ?? []), ...keysOfPayment(request), ...counting]
  const records =
    withGrant?.takeIfComplete(reads) ??
    (await loadRecords(store, [...reads, ...guessOfAccount(deps, request, payer, ofAccount)]))
  const read = readerOf(records)
  const named = naming?.idIn(read(naming.key))
  if (naming !== undefined && named !== undefined && named !== request.id) {
    const ofNamed = await snapshotOf(deps, { ...request, id: named }, payer, ofAccount, withGrant)
    if (!ofNamed.isNew) return ofNamed
    const ofOrder = naming.isOfOrder ? read<HostKey>(naming.key) : undefined
    if (ofOrder !== undefined) {
      return { ...ofNamed, removed: otherThan(ofOrder, request) ?? paymentRemoved }
    }
    // The id of a removed payment is not used again: the host may know how that payment ended.
    const renamed = { ...request, naming: { ...naming, removedId: named } }
    return { ...ofNamed, request: renamed, reads: [...reads, ...ofNamed.reads] }
  }
  const found = read<PaymentRecord>(paymentKey(request))
  const earlier = decideRepeat(found, repeatOf(request, payer), now, policy.reservations)
  return {
    request,
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

/** The budgets of the account with which an order is loaded: the limits of the account are known only afterwards. */
function guessOfAccount(
  { seenBudgets }: PayingServer,
  { input: { walletAddress, countsInAccountLimits } }: IdentifiedRequest,
  { token }: Payer,
  { length }: readonly SetLimit[],
): readonly RecordKey[] {
  const isUnknown = token === undefined && countsInAccountLimits === true && length === 0
  return isUnknown ? (seenBudgets.guess(walletAddress) ?? []) : []
}

const paymentRemoved = refused(
  'payment_unknown',
  'the payment of this idempotency key was removed after its retention',
)

/** Returns the items of the token and the limits of its grant. The owner has neither. */
function underGrant(
  { receivedAt, grantNamespace: namespace }: IdentifiedRequest,
  { token }: Payer,
): Pick<Snapshot, 'items' | 'limits'> {
  if (token === undefined) return { items: [], limits: [] }
  const { access, grantId, conditions } = token
  return {
    items: payingItems(access, { namespace, grantId }, receivedAt),
    limits: ownerLimits(conditions?.limits, { namespace, grantId }, receivedAt),
  }
}

/**
 * Loads the budgets of the account's limits that the snapshot lacks. The two loads are not one snapshot, so the commit
 * compares their versions.
 */
export async function withLimits(
  { context: { store }, seenBudgets }: PayingServer,
  { token }: Payer,
  snapshot: Snapshot,
  ofAccount: readonly SetLimit[],
): Promise<Snapshot> {
  if (ofAccount.length === 0) return snapshot
  const limits = [...snapshot.limits, ...ofAccount]
  const seenWith = token?.grantId ?? snapshot.request.input.walletAddress
  seenBudgets.see(seenWith, openBudgetKeys([...snapshot.items, ...limits]))
  const keys = openBudgetKeys(ofAccount)
  const missing = keys.filter((key) => !snapshot.records.has(nameOf(key)))
  const records = new Map([...snapshot.records, ...(await loadRecords(store, missing))])
  return { ...snapshot, records, reads: [...snapshot.reads, ...keys], limits }
}
