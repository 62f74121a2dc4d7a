import type { Amount } from '../core/amount.js'
import { type Budget, type BudgetPolicy, budgetId, release, spentAmount } from '../core/budget.js'
import { type Instant, refused } from '../core/decision.js'
import { allowanceAt, type CountedAmount } from '../core/limits.js'
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
  type SettlePayment,
} from '../core/outgoing-payment.js'
import type { QuotePolicy } from '../core/quote.js'
import type { ActiveToken } from '../ports/introspect.js'
import type { Change } from '../ports/store.js'
import { newCall, type ServiceContext } from './context.js'
import { changesOf } from './events.js'
import { type ListScope, listName, type PageOf, type PageRequest, readPage } from './pages.js'
import { loadOwn } from './records.js'
import { settleOrRemove } from './sweeps.js'
import { transact } from './transact.js'

/** What the host decides about payments that go out. */
export interface SpendingPolicy {
  readonly payments: OutgoingPaymentPolicy
  readonly quotes: QuotePolicy
  readonly budgets: BudgetPolicy
}

/** What the host says with a command: all of it but the id that the library gives it. */
type Said<Command> = Omit<Command, 'type' | 'by'>

type Command<Type> = Extract<OutgoingPaymentCommand, { readonly type: Type }>

/** What became of a command of the host. */
export type OutgoingPaymentResult<Type extends keyof OutgoingPaymentRefusals> =
  | { readonly ok: true; readonly payment: OutgoingPayment }
  | {
      readonly ok: false
      readonly refusal: OutgoingPaymentRefusals[Type] | 'payment_unknown'
      readonly reason: string
    }

/** What has been sent and reserved, by the amount that is limited. */
export type SpentAmounts = { readonly [Counts in CountedAmount]?: Amount }

export type OutgoingPayments = ReturnType<typeof createOutgoingPayments>

/** What the host does with outgoing payments, and what time does to them. */
export function createOutgoingPayments(context: ServiceContext, policy: SpendingPolicy) {
  const { store } = context

  const load = (id: string) => loadOwn<OutgoingPayment>(context, 'outgoing-payment', id)

  async function loadBudget(id: string): Promise<Budget | undefined> {
    return (await store.load('budget', id)) as Budget | undefined
  }

  /** The budget that a payment is counted in, if any of its amounts is limited. */
  async function budgetOf({ budget }: OutgoingPayment): Promise<Budget | undefined> {
    return budget && loadBudget(budget.id)
  }

  async function list(scope: ListScope, page: PageRequest): Promise<PageOf<OutgoingPayment>> {
    const by = listName(await context.namespace(), scope)
    return readPage(store, { kind: 'outgoing-payment', by }, page)
  }

  /**
   * What has been spent under a token's grant in the windows that are open now: of the first granted item that
   * limits what is debited, and of the first that limits what is received.
   */
  async function spentUnder({ grantId, access }: ActiveToken, now: Instant): Promise<SpentAmounts> {
    const namespace = await context.namespace()
    const spent: { [Counts in CountedAmount]?: Amount } = {}
    for (const item of access) {
      const allowance = item.type === 'outgoing-payment' ? allowanceAt(item, now) : undefined
      if (allowance === undefined || allowance === 'closed' || spent[allowance.counts]) continue
      const id = budgetId({ namespace, grantId }, item, allowance)
      spent[allowance.counts] = spentAmount(await loadBudget(id), allowance)
    }
    return spent
  }

  async function loadBoth(id: string): Promise<Loaded> {
    const payment = await load(id)
    return payment === undefined ? {} : { payment, budget: await budgetOf(payment) }
  }

  /** For what changes nothing of what a payment holds. */
  async function loadAlone(id: string): Promise<Loaded> {
    const payment = await load(id)
    return payment === undefined ? {} : { payment }
  }

  /** Carries out a command: the payment and what it gives back to its budget change together. */
  async function run<Type extends keyof OutgoingPaymentRefusals>(
    id: string,
    say: (by: string) => Command<Type>,
    loadNow: (id: string) => Promise<Loaded> = loadBoth,
  ): Promise<OutgoingPaymentResult<Type>> {
    const { now, by } = newCall(context)
    const command = say(by)
    const reload = () => loadNow(id)
    const loaded = await reload()
    const result = await transact<Loaded, OutgoingPaymentDecision<Type> | typeof unknownPayment>(
      context,
      {
        loaded,
        reload,
        contended: loaded.payment && `grant ${loaded.payment.grantId}`,
        decide({ payment, budget }) {
          if (payment === undefined) return { changes: [], result: unknownPayment, refused: true }
          const decision = decideOutgoingPayment<Type>(payment, command, now, policy.payments)
          if (decision.outcome !== 'changed') {
            return { changes: [], result: decision, refused: decision.outcome === 'refused' }
          }
          const { record, events } = decision
          const changes = [
            ...changesOf(context, 'outgoing-payment', record, events),
            ...givenBack(payment, record, budget, by),
          ]
          return { changes, result: decision, refused: false }
        },
      },
    )
    return result.outcome === 'refused'
      ? { ok: false, refusal: result.refusal, reason: result.reason }
      : { ok: true, payment: result.record }
  }

  /** Settles what is due: payments that nobody began in time fail, and those past their retention go. */
  async function settleDue(limit: number): Promise<{ lapsed: number; removed: number }> {
    const { settled: lapsed, removed } = await settleOrRemove<OutgoingPayment>(
      context,
      'outgoing-payment',
      limit,
      ({ state }) => state === 'created',
      async ({ id }) => (await lapse(id)).ok,
    )
    return { lapsed, removed }
  }

  const lapse = (id: string) => run<'lapse'>(id, (by) => ({ type: 'lapse', by }))

  return {
    load,
    list,
    loadBudget,
    budgetOf,
    spentUnder,
    begin: (id: string) => run<'begin'>(id, (by) => ({ type: 'begin', by }), loadAlone),
    settle: (id: string, said: Said<SettlePayment>) =>
      run<'settle'>(id, (by) => ({ ...said, type: 'settle', by })),
    fail: (id: string, said: Said<FailPayment>) =>
      run<'fail'>(id, (by) => ({ ...said, type: 'fail', by })),
    cancel: (id: string, said: Said<CancelPayment>) =>
      run<'cancel'>(id, (by) => ({ ...said, type: 'cancel', by })),
    settleDue,
  }
}

interface Loaded {
  readonly payment?: OutgoingPayment
  readonly budget?: Budget | undefined
}

const unknownPayment = refused('payment_unknown', 'there is no such outgoing payment')

/** Nothing is given back while the payment may still be sent, nor of what has been sent. */
function givenBack(
  before: OutgoingPayment,
  after: OutgoingPayment,
  budget: Budget | undefined,
  by: string,
): readonly Change[] {
  const value = heldBy(before) - heldBy(after)
  if (value === 0n || budget === undefined) return []
  const next = release(budget, value, by)
  return [{ kind: 'budget', next, expectedVersion: budget.version }]
}
