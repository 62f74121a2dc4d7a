/**
 * What allows a payment that a client requests: an item of its grant. A payment that the owner of the account orders in
 * the host's own app has none of these members: no client may read it, and no budget of a grant counts it.
 */
export interface UnderGrant {
  /** The client that created it and may read it: see `clientId`. */
  readonly client: string
  readonly grantId: string
  /** The granted item that it was charged to. */
  readonly itemId: string
  /** Id of the budget of the window in which it was created. */
  readonly budgetId: string
}

/** All of these members, or none of them. */
export type AllOrNone<Members> = Members | { readonly [Name in keyof Members]?: never }

/** Who requests a payment: a client under a grant, or else the owner of the account. */
export type Requester = AllOrNone<Pick<UnderGrant, 'client' | 'grantId'>>

/**
 * Whether a client requested a payment under a grant. Otherwise the owner of the account ordered it.
 *
 * @example
 * ```ts
 * import { isUnderGrant } from 'open-payments-server/core'
 *
 * console.log(isUnderGrant(outgoingPayment) ? outgoingPayment.grantId : 'ordered by its owner')
 * ```
 */
export function isUnderGrant<Authority extends { readonly grantId?: string }>(
  authority: Authority,
): authority is Extract<Authority, { readonly grantId: string }> {
  return authority.grantId !== undefined
}

/** Whether the same client requested both, or the owner of the account did. */
export function isSameClient(one: MayHaveClient, other: MayHaveClient): boolean {
  return one.client === other.client
}

/** A payment or a request, which has no client if the owner of the account made it. */
export interface MayHaveClient {
  readonly client?: string | undefined
}

/** The members by which the host and its events name the authority of a payment. */
export function requesterOf(payment: Requester): Requester {
  return isUnderGrant(payment) ? { client: payment.client, grantId: payment.grantId } : {}
}
