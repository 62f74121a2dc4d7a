import { endOfItems, type GrantedItem, type TokenItem } from '../access.js'
import { decisionTime, type Instant } from '../instant.js'
import type { IntervalCounting } from '../interval.js'
import type { GrantConditions } from '../limits.js'
import { retained, type Stored } from '../stored.js'

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

/** How the client continues the request (RFC 9635 section 3.1). */
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
  /** The label by which the client requested it; absent if it requested a single token. */
  readonly label?: string
  /** SHA-256 of its secret. */
  readonly hash: string
  /** The random part of the path of its management URI, new for each token. */
  readonly manage: string
  readonly issuedAt: Instant
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

/**
 * The status of a grant at an instant (RFC 9635 section 1.5): `pending` until the resource owner decides, `approved`
 * while the client can use it, and then the reason why it is finalized.
 */
export type GrantStatus = 'pending' | 'approved' | Finalization

/** The resource owner's consent. */
export interface Consent {
  readonly resourceOwner: string
  readonly at: Instant
  /** The name of the client that the owner could see, in the form of `displayName`; absent if it had none. */
  readonly clientName?: string
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

/**
 * Returns the status of a grant. Whether it has expired depends only on the clock; no job records it.
 *
 * @example
 * ```ts
 * import { grantStatus } from 'open-payments-server/core'
 *
 * const inAYear = Date.now() + 365 * 86_400_000
 * console.log(grantStatus(grant, inAYear)) // such as expired
 * ```
 */
export function grantStatus(grant: Grant, clock: Instant): GrantStatus {
  const { finalized, granted, interaction, expiresAt } = grant
  if (finalized !== undefined) return finalized.reason
  const now = grantTime(grant, clock)
  const isPast = (end: Instant | undefined) => end !== undefined && now >= end
  if (granted === undefined) {
    return isPast(interaction?.expiresAt) ? 'interaction-expired' : 'pending'
  }
  return isPast(expiresAt) ? 'expired' : 'approved'
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

type Bookkeeping = 'id' | 'version' | 'commandId' | 'dueAt' | 'retainUntil'

/** Returns the next version of a grant. Every transition uses it to update version, salts and retention. */
export function nextVersion(
  grant: Grant,
  changes: Partial<Omit<Grant, Bookkeeping>>,
  commandId: string,
  now: Instant,
  policy: GrantPolicy,
): Grant {
  const past = derivationsOf(grant).filter((derivation) => !isRepeatable(derivation, now))
  const { id, derivation, tokens, ...rest } = { ...grant, ...changes }
  const isKept = derivation && !past.includes(derivation) && !showsReceipt(changes)
  // In Node 20, a literal that begins with a spread takes 1 µs for each member that the spread object lacks.
  const next = {
    id,
    ...rest,
    ...(isKept && { derivation }),
    ...(tokens !== undefined && { tokens: tokens.map((token) => withoutPast(token, past)) }),
    version: grant.version + 1,
    commandId,
  }
  return withExpiry(next, now, policy)
}

/** Whether a repeated request still gets the same tokens. After that, the salt is dropped. */
function isRepeatable({ until }: Derivation, now: Instant): boolean {
  return now < until
}

/**
 * Whether a change shows that the client received the response to its continuation: it rotated or revoked a token of
 * that response. The salt of the continuation is then dropped.
 */
function showsReceipt({ tokens, derivation }: Pick<Partial<Grant>, 'tokens' | 'derivation'>) {
  return tokens !== undefined && derivation === undefined
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
  return nextVersion(grant, { finalized: { ...finalized, at: now } }, commandId, now, policy)
}

/**
 * Sets when the grant expires, and how long its record is kept: for `retentionMs` after it is finalized or has expired.
 * If that was before now, the period starts now.
 */
export function withExpiry(grant: Grant, now: Instant, policy: GrantPolicy): Grant {
  const { id, dueAt: _dueAt, retainUntil: _retainUntil, expiresAt: _expiresAt, ...rest } = grant
  const expiresAt = expiryOf(grant, policy)
  const expiry = grant.granted === undefined ? grant.interaction?.expiresAt : expiresAt
  const endsAt = grant.finalized === undefined ? expiry : now
  return {
    id,
    ...rest,
    ...(expiresAt !== undefined && { expiresAt }),
    ...(endsAt !== undefined && retained(Math.max(endsAt, now) + policy.retentionMs)),
  }
}

function expiryOf(grant: Grant, { unusedLifetimeMs }: GrantPolicy): Instant | undefined {
  const { granted = [], consent, tokens, expiresAt } = grant
  if (granted.length === 0) return expiresAt
  const windowsEnd = endOfItems(granted)
  if (consent !== undefined || tokens === undefined) return windowsEnd
  const unusedAt = Math.max(...tokens.map((token) => token.expiresAt)) + unusedLifetimeMs
  return windowsEnd === undefined ? unusedAt : Math.min(unusedAt, windowsEnd)
}
