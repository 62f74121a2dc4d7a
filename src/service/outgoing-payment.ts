import type { GrantedItem } from '../core/access.js'
import { payingItems } from '../core/budget/paying-items.js'
import { type Budget, type BudgetPolicy, keep, type SpentAmounts } from '../core/budget/record.js'
import { totalSpent } from '../core/budget/spent.js'
import { type BudgetStatus, itemStatus } from '../core/budget/status.js'
import { type Decision, type HostResult, hasChanged, refusedCall } from '../core/decision.js'
import type { Instant } from '../core/instant.js'
import type { CreationPolicy } from '../core/outgoing-payment/create.js'
import {
  type DecideDoubt,
  type DecideDoubtRefusal,
  decideDoubt,
} from '../core/outgoing-payment/doubt.js'
import {
  isCreated,
  type OutgoingPayment,
  type PaymentRecord,
  releasedBudgets,
} from '../core/outgoing-payment/record.js'
import {
  type CancelPayment,
  decideOutgoingPayment,
  type FailPayment,
  type OutgoingPaymentCommand,
  type OutgoingPaymentRefusals,
  type ReportSent,
} from '../core/outgoing-payment.js'
import type { QuotePolicy } from '../core/quote.js'
import type { ActiveToken } from '../ports/host.js'
import type { RecordKey } from '../ports/store.js'
import { isUuid } from '../protocol/uuid.js'
import { budgetKeysOf, budgetsIn, sharedCommitOf } from './budgets.js'
import { type Call, newCall, type ServiceContext } from './context.js'
import type { DomainEvent } from './event-record.js'
import {
  type AddressScope,
  createPaymentLists,
  type DoubtScope,
  type GrantScope,
  type PageRequest,
} from './lists.js'
import { loadGrant, loadOne, loadPublic, loadRecords, nameOf, readerOf } from './load.js'
import { createDoubts, doubtChanges, doubtKey } from './payment-doubts.js'
import { declineUndecided } from './reserved-payment.js'
import type { SeenBudgets } from './seen-budgets.js'
import { ifRetired, postpone, type SweptKind } from './sweep.js'

export interface SpendingPolicy extends CreationPolicy {
  readonly quotes: QuotePolicy
}

/** The members of a command that the host supplies. */
type Said<Command> = Omit<Command, 'type' | 'commandId'>

type Command<Type> = Extract<OutgoingPaymentCommand, { readonly type: Type }>

export type OutgoingPayments = ReturnType<typeof createOutgoingPayments>

/** By how much a command has changed what a payment has sent and delivered: negative for a refund. */
export interface Movement {
  readonly debit: bigint
  readonly credit: bigint
}

export type CarriedOut<Refusal extends string> = HostResult<
  { readonly payment: OutgoingPayment } & Movement,
  Refusal | 'payment_unknown'
>

const noMovement: Movement = { debit: 0n, credit: 0n }

function movementBetween(before: OutgoingPayment, after: OutgoingPayment): Movement {
  return {
    debit: BigInt(after.sent) - BigInt(before.sent),
    credit: BigInt(after.delivered) - BigInt(before.delivered),
  }
}

interface PayoutServer {
  readonly context: ServiceContext
  readonly policy: Pick<CreationPolicy, 'payments' | 'budgets'>
  readonly seenBudgets: SeenBudgets
}

/** Creates the operations of the host on outgoing payments, and the sweep of due payments. */
export function createOutgoingPayments(
  context: ServiceContext,
  policy: Pick<CreationPolicy, 'payments' | 'budgets'>,
  seenBudgets: SeenBudgets,
) {
  const deps = { context, policy, seenBudgets }
  const lists = createPaymentLists<OutgoingPayment>(context, 'outgoing-payment')
  const doubts = createDoubts(context)
  return {
    ...lists,
    load: (id: string) => loadPayment(context, id),
    list: (scope: PaymentScope, page: PageRequest) =>
      isOfDoubt(scope) ? doubts.list(page) : lists.list(scope, page),
    iterate: <View>(scope: PaymentScope, seen: (payment: OutgoingPayment) => View) =>
      isOfDoubt(scope) ? doubts.iterate(seen) : lists.iterate(scope, seen),
    doubt: (limit: number) => doubts.summary(limit),
    decideDoubt: (id: string, said: Omit<DecideDoubt, 'commandId'>) =>
      carryOut<DecideDoubtRefusal>(deps, id, 'decides doubt', (payment, call) =>
        decideDoubt(payment, { ...said, commandId: call.commandId }, call.now, policy.payments),
      ),
    loadGrant: (id: string) => loadGrant(context, id),
    budgetsUnder: (grant: Pick<ActiveToken, 'grantId' | 'access'>, now: Instant) =>
      budgetsUnder(context, grant, now),
    spentUnder: (token: ActiveToken, now: Instant) => spentUnder(context, token, now),
    begin: (id: string) => run<'begin'>(deps, id, { type: 'begin' }),
    reportSent: (id: string, said: Said<ReportSent>) =>
      run<'report-sent'>(deps, id, { ...said, type: 'report-sent' }),
    fail: (id: string, said: Said<FailPayment>) => run<'fail'>(deps, id, { ...said, type: 'fail' }),
    cancel: (id: string, said: Said<CancelPayment>) =>
      run<'cancel'>(deps, id, { ...said, type: 'cancel' }),
    swept: sweptPayments(deps),
  }
}

