import { endOfItems, type GrantedItem, grantedItems, type TokenItem } from '../access.js'
import { decisionTime, type Instant } from '../instant.js'
import type { IntervalCounting } from '../interval.js'
import type { Stored } from '../stored.js'

/**
 * The client instance, identified by its wallet address, whose JWKS contains its keys, or by its key alone
 * (directed identity). In both cases the grant is bound to the thumbprint of the key (RFC 7638).
 */
export interface GrantClient {
  readonly walletAddress?: string
  readonly kid: string
  readonly thumbprint: string
  /** The public key, if the client instance has no wallet address. */
  readonly x?: string
}

/** The redirect of the browser at the end of the interaction (RFC 9635 section 2.5.2). */
export interface FinishMethod {
  readonly uri: string
  readonly nonce: string
  readonly hashMethod: HashMethod
}

export type HashMethod = 'sha-256' | 'sha-512'

/** The interaction of a grant with a resource owner (RFC 9635 section 4). */
export interface Interaction {
  /** Random part of the path of the interaction. */
  readonly path: string
  readonly expiresAt: Instant
  /** The server's nonce for the interaction hash. */
  readonly nonce: string
  readonly finish?: FinishMethod
  /** SHA-256 of the current interaction reference. */
  readonly refHash?: string
}

/** How the client instance continues the request (RFC 9635 section 3.1). */
export interface Continuation {
  readonly path: string
  /** SHA-256 of the continuation token's secret. */
  readonly tokenHash: string
  readonly waitMs: number
  /** When the last call was accepted, by the clock of the server that accepted it; the wait starts then. */
  readonly acceptedAt: Instant
}

/** A current access token. */
export interface IssuedToken {
  /** The label by which the client instance requested it; absent if it requested a single token. */
  readonly label?: string
  /** SHA-256 of its secret. */
  readonly hash: string
  /** The random part of the path of its management URI, new for each token. */
  readonly manage: string
  readonly issuedAt: Instant
  readonly expiresAt: Instant
  /** How the token was derived from the token that it replaced; absent if it replaced none. */
  readonly derivation?: Rotation
  /** When the client instance revoked this token, while others of the grant remained. */
  readonly revokedAt?: Instant
}

/**
 * How tokens were derived: each is the HMAC of `salt`, and of its label if it has one, under the secret whose hash
 * is `from`. A client instance that lost the response can therefore get the same tokens again.
 */
export interface Derivation {
  readonly from: string
  readonly salt: string
  readonly until: Instant
  /** Hash of the request's signature, if the request had no nonce to detect a replay by. */
  readonly signature?: string
  /** The id of the command with that signature. For this command, the signature is not a replay. */
  readonly commandId?: string
}

/** How a token was derived from the one that it replaced. */
export interface Rotation extends Derivation {
  /** The management path of the token that was rotated. */
  readonly manage: string
}

/** Why a grant is final: `token-revoked` if the client instance revoked its last token. */
export type Finalization = 'denied' | 'cancelled' | 'revoked' | 'token-revoked'

/** The resource owner's consent. */
export interface Consent {
  readonly resourceOwner: string
  readonly at: Instant
}

/**
 * A grant with its interaction, continuation and access tokens, in one record, so revoking the grant always
 * revokes its tokens. A single token is a set of one without a label.
 */
