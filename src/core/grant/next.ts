import { type AccessItem, endOfItems, grantedItems } from '../access.js'
import type { Instant } from '../decision.js'
import { endOf, type Finalization, type Grant, type GrantPolicy } from './record.js'

type Bookkeeping = 'id' | 'version' | 'commandId' | 'dueAt' | 'retainUntil'

/** Returns the next version of a grant. Every transition uses it to update version and retention. */
export function nextVersion(
  grant: Grant,
  changes: Partial<Omit<Grant, Bookkeeping>>,
  commandId: string,
  now: Instant,
  policy: GrantPolicy,
): Grant {
  const next = { ...grant, ...changes, version: grant.version + 1, commandId }
  const { derivation, ...withoutSalt } = next
  const opened = changes.derivation !== undefined
  const kept = opened || (derivation !== undefined && now < derivation.until) ? next : withoutSalt
  return withRetention(kept, now, policy)
}

/** Finalizes a grant. Keeps the hashes, so that a repeated request is still recognized. */
export function finalize(
  grant: Grant,
  as: Finalization,
  commandId: string,
  now: Instant,
  policy: GrantPolicy,
): Grant {
  return nextVersion(
    grant,
    { state: 'finalized', finalized: { as, at: now } },
    commandId,
    now,
    policy,
  )
}

/** Returns the granted items and their end, fixed now so that a later policy does not change them. */
export function grantedAccess(
  access: readonly AccessItem[],
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
