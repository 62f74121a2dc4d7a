import { changed, type Decision, refused, unchanged } from '../decision.js'
import type { Instant } from '../instant.js'
import { type Grant, type GrantEvent, type GrantPolicy, grantEvent } from './record.js'
import { type ManagedToken, managedToken } from './rotation.js'
import { type GrantStatus, grantStatus } from './status.js'
import { finalize, nextVersion } from './version.js'

/** The client cancels its request or grant (RFC 9635 section 5.4). */
export interface CancelGrant {
  readonly type: 'cancel'
  readonly commandId: string
}

/** The client revokes one of its access tokens (RFC 9635 section 6.2). */
export interface RevokeToken {
  readonly type: 'revoke-token'
  readonly commandId: string
  readonly presented: ManagedToken
}

/** The resource owner, or the host on their behalf, revokes the grant. */
export interface RevokeGrant {
  readonly type: 'revoke'
  readonly commandId: string
}

export function cancel(
  grant: Grant,
  command: CancelGrant,
  now: Instant,
  policy: GrantPolicy,
): Decision<Grant, GrantEvent, 'grant_finalized'> {
  if (grant.finalized?.by === 'client') return unchanged(grant)
  const status = grantStatus(grant, now)
  if (!isLive(status)) return refused('grant_finalized', `the grant is ${status}`)
  const next = finalize(
    grant,
    { reason: 'cancelled', by: 'client' },
    command.commandId,
    now,
    policy,
  )
  return changed(next, grantEvent('grant.cancelled', next, now))
}

export function revokeToken(
  grant: Grant,
  command: RevokeToken,
  now: Instant,
  policy: GrantPolicy,
): Decision<Grant, GrantEvent, 'token_not_managed_here'> {
  const { token, replaced } = managedToken(grant, command.presented) ?? {}
  if (token === undefined || replaced !== undefined) {
    return refused('token_not_managed_here', 'the token does not belong to this management URI')
  }
  if (token.revokedAt !== undefined) return unchanged(grant)
  if (!isLive(grantStatus(grant, now))) return unchanged(grant)
  const tokens = (grant.tokens ?? []).map((each) =>
    each === token ? { ...each, revokedAt: now } : each,
  )
  if (tokens.every(({ revokedAt }) => revokedAt !== undefined)) {
    return revokeBy('client', { ...grant, tokens }, command, now, policy)
  }
  const next = nextVersion(grant, { tokens }, command.commandId, now, policy)
  return changed(next, grantEvent('grant.token-revoked', next, now, token.label))
}

export function revoke(
  grant: Grant,
  command: RevokeGrant,
  now: Instant,
  policy: GrantPolicy,
): Decision<Grant, GrantEvent, never> {
  return revokeBy('host', grant, command, now, policy)
}

function revokeBy(
  by: 'client' | 'host',
  grant: Grant,
  { commandId }: RevokeGrant | RevokeToken,
  now: Instant,
  policy: GrantPolicy,
): Decision<Grant, GrantEvent, never> {
  if (!isLive(grantStatus(grant, now))) return unchanged(grant)
  const next = finalize(grant, { reason: 'revoked', by }, commandId, now, policy)
  return changed(next, grantEvent('grant.revoked', next, now))
}

/** Whether the grant is not finalized. A grant that expired is as final as one that was revoked. */
function isLive(status: GrantStatus): boolean {
  return status === 'pending' || status === 'approved'
}