/** Resolves to `undefined` also for a payment that the host has not allowed. */
async function loadPayment(
  context: ServiceContext,
  id: string,
): Promise<OutgoingPayment | undefined> {
  const payment = await loadPublic<PaymentRecord>(context.store, 'outgoing-payment', id)
  return payment && isCreated(payment) ? payment : undefined
}

interface ItemStatus extends BudgetStatus {
  readonly item: GrantedItem
}

async function budgetsUnder(
  context: ServiceContext,
  { grantId, access }: Pick<ActiveToken, 'grantId' | 'access'>,
  now: Instant,
): Promise<readonly ItemStatus[]> {
  const namespace = await context.grantNamespace()
  const items = payingItems(access, { namespace, grantId }, now)
  const keyOf = (id: string) => ({ kind: 'budget', id }) as const
  const keys = items.flatMap(({ open }) => (open ? [keyOf(open.budgetId)] : []))
  const read = readerOf(await loadRecords(context.store, keys))
  return items.map((each) => {
    const budget = each.open && read<Budget>(keyOf(each.open.budgetId))
    return { item: each.item, ...itemStatus(each, budget) }
  })
}

/**
 * Resolves to the amounts spent under a token's grant in the windows that are open now, summed over all its
 * access items for outgoing payments.
 */
async function spentUnder(
  context: ServiceContext,
  token: ActiveToken,
  now: Instant,
): Promise<SpentAmounts> {
  const budgets = await budgetsUnder(context, token, now)
  return totalSpent(budgets.map(({ spent }) => spent))
}

type PaymentScope = AddressScope | GrantScope | DoubtScope

function isOfDoubt(scope: PaymentScope): scope is DoubtScope {
  return 'inDoubt' in scope
}

function run<Type extends keyof OutgoingPaymentRefusals>(
  deps: PayoutServer,
  id: string,
  said: Omit<Command<Type>, 'commandId'>,
): Promise<CarriedOut<OutgoingPaymentRefusals[Type]>> {
  const { payments } = deps.policy
  const reads = said.type === 'begin' ? 'payment' : 'inDoubt' in said ? 'decides doubt' : 'budgets'
  return carryOut<OutgoingPaymentRefusals[Type]>(deps, id, reads, (payment, { now, commandId }) =>
    decideOutgoingPayment<Type>(payment, { ...said, commandId } as Command<Type>, now, payments),
  )
}

/**
 * What a command reads beside the payment: nothing, because it does not change the amount that the payment holds; its
 * budgets; or also the mark of its doubt. The mark is read in any case if the payment is in doubt.
 */
type Reads = 'payment' | 'budgets' | 'decides doubt'

/**
 * Decides about a payment. One commit changes the payment, returns unspent amounts to its budgets, and keeps the mark
 * of its doubt.
 */
