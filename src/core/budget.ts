import type { GrantedItem } from './access.js'
import { isWithin, valueOr } from './amount.js'
import { type ChargedGrant, clientLimit } from './budget/paying-items.js'
import {
  type Budget,
  type BudgetPolicy,
  type CountedLimit,
  nextBudget,
  retention,
} from './budget/record.js'
import {
  assetsMax,
  counted,
  countOf,
  leftAmount,
  plus,
  spentValue,
  storedTotals,
  totalsOf,
} from './budget/spent.js'
import { ok, type Refused, type Result, refused } from './decision.js'
import type { Instant } from './instant.js'
import {
  type AccountLimitRefusal,
  allow,
  type ConditionsRefusal,
  type GrantConditions,
  type LimitsRefusal,
  nextWindow,
  refuseByConditions,
  type Spending,
} from './limits.js'
import { refusedPublicly, withDetails } from './public-reasons.js'
import type { OpenLimit } from './spending-limits.js'

/** A granted item that may cover a payment, and its current budget, absent before the first payment. */
export interface BudgetCandidate {
  readonly item: GrantedItem
  /** The limit of the item in its open window. Default: the decision determines it. */
  readonly open?: OpenLimit
  readonly budget?: Budget
}

/** The grant that a payment is charged to, and the command that charges it. */
export interface Charge extends ChargedGrant {
  readonly commandId: string
}

/** The item and budgets that a payment is charged to. */
export interface ChargedBudget {
  readonly item: GrantedItem
  /** The budget of the item with this payment included. */
  readonly budget: Budget
  /** The budgets of the limits that the owner has set, each with this payment included. */
  readonly limitBudgets: readonly Budget[]
}

/** Why no budget covers a payment: a limit of the client, of the owner for the grant, or of the account. */
export type ChargeRefusal = LimitsRefusal | ConditionsRefusal | AccountLimitRefusal

/** What owners have set for a payment, which clients do not see. */
export interface OwnerRules {
  /** The conditions of the grant. Their limits count only in `limits`. */
  readonly conditions?: GrantConditions
  /** All limits that the owner has set: in the conditions, and for the account. */
  readonly limits?: readonly CountedLimit[]
}

/**
 * Charges a payment to the first granted item that covers it and has enough budget left, and to each limit that the
 * owner has set. Reserves both amounts in full, so that every amount is counted before it is sent.
 *
 * The limits of the client come first. A payment that they refuse is refused in the same way whatever the owner has
 * set, so that a client cannot find that out.
 *
 * @example
 * ```ts
 * import { decideSpending } from 'open-payments-server/core'
 *
 * const charge = { commandId: 'command-1', namespace: 'wallet01', grantId: 'grant-1' }
 * const policy = { retentionMs: 86_400_000 }
 * const decided = decideSpending([{ item }], spending, charge, Date.now(), policy)
 * console.log(decided.ok ? decided.value.budget.spent : decided.reason)
 * ```
 */
export function decideSpending(
  candidates: readonly BudgetCandidate[],
  spending: Spending,
  charge: Charge,
  now: Instant,
  policy: BudgetPolicy,
  { conditions = {}, limits = [] }: OwnerRules = {},
): Result<ChargedBudget, Refused<ChargeRefusal>> {
  const refusals: Refused<ChargeRefusal>[] = []
  for (const { item, open, budget } of candidates) {
    const allowed = allow(item, spending, now, open)
    if (!allowed.ok) {
      refusals.push(allowed)
      continue
    }
    const ofClient = { open: open ?? clientLimit(charge, item, allowed.value), budget }
    const charged = chargeTo([ofClient], spending, charge, now, policy)
    if (!charged.ok) {
      refusals.push(charged)
      continue
    }
    const [ofItem] = charged.value
    if (ofItem === undefined) continue
    const unmet = refuseByConditions(conditions, spending, now)
    if (unmet !== undefined) return unmet
    // The limits of the owner count the payment whatever item covers it.
    const others = chargeTo(limits, spending, charge, now, policy)
    return others.ok ? ok({ item, budget: ofItem, limitBudgets: others.value }) : others
  }
  return (
    soonest(refusals) ??
    refused('limits_exceeded', 'no granted item allows payments from this wallet address')
  )
}

/**
 * Returns the refusal of the item that may cover the payment first, or else that of the last item. One item suffices,
 * so before its next window the payment is refused in any case.
 */
