import type { GrantedItem } from './access.js'
import { type Amount, parseValue, sameAsset } from './amount.js'
import { ok, type Refused, type Result, refused } from './decision.js'
import type { Instant } from './instant.js'
import { parseInterval, type SpendingWindow, windowAt } from './interval.js'

/** The payment fields that limits check. */
export interface Spending {
  /** URL of the incoming payment that is paid. */
  readonly receiver: string
  readonly debitAmount: Amount
  readonly receiveAmount: Amount
}

/** The two amounts of a payment. A limit counts one of them. */
export type CountedAmount = 'debitAmount' | 'receiveAmount'

/** The spending that one granted item allows at an instant. */
export interface Allowance {
  /** The limited amount and its maximum; absent if the limits contain no amount. */
  readonly limit?: { readonly counts: CountedAmount; readonly maximum: Amount }
  /** The window of the interval; absent if spending is counted over the life of the grant. */
  readonly window?: SpendingWindow
}

export type LimitsRefusal = 'limits_exceeded'

/**
 * Checks the receiver, window, asset and amount of one payment against the limits of a granted item. Earlier
 * payments are not considered.
 *
 * @see Open Payments OpenAPI, schema `limits-outgoing`
 */
export function allow(
  item: GrantedItem,
  spending: Spending,
  now: Instant,
): Result<Allowance, Refused<LimitsRefusal>> {
  const { receiver } = item.limits ?? {}
  if (receiver !== undefined && receiver !== spending.receiver) {
    return refused('limits_exceeded', 'the receiver is not the receiver in the limits')
  }
  const allowed = allowanceAt(item, now)
  if (!allowed.ok || allowed.value.limit === undefined) return allowed
  const { counts, maximum } = allowed.value.limit
  const amount = spending[counts]
  if (!sameAsset(maximum, amount)) {
    return refused('limits_exceeded', `${counts} is not in the asset of the limit`)
  }
  const [asked, most] = [parseValue(amount.value), parseValue(maximum.value)]
  if (asked === undefined || most === undefined || asked > most) {
    return refused('limits_exceeded', `${counts} alone exceeds the limit`)
  }
  return allowed
}

/** Returns the allowance of an item at an instant. Refuses outside all windows of its interval. */
export function allowanceAt(
  { limits = {}, intervalCounting }: GrantedItem,
  now: Instant,
): Result<Allowance, Refused<LimitsRefusal>> {
  const { interval, debitAmount, receiveAmount } = limits
  let window: SpendingWindow | undefined
  if (interval !== undefined) {
    const parsed = parseInterval(interval)
    window = parsed.ok ? windowAt(parsed.value, now, intervalCounting) : undefined
    if (window === undefined)
      return refused('limits_exceeded', 'the time is outside all windows of the grant')
  }
  const maximum = debitAmount ?? receiveAmount
  const counts = debitAmount === undefined ? 'receiveAmount' : 'debitAmount'
  return ok({
    ...(maximum === undefined ? {} : { limit: { counts, maximum } }),
    ...(window === undefined ? {} : { window }),
  })
}
