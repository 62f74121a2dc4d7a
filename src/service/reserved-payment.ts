import { type Refused, refused } from '../core/decision.js'
import type { Grant } from '../core/grant/record.js'
import type { GrantConditions } from '../core/limits.js'
import {
  type DeclineReason,
  type DeclineRefusal,
  isCreated,
  type OutgoingPayment,
  type OutgoingPaymentPolicy,
  type PaymentRecord,
  type ReservedPayment,
  releasedBudgets,
} from '../core/outgoing-payment/record.js'
import {
  confirmPayment,
  declinedFor,
  declinePayment,
  endAsk,
  type GrantedRights,
  type ReservationPolicy,
  refuseByGrant,
  rightsOf,
  undecided,
} from '../core/outgoing-payment/reservation.js'
import type { ListEntry } from '../core/stored.js'
import type { ActiveToken, MayPay, MayPayAnswer, RequestedPayment } from '../ports/host.js'
import { budgetKeysOf, budgetsIn, sharedCommitOf } from './budgets.js'
import { type Call, newCall, type ServiceContext } from './context.js'
import { readHostAnswer, refusedByHost } from './host-answer.js'
import { paymentListsOf } from './lists.js'
import { loadOne, type Read, recordsOf } from './load.js'
import { ContentionError, ofDependency } from './store-guard.js'
import type { Change, Decided, Write } from './write/write.js'

interface Dependencies {
  readonly context: ServiceContext
  readonly policy: OutgoingPaymentPolicy & ReservationPolicy
}

interface SettlingDependencies extends Dependencies {
  /** Whether the grants are in the store of this server. */
  readonly hasGrants: boolean
}

/** The payment that was created, or why it is declined; `outdated` if another request decides about it. */
export type Settled =
  | { readonly ok: true; readonly payment: OutgoingPayment }
  | Refused<DeclineRefusal>
  | Outdated

/** What a decision depends on has changed: it must be made again. */
export type Outdated = Refused<'outdated'>

export const outdated: Outdated = refused('outdated', 'the payment or its grant has changed')

/**
 * Asks the host about a payment that this request has reserved, and creates or declines it.
 *
 * @param mayPay absent if the host has stopped to decide about payments.
 */
export async function settleReserved(
  deps: SettlingDependencies,
  mayPay: MayPay | undefined,
  payment: ReservedPayment,
  { conditions, grantVersion }: ActiveToken,
): Promise<Settled> {
  let refusal: Refused<DeclineRefusal> | undefined
  try {
    refusal = mayPay && (await askHost(deps.context, mayPay, payment, conditions))
  } catch (error) {
    await reopen(deps.context, payment)
    throw error
  }
  if (refusal !== undefined) return decline(deps, payment, refusal)
  // If another request has reserved the payment, the grant may have been amended between.
  return confirm(deps, payment, payment.lateHoldsUntil === undefined ? grantVersion : undefined)
}

type PaymentRefusal = Extract<MayPayAnswer, { readonly ok: false }>['refusal']

const reasons: Readonly<Record<PaymentRefusal, string>> = {
  funds_insufficient: 'the account has insufficient funds',
  payment_not_allowed: 'the host does not allow the payment',
}

/** Asks the host whether a payment may be created, and waits until the end of its time. */
export async function askHost(
  { pacing, clock }: ServiceContext,
  mayPay: MayPay,
  payment: ReservedPayment,
  conditions: GrantConditions | undefined,
  isPreview?: true,
): Promise<Refused<PaymentRefusal> | undefined> {
  const { id: outgoingPaymentId, walletAddress, client, grantId, receiver } = payment
  const { receiverWalletAddress, debitAmount, receiveAmount, metadata, askUntil } = payment
  const requested: RequestedPayment = {
    outgoingPaymentId,
    walletAddress,
    client,
    grantId,
    receiver,
    ...(receiverWalletAddress && { receiverWalletAddress }),
    debitAmount,
    receiveAmount,
    ...(metadata && { metadata }),
    ...(conditions && { conditions }),
    ...(isPreview && { isPreview }),
  }
  const answered = new AbortController()
  async function late(): Promise<void> {
    await pacing.sleep(Math.max(0, askUntil - clock.now()), answered.signal)
    if (!answered.signal.aborted) throw new Error('mayPay did not answer in time')
  }
  try {
    // A copy, so that the host cannot change what is created.
    const answer = await ofDependency('mayPay', () =>
      Promise.race([late(), (async () => mayPay(structuredClone(requested)))()]),
    )
    const given = readHostAnswer('mayPay', answer)
    return given.ok ? undefined : refusedByHost('mayPay', given, reasons)
  } finally {
    answered.abort()
  }
}

/** Lets a repeat of the request ask again at once, if possible: otherwise it can when the time of the call is over. */
async function reopen(context: ServiceContext, payment: ReservedPayment): Promise<void> {
  const { now, commandId } = newCall(context)
  const key = keyOf(payment)
  const reopened = context.run<void>({
    reads: [key],
    known: { records: recordsOf('outgoing-payment', payment) },
    decide(read) {
      const isCurrent = read<PaymentRecord>(key)?.version === payment.version
      return isCurrent
        ? { changes: [{ ...key, next: endAsk(payment, commandId, now) }], result: undefined }
        : { result: undefined }
    },
  })
  await reopened.catch(() => undefined)
}

