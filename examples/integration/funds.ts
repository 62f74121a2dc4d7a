import type { ResourceServices } from 'open-payments-server'

// #region funds
/** What to do with funds that have arrived on your rail, by the id of the transfer. */
export async function fundsArrived(
  { incomingPayments }: Pick<ResourceServices, 'incomingPayments'>,
  address: string,
  transferId: string,
  value: string,
): Promise<'credit' | 'credited before' | 'later' | 'return'> {
  const payment = await incomingPayments.findByIlpAddress(address)
  if (payment === undefined) return 'return'
  const { paymentId, receivedAmount } = payment
  const funds = { transferId, amount: { ...receivedAmount, value } }
  const received = await incomingPayments.receive(paymentId, funds)
  if (received.ok) return received.changed ? 'credit' : 'credited before'
  if (received.refusal === 'review_required') return 'later' // at `received.retryAt`
  // Funds go back only once they can no longer count: another report may have come.
  const closed = await incomingPayments.close(transferId, { paymentId })
  if (!closed.ok) throw new Error(`${transferId}: ${closed.reason}`)
  return closed.counted ? 'credited before' : 'return'
}
// #endregion funds
