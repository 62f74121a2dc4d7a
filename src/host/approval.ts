import * as v from 'valibot'
import { type Limits, type TokenItem, tokenItem } from '../core/access.js'
import type { Amount, Asset } from '../core/amount.js'
import type { AmendedItem, ConditionChanges } from '../core/grant/amendment.js'
import { lastInstant } from '../core/instant.js'
import type { GrantConditions } from '../core/limits.js'
import type { JsonObject } from '../core/stored.js'
import { amountSchema, readHostObject, receiverSchema, urlSchema } from '../protocol/schema.js'
import { spendingLimitsSchema } from '../protocol/spending-limits.js'
import { canonicalUrl } from '../protocol/url.js'
import {
  boolean,
  exactly,
  having,
  integer,
  integerFrom,
  listOf,
  type Members,
  readInput,
  string,
  text,
} from '../util/input.js'
import { amount } from './payments.js'

/** The consent of a resource owner. */
export interface GrantApproval {
  /** The host's identifier of the owner, well-formed Unicode, stored on the grant. */
  readonly resourceOwner: string
  /**
   * The owner's accounts, at least one: URLs of wallet addresses, or objects with `url` and asset, such as your
   * accounts, whose other members are ignored. Every granted `identifier` must be one of them. With the asset, an
   * approval or a later amendment with a limit in another asset is refused with `asset_mismatch`; without it, the
   * payments would be.
   */
  readonly walletAddresses: readonly (string | (Asset & { readonly url: string }))[]
  /**
   * The wallet address that the owner chose for the items of `needAccount` in the `InteractionView`. Default: the
   * owner's only one; an owner with several must choose. Items of `access` can have an `identifier` each instead.
   */
  readonly account?: string
  /**
   * The granted access, if less than the requested access: fewer items or actions, a receiver, lower amounts, or fewer
   * windows of the interval, see docs/grants.md. Items of a request for several tokens have the `label` of their token.
   * An approval of more than the requested access is refused. Default: all requested access.
   */
  readonly access?: readonly TokenItem[]
  /**
   * The owner's conditions for payments under the grant: a maximum for one payment, at most 50 wallet addresses that
   * may be paid, a pause, up to three limits for the payments in a period, and `data` of your own (at most 8 KiB of
   * JSON and 8 levels). The client does not see them. Default: none.
   */
  readonly conditions?: GrantConditions
  /** When false, the client does not receive the subject that it requested. Default true. */
  readonly sharesSubject?: boolean
}

/** A change of an approved grant, which can only become narrower, except that a pause may end. */
export interface GrantAmendment {
  /** The host's identifier of the owner. The grant of another owner is not amended. Default: not checked. */
  readonly resourceOwner?: string
  /**
   * The items that remain, each with the `itemId` of the view: with fewer actions, lower amounts or a receiver, and the
   * same wallet address and interval. Items that are absent are removed. Default: all items, unchanged.
   */
  readonly access?: readonly ItemView[]
  /**
   * The conditions that change: a lower `paymentMax`, fewer `receivers`, `limits` of which none is removed or widened,
   * any `pausedUntil` or `data`; `null` removes either of these two. An absent member changes nothing.
   */
  readonly conditions?: ConditionChanges
}

/** An access item of a grant as hosts see it. */
export interface ItemView extends TokenItem {
  /** Identifies the item and its budget, whatever an amendment changes. Absent until the grant is approved. */
  readonly itemId?: string
}

/** The canonical form of a URL. Other text stays as it is: no wallet address of the owner equals it. */
const canonicalText = v.pipe(
  string,
  v.transform((url) => canonicalUrl(url) ?? url),
)

const itemMembers = {
  label: v.optional(text),
  type: text as v.GenericSchema<TokenItem['type']>,
  actions: listOf(text) as v.GenericSchema<TokenItem['actions']>,
  identifier: v.optional(v.pipe(text, canonicalText)),
  limits: v.optional(
    exactly({
      receiver: v.optional(receiverSchema),
      interval: v.optional(text),
      debitAmount: v.optional(amount),
      receiveAmount: v.optional(amount),
    } satisfies Members<Limits>),
  ),
} satisfies Members<TokenItem>

