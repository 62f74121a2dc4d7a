import { changed, type Decision, refused, unchanged } from '../decision.js'
import type { Instant } from '../instant.js'
import {
  finalize,
  type Grant,
  type GrantEvent,
  type GrantPolicy,
  type GrantStatus,
  grantEvent,
  grantStatus,
  nextVersion,
} from './record.js'
import { type ManagedToken, managedToken } from './rotation.js'

/** The client instance cancels its request or grant (RFC 9635 section 5.4). */
export interface CancelGrant {
  readonly type: 'cancel'
  readonly commandId: string
}

/** The client instance revokes one of its access tokens (RFC 9635 section 6.2). */
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
  const status = grantStatus(grant, now, policy)
  if (!isOpen(status)) return refused('grant_finalized', `the status of the grant is ${status}`)
  const next = finalize(grant, { as: 'cancelled' }, command.commandId, now, policy)
  return changed(next, grantEvent('grant.cancelled', next, now))
}

/** Revokes one token. With its last token the grant ends. */
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
  const { tokens = [] } = grant
  const others = tokens.filter((each) => each !== token && each.revokedAt === undefined)
  if (token.revokedAt !== undefined) return unchanged(grant)
  if (others.length === 0) return end(grant, 'token-revoked', command.commandId, now, policy)
  if (!isOpen(grantStatus(grant, now, policy))) return unchanged(grant)
  const changes = {
    tokens: tokens.map((each) => (each === token ? { ...each, revokedAt: now } : each)),
  }
  const next = nextVersion(grant, changes, command.commandId, now, policy)
  return changed(next, grantEvent('grant.token-revoked', next, now, token.label))
}

export function revoke(
  grant: Grant,
  command: RevokeGrant,
  now: Instant,
  policy: GrantPolicy,
): Decision<Grant, GrantEvent, never> {
  return end(grant, 'revoked', command.commandId, now, policy)
}

function end(
  grant: Grant,
  as: 'revoked' | 'token-revoked',
  commandId: string,
  now: Instant,
  policy: GrantPolicy,
) {
  if (!isOpen(grantStatus(grant, now, policy))) return unchanged(grant)
  const next = finalize(grant, { as }, commandId, now, policy)
  return changed(next, grantEvent('grant.revoked', next, now))
}

/** Whether the grant can still be ended. A grant that expired is as final as one that was revoked. */
function isOpen(status: GrantStatus): boolean {
  return status === 'pending' || status === 'approved' || status === 'issued'
}
