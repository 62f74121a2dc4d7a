import { type Amount, type Asset, isWithin, parseValue, sameAsset } from './amount.js'
import { type Refused, refused } from './decision.js'
import type { Instant } from './instant.js'
import {
  coversWindows,
  endOfWindows,
  hasOneWindow,
  type IntervalCounting,
  parseInterval,
} from './interval.js'
import { refusedPublicly } from './public-reasons.js'

/** The resource types of Open Payments. */
export type AccessType = 'incoming-payment' | 'outgoing-payment' | 'quote'

/** What a client may do with a resource. `read-all` includes `read`, and `list-all` includes `list`. */
export type AccessAction = 'create' | 'complete' | 'read' | 'read-all' | 'list' | 'list-all'

/** The actions of each resource type (Open Payments OpenAPI, `access-incoming` and siblings). */
export const accessActions = {
  'incoming-payment': ['create', 'complete', 'read', 'read-all', 'list', 'list-all'],
  'outgoing-payment': ['create', 'read', 'read-all', 'list', 'list-all'],
  quote: ['create', 'read', 'read-all'],
} as const satisfies Record<AccessType, readonly AccessAction[]>

/**
 * Limits on outgoing payments. Each amount is a maximum for all payments in one window of `interval`, or, without
 * an interval, for all payments under the grant.
 *
 * @see Open Payments OpenAPI, schema `limits-outgoing`
 */
export interface Limits {
  /** URL of the only incoming payment that may be paid. */
  readonly receiver?: string
  /** ISO 8601 repeating interval. */
  readonly interval?: string
  /** The most that the payments debit in all, the wallet's fees included, in the asset of the account. */
  readonly debitAmount?: Amount
  /** The most that arrives in all, in the receivers' asset. */
  readonly receiveAmount?: Amount
}

/**
 * One access right: actions on resources of one type, limited to the wallet address `identifier` if present.
 *
 * @see RFC 9635 section 8; Open Payments OpenAPI, schema `access-item`
 */
export interface AccessItem {
  readonly type: AccessType
  readonly actions: readonly AccessAction[]
  readonly identifier?: string
  readonly limits?: Limits
}

/** An access right of one access token of a grant. */
export interface TokenItem extends AccessItem {
  /** The label of the token that carries it; absent if the client requested a single token. */
  readonly label?: string
}

/**
 * An access right as granted. Spending is counted by `itemId`, which rotation does not change. Equal items of two
 * tokens are counted separately.
 */
export interface GrantedItem extends TokenItem {
  readonly itemId: string
  /** How the windows of the interval are counted, fixed when the item is granted. Default: `occurrences`. */
  readonly intervalCounting?: IntervalCounting
}

/** Assigns item ids in order: `1` for the first item. */
export function grantedItems(
  items: readonly TokenItem[],
  intervalCounting: IntervalCounting,
): readonly GrantedItem[] {
  return items.map((item, index) => ({
    ...item,
    itemId: String(index + 1),
    ...(item.limits?.interval !== undefined && { intervalCounting }),
  }))
}

/**
 * Returns the end of the last window of all items, or `undefined` if at least one item never expires. Quote items are
 * ignored, because a quote is only useful for a payment.
 */
export function endOfItems(items: readonly GrantedItem[]): Instant | undefined {
  const ends = items.filter(({ type }) => type !== 'quote').map(endOfItem)
  return ends.length > 0 && ends.every((end) => end !== undefined) ? Math.max(...ends) : undefined
}

function endOfItem({ limits, intervalCounting }: GrantedItem): Instant | undefined {
  if (limits?.interval === undefined) return undefined
  const parsed = parseInterval(limits.interval)
  return parsed.ok ? endOfWindows(parsed.value, intervalCounting) : undefined
}

/** Returns the item as clients see it, without internal members. */
export function publicItem({ type, actions, identifier, limits }: AccessItem): AccessItem {
  return {
    type,
    actions,
    ...(identifier !== undefined && { identifier }),
    ...(limits !== undefined && { limits }),
  }
}

