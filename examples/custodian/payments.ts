import type {
  OutgoingPaymentServices,
  OutgoingPaymentView,
  PostponedDelivery,
} from 'open-payments-server'
import { type Attempts, reportSettled, type Settled } from 'open-payments-server/attempts'
import type { AccountRequest, Custodian, PayoutRequest } from './custodian.js'

export interface PaymentParts {
  readonly outgoingPayments: OutgoingPaymentServices
  readonly custodian: Pick<Custodian, 'release'>
  readonly holds: Attempts<AccountRequest>
  readonly payouts: Attempts<PayoutRequest>
  readonly later: (ms: number) => PostponedDelivery
}

// #region pay
/** The payments of a wallet at its custodian: called at any time, in any process. */
export function paymentsAt(parts: PaymentParts) {
  const { outgoingPayments, custodian, holds, payouts, later } = parts
  const again = (settled: Settled) => (settled.state === 'again' ? settled : undefined)

  function hold(payment: OutgoingPaymentView): Promise<Settled> {
    const { paymentId: id, walletAddress: account, debitAmount } = payment
    return holds.settle({ id, account, amount: BigInt(debitAmount.value) })
  }

  async function send(payment: OutgoingPaymentView): Promise<Settled> {
    const { paymentId: id, walletAddress: from, receiver: to, receiveAmount } = payment
    const amount = BigInt(receiveAmount.value)
    const order = { id, amount, from, to, hold: id, otherSide: to }
    const settled = await payouts.settle(order)
    const reported = await reportSettled(outgoingPayments, id, settled)
    if (!reported.ok) throw new Error(`${id}: ${reported.reason}`)
    return settled
  }

  return {
    /** At `outgoing-payment.created`. */
    async pay(id: string): Promise<PostponedDelivery | undefined> {
      const payment = await outgoingPayments.get(id)
      if (payment?.status === 'created') {
        const held = await hold(payment)
        if (held.state === 'again') return held // it takes minutes: nothing has failed
        if (held.arrived === 0n) {
          const publicReason = 'The account has not enough funds.'
          await outgoingPayments.cancel(id, { publicReason })
          return undefined
        }
        const begun = await outgoingPayments.begin(id)
        if (!begun.ok && begun.refusal !== 'payment_begun') return undefined
      } else if (payment?.status !== 'begun') return undefined
      return again(await send(payment))
    },

    /** At `completed`, `failed` and `declined`. */
    async end(id: string): Promise<PostponedDelivery | undefined> {
      const payment = await outgoingPayments.get(id)
      const sent = payment?.inDoubt && (await send(payment)) // asks, and decides
      if (sent !== undefined && sent.totals.inDoubt > 0n) return later(3_600_000)
      if (!(await custodian.release(id))) return later(5_000)
      // A hold that was under way is refused from now on.
      const isOpen = payment && (await holds.get(id))?.totals.inDoubt
      return isOpen ? again(await hold(payment)) : undefined
    },
  }
}
// #endregion pay
