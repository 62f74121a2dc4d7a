import type { Instant } from '../decision.js'
import type { Derivation, Grant, GrantPolicy, IssuedToken } from './record.js'

/** What a new token is made of. The command carries it whole, so that deciding twice changes nothing. */
export interface NextToken {
  /** SHA-256 of the new token's secret. */
  readonly hash: string
  /** The random part of the new management URI. */
  readonly manage: string
  /** What the secret was derived with. */
  readonly salt: string
}

/** An access token as it is issued: its life begins now, and lasts no longer than the grant. */
export function issuedToken(
  { endsAt = Number.POSITIVE_INFINITY }: Pick<Grant, 'endsAt'>,
  { hash, manage }: Pick<IssuedToken, 'hash' | 'manage'>,
  now: Instant,
  { accessTokenLifetimeMs }: GrantPolicy,
): IssuedToken {
  const expiresAt = Math.max(now, Math.min(now + accessTokenLifetimeMs, endsAt))
  return { hash, manage, issuedAt: now, expiresAt }
}

/** Whether the very bytes that the live token was derived for are there again. */
export function isRepeat({ derivation }: Grant, signature: string | undefined): boolean {
  return signature !== undefined && derivation?.signature === signature
}

/** A token derived from what was presented, and how to derive it again when the response was lost. */
export function derivedToken(
  grant: Pick<Grant, 'endsAt'>,
  nextToken: NextToken,
  asked: Omit<Derivation, 'salt' | 'until'>,
  now: Instant,
  policy: GrantPolicy,
): Required<Pick<Grant, 'token' | 'derivation'>> {
  return {
    token: issuedToken(grant, nextToken, now, policy),
    derivation: { ...asked, salt: nextToken.salt, until: now + policy.retryMs },
  }
}
