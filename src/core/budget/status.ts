import type { GrantedItem } from '../access.js'
import type { Amount } from '../amount.js'
import type { SpendingWindow } from '../interval.js'
import type { Allowance, CountedAmount } from '../limits.js'
import type { LimitSource } from '../spending-limits.js'
import type { PayingItem } from './paying-items.js'
import type { Budget, CountedLimit, SpentAmounts } from './record.js'
import { countOf, leftAmount, totalSpent } from './spent.js'

export interface BudgetStatus {
  /** Whether the item can pay: false outside all windows of its interval. */
  readonly isOpen: boolean
  readonly window?: SpendingWindow
  readonly spent: Partial<SpentAmounts>
  readonly left: Partial<Readonly<Record<CountedAmount, Amount>>>
}

export function itemStatus({ item, open }: PayingItem, budget: Budget | undefined): BudgetStatus {
  return open === undefined ? closedBudget(item) : budgetStatus(open, budget)
}

/** Returns what an item has spent in its open window, and what is left of the limited amount. */
export function budgetStatus(
  { window, limitedAmount: limited }: Allowance,
  budget: Budget | undefined,
): BudgetStatus {
  return {
    isOpen: true,
    ...(window !== undefined && { window }),
    spent: spentIn(limited, budget),
    left: limited ? { [limited.counts]: leftAmount(limited, budget) } : {},
  }
}

/** Returns what an item has spent in its open window: nothing outside all windows of its interval. */
export function itemSpent({ open }: PayingItem, budget: Budget | undefined): Partial<SpentAmounts> {
  return open === undefined ? {} : spentIn(open.limitedAmount, budget)
}

function spentIn(
  limited: Allowance['limitedAmount'],
  budget: Budget | undefined,
): Partial<SpentAmounts> {
  // While nothing is spent, only the asset of the limit is known.
  const nothing = limited ? { [limited.counts]: zero(limited.maximum) } : {}
  return budget === undefined ? nothing : totalSpent([nothing, budget.spent])
}

/** Returns the status of an item outside all windows of its interval. */
export function closedBudget({ limits = {} }: GrantedItem): BudgetStatus {
  const { debitAmount, receiveAmount } = limits
  return {
    isOpen: false,
    spent: {},
    left: {
      ...(debitAmount !== undefined && { debitAmount: zero(debitAmount) }),
      ...(receiveAmount !== undefined && { receiveAmount: zero(receiveAmount) }),
    },
  }
}

/** What is left of a limit, in the window that is open. */
export interface LimitStatus {
  readonly source: LimitSource
  /** The granted item of a limit of the client. */
  readonly itemId?: string
  /** Whether the limit permits payments now: false outside all windows of its interval. */
  readonly isOpen: boolean
  /** The open window; absent without an interval, and outside all of its windows. */
  readonly window?: SpendingWindow
  /** What is left of each maximum of the limit; nothing outside all windows. */
  readonly left: Partial<Readonly<Record<CountedAmount, Amount>>> & { readonly payments?: number }
}

export function limitStatus({ source, limit, open, budget }: CountedLimit): LimitStatus {
  const { debitAmount, payments } = limit
  if (open === undefined) {
    const left = {
      ...(debitAmount !== undefined && { debitAmount: zero(debitAmount) }),
      ...(payments !== undefined && { payments: 0 }),
    }
    return { source, isOpen: false, left }
  }
  const { window, left } = budgetStatus(open, budget)
  const count = payments !== undefined && { payments: Math.max(0, payments - countOf(budget)) }
  return {
    source,
    isOpen: true,
    ...(window !== undefined && { window }),
    left: { ...left, ...count },
  }
}

export function itemLimitStatus(paying: PayingItem, budget: Budget | undefined): LimitStatus {
  const { isOpen, window, left } = itemStatus(paying, budget)
  const { itemId } = paying.item
  return { source: 'client', itemId, isOpen, ...(window !== undefined && { window }), left }
}

function zero(amount: Amount): Amount {
  return { ...amount, value: '0' }
}
