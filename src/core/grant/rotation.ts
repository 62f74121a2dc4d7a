import { changed, type Decision, refused, unchanged } from '../decision.js'
import type { Instant } from '../instant.js'
import { withKey } from './key.js'
import {
  type Grant,
  type GrantEvent,
  type GrantKey,
  type GrantPolicy,
  grantEvent,
  type IssuedToken,
  type Rotation,
} from './record.js'
import { grantStatus } from './status.js'
import { issuedToken, type NextToken, sameHash } from './token.js'
import { nextVersion } from './version.js'

/** The token that a request presents at a management URI. */
export interface ManagedToken {
  /** SHA-256 of the token's secret. */
  readonly hash: string
  /** The random part of the URI's path. */
  readonly manage: string
}

/** The client rotates its access token (RFC 9635 section 6.1). */
export interface RotateToken {
  readonly type: 'rotate'
  readonly commandId: string
  readonly presented: ManagedToken
  readonly nextToken: NextToken
  /** The key that signed the request. Default: the recorded one. */
  readonly key?: GrantKey
}

/** Why a token is not rotated. */
export type RotateRefusal = 'token_not_managed_here' | 'token_revoked' | 'grant_over'

interface FoundToken {
  readonly token: IssuedToken
  /** How the token was derived, if the presented one is the token that it replaced. */
  readonly replaced?: Rotation
}

/** Finds the token of the grant that is presented, or that replaced the presented one. */
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
  if (token.revokedAt !== undefined) return refused('token_revoked', 'the token has been revoked')
  const status = grantStatus(grant, now)
  if (status !== 'approved') return refused('grant_over', `the grant is ${status}`)
  if (replaced !== undefined) return unchanged(grant)

  const nextToken = nextTokenFor(grant, token, command, now, policy)
  const tokens = grant.tokens?.map((each) => (each === token ? nextToken : each)) ?? []
  const next = nextVersion(grant, { tokens }, command.commandId, now, policy)
  const rotated = changed(next, grantEvent('grant.rotated', next, now, token.label))
  return withKey(rotated, command.key, now)
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
  const token = issuedToken(grant, { label, hash, manage }, now, policy)
  const { hash: from, manage: at } = presented
  const derivation = { manage: at, from, salt, until: repeatableUntil(token, now, policy) }
  return { derivation, ...token }
}

/**
 * Returns until when a rotation can be repeated: as long as the new token is valid. A client that lost the response has
 * no other credential for the grant. There are never two active tokens, because the old token is inactive and a repeat
 * returns the same new token.
 */
function repeatableUntil(
  { expiresAt }: IssuedToken,
  now: Instant,
  { retryMs }: GrantPolicy,
): Instant {
  return retryMs === 0 ? now : Math.max(now + retryMs, expiresAt)
}
