import {
  covers,
  type GrantedItem,
  isWellFormed,
  labelsOf,
  publicItem,
  type TokenItem,
} from '../access.js'
import { type Amount, isWithin } from '../amount.js'
import { changed, type Decision, refused, unchanged } from '../decision.js'
import type { Instant } from '../instant.js'
import { contradictsLimits, type GrantConditions, type SpendingLimit } from '../limits.js'
import { narrowedLimits } from '../spending-limits.js'
import { type JsonObject, sameJson } from '../stored.js'
import { refuseAssets } from './account-assets.js'
import { withAmendment } from './amendment-log.js'
import { type Grant, type GrantEvent, type GrantPolicy, grantEvent } from './record.js'
import { grantStatus } from './status.js'
import { nextVersion } from './version.js'

/** The resource owner narrows an approved grant, or pauses it. */
export interface AmendGrant {
  readonly type: 'amend'
  readonly commandId: string
  /** The owner who amends, if the host says so. Another owner's grant is not amended. */
  readonly resourceOwner?: string
  /** The items that remain. Default: all items, unchanged. */
  readonly access?: readonly AmendedItem[]
  /** The conditions that change. */
  readonly conditions?: ConditionChanges
}

/**
 * A granted item as it remains. The `itemId` of the granted item also identifies its budget, so spending stays counted.
 */
export interface AmendedItem extends TokenItem {
  readonly itemId: string
}

/** Changes of conditions. An absent member changes nothing. */
export interface ConditionChanges {
  /** A lower maximum, or one where there is none. */
  readonly paymentMax?: Amount
  /** Fewer wallet addresses, or some where there are none. */
  readonly receivers?: readonly string[]
  /** All limits that then apply: those that are set, lowered or as they are, and new ones. */
  readonly limits?: readonly SpendingLimit[]
  /** Any instant: the owner may also end a pause. `null`: no pause. */
  readonly pausedUntil?: Instant | null
  /** Replaces the host's own conditions. `null`: none. */
  readonly data?: JsonObject | null
}

/** Why a grant is not amended. Minor versions add members: give a `switch` a `default`. */
export type AmendRefusal =
  | 'grant_pending'
  | 'grant_over'
  | 'not_the_owner'
  | 'access_widened'
  | 'nothing_granted'
  | 'conditions_widened'
  | 'asset_mismatch'
  | 'limits_contradicted'

export function amend(
  grant: Grant,
  { access, conditions: changes = {}, ...command }: AmendGrant,
  now: Instant,
  policy: GrantPolicy,
): Decision<Grant, GrantEvent, AmendRefusal> {
  const status = grantStatus(grant, now)
  const { granted: present, conditions: before = {}, ...rest } = grant
  if (status === 'pending') return refused('grant_pending', 'the resource owner has not decided')
  if (status !== 'approved' || present === undefined) {
    return refused('grant_over', `the grant is ${status}`)
  }
  const { commandId, resourceOwner } = command
  if (resourceOwner !== undefined && resourceOwner !== grant.consent?.resourceOwner) {
    return refused('not_the_owner', 'another owner consented to the grant')
  }

  const granted = access === undefined ? present : narrowed(present, access)
  if (granted === undefined) {
    return refused('access_widened', 'the access exceeds the granted access')
  }
  const tokens = remainingTokens(grant, granted, now)
  if (!isUseful(granted, present) || tokens?.every(({ revokedAt }) => revokedAt !== undefined)) {
    return refused('nothing_granted', 'no access would remain: revoke the grant instead')
  }
  const conditions = narrowedConditions(before, changes)
  if (conditions === undefined) {
    return refused(
      'conditions_widened',
      'paymentMax, receivers and limits can only become narrower',
    )
  }
  if (contradictsLimits(conditions, granted)) {
    return refused('limits_contradicted', 'the conditions are not in the asset of a limit')
  }
  if (sameJson(granted, present) && sameJson(conditions, before)) return unchanged(grant)
  const mismatch = refuseAssets(granted, conditions, grant.consent?.accounts ?? [])
  if (mismatch !== undefined) return mismatch

  const { derivation } = grant
  const next = nextVersion(
    rest,
    {
      granted,
      ...(Object.keys(conditions).length > 0 && { conditions }),
      amendments: withAmendment(grant, { access: granted, conditions }, now),
      // The client did nothing, so it may still repeat the request whose response it lost.
      ...(tokens !== undefined && { tokens, ...(derivation !== undefined && { derivation }) }),
    },
    commandId,
    now,
    policy,
  )
  if (grantStatus(next, now) !== 'approved') {
    return refused(
      'nothing_granted',
      'the windows of all remaining items are over: revoke the grant instead',
    )
  }
  return changed(next, grantEvent('grant.amended', next, now))
}