/** Returns the item as hosts see it: with the label of its token, and without internal members. */
export function tokenItem(item: TokenItem): TokenItem {
  const { label } = item
  return label === undefined ? publicItem(item) : { label, ...publicItem(item) }
}

/** Returns the labels of the tokens that carry the items, in order. The label of a single token is `undefined`. */
export function labelsOf(items: readonly TokenItem[]): readonly (string | undefined)[] {
  return [...new Set(items.map(({ label }) => label))]
}

export function itemsOf<Item extends TokenItem>(
  items: readonly Item[],
  label: string | undefined,
): readonly Item[] {
  return items.filter((item) => item.label === label)
}

/** Whether an item could be granted to a client. Checks items that the host passes in. */
export function isWellFormed({ type, actions, limits = {} }: AccessItem): boolean {
  const known: readonly AccessAction[] | undefined = accessActions[type]
  const amounts = [limits.debitAmount, limits.receiveAmount].filter(
    (amount) => amount !== undefined,
  )
  return (
    actions.length > 0 &&
    actions.every((action) => known?.includes(action)) &&
    (type === 'outgoing-payment' || Object.keys(limits).length === 0) &&
    amounts.length <= 1 &&
    amounts.every(({ value }) => parseValue(value) !== undefined)
  )
}

/** Whether `wide` allows everything that `narrow` allows. */
export function covers(
  wide: AccessItem,
  narrow: AccessItem,
  counting: IntervalCounting = 'occurrences',
): boolean {
  return (
    wide.type === narrow.type &&
    narrow.actions.every((action) => includesAction(wide.actions, action)) &&
    (wide.identifier === undefined || wide.identifier === narrow.identifier) &&
    coversLimits(wide.limits ?? {}, narrow.limits ?? {}, counting)
  )
}

/**
 * Whether two items allow the same access, even if they list their actions in a different order.
 *
 * @example
 * ```ts
 * import { allowsSame } from 'open-payments-server/core'
 *
 * const read = { type: 'quote', actions: ['read'] } as const
 * allowsSame(read, { type: 'quote', actions: ['read', 'read'] }) // true
 * ```
 */
export function allowsSame(one: AccessItem, other: AccessItem): boolean {
  return covers(one, other) && covers(other, one)
}

/**
 * Whether each item of `narrow` is covered by a different item of `wide`. If two items could share one wide item, each
 * would get its full budget: together twice the requested amount.
 */
export function coversAll(
  wide: readonly AccessItem[],
  narrow: readonly AccessItem[],
  counting: IntervalCounting = 'occurrences',
): boolean {
  const [first, ...others] = narrow
  if (first === undefined) return true
  return wide.some(
    (candidate, index) =>
      covers(candidate, first, counting) &&
      coversAll(
        wide.filter((_, other) => other !== index),
        others,
        counting,
      ),
  )
}

/** Whether, for each token, its items in `wide` cover its items in `narrow`. */
export function coversTokens(
  wide: readonly TokenItem[],
  narrow: readonly TokenItem[],
  counting: IntervalCounting = 'occurrences',
): boolean {
  return labelsOf(narrow).every((label) =>
    coversAll(itemsOf(wide, label), itemsOf(narrow, label), counting),
  )
}

/**
 * Finds the first item that allows `action` on resources of `type` at the wallet address `identifier`. An item
 * without an identifier allows the action at any wallet address, unless `needsIdentifier` returns true.
 *
 * @example
 * ```ts
 * import { permits } from 'open-payments-server/core'
 *
 * const alice = 'https://wallet.example/alice'
 * const items = [{ type: 'quote', actions: ['create'], identifier: alice }] as const
 * permits(items, 'quote', 'create', alice) // the item
 * permits(items, 'quote', 'read', alice) // undefined
 * ```
 */
export function permits<Item extends AccessItem>(
  items: readonly Item[],
  type: AccessType,
  action: AccessAction,
  identifier?: string,
): Item | undefined {
  const anywhere = !needsIdentifier(type, action)
  return items.find(
    (item) =>
      item.type === type &&
      includesAction(item.actions, action) &&
      (identifier === undefined ||
        item.identifier === identifier ||
        (anywhere && item.identifier === undefined)),
  )
}

