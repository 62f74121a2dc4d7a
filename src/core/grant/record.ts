import type { AccessItem, GrantedItem } from '../access.js'
import type { Instant, Stored } from '../decision.js'

/**
 * Who asks. A client instance is known by its wallet address, whose JWKS holds its keys, or by the key
 * alone (directed identity). Either way the grant is bound to the key's thumbprint (RFC 7638).
 */
export interface Client {
  readonly walletAddress?: string
  readonly kid: string
  readonly thumbprint: string
  /** The public key itself, when the client instance has no wallet address to look it up at. */
  readonly x?: string
}

/** Where the browser goes when the interaction is over (RFC 9635 section 2.5.2). */
export interface Finish {
  readonly uri: string
  readonly nonce: string
  readonly hashMethod: HashMethod
}

export type HashMethod = 'sha-256' | 'sha-512'

/** The part of a grant that a resource owner meets (RFC 9635 section 4). */
export interface Interaction {
  /** The grant's own random part of the interaction's path. */
  readonly path: string
  readonly expiresAt: Instant
  /** The server's nonce for the interaction hash. */
  readonly nonce: string
  readonly finish?: Finish
  /** SHA-256 of the one interaction reference that is good now. */
  readonly refHash?: string
}

/** How the client instance continues the request (RFC 9635 section 3.1). */
export interface Continuation {
  readonly path: string
  /** SHA-256 of the continuation token's secret. */
  readonly tokenHash: string
  readonly waitMs: number
  /** When the last call was accepted; the wait counts from here. */
  readonly acceptedAt: Instant
}

/** The one live access token. */
export interface IssuedToken {
  /** SHA-256 of its secret. */
  readonly hash: string
  /** The random part of its management URI's path; a new one with each token. */
  readonly manage: string
  readonly issuedAt: Instant
  readonly expiresAt: Instant
}

/**
 * How the live token was derived, so that a client instance that lost the response gets the same one
 * again: the HMAC of `salt` under the secret whose hash is `from`.
 */
export interface Derivation {
  readonly from: string
  /** The management path of the token that was rotated. */
  readonly manage?: string
  readonly salt: string
  readonly until: Instant
}

/** Why a grant will never change again. */
export type Finalization = 'denied' | 'cancelled' | 'revoked' | 'token-revoked'

/** In whose name access was granted. */
export interface Consent {
  readonly resourceOwner: string
  readonly at: Instant
}

/**
 * A grant, with its interaction, its continuation and its access token: one record, so that revoking it
 * revokes its token by construction.
 */
export interface Grant extends Stored {
  readonly state: 'pending' | 'approved' | 'finalized'
  readonly finalized?: { readonly as: Finalization; readonly at: Instant }
  readonly createdAt: Instant
  readonly client: Client
  readonly requested: readonly AccessItem[]
  /** Set once approved; absent while the resource owner has not decided. */
  readonly granted?: readonly GrantedItem[]
  /** Absent when policy asked for no consent. */
  readonly consent?: Consent
  readonly interaction?: Interaction
  readonly continuation: Continuation
  readonly token?: IssuedToken
  readonly derivation?: Derivation
}

/** Durations, in milliseconds, that the machine decides by. */
export interface GrantPolicy {
  readonly accessTokenLifetimeMs: number
  readonly interactionLifetimeMs: number
  readonly waitMs: number
  /** How long a lost response can be asked for again. */
  readonly retryMs: number
  /** How long a grant that needed no consent lives on after its last token has expired. */
  readonly unusedLifetimeMs: number
  /** How long a finished grant is kept, so that its credentials are still told from unknown ones. */
  readonly retentionMs: number
}

/** What a grant is at an instant. Expiry is read off the clock, never written by a job. */
export type Standing =
  | 'pending'
  | 'approved'
  | 'issued'
  | 'interaction-expired'
  | 'ended'
  | Finalization

export function standingOf(grant: Grant, now: Instant, policy: GrantPolicy): Standing {
  if (grant.finalized !== undefined) return grant.finalized.as
  if (grant.state === 'pending') {
    const expiresAt = grant.interaction?.expiresAt
    return expiresAt !== undefined && now >= expiresAt ? 'interaction-expired' : 'pending'
  }
  const endsAt = endOf(grant, policy)
  if (endsAt !== undefined && now >= endsAt) return 'ended'
  return grant.token === undefined ? 'approved' : 'issued'
}

/** When the grant's life ends by itself. With a resource owner's consent it lives until it is revoked. */
export function endOf(grant: Grant, policy: GrantPolicy): Instant | undefined {
  return grant.consent === undefined && grant.token !== undefined
    ? grant.token.expiresAt + policy.unusedLifetimeMs
    : undefined
}

/** The name by which a client instance owns what it creates: its wallet address, or its key (RFC 9278). */
export function clientId(client: Pick<Client, 'walletAddress' | 'thumbprint'>): string {
  return client.walletAddress ?? `urn:ietf:params:oauth:jwk-thumbprint:sha-256:${client.thumbprint}`
}
