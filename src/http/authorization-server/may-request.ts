import type { AccessItem } from '../../core/access.js'
import type { SubjectId } from '../../core/grant/subject.js'
import { refuse } from '../pipeline.js'
import type { HttpRefusal } from '../refusals.js'

/** What a client instance asks for, once its signature has been verified and nothing granted yet. */
export interface RequestedGrant {
  /** Wallet address of the client instance, or the URN of its key's thumbprint. */
  readonly client: string
  /** Empty where a subject alone is asked for. */
  readonly access: readonly AccessItem[]
  readonly subject?: SubjectId
}

/** Whether a request may be made at all, and if not, perhaps why: for the operator, no client is told. */
export type MayRequestAnswer = boolean | { readonly reason: string }

/** The host's say in who may ask for what. */
export type MayRequest = (asked: RequestedGrant) => MayRequestAnswer | Promise<MayRequestAnswer>

/** Refuses what the host does not allow. Only `true` allows: what is no answer is none in favour. */
export async function refuseRequest(
  mayRequest: MayRequest,
  asked: RequestedGrant,
): Promise<HttpRefusal | undefined> {
  const admission = await mayRequest(asked)
  if (admission === true) return undefined
  const { reason = 'the host does not allow it' } = admission || {}
  return refuse('request_not_allowed', reason)
}
