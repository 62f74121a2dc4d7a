import { type Amount, type Asset, amountValueMax, sameAsset, valueOr } from '../amount.js'
import type { Allowance, CountedAmount } from '../limits.js'
import type { OpenLimit } from '../spending-limits.js'
import type { Budget, SpentAmounts } from './record.js'

/** The maximum number of assets of which one budget keeps totals. */
export const assetsMax = 32

/** Reads what is spent, of any length. An unreadable amount counts as the maximum, so that it leaves nothing. */
export function spentValue({ value }: Amount): bigint {
  return /^(0|[1-9]\d*)$/.test(value) ? BigInt(value) : amountValueMax
}

/** The exact totals of one of the amounts of payments, one for each asset. */
export type Totals = readonly Amount[]

/** Returns the totals of a budget; `undefined` if they are not known. */
export function totalsOf(
  budget: Pick<Budget, 'spent' | 'exact'> | undefined,
  counts: CountedAmount,
): Totals | undefined {
  if (budget === undefined) return []
  const spent = budget.spent[counts]
  return spent ? [spent] : budget.exact?.[counts]
}

/** Adds an amount to totals. A total of zero is of any asset, so another asset takes its place. */
export function plus(totals: Totals | undefined, amount: Amount): Totals | undefined {
  const counted = totals?.filter((total) => sameAsset(total, amount) || spentValue(total) > 0n)
  if (counted?.some((total) => sameAsset(total, amount)) === false) return [...counted, amount]
  return counted?.map((total) => changed(total, amount, spentValue(amount)))
}

/** Takes a value of an asset from totals. */
export function minus(totals: Totals | undefined, asset: Asset, value: bigint): Totals | undefined {
  return totals?.map((total) => changed(total, asset, -value))
}

function changed(total: Amount, asset: Asset, by: bigint): Amount {
  return sameAsset(total, asset) ? { ...total, value: String(spentValue(total) + by) } : total
}

/** Returns totals as budgets store them: each as one amount, or exactly beside it if it is none. */
export function storedTotals(
  totals: Readonly<Record<CountedAmount, Totals | undefined>>,
): Pick<Budget, 'spent' | 'exact'> {
  const { debitAmount, receiveAmount } = totals
  const spent = { debitAmount: asAmount(debitAmount), receiveAmount: asAmount(receiveAmount) }
  const exact = {
    ...(spent.debitAmount === null && isKept(debitAmount) && { debitAmount }),
    ...(spent.receiveAmount === null && isKept(receiveAmount) && { receiveAmount }),
  }
  return { spent, ...(Object.keys(exact).length > 0 && { exact }) }
}

function isKept(totals: Totals | undefined): totals is Totals {
  return totals !== undefined && totals.length > 0 && totals.length <= assetsMax
}

/** Returns totals as one amount, or `null` if they are of several assets or exceed 64 bits. */
function asAmount(totals: Totals = []): Amount | null {
  const [first, ...others] = totals.filter((total) => spentValue(total) > 0n)
  if (first === undefined) return totals[0] ?? null
  return others.length === 0 && spentValue(first) <= amountValueMax ? first : null
}

/** Adds totals that views show. An amount that is absent from all of them is `null`. */
export function totalSpent(parts: readonly Partial<SpentAmounts>[]): SpentAmounts {
  return {
    debitAmount: sum(parts.map(({ debitAmount }) => debitAmount)),
    receiveAmount: sum(parts.map(({ receiveAmount }) => receiveAmount)),
  }
}

function sum(amounts: readonly (Amount | null | undefined)[]): Amount | null {
  let totals: Totals | undefined = []
  for (const amount of amounts) {
    if (amount === null) return null
    if (amount !== undefined)
      totals = totals?.length === 0 || spentValue(amount) > 0n ? plus(totals, amount) : totals
  }
  return asAmount(totals)
}

type LimitedAmount = NonNullable<Allowance['limitedAmount']>

/**
 * What has been spent of a limited amount: everything if something is spent in another asset, or the totals are not
 * known, so that it fails closed.
 */
export function counted(budget: Budget | undefined, { counts, maximum }: LimitedAmount): bigint {
  const spent = totalsOf(budget, counts)?.filter((total) => spentValue(total) > 0n)
  if (!spent?.every((total) => sameAsset(total, maximum))) return amountValueMax
  const [total] = spent
  return total === undefined ? 0n : spentValue(total)
}

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
