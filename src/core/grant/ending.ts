import { changed, type Decision, type Instant, refused, unchanged } from '../decision.js'
import { type GrantEvent, grantEvent } from './event.js'
import { finalize } from './next.js'
import { type Grant, type GrantPolicy, type Standing, standingOf } from './record.js'
import { type ManagedToken, managedToken } from './rotation.js'

/** The client instance takes its request back (RFC 9635 section 5.4). */
export interface CancelGrant {
  readonly type: 'cancel'
  readonly by: string
}

/** The client instance gives its access token up (RFC 9635 section 6.2). */
export interface RevokeToken {
  readonly type: 'revoke-token'
  readonly by: string
  readonly presented: ManagedToken
}

/** The resource owner, or the host in their name, withdraws what was granted. */
export interface RevokeGrant {
  readonly type: 'revoke'
  readonly by: string
}

export function cancel(
  grant: Grant,
  command: CancelGrant,
  now: Instant,
  policy: GrantPolicy,
): Decision<Grant, GrantEvent, 'grant_finalized'> {
  const standing = standingOf(grant, now, policy)
  if (!isOpen(standing)) return refused('grant_finalized', `the grant is ${standing}`)
  const next = finalize(grant, 'cancelled', command.by, now, policy)
  return changed(next, grantEvent('grant.cancelled', next, now))
}

export function revokeToken(
  grant: Grant,
  command: RevokeToken,
  now: Instant,
  policy: GrantPolicy,
): Decision<Grant, GrantEvent, 'token_not_managed_here'> {
  if (managedToken(grant, command.presented) !== 'live') {
    return refused('token_not_managed_here', 'not the token of this management URI')
  }
  return end(grant, 'token-revoked', command.by, now, policy)
}

export function revoke(
  grant: Grant,
  command: RevokeGrant,
  now: Instant,
  policy: GrantPolicy,
): Decision<Grant, GrantEvent, never> {
  return end(grant, 'revoked', command.by, now, policy)
}

function end(
  grant: Grant,
  as: 'revoked' | 'token-revoked',
  by: string,
  now: Instant,
  policy: GrantPolicy,
) {
  if (!isOpen(standingOf(grant, now, policy))) return unchanged(grant)
  const next = finalize(grant, as, by, now, policy)
  return changed(next, grantEvent('grant.revoked', next, now))
}

/** Whether there is anything left to end. What time has ended is as final as what somebody did. */
function isOpen(standing: Standing): boolean {
  return standing === 'pending' || standing === 'approved' || standing === 'issued'
}
