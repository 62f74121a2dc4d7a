import { sql } from 'drizzle-orm'
import type { NodePgDatabase as Database } from 'drizzle-orm/node-postgres'
import type { Asset, EventHandler, Pricing, ResourceServer } from 'open-payments-server'
import type { OutgoingPaymentEvent as Event } from 'open-payments-server/core'
import { fromDrizzle, postgresStore } from 'open-payments-server/postgres'
import { release, settle } from './ledger.js'

/** Prices payments between accounts of this wallet. Another wallet needs a rail. */
export function pricingOf(resources: () => ResourceServer): Pricing {
  return {
    async price({ account, receiver, debitAmount, receiveAmount }) {
      const { incomingPayments } = resources()
      const id = incomingPayments.idOf(receiver)
      const payment = id === undefined ? undefined : await incomingPayments.get(id)
      if (payment?.status !== 'open') {
        const publicReason = 'this wallet has no such open payment'
        return { ok: false, refusal: 'receiver_invalid', publicReason }
      }
      const { incomingAmount, walletAddress, expiresAt } = payment
      const { value: received, assetCode, assetScale } = payment.receivedAmount
      const isOther = ({ assetCode: code, assetScale: scale }: Asset) =>
        code !== assetCode || scale !== assetScale
      if (isOther(account)) {
        const publicReason = 'the receiver has another currency'
        return { ok: false, refusal: 'receiver_invalid', publicReason }
      }
      if (receiveAmount && isOther(receiveAmount)) {
        const publicReason = 'receiveAmount is in another currency'
        return { ok: false, refusal: 'amount_invalid', publicReason }
      }
      const left = incomingAmount && BigInt(incomingAmount.value) - BigInt(received)
      const value = (debitAmount ?? receiveAmount)?.value ?? left?.toString()
      if (value === undefined) return { ok: false, refusal: 'amount_missing' }
      if (left !== undefined && BigInt(value) > left) {
        const publicReason = 'the receiver accepts less'
        return { ok: false, refusal: 'amount_invalid', publicReason }
      }
      const amount = { value, assetCode, assetScale }
      const amounts = { debitAmount: amount, receiveAmount: amount }
      return { ok: true, ...amounts, receiverWalletAddress: walletAddress, expiresAt }
    },
  }
}

/** Handles events: pays what was created, and ends the holds of what has ended. */
export function paymentsOn(db: Database, resources: ResourceServer): EventHandler {
  return async (event) => {
    switch (event.type) {
      case 'outgoing-payment.created':
        return pay(db, resources, event)
      case 'outgoing-payment.completed':
      case 'outgoing-payment.failed':
      case 'outgoing-payment.declined':
        return release(db, event.outgoingPaymentId, event.walletAddress)
    }
  }
}

/** All takes effect in one transaction, so a repeated event changes nothing. */
async function pay(db: Database, resources: ResourceServer, event: Event) {
  const { outgoingPaymentId: id, walletAddress: from, receiver, receiveAmount } = event
  const begun = await resources.outgoingPayments.begin(id)
  // A process that has stopped may have begun it.
  if (!begun.ok && begun.refusal !== 'payment_begun') return
  const transactions = fromDrizzle(db, sql)
  const result = await postgresStore.transaction(transactions, async (tx, store) => {
    const { incomingPayments, outgoingPayments } = resources.within(store)
    const arrival = { transferId: id, amount: receiveAmount, refuseExcess: true }
    const incomingId = incomingPayments.idOf(receiver) ?? ''
    const received = await incomingPayments.receive(incomingId, arrival)
    if (!received.ok) return received
    const totals = { sentAmount: event.debitAmount, deliveredAmount: receiveAmount }
    const sent = await outgoingPayments.reportSent(id, totals)
    if (!sent.ok) throw new Error(`${id}: ${sent.reason}`)
    const { walletAddress: to } = received.payment
    const amount = BigInt(totals.sentAmount.value)
    // Both are recorded here, and nowhere else: `sent.changed` is the same.
    if (received.changed) await settle(tx, { id, from, to, amount })
    return received
  })
  if (result.ok) return
  if (result.refusal === 'review_required') return { retryAt: result.retryAt }
  const publicReason = 'the receiver did not accept the payment'
  const reasons = { reason: result.reason, publicReason }
  const failed = await resources.outgoingPayments.fail(id, reasons)
  if (!failed.ok) throw new Error(`${id}: ${failed.reason}`)
}
