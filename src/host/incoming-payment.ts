import type { IncomingPayment } from '../core/incoming-payment.js'
import type { PaymentMethods } from '../ports/payment-methods.js'
import { type IncomingPaymentBody, incomingPaymentBody } from '../protocol/incoming-payment.js'
import { resourceId, resourceUrl } from '../protocol/resource-url.js'
import type {
  CompleteResult,
  IncomingPayments,
  ReceivedFunds,
  ReceiveResult,
} from '../service/incoming-payment.js'
import { type Page, type PaymentListQuery, requireListQuery } from '../service/mechanism/pages.js'

/** What the host does with incoming payments from its own code. */
export interface IncomingPaymentServices {
  /** Reads a payment by its id, or answers `undefined` if there is none. */
  get(paymentId: string): Promise<IncomingPayment | undefined>
  /**
   * Reads a page of a wallet address's payments, whoever created them, oldest first. Payments that come while
   * you page are seen or not; those that were there are seen once each.
   *
   * @throws `TypeError` with code `ERR_INVALID_OPTION` and the name of the `option`, such as a `cursor` that is
   * none.
   */
  list(query: PaymentListQuery): Promise<Page<IncomingPayment>>
  /** The id in a payment's URL, or `undefined` if the URL is not one of this server's. */
  idOf(url: string): string | undefined
  /** A payment as clients see it, without the details by which it is paid. */
  toResource(payment: IncomingPayment): IncomingPaymentBody
  /** Finds the payment that an ILP address was handed out for: the way back from a packet to a payment. */
  findByIlpAddress(ilpAddress: string): Promise<IncomingPayment | undefined>
  /**
   * Counts funds that have arrived. Refused: credit nobody, and send the funds back. Accepted: the same
   * `transferId` may be reported again at any time and counts once.
   *
   * @throws an error with code `ERR_CONTENTION` when others kept changing the payment for 3 s.
   */
  receive(funds: ReceivedFunds): Promise<ReceiveResult>
  /**
   * Completes a payment before it has received its `incomingAmount`: it takes no more funds, whoever created it
   * and whether or not it has expired. One that is complete stays as it is.
   *
   * @throws an error with code `ERR_CONTENTION` when others kept changing the payment for 3 s.
   */
  complete(paymentId: string): Promise<CompleteResult>
  /**
   * Records the expiry of payments whose time has passed, so that an `incoming-payment.expired` event tells
   * of each, once. Run it now and then, in as many processes as you like; what is accepted never depends on
   * it. Payments past their retention that it meets are removed.
   *
   * @param limit the most payments that it looks at. Default 100.
   * @returns how many expiries this call has recorded; call again at once until there is none.
   */
  expireDue(limit?: number): Promise<number>
}

export function incomingPaymentServices(
  payments: IncomingPayments,
  paymentMethods: PaymentMethods,
  baseUrl: string,
): IncomingPaymentServices {
  return {
    get: payments.load,
    async list(query) {
      const { scope, page } = requireListQuery(query)
      return payments.list(scope, page)
    },
    idOf: (url) => resourceId(baseUrl, 'incoming-payments', url),
    toResource: (payment) =>
      incomingPaymentBody(payment, resourceUrl(baseUrl, 'incoming-payments', payment.id)),
    async findByIlpAddress(ilpAddress) {
      const id = paymentMethods.paymentIdOf(ilpAddress)
      return id === undefined ? undefined : payments.load(id)
    },
    receive: payments.receive,
    complete: payments.completeById,
    expireDue: async (limit = 100) => (await payments.settleDue(limit)).expired,
  }
}
