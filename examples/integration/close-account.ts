import type { AuthorizationServer, ResourceServer } from 'open-payments-server'

/** The account that its owner closes. */
export interface ClosedAccount {
  readonly walletAddress: string
  /** Your name of the owner, as passed to `approve`. */
  readonly resourceOwner: string
}

interface Servers {
  readonly auth: AuthorizationServer
  readonly resources: ResourceServer
}

// #region close
/**
 * Ends what an account has open, once `walletAddresses.find` has `active: false`.
 * Returns the ids of the payments that are being decided or sent, or are in doubt: call
 * it again until there are none, then pay out the balance.
 */
export async function closeAccount(
  { auth, resources }: Servers,
  { walletAddress, resourceOwner }: ClosedAccount,
): Promise<readonly string[]> {
  const { incomingPayments, outgoingPayments } = resources
  const statuses = ['pending', 'approved'] as const
  const open = { resourceOwner, walletAddress, statuses }
  for await (const grant of auth.grants.iterate(open)) {
    await auth.grants.revoke(grant.grantId) // declines what waits under it
  }
  const left: string[] = []
  // What its owner has ordered has no grant, and may wait for its confirmation.
  for (let cursor: string | undefined, more = true; more; ) {
    const query = { walletAddress, first: 100, cursor }
    const { result, pagination } = await outgoingPayments.listToConfirm(query)
    for (const { paymentId } of result) {
      const declined = await outgoingPayments.decline(paymentId, { resourceOwner })
      if (!declined.ok) left.push(paymentId) // its owner has just confirmed it
    }
    cursor = pagination.endCursor
    more = pagination.hasNextPage
  }
  for await (const payment of outgoingPayments.iterate({ walletAddress })) {
    const { paymentId, status, endedAt, inDoubt } = payment
    const isOver = status === 'created' && (await outgoingPayments.cancel(paymentId)).ok
    if (!isOver && (endedAt === undefined || inDoubt)) left.push(paymentId)
  }
  for await (const payment of incomingPayments.iterate({ walletAddress })) {
    if (payment.status === 'open') await incomingPayments.cancel(payment.paymentId)
  }
  return left
}
// #endregion close
