import { endOfItems } from '../access.js'
import type { Instant } from '../instant.js'
import { retained } from '../stored.js'
import type { Derivation, Grant, GrantPolicy, IssuedToken } from './record.js'

type Bookkeeping = 'id' | 'version' | 'commandId' | 'dueAt' | 'retainUntil'

/** Returns the next version of a grant. Every transition uses it to update version, salts and retention. */
export function nextVersion(
  grant: Grant,
  changes: Partial<Omit<Grant, Bookkeeping>>,
  commandId: string,
  now: Instant,
  policy: GrantPolicy,
): Grant {
  const past = derivationsOf(grant).filter((derivation) => !isRepeatable(derivation, now))
  const { id, derivation, tokens, ...rest } = { ...grant, ...changes }
  const isKept = derivation && !past.includes(derivation) && !showsReceipt(changes)
  // In Node 20, a literal that begins with a spread takes 1 µs for each member that the spread object lacks.
  const next = {
    id,
    ...rest,
    ...(isKept && { derivation }),
    ...(tokens !== undefined && { tokens: tokens.map((token) => withoutPast(token, past)) }),
    version: grant.version + 1,
    commandId,
  }
  return withExpiry(next, now, policy)
}

export function derivationsOf({ derivation, tokens = [] }: Grant): readonly Derivation[] {
  const all = [derivation, ...tokens.map((token) => token.derivation)]
  return all.filter((each) => each !== undefined)
}

/** Whether a repeated request still gets the same tokens. After that, the salt is dropped. */
function isRepeatable({ until }: Derivation, now: Instant): boolean {
  return now < until
}

/**
 * Whether a change shows that the client received the response to its continuation: it rotated or revoked a token of
 * that response. The salt of the continuation is then dropped.
 */
function showsReceipt({ tokens, derivation }: Pick<Partial<Grant>, 'tokens' | 'derivation'>) {
  return tokens !== undefined && derivation === undefined
}

function withoutPast(token: IssuedToken, past: readonly Derivation[]): IssuedToken {
  const { derivation, ...withoutSalt } = token
  return derivation !== undefined && past.includes(derivation) ? withoutSalt : token
}

/** Finalizes a grant. Keeps the hashes, so that a repeated request is still recognized. */
export function finalize(
  grant: Grant,
  finalized: Omit<NonNullable<Grant['finalized']>, 'at'>,
  commandId: string,
  now: Instant,
  policy: GrantPolicy,
): Grant {
  return nextVersion(grant, { finalized: { ...finalized, at: now } }, commandId, now, policy)
}

/**
 * Sets when the grant expires, and how long its record is kept: for `retentionMs` after it is finalized or has expired.
 * If that was before now, the period starts now.
 */
export function withExpiry(grant: Grant, now: Instant, policy: GrantPolicy): Grant {
  const { id, dueAt: _dueAt, retainUntil: _retainUntil, expiresAt: _expiresAt, ...rest } = grant
  const expiresAt = expiryOf(grant, policy)
  const expiry = grant.granted === undefined ? grant.interaction?.expiresAt : expiresAt
  const endsAt = grant.finalized === undefined ? expiry : now
  return {
    id,
    ...rest,
    ...(expiresAt !== undefined && { expiresAt }),
    ...(endsAt !== undefined && retained(Math.max(endsAt, now) + policy.retentionMs)),
  }
}

function expiryOf(grant: Grant, { unusedLifetimeMs }: GrantPolicy): Instant | undefined {
  const { granted = [], consent, tokens, expiresAt } = grant
  if (granted.length === 0) return expiresAt
  const windowsEnd = endOfItems(granted)
  if (consent !== undefined || tokens === undefined) return windowsEnd
  const unusedAt = Math.max(...tokens.map((token) => token.expiresAt)) + unusedLifetimeMs
  return windowsEnd === undefined ? unusedAt : Math.min(unusedAt, windowsEnd)
}