/** Refuses a request that a token does not allow. */
export function insufficient(
  type: AccessType,
  action: AccessAction,
): Refused<'access_insufficient'> {
  return refused('access_insufficient', `the token does not allow ${action} of ${type}`)
}

/** Refuses a request for a wallet address, in a body or a query, that a token does not allow. */
export function foreignIdentifier(
  path: 'walletAddress' | 'wallet-address',
): Refused<'identifier_foreign'> {
  const problem = 'must be the identifier in the access of the token'
  return refusedPublicly('identifier_foreign', path, problem)
}

/**
 * Whether an action requires an item with an identifier: because it spends, or because it gives access to resources of
 * other clients.
 *
 * `read-all` on incoming payments is the exception. The wallet of a payer uses it to read an incoming payment
 * whose URL it was given, at a resource server that does not know it. The URL holds 128 random bits, so
 * knowing it is the permission.
 */
export function needsIdentifier(type: AccessType, action: AccessAction): boolean {
  if (type === 'outgoing-payment' || action === 'list-all') return true
  return action === 'read-all' && type !== 'incoming-payment'
}

/**
 * Whether the owner has to choose an account for an item before it is granted. Quotes need no identifier: without one,
 * `read-all` shows a client only its own quotes.
 */
export function lacksIdentifier({ type, actions, identifier }: AccessItem): boolean {
  return (
    identifier === undefined &&
    type !== 'quote' &&
    actions.some((action) => needsIdentifier(type, action))
  )
}

/**
 * Whether the `debitAmount` of an item, if it has one, is in the asset of an account: otherwise the client could not
 * pay from it. A `receiveAmount` is in the asset of the receiver.
 *
 * @example
 * ```ts
 * import { fitsAccount } from 'open-payments-server/core'
 *
 * const debitAmount = { value: '5000', assetCode: 'USD', assetScale: 2 }
 * const asked = { type: 'outgoing-payment', actions: ['create'], limits: { debitAmount } } as const
 * fitsAccount(asked, { assetCode: 'EUR', assetScale: 2 }) // false
 * ```
 */
export function fitsAccount({ limits }: AccessItem, account: Asset): boolean {
  return limits?.debitAmount === undefined || sameAsset(limits.debitAmount, account)
}

function includesAction(actions: readonly AccessAction[], action: AccessAction): boolean {
  if (actions.includes(action)) return true
  if (action === 'read') return actions.includes('read-all')
  if (action === 'list') return actions.includes('list-all')
  return false
}

function coversLimits(wide: Limits, narrow: Limits, counting: IntervalCounting): boolean {
  return (
    (wide.receiver === undefined || wide.receiver === narrow.receiver) &&
    coversInterval(wide, narrow, counting) &&
    coversAmount(wide.debitAmount, narrow.debitAmount) &&
    coversAmount(wide.receiveAmount, narrow.receiveAmount)
  )
}

/**
 * Whether `narrow` applies only at times when `wide` does, and does not renew its amounts more often. An amount without
 * an interval applies to the life of the grant, so only an interval with a single window may replace it.
 */
function coversInterval(wide: Limits, narrow: Limits, counting: IntervalCounting): boolean {
  if (wide.interval === narrow.interval) return true
  const inner = narrow.interval === undefined ? undefined : parseInterval(narrow.interval)
  if (!inner?.ok) return false
  if (wide.interval === undefined) {
    const isLimited = wide.debitAmount !== undefined || wide.receiveAmount !== undefined
    return !isLimited || hasOneWindow(inner.value, counting)
  }
  const outer = parseInterval(wide.interval)
  return outer.ok && coversWindows(outer.value, inner.value, counting)
}

function coversAmount(wide: Amount | undefined, narrow: Amount | undefined): boolean {
  return wide === undefined || (narrow !== undefined && isWithin(narrow, wide))
}
