import type { GrantedItem, TokenItem } from '../access.js'
import type { Instant } from '../instant.js'
import type { IntervalCounting } from '../interval.js'
import type { GrantConditions } from '../limits.js'
import type { Stored } from '../stored.js'
import type { GrantedAccount } from './account-assets.js'

/**
 * The client, identified by its wallet address, whose JWKS contains its keys, or only by its key (directed identity).
 * In the second case the grant is bound to this key; in the first, `KeyBinding` says which keys sign.
 */
export interface GrantClient {
  readonly walletAddress?: string
  /** The `kid` of the key that signed the request, or the last continuation or rotation that was recorded. */
  readonly kid: string
  /** The public key, base64url. */
  readonly x: string
  /** Its thumbprint (RFC 7638). */
  readonly thumbprint: string
}

/** The key that signed a request of a client. */
export type GrantKey = Omit<GrantClient, 'walletAddress'>

/** What tells a key of a client from its others: the public key itself is not part of it. */
export type ClientKeyId = Pick<GrantClient, 'kid' | 'thumbprint'>

/** The redirect of the browser at the end of the interaction (RFC 9635 section 2.5.2). */
export interface FinishMethod {
  readonly uri: string
  readonly nonce: string
  readonly hashMethod: HashMethod
}

/** The hash of an interaction (RFC 9635 section 4.2.3), by its name in the registry of Named Information. */
export type HashMethod = 'sha-256' | 'sha-512'

/** The interaction of a grant with a resource owner (RFC 9635 section 4). */
export interface Interaction extends Partial<StoredReference> {
  /** SHA-256 of the secret in the path of the interaction. */
  readonly pathHash: string
  /** Until when the owner can decide. */
  readonly expiresAt: Instant
  /** The server's nonce for the interaction hash. */
  readonly nonce: string
  readonly finish?: FinishMethod
}

/**
 * The interaction reference in the redirect (RFC 9635 section 4.2.1), as the store has it. The reference is the HMAC of
 * `refSalt` by the secret in the path of the interaction. A reader of the store has no path, and the client no salt, so
 * that neither can compute the reference, and a repeated decision leads to the same one.
 */
export interface StoredReference {
  /** SHA-256 of the reference. */
  readonly refHash: string
  readonly refSalt: string
}

/** How the client continues the request (RFC 9635 section 3.1). */
export interface Continuation {
  readonly path: string
  /** SHA-256 of the continuation token's secret. */
  readonly tokenHash: string
  /** How long the client has to wait between two calls, in milliseconds. */
  readonly waitMs: number
  /** When the last call was accepted, by the clock of the server that accepted it; the wait starts then. */
  readonly acceptedAt: Instant
}

/** A current access token. */
export interface IssuedToken {
  /** The label by which the client requested it; absent if it requested a single token. */
  readonly label?: string
  /** SHA-256 of its secret. */
  readonly hash: string
  /** The random part of the path of its management URI, new for each token. */
  readonly manage: string
  readonly issuedAt: Instant
  /** When the token expires. */
  readonly expiresAt: Instant
  /** How the token was derived from the token that it replaced; absent if it replaced none. */
  readonly derivation?: Rotation
  /** When the client revoked this token, while others of the grant remained. */
  readonly revokedAt?: Instant
}

/**
 * How tokens were derived: each is the HMAC of `salt`, and of its label if it has one. The key is what the client
 * presented: its token, followed by the interaction reference if there is one. A client that lost the response can
 * therefore get the same tokens again.
 */
export interface Derivation {
  /** The hash of the interaction reference that the client presented, or else of its token. */
  readonly from: string
  readonly salt: string
  /** Until when a repeat gets the same tokens. */
  readonly until: Instant
}

/** How a token was derived from the one that it replaced. */
export interface Rotation extends Derivation {
  /** The management path of the token that was rotated. */
  readonly manage: string
}

/**
 * Why a grant is finalized:
 *
 * - `denied`: the resource owner declined.
 * - `cancelled`: the client cancelled its request or grant.
 * - `revoked`: the host revoked the grant, or the client its last token.
 * - `interaction-expired`: nobody decided before the interaction expired.
 * - `expired`: the grant has reached its `expiresAt`.
 */
export type Finalization = 'denied' | 'cancelled' | 'revoked' | 'interaction-expired' | 'expired'

/** The resource owner's consent. */
export interface Consent {
  readonly resourceOwner: string
  readonly at: Instant
  /** The name of the client that the owner could see, in the form of `displayName`; absent if it had none. */
  readonly clientName?: string
  /** The assets of the accounts that pay, where the host stated them; absent if it stated none. */
  readonly accounts?: readonly GrantedAccount[]
}

/** A change by an amendment: what applied before it. */
export interface Amendment {
  readonly at: Instant
  readonly before: {
    /** All granted items; absent if none changed. */
    readonly access?: readonly GrantedItem[]
    /** The conditions that changed, `null` for one that did not exist; absent if none changed. */
    readonly conditions?: EarlierConditions
  }
}

/** Conditions as they were before a change; `null` for one that did not exist. */
export type EarlierConditions = {
  readonly [Name in keyof GrantConditions]?: GrantConditions[Name] | null
}

/**
 * A grant with its interaction, continuation and access tokens, in one record, so revoking the grant always
 * revokes its tokens. A single token is a set of one without a label.
 */
