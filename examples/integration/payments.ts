import type { EventHandler, Pricing, ResourceServer } from 'open-payments-server'
import type { Market, Rail } from './host.js'

// #region quotes
/** Pass it to `createResourceServer` as `quotes`, and your accounts can pay. */
export function quotesOf(market: Market): Pricing {
  return {
    async price({ account: walletAddress, receiver, debitAmount, receiveAmount }) {
      const wanted = await market.lookUp(receiver) // the incoming payment, wherever it is
      if (wanted === undefined) return { refusal: 'receiver_invalid' }
      if (debitAmount !== undefined) return market.arriving(walletAddress, debitAmount, wanted)
      const received = receiveAmount ?? wanted.remaining
      if (received === undefined) return { refusal: 'amount_missing' }
      return market.costOf(walletAddress, received) // with your fees, and rounded against the payer
    },
  }
}
// #endregion quotes

// #region payments
/** Sends each payment once: call it with every event, from the consumer that you have. */
export function paymentSender({ outgoingPayments }: ResourceServer, rail: Rail): EventHandler {
  return async (event) => {
    if (event.type !== 'outgoing-payment.created') return
    const paymentId = event.outgoingPaymentId
    const begun = await outgoingPayments.begin(paymentId)
    // Begun by a process that has died since: the rail goes on with it, or says how it went.
    if (!begun.ok && begun.refusal !== 'payment_begun') return
    const { arrived, ...totals } = await rail.send(event) // once, however often it is asked
    const ended = arrived
      ? await outgoingPayments.reportSent({ paymentId, ...totals, final: true })
      : await outgoingPayments.fail({ paymentId, ...totals })
    if (!ended.ok) throw new Error(`${paymentId}: ${ended.reason}`) // set aside, for you to look at
  }
}
// #endregion payments
