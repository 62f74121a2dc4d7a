import type { EventHandler, MayPay, Pricing, ResourceServer } from 'open-payments-server'
import type { Invoice, Ledger, Market, Rail } from './host.js'

// #region quotes
/** Enables outgoing payments: pass it to `createResourceServer` as `pricing`. */
export function quotesOf(market: Market): Pricing {
  return {
    async price({ account: walletAddress, receiver, debitAmount, receiveAmount }) {
      const wanted = await market.lookUp(receiver) // the incoming payment, here or at another server
      if (wanted === undefined) return { ok: false, refusal: 'receiver_invalid' }
      if (debitAmount !== undefined) return market.arriving(walletAddress, debitAmount, wanted)
      const received = receiveAmount ?? wanted.remaining
      if (received === undefined) return { ok: false, refusal: 'amount_missing' }
      return market.costOf(walletAddress, received) // including your fees, rounded up
    },
  }
}
// #endregion quotes

// #region may-pay
/** Refuses payments that the account cannot pay. Pass it to `createResourceServer` as `policy.mayPay`. */
export function payable(ledger: Ledger): MayPay {
  return async (payment) => {
    if (!(await ledger.isScreened(payment.receiver))) {
      return { ok: false, refusal: 'payment_not_allowed', reason: 'the receiver is not screened' }
    }
    const held = await ledger.hold(payment) // checks the balance, and holds each `holdId` once
    return held ? { ok: true } : { ok: false, refusal: 'funds_insufficient' }
  }
}
// #endregion may-pay

// #region payments
/** Returns an event handler that sends each payment once. Pass it to your event consumer. */
export function paymentSender({ outgoingPayments }: ResourceServer, rail: Rail): EventHandler {
  return async (event) => {
    if (event.type !== 'outgoing-payment.created') return
    const paymentId = event.outgoingPaymentId
    const begun = await outgoingPayments.begin(paymentId)
    // A process that has since stopped may have begun it: the rail continues or reports the outcome.
    if (!begun.ok && begun.refusal !== 'payment_begun') return
    const { arrived, ...totals } = await rail.send(event) // sends each payment once, even if repeated
    const ended = arrived
      ? await outgoingPayments.reportSent(paymentId, { ...totals, final: true })
      : await outgoingPayments.fail(paymentId, totals)
    if (!ended.ok) throw new Error(`${paymentId}: ${ended.reason}`) // the event is retried, then set aside for you
  }
}
// #endregion payments

// #region invoice
/** Requests money for an invoice, and resolves to the URL that the payer pays. A repeat returns the same URL. */
export async function requestMoney({ incomingPayments }: ResourceServer, invoice: Invoice) {
  const result = await incomingPayments.create({
    walletAddress: invoice.payee,
    incomingAmount: invoice.total,
    idempotencyKey: invoice.number,
    metadata: { invoice: invoice.number },
  })
  if (!result.ok) throw new Error(result.reason)
  return result.url
}
// #endregion invoice