/**
 * Returns the granted items as they remain, in their order, or `undefined` if one of `access` is not within the granted
 * item with its id. The interval stays as it is, because it identifies the budget: with another one, what was spent
 * would be forgotten.
 */
function narrowed(
  present: readonly GrantedItem[],
  access: readonly AmendedItem[],
): readonly GrantedItem[] | undefined {
  const remaining = present.flatMap((item) => {
    const { identifier: _identifier, limits: _limits, ...kept } = item
    const asked = access.filter(({ itemId }) => itemId === item.itemId)
    return asked
      .filter((each) => isNarrower(item, each))
      .map((each) => ({ ...kept, ...publicItem(each) }))
  })
  const ids = new Set(remaining.map(({ itemId }) => itemId))
  return ids.size === access.length ? remaining : undefined
}

function isNarrower(item: GrantedItem, asked: AmendedItem): boolean {
  return (
    asked.label === item.label &&
    // Only the consent knows which wallet addresses are the owner's.
    asked.identifier === item.identifier &&
    asked.limits?.interval === item.limits?.interval &&
    covers(item, asked) &&
    isWellFormed(asked)
  )
}

/**
 * Whether the remaining items allow anything. Quotes are only useful for payments, and do not end with the windows of
 * the other items.
 */
function isUseful(granted: readonly GrantedItem[], present: readonly GrantedItem[]): boolean {
  const onlyQuotes = (items: readonly GrantedItem[]) => items.every(({ type }) => type === 'quote')
  return granted.length > 0 && (!onlyQuotes(granted) || onlyQuotes(present))
}

/** Revokes the tokens that no item remains for. */
function remainingTokens({ tokens }: Grant, granted: readonly GrantedItem[], now: Instant) {
  const labels = labelsOf(granted)
  return tokens?.map((token) =>
    token.revokedAt !== undefined || labels.includes(token.label)
      ? token
      : { ...token, revokedAt: now },
  )
}

/**
 * Returns the conditions after the changes, or `undefined` if they would allow payments that the owner did not allow
 * before. A pause may end: it was only ever a delay of what the owner consented to.
 */
function narrowedConditions(
  before: GrantConditions,
  { paymentMax = before.paymentMax, receivers = before.receivers, ...changes }: ConditionChanges,
): GrantConditions | undefined {
  const { pausedUntil = before.pausedUntil, data = before.data } = changes
  const isHigher =
    before.paymentMax !== undefined &&
    paymentMax !== undefined &&
    !isWithin(paymentMax, before.paymentMax)
  if (isHigher || receivers?.some((each) => before.receivers?.includes(each) === false)) {
    return undefined
  }
  const limits = changes.limits
    ? narrowedLimits(before.limits ?? [], changes.limits)
    : (before.limits ?? [])
  if (limits === undefined) return undefined
  return {
    ...(paymentMax !== undefined && { paymentMax }),
    ...(receivers !== undefined && {
      receivers: before.receivers?.filter((each) => receivers.includes(each)) ?? receivers,
    }),
    ...(typeof pausedUntil === 'number' && { pausedUntil }),
    ...(limits.length > 0 && { limits }),
    ...(data !== undefined && data !== null && { data }),
  }
}
