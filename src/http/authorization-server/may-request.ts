import type { TokenItem } from '../../core/access.js'
import type { SubjectId } from '../../core/grant/record.js'
import { readHostAnswer } from '../../service/host-answer.js'
import { ofDependency } from '../../service/store-guard.js'
import { refuse } from '../pipeline.js'
import type { HttpRefusal } from '../refusals.js'

/** A grant request whose signature has been verified, before anything is granted. */
export interface RequestedGrant {
  /** Wallet address of the client instance, or the URN of its key's thumbprint. */
  readonly client: string
  /** The requested access of all tokens. Empty if only a subject is requested. */
  readonly access: readonly TokenItem[]
  readonly subject?: SubjectId
}

/** Whether to allow a grant request. `reason` is for the operator; never part of a response. */
export type MayRequestAnswer =
  | { readonly ok: true }
  | { readonly ok: false; readonly reason?: string }

/** Decides whether a client instance may make a grant request. */
export type MayRequest = (asked: RequestedGrant) => MayRequestAnswer | Promise<MayRequestAnswer>

/**
 * Refuses a request that the host does not allow. Fails closed: only `{ ok: true }` allows it, an answer that is not a
 * `MayRequestAnswer` causes 500, and a rejection causes 503.
 */
export async function refuseRequest(
  mayRequest: MayRequest,
  asked: RequestedGrant,
): Promise<HttpRefusal | undefined> {
  const answer = await ofDependency('mayRequest', () => mayRequest(asked))
  const given = readHostAnswer('mayRequest', answer)
  if (given.ok) return undefined
  return refuse('request_not_allowed', given.reason ?? 'the host does not allow it')
}
