import { changed, type Decision, refused, unchanged } from '../decision.js'
import type { Instant } from '../instant.js'
import {
  type Grant,
  type GrantEvent,
  type GrantPolicy,
  grantEvent,
  grantStatus,
  grantTime,
  type IssuedToken,
  nextVersion,
  type Rotation,
} from './record.js'
import { derivationOf, issuedToken, type NextToken, sameHash } from './token.js'

/** The token that a request presents at a management URI. */
export interface ManagedToken {
  /** SHA-256 of the token's secret. */
  readonly hash: string
  /** The random part of the URI's path. */
  readonly manage: string
}

/** The client instance rotates its access token (RFC 9635 section 6.1). */
export interface RotateToken {
  readonly type: 'rotate'
  readonly commandId: string
  readonly presented: ManagedToken
  readonly nextToken: NextToken
  /** Hash of the request's signature; absent if the request has a nonce to detect a replay by. */
  readonly signature?: string
}

export type RotateRefusal = 'token_not_managed_here' | 'token_revoked' | 'grant_over'

/** A token of a grant, found by a presented one. */
interface FoundToken {
  readonly token: IssuedToken
  /** The derivation of the token, if the presented one is the token that it replaced. */
  readonly replaced?: Rotation
}

/** Finds the token of the grant that is presented, or whose predecessor is. */
export function managedToken(
  { tokens = [] }: Grant,
  { hash, manage }: ManagedToken,
): FoundToken | undefined {
  for (const token of tokens) {
    if (token.manage === manage && sameHash(token.hash, hash)) return { token }
    const { derivation } = token
    if (derivation?.manage === manage && sameHash(derivation.from, hash)) {
      return { token, replaced: derivation }
    }
  }
  return undefined
}

export function rotate(
  grant: Grant,
  command: RotateToken,
  now: Instant,
  policy: GrantPolicy,
): Decision<Grant, GrantEvent, RotateRefusal> {
  const { presented } = command
  const found = managedToken(grant, presented)
  if (found === undefined) {
    return refused('token_not_managed_here', 'the token does not belong to this management URI')
  }
  const { token, replaced } = found
  if (replaced !== undefined && now >= replaced.until) {
    return refused(
      'token_not_managed_here',
      'the token was replaced, and its rotation can no longer be repeated',
    )
  }
  const status = grantStatus(grant, now, policy)
  if (status === 'token-revoked' || token.revokedAt !== undefined) {
    return refused('token_revoked', 'the token has been revoked')
  }
  if (status !== 'issued') return refused('grant_over', `the status of the grant is ${status}`)
  if (replaced !== undefined) return unchanged(grant)

  const nextToken = nextTokenFor(grant, token, command, now, policy)
  const tokens = grant.tokens?.map((each) => (each === token ? nextToken : each)) ?? []
  const next = nextVersion(grant, { tokens }, command.commandId, now, policy)
  return changed(next, grantEvent('grant.rotated', next, now, token.label))
}

function nextTokenFor(
  grant: Grant,
  { label }: IssuedToken,
  command: RotateToken,
  now: Instant,
  policy: GrantPolicy,
): IssuedToken {
  const { presented, nextToken } = command
  const { hash, manage, salt } = nextToken
  const token = issuedToken(grant, { ...(label && { label }), hash, manage }, now, policy)
  const until = repeatableUntil(token, now, policy)
  const derivation = derivationOf(presented.hash, salt, command, until)
  return { ...token, derivation: { ...derivation, manage: presented.manage } }
}

/**
 * Returns until when the replaced token yields its replacement again: as long as the replacement is valid. A client
 * instance without it has no other credential for the grant. This never yields two active tokens, because the replaced
 * token is inactive and a repeat returns the same replacement.
 */
function repeatableUntil(
  { expiresAt }: IssuedToken,
  now: Instant,
  { retryMs }: GrantPolicy,
): Instant {
  return retryMs === 0 ? now : Math.max(now + retryMs, expiresAt)
}

/** Whether an access token is active at the resource server (RFC 9767 section 3.3). */
export function isActive(
  grant: Grant,
  tokenHash: string,
  clock: Instant,
  policy: GrantPolicy,
): boolean {
  return activeToken(grant, tokenHash, clock, policy) !== undefined
}

/** Returns the token of the grant with this hash, if it is active. */
export function activeToken(
  grant: Grant,
  tokenHash: string,
  clock: Instant,
  policy: GrantPolicy,
): IssuedToken | undefined {
  const now = grantTime(grant, clock)
  if (grantStatus(grant, now, policy) !== 'issued') return undefined
  const token = grant.tokens?.find(({ hash }) => sameHash(hash, tokenHash))
  if (token === undefined || token.revokedAt !== undefined) return undefined
  return now < token.expiresAt ? token : undefined
}
