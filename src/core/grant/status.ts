import { decisionTime, type Instant } from '../instant.js'
import type { Finalization, Grant, IssuedToken } from './record.js'
import { sameHash } from './token.js'

/**
 * The status of a grant at an instant (RFC 9635 section 1.5): `pending` until the resource owner decides, `approved`
 * while the client can use it, and then the reason why it is finalized.
 */
export type GrantStatus = 'pending' | 'approved' | Finalization

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

export function grantTime(
  { createdAt, consent, issuedAt, tokens = [], amendments, finalized }: Grant,
  now: Instant,
): Instant {
  const amendedAt = amendments?.at(-1)?.at
  let time = decisionTime(now, createdAt, consent?.at, issuedAt, amendedAt, finalized?.at)
  for (const token of tokens) time = decisionTime(time, token.issuedAt, token.revokedAt)
  return time
}

/**
 * Whether an access token is active at the resource server (RFC 9767 section 3.3).
 *
 * @example
 * ```ts
 * import { createHash } from 'node:crypto'
 * import { isActive } from 'open-payments-server/core'
 *
 * const tokenHash = createHash('sha256').update('the secret of the token').digest('base64url')
 * isActive(grant, tokenHash, Date.now()) // false
 * ```
 */
export function isActive(grant: Grant, tokenHash: string, clock: Instant): boolean {
  return activeToken(grant, tokenHash, clock) !== undefined
}

export function activeToken(
  grant: Grant,
  tokenHash: string,
  clock: Instant,
): IssuedToken | undefined {
  const now = grantTime(grant, clock)
  if (grantStatus(grant, now) !== 'approved') return undefined
  const token = grant.tokens?.find(({ hash }) => sameHash(hash, tokenHash))
  if (token === undefined || token.revokedAt !== undefined) return undefined
  return now < token.expiresAt ? token : undefined
}
