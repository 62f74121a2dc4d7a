import type { Amount } from '../amount.js'
import type { CountedAmount } from '../limits.js'
import { type Budget, nextBudget } from './record.js'
import { spentValue } from './spent.js'

/** How a payment counts in each of its budgets: its amounts, and whether it counts as a payment. */
export type HeldAmounts = { readonly [Name in CountedAmount]: bigint } & {
  readonly payments: 0 | 1
}

/**
 * Releases what a payment no longer reserves, in a budget of the window in which it was created.
 *
 * @returns `undefined` if the reserved amounts have not changed.
 */
export function release(
  budget: Budget,
  held: HeldAmounts,
  holds: HeldAmounts,
  commandId: string,
): Budget | undefined {
  const debit = held.debitAmount - holds.debitAmount
  const receive = held.receiveAmount - holds.receiveAmount
  if (debit === 0n && receive === 0n) return undefined
  const spent = {
    debitAmount: less(budget.spent.debitAmount, debit),
    receiveAmount: less(budget.spent.receiveAmount, receive),
  }
  const { payments } = budget
  const released =
    payments === undefined
      ? budget
      : { ...budget, payments: payments - held.payments + holds.payments }
  return nextBudget(released, budget, spent, commandId)
}

function less(spent: Amount | null, value: bigint): Amount | null {
  return spent && { ...spent, value: (spentValue(spent) - value).toString() }
}