export interface Grant extends Stored {
  readonly state: 'pending' | 'approved' | 'finalized'
  readonly finalized?: {
    readonly as: Finalization
    readonly at: Instant
    /** The owner who denied the request, if the host said so. */
    readonly resourceOwner?: string
  }
  readonly createdAt: Instant
  readonly client: GrantClient
  /** The requested access of all tokens. */
  readonly requested: readonly TokenItem[]
  /** The subject that the client instance requested, if any. */
  readonly requestedSubject?: SubjectId
  /** The granted access of all tokens; absent until approved. */
  readonly granted?: readonly GrantedItem[]
  /** The subject that the client instance receives. Absent until approved, or if the owner withheld it. */
  readonly subject?: SubjectId
  /**
   * End of the last window of the granted items, at which the grant ends. Absent if an item other than a quote has no
   * interval, or one that repeats without end. A grant of only a subject ends when its response can no longer be
   * repeated.
   */
  readonly endsAt?: Instant
  /** Absent if the policy did not require consent. */
  readonly consent?: Consent
  readonly interaction?: Interaction
  readonly continuation: Continuation
  /** One token for each label that has granted access; absent until issued. */
  readonly tokens?: readonly IssuedToken[]
  /** When a grant of only a subject was issued; it has no access token with that instant. */
  readonly issuedAt?: Instant
  /**
   * How the continuation derived all tokens. Absent once a token has been rotated or revoked, because the client
   * instance has then received the response.
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

/** The status of a grant at an instant. Expiry depends on the clock alone; no job records it. */
export type GrantStatus =
  | 'pending'
  | 'approved'
  | 'issued'
  | 'interaction-expired'
  | 'ended'
  | Finalization

/** Returns how the current tokens of a grant were derived. */
export function derivationsOf({ derivation, tokens = [] }: Grant): readonly Derivation[] {
  const all = [derivation, ...tokens.map((token) => token.derivation)]
  return all.filter((each) => each !== undefined)
}

/** Returns the time of a decision about a grant. */
export function grantTime(
  { createdAt, consent, issuedAt, tokens = [], finalized }: Grant,
  now: Instant,
): Instant {
  let time = decisionTime(now, createdAt, consent?.at, issuedAt, finalized?.at)
  for (const token of tokens) time = decisionTime(time, token.issuedAt, token.revokedAt)
  return time
}

export function grantStatus(grant: Grant, clock: Instant, policy: GrantPolicy): GrantStatus {
  if (grant.finalized !== undefined) return grant.finalized.as
  const now = grantTime(grant, clock)
  if (grant.state === 'pending') {
    const expiresAt = grant.interaction?.expiresAt
    return expiresAt !== undefined && now >= expiresAt ? 'interaction-expired' : 'pending'
  }
  const endsAt = endOf(grant, policy)
  if (endsAt !== undefined && now >= endsAt) return 'ended'
  return isIssued(grant) ? 'issued' : 'approved'
}

/** Whether the client instance has received the granted access or subject. */
export function isIssued({ tokens, issuedAt }: Grant): boolean {
  return tokens !== undefined || issuedAt !== undefined
}

/**
 * Returns when the grant ends without being revoked: at the end of its last window, and, without a resource owner's
 * consent, also `unusedLifetimeMs` after its last token has expired. Returns `undefined` if the grant does not end.
 */
export function endOf(grant: Grant, policy: GrantPolicy): Instant | undefined {
  const { consent, tokens, endsAt } = grant
  if (consent !== undefined || tokens === undefined) return endsAt
  const unusedAt = Math.max(...tokens.map(({ expiresAt }) => expiresAt)) + policy.unusedLifetimeMs
  return endsAt === undefined ? unusedAt : Math.min(unusedAt, endsAt)
}

/** Returns the owner id of a client instance's resources: its wallet address or its key's URN (RFC 9278). */
export function clientId(client: Pick<GrantClient, 'walletAddress' | 'thumbprint'>): string {
  return client.walletAddress ?? `urn:ietf:params:oauth:jwk-thumbprint:sha-256:${client.thumbprint}`
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
    | 'grant.token-revoked'
    | 'grant.cancelled'
    | 'grant.revoked'
  readonly at: Instant
  readonly grantId: string
  /** Wallet address of the client instance, or the URN of its key's thumbprint. */
  readonly client: string
  /** The owner who consented or, for `grant.denied`, the owner who denied, if the host said so. */
  readonly resourceOwner?: string
  /** The label of the token that was rotated or revoked, if the client instance requested several. */
  readonly label?: string
}

export function grantEvent(
  type: GrantEvent['type'],
  grant: Grant,
  at: Instant,
  label?: string,
): GrantEvent {
  const named = label === undefined ? {} : { label }
  const event = { type, at, grantId: grant.id, client: clientId(grant.client), ...named }
  const { resourceOwner } = grant.consent ?? grant.finalized ?? {}
  return resourceOwner === undefined ? event : { ...event, resourceOwner }
}

type Bookkeeping = 'id' | 'version' | 'commandId' | 'dueAt' | 'retainUntil'

/**
 * Returns the next version of a grant. Every transition uses it to update version and retention. A salt is kept until
 * its response can no longer be repeated; after a change of one token, the continuation can no longer be repeated.
 */
export function nextVersion(
  grant: Grant,
  changes: Partial<Omit<Grant, Bookkeeping>>,
  commandId: string,
  now: Instant,
  policy: GrantPolicy,
): Grant {
  const past = derivationsOf(grant).filter(({ until }) => now >= until)
  const { derivation, tokens, ...rest } = { ...grant, ...changes }
  const one = changes.tokens !== undefined && changes.derivation === undefined
  const next = {
    ...rest,
    ...(derivation && !one && !past.includes(derivation) && { derivation }),
    ...(tokens && { tokens: tokens.map((token) => withoutPast(token, past)) }),
    version: grant.version + 1,
    commandId,
  }
  return withRetention(next, now, policy)
}

function withoutPast(token: IssuedToken, past: readonly Derivation[]): IssuedToken {
  const { derivation, ...withoutSalt } = token
  return derivation !== undefined && past.includes(derivation) ? withoutSalt : token
}

/** Finalizes a grant. Keeps the hashes, so that a repeated request is still recognized. */
export function finalize(
  grant: Grant,
  finalized: Omit<NonNullable<Grant['finalized']>, 'at'>,
  commandId: string,
  now: Instant,
  policy: GrantPolicy,
): Grant {
  return nextVersion(
    grant,
    { state: 'finalized', finalized: { ...finalized, at: now } },
    commandId,
    now,
    policy,
  )
}

/** Returns the granted items and their end, fixed now so that a later policy does not change them. */
export function grantedAccess(
  access: readonly TokenItem[],
  policy: GrantPolicy,
): Pick<Grant, 'granted' | 'endsAt'> {
  const granted = grantedItems(access, policy.intervalCounting)
  const endsAt = endOfItems(granted)
  return endsAt === undefined ? { granted } : { granted, endsAt }
}

/**
 * Updates the retention of the record. A grant with consent is kept until it is revoked or its last window ends.
 * If its windows ended before its creation, the retention period starts now.
 */
export function withRetention(grant: Grant, now: Instant, policy: GrantPolicy): Grant {
  const { dueAt: _dueAt, retainUntil: _retainUntil, ...rest } = grant
  const over = grant.finalized === undefined ? lastUse(grant, policy) : now
  if (over === undefined) return rest
  const retainUntil = Math.max(over, now) + policy.retentionMs
  return { ...rest, retainUntil, dueAt: retainUntil }
}

function lastUse(grant: Grant, policy: GrantPolicy): Instant | undefined {
  return grant.state === 'pending' ? grant.interaction?.expiresAt : endOf(grant, policy)
}
