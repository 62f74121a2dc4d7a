import {
  consumeEvents,
  type DeliveredEvent,
  type EventHandler,
  type PostponedDelivery,
  runSweeps,
} from 'open-payments-server'
import type { OutgoingPaymentEvent } from 'open-payments-server/core'
import type { Wallet } from './wallet.js'

/** The work between requests. */
export interface Background {
  /** Starts nothing new, and resolves when the current work has ended. */
  stop(): Promise<void>
}

/** Starts the consumer of events and the sweeps. Any number of processes may run them. */
export function startBackground(
  wallet: Wallet,
  handler: EventHandler = (event) => handle(wallet, event),
): Background {
  const { auth, resources } = wallet
  const onError = console.error
  const consumer = consumeEvents([auth.events, resources.events], handler, { pollMs: 250, onError })
  const sweeps = runSweeps([auth, resources], { onError })
  return {
    async stop() {
      await Promise.all([consumer.stop(), sweeps.stop()])
    },
  }
}

/** Pays what was created, and releases what is held for a payment that has ended. */
export async function handle(
  wallet: Wallet,
  event: DeliveredEvent,
): Promise<PostponedDelivery | undefined> {
  switch (event.type) {
    case 'outgoing-payment.created':
      return pay(wallet, event)
    case 'outgoing-payment.completed':
    case 'outgoing-payment.failed':
    case 'outgoing-payment.declined':
      await wallet.ledger.release(event)
      return undefined
    default:
      return undefined
  }
}

/**
 * Carries out a payment to an account of this wallet. All that belongs to it takes effect in one transaction, so it may
 * run again after a crash.
 */
async function pay(
  { database, resources, ledger }: Wallet,
  event: OutgoingPaymentEvent,
): Promise<PostponedDelivery | undefined> {
  const { outgoingPaymentId: paymentId, debitAmount, receiveAmount } = event
  const begun = await resources.outgoingPayments.begin(paymentId)
  // A process that has since stopped may have begun it.
  if (!begun.ok && begun.refusal !== 'payment_begun') return undefined
  const incomingPaymentId = resources.incomingPayments.idOf(event.receiver) ?? ''
  const received = await database.transaction(async (sql, store) => {
    const { incomingPayments, outgoingPayments } = resources.within(store)
    const received = await incomingPayments.receive(incomingPaymentId, {
      transferId: paymentId,
      amount: receiveAmount,
      // An invoice that other payments have paid in part since the quote is not overpaid.
      refuseExcess: true,
    })
    if (!received.ok) return received
    const sent = await outgoingPayments.reportSent(paymentId, {
      sentAmount: debitAmount,
      deliveredAmount: receiveAmount,
    })
    if (!sent.ok) throw new Error(`${paymentId}: ${sent.reason}`)
    if (received.changed) {
      const { walletAddress: from } = event
      const to = received.payment.walletAddress
      const values = { debit: debitAmount.value, credit: receiveAmount.value }
      await ledger.move(sql, { paymentId, from, to, ...values })
    }
    return received
  })
  if (received.ok) return undefined
  // With a `mayReceive` that reviews arrivals: the payment stays begun until the event comes again.
  if (received.refusal === 'review_required') return { retryAt: received.retryAt }
  const { reason } = received
  const publicReason = 'the receiver did not accept the payment'
  const failed = await resources.outgoingPayments.fail(paymentId, { reason, publicReason })
  if (!failed.ok) throw new Error(`${paymentId}: ${failed.reason}`)
  return undefined
}
