import { type Limits, type TokenItem, tokenItem } from '../core/access.js'
import type { Asset } from '../core/amount.js'
import { parseWith, receiverSchema, urlSchema } from '../protocol/schema.js'
import { canonicalUrl } from '../protocol/url.js'
import {
  boolean,
  type Check,
  exactly,
  having,
  InvalidInputError,
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
  /** The host's identifier of the owner, stored on the grant. */
  readonly resourceOwner: string
  /**
   * The owner's accounts, at least one: URLs of wallet addresses, or objects with `url` and asset, such as your accounts,
   * whose other members are ignored. Every granted `identifier` must be one of them. With the asset, an approval of a
   * `debitAmount` in another asset is refused with `asset_mismatch`; without it, the payments would be.
   */
  readonly walletAddresses: readonly (string | (Asset & { readonly url: string }))[]
  /**
   * The wallet address that the owner chose for the items of `needAccount` in the `InteractionView`. Default: the owner's
   * only one; an owner with several must choose. Items of `access` can have an `identifier` each instead.
   */
  readonly account?: string
  /**
   * The granted access, if less than the requested access: fewer items or actions, a receiver, lower amounts, or fewer
   * windows of the interval, see docs/grants.md. Items of a request for several tokens have the `label` of their token.
   * An approval of more than the requested access is refused. Default: all requested access.
   */
  readonly access?: readonly TokenItem[]
  /** When false, the client instance does not receive the subject that it requested. Default true. */
  readonly sharesSubject?: boolean
}

const isApproval = exactly<GrantApproval>({
  resourceOwner: text,
  walletAddresses: listOf((path, value) => {
    const check = typeof value === 'object' ? anAccount : matching(urlSchema)
    check(path, value)
  }),
  account: optional(string),
  access: optional(
    listOf(
      exactly<TokenItem>({
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
      }),
    ),
  ),
  sharesSubject: optional(boolean),
})

function matching(schema: Parameters<typeof parseWith>[0]): Check {
  return (path, value) => {
    const read = parseWith(schema, value)
    if (!read.ok) throw new InvalidInputError(path, read.problem)
  }
}

/**
 * Checks an approval, and returns it with canonical URLs, as in the request that it is compared with.
 *
 * @throws {InvalidInputError} for an invalid approval.
 */
export function readApproval(approval: GrantApproval) {
  isApproval('approval', approval)
  const { walletAddresses, account, access, ...rest } = approval
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
  }
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
