import { ok, type Refused, type Result, refused } from '../core/decision.js'
import type { Grant } from '../core/grant/record.js'
import { isUnderGrant } from '../core/outgoing-payment/authority.js'
import {
  confirmationDeclined,
  waitingLimitsOf,
  waitsForOwner,
} from '../core/outgoing-payment/confirmation.js'
import type { CreationPolicy } from '../core/outgoing-payment/create.js'
import { refuseByGrant, rightsOf } from '../core/outgoing-payment/granted-rights.js'
import {
  type ConfirmDecision,
  type ConfirmRefusal,
  confirmByOwner,
  type DeclineByOwnerRefusal,
  declinableByOwner,
  type ShownPayment,
  unknownConfirmation,
} from '../core/outgoing-payment/owner-decision.js'
import {
  type Confirmation,
  type DeclineRefusal,
  isCreated,
  type OutgoingPayment,
  type PaymentRecord,
  type ReservedPayment,
} from '../core/outgoing-payment/record.js'
import { declinedFor, reservedByOther } from '../core/outgoing-payment/reservation.js'
import type { SetLimit } from '../core/spending-limits.js'
import type {
  AccountLimits,
  Bounded,
  BoundedFunction,
  MayPay,
  WalletAddresses,
} from '../ports/host.js'
import { storeBounds } from '../ports/store.js'
import { type AccountRefusal, activeAccount } from './accounts.js'
import {
  budgetKey,
  budgetKeysOf,
  budgetsIn,
  countedIn,
  limitsOfAccount,
  openBudgetKeys,
  sharedCommit,
} from './budgets.js'
import { newCall, type ServiceContext } from './context.js'
import {
  type AddressScope,
  type GrantScope,
  type ListPage,
  type PageRequest,
  readPage,
  sourceOf,
  waitingListName,
} from './lists.js'
import { loadGrant, loadPublic, loadRecords, readerOf } from './load.js'
import {
  changesOf,
  decline,
  grantEnded,
  settleReserved,
  waitForDecision,
} from './reserved-payment.js'
import { ContentionError } from './store-errors.js'

interface ConfirmingServer {
  readonly context: ServiceContext
  /** Whether the grants, and so their owners, are in the store of this server. */
  readonly hasGrants: boolean
  readonly walletAddresses: Bounded<WalletAddresses>
  readonly mayPay: MayPay | undefined
  readonly accountLimits: BoundedFunction<AccountLimits> | undefined
  readonly policy: CreationPolicy
}

/** A payment whose confirmation can be given or repeated, and its grant, if that is in the store of this server. */
export interface ConfirmablePayment {
  readonly payment: ReservedPayment & { readonly confirmation: Confirmation }
  readonly grant?: Grant
}

type Confirmed =
  | { readonly ok: true; readonly payment: OutgoingPayment; readonly changed: boolean }
  | Refused<ConfirmRefusal | DeclineRefusal | AccountRefusal | 'not_the_owner'>

type Declined =
  | { readonly ok: true; readonly changed: boolean }
  | Refused<DeclineByOwnerRefusal | 'not_the_owner'>

export type OwnerConfirmations = ReturnType<typeof createOwnerConfirmations>

export function createOwnerConfirmations(deps: ConfirmingServer) {
  return {
    find: (id: string) => find(deps, id),
    list: (scope: AddressScope | GrantScope, page: PageRequest) => list(deps, scope, page),
    confirm: (id: string, resourceOwner: string, shown: ShownPayment) =>
      confirm(deps, id, resourceOwner, shown),
    decline: (id: string, resourceOwner: string) => declineAsOwner(deps, id, resourceOwner),
    declineForbidden: (grantId: string) => declineForbidden(deps, grantId),
  }
}

/** Resolves to `undefined` if the payment is decided, if the time to confirm it is over, or if its grant has ended. */
async function find(deps: ConfirmingServer, id: string): Promise<ConfirmablePayment | undefined> {
  const payment = await loadPublic<PaymentRecord>(deps.context.store, 'outgoing-payment', id)
  const [confirmable] = payment === undefined ? [] : await confirmableOf(deps, [payment])
  return confirmable
}

