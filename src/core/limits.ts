import type { AccessItem, GrantedItem } from './access.js'
import { type Amount, type Asset, isWithin, sameAsset } from './amount.js'
import { ok, type Refused, type Result, refused } from './decision.js'
import { formatInstant, type Instant } from './instant.js'
import {
  type IntervalCounting,
  nextWindowStart,
  parseInterval,
  type SpendingWindow,
  windowAt,
} from './interval.js'
import { refusedPublicly, withDetails } from './public-reasons.js'
import type { JsonObject } from './stored.js'

/** The payment fields that limits check. */
export interface Spending {
  /** URL of the incoming payment that is paid. */
  readonly receiver: string
  /** The wallet address of the receiver; absent if the price does not name it. */
  readonly receiverWalletAddress?: string
  /** What the payer is debited in all, the wallet's fees included, in the asset of the account. */
  readonly debitAmount: Amount
  /** What arrives at the receiver, in the receiver's asset. */
  readonly receiveAmount: Amount
}

/** The two amounts of a payment. A limit counts one of them. */
export type CountedAmount = 'debitAmount' | 'receiveAmount'

/** The spending that one granted item allows at an instant. */
export interface Allowance {
  /** The limited amount and its maximum; absent if the limits contain no amount. */
  readonly limitedAmount?: { readonly counts: CountedAmount; readonly maximum: Amount }
  /** The window of the interval; absent if spending is counted over the life of the grant. */
  readonly window?: SpendingWindow
}

/** Why the limits of a grant do not allow a payment. Minor versions add members: give a `switch` a `default`. */
export type LimitsRefusal = 'limits_exceeded'

/**
 * A payment exceeds a limit that the owner has set for all payments that apps make from the account. Minor versions add
 * members: give a `switch` a `default`.
 */
export type AccountLimitRefusal = 'account_limit_exceeded'

/**
 * Checks the receiver, asset, amount and window of one payment against the limits of a granted item. Earlier
 * payments are not considered.
 *
 * @see Open Payments OpenAPI, schema `limits-outgoing`
 *
 * @param known The allowance of the item at this instant, if the caller has it.
 *
 * @example
 * ```ts
 * import { allow } from 'open-payments-server/core'
 *
 * const allowed = allow(item, spending, Date.now())
 * console.log(allowed.ok ? allowed.value.window : allowed.reason)
 * ```
 */
export function allow(
  item: GrantedItem,
  spending: Spending,
  now: Instant,
  known?: Allowance,
): Result<Allowance, Refused<LimitsRefusal>> {
  const { receiver } = item.limits ?? {}
  if (receiver !== undefined && receiver !== spending.receiver) {
    return refusedPublicly('limits_exceeded', 'limits.receiver', 'is another receiver')
  }
  // Before the window: a payment above the whole limit must not wait for the next one.
  const limited = limitedAmountOf(item)
  if (limited !== undefined) {
    const { counts, maximum } = limited
    const amount = spending[counts]
    if (!sameAsset(maximum, amount)) {
      return refusedPublicly('limits_exceeded', `limits.${counts}`, 'is in another asset')
    }
    if (!isWithin(amount, maximum)) {
      return refusedPublicly('limits_exceeded', `limits.${counts}`, 'is less than this payment')
    }
  }
  return known === undefined ? allowanceAt(item, now) : ok(known)
}

function limitedAmountOf({ limits = {} }: GrantedItem): Allowance['limitedAmount'] {
  const { debitAmount, receiveAmount } = limits
  const maximum = debitAmount ?? receiveAmount
  const counts = debitAmount === undefined ? 'receiveAmount' : 'debitAmount'
  return maximum && { counts, maximum }
}

/**
 * Returns the allowance of an item at an instant. Refuses outside all windows of its interval.
 *
 * @example
 * ```ts
 * import { allowanceAt } from 'open-payments-server/core'
 *
 * const allowance = allowanceAt(item, Date.now())
 * if (allowance.ok) console.log(allowance.value.limitedAmount?.maximum)
 * ```
 */
