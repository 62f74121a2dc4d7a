import type { Instant } from '../decision.js'
import type { Derivation, Grant, GrantPolicy, IssuedToken } from './record.js'

/** What a new token is made of. The command carries it whole, so that deciding twice changes nothing. */
export interface Successor {
  /** SHA-256 of the new token's secret. */
  readonly hash: string
  /** The random part of the new management URI. */
  readonly manage: string
  /** What the secret was derived with. */
  readonly salt: string
}

/** An access token as it is issued: its life begins now. */
export function issuedToken(
  { hash, manage }: Pick<IssuedToken, 'hash' | 'manage'>,
  now: Instant,
  policy: GrantPolicy,
): IssuedToken {
  return { hash, manage, issuedAt: now, expiresAt: now + policy.accessTokenLifetimeMs }
}

/** Whether the very bytes that the live token was derived for are there again. */
export function isRepeat({ derivation }: Grant, signature: string | undefined): boolean {
  return signature !== undefined && derivation?.signature === signature
}

/** A token derived from what was presented, and how to derive it again when the response was lost. */
export function derivedToken(
  successor: Successor,
  presented: Pick<Derivation, 'from' | 'manage' | 'signature'>,
  now: Instant,
  policy: GrantPolicy,
): Required<Pick<Grant, 'token' | 'derivation'>> {
  return {
    token: issuedToken(successor, now, policy),
    derivation: { ...presented, salt: successor.salt, until: now + policy.retryMs },
  }
}