const receiversMax = 50

/** Short enough that introspection can return all of them. */
const receiverLengthMax = 512

const receiver = v.pipe(
  urlSchema,
  v.maxLength(receiverLengthMax, `must have at most ${receiverLengthMax} characters`),
)

/** A copy of the host's own conditions, which introspection can return. */
const hostData = v.pipe(
  v.custom<JsonObject>(() => true),
  v.rawTransform(({ dataset, addIssue, NEVER }): JsonObject => {
    const read = readHostObject(dataset.value)
    if (read.ok) return read.value
    addIssue({ message: read.problem })
    return NEVER
  }),
)

const instant = integerFrom(0, lastInstant)

const conditionMembers = {
  paymentMax: v.optional(
    v.pipe(
      exactly({ value: text, assetCode: text, assetScale: integer } satisfies Members<Amount>),
      amountSchema,
    ),
  ),
  receivers: v.optional(
    v.pipe(
      listOf(receiver),
      v.check(
        ({ length }) => length >= 1 && length <= receiversMax,
        `must contain 1 to ${receiversMax} wallet addresses`,
      ),
      v.transform((urls) => [...new Set(urls)]),
    ),
  ),
  pausedUntil: v.optional(instant),
  limits: v.optional(
    v.pipe(spendingLimitsSchema, v.minLength(1, 'must contain at least one limit')),
  ),
  data: v.optional(hostData),
} satisfies Members<GrantConditions>

const account = having({
  url: urlSchema,
  assetCode: text,
  assetScale: integerFrom(0, 255),
} satisfies Members<Asset & { readonly url: string }>)

const ownersApproval = exactly({
  resourceOwner: text,
  walletAddresses: v.pipe(
    listOf(v.lazy((each) => (typeof each === 'object' ? account : urlSchema))),
    v.minLength(1, 'must contain at least one wallet address'),
  ),
  account: v.optional(canonicalText),
  access: v.optional(listOf(v.pipe(exactly(itemMembers), v.transform(tokenItem)))),
  conditions: v.optional(exactly(conditionMembers)),
  sharesSubject: v.optional(boolean),
} satisfies Members<GrantApproval>)

const ownersAmendment = exactly({
  resourceOwner: v.optional(text),
  access: v.optional(
    listOf(
      v.pipe(
        exactly({ ...itemMembers, itemId: text } satisfies Members<AmendedItem>),
        v.transform(({ itemId, ...item }) => ({ ...tokenItem(item), itemId })),
      ),
    ),
  ),
  conditions: v.optional(
    exactly({
      ...conditionMembers,
      pausedUntil: v.optional(v.nullable(instant)),
      data: v.optional(v.nullable(hostData)),
    } satisfies Members<ConditionChanges>),
  ),
} satisfies Members<GrantAmendment>)

/**
 * Reads an approval, with canonical URLs, as in the request that it is compared with.
 *
 * @throws {InvalidInputError} for an invalid approval.
 */
export function readApproval(approval: GrantApproval) {
  const { walletAddresses, conditions, ...rest } = readInput('approval', ownersApproval, approval)
  const hasConditions = conditions !== undefined && Object.keys(conditions).length > 0
  const accounts = walletAddresses.filter((each) => typeof each === 'object')
  const urls = walletAddresses.map((each) => (typeof each === 'string' ? each : each.url))
  return {
    ...rest,
    walletAddresses: [...new Set(urls)],
    accounts,
    ...(hasConditions && { conditions }),
  }
}

/**
 * Reads an amendment, with canonical URLs.
 *
 * @throws {InvalidInputError} for an invalid amendment.
 */
export function readAmendment(amendment: GrantAmendment) {
  return readInput('amendment', ownersAmendment, amendment)
}
