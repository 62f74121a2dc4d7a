import type { SubjectId } from '../core/grant/subject.js'

/** A client instance asks who the resource owner is, and the owner agrees to be named. */
export interface SubjectQuery {
  /** The host's name for the owner, as it was given to `approve`. */
  readonly resourceOwner: string
  /** The owner's wallet addresses as they were given to `approve`, canonical. */
  readonly walletAddresses: readonly string[]
  /** Who the client instance takes the owner to be. */
  readonly requested: SubjectId
  /** Wallet address of the client instance, proved by its signature. */
  readonly client: string
}

/**
 * Names resource owners to client instances. `walletAddressSubjects` is the implementation that confirms a
 * wallet address.
 */
export interface Subjects {
  /**
   * Answers what the owner is called for this client instance: the identifier that was asked for, or another
   * of the same owner. `undefined` when that is not this owner: the approval is refused then, for one owner
   * must not be taken for another. Called at each approval that names the owner; what it answered when the
   * grant was approved is kept with it. When it rejects, so does the approval, and nothing has happened.
   */
  resolve(query: SubjectQuery): Promise<SubjectId | undefined>
}
