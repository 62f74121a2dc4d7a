import { endOfItems, labelsOf } from '../access.js'
import type { Instant } from '../instant.js'
import type { Grant, GrantPolicy, IssuedToken } from './record.js'

/** The parts of a new token that the caller chooses. */
export interface NewToken {
  /** The label of the token; absent for a single token. */
  readonly label?: string
  /** SHA-256 of the token's secret. */
  readonly hash: string
  /** The random part of the management URI. */
  readonly manage: string
}

/**
 * The parts of a token that replaces another, whose label it keeps. They are in the command, so deciding again gives
 * the same token.
 */
export interface NextToken extends Omit<NewToken, 'label'> {
  /** The salt from which the secret was derived. */
  readonly salt: string
}

/** Creates the tokens that have granted access. A set omits tokens without access (RFC 9635 section 3.2.2). */
export function issuedTokens(
  grant: Pick<Grant, 'granted'>,
  tokens: readonly NewToken[],
  now: Instant,
  policy: GrantPolicy,
): readonly IssuedToken[] {
  const labels = labelsOf(grant.granted ?? [])
  return tokens
    .filter(({ label }) => labels.includes(label))
    .map((token) => issuedToken(grant, token, now, policy))
}

/** Creates an access token that is valid from now on, and not beyond the last window of the granted items. */
export function issuedToken(
  { granted = [] }: Pick<Grant, 'granted'>,
  { label, hash, manage }: Omit<NewToken, 'label'> & { readonly label?: string | undefined },
  now: Instant,
  { accessTokenLifetimeMs }: GrantPolicy,
): IssuedToken {
  const windowsEnd = endOfItems(granted) ?? Number.POSITIVE_INFINITY
  const expiresAt = Math.max(now, Math.min(now + accessTokenLifetimeMs, windowsEnd))
  return { ...(label !== undefined && { label }), hash, manage, issuedAt: now, expiresAt }
}

/** Compares two hashes in constant time, so that the duration does not reveal how many characters match. */
export function sameHash(a: string, b: string): boolean {
  if (a.length !== b.length) return false
  let difference = 0
  for (let i = 0; i < a.length; i++) difference |= a.charCodeAt(i) ^ b.charCodeAt(i)
  return difference === 0
}
