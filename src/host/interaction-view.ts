import { itemsOf, labelsOf, lacksIdentifier, type TokenItem, tokenItem } from '../core/access.js'
import { type ClientKeyId, clientKeyOf, type Grant, type SubjectId } from '../core/grant/record.js'
import { type GrantStatus, grantStatus } from '../core/grant/status.js'
import type { Instant } from '../core/instant.js'
import type { GrantConditions } from '../core/limits.js'
import { type SpendingTotal, spendingTotals } from '../core/spending-total.js'
import { given } from '../util/given.js'

/** An access token that the client requests, with its access. */
export interface TokenView {
  /**
   * The label that distinguishes it from the other tokens; absent if the client requests a single token. It is text
   * that the client chose: up to 64 printable ASCII characters.
   */
  readonly label?: string
  readonly access: readonly TokenItem[]
}

/** The content of a consent page: the client, the requested access and the deadline. */
export interface InteractionView {
  readonly id: string
  readonly grantId: string
  /**
   * The status of the grant, as in `GrantView`. The owner can decide while it is `pending`, and repeat an approval
   * until `issuedAt`.
   */
  readonly status: GrantStatus
  /** When the client first received the granted access or subject: the interaction is over. */
  readonly issuedAt?: Instant
  /** Wallet address of the client, verified by its signature. */
  readonly client: string
  /**
   * The key that signed the request: its `kid` and its thumbprint (RFC 7638). If `client` is an account of the owner,
   * name the app by the owner's name for this key, because `display` then has the name of the account.
   */
  readonly clientKey: ClientKeyId
  /**
   * How a page can name the client (RFC 9635 section 2.3.2), in addition to its wallet address, and never instead of
   * it.
   */
  readonly display: {
    /**
     * The origin of the wallet address, such as `https://shop.example`. Open Payments knows no home page of a client.
     */
    readonly uri: string
    /**
     * The name that the client chose: one line of at most 64 code points, without invisible characters and without
     * those that reorder the text around them. Absent if it has none or cannot be read within 2 s, and inside a
     * transaction (`within`). Anybody can choose any name. Escape it for HTML.
     */
    readonly name?: string
  }
  /**
   * The requested access of all tokens; once approved, the granted access. Empty if only a subject is requested.
   * Items of several tokens have the `label` of their token. To grant less, pass some of these items to `approve`.
   */
  readonly access: readonly TokenItem[]
  /** The same access by token. A client can request up to 4 tokens, each with its own label. */
  readonly tokens: readonly TokenView[]
  /**
   * The items of `access` for which the owner has to choose an account, because they need an `identifier` and have
   * none. Pass the choice to `approve` as `account`. Empty if there is nothing to choose.
   */
  readonly needAccount: readonly TokenItem[]
  /**
   * The total amounts that `access` allows the client to spend. Two tokens with equal items each have their own limit,
   * so show the owner the total.
   */
  readonly totals: readonly SpendingTotal[]
  /** Once approved, the owner's conditions for payments, if any. */
  readonly conditions?: GrantConditions
  /**
   * The subject identifier that the client requests; once approved, the one that it receives. Show it to the owner,
   * because the client learns who consented. Until then it is text that the client chose: do not render it as a link.
   */
  readonly subject?: SubjectId
  /** The client's finish URI, to which the browser is redirected, if any. Show it to the owner. */
  readonly finishUri?: string
  /** Until when the owner can decide. */
  readonly expiresAt: Instant
}

/** Resolves to how a page can name the client at a wallet address. Never rejects. */
export type DisplayOf = (walletAddress: string) => Promise<InteractionView['display']>

/** Returns the view of the interaction with this id, or `undefined` if the grant has none. */
export function interactionView(
  id: string,
  grant: Grant,
  display: InteractionView['display'],
  now: Instant,
): InteractionView | undefined {
  const { interaction, client, conditions, issuedAt } = grant
  const subject = grant.granted === undefined ? grant.requestedSubject : grant.subject
  if (interaction === undefined || client.walletAddress === undefined) return undefined
  const { finish, expiresAt } = interaction
  const access = (grant.granted ?? grant.requested).map(tokenItem)
  return {
    id,
    grantId: grant.id,
    status: grantStatus(grant, now),
    ...(issuedAt !== undefined && { issuedAt }),
    client: client.walletAddress,
    clientKey: clientKeyOf(grant),
    display,
    access,
    tokens: labelsOf(access).map((label) => tokenView(access, label)),
    needAccount: access.filter(lacksIdentifier),
    totals: spendingTotals(access),
    ...given({ conditions, subject, finishUri: finish?.uri }),
    expiresAt,
  }
}

function tokenView(access: readonly TokenItem[], label: string | undefined): TokenView {
  const items = itemsOf(access, label)
  return label === undefined ? { access: items } : { label, access: items }
}