/**
 * Resolves to a page of the payments that wait, oldest first. The page lacks those that nobody can confirm any more and
 * that no sweep has declined yet.
 */
async function list(
  deps: ConfirmingServer,
  scope: AddressScope | GrantScope,
  request: PageRequest,
): Promise<ListPage<ConfirmablePayment>> {
  const { store, namespace } = deps.context
  const name = waitingListName(await namespace(), scope)
  const source = sourceOf<PaymentRecord>(store, { kind: 'outgoing-payment', list: name })
  const { pagination, result } = await readPage(source, request)
  return { pagination, result: await confirmableOf(deps, result) }
}

async function confirmableOf(
  { context, hasGrants }: ConfirmingServer,
  payments: readonly PaymentRecord[],
): Promise<readonly ConfirmablePayment[]> {
  const { now } = newCall(context)
  const open = payments.flatMap((payment) => {
    const { confirmation } = payment
    const isOpen = payment.state === 'reserved' && confirmation !== undefined && now < payment.dueAt
    return isOpen ? { ...payment, confirmation } : []
  })
  if (!hasGrants) return open.map((payment) => ({ payment }))
  const grants = await loadGrants(context, open)
  return open.flatMap((payment) => {
    if (!isUnderGrant(payment)) return { payment }
    const grant = grants.get(payment.grantId)
    return grant === undefined || rightsOf(grant, now) === undefined ? [] : { payment, grant }
  })
}

async function loadGrants(
  { store }: ServiceContext,
  payments: readonly ReservedPayment[],
): Promise<ReadonlyMap<string, Grant>> {
  const ids = [...new Set(payments.flatMap(({ grantId }) => grantId ?? []))]
  const grants = new Map<string, Grant>()
  for (let i = 0; i < ids.length; i += storeBounds.loadKeys) {
    const keys = ids
      .slice(i, i + storeBounds.loadKeys)
      .map((id) => ({ kind: 'grant', id }) as const)
    for (const found of await store.load(keys)) if (found) grants.set(found.id, found as Grant)
  }
  return grants
}

/**
 * Declines what waits for its owner under a grant that has ended or no longer allows it. A pause forbids nothing: it
 * may end.
 */
async function declineForbidden(deps: ConfirmingServer, grantId: string): Promise<void> {
  const { context } = deps
  const { store, namespace, grantNamespace } = context
  const name = waitingListName(await namespace(), { grantId })
  const page = { forward: true, limit: storeBounds.listLimit }
  const { records } = await store.list({ kind: 'outgoing-payment', list: name, ...page })
  const waiting = (records as readonly PaymentRecord[]).filter(waitsForOwner).filter(isUnderGrant)
  if (waiting.length === 0) return
  const { now } = newCall(context)
  const grant = await loadGrant(context, grantId)
  const rights = grant && rightsOf(grant, now)
  for (const payment of waiting) {
    const read = readerOf(await loadRecords(store, budgetKeysOf(payment)))
    const refusal = rights
      ? refuseByGrant(payment, rights, await grantNamespace(), budgetsIn(read), now)
      : grantEnded
    if (refusal !== undefined && refusal.refusal !== 'grant_paused') {
      await decline(deps, payment, refusal)
    }
  }
}

/**
 * Charges a payment that its owner confirms to the limits of the account, as they are now, asks the host about it
 * again, and creates or declines it.
 */
