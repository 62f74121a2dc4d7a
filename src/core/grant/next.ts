import { endOfItems, grantedItems, type TokenItem } from '../access.js'
import type { Instant } from '../instant.js'
import {
  type Derivation,
  derivationsOf,
  endOf,
  type Grant,
  type GrantPolicy,
  type IssuedToken,
} from './record.js'

type Bookkeeping = 'id' | 'version' | 'commandId' | 'dueAt' | 'retainUntil'

/**
 * Returns the next version of a grant. Every transition uses it to update version and retention. A salt is kept until
 * its response can no longer be repeated; after a change of one token, the continuation can no longer be repeated.
 */
export function nextVersion(
  grant: Grant,
  changes: Partial<Omit<Grant, Bookkeeping>>,
  commandId: string,
  now: Instant,
  policy: GrantPolicy,
): Grant {
  const past = derivationsOf(grant).filter(({ until }) => now >= until)
  const { derivation, tokens, ...rest } = { ...grant, ...changes }
  const one = changes.tokens !== undefined && changes.derivation === undefined
  const next = {
    ...rest,
    ...(derivation && !one && !past.includes(derivation) && { derivation }),
    ...(tokens && { tokens: tokens.map((token) => withoutPast(token, past)) }),
    version: grant.version + 1,
    commandId,
  }
  return withRetention(next, now, policy)
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
  return nextVersion(
    grant,
    { state: 'finalized', finalized: { ...finalized, at: now } },
    commandId,
    now,
    policy,
  )
}

/** Returns the granted items and their end, fixed now so that a later policy does not change them. */
export function grantedAccess(
  access: readonly TokenItem[],
  policy: GrantPolicy,
): Pick<Grant, 'granted' | 'endsAt'> {
  const granted = grantedItems(access, policy.intervalCounting)
  const endsAt = endOfItems(granted)
  return endsAt === undefined ? { granted } : { granted, endsAt }
}

/**
 * Updates the retention of the record. A grant with consent is kept until it is revoked or its last window ends.
 * If its windows ended before its creation, the retention period starts now.
 */
export function withRetention(grant: Grant, now: Instant, policy: GrantPolicy): Grant {
  const { dueAt: _dueAt, retainUntil: _retainUntil, ...rest } = grant
  const over = grant.finalized === undefined ? lastUse(grant, policy) : now
  if (over === undefined) return rest
  const retainUntil = Math.max(over, now) + policy.retentionMs
  return { ...rest, retainUntil, dueAt: retainUntil }
}

function lastUse(grant: Grant, policy: GrantPolicy): Instant | undefined {
  return grant.state === 'pending' ? grant.interaction?.expiresAt : endOf(grant, policy)
}
