import type { Budget } from '../core/budget/record.js'
import { type Refused, refused } from '../core/decision.js'
import type { Grant } from '../core/grant/record.js'
import type { GrantConditions } from '../core/limits.js'
import { isUnderGrant } from '../core/outgoing-payment/authority.js'
import {
  awaitConfirmation,
  confirmationRequired,
  waitingLimitsOf,
  waitsForOwner,
} from '../core/outgoing-payment/confirmation.js'
import type { CreationPolicy } from '../core/outgoing-payment/create.js'
import {
  type GrantedRights,
  refuseByGrant,
  rightsOf,
} from '../core/outgoing-payment/granted-rights.js'
import {
  type Confirmation,
  type DeclineReason,
  type DeclineRefusal,
  isCreated,
  type OutgoingPayment,
  type OutgoingPaymentEvent,
  type PaymentRecord,
  type ReservedPayment,
  releasedBudgets,
} from '../core/outgoing-payment/record.js'
import {
  createReserved,
  declinedFor,
  declinePayment,
  endAsk,
  undecided,
} from '../core/outgoing-payment/reservation.js'
import { type ListEntry, sameJson } from '../core/stored.js'
import type { MayPay } from '../ports/host.js'
import { given } from '../util/given.js'
import { budgetKey, budgetKeysOf, budgetsIn, sharedCommitOf } from './budgets.js'
import { type Call, newCall, type ServiceContext } from './context.js'
import { paymentListsOf, waitingListsOf } from './lists.js'
import { loadOne, type Read, recordsOf } from './load.js'
import { askMayPay, type MayPayRefused } from './may-pay.js'
import { beginLooking, nextLook } from './reserved-payment-looks.js'
import { ContentionError } from './store-errors.js'
import type { Change, Decided, Write } from './write/write.js'

interface ReservingServer {
  readonly context: ServiceContext
  readonly policy: Pick<CreationPolicy, 'payments' | 'budgets'>
}

interface SettlingServer extends ReservingServer {
  /** Whether the grants are in the store of this server. */
  readonly hasGrants: boolean
}

/** The payment that was created, or why it is not; `outdated` if another request decides about it. */
export type Settled =
  | { readonly ok: true; readonly payment: OutgoingPayment }
  | Refused<DeclineRefusal | 'confirmation_required'>
  | Outdated

/** The records that a decision depends on have changed: the decision must be made again. */
export type Outdated = Refused<'outdated'>

export const outdated: Outdated = refused('outdated', 'the payment or its grant has changed')

/**
 * Asks the host about a payment that this request has reserved, or its owner has confirmed, and creates or declines it,
 * or lets it wait for its owner. Asks again if the `data` of the conditions, which only the host enforces, has changed.
 *
 * @param mayPay absent if the host no longer decides about payments.
 */
export async function settleReserved(
  deps: SettlingServer,
  mayPay: MayPay | undefined,
  payment: ReservedPayment,
  { conditions, grantVersion, order = {} }: Told,
): Promise<Settled> {
  // If another request has reserved the payment, the grant may have been amended between.
  const version = payment.lateHoldsUntil === undefined ? grantVersion : undefined
  let grant: ToldGrant = { version, conditions }
  for (;;) {
    let refusal: MayPayRefused | undefined
    try {
      refusal = mayPay && (await askMayPay(deps.context, mayPay, payment, grant.conditions))
    } catch (error) {
      await reopen(deps.context, payment)
      throw error
    }
    if (refusal === undefined) {
      const settled = await createUnderGrant(deps, payment, grant)
      if (settled.ok || settled.refusal !== 'data_changed') return settled
      grant = { version: undefined, conditions: settled.conditions }
    } else if (refusal.refusal === 'confirmation_required') {
      const { url, until } = refusal
      const remote = !deps.hasGrants && conditions !== undefined && { conditions }
      const { resourceOwner, countsInAccountLimits } = order
      const ordered = given({ resourceOwner, countsInAccountLimits })
      return requireConfirmation(deps, payment, { url, until, ...remote, ...ordered })
    } else {
      return decline(deps, payment, refusal)
    }
  }
}

/** What allows a payment, as the request knows it. */
interface Told {
  readonly conditions?: GrantConditions | undefined
  readonly grantVersion?: number
  /** The order of the owner, of a payment without a grant. */
  readonly order?: Pick<Confirmation, 'resourceOwner' | 'countsInAccountLimits'>
}

/** The grant of a payment as it was when the host was asked. */
interface ToldGrant {
  /** The version that allowed the payment; `undefined` if the grant has to be looked up again. */
  readonly version: number | undefined
  readonly conditions: GrantConditions | undefined
}

