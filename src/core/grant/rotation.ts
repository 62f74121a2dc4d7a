import { changed, type Decision, type Instant, refused, sameHash, unchanged } from '../decision.js'
import { type GrantEvent, grantEvent } from './event.js'
import { nextVersion } from './next.js'
import { type Grant, type GrantPolicy, grantStatus } from './record.js'
import { derivedToken, type NextToken, requestOf } from './token.js'

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

/** Returns which token of the grant is presented: the current one or the one it replaced, if either. */
export function managedToken(
  grant: Grant,
  { hash, manage }: ManagedToken,
): 'live' | 'replaced' | undefined {
  const { token, derivation } = grant
  if (token?.manage === manage && sameHash(token.hash, hash)) return 'live'
  if (derivation?.manage === manage && sameHash(derivation.from, hash)) return 'replaced'
  return undefined
}

export function rotate(
  grant: Grant,
  command: RotateToken,
  now: Instant,
  policy: GrantPolicy,
): Decision<Grant, GrantEvent, RotateRefusal> {
  const { presented, nextToken } = command
  const which = managedToken(grant, presented)
  if (which === undefined) {
    return refused('token_not_managed_here', 'not the token of this management URI')
  }
  if (which === 'replaced' && now >= (grant.derivation?.until ?? 0)) {
    return refused('token_not_managed_here', 'the token was replaced, and the retry window is over')
  }
  const status = grantStatus(grant, now, policy)
  if (status === 'token-revoked') return refused('token_revoked', 'the token has been revoked')
  if (status !== 'issued') return refused('grant_over', `the grant is ${status}`)
  if (which === 'replaced') return unchanged(grant)

  const { hash: from, manage } = presented
  const asked = { from, manage, ...requestOf(command) }
  const changes = derivedToken(grant, nextToken, asked, now, policy)
  const next = nextVersion(grant, changes, command.commandId, now, policy)
  return changed(next, grantEvent('grant.rotated', next, now))
}

/** Whether an access token is active at the resource server (RFC 9767 section 3.3). */
export function isActive(
  grant: Grant,
  tokenHash: string,
  now: Instant,
  policy: GrantPolicy,
): boolean {
  return (
    grantStatus(grant, now, policy) === 'issued' &&
    grant.token !== undefined &&
    sameHash(grant.token.hash, tokenHash) &&
    now < grant.token.expiresAt
  )
}
