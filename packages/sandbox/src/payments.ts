import type { EventHandler, IncomingPaymentServices, ResourceServer } from 'open-payments-server'

/**
 * Carries out payments to either wallet as they are created. A payment may be delivered again: it counts once.
 *
 * @param payees the incoming payments of both wallets.
 */
export function payer(
  { outgoingPayments }: Pick<ResourceServer, 'outgoingPayments'>,
  payees: () => readonly Pick<IncomingPaymentServices, 'idOf' | 'receive'>[],
): EventHandler {
  return async (event) => {
    if (event.type !== 'outgoing-payment.created') return
    const { outgoingPaymentId: id, receiver, debitAmount, receiveAmount } = event
    const begun = await outgoingPayments.begin(id)
    if (!begun.ok && begun.refusal !== 'payment_begun') return
    for (const payee of payees()) {
      const incomingPaymentId = payee.idOf(receiver)
      if (incomingPaymentId === undefined) continue
      const transfer = { transferId: id, amount: receiveAmount }
      const received = await payee.receive(incomingPaymentId, transfer)
      if (received.ok) {
        const totals = { sentAmount: debitAmount, deliveredAmount: receiveAmount }
        await outgoingPayments.reportSent(id, totals)
      } else {
        const publicReason = 'the receiver did not accept the payment'
        await outgoingPayments.fail(id, { reason: received.reason, publicReason })
      }
    }
  }
}