export function allowanceAt(
  item: GrantedItem,
  now: Instant,
): Result<Allowance, Refused<LimitsRefusal>> {
  const { limits = {}, intervalCounting } = item
  const { interval } = limits
  let window: SpendingWindow | undefined
  if (interval !== undefined) {
    const parsed = parseInterval(interval)
    window = parsed.ok ? windowAt(parsed.value, now, intervalCounting) : undefined
    if (window === undefined) {
      return withDetails(
        refusedPublicly('limits_exceeded', 'limits.interval', 'has no window at this time'),
        nextWindow({ interval, ...(intervalCounting !== undefined && { intervalCounting }) }, now),
      )
    }
  }
  const limitedAmount = limitedAmountOf(item)
  const inWindow = window === undefined ? {} : { window }
  return ok(limitedAmount === undefined ? inWindow : { limitedAmount, ...inWindow })
}

export interface LimitInterval {
  readonly interval?: string
  readonly intervalCounting?: IntervalCounting
}

/** Returns the member of `details` that says when the next window begins, if there is one. */
export function nextWindow({ interval, intervalCounting }: LimitInterval, now: Instant) {
  const parsed = interval === undefined ? undefined : parseInterval(interval)
  const start = parsed?.ok ? nextWindowStart(parsed.value, now, intervalCounting) : undefined
  return start === undefined ? {} : { nextWindowAt: formatInstant(start) }
}

/**
 * A limit that the owner of an account sets: for the payments in each window of its interval, or for all. It counts the
 * payments that are created while it is set.
 */
export interface SpendingLimit {
  /** The maximum that the payments debit together. Payments that debit another asset are refused. */
  readonly debitAmount?: Amount
  /** The maximum number of payments, at least 1. A payment that has ended and sent nothing does not count. */
  readonly payments?: number
  /** ISO 8601 repeating interval. No payment is created outside its windows. Default: one window without an end. */
  readonly interval?: string
}

/**
 * The resource owner's conditions for all outgoing payments under a grant, in addition to the limits of its access. The
 * client does not see them.
 */
export interface GrantConditions {
  /** The maximum that one payment may debit. Payments that debit another asset are refused. */
  readonly paymentMax?: Amount
  /** The only wallet addresses that may be paid, canonical. */
  readonly receivers?: readonly string[]
  /** No payment is created before this instant. */
  readonly pausedUntil?: Instant
  /** The owner's limits in addition to those of the access: 1 to 3, each with another interval. */
  readonly limits?: readonly SpendingLimit[]
  /** The host's own conditions, passed to `policy.mayPay`. The library does not interpret them. */
  readonly data?: JsonObject
}

/** Why the conditions of the owner do not allow a payment. Minor versions add members: give a `switch` a `default`. */
export type ConditionsRefusal = 'grant_paused' | 'conditions_exceeded'

/** Returns why a payment does not meet the conditions of its grant, or `undefined` if it does. */
export function refuseByConditions(
  { paymentMax, receivers, pausedUntil }: GrantConditions,
  { debitAmount, receiverWalletAddress }: Spending,
  now: Instant,
): Refused<ConditionsRefusal> | undefined {
  if (pausedUntil !== undefined && !(now >= pausedUntil)) {
    return refused('grant_paused', 'the resource owner has paused payments under the grant')
  }
  if (paymentMax !== undefined && !isWithin(debitAmount, paymentMax)) {
    return refused('conditions_exceeded', 'debitAmount exceeds paymentMax of the grant')
  }
  if (receivers === undefined) return undefined
  // A price that does not name the receiver's wallet address cannot show that it is one of the receivers.
  if (receiverWalletAddress === undefined) {
    return refused(
      'conditions_exceeded',
      'the price does not name the wallet address of the receiver',
    )
  }
  return receivers.includes(receiverWalletAddress)
    ? undefined
    : refused('conditions_exceeded', 'the grant does not allow payments to this wallet address')
}

/** Whether no payment can meet the limits of an item and all conditions, because their assets differ. */
export function contradictsLimits(
  { paymentMax, limits: set = [] }: GrantConditions,
  access: readonly AccessItem[],
): boolean {
  const [first, ...others] = [paymentMax, ...amountsOf(set)].filter((each) => each !== undefined)
  if (first === undefined) return false
  if (others.some((other) => !sameAsset(first, other))) return true
  return access.some(({ limits }) => limits?.debitAmount && !sameAsset(limits.debitAmount, first))
}

/** Whether a limit is in another asset than the account that pays, so that it refuses every payment. */
export function hasOtherAsset(limits: readonly SpendingLimit[], account: Asset): boolean {
  return amountsOf(limits).some((amount) => !sameAsset(amount, account))
}

function amountsOf(limits: readonly SpendingLimit[]): readonly Amount[] {
  return limits.flatMap(({ debitAmount }) => debitAmount ?? [])
}