/** The grant of a reserved payment, as far as it is known. */
interface KnownGrant {
  /** Its version, which the commit guards; absent if the grants are not in this store. */
  readonly version?: number | undefined
  /** What it allows, if it was looked up because it may have changed since it allowed the payment. */
  readonly rights?: GrantedRights
}

/**
 * Creates the payment, unless its grant no longer allows it. The grant is guarded, not the token: a client may rotate
 * its token meanwhile.
 *
 * @param reservedUnder the version of the grant that allowed the payment, if it need not be looked up again.
 */
async function confirm(
  deps: SettlingDependencies,
  payment: ReservedPayment,
  reservedUnder: number | undefined,
): Promise<Settled> {
  const { context, hasGrants } = deps
  const { pacing, storeTimeoutMs } = context
  const endsAt = pacing.elapsedMs() + storeTimeoutMs
  const call = newCall(context)
  const lists = paymentListsOf(await context.namespace(), payment, call.now)
  const budgetNamespace = await context.grantNamespace()
  const isUnknown = hasGrants && reservedUnder === undefined
  let grant = isUnknown ? await lookUpGrant(context, payment, call) : { version: reservedUnder }
  for (;;) {
    if (grant === undefined) return decline(deps, payment, grantEnded)
    const settled = await context.run(
      confirmation(deps, payment, { ...call, lists, budgetNamespace }, grant),
    )
    if (settled.ok || settled.refusal !== 'grant_changed') return settled
    if (pacing.elapsedMs() >= endsAt) throw new ContentionError()
    grant = await lookUpGrant(context, payment, call)
  }
}

/** Resolves to `undefined` if the grant has ended. */
async function lookUpGrant(
  { store }: ServiceContext,
  { grantId }: ReservedPayment,
  { now }: Call,
): Promise<KnownGrant | undefined> {
  const grant = await loadOne<Grant>(store, { kind: 'grant', id: grantId })
  const rights = grant && rightsOf(grant, now)
  return grant && rights && { version: grant.version, rights }
}

interface ConfirmingCall extends Call {
  readonly lists: readonly ListEntry[]
  /** The prefix of the ids of budgets. */
  readonly budgetNamespace: string
}

/** The write that creates a reserved payment, or declines it if its grant no longer allows it. */
function confirmation(
  { hasGrants, policy }: SettlingDependencies,
  payment: ReservedPayment,
  { now, commandId, lists, budgetNamespace }: ConfirmingCall,
  { version, rights }: KnownGrant,
): Write<Settled | typeof grantChanged> {
  const key = keyOf(payment)
  const guarded = { kind: 'grant', id: payment.grantId } as const
  return {
    ...(rights
      ? { reads: [key, ...budgetKeysOf(payment)] }
      : { reads: [key], known: { records: recordsOf('outgoing-payment', payment) } }),
    together: sharedCommitOf(payment),
    ...(hasGrants &&
      version !== undefined && {
        guard: { version: { ...guarded, version }, outdated: grantChanged },
      }),
    decide(read) {
      const found = read<PaymentRecord>(key)
      if (found?.commandId === commandId) return { result: settledAs(found), isRepeat: true }
      if (found?.version !== payment.version) return { result: outdated }
      const refusal =
        rights && refuseByGrant(payment, rights, budgetNamespace, budgetsIn(read), now)
      if (refusal !== undefined) return declined(payment, refusal, commandId, now, read, policy)
      const { record, events } = confirmPayment(payment, { commandId, lists }, now, policy)
      return { changes: [{ ...key, next: record, events }], result: settledAs(record) }
    },
  }
}

const grantChanged = refused('grant_changed', 'the grant has changed')

const grantEnded = refused('token_unknown', 'the grant has ended')

/** Declines a payment that is still as it was reserved. Its budget is free again. */
async function decline(
  { context, policy }: Dependencies,
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
      if (found?.commandId === commandId) return { result: settledAs(found) }
      if (found?.version !== payment.version) return { result: outdated }
      return declined(payment, refusal, commandId, now, read, policy)
    },
  })
}

/** Declines a payment that nobody has decided about in time. */
export function expire(deps: Dependencies, payment: ReservedPayment): Promise<Settled> {
  return decline(deps, payment, undecided)
}

function declined(
  payment: ReservedPayment,
  refusal: DeclineReason,
  commandId: string,
  now: number,
  read: Read,
  policy: OutgoingPaymentPolicy,
): Decided<Settled> {
  const { record, events } = declinePayment(payment, refusal, commandId, now, policy)
  const freed = releasedBudgets(payment, record, budgetsIn(read))
  const changes: Change[] = [
    { ...keyOf(payment), next: record, events },
    ...freed.map((next) => ({ kind: 'budget', next }) as const),
  ]
  return { changes, result: settledAs(record) }
}

function settledAs(record: PaymentRecord): Settled {
  if (isCreated(record)) return { ok: true, payment: record }
  if (record.state === 'reserved') return outdated
  return declinedFor(record)
}

const keyOf = ({ id }: ReservedPayment) => ({ kind: 'outgoing-payment', id }) as const