/** Lets a repeat of the request ask again at once, if possible: otherwise it can when the time of the call is over. */
async function reopen(context: ServiceContext, payment: ReservedPayment): Promise<void> {
  const { now, commandId } = newCall(context)
  const key = keyOf(payment)
  const reopened = context.run<void>({
    reads: [key],
    basis: { type: 'loaded', records: recordsOf('outgoing-payment', payment) },
    decide(read) {
      return isAsRead(read(key), payment)
        ? {
            type: 'commit',
            changes: [{ ...key, next: endAsk(payment, commandId, now) }],
            result: undefined,
          }
        : { type: 'answer', result: undefined }
    },
  })
  await reopened.catch(() => undefined)
}

/**
 * Lets a payment that is still as it was reserved wait for its owner, and declines it if too many payments of its grant
 * wait already.
 */
async function requireConfirmation(
  { context, policy }: ReservingServer,
  payment: ReservedPayment,
  confirmation: Confirmation,
): Promise<Settled> {
  const { now, commandId } = newCall(context)
  const key = keyOf(payment)
  const namespace = await context.grantNamespace()
  const lists = waitingListsOf(await context.namespace(), payment, now)
  const waiting = waitingLimitsOf(payment, namespace).map(budgetKey)
  return context.run<Settled>({
    reads: [key, ...waiting, ...budgetKeysOf(payment)],
    together: sharedCommitOf(payment),
    decide(read) {
      const found = read<PaymentRecord>(key)
      if (found?.commandId === commandId) return { type: 'repeat', result: settledAs(found) }
      if (!isAsRead(found, payment)) return { type: 'answer', result: outdated }
      const command = { commandId, namespace, confirmation, lists }
      const waits = awaitConfirmation(payment, command, budgetsIn(read), now, policy.budgets)
      if (!waits.ok) return declined(payment, waits, commandId, now, read, policy)
      const { record, budgets } = waits.value
      return { type: 'commit', changes: changesOf(record, budgets), result: settledAs(record) }
    },
  })
}

/** The grant of a reserved payment, as far as it is known. */
interface KnownGrant {
  /** Its version, which the commit guards; absent if the grants are not in this store. */
  readonly version?: number | undefined
  /** The access of the grant, if the grant was looked up because it may have changed since it allowed the payment. */
  readonly rights?: GrantedRights
}

/** The host has to be asked again, with the conditions that apply now. */
interface DataChanged extends Refused<'data_changed'> {
  readonly conditions: GrantConditions | undefined
}

/**
 * Creates the payment, unless its grant no longer allows it. The grant is guarded, not the token: a client may rotate
 * its token meanwhile.
 */
async function createUnderGrant(
  deps: SettlingServer,
  payment: ReservedPayment,
  told: ToldGrant,
): Promise<Settled | DataChanged> {
  const { context, hasGrants } = deps
  const { pacing, storeTimeoutMs } = context
  const endsAt = pacing.elapsedMs() + storeTimeoutMs
  const call = newCall(context)
  const lists = paymentListsOf(await context.namespace(), payment, call.now)
  const budgetNamespace = await context.grantNamespace()
  const isUnknown = hasGrants && isUnderGrant(payment) && told.version === undefined
  let grant: KnownGrant | undefined = isUnknown ? await lookUpGrant(context, payment, call) : told
  for (;;) {
    if (grant === undefined) return decline(deps, payment, grantEnded)
    if (grant.rights && !sameJson(grant.rights.conditions?.data, told.conditions?.data)) {
      const { conditions } = grant.rights
      return { ...refused('data_changed', 'the data of the conditions has changed'), conditions }
    }
    const settled = await context.run(
      settlementWrite(deps, payment, { ...call, lists, budgetNamespace }, grant),
    )
    if (settled.ok || settled.refusal !== 'grant_changed') return settled
    if (pacing.elapsedMs() >= endsAt) throw new ContentionError()
    grant = await lookUpGrant(context, payment, call)
  }
}

/** Resolves to `undefined` if the grant has ended. A payment that its owner ordered has none, which never ends. */
async function lookUpGrant(
  { store }: ServiceContext,
  payment: ReservedPayment,
  { now }: Call,
): Promise<KnownGrant | undefined> {
  if (!isUnderGrant(payment)) return {}
  const { grantId } = payment
  const grant = await loadOne<Grant>(store, { kind: 'grant', id: grantId })
  const rights = grant && rightsOf(grant, now)
  return grant && rights && { version: grant.version, rights }
}

interface CreatingCall extends Call {
  readonly lists: readonly ListEntry[]
  /** The prefix of the ids of budgets. */
  readonly budgetNamespace: string
}