export interface Grant extends Stored {
  /**
   * Why the grant is finalized. Absent if the grant is not finalized, and if it has expired, which depends only on the
   * clock.
   */
  readonly finalized?: {
    readonly reason: Exclude<Finalization, 'interaction-expired' | 'expired'>
    readonly at: Instant
    /** The client, or the host on behalf of the resource owner or for reasons of its own. */
    readonly by: 'client' | 'host'
    /** The owner who denied the request, if the host said so. */
    readonly resourceOwner?: string
  }
  readonly createdAt: Instant
  readonly client: GrantClient
  /** The requested access of all tokens. */
  readonly requested: readonly TokenItem[]
  /** The subject that the client requested, if any. */
  readonly requestedSubject?: SubjectId
  /** The granted access of all tokens; absent until approved. */
  readonly granted?: readonly GrantedItem[]
  /** The subject that the client receives. Absent until approved, or if the owner withheld it. */
  readonly subject?: SubjectId
  /**
   * When an approved grant expires. With a resource owner's consent: at the end of the last window of its items; absent
   * if an item other than a quote has no interval, or one that repeats without end. Without consent: also
   * `unusedLifetimeMs` after its last token has expired. A grant of only a subject expires when its response can no
   * longer be repeated.
   */
  readonly expiresAt?: Instant
  /** Absent if the policy did not require consent. */
  readonly consent?: Consent
  /** The resource owner's conditions for payments; absent if there are none. */
  readonly conditions?: GrantConditions
  /** The changes of access and conditions since the consent, oldest first; absent if there are none. */
  readonly amendments?: readonly Amendment[]
  readonly interaction?: Interaction
  readonly continuation: Continuation
  /** When the client first received the granted access or subject. */
  readonly issuedAt?: Instant
  /** One token for each label that has granted access; absent until issued, and if there is only a subject. */
  readonly tokens?: readonly IssuedToken[]
  /**
   * How the continuation derived all tokens. Absent once a token has been rotated or revoked, because the client has
   * then received the response.
   */
  readonly derivation?: Derivation
}

/** The policy for grants. Durations are in milliseconds. */
export interface GrantPolicy {
  readonly accessTokenLifetimeMs: number
  readonly interactionLifetimeMs: number
  readonly waitMs: number
  /**
   * How long a continuation can be repeated to get a lost response again. A rotation can be repeated at least this
   * long and as long as its token is valid, or not at all if this is 0.
   */
  readonly retryMs: number
  /** How long a grant without consent lasts after its last token has expired. */
  readonly unusedLifetimeMs: number
  /** How long an ended grant is kept, so that its credentials still get specific refusals. */
  readonly retentionMs: number
  /** How the windows of intervals are counted in new grants. */
  readonly intervalCounting: IntervalCounting
}

/**
 * Returns the owner id of a client's resources: its wallet address or its key's URN (RFC 9278).
 *
 * @example
 * ```ts
 * import { clientId } from 'open-payments-server/core'
 *
 * clientId({ walletAddress: 'https://shop.example', thumbprint: '' }) // https://shop.example
 * clientId(grant.client) // or urn:ietf:params:oauth:jwk-thumbprint:sha-256:…
 * ```
 */
export function clientId(client: {
  readonly walletAddress?: string | undefined
  readonly thumbprint: string
}): string {
  return client.walletAddress ?? `urn:ietf:params:oauth:jwk-thumbprint:sha-256:${client.thumbprint}`
}

/** Returns what tells the key that signed for a grant from the other keys of its client. */
export function clientKeyOf({ client }: { readonly client: Omit<GrantClient, 'x'> }): ClientKeyId {
  const { kid, thumbprint } = client
  return { kid, thumbprint }
}

/**
 * The identifier of a person: an absolute URI, such as a wallet address.
 *
 * @see RFC 9493; Open Payments OpenAPI, schema `subject`
 */
export interface SubjectId {
  readonly id: string
  readonly format: 'uri'
}

/** What happened to a grant. No event carries a token, a reference or a key. */
export interface GrantEvent {
  readonly type:
    | 'grant.requested'
    | 'grant.approved'
    | 'grant.denied'
    | 'grant.issued'
    | 'grant.rotated'
    | 'grant.key-changed'
    | 'grant.token-revoked'
    | 'grant.amended'
    | 'grant.cancelled'
    | 'grant.revoked'
  /** When it happened, by the clock of the server that recorded it. */
  readonly at: Instant
  readonly grantId: string
  /** Wallet address of the client, or the URN of its key's thumbprint. */
  readonly client: string
  /** The owner who consented or, for `grant.denied`, the owner who denied, if the host said so. */
  readonly resourceOwner?: string
  /** The label of the token that was rotated or revoked, if the client requested several. */
  readonly label?: string
}

export function grantEvent(
  type: GrantEvent['type'],
  grant: Grant,
  at: Instant,
  label?: string,
): GrantEvent {
  const event = {
    type,
    at,
    grantId: grant.id,
    client: clientId(grant.client),
    ...(label !== undefined && { label }),
  }
  const { resourceOwner } = grant.consent ?? grant.finalized ?? {}
  return resourceOwner === undefined ? event : { ...event, resourceOwner }
}
