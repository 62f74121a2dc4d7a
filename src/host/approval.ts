import { type Limits, type TokenItem, tokenItem } from '../core/access.js'
import type { Amount, Asset } from '../core/amount.js'
import type { AmendedItem, ConditionChanges } from '../core/grant/amendment.js'
import { lastInstant } from '../core/instant.js'
import type { GrantConditions } from '../core/limits.js'
import type { JsonObject } from '../core/stored.js'
import {
  amountSchema,
  parseWith,
  readHostObject,
  receiverSchema,
  urlSchema,
} from '../protocol/schema.js'
import { canonicalUrl } from '../protocol/url.js'
import {
  boolean,
  type Check,
  exactly,
  having,
  InvalidInputError,
  integer,
  integerFrom,
  listOf,
  optional,
  string,
  text,
} from '../util/input.js'
import { amount } from './payments.js'

const anAccount = having({
  url: matching(urlSchema),
  assetCode: text,
  assetScale: integerFrom(0, 255),
} satisfies Record<string, Check>)

/** The consent of a resource owner. */
export interface GrantApproval {
  /** The host's identifier of the owner, well-formed Unicode, stored on the grant. */
  readonly resourceOwner: string
  /**
   * The owner's accounts, at least one: URLs of wallet addresses, or objects with `url` and asset, such as your
   * accounts, whose other members are ignored. Every granted `identifier` must be one of them. With the asset, an
   * approval of a
   * `debitAmount` in another asset is refused with `asset_mismatch`; without it, the payments would be.
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
   * may be paid, a pause, and `data` of your own (at most 8 KiB of JSON and 8 levels). The client does not see them.
   * Default: none.
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
   * The conditions that change: a lower `paymentMax`, fewer `receivers`, any `pausedUntil` or `data`; with `null`, none
   * of the last two. An absent member changes nothing.
   */
  readonly conditions?: ConditionChanges
}

/** An access item of a grant as hosts see it. */
export interface ItemView extends TokenItem {
  /** Identifies the item and its budget, whatever an amendment changes. Absent until the grant is approved. */
  readonly itemId?: string
}

const itemMembers: Readonly<Record<keyof TokenItem, Check>> = {
  label: optional(text),
  type: text,
  actions: listOf(text),
  identifier: optional(text),
  limits: optional(
    exactly<Limits>({
      receiver: optional(matching(receiverSchema)),
      interval: optional(text),
      debitAmount: optional(amount),
      receiveAmount: optional(amount),
    }),
  ),
}

const receiversMax = 50
const receiverLengthMax = 512

/** Short enough that introspection can return all of them. */
function walletAddress(path: string, value: unknown): void {
  matching(urlSchema)(path, value)
  if (String(value).length > receiverLengthMax) {
    throw new InvalidInputError(path, `must have at most ${receiverLengthMax} characters`)
  }
}

const conditionMembers: Readonly<Record<keyof GrantConditions, Check>> = {
  paymentMax: optional((path, value) => {
    exactly<Amount>({ value: text, assetCode: text, assetScale: integer })(path, value)
    matching(amountSchema)(path, value)
  }),
  receivers: optional((path, value) => {
    listOf(walletAddress)(path, value)
    const { length } = value as readonly unknown[]
    if (length < 1 || length > receiversMax) {
      throw new InvalidInputError(path, `must contain 1 to ${receiversMax} wallet addresses`)
    }
  }),
  pausedUntil: optional(integerFrom(0, lastInstant)),
  data: optional((path, value) => void readData(path, value)),
}

const isApproval = exactly<GrantApproval>({
  resourceOwner: text,
  walletAddresses: listOf((path, value) => {
    const check = typeof value === 'object' ? anAccount : matching(urlSchema)
    check(path, value)
  }),
  account: optional(string),
  access: optional(listOf(exactly<TokenItem>(itemMembers))),
  conditions: optional(exactly<GrantConditions>(conditionMembers)),
  sharesSubject: optional(boolean),
})

const isAmendment = exactly<GrantAmendment>({
  resourceOwner: optional(text),
  access: optional(listOf(exactly<AmendedItem>({ ...itemMembers, itemId: text }))),
  conditions: optional(
    exactly<ConditionChanges>({
      ...conditionMembers,
      pausedUntil: orNull(conditionMembers.pausedUntil),
      data: orNull(conditionMembers.data),
    }),
  ),
})

function orNull(check: Check): Check {
  return (path, value) => {
    if (value !== null) check(path, value)
  }
}

function matching(schema: Parameters<typeof parseWith>[0]): Check {
  return (path, value) => {
    const read = parseWith(schema, value)
    if (!read.ok)
      throw new InvalidInputError(read.path ? `${path}.${read.path}` : path, read.problem)
  }
}

/**
 * Checks an approval, and returns it with canonical URLs, as in the request that it is compared with.
 *
 * @throws {InvalidInputError} for an invalid approval.
 */
export function readApproval(approval: GrantApproval) {
  isApproval('approval', approval)
  const { walletAddresses, account, access, conditions, ...rest } = approval
  const set = conditions && canonicalConditions(conditions)
  if (walletAddresses.length === 0) {
    throw new InvalidInputError(
      'approval.walletAddresses',
      'must contain at least one wallet address',
    )
  }
  const urls = walletAddresses.map((each) => (typeof each === 'string' ? each : each.url))
  return {
    ...rest,
    walletAddresses: [...new Set(urls.map(canonical))],
    accounts: walletAddresses.flatMap((each) => {
      if (typeof each === 'string') return []
      const { url, assetCode, assetScale } = each
      return { url: canonical(url), assetCode, assetScale }
    }),
    ...(account !== undefined && { account: canonical(account) }),
    ...(access && { access: access.map(canonicalItem) }),
    // An approval has no `null`.
    ...(set && Object.keys(set).length > 0 && { conditions: set as GrantConditions }),
  }
}

/**
 * Checks an amendment, and returns it with canonical URLs.
 *
 * @throws {InvalidInputError} for an invalid amendment.
 */
export function readAmendment(amendment: GrantAmendment) {
  isAmendment('amendment', amendment)
  const { resourceOwner, access, conditions } = amendment
  return {
    ...(resourceOwner !== undefined && { resourceOwner }),
    ...(access && {
      access: access.map(({ itemId = '', ...item }) => ({ ...canonicalItem(item), itemId })),
    }),
    ...(conditions && { conditions: canonicalConditions(conditions) }),
  }
}

function canonicalConditions({
  paymentMax,
  receivers,
  pausedUntil,
  data,
}: ConditionChanges): ConditionChanges {
  return {
    ...(paymentMax && { paymentMax: { ...paymentMax } }),
    ...(receivers && { receivers: [...new Set(receivers.map(canonical))] }),
    ...(pausedUntil !== undefined && { pausedUntil }),
    ...(data !== undefined && { data: data && readData('data', data) }),
  }
}

/** Returns a copy of the host's own conditions, which introspection can return. */
function readData(path: string, value: unknown): JsonObject {
  const read = readHostObject(value)
  if (!read.ok) throw new InvalidInputError(path, read.problem)
  return read.value
}

function canonicalItem(item: TokenItem): TokenItem {
  const { identifier, limits } = item
  const receiver = limits?.receiver
  return tokenItem({
    ...item,
    ...(identifier && { identifier: canonical(identifier) }),
    ...(receiver && { limits: { ...limits, receiver: canonical(receiver) } }),
  })
}

/** An identifier that is not a URL stays as it is: no wallet address of the owner equals it. */
function canonical(url: string): string {
  return canonicalUrl(url) ?? url
}
