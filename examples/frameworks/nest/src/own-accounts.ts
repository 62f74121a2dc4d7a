// #region own-price
import type {
  Asset,
  PostponedDelivery,
  PriceAnswer,
  PriceRequest,
  Store,
  Wallet,
} from 'open-payments-server'
import type { OutgoingPaymentEvent } from 'open-payments-server/core'
import { postgresStore } from 'open-payments-server/postgres'
import type { Pool, PoolClient } from 'pg'

/** Prices what the incoming payment of an account of this wallet still takes. */
export async function priceOfOwn(
  { incomingPayments }: Wallet['resources'],
  { account, receiver, debitAmount, receiveAmount }: PriceRequest,
): Promise<PriceAnswer> {
  const id = incomingPayments.idOf(receiver)
  const payment = id === undefined ? undefined : await incomingPayments.get(id)
  if (payment?.status !== 'open') {
    return { ok: false, refusal: 'receiver_invalid', publicReason: 'it takes no funds' }
  }
  const { incomingAmount, receivedAmount, walletAddress, expiresAt } = payment
  const { assetCode, assetScale } = receivedAmount
  const isOther = ({ assetCode: code, assetScale: scale }: Asset) =>
    code !== assetCode || scale !== assetScale
  if (isOther(account)) {
    const publicReason = 'there is no exchange rate for its currency'
    return { ok: false, refusal: 'receiver_invalid', publicReason }
  }
  if (receiveAmount && isOther(receiveAmount)) {
    const publicReason = 'receiveAmount is in another currency'
    return { ok: false, refusal: 'amount_invalid', publicReason }
  }
  const received = BigInt(receivedAmount.value)
  const left = incomingAmount && BigInt(incomingAmount.value) - received
  const value = (debitAmount ?? receiveAmount)?.value ?? left?.toString()
  if (value === undefined) return { ok: false, refusal: 'amount_missing' }
  if (left !== undefined && BigInt(value) > left) {
    return { ok: false, refusal: 'amount_invalid', publicReason: 'it accepts less' }
  }
  const amount = { value, assetCode, assetScale }
  return {
    ok: true,
    debitAmount: amount,
    receiveAmount: amount,
    receiverWalletAddress: walletAddress,
    expiresAt,
  }
}
// #endregion own-price

// #region own-pay
/** Carries out a payment in one transaction: a repeated event changes nothing. */
export async function payOwn(
  pool: Pool,
  resources: Wallet['resources'],
  { outgoingPaymentId, receiver, ...event }: OutgoingPaymentEvent,
  move: (client: PoolClient, transfer: Transfer) => Promise<void>,
): Promise<PostponedDelivery | undefined> {
  const begun = await resources.outgoingPayments.begin(outgoingPaymentId)
  // A stopped process may have begun it.
  if (!begun.ok && begun.refusal !== 'payment_begun') return undefined
  const incomingPaymentId = resources.incomingPayments.idOf(receiver) ?? ''
  const { debitAmount, receiveAmount } = event
  const arrival = {
    transferId: outgoingPaymentId,
    amount: receiveAmount,
    refuseExcess: true,
  }
  const totals = { sentAmount: debitAmount, deliveredAmount: receiveAmount }
  const work = async (client: PoolClient, store: Store) => {
    const { incomingPayments, outgoingPayments } = resources.within(store)
    const received = await incomingPayments.receive(incomingPaymentId, arrival)
    if (!received.ok) return received
    const sent = await outgoingPayments.reportSent(outgoingPaymentId, totals)
    if (!sent.ok) throw new Error(`${outgoingPaymentId}: ${sent.reason}`)
    if (received.changed) {
      const [from, to] = [event.walletAddress, received.payment.walletAddress]
      const amounts = { debit: debitAmount.value, credit: receiveAmount.value }
      await move(client, { paymentId: outgoingPaymentId, from, to, ...amounts })
    }
    return received
  }
  const received = await postgresStore.transaction(pool, work)
  if (received.ok) return undefined
  // The payment stays begun, and its hold stays, until the event comes again.
  if (received.refusal === 'review_required') return { retryAt: received.retryAt }
  const { reason } = received // such as that the incoming payment has expired
  const reasons = { reason, publicReason: 'the receiver did not accept the payment' }
  const failed = await resources.outgoingPayments.fail(outgoingPaymentId, reasons)
  if (!failed.ok) throw new Error(`${outgoingPaymentId}: ${failed.reason}`)
  return undefined
}

/** What a payment moves from one account to another. */
export interface Transfer {
  readonly paymentId: string
  readonly from: string
  readonly to: string
  readonly debit: string
  readonly credit: string
}
// #endregion own-pay
