import type { Amount, Instant } from 'open-payments-server'
import { requireKnownOptions } from 'open-payments-server/adapter'
import { ok, type Result } from 'open-payments-server/core'
import { emptyModel, type Model, type Problems, wrong } from './expected.js'
import { filledIn, type HistoryOptions, historyOptions } from './generate.js'
import {
  actionsOf,
  type PaymentRequest,
  type SpendingAction,
  type SpendingHistory,
  valueText,
} from './history.js'
import {
  accountsIn,
  type Expectation,
  expectationOf,
  overspentIn,
  paymentIn,
  type SpendingRules,
  type Spent,
  spentUnder,
  withPayment,
} from './model.js'

export interface OracleRules extends SpendingRules {
  /** Whether the wallet may refuse a payment within the limits for reasons of its own. */
  readonly mayRefuse: boolean
}

/** An action, the wallet's answer, and the instants at which the wallet may have decided. */
export interface Observation {
  readonly action: SpendingAction
  readonly answer: {
    readonly accepted: boolean | 'unknown'
    readonly id?: string
    readonly spentDebitAmount?: Amount
    readonly spentReceiveAmount?: Amount
    readonly reason?: string
    /** The wallet's ids of the payments in a list. */
    readonly listed?: readonly string[]
  }
  readonly moments: readonly Instant[]
}

/** Compares the answers of a wallet with the model. */
export interface Oracle {
  /** Compares actions that ran concurrently. Returns sentences about what is wrong; usually none. */
  check(observations: readonly Observation[]): readonly string[]
  /** Returns the wallet's id of a payment that was accepted. */
  idOf(payment: number): string | undefined
}

/**
 * Concurrent actions may have run in any order, and if the test does not control the clock, the wallet may have
 * decided a payment at the start or at the end of its request. The oracle keeps every state of the model that explains
 * the answers, and the wallet is wrong when none is left.
 */
export function createOracle(rules: OracleRules): Oracle {
  let models: readonly Model[] = [emptyModel]

  return {
    check(observed) {
      const next: Model[] = []
      let [deepest, problems]: [number, readonly string[]] = [-1, []]
      for (const order of ordersOf(observed)) {
        for (const model of models) {
          let explained = [model]
          for (const [depth, observation] of order.entries()) {
            const verdicts = explained.flatMap((model) =>
              explain(model, observation, observed, rules),
            )
            explained = verdicts.flatMap((verdict) => (verdict.ok ? [verdict.value] : []))
            if (explained.length > 0) continue
            // Report what is wrong in the order that explains most answers.
            if (depth <= deepest) break
            deepest = depth
            problems = verdicts.flatMap((verdict) => (verdict.ok ? [] : verdict.problems))
            break
          }
          next.push(...explained)
        }
      }
      if (next.length === 0) return [...new Set(problems)]
      models = distinct(next)
      return []
    },
    idOf: (payment) => models[0] && paymentIn(models[0], payment)?.id,
  }
}

/** The model that explains an answer, or why none does. */
type Verdict = Result<Model, Problems>

/** Explains an answer, for each instant at which the wallet may have decided. */
function explain(
  model: Model,
  observation: Observation,
  concurrent: readonly Observation[],
  rules: OracleRules,
): readonly Verdict[] {
  const { action, answer, moments } = observation
  return moments.flatMap((now) => {
    const expectation = expectationOf(model, action, now, rules)
    if (answer.accepted !== 'unknown') {
      return [compare(model, observation, concurrent, expectation, now, rules)]
    }
    // After an error of the store, an action may or may not have taken effect.
    return expectation.answer === 'refused' ? [ok(model)] : [ok(model), ok(expectation.after)]
  })
}

/**
 * A payment that runs concurrently with a rotation may present the old token. One about which the host is asked while
 * the owner adds a limit is declined.
 */
function isCutOff(action: SpendingAction, concurrent: readonly Observation[]): boolean {
  const request = requestOf(action)
  return concurrent.some(
    ({ action }) =>
      (action.type === 'rotate' || (action.type === 'amend' && action.conditions?.limits)) &&
      action.grant === request?.grant,
  )
}

function compare(
  model: Model,
  { action, answer }: Observation,
  concurrent: readonly Observation[],
  { answer: expected, after, problems = [], repeats }: Expectation,
  now: Instant,
  rules: OracleRules,
): Verdict {
  if (!answer.accepted) {
    const mayRefuse = rules.mayRefuse || isCutOff(action, concurrent)
    if (expected !== 'accepted' || mayRefuse) return ok(model)
    const said = answer.reason === undefined ? '' : ` (${answer.reason})`
    return wrong(`the wallet refused it${said}; expected: accepted`)
  }
  if (expected === 'refused') {
    const overspent = overspentIn(after)
    const reasons = overspent.length > 0 ? overspent : problems
    return wrong(
      ...reasons.map((reason) => `the wallet accepted it; expected a refusal: ${reason}`),
    )
  }
  if (repeats?.id !== undefined && repeats.id !== answer.id) {
    return wrong(
      `a repeated request created payment ${repeats.request.payment} twice`,
      ...overspentIn(model),
    )
  }
  const shown = after.payments.find(({ request, id }) => {
    return request.grant === undefined && id !== undefined && answer.listed?.includes(id)
  })
  if (shown !== undefined) {
    return wrong(`the list contains payment ${shown.request.payment}, which the owner ordered`)
  }
  const next = withId(after, action, answer.id)
  if (next === undefined) {
    return wrong('the wallet returned the same payment for two requests')
  }
  const isAlone = concurrent.length === 1
  const misreported = isAlone ? misreportedSpending(next, action, answer, now) : undefined
  return misreported === undefined ? ok(next) : wrong(misreported)
}

