import type { Amount } from '../core/amount.js'
import type { OutgoingPayment } from '../core/outgoing-payment/record.js'
import type { Totals } from '../core/outgoing-payment.js'
import type { Clock } from '../ports/clock.js'
import type { OutgoingPaymentBody } from '../protocol/outgoing-payment.js'
import { outgoingPaymentResource, resourceId } from '../protocol/resource-url.js'
import { type Page, type PaymentListQuery, requireListQuery } from '../service/mechanism/pages.js'
import type { OutgoingPaymentResult, OutgoingPayments } from '../service/outgoing-payment.js'

/** What has been sent of a payment, all attempts together. */
export interface SentReport extends Totals {
  readonly paymentId: string
  /**
   * True when nothing more will be sent, though less was than might have been: the payment is complete, and
   * the rest can be spent again. Default: as soon as either amount is reached.
   */
  readonly final?: boolean
}

/** A payment that the host gives up. What is left out stays as it was reported last. */
export interface FailureReport {
  readonly paymentId: string
  /** Total debited, which stays counted. */
  readonly sentAmount?: Amount
  /** Total delivered, which stays counted. */
  readonly deliveredAmount?: Amount
  /** For the host's own use; clients do not see it. */
  readonly reason?: string
}

/**
 * What the host does with outgoing payments from its own code. It hears of them by the event
 * `outgoing-payment.created`, claims each with `begin` before it sends, and ends it with `settle` or `fail`.
 * Every call may be repeated, and counts once.
 */
export interface OutgoingPaymentServices {
  /** Reads a payment by its id, or answers `undefined` if there is none. */
  get(paymentId: string): Promise<OutgoingPayment | undefined>
  /**
   * Reads a page of a wallet address's payments, whoever created them, oldest first.
   *
   * @throws `TypeError` with code `ERR_INVALID_OPTION` and the name of the `option`, such as a `cursor` that is
   * none.
   */
  list(query: PaymentListQuery): Promise<Page<OutgoingPayment>>
  /** The id in a payment's URL, or `undefined` if the URL is not one of this server's. */
  idOf(url: string): string | undefined
  /** A payment as clients see it. */
  toResource(payment: OutgoingPayment): OutgoingPaymentBody
  /**
   * Claims a payment before it is sent: of those who try, one is told `ok`. From then on it ends by `settle` or
   * `fail` alone. Whoever crashes after this has to find out what was sent, and report that.
   */
  begin(paymentId: string): Promise<OutgoingPaymentResult<'begin'>>
  /**
   * Reports what has been sent so far. With either amount reached, or `final`, the payment is complete and what
   * was not used of its budget can be spent again, in the window in which the payment was created.
   */
  reportSent(settled: SentReport): Promise<OutgoingPaymentResult<'settle'>>
  /** Gives up a payment that was begun. What has been sent stays counted; the rest can be spent again. */
  fail(failed: FailureReport): Promise<OutgoingPaymentResult<'fail'>>
  /** Withdraws a payment that was not begun; all of it can be spent again. */
  cancel(
    paymentId: string,
    why?: { readonly reason?: string },
  ): Promise<OutgoingPaymentResult<'cancel'>>
  /**
   * Fails payments that nobody began in time, so that what they hold can be spent again. Run it now and then,
   * in as many processes as you like. Payments past their retention that it meets are removed.
   *
   * @param limit the most payments that it looks at. Default 100.
   * @returns how many have lapsed by this call; call again at once until there is none.
   */
  lapseDue(limit?: number): Promise<number>
}

export function outgoingPaymentServices(
  payments: OutgoingPayments,
  clock: Clock,
  baseUrl: string,
): OutgoingPaymentServices {
  return {
    get: payments.load,
    async list(query) {
      const { scope, page } = requireListQuery(query)
      return payments.list(scope, page)
    },
    idOf: (url) => resourceId(baseUrl, 'outgoing-payments', url),
    toResource: (payment) => outgoingPaymentResource(payment, baseUrl, clock.now()),
    begin: payments.begin,
    reportSent: ({ paymentId, ...totals }) => payments.settle(paymentId, totals),
    fail: ({ paymentId, ...totals }) => payments.fail(paymentId, totals),
    cancel: (paymentId, why = {}) => payments.cancel(paymentId, why),
    lapseDue: async (limit = 100) => (await payments.settleDue(limit)).lapsed,
  }
}