/** The write that creates a reserved payment, or declines it if its grant no longer allows it. */
function settlementWrite(
  { hasGrants, policy }: SettlingServer,
  payment: ReservedPayment,
  { now, commandId, lists, budgetNamespace }: CreatingCall,
  { version, rights }: KnownGrant,
): Write<Settled | typeof grantChanged> {
  const key = keyOf(payment)
  const underGrant = isUnderGrant(payment) ? payment : undefined
  return {
    ...(rights
      ? { reads: [key, ...budgetKeysOf(payment)] }
      : {
          reads: [key],
          basis: { type: 'loaded', records: recordsOf('outgoing-payment', payment) },
        }),
    together: sharedCommitOf(payment),
    ...(hasGrants &&
      underGrant !== undefined &&
      version !== undefined && {
        guard: {
          record: { kind: 'grant', id: underGrant.grantId, version },
          ifChanged: grantChanged,
        },
      }),
    decide(read) {
      const found = read<PaymentRecord>(key)
      if (found?.commandId === commandId) return { type: 'repeat', result: settledAs(found) }
      if (!isAsRead(found, payment)) return { type: 'answer', result: outdated }
      const refusal =
        rights &&
        underGrant &&
        refuseByGrant(underGrant, rights, budgetNamespace, budgetsIn(read), now)
      if (refusal !== undefined) return declined(payment, refusal, commandId, now, read, policy)
      const { record, events } = createReserved(payment, { commandId, lists }, now, policy.payments)
      return {
        type: 'commit',
        changes: [{ ...key, next: record, events }],
        result: settledAs(record),
      }
    },
  }
}

const grantChanged = refused('grant_changed', 'the grant has changed')

export const grantEnded = refused('grant_ended', 'the grant of the payment has ended')

/** Declines a payment that is still as it was reserved. Its budget is free again. */
export async function decline(
  { context, policy }: ReservingServer,
  payment: ReservedPayment,
  refusal: DeclineReason,
): Promise<Settled> {
  const { now, commandId } = newCall(context)
  const key = keyOf(payment)
  return context.run<Settled>({
    reads: [key, ...budgetKeysOf(payment)],
    together: sharedCommitOf(payment),
    decide(read) {
      const found = read<PaymentRecord>(key)
      if (found?.commandId === commandId) return { type: 'repeat', result: settledAs(found) }
      if (!isAsRead(found, payment)) return { type: 'answer', result: outdated }
      return declined(payment, refusal, commandId, now, read, policy)
    },
  })
}

/** Declines a payment that nobody has decided about in time. */
export function declineUndecided(
  deps: ReservingServer,
  payment: ReservedPayment,
): Promise<Settled> {
  return decline(deps, payment, undecided(payment))
}

/**
 * Declines a payment that waits for its owner if its grant has ended, because nobody can confirm it. Returns whether
 * the grant has ended. A grant of another server counts as live.
 */
export async function declineIfGrantEnded(
  deps: SettlingServer,
  payment: ReservedPayment,
): Promise<boolean> {
  const { context, hasGrants } = deps
  if (!hasGrants) return false
  if ((await lookUpGrant(context, payment, newCall(context))) !== undefined) return false
  await decline(deps, payment, grantEnded)
  return true
}

/**
 * Waits until another request has decided about a payment, or the time of its call is over. Returns false if this
 * request may wait no longer.
 */
export async function waitForDecision(
  deps: ReservingServer,
  reserved: ReservedPayment,
  endsAt: number,
): Promise<boolean> {
  const { pacing, clock } = deps.context
  const { askUntil, dueAt } = reserved
  const isOver = () => pacing.elapsedMs() >= endsAt
  if (isOver()) return false
  if (clock.now() >= dueAt) {
    await declineUndecided(deps, reserved)
    return true
  }
  const end = beginLooking(deps.context, reserved)
  try {
    for (;;) {
      const isDecided = await nextLook(deps.context, reserved)
      if (isDecided || clock.now() >= askUntil || isOver()) return true
    }
  } finally {
    end()
  }
}

function declined(
  payment: ReservedPayment,
  refusal: DeclineReason,
  commandId: string,
  now: number,
  read: Read,
  policy: ReservingServer['policy'],
): Decided<Settled> {
  const { record, events } = declinePayment(payment, refusal, commandId, now, policy.payments)
  const freed = releasedBudgets(payment, record, budgetsIn(read))
  return { type: 'commit', changes: changesOf(record, freed, events), result: settledAs(record) }
}

export function changesOf(
  next: ReservedPayment,
  budgets: readonly Budget[],
  events: readonly OutgoingPaymentEvent[] = [],
): readonly Change[] {
  return [
    { kind: 'outgoing-payment', next, events },
    ...budgets.map((budget) => ({ kind: 'budget', next: budget }) as const),
  ]
}

function settledAs(record: PaymentRecord): Settled {
  if (isCreated(record)) return { ok: true, payment: record }
  if (waitsForOwner(record)) return confirmationRequired(record.confirmation)
  return record.state === 'reserved' ? outdated : declinedFor(record)
}

/**
 * Whether a payment is still as it was read. Another write of the same commit may have changed it: its version is then
 * the one in the store, and its command is that of the other write.
 */
function isAsRead(found: PaymentRecord | undefined, { version, commandId }: ReservedPayment) {
  return found?.version === version && found.commandId === commandId
}

const keyOf = ({ id }: ReservedPayment) => ({ kind: 'outgoing-payment', id }) as const
