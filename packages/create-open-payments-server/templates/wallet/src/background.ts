import { consumeEvents, runSweeps } from 'open-payments-server'
import type { OutgoingPaymentEvent } from 'open-payments-server/core'
import type { Wallet } from './wallet.js'

/** The work between requests. */
export interface Background {
  /** Starts nothing new, and resolves when the current work has ended. */
  stop(): Promise<void>
}

/** How long a hold may exist without its payment: longer than a request can take. */
const holdMs = 60_000

/** Starts the consumer of events and the sweeps. Any number of processes may run them. */
export function startBackground(wallet: Wallet, pollMs = 250): Background {
  const { auth, resources, ledger } = wallet
  const onError = console.error
  const consumer = consumeEvents(
    [auth.events, resources.events],
    async (event) => {
      if (event.type === 'outgoing-payment.created') await pay(wallet, event)
      if (event.type === 'outgoing-payment.failed') await ledger.release(event.outgoingPaymentId)
    },
    { pollMs, onError },
  )
  const sweeps = runSweeps([auth, resources, { sweep: () => releaseHolds(wallet) }], { onError })
  return {
    async stop() {
      await Promise.all([consumer.stop(), sweeps.stop()])
    },
  }
}

/**
 * Carries out a payment to an account of this wallet. All that belongs to it takes effect in one transaction, so it may
 * run again after a crash.
 */
async function pay({ database, resources, ledger }: Wallet, event: OutgoingPaymentEvent) {
  const { outgoingPaymentId: paymentId, debitAmount, receiveAmount } = event
  const begun = await resources.outgoingPayments.begin(paymentId)
  // A process that has since stopped may have begun it.
  if (!begun.ok && begun.refusal !== 'payment_begun') return
  const incomingPaymentId = resources.incomingPayments.idOf(event.receiver) ?? ''
  const received = await database.transaction(async (sql, store) => {
    const { incomingPayments, outgoingPayments } = resources.within(store)
    const received = await incomingPayments.receive(incomingPaymentId, {
      transferId: paymentId,
      amount: receiveAmount,
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
  if (received.ok) return
  const { reason } = received
  const publicReason = 'the receiver did not accept the payment'
  await resources.outgoingPayments.fail(paymentId, { reason, publicReason })
}

/** Releases the holds of payments that have ended, and of those that were never created, such as after a crash. */
export async function releaseHolds({ resources, ledger }: Pick<Wallet, 'resources' | 'ledger'>) {
  const before = Date.now() - holdMs
  let failure: { error: unknown } | undefined
  for (const paymentId of await ledger.heldBefore(before)) {
    try {
      const payment = await resources.outgoingPayments.get(paymentId)
      // A repeated request may have renewed a hold meanwhile.
      if (payment?.endedAt !== undefined) await ledger.release(paymentId)
      else if (payment === undefined) await ledger.release(paymentId, before)
    } catch (error) {
      failure = { error } // the other holds do not wait for this one
    }
  }
  if (failure !== undefined) throw failure.error
  return { more: false }
}
