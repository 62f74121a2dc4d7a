import {
  type Budget,
  type BudgetPolicy,
  budgetId,
  release,
  type SpentAmounts,
  totalSpent,
} from '../core/budget.js'
import { type Instant, refused } from '../core/decision.js'
import { type Allowance, allowanceAt } from '../core/limits.js'
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
import { newCall, type ServiceContext } from './mechanism/context.js'
import { changesOf } from './mechanism/events.js'
import {
  type ListScope,
  listName,
  type Page,
  type PageRequest,
  readPage,
} from './mechanism/pages.js'
import { loadOwn } from './mechanism/records.js'
import { removeRetired, type SweptKind } from './mechanism/sweeps.js'
import { transact } from './mechanism/transact.js'

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

/** Creates the operations of the host on outgoing payments, and the sweep of due payments. */
export function createOutgoingPayments(context: ServiceContext, policy: SpendingPolicy) {
  const { store } = context

  const load = (id: string) => loadOwn<OutgoingPayment>(context, 'outgoing-payment', id)

  async function loadBudget(id: string): Promise<Budget | undefined> {
    return (await store.load('budget', id)) as Budget | undefined
  }

  async function list(scope: ListScope, page: PageRequest): Promise<Page<OutgoingPayment>> {
    const wanted = listName(await context.namespace(), scope)
    return readPage(store, { kind: 'outgoing-payment', list: wanted }, page)
  }

  /**
   * Resolves to the amounts spent under a token's grant in the windows that are open now, summed over all its
   * access items for outgoing payments.
   */
  async function spentUnder({ grantId, access }: ActiveToken, now: Instant): Promise<SpentAmounts> {
    const namespace = await context.namespace()
    const parts = await Promise.all(
      access.map(async (item) => {
        const allowance = item.type === 'outgoing-payment' ? allowanceAt(item, now) : undefined
        if (!allowance?.ok) return {}
        const id = budgetId({ namespace, grantId }, item, allowance.value)
        return (await loadBudget(id))?.spent ?? nothingSpent(allowance.value)
      }),
    )
    return totalSpent(parts)
  }

  async function loadBoth(id: string): Promise<Loaded> {
    const payment = await load(id)
    return payment === undefined ? {} : { payment, budget: await loadBudget(payment.budgetId) }
  }

  /** Loads a payment without its budget, for commands that do not change the amount that it holds. */
  async function loadAlone(id: string): Promise<Loaded> {
    const payment = await load(id)
    return payment === undefined ? {} : { payment }
  }

  /** Runs a command. One commit changes the payment and returns unspent amounts to its budget. */
  async function run<Type extends keyof OutgoingPaymentRefusals>(
    id: string,
    say: (commandId: string) => Command<Type>,
    loadNow: (id: string) => Promise<Loaded> = loadBoth,
  ): Promise<OutgoingPaymentResult<Type>> {
    const { now, commandId } = newCall(context)
    const command = say(commandId)
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
            ...givenBack(payment, record, budget, commandId),
          ]
          return { changes, result: decision, refused: false }
        },
      },
    )
    return result.outcome === 'refused'
      ? { ok: false, refusal: result.refusal, reason: result.reason }
      : {
          ok: true,
          payment: result.record,
          // If a commit's response was lost, the reloaded record has this command's id.
          changed: result.outcome === 'changed' || result.record.commandId === commandId,
        }
  }

  /** Fails payments whose hold has expired, and removes payments past their retention. */
  const swept: SweptKind = {
    kind: 'outgoing-payment',
    async sweep(record, now) {
      const payment = record as OutgoingPayment
      if (payment.state !== 'created') {
        return removeRetired(context, 'outgoing-payment', payment, now)
      }
      const lapse = await run(payment.id, (commandId) => ({ type: 'lapse', commandId }))
      return lapse.ok ? 'lapsed' : undefined
    },
  }

  return {
    load,
    list,
    loadBudget,
    spentUnder,
    begin: (id: string) =>
      run<'begin'>(id, (commandId) => ({ type: 'begin', commandId }), loadAlone),
    settle: (id: string, said: Said<ReportSent>) =>
      run<'settle'>(id, (commandId) => ({ ...said, type: 'settle', commandId })),
    fail: (id: string, said: Said<FailPayment>) =>
      run<'fail'>(id, (commandId) => ({ ...said, type: 'fail', commandId })),
    cancel: (id: string, said: Said<CancelPayment>) =>
      run<'cancel'>(id, (commandId) => ({ ...said, type: 'cancel', commandId })),
    swept,
  }
}

interface Loaded {
  readonly payment?: OutgoingPayment
  readonly budget?: Budget | undefined
}

const unknownPayment = refused('payment_unknown', 'the outgoing payment does not exist')

/** Returns zero in the asset of the limit: no other asset is known before the first payment. */
function nothingSpent({ limit }: Allowance): Partial<SpentAmounts> {
  return limit === undefined ? {} : { [limit.counts]: { ...limit.maximum, value: '0' } }
}

/** Returns the change that releases unsent amounts to the budget: none while the payment can be sent. */
function givenBack(
  before: OutgoingPayment,
  after: OutgoingPayment,
  budget: Budget | undefined,
  commandId: string,
): readonly RecordChange[] {
  const next = budget && release(budget, heldBy(before), heldBy(after), commandId)
  return next === undefined ? [] : [{ kind: 'budget', next, expectedVersion: next.version - 1 }]
}
