import type { GrantedItem } from '../core/access.js'
import {
  type Budget,
  type BudgetPolicy,
  type BudgetStatus,
  itemStatus,
  payingItems,
  release,
  type SpentAmounts,
  totalSpent,
} from '../core/budget.js'
import { refused } from '../core/decision.js'
import type { Instant } from '../core/instant.js'
import {
  heldBy,
  type OutgoingPayment,
  type OutgoingPaymentPolicy,
} from '../core/outgoing-payment/record.js'
import {
  type CancelPayment,
  decideOutgoingPayment,
  type FailPayment,
  type OutgoingPaymentCommand,
  type OutgoingPaymentDecision,
  type OutgoingPaymentRefusals,
  type ReportSent,
} from '../core/outgoing-payment.js'
import type { QuotePolicy } from '../core/quote.js'
import type { ActiveToken } from '../ports/introspect.js'
import type { RecordChange } from '../ports/store.js'
import { changeOf } from './mechanism/changes.js'
import { type Call, newCall, type ServiceContext } from './mechanism/context.js'
import { changesOf } from './mechanism/events.js'
import { loadAll } from './mechanism/load-all.js'
import { createPaymentLists } from './mechanism/pages.js'
import { loadOwn } from './mechanism/records.js'
import { removeRetired, type SweptKind } from './mechanism/sweeps.js'
import { type Attempt, transact } from './mechanism/transact.js'

/** The policy for outgoing payments, quotes and budgets. */
export interface SpendingPolicy {
  readonly payments: OutgoingPaymentPolicy
  readonly quotes: QuotePolicy
  readonly budgets: BudgetPolicy
}

/** The members of a command that the host supplies. */
type Said<Command> = Omit<Command, 'type' | 'commandId'>

type Command<Type> = Extract<OutgoingPaymentCommand, { readonly type: Type }>

/** The result of a command of the host. */
export type OutgoingPaymentResult<Type extends keyof OutgoingPaymentRefusals> =
  | {
      readonly ok: true
      readonly payment: OutgoingPayment
      /** Whether this call changed the payment. False for a report that was already recorded. */
      readonly changed: boolean
    }
  | {
      readonly ok: false
      readonly refusal: OutgoingPaymentRefusals[Type] | 'payment_unknown'
      readonly reason: string
    }

export type OutgoingPayments = ReturnType<typeof createOutgoingPayments>

interface Dependencies {
  readonly context: ServiceContext
  readonly policy: OutgoingPaymentPolicy
}

/** Creates the operations of the host on outgoing payments, and the sweep of due payments. */
export function createOutgoingPayments(context: ServiceContext, { payments }: SpendingPolicy) {
  const deps = { context, policy: payments }
  return {
    load: (id: string) => loadPayment(context, id),
    ...createPaymentLists<OutgoingPayment>(context, 'outgoing-payment'),
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

function loadPayment(context: ServiceContext, id: string): Promise<OutgoingPayment | undefined> {
  return loadOwn(context, 'outgoing-payment', id)
}

async function loadBudget({ store }: ServiceContext, id: string): Promise<Budget | undefined> {
  return (await store.load('budget', id)) as Budget | undefined
}

/** The budget of a granted item for outgoing payments. */
interface ItemStatus extends BudgetStatus {
  readonly item: GrantedItem
}

/** Resolves to the current budget of each item for outgoing payments under a grant. */
async function budgetsUnder(
  context: ServiceContext,
  { grantId, access }: Pick<ActiveToken, 'grantId' | 'access'>,
  now: Instant,
): Promise<readonly ItemStatus[]> {
  const namespace = await context.grantNamespace()
  const items = payingItems(access, { namespace, grantId }, now)
  const ids = items.flatMap(({ open }) => open?.budgetId ?? [])
  const found = await loadAll(
    context.store,
    ids.map((id) => ({ kind: 'budget', id })),
  )
  return items.map((each) => {
    const budget = each.open && found[ids.indexOf(each.open.budgetId)]
    return { item: each.item, ...itemStatus(each, budget as Budget | undefined) }
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

/** Runs a command. One commit changes the payment and returns unspent amounts to its budget. */
async function run<Type extends keyof OutgoingPaymentRefusals>(
  deps: Dependencies,
  id: string,
  said: Omit<Command<Type>, 'commandId'>,
): Promise<OutgoingPaymentResult<Type>> {
  const { context } = deps
  const call = newCall(context)
  const command = { ...said, commandId: call.commandId } as Command<Type>
  const reload = () => loadFor(context, id, command)
  const loaded = await reload()
  const result = await transact<Loaded, Decided<Type>>(context, {
    loaded,
    reload,
    contended: loaded.payment && `grant ${loaded.payment.grantId}`,
    decide: (loaded) => decide(deps, loaded, command, call),
  })
  return !result.ok
    ? { ok: false, refusal: result.refusal, reason: result.reason }
    : {
        ok: true,
        payment: result.record,
        // If a commit's response was lost, the reloaded record has this command's id.
        changed: result.outcome === 'changed' || result.record.commandId === call.commandId,
      }
}

/** Loads a payment with its budget; `begin` does not change the amount that the payment holds. */
async function loadFor(
  context: ServiceContext,
  id: string,
  { type }: Pick<OutgoingPaymentCommand, 'type'>,
): Promise<Loaded> {
  const payment = await loadPayment(context, id)
  if (payment === undefined) return {}
  return type === 'begin'
    ? { payment }
    : { payment, budget: await loadBudget(context, payment.budgetId) }
}

type Decided<Type extends keyof OutgoingPaymentRefusals> =
  | OutgoingPaymentDecision<Type>
  | typeof unknownPayment

function decide<Type extends keyof OutgoingPaymentRefusals>(
  { context, policy }: Dependencies,
  { payment, budget }: Loaded,
  command: Command<Type>,
  { now, commandId }: Call,
): Attempt<Decided<Type>> {
  if (payment === undefined) return { changes: [], result: unknownPayment, refused: true }
  const decision = decideOutgoingPayment<Type>(payment, command, now, policy)
  if (decision.outcome !== 'changed') {
    return { changes: [], result: decision, refused: !decision.ok }
  }
  const { record, events } = decision
  const changes = [
    ...changesOf(context, 'outgoing-payment', payment, record, events),
    ...givenBack(payment, record, budget, commandId),
  ]
  return { changes, result: decision, refused: false }
}

/** Fails payments whose hold has expired, and removes payments past their retention. */
function sweptPayments(deps: Dependencies): SweptKind {
  return {
    kind: 'outgoing-payment',
    async sweep(record, now) {
      const payment = record as OutgoingPayment
      if (payment.state !== 'created') {
        return removeRetired(deps.context, 'outgoing-payment', payment, now)
      }
      const lapse = await run<'lapse'>(deps, payment.id, { type: 'lapse' })
      return lapse.ok ? 'lapsed' : undefined
    },
  }
}

interface Loaded {
  readonly payment?: OutgoingPayment
  readonly budget?: Budget | undefined
}

const unknownPayment = refused('payment_unknown', 'the outgoing payment does not exist')

/** Returns the change that releases unsent amounts to the budget: none while the payment can be sent. */
function givenBack(
  before: OutgoingPayment,
  after: OutgoingPayment,
  budget: Budget | undefined,
  commandId: string,
): readonly RecordChange[] {
  const next = budget && release(budget, heldBy(before), heldBy(after), commandId)
  return next === undefined ? [] : [changeOf('budget', budget, next)]
}
