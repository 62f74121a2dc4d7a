import type { AccessItem, GrantedItem } from '../access.js'
import type { Instant, Stored } from '../decision.js'
import type { IntervalCounting } from '../interval.js'
import type { SubjectId } from './subject.js'

/**
 * Who asks. A client instance is known by its wallet address, whose JWKS holds its keys, or by the key
 * alone (directed identity). Either way the grant is bound to the key's thumbprint (RFC 7638).
 */
export interface GrantClient {
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
  /** Hash of the signature that asked for it, where no nonce tells a repeat of the same bytes. */
  readonly signature?: string
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
  readonly client: GrantClient
  readonly requested: readonly AccessItem[]
  /** Who the client instance asked the resource owner to be; absent when it did not ask. */
  readonly requestedSubject?: SubjectId
  /** Set once approved; absent while the resource owner has not decided. */
  readonly granted?: readonly GrantedItem[]
  /** How the resource owner is named to the client instance. Absent until approved, and where it was withheld. */
  readonly subject?: SubjectId
  /**
   * When the last window of what was granted is over, and with it the grant. Absent where an item other than
   * a quote has no interval, or one that repeats without end. A grant of a subject alone ends when its answer
   * cannot be asked for again.
   */
  readonly endsAt?: Instant
  /** Absent when policy asked for no consent. */
  readonly consent?: Consent
  readonly interaction?: Interaction
  readonly continuation: Continuation
  readonly token?: IssuedToken
  /** When a grant of a subject alone was issued, which has no access token to tell it by. */
  readonly issuedAt?: Instant
  readonly derivation?: Derivation
}

/** What the machine decides by. Durations are in milliseconds. */
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
  /** How the windows of intervals are counted in grants that are made from now on. */
  readonly intervalCounting: IntervalCounting
}

/** What a grant is at an instant. Expiry is read off the clock, never written by a job. */
export type GrantStatus =
  | 'pending'
  | 'approved'
  | 'issued'
  | 'interaction-expired'
  | 'ended'
  | Finalization

export function grantStatus(grant: Grant, now: Instant, policy: GrantPolicy): GrantStatus {
  if (grant.finalized !== undefined) return grant.finalized.as
  if (grant.state === 'pending') {
    const expiresAt = grant.interaction?.expiresAt
    return expiresAt !== undefined && now >= expiresAt ? 'interaction-expired' : 'pending'
  }
  const endsAt = endOf(grant, policy)
  if (endsAt !== undefined && now >= endsAt) return 'ended'
  return isIssued(grant) ? 'issued' : 'approved'
}

/** Whether the client instance has been given what was granted. */
export function isIssued({ token, issuedAt }: Grant): boolean {
  return token !== undefined || issuedAt !== undefined
}

/**
 * When the grant's life ends by itself: with its last window, and without a resource owner's consent also
 * when it has not been used for long. Otherwise it lives until it is revoked.
 */
export function endOf(grant: Grant, policy: GrantPolicy): Instant | undefined {
  const { consent, token, endsAt } = grant
  if (consent !== undefined || token === undefined) return endsAt
  const unusedAt = token.expiresAt + policy.unusedLifetimeMs
  return endsAt === undefined ? unusedAt : Math.min(unusedAt, endsAt)
}

/** The name by which a client instance owns what it creates: its wallet address, or its key (RFC 9278). */
export function clientId(client: Pick<GrantClient, 'walletAddress' | 'thumbprint'>): string {
  return client.walletAddress ?? `urn:ietf:params:oauth:jwk-thumbprint:sha-256:${client.thumbprint}`
}
