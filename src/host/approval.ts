import { type Limits, type TokenItem, tokenItem } from '../core/access.js'
import { parseWith, receiverSchema, urlSchema } from '../protocol/schema.js'
import { canonicalUrl } from '../protocol/url.js'
import {
  boolean,
  type Check,
  exactly,
  InvalidInputError,
  listOf,
  optional,
  text,
} from '../util/input.js'
import { amount } from './payments.js'

/** The consent of a resource owner. */
export interface GrantApproval {
  /** The host's identifier of the owner, stored on the grant. */
  readonly resourceOwner: string
  /** The owner's wallet addresses, at least one. Every granted `identifier` must be one of them. */
  readonly walletAddresses: readonly string[]
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
  walletAddresses: listOf(matching(urlSchema)),
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
export function readApproval(approval: GrantApproval): GrantApproval {
  isApproval('approval', approval)
  const { walletAddresses, access, ...rest } = approval
  if (walletAddresses.length === 0) {
    throw new InvalidInputError(
      'approval.walletAddresses',
      'must contain at least one wallet address',
    )
  }
  return {
    ...rest,
    walletAddresses: [...new Set(walletAddresses.map(canonical))],
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
