import type { GrantedItem } from './access.js'
import { type Amount, parseValue, sameAsset } from './amount.js'
import { type Instant, type Refused, refused } from './decision.js'
import { parseInterval, type Window, windowAt } from './interval.js'

/** All of a payment that limits look at. */
export interface Spending {
  /** URL of the incoming payment that is paid. */
  readonly receiver: string
  readonly debitAmount: Amount
  readonly receiveAmount: Amount
}

/** Which amount of a payment a limit counts. */
export type CountedAmount = 'debitAmount' | 'receiveAmount'

/** What may be spent under one granted item: so much in one window, or for the grant's life. */
export interface Allowance {
  readonly counts: CountedAmount
  /** The most that all payments together may come to. */
  readonly limit: Amount
  /** Absent where the limit holds for the grant's life. */
  readonly window?: Window
}

export type LimitsRefusal = 'limits_exceeded'

/** What a payment is counted in: nothing, where the limits name no amount. */
export type Allowed = { readonly outcome: 'allowed'; readonly allowance?: Allowance }

/**
 * Checks a payment against the limits of one granted item, but for what has been spent under it before:
 * receiver, window, asset and the amount of this payment alone.
 *
 * @see Open Payments OpenAPI, schema `limits-outgoing`
 */
export function allow(
  item: GrantedItem,
  spending: Spending,
  now: Instant,
): Allowed | Refused<LimitsRefusal> {
  const { receiver } = item.limits ?? {}
  if (receiver !== undefined && receiver !== spending.receiver) {
    return refused('limits_exceeded', 'the receiver is not the one that was granted')
  }
  const allowance = allowanceAt(item, now)
  if (allowance === 'closed') return refused('limits_exceeded', 'outside every window of the grant')
  if (allowance === undefined) return { outcome: 'allowed' }
  const { counts, limit } = allowance
  const amount = spending[counts]
  if (!sameAsset(limit, amount)) {
    return refused('limits_exceeded', `${counts} is not in the asset of the limit`)
  }
  const [asked, most] = [parseValue(amount.value), parseValue(limit.value)]
  if (asked === undefined || most === undefined || asked > most) {
    return refused('limits_exceeded', `${counts} alone is over the limit`)
  }
  return { outcome: 'allowed', allowance }
}

/**
 * What may be spent under an item at an instant: `closed` outside every window of its interval, and
 * `undefined` where its limits name no amount.
 */
export function allowanceAt(
  { limits = {}, intervalCounting }: GrantedItem,
  now: Instant,
): Allowance | 'closed' | undefined {
  const { interval, debitAmount, receiveAmount } = limits
  let window: Window | undefined
  if (interval !== undefined) {
    const parsed = parseInterval(interval)
    window = 'problem' in parsed ? undefined : windowAt(parsed.interval, now, intervalCounting)
    if (window === undefined) return 'closed'
  }
  const limit = debitAmount ?? receiveAmount
  if (limit === undefined) return undefined
  const counts = debitAmount === undefined ? 'receiveAmount' : 'debitAmount'
  return { counts, limit, ...(window === undefined ? {} : { window }) }
}