async function carryOut<Refusal extends string>(
  deps: PayoutServer,
  id: string,
  reads: Reads,
  decideOn: (
    payment: OutgoingPayment,
    call: Call,
  ) => Decision<OutgoingPayment, DomainEvent, Refusal>,
): Promise<CarriedOut<Refusal>> {
  const { context } = deps
  const call = newCall(context)
  const namespace = await context.namespace()
  const mark = doubtKey(namespace, id)
  let readsMark = reads === 'decides doubt'
  // Of the last attempt to commit: if the answer to it is lost, the record alone no longer tells.
  let moved = noMovement
  for (;;) {
    const found = await loadToChange(deps, id, reads !== 'payment', readsMark ? [mark] : [])
    if (found === undefined) return unknownPayment
    const { records, together, paymentKey, budgetKeys } = found
    const result = await context.run<CarriedOut<Refusal> | undefined>({
      reads: [paymentKey, ...budgetKeys, ...(readsMark ? [mark] : [])],
      basis: { type: 'loaded', records },
      together,
      decide(read) {
        const payment = read<OutgoingPayment>(paymentKey)
        if (payment === undefined) return { type: 'answer', result: unknownPayment }
        if (payment.inDoubt !== undefined && !readsMark)
          return { type: 'answer', result: undefined }
        const decision = decideOn(payment, call)
        if (!decision.ok) return { type: 'answer', result: refusedCall(decision) }
        const { record } = decision
        if (decision.outcome === 'changed') moved = movementBetween(payment, record)
        const changed = hasChanged(decision, call.commandId)
        const movement = changed ? moved : noMovement
        const result = { ok: true, payment: record, changed, ...movement } as const
        if (decision.outcome === 'unchanged') return { type: 'answer', result }
        const released = releasedBudgets(payment, record, budgetsIn(read))
        return {
          type: 'commit',
          changes: [
            { kind: 'outgoing-payment', next: record, events: decision.events },
            ...released.map((next) => ({ kind: 'budget', next }) as const),
            ...(readsMark ? doubtChanges(namespace, record, read) : []),
          ],
          result,
        }
      },
    })
    if (result !== undefined) return result
    readsMark = true
  }
}

/**
 * Loads a payment and, if they are read, its budgets: in one call of the store, if this process has created or changed
 * the payment before. Resolves to `undefined` also for a payment that the host has not allowed.
 *
 * @param readsBudgets false for `begin`, which does not change the amount that the payment holds.
 */
async function loadToChange(
  { context, seenBudgets }: PayoutServer,
  id: string,
  readsBudgets: boolean,
  others: readonly RecordKey[],
) {
  const { store } = context
  if (!isUuid(id)) return undefined
  const paymentKey = { kind: 'outgoing-payment', id } as const
  const guessed = readsBudgets ? (seenBudgets.guess(id) ?? []) : []
  const records = await loadRecords(store, [paymentKey, ...guessed, ...others])
  const payment = readerOf(records)<PaymentRecord>(paymentKey)
  if (payment === undefined || !isCreated(payment)) return undefined
  const counting = budgetKeysOf(payment)
  seenBudgets.see(id, counting)
  const budgetKeys = readsBudgets ? counting : []
  const missing = budgetKeys.filter((key) => !records.has(nameOf(key)))
  return {
    paymentKey,
    budgetKeys,
    together: sharedCommitOf(payment),
    records: new Map([...records, ...(await loadRecords(store, missing))]),
  }
}

/**
 * Declines payments that were reserved and not decided about, fails payments whose hold has expired, and removes
 * payments past their retention.
 */
function sweptPayments(deps: PayoutServer): SweptKind {
  return {
    kind: 'outgoing-payment',
    async sweep(record, now) {
      const payment = record as PaymentRecord
      if (payment.state === 'reserved') {
        const declined = await declineUndecided(deps, payment)
        return declined.ok || declined.refusal === 'outdated' ? undefined : 'lapsed'
      }
      if (payment.state !== 'created') {
        return ifRetired(payment, now)
      }
      const lapse = await run<'lapse'>(deps, payment.id, { type: 'lapse' })
      return lapse.ok ? 'lapsed' : undefined
    },
  }
}

const unknownPayment = {
  ok: false,
  refusal: 'payment_unknown',
  reason: 'the outgoing payment does not exist',
} as const

/**
 * Sweeps budgets: removes budgets past their retention, and lifetime budgets of grants that no longer exist. No later
 * request can read them.
 *
 * @param hasGrants whether the grants are in this store. If not, all lifetime budgets are kept.
 */
export function sweptBudgets(
  context: ServiceContext,
  hasGrants: boolean,
  policy: BudgetPolicy,
): SweptKind {
  const { store } = context

  async function hasNoGrant({ grantId }: Budget): Promise<boolean> {
    if (!hasGrants || grantId === undefined) return false
    return (await loadOne(store, { kind: 'grant', id: grantId })) === undefined
  }

  return {
    kind: 'budget',
    namespace: context.grantNamespace,
    async sweep(record, now) {
      const budget = record as Budget
      if (budget.retainUntil !== undefined) return ifRetired(budget, now)
      if (await hasNoGrant(budget)) return 'retired'
      return postpone(context, 'budget', budget, (commandId) =>
        keep(budget, commandId, now, policy),
      )
    },
  }
}
