import type { IncomingPayment } from '../core/incoming-payment.js'
import type { PaymentMethods } from '../ports/payment-methods.js'
import { type IncomingPaymentBody, incomingPaymentBody } from '../protocol/incoming-payment.js'
import { resourceUrl } from '../protocol/resource-url.js'
import type {
  CompleteResult,
  IncomingPayments,
  ReceivedFunds,
  ReceiveResult,
} from '../service/incoming-payment.js'
import { exactly, string, text } from '../util/arguments.js'
import { amount, record } from './arguments.js'
import { type PaymentReader, paymentReader } from './payments.js'

/**
 * The operations on incoming payments that the host calls. Each throws an `ArgumentError` for an invalid argument,
 * before it reads the store.
 */
export interface IncomingPaymentServices extends PaymentReader<IncomingPayment> {
  /** Returns the payment as clients see it, without its payment methods. */
  toResource(payment: IncomingPayment): IncomingPaymentBody
  /**
   * Resolves to the payment that an ILP address was created for, or to `undefined` if there is no such
   * payment. Use it to find the payment of an incoming packet.
   */
  findByIlpAddress(ilpAddress: string): Promise<IncomingPayment | undefined>
  /**
   * Counts funds that have arrived. If the result is a refusal, do not credit the account and return the
   * funds. You may report the same `transferId` again at any time; it counts once.
   *
   * @throws {ContentionError} if other writers keep changing the payment for 3 s.
   */
  receive(paymentId: string, funds: ReceivedFunds): Promise<ReceiveResult>
  /**
   * Completes a payment, so that it accepts no further funds. It need not have received its `incomingAmount`;
   * any client may have created it, and it may have expired. A completed payment stays unchanged.
   *
   * @throws {ContentionError} if other writers keep changing the payment for 3 s.
   */
  complete(paymentId: string): Promise<CompleteResult>
}

const receivedFunds = exactly<ReceivedFunds>({ transferId: text, amount })

export function incomingPaymentServices(
  payments: IncomingPayments,
  paymentMethods: PaymentMethods,
  baseUrl: string,
): IncomingPaymentServices {
  return {
    ...paymentReader(payments, baseUrl, 'incoming-payments'),
    toResource(payment) {
      record('payment', payment)
      return incomingPaymentBody(payment, resourceUrl(baseUrl, 'incoming-payments', payment.id))
    },
    async findByIlpAddress(ilpAddress) {
      string('ilpAddress', ilpAddress)
      const id = paymentMethods.paymentIdOf(ilpAddress)
      return id === undefined ? undefined : payments.load(id)
    },
    async receive(paymentId, funds) {
      text('paymentId', paymentId)
      receivedFunds('funds', funds)
      return payments.receive(paymentId, funds)
    },
    async complete(paymentId) {
      text('paymentId', paymentId)
      return payments.completeById(paymentId)
    },
  }
}
