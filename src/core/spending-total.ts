import type { AccessItem } from './access.js'
import { type Amount, valueOr } from './amount.js'
import type { CountedAmount } from './limits.js'

/** What several access items together allow to spend from one wallet address. Each item has its own limit. */
export interface SpendingTotal {
  /** The wallet address that pays. */
  readonly identifier?: string
  /** The ISO 8601 repeating interval. The total applies in each window; without it, to the life of the grant. */
  readonly interval?: string
  /** The sum of the limits; it can exceed 64 bits. If both amounts are absent, the items have no limit. */
  readonly debitAmount?: Amount
  /** As `debitAmount`, of what arrives, in the receivers' asset. */
  readonly receiveAmount?: Amount
  /** The number of items with these limits. */
  readonly items: number
}

/**
 * Adds the limits of the items that allow creating outgoing payments, in the order of the items. Limits that differ in
 * wallet address, interval, asset or kind of amount have separate totals.
 */
export function spendingTotals(items: readonly AccessItem[]): readonly SpendingTotal[] {
  const totals = new Map<string, SpendingTotal>()
  for (const { type, actions, identifier, limits = {} } of items) {
    if (type !== 'outgoing-payment' || !actions.includes('create')) continue
    const { interval, debitAmount, receiveAmount } = limits
    const counts: CountedAmount = debitAmount === undefined ? 'receiveAmount' : 'debitAmount'
    const amount = debitAmount ?? receiveAmount
    const key = JSON.stringify([
      identifier ?? null,
      interval ?? null,
      amount === undefined ? null : [counts, amount.assetCode, amount.assetScale],
    ])
    const before = totals.get(key)
    totals.set(key, {
      ...(identifier !== undefined && { identifier }),
      ...(interval !== undefined && { interval }),
      ...(amount !== undefined && { [counts]: plus(amount, before?.[counts]) }),
      items: (before?.items ?? 0) + 1,
    })
  }
  return [...totals.values()]
}

function plus(amount: Amount, before: Amount | undefined): Amount {
  const value = valueOr(0n, amount.value) + BigInt(before?.value ?? 0)
  return { ...amount, value: value.toString() }
}