function soonest(refusals: readonly Refused<ChargeRefusal>[]): Refused<ChargeRefusal> | undefined {
  const startOf = ({ details }: Refused<ChargeRefusal>) => details?.['nextWindowAt']
  const [first, ...others] = refusals.filter((each) => startOf(each) !== undefined)
  if (first === undefined) return refusals.at(-1)
  return others.reduce(
    (best, each) => (String(startOf(each)) < String(startOf(best)) ? each : best),
    first,
  )
}

/** A limit with its budget. Without `open`, no window of its interval is open. */
export type Chargeable =
  | { readonly open: OpenLimit; readonly budget?: Budget | undefined }
  | (CountedLimit & { readonly open?: undefined })

/**
 * Charges a payment to the budgets of limits, each budget once. Refuses with the first limit that does not permit the
 * payment; then nothing is charged.
 */
export function chargeTo(
  limits: readonly Chargeable[],
  spending: Spending,
  { commandId }: Pick<Charge, 'commandId'>,
  now: Instant,
  policy: BudgetPolicy,
): Result<readonly Budget[], Refused<ChargeRefusal>> {
  const charged = new Map<string, Budget>()
  for (const limit of limits) {
    const { open, budget } = limit
    if (open === undefined) return exceeded(limit.source)
    const refusal = refuseByLimit(open, budget, spending, now)
    if (refusal !== undefined) return refusal
    charged.set(open.budgetId, chargedBudget(open, budget, spending, commandId, now, policy))
  }
  return ok([...charged.values()])
}

function refuseByLimit(
  open: OpenLimit,
  budget: Budget | undefined,
  spending: Spending,
  now: Instant,
): Refused<ChargeRefusal> | undefined {
  const { source, limitedAmount, payments } = open
  const isLeft = limitedAmount === undefined || leaves(limitedAmount, budget, spending)
  if (source !== 'client') {
    const isCountLeft = payments === undefined || countOf(budget) < payments
    return isLeft && isCountLeft ? undefined : exceeded(source)
  }
  if (isLeft) {
    const totals = totalsOf(budget, 'receiveAmount') ?? []
    if (totals.length < assetsMax) return undefined
    const assets = plus(totals, spending.receiveAmount)?.length ?? 0
    const problem = 'has paid in 32 assets already'
    return assets > assetsMax ? refusedPublicly('limits_exceeded', 'limits', problem) : undefined
  }
  const refusal = refusedPublicly(
    'limits_exceeded',
    `limits.${limitedAmount.counts}`,
    'leaves less than this payment',
  )
  const left = { ...leftAmount(limitedAmount, budget) }
  return withDetails(refusal, { left, ...nextWindow(open, now) })
}

/** Whether a limited amount leaves enough for a payment. */
function leaves(
  limited: NonNullable<OpenLimit['limitedAmount']>,
  budget: Budget | undefined,
  spending: Spending,
): boolean {
  const { counts, maximum } = limited
  const asked = spending[counts]
  return (
    isWithin(asked, maximum) &&
    counted(budget, limited) + spentValue(asked) <= valueOr(0n, maximum.value)
  )
}

/**
 * Refuses a payment for a limit that the owner has set. The client learns neither which limit it is nor when it next
 * permits the payment: by the presence of such advice, a search would read the limit.
 */
function exceeded(source: Exclude<OpenLimit['source'], 'client'>): Refused<ChargeRefusal> {
  return source === 'owner'
    ? refused('conditions_exceeded', 'a limit of the owner for the grant is exceeded')
    : refused('account_limit_exceeded', 'a limit of the owner for the account is exceeded')
}

function chargedBudget(
  { source, scope, budgetId: id, window }: OpenLimit,
  budget: Budget | undefined,
  spending: Spending,
  commandId: string,
  now: Instant,
  policy: BudgetPolicy,
): Budget {
  const base = budget ?? {
    id,
    ...scope,
    ...(window !== undefined && { windowStart: window.start, windowEnd: window.end }),
  }
  const totals = storedTotals({
    debitAmount: plus(totalsOf(budget, 'debitAmount'), spending.debitAmount),
    receiveAmount: plus(totalsOf(budget, 'receiveAmount'), spending.receiveAmount),
  })
  const payments = source === 'client' ? {} : { payments: countOf(budget) + 1 }
  const fields = { ...base, ...retention(base, now, policy), ...payments }
  return nextBudget(fields, budget, totals, commandId)
}
