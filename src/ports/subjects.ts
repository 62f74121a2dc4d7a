import type { SubjectId } from '../core/grant/record.js'

/** A client instance's request for the subject identifier of a resource owner who agreed to share it. */
export interface SubjectQuery {
  /** The host's identifier of the owner, as passed to `approve`. */
  readonly resourceOwner: string
  /** The owner's wallet addresses as passed to `approve`, in canonical form. */
  readonly walletAddresses: readonly string[]
  /** The subject identifier that the client instance asked to confirm. */
  readonly requested: SubjectId
  /** Wallet address of the client instance, verified by its signature. */
  readonly client: string
}

/**
 * Determines the subject identifiers of resource owners that client instances receive (RFC 9635 section 2.2).
 * `walletAddressSubjects` is an implementation that confirms wallet addresses.
 */
export interface Subjects {
  /**
   * Resolves to the owner's identifier for this client instance: the requested one, or another identifier of
   * the same owner. Resolves to `undefined` when the requested subject is not this owner; the approval is
   * then refused, because a client instance must not mistake one owner for another. Called at each approval
   * that shares the subject; the grant stores the result. When it rejects, so does the approval; when the identifier is
   * not an absolute URI in `id` with the format `uri`, the approval rejects with a `HostAnswerError`.
   */
  resolve(query: SubjectQuery): Promise<SubjectId | undefined>
}
