import { type Decision, unchanged } from './decision.js'
import { type AmendGrant, type AmendRefusal, amend } from './grant/amendment.js'
import {
  type ApproveGrant,
  approve,
  type ConsentRefusal,
  type DenyGrant,
  deny,
} from './grant/consent.js'
import {
  type ContinueGrant,
  type ContinueRefusal,
  decideContinuation,
} from './grant/continuation.js'
import {
  type CancelGrant,
  cancel,
  type RevokeGrant,
  type RevokeToken,
  revoke,
  revokeToken,
} from './grant/ending.js'
import type { Grant, GrantEvent, GrantPolicy } from './grant/record.js'
import { type RotateRefusal, type RotateToken, rotate } from './grant/rotation.js'
import { grantTime } from './grant/status.js'
import type { Instant } from './instant.js'

/** The commands that change a grant after its creation. */
export type GrantCommand =
  | ApproveGrant
  | DenyGrant
  | ContinueGrant
  | RotateToken
  | RevokeToken
  | CancelGrant
  | RevokeGrant
  | AmendGrant

/** The refusals of each command. */
export interface GrantRefusals {
  readonly approve: ConsentRefusal
  readonly deny: ConsentRefusal
  readonly continue: ContinueRefusal
  readonly rotate: RotateRefusal
  readonly 'revoke-token': 'token_not_managed_here'
  readonly cancel: 'grant_finalized'
  readonly revoke: never
  readonly amend: AmendRefusal
}

/** What became of a command to a grant, with the refusals of its type. */
export type GrantDecision<Type extends keyof GrantRefusals> = Decision<
  Grant,
  GrantEvent,
  GrantRefusals[Type]
>

/**
 * The state machine of a grant: `pending → approved → finalized` (RFC 9635 section 1.5). A grant that the client has
 * received stays `approved`, and has an `issuedAt`.
 *
 * Pure and total. A command whose id is on the record has already been carried out and changes nothing, so a commit
 * whose result was lost can be repeated safely. The time of a decision is never before an instant on the record, so a
 * clock that was set back undoes nothing.
 *
 * @example
 * ```ts
 * import { decideGrant } from 'open-payments-server/core'
 *
 * const command = { type: 'revoke', commandId: 'command-2' } as const
 * const decided = decideGrant<'revoke'>(grant, command, Date.now(), grantPolicy)
 * if (decided.ok) console.log(decided.outcome, decided.record)
 * ```
 */
export function decideGrant<Type extends keyof GrantRefusals>(
  grant: Grant,
  command: Extract<GrantCommand, { readonly type: Type }>,
  now: Instant,
  policy: GrantPolicy,
): GrantDecision<Type>
export function decideGrant(
  grant: Grant,
  command: GrantCommand,
  clock: Instant,
  policy: GrantPolicy,
): GrantDecision<keyof GrantRefusals> {
  const now = grantTime(grant, clock)
  if (grant.commandId === command.commandId) return unchanged(grant)
  switch (command.type) {
    case 'approve':
      return approve(grant, command, now, policy)
    case 'deny':
      return deny(grant, command, now, policy)
    case 'continue':
      return decideContinuation(grant, command, { now, clock }, policy)
    case 'rotate':
      return rotate(grant, command, now, policy)
    case 'revoke-token':
      return revokeToken(grant, command, now, policy)
    case 'cancel':
      return cancel(grant, command, now, policy)
    case 'revoke':
      return revoke(grant, command, now, policy)
    case 'amend':
      return amend(grant, command, now, policy)
  }
}
