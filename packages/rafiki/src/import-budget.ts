import {
  allowanceAt,
  type Budget,
  decideSpending,
  type GrantedItem,
  type GrantPolicy,
  parseValue,
} from 'open-payments-server/core'
import type { RafikiPayment } from './tables.js'

const day = 86_400_000

/** The grant that is charged, and the command that imports it. */
export interface Charge {
  readonly grantId: string
  readonly commandId: string
  readonly namespace: string
}

/**
 * Returns by how much a window of Rafiki can begin earlier. It adds each month to the window before, so that after a
 * short month the windows of an interval from the 31st begin on the 28th. The library counts from the interval's start.
 */
function driftOf({ limits }: GrantedItem): number {
  return /^.{0,64}P[^T]{0,64}[YM]/.test(limits?.interval ?? '') ? 3 * day : 0
}

/** Charges the payments of the window that is open now to an item, or of the whole life of the grant. */
export function budgetOf(
  item: GrantedItem,
  payments: readonly RafikiPayment[],
  now: number,
  charge: Charge,
  policy: GrantPolicy,
): Budget | undefined {
  if (item.type !== 'outgoing-payment') return undefined
  const allowed = allowanceAt(item, now)
  if (!allowed.ok) return undefined
  const { limitedAmount, window } = allowed.value
  const since = window === undefined ? Number.NEGATIVE_INFINITY : window.start - driftOf(item)
  let budget: Budget | undefined
  for (const payment of payments) {
    if (payment.createdAt.getTime() < since) continue
    const candidates = [{ item, ...(budget !== undefined && { budget }) }]
    const receiver = item.limits?.receiver ?? payment.receiver
    const decided = decideSpending(candidates, { ...payment, receiver }, charge, now, policy)
    if (decided.ok) {
      budget = decided.value.budget
      continue
    }
    // More was spent than the limit allows, or in another asset: nothing is left.
    if (limitedAmount === undefined) continue
    const { counts, maximum } = limitedAmount
    const spent = parseValue(budget?.spent[counts]?.value ?? '0') ?? 0n
    const rest = { ...maximum, value: `${BigInt(maximum.value) - spent}` }
    if (rest.value === '0') continue
    const last = { ...payment, receiver, [counts]: rest }
    const exhausted = decideSpending(candidates, last, charge, now, policy)
    if (exhausted.ok) budget = exhausted.value.budget
  }
  return budget && { ...budget, version: 1 }
}
