import type {
  EventHandler,
  MayPay,
  MayReceive,
  Pricing,
  ResourceServer,
} from 'open-payments-server'
import type { Invoice, Ledger, Market, Rail, ReceivingLimits } from './host.js'

// #region quotes
/** Enables outgoing payments: pass it to `createResourceServer` as `pricing`. */
export function quotesOf(market: Market): Pricing {
  return {
    async price({ account: walletAddress, receiver, debitAmount, receiveAmount }) {
      const wanted = await market.lookUp(receiver) // here or at another server
      if (wanted === undefined) return { ok: false, refusal: 'receiver_invalid' }
      if (debitAmount !== undefined) {
        return market.arriving(walletAddress, debitAmount, wanted)
      }
      const received = receiveAmount ?? wanted.remaining
      if (received === undefined) return { ok: false, refusal: 'amount_missing' }
      return market.costOf(walletAddress, received) // including your fees, rounded up
    },
  }
}
// #endregion quotes

// #region may-pay
/** Refuses payments that the account cannot pay. Pass it as `policy.mayPay`. */
export function payable(ledger: Ledger): MayPay {
  return async (payment) => {
    if (!(await ledger.isScreened(payment.receiver))) {
      const reason = 'the receiver is not screened'
      return { ok: false, refusal: 'payment_not_allowed', reason }
    }
    const isCovered = payment.isPreview
      ? await ledger.covers(payment) // no event would release a hold
      : await ledger.hold(payment) // once for each payment
    return isCovered ? { ok: true } : { ok: false, refusal: 'funds_insufficient' }
  }
}
// #endregion may-pay

// #region may-receive
/** Refuses money for frozen accounts, or too much. Pass it as `policy.mayReceive`. */
export function receivable(limits: ReceivingLimits): MayReceive {
  return async (query) => {
    const max = await limits.receiveMax(query.walletAddress) // 0n: it is frozen
    if (max === 0n) return { ok: false, refusal: 'payment_not_allowed' }
    const amount = query.type === 'arrival' ? query.amount : query.incomingAmount
    if (BigInt(amount?.value ?? 0) <= max) return { ok: true }
    return { ok: false, refusal: 'amount_too_large' }
  }
}
// #endregion may-receive

// #region payments
/** Returns a handler of events that sends each payment once. */
export function paymentSender(resources: ResourceServer, rail: Rail): EventHandler {
  const { outgoingPayments } = resources
  return async (event) => {
    if (event.type !== 'outgoing-payment.created') return
    const paymentId = event.outgoingPaymentId
    const begun = await outgoingPayments.begin(paymentId)
    // A stopped process may have begun it: the rail continues, or reports the outcome.
    if (!begun.ok && begun.refusal !== 'payment_begun') return
    // Sends each payment once. The totals are `sentAmount` and `deliveredAmount`.
    const { arrived, ...totals } = await rail.send(event)
    const ended = arrived
      ? await outgoingPayments.reportSent(paymentId, { ...totals, final: true })
      : await outgoingPayments.fail(paymentId, totals)
    // The event is delivered again, and in the end set aside for you.
    if (!ended.ok) throw new Error(`${paymentId}: ${ended.reason}`)
  }
}
// #endregion payments

// #region invoice
/** Resolves to the URL at which an invoice is paid. A repeat returns the same URL. */
export async function requestMoney(resources: ResourceServer, invoice: Invoice) {
  const result = await resources.incomingPayments.create({
    walletAddress: invoice.payee,
    incomingAmount: invoice.total,
    idempotencyKey: invoice.number,
    metadata: { invoice: invoice.number },
  })
  if (!result.ok) throw new Error(result.reason)
  return result.url
}
// #endregion invoice
