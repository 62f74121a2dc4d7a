import type { Asset } from '../amount.js'
import type { CountedAmount } from '../limits.js'
import { type Budget, nextBudget } from './record.js'
import { minus, storedTotals, type Totals, totalsOf } from './spent.js'

/** How a payment counts in each of its budgets: its amounts, and whether it counts as a payment. */
export type HeldAmounts = { readonly [Name in CountedAmount]: bigint } & {
  readonly payments: 0 | 1
}

/**
 * Releases what a payment no longer reserves, in a budget of the window in which it was created.
 *
 * @param assets those of the payment. Default: those of the budget, if it counts one.
 * @returns `undefined` if the reserved amounts have not changed.
 */
export function release(
  budget: Budget,
  held: HeldAmounts,
  holds: HeldAmounts,
  commandId: string,
  assets: { readonly [Name in CountedAmount]?: Asset } = {},
): Budget | undefined {
  const debit = held.debitAmount - holds.debitAmount
  const receive = held.receiveAmount - holds.receiveAmount
  if (debit === 0n && receive === 0n) return undefined
  const counted = storedTotals({
    debitAmount: less(budget, 'debitAmount', assets.debitAmount, debit),
    receiveAmount: less(budget, 'receiveAmount', assets.receiveAmount, receive),
  })
  const { payments } = budget
  const released =
    payments === undefined
      ? budget
      : { ...budget, payments: payments - held.payments + holds.payments }
  return nextBudget(released, budget, counted, commandId)
}

function less(
  budget: Budget,
  counts: CountedAmount,
  asset: Asset | undefined,
  value: bigint,
): Totals | undefined {
  const totals = totalsOf(budget, counts)
  const own = asset ?? totals?.[0]
  return own && minus(totals, own, value)
}