async function confirm(
  deps: ConfirmingServer,
  id: string,
  resourceOwner: string,
  shown: ShownPayment,
): Promise<Confirmed> {
  const { context, hasGrants, mayPay, policy } = deps
  const endsAt = context.pacing.elapsedMs() + context.storeTimeoutMs
  const { commandId } = newCall(context)
  const key = { kind: 'outgoing-payment', id } as const
  for (;;) {
    const owned = await loadOwned(deps, id, resourceOwner)
    if (!owned.ok) return owned
    const { payment } = owned.value
    const { walletAddress, confirmation } = payment
    const isLimited = isUnderGrant(payment) || confirmation?.countsInAccountLimits === true
    const confirmedAt = context.clock.now()
    let limits: readonly SetLimit[] = []
    if (payment.state === 'reserved') {
      const account = await activeAccount(deps.walletAddresses, walletAddress)
      if (!account.ok) return account
      const charged = { ...account.value, walletAddress }
      if (isLimited && waitsForOwner(payment)) {
        limits = await limitsOfAccount(deps, charged, confirmedAt)
      }
    }
    // The host may have taken long for the account and its limits. It now gets its whole time to decide.
    const now = context.clock.now()
    const namespace = await context.grantNamespace()
    const waiting = waitingLimitsOf(payment, namespace).map(budgetKey)
    const confirmed = await context.run<ConfirmDecision>({
      reads: [key, ...waiting, ...openBudgetKeys(limits)],
      together: sharedCommit(payment, limits.length > 0),
      decide(read) {
        const command = {
          ...{ commandId, resourceOwner, shown, namespace },
          limits: countedIn(limits, read),
        }
        const found = read<PaymentRecord>(key)
        const result = confirmByOwner(found, command, budgetsIn(read), now, policy)
        return result.ok && result.outcome === 'changed'
          ? { type: 'commit', changes: changesOf(result.record, result.budgets), result }
          : { type: 'answer', result }
      },
    })
    if (!confirmed.ok) return confirmed
    const { record } = confirmed
    if (isCreated(record)) return { ok: true, payment: record, changed: false }
    if (record.state === 'declined') return declinedFor(record)
    const reserved = reservedByOther(record, commandId)
    if (reserved !== undefined) {
      if (await waitForDecision(deps, reserved, endsAt)) continue
      throw new ContentionError('another request is asking the host about the payment')
    }

    const rights = owned.value.grant && rightsOf(owned.value.grant, now)
    const { conditions } = rights ?? record.confirmation ?? {}
    const settled =
      hasGrants && isUnderGrant(record) && rights === undefined
        ? await decline(deps, record, grantEnded)
        : await settleReserved(deps, mayPay, record, { conditions })
    if (settled.ok) return { ...settled, changed: true }
    const { refusal } = settled
    if (refusal !== 'outdated' && refusal !== 'confirmation_required') {
      return { ...settled, refusal }
    }
    if (context.pacing.elapsedMs() >= endsAt) throw new ContentionError()
  }
}

async function declineAsOwner(
  deps: ConfirmingServer,
  id: string,
  resourceOwner: string,
): Promise<Declined> {
  const { clock, pacing, storeTimeoutMs } = deps.context
  const endsAt = pacing.elapsedMs() + storeTimeoutMs
  for (;;) {
    const owned = await loadOwned(deps, id, resourceOwner)
    if (!owned.ok) return owned
    const { payment } = owned.value
    const waiting = declinableByOwner(payment, clock.now())
    if (!waiting.ok) {
      return waiting.refusal === 'confirmation_declined' ? { ok: true, changed: false } : waiting
    }
    const settled = await decline(deps, waiting.value, confirmationDeclined)
    if (!settled.ok && settled.refusal === 'confirmation_declined') {
      return { ok: true, changed: true }
    }
    if (pacing.elapsedMs() >= endsAt) throw new ContentionError()
  }
}

interface OwnedPayment {
  readonly payment: PaymentRecord
  /** Absent if it is not in this store, or no longer exists. */
  readonly grant?: Grant | undefined
}

/**
 * Loads a payment whose confirmation the host has required, and refuses anybody but the owner who consented to its
 * grant, or who ordered it. The host vouches for the owner if this server knows none: the grant is remote, or needed no
 * consent, or the order named nobody.
 */
async function loadOwned(
  { context, hasGrants }: ConfirmingServer,
  id: string,
  resourceOwner: string,
): Promise<Result<OwnedPayment, Refused<'payment_unknown' | 'not_the_owner'>>> {
  const payment = await loadPublic<PaymentRecord>(context.store, 'outgoing-payment', id)
  if (payment?.confirmation === undefined) return unknownConfirmation
  const { grantId, confirmation } = payment
  const grant = hasGrants && grantId !== undefined ? await loadGrant(context, grantId) : undefined
  const owner = grantId === undefined ? confirmation.resourceOwner : grant?.consent?.resourceOwner
  return owner === undefined || owner === resourceOwner
    ? ok({ payment, grant })
    : refused('not_the_owner', 'another owner consented to the grant or ordered the payment')
}
