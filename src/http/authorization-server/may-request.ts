import type { TokenItem } from '../../core/access.js'
import type { SubjectId } from '../../core/grant/subject.js'
import { ofDependency } from '../../service/mechanism/dependency-failure.js'
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

/** Whether to allow a grant request, or a reason for refusing it, which only the operator sees. */
export type MayRequestAnswer = boolean | { readonly reason: string }

/** Decides whether a client instance may make a grant request. */
export type MayRequest = (asked: RequestedGrant) => MayRequestAnswer | Promise<MayRequestAnswer>

/** Refuses a request that the host does not allow. Fails closed: only `true` allows it, and a rejection causes 503. */
export async function refuseRequest(
  mayRequest: MayRequest,
  asked: RequestedGrant,
): Promise<HttpRefusal | undefined> {
  const admission = await ofDependency('mayRequest', () => mayRequest(asked))
  if (admission === true) return undefined
  const { reason = 'the host does not allow it' } = admission || {}
  return refuse('request_not_allowed', reason)
}
