import type { Amount } from '../amount.js'
import type { Instant } from '../instant.js'
import type { CountedAmount } from '../limits.js'
import type { SetLimit } from '../spending-limits.js'
import { retained, type Stored } from '../stored.js'

/**
 * The amounts spent in one window, or without an end if there is no interval: under one granted item, or, for the
 * limits that an owner sets, under one grant or from one account. Its size does not depend on the number of payments.
 */
export interface Budget extends Stored {
  /** Absent if the budget counts the payments that apps make from an account. */
  readonly grantId?: string
  /** The granted item; absent if the budget counts for a limit that an owner has set. */
  readonly itemId?: string
  /** The account; absent if the budget counts payments under one grant. */
  readonly walletAddress?: string
  /** Start of the window; absent if the budget has none. */
  readonly windowStart?: Instant
  /** End of the window, exclusive; absent if the budget has none. */
  readonly windowEnd?: Instant
  /** Totals of the amounts that ended payments sent and open payments reserve. */
  readonly spent: SpentAmounts
  /**
   * The exact totals of what is `null` in `spent`, one for each asset, as decimal values of any length. What a payment
   * does not send is taken from them again.
   */
  readonly exact?: { readonly [Name in CountedAmount]?: readonly Amount[] }
  /**
   * The number of payments that are open or have sent something. Absent for a granted item, which does not limit it.
   */
  readonly payments?: number
}

/**
 * The totals that payments debit from the payer and deliver to receivers. A total is `null` if it cannot be
 * expressed as one amount: the payments have different assets, or the sum exceeds 64 bits. The total of a limited
 * amount is never `null`, because all payments under a limit are in its asset.
 */
export type SpentAmounts = { readonly [Name in CountedAmount]: Amount | null }

/** A limit that an owner has set, and its current budget, absent before the first payment. */
export interface CountedLimit extends SetLimit {
  readonly budget?: Budget
}

/** How long a budget is kept, in milliseconds. */
export interface BudgetPolicy {
  readonly retentionMs: number
}

/** Returns the next version of a budget, or the first if there is none before it. */
export function nextBudget(
  { exact: _exact, ...fields }: Omit<Budget, 'version' | 'commandId' | 'spent'>,
  before: Budget | undefined,
  counted: Pick<Budget, 'spent' | 'exact'>,
  commandId: string,
): Budget {
  return { ...fields, version: (before?.version ?? 0) + 1, commandId, ...counted }
}

/**
 * Returns when a budget is next due, and until when it is kept: for `retentionMs` after the end of its window. A budget
 * for the life of a grant is kept as long as the grant, so each time it is due, a sweep looks whether the grant is
 * gone. A budget of an account without a window is kept: only the host knows when the account is gone.
 */
export function retention(
  { grantId, windowEnd }: Pick<Budget, 'grantId' | 'windowEnd'>,
  now: Instant,
  { retentionMs }: BudgetPolicy,
) {
  if (windowEnd !== undefined) return retained(Math.max(windowEnd, now) + retentionMs)
  return grantId === undefined ? {} : { dueAt: now + retentionMs }
}

/** Postpones the next retention check of a lifetime budget, one without a window. */
export function keep(
  budget: Budget,
  commandId: string,
  now: Instant,
  policy: BudgetPolicy,
): Budget {
  const next = { ...budget, ...retention(budget, now, policy) }
  return { ...next, version: budget.version + 1, commandId }
}