/** Records the wallet's id of a payment, unless another payment has that id. */
function withId(model: Model, action: SpendingAction, id: string | undefined): Model | undefined {
  const request = requestOf(action)
  if (id === undefined || request === undefined) return model
  const { payment } = request
  const taken = model.payments.some((each) => each.id === id && each.request.payment !== payment)
  return taken ? undefined : withPayment(model, payment, { id })
}

function requestOf(action: SpendingAction): PaymentRequest | undefined {
  if (action.type === 'pay') return action
  return action.type === 'retry' || action.type === 'alter' ? action.request : undefined
}

function misreportedSpending(
  model: Model,
  action: SpendingAction,
  answer: Observation['answer'],
  now: Instant,
): string | undefined {
  const request = requestOf(action)
  if (request?.grant === undefined) return undefined
  const account = paymentIn(model, request.payment)?.account
  if (account === undefined) return undefined
  const { spentDebitAmount, spentReceiveAmount } = answer
  const said = account.counts === 'debitAmount' ? spentDebitAmount : spentReceiveAmount
  if (said === undefined) return undefined
  const { value, ...asset } = said
  const spent = spentUnder(model, account.grant, account.counts, asset, now)
  if (spent === undefined || spent === BigInt(value)) return undefined
  return (
    `the wallet reports ${valueText(BigInt(value), asset)} as spent; ` +
    `expected ${valueText(spent, asset)}`
  )
}

/** Returns every possible order of concurrent items. */
function ordersOf<Item>(items: readonly Item[]): readonly (readonly Item[])[] {
  if (items.length < 2) return [items]
  return items.flatMap((first, index) => {
    const others = items.filter((_, other) => other !== index)
    return ordersOf(others).map((rest) => [first, ...rest])
  })
}

function distinct(models: readonly Model[]): readonly Model[] {
  if (models.length === 1) return models
  const byText = new Map(models.map((model) => [textOf(model), model]))
  return [...byText.values()]
}

/** Returns the same text for models that differ only in the order of their payments. */
function textOf({ grants, accounts, payments }: Model): string {
  const lines = payments.map(({ request, account, scopes, holdUntil, state, ...totals }) =>
    [
      request.payment,
      account?.item,
      account?.window?.start,
      ...scopes,
      holdUntil,
      state,
      totals.sent,
      totals.delivered,
      totals.inDoubt,
      totals.refund?.sent,
      totals.refund?.delivered,
    ].join(),
  )
  return `${JSON.stringify([grants, accounts])} ${lines.sort().join(' ')}`
}

/** The expected outcome of one action of a history. */
export interface ExpectedStep {
  /** The index of its step in the history, from 0. */
  readonly step: number
  readonly action: SpendingAction
  /** `either` if both outcomes leave all amounts correct. */
  readonly answer: 'accepted' | 'refused' | 'either'
  /** Why the wallet must refuse it, one sentence for each granted item; otherwise empty. */
  readonly problems: readonly string[]
  /**
   * What has been spent afterwards, by grant, item and window: sent, or reserved because it may still be
   * sent.
   */
  readonly spent: readonly Spent[]
}

/**
 * Returns what payment limits require, computed by a model that shares no code with the library: which
 * requests of a history the wallet must accept, which it must refuse, and what every window has spent after
 * each action. Concurrent actions are applied in the order in which they are listed, and an action during which the
 * store fails as if it had not failed.
 *
 * @param options the options of the history; only `intervalCounting` and `holdMs` matter.
 * @throws {InvalidInputError} for an unknown option.
 *
 * @example
 * ```ts
 * import { defaultScene, expectedSpending } from 'open-payments-server-testing'
 *
 * const [first] = expectedSpending({ scene: defaultScene, start: Date.now(), steps: [] })
 * console.log(first?.answer, first?.problems)
 * ```
 */
export function expectedSpending(
  history: SpendingHistory,
  options: Pick<HistoryOptions, 'intervalCounting' | 'holdMs'> = {},
): readonly ExpectedStep[] {
  requireKnownOptions<HistoryOptions>('', options, historyOptions)
  const { rules } = filledIn({ ...options, scene: history.scene })
  let model: Model = emptyModel
  let now = history.start
  return history.steps.flatMap((step, index) => {
    return actionsOf(step).map((action): ExpectedStep => {
      if (action.type === 'wait') now = action.until
      const { answer, after, problems = [] } = expectationOf(model, action, now, rules)
      if (answer !== 'refused') model = after
      return { step: index, action, answer, problems, spent: accountsIn(model) }
    })
  })
}
