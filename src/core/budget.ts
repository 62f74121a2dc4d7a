import type { GrantedItem } from './access.js'
import { type Amount, amountValueMax, parseValue } from './amount.js'
import { type Instant, type Refused, refused, type Stored } from './decision.js'
import { type Allowance, allow, type CountedAmount, type Spending } from './limits.js'

/**
 * What payments have taken of one allowance: one record for a granted item and a window, or for an item
 * whose limit holds for the grant's life. Its cost does not grow with the payments that it counts.
 */
export interface Budget extends Stored {
  readonly grantId: string
  readonly itemId: string
  readonly counts: CountedAmount
  /** Start of the window; absent where the limit holds for the grant's life. */
  readonly windowStart?: Instant
  /** The value taken: sent by payments that have ended, reserved by those that may still be sent. */
  readonly spent: string
}

/** How long a budget is kept, in milliseconds. */
export interface BudgetPolicy {
  readonly retentionMs: number
}

/** A granted item that covers a payment, with its budget as it stands; absent if nothing was spent yet. */
export interface Candidate {
  readonly item: GrantedItem
  readonly budget?: Budget
}

export interface Charge {
  readonly by: string
  /** Prefix of the budget's id: the namespace of the server. */
  readonly namespace: string
  readonly grantId: string
}

/** What a payment is charged to. */
export interface Charged {
  readonly outcome: 'charged'
  readonly item: GrantedItem
  /** The allowance that counts it, and its budget with this payment included; absent without an amount limit. */
  readonly taken?: { readonly allowance: Allowance; readonly budget: Budget }
}

/**
 * Charges a payment to the first item that covers it and has room, in the order in which they were granted.
 * The whole of it is reserved, so that whatever is sent later has been counted before.
 */
export function decideSpending(
  candidates: readonly Candidate[],
  spending: Spending,
  charge: Charge,
  now: Instant,
  policy: BudgetPolicy,
): Charged | Refused<'limits_exceeded'> {
  let refusal = refused('limits_exceeded', 'no granted item allows payments from there')
  for (const { item, budget } of candidates) {
    const allowed = allow(item, spending, now)
    if (allowed.outcome === 'refused') {
      refusal = allowed
      continue
    }
    const { allowance } = allowed
    if (allowance === undefined) return { outcome: 'charged', item }
    const next = reserve(budget, item, allowance, spending, charge, now, policy)
    if (next !== undefined) return { outcome: 'charged', item, taken: { allowance, budget: next } }
    refusal = refused('limits_exceeded', 'the budget of the window is spent')
  }
  return refusal
}

/** The id of the budget that an allowance is counted in. */
export function budgetId(
  { namespace, grantId }: Omit<Charge, 'by'>,
  { itemId }: GrantedItem,
  { window }: Allowance,
): string {
  return `${namespace}${grantId}.${itemId}.${window === undefined ? 'life' : window.start}`
}

function reserve(
  budget: Budget | undefined,
  item: GrantedItem,
  allowance: Allowance,
  spending: Spending,
  charge: Charge,
  now: Instant,
  policy: BudgetPolicy,
): Budget | undefined {
  const { counts, limit, window } = allowance
  const before = recorded(budget?.spent ?? '0')
  const total = before + recorded(spending[counts].value)
  if (total > recorded(limit.value)) return undefined
  const base = budget ?? {
    id: budgetId(charge, item, allowance),
    grantId: charge.grantId,
    itemId: item.itemId,
    counts,
    ...(window === undefined ? {} : { windowStart: window.start }),
  }
  return nextBudget({ ...base, ...retention(window?.end, now, policy) }, budget, total, charge.by)
}

/** Gives back what a payment held and no longer holds, in the window of the payment's own creation. */
export function release(budget: Budget, value: bigint, by: string): Budget {
  return nextBudget(budget, budget, recorded(budget.spent) - value, by)
}

/** A budget for the grant's life, to be looked at again later. */
export function keep(budget: Budget, by: string, now: Instant, policy: BudgetPolicy): Budget {
  const next = { ...budget, ...retention(undefined, now, policy) }
  return { ...next, version: budget.version + 1, by }
}

/** What has been taken of an allowance, in its asset. */
export function spentAmount(budget: Budget | undefined, { limit }: Allowance): Amount {
  const { assetCode, assetScale } = limit
  return { value: budget?.spent ?? '0', assetCode, assetScale }
}

function nextBudget(
  fields: Omit<Budget, 'version' | 'by' | 'spent'>,
  before: Budget | undefined,
  spent: bigint,
  by: string,
): Budget {
  return { ...fields, version: (before?.version ?? 0) + 1, by, spent: spent.toString() }
}

/** A budget for the grant's life is looked at again and again, and goes when its grant has gone. */
function retention(windowEnd: Instant | undefined, now: Instant, { retentionMs }: BudgetPolicy) {
  if (windowEnd === undefined) return { dueAt: now + retentionMs }
  const retainUntil = Math.max(windowEnd, now) + retentionMs
  return { dueAt: retainUntil, retainUntil }
}

/** A value in a record is one that was checked; one that was not holds everything back. */
function recorded(text: string): bigint {
  return parseValue(text) ?? amountValueMax
}
