import type { Grant, GrantPolicy } from '../../core/grant/record.js'
import {
  decideGrant,
  type GrantCommand,
  type GrantDecision,
  type GrantRefusals,
} from '../../core/grant.js'
import type { Instant } from '../../core/instant.js'
import type { Call, ServiceContext } from '../context.js'
import { recordsOf } from '../load.js'
import type { Write } from '../write/write.js'

export interface GrantingServer {
  readonly context: ServiceContext
  readonly policy: GrantPolicy
}

export type Command<Type> = Extract<GrantCommand, { readonly type: Type }>

export function commandWrite<Type extends keyof GrantRefusals>(
  { policy }: GrantingServer,
  grant: Grant,
  command: Command<Type>,
  { now }: Call,
): Write<GrantDecision<Type>> {
  const key = { kind: 'grant', id: grant.id } as const
  return {
    reads: [key],
    // The key of the client may have been looked up since: it does not depend on the grant.
    basis: { type: 'loaded', records: recordsOf('grant', grant) },
    decide(read) {
      const found = read<Grant>(key) ?? removed(grant, now)
      const decision = decideGrant<Type>(found, command, now, policy)
      if (decision.outcome !== 'changed') return { type: 'answer', result: decision }
      const { record: next, events } = decision
      return { type: 'commit', changes: [{ kind: 'grant', next, events }], result: decision }
    },
  }
}

/** Returns a grant that was removed since it was loaded. Only ended grants are, so no command may change it. */
function removed(grant: Grant, now: Instant): Grant {
  const { finalized = { reason: 'revoked', by: 'host', at: now } } = grant
  return { ...grant, finalized }
}
