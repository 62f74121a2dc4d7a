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
import { counted, countOf, leftAmount, spentValue, totalSpent } from './budget/spent.js'
import { ok, type Refused, type Result, refused } from './decision.js'
import type { Instant } from './instant.js'
import {
  type AccountLimitRefusal,
  allow,
  type LimitsRefusal,
  nextWindow,
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
export type ChargeRefusal = LimitsRefusal | 'conditions_exceeded' | AccountLimitRefusal

/**
 * Charges a payment to the first granted item that covers it and has enough budget left, and to each limit that the
 * owner has set. Reserves both amounts in full, so that every amount is counted before it is sent.
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
  limits: readonly CountedLimit[] = [],
): Result<ChargedBudget, Refused<ChargeRefusal>> {
  let refusal: Refused<ChargeRefusal> = refused(
    'limits_exceeded',
    'no granted item allows payments from this wallet address',
  )
  for (const { item, open, budget } of candidates) {
    const allowed = allow(item, spending, now, open)
    if (!allowed.ok) {
      refusal = allowed
      continue
    }
    const ofClient = { open: open ?? clientLimit(charge, item, allowed.value), budget }
    const charged = chargeTo([ofClient], spending, charge, now, policy)
    if (!charged.ok) {
      refusal = charged
      continue
    }
    const [ofItem] = charged.value
    if (ofItem === undefined) continue
    // The limits of the owner count the payment whatever item covers it.
    const others = chargeTo(limits, spending, charge, now, policy)
    return others.ok ? ok({ item, budget: ofItem, limitBudgets: others.value }) : others
  }
  return refusal
}

/** A limit with its budget. Without `open`, no window of its interval is open. */
type Chargeable =
  | { readonly open: OpenLimit; readonly budget?: Budget | undefined }
  | (CountedLimit & { readonly open?: undefined })

/**
 * Charges a payment to the budgets of limits, each budget once. Refuses with the first limit that does not permit the
 * payment; then nothing is charged.
 */
function chargeTo(
  limits: readonly Chargeable[],
  spending: Spending,
  { commandId }: Charge,
  now: Instant,
  policy: BudgetPolicy,
): Result<readonly Budget[], Refused<ChargeRefusal>> {
  const charged = new Map<string, Budget>()
  for (const limit of limits) {
    const { open, budget } = limit
    if (open === undefined) return exceeded(limit.source, limit.limit, now)
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
  if (limitedAmount !== undefined) {
    const { counts, maximum } = limitedAmount
    if (source !== 'client' && !isWithin(spending[counts], maximum))
      return exceeded(source, {}, now)
    if (
      counted(budget, limitedAmount) + spentValue(spending[counts]) >
      valueOr(0n, maximum.value)
    ) {
      if (source !== 'client') return exceeded(source, open, now)
      const refusal = refusedPublicly(
        'limits_exceeded',
        `limits.${counts}`,
        'leaves less than this payment',
      )
      const left = { ...leftAmount(limitedAmount, budget) }
      return withDetails(refusal, { left, ...nextWindow(open, now) })
    }
  }
  const isFull = payments !== undefined && !(countOf(budget) < payments)
  return isFull && source !== 'client' ? exceeded(source, open, now) : undefined
}

/**
 * Refuses a payment for a limit that the owner has set. The client does not learn which limit it is.
 *
 * @param interval absent if waiting does not help.
 */
function exceeded(
  source: Exclude<OpenLimit['source'], 'client'>,
  interval: Parameters<typeof nextWindow>[0],
  now: Instant,
): Refused<ChargeRefusal> {
  const refusal = source === 'owner' ? 'conditions_exceeded' : 'account_limit_exceeded'
  const problem = "has a limit of the account's owner that is exceeded"
  return withDetails(refusedPublicly(refusal, 'walletAddress', problem), nextWindow(interval, now))
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
  const spent = totalSpent([...(budget === undefined ? [] : [budget.spent]), spending])
  const payments = source === 'client' ? {} : { payments: countOf(budget) + 1 }
  const fields = { ...base, ...retention(base, now, policy), ...payments }
  return nextBudget(fields, budget, spent, commandId)
}
