import { isWithin } from './amount.js'
import type { Instant } from './instant.js'
import { type IntervalCounting, parseInterval, type SpendingWindow, windowAt } from './interval.js'
import type { Allowance, SpendingLimit } from './limits.js'

/** The maximum number of limits of a grant's owner, and of an account. */
export const spendingLimitsMax = 3

/**
 * Who sets a limit: the client in the access that it requests, the owner of the account in the conditions of a grant,
 * or the owner for all payments that apps make from the account.
 */
export type LimitSource = 'client' | 'owner' | 'account'

/**
 * The payments that a budget counts: those under a granted item, those under a grant, or those that apps make from an
 * account, with what its owner orders to be counted there.
 */
export type BudgetScope =
  | { readonly grantId: string; readonly itemId: string }
  | { readonly grantId: string }
  | { readonly walletAddress: string }

/**
 * A limit in the window that is open. Limits of the same payments in the same window have the same budget, whatever
 * their intervals: it counts the same payments.
 */
export interface OpenLimit extends Allowance {
  readonly source: LimitSource
  readonly scope: BudgetScope
  readonly budgetId: string
  /** The maximum number of payments. */
  readonly payments?: number
  /** The interval of the windows, and how they are counted. */
  readonly interval?: string
  readonly intervalCounting?: IntervalCounting
}

/** A limit that an owner has set, at an instant. Outside all windows of its interval it is not open. */
export interface SetLimit {
  readonly source: Exclude<LimitSource, 'client'>
  readonly limit: SpendingLimit
  readonly open?: OpenLimit
}

/**
 * Returns the limits that the owner has set for a grant, each with its open window.
 *
 * @example
 * ```ts
 * import { ownerLimits } from 'open-payments-server/core'
 *
 * const charge = { namespace: 'wallet01', grantId: 'wallet01grant-1' }
 * ownerLimits([{ payments: 3 }], charge, Date.now()) // one, with the id of its budget
 * ```
 */
export function ownerLimits(
  limits: readonly SpendingLimit[] = [],
  { namespace, grantId }: { readonly namespace: string; readonly grantId: string },
  now: Instant,
): readonly SetLimit[] {
  const scope = { grantId }
  return limits.map((limit) => limitAt('owner', limit, scope, `${namespace}${grantId}.owner`, now))
}

/**
 * Returns the limits that the owner has set for all payments that apps make from an account.
 *
 * @param account `accountHash` is a hash of the wallet address, which may be too long for an id.
 *
 * @example
 * ```ts
 * import { accountLimits } from 'open-payments-server/core'
 *
 * const walletAddress = 'https://wallet.example/alice'
 * const account = { namespace: 'wallet01', walletAddress, accountHash: 'hash-1' }
 * accountLimits([{ payments: 3 }], account, Date.now())
 * ```
 */
export function accountLimits(
  limits: readonly SpendingLimit[],
  account: {
    readonly namespace: string
    readonly walletAddress: string
    readonly accountHash: string
  },
  now: Instant,
): readonly SetLimit[] {
  const { namespace, walletAddress, accountHash } = account
  const scope = { walletAddress }
  const prefix = `${namespace}account.${accountHash}`
  return limits.map((limit) => limitAt('account', limit, scope, prefix, now))
}

/**
 * Whether a budget counts for a limit of an account. The namespace has 8 characters, and neither it nor the id of a
 * grant contains a dot.
 */
export function isOfAccount(budgetId: string): boolean {
  return /^.{8}account\./.test(budgetId)
}

/** The maximum number of payments of one grant that wait for their owner at a time. */
export const waitingMax = 10

export function waitingLimit(namespace: string, grantId: string): OpenLimit {
  const budgetId = `${namespace}${grantId}.waiting`
  return { source: 'owner', scope: { grantId }, budgetId, payments: waitingMax }
}

function limitAt(
  source: SetLimit['source'],
  limit: SpendingLimit,
  scope: BudgetScope,
  prefix: string,
  now: Instant,
): SetLimit {
  const { debitAmount, payments, interval } = limit
  const window = interval === undefined ? undefined : openWindow(interval, now)
  if (interval !== undefined && window === undefined) return { source, limit }
  const open: OpenLimit = {
    source,
    scope,
    budgetId: `${prefix}.${window === undefined ? 'life' : `${window.start}_${window.end}`}`,
    ...(debitAmount !== undefined && {
      limitedAmount: { counts: 'debitAmount', maximum: debitAmount },
    }),
    ...(payments !== undefined && { payments }),
    ...(window !== undefined && { window }),
    ...(interval !== undefined && { interval }),
  }
  return { source, limit, open }
}

function openWindow(interval: string, now: Instant): SpendingWindow | undefined {
  const parsed = parseInterval(interval)
  return parsed.ok ? windowAt(parsed.value, now) : undefined
}

/**
 * Returns limits as an amendment leaves them, or `undefined` if they would permit payments that the owner did not
 * permit before. A limit is identified by its interval, because its budget is: each of `before` must remain, lowered or
 * as it is.
 */
export function narrowedLimits(
  before: readonly SpendingLimit[],
  after: readonly SpendingLimit[],
): readonly SpendingLimit[] | undefined {
  const matching = ({ interval }: SpendingLimit, limits: readonly SpendingLimit[]) =>
    limits.find((each) => each.interval === interval)
  const kept = before.map((limit) => {
    const next = matching(limit, after)
    return next && isNarrower(limit, next) ? next : undefined
  })
  const remaining = kept.filter((each) => each !== undefined)
  if (remaining.length < before.length) return undefined
  return [...remaining, ...after.filter((limit) => matching(limit, before) === undefined)]
}

function isNarrower(wide: SpendingLimit, narrow: SpendingLimit): boolean {
  const { debitAmount: most, payments: mostPayments } = wide
  const { debitAmount, payments } = narrow
  return (
    (most === undefined || (debitAmount !== undefined && isWithin(debitAmount, most))) &&
    (mostPayments === undefined || (payments !== undefined && payments <= mostPayments))
  )
}
