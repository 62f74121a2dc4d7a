import { type Changed, changed, type Decision, refused, unchanged } from '../decision.js'
import type { Instant } from '../instant.js'
import { withKey } from './key.js'
import {
  type Grant,
  type GrantEvent,
  type GrantKey,
  type GrantPolicy,
  grantEvent,
} from './record.js'
import { type GrantStatus, grantStatus } from './status.js'
import { issuedTokens, type NewToken, sameHash } from './token.js'
import { nextVersion } from './version.js'

/** The client continues its request (RFC 9635 sections 5.1 and 5.2). */
export interface ContinueGrant {
  readonly type: 'continue'
  readonly commandId: string
  /** SHA-256 of the interaction reference; absent when polling. */
  readonly refHash?: string
  /** The salt from which the secrets of all tokens were derived. */
  readonly salt: string
  /** A token for each label that was requested. Only those with granted access are issued. */
  readonly nextTokens: readonly NewToken[]
  /** The key that signed the request. Default: the recorded one. */
  readonly key?: GrantKey
}

/** Why a grant is not continued. */
export type ContinueRefusal =
  | 'too_fast'
  | 'poll_with_finish'
  | 'grant_gone'
  | 'grant_denied'
  | 'interaction_timed_out'
  | 'interact_ref_wrong'
  | 'interact_ref_used'
  | 'already_issued'

type Continued = Decision<Grant, GrantEvent, ContinueRefusal>

interface ContinuationTime {
  /** The time of the decision, which is not before any instant on the record. */
  readonly now: Instant
  /** The time on this server's clock. It can be before instants on the record that another server wrote. */
  readonly clock: Instant
}

/** Decides a continuation request. The first check that fails determines the refusal. */
export function decideContinuation(
  grant: Grant,
  command: ContinueGrant,
  { now, clock }: ContinuationTime,
  policy: GrantPolicy,
): Continued {
  const { continuation, interaction } = grant
  const { refHash } = command
  const status = grantStatus(grant, now)

  const { acceptedAt, waitMs } = continuation
  const nextCallAt = acceptedAt + waitMs
  // If a server whose clock is ahead accepted the last call, `acceptedAt` can be in the future. Enforcing the wait
  // would then take longer than `waitMs`.
  const waits = acceptedAt <= clock && clock < nextCallAt
  if ((status === 'pending' || status === 'interaction-expired') && waits) {
    return refused('too_fast', 'the client continued before the wait time had passed', nextCallAt)
  }
  if (refHash === undefined && interaction?.finish !== undefined) {
    return refused('poll_with_finish', 'the grant has a finish method, so it cannot be polled')
  }
  const finished = refuseFinished(status)
  if (finished !== undefined) return finished
  if (grant.issuedAt !== undefined) return retry(grant, refHash, now)
  const expected = interaction?.refHash
  if (refHash !== undefined && (expected === undefined || !sameHash(refHash, expected))) {
    return refused('interact_ref_wrong', 'the interaction reference does not belong to this grant')
  }
  const continued: Changed<Grant, GrantEvent> =
    status === 'pending'
      ? changed(stillPending(grant, command, { now, clock }, policy))
      : issue(grant, command, now, policy)
  return withKey(continued, command.key, now)
}

function refuseFinished(status: GrantStatus) {
  switch (status) {
    case 'cancelled':
    case 'revoked':
    case 'expired':
      return refused('grant_gone', `the grant is ${status}`)
    case 'denied':
      return refused('grant_denied', 'the resource owner denied the request')
    case 'interaction-expired':
      return refused('interaction_timed_out', 'the interaction expired without a decision')
    case 'pending':
    case 'approved':
      return undefined
  }
}

/** Repeats a lost response: within the retry window the same tokens are derived again. */
function retry(grant: Grant, refHash: string | undefined, now: Instant): Continued {
  const derivation = grant.derivation
  const presentedHash = refHash ?? grant.continuation.tokenHash
  if (
    derivation !== undefined &&
    now < derivation.until &&
    sameHash(presentedHash, derivation.from)
  ) {
    return unchanged(grant)
  }
  return refHash === undefined
    ? refused('already_issued', 'the tokens of this grant have been issued')
    : refused('interact_ref_used', 'the interaction reference has been used')
}

function stillPending(
  grant: Grant,
  command: ContinueGrant,
  { now, clock }: ContinuationTime,
  policy: GrantPolicy,
): Grant {
  const continuation = { ...grant.continuation, acceptedAt: clock }
  return nextVersion(grant, { continuation }, command.commandId, now, policy)
}

function issue(
  grant: Grant,
  command: ContinueGrant,
  now: Instant,
  policy: GrantPolicy,
): Changed<Grant, GrantEvent> {
  const from = command.refHash ?? grant.continuation.tokenHash
  const derivation = { from, salt: command.salt, until: now + policy.retryMs }
  const tokens = issuedTokens(grant, command.nextTokens, now, policy)
  // A grant of only a subject expires when its response can no longer be repeated.
  const issued = tokens.length === 0 ? { expiresAt: derivation.until } : { tokens }
  const changes = { ...issued, derivation, issuedAt: now }
  const next = nextVersion(grant, changes, command.commandId, now, policy)
  return changed(next, grantEvent('grant.issued', next, now))
}
