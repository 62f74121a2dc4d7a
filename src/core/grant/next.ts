import { type AccessItem, endOfItems, grantedItems } from '../access.js'
import type { Instant } from '../decision.js'
import { endOf, type Finalization, type Grant, type GrantPolicy } from './record.js'

type Bookkeeping = 'id' | 'version' | 'commandId' | 'dueAt' | 'retainUntil'

/** The grant's next version: every transition goes through here, so that none forgets the bookkeeping. */
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

/** The grant's last version. Hashes stay, so that a repeat can be told from a stranger. */
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

/** What a grant comes to: settled when it is made, so that no later policy moves its windows or its end. */
export function grantedAccess(
  access: readonly AccessItem[],
  policy: GrantPolicy,
): Pick<Grant, 'granted' | 'endsAt'> {
  const granted = grantedItems(access, policy.intervalCounting)
  const endsAt = endOfItems(granted)
  return endsAt === undefined ? { granted } : { granted, endsAt }
}

/**
 * Sets anew how long the record is of use to anyone. A grant with consent stays until it is revoked or its
 * last window is over; one whose windows were over before it was made is kept as long as any.
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
