import type {
  Amount,
  EventHandler,
  IncomingPaymentServices,
  ResourceServer,
} from 'open-payments-server'

/** How a payment fails: before anything is sent, or after half of it was sent. */
export type PaymentFailure = 'failed-payment' | 'partial-payment'

/**
 * Carries out payments to either wallet as they are created. A payment may be delivered again: it counts once.
 *
 * @param payees the incoming payments of both wallets.
 * @param failureOf how a payment fails, if it does.
 */
export function payer(
  { outgoingPayments }: Pick<ResourceServer, 'outgoingPayments'>,
  payees: () => readonly Pick<IncomingPaymentServices, 'idOf' | 'receive'>[],
  failureOf: (paymentId: string) => PaymentFailure | undefined,
): EventHandler {
  return async (event) => {
    if (event.type !== 'outgoing-payment.created') return undefined
    const { outgoingPaymentId: id, receiver, debitAmount, receiveAmount } = event
    const begun = await outgoingPayments.begin(id)
    if (!begun.ok && begun.refusal !== 'payment_begun') return undefined
    const failure = failureOf(id)
    const [sentAmount, amount] =
      failure === undefined ? [debitAmount, receiveAmount] : halfOf(debitAmount, receiveAmount)
    const fault = { reason: `a fault: ${failure}`, publicReason: 'the payment failed' }
    if (failure === 'failed-payment' || amount.value === '0') {
      await outgoingPayments.fail(id, fault)
      return undefined
    }
    for (const payee of payees()) {
      const incomingPaymentId = payee.idOf(receiver)
      if (incomingPaymentId === undefined) continue
      const arrival = { transferId: id, amount, refuseExcess: true }
      const received = await payee.receive(incomingPaymentId, arrival)
      // The payment stays begun, and its event comes again.
      if (!received.ok && received.refusal === 'review_required') {
        return { retryAt: received.retryAt }
      }
      if (!received.ok) {
        const publicReason = 'the receiver did not accept the payment'
        await outgoingPayments.fail(id, { reason: received.reason, publicReason })
      } else if (failure === undefined) {
        await outgoingPayments.reportSent(id, { sentAmount, deliveredAmount: amount })
      } else {
        await outgoingPayments.fail(id, { ...fault, sentAmount, deliveredAmount: amount })
      }
    }
    return undefined
  }
}

/** Returns half of what is received, rounded down, and what is debited for it, rounded up. */
function halfOf(debitAmount: Amount, receiveAmount: Amount): readonly [Amount, Amount] {
  const [debit, receive] = [BigInt(debitAmount.value), BigInt(receiveAmount.value)]
  const half = receive / 2n
  const sent = (debit * half + receive - 1n) / receive
  return [
    { ...debitAmount, value: `${sent}` },
    { ...receiveAmount, value: `${half}` },
  ]
}
