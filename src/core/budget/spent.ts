import { type Amount, type Asset, amountValueMax, sameAsset, valueOr } from '../amount.js'
import type { Allowance } from '../limits.js'
import type { OpenLimit } from '../spending-limits.js'
import type { Budget, SpentAmounts } from './record.js'

/** Reads what is spent. An unreadable amount counts as the maximum, so that it leaves nothing to spend. */
export function spentValue({ value }: Amount): bigint {
  return valueOr(amountValueMax, value)
}

/** Adds totals. An amount that is absent from all of them is `null`. */
export function totalSpent(parts: readonly Partial<SpentAmounts>[]): SpentAmounts {
  return {
    debitAmount: sum(parts.map(({ debitAmount }) => debitAmount)),
    receiveAmount: sum(parts.map(({ receiveAmount }) => receiveAmount)),
  }
}

function sum(amounts: readonly (Amount | null | undefined)[]): Amount | null {
  const given = amounts.filter((amount) => amount !== undefined)
  const asset = given.find((amount) => amount !== null && spentValue(amount) > 0n) ?? given[0]
  if (!asset) return null
  let total = 0n
  for (const amount of given) {
    const value = valueIn(asset, amount)
    if (value === undefined) return null
    total += value
  }
  return total > amountValueMax ? null : { ...asset, value: total.toString() }
}

/**
 * Reads a total in an asset. Returns `undefined` for a total in another one. Zero is an amount of
 * any asset, so a grant can limit and pay another asset after payments that sent nothing.
 */
function valueIn(asset: Asset, total: Amount | null): bigint | undefined {
  if (total === null) return undefined
  const value = spentValue(total)
  return value === 0n || sameAsset(total, asset) ? value : undefined
}

type LimitedAmount = NonNullable<Allowance['limitedAmount']>

/** What has been spent of a limited amount: everything if the total is in another asset, so that it fails closed. */
export function counted(budget: Budget | undefined, { counts, maximum }: LimitedAmount) {
  return budget === undefined ? 0n : (valueIn(maximum, budget.spent[counts]) ?? amountValueMax)
}

/** What is left of a limited amount. */
export function leftAmount(limited: LimitedAmount, budget: Budget | undefined): Amount {
  const left = valueOr(0n, limited.maximum.value) - counted(budget, limited)
  return { ...limited.maximum, value: String(maxOf(0n, left)) }
}

function maxOf(one: bigint, other: bigint): bigint {
  return one > other ? one : other
}

/** The number of payments. An unreadable one counts as too many. */
export function countOf(budget: Budget | undefined): number {
  if (budget === undefined) return 0
  const { payments } = budget
  return payments !== undefined && payments >= 0 ? payments : Number.POSITIVE_INFINITY
}

/** Whether everything that a budget counts is within a limit, such as after an amendment. */
export function isWithinLimit(
  budget: Budget | undefined,
  { limitedAmount, payments }: Pick<OpenLimit, 'limitedAmount' | 'payments'>,
): boolean {
  return (
    (limitedAmount === undefined ||
      counted(budget, limitedAmount) <= valueOr(0n, limitedAmount.maximum.value)) &&
    (payments === undefined || countOf(budget) <= payments)
  )
}
