import type { AccessItem, GrantedItem } from './access.js'
import { type Amount, isWithin, parseValue, sameAsset } from './amount.js'
import { ok, type Refused, type Result, refused } from './decision.js'
import type { Instant } from './instant.js'
import { parseInterval, type SpendingWindow, windowAt } from './interval.js'
import { refusedPublicly } from './public-reasons.js'
import type { JsonObject } from './stored.js'

/** The payment fields that limits check. */
export interface Spending {
  /** URL of the incoming payment that is paid. */
  readonly receiver: string
  /** The wallet address of the receiver; absent if the price does not name it. */
  readonly receiverWalletAddress?: string
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
): Result<Allowance, Refused<LimitsRefusal>> {
  const { receiver } = item.limits ?? {}
  if (receiver !== undefined && receiver !== spending.receiver) {
    return refusedPublicly('limits_exceeded', 'limits.receiver', 'is another receiver')
  }
  const allowed = allowanceAt(item, now)
  if (!allowed.ok || allowed.value.limit === undefined) return allowed
  const { counts, maximum } = allowed.value.limit
  const amount = spending[counts]
  if (!sameAsset(maximum, amount)) {
    return refusedPublicly('limits_exceeded', `limits.${counts}`, 'is in another asset')
  }
  const [asked, most] = [parseValue(amount.value), parseValue(maximum.value)]
  if (asked === undefined || most === undefined || asked > most) {
    return refusedPublicly('limits_exceeded', `limits.${counts}`, 'is less than this payment')
  }
  return allowed
}

/**
 * Returns the allowance of an item at an instant. Refuses outside all windows of its interval.
 *
 * @example
 * ```ts
 * import { allowanceAt } from 'open-payments-server/core'
 *
 * const allowance = allowanceAt(item, Date.now())
 * if (allowance.ok) console.log(allowance.value.limit?.maximum)
 * ```
 */
export function allowanceAt(
  { limits = {}, intervalCounting }: GrantedItem,
  now: Instant,
): Result<Allowance, Refused<LimitsRefusal>> {
  const { interval, debitAmount, receiveAmount } = limits
  let window: SpendingWindow | undefined
  if (interval !== undefined) {
    const parsed = parseInterval(interval)
    window = parsed.ok ? windowAt(parsed.value, now, intervalCounting) : undefined
    if (window === undefined) {
      return refusedPublicly('limits_exceeded', 'limits.interval', 'has no window at this time')
    }
  }
  const maximum = debitAmount ?? receiveAmount
  const counts = debitAmount === undefined ? 'receiveAmount' : 'debitAmount'
  return ok({
    ...(maximum === undefined ? {} : { limit: { counts, maximum } }),
    ...(window === undefined ? {} : { window }),
  })
}

/**
 * The resource owner's conditions for all outgoing payments under a grant, beside the limits of its access. The client
 *  does not see them.
 */
export interface GrantConditions {
  /** The maximum that one payment may debit. Payments that debit another asset are refused. */
  readonly paymentMax?: Amount
  /** The only wallet addresses that may be paid, canonical. */
  readonly receivers?: readonly string[]
  /** No payment is created before this instant. */
  readonly pausedUntil?: Instant
  /** The host's own conditions, passed to `policy.mayPay`. The library does not interpret them. */
  readonly data?: JsonObject
}

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

/** Whether no payment can meet both the limit of an item and the conditions, because their assets differ. */
export function contradictsLimits(
  { paymentMax }: GrantConditions,
  access: readonly AccessItem[],
): boolean {
  return access.some(({ limits }) => {
    const limit = limits?.debitAmount
    return paymentMax !== undefined && limit !== undefined && !sameAsset(limit, paymentMax)
  })
}
