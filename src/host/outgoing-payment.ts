import type { Amount } from '../core/amount.js'
import type { OutgoingPayment } from '../core/outgoing-payment/record.js'
import type { Totals } from '../core/outgoing-payment.js'
import type { Clock } from '../ports/clock.js'
import type { OutgoingPaymentBody } from '../protocol/outgoing-payment.js'
import { outgoingPaymentResource } from '../protocol/resource-url.js'
import type { OutgoingPaymentResult, OutgoingPayments } from '../service/outgoing-payment.js'
import { boolean, exactly, optional, string, text } from '../util/arguments.js'
import { amount, record } from './arguments.js'
import { type PaymentReader, paymentReader } from './payments.js'

/** The total amounts that the host has sent for a payment, over all attempts. */
export interface SentReport extends Totals {
  /**
   * True when the host will not send the rest: the payment completes, and the rest returns to the budget.
   * Default: the payment completes as soon as it reaches either amount.
   */
  readonly final?: boolean
}

/** The report of a failed payment. An omitted total keeps the value that was reported last. */
export interface FailureReport {
  /** The total debited; it stays charged to the budget. */
  readonly sentAmount?: Amount
  /** The total delivered; it stays charged to the budget. */
  readonly deliveredAmount?: Amount
  /** For the host's own use; never part of a response. */
  readonly reason?: string
}

/** The report of a cancelled payment. */
export interface CancellationReport {
  /** For the host's own use; never part of a response. */
  readonly reason?: string
}

/**
 * The operations on outgoing payments that the host calls. The host receives the event
 * `outgoing-payment.created`, claims the payment with `begin` before it sends anything, and ends it with
 * `reportSent` or `fail`. Every call may be repeated and counts once, except that only one `begin` succeeds. Each
 * throws an `ArgumentError` for an invalid argument, before it reads the store.
 */
export interface OutgoingPaymentServices extends PaymentReader<OutgoingPayment> {
  /** Returns the payment as clients see it. */
  toResource(payment: OutgoingPayment): OutgoingPaymentBody
  /**
   * Claims a payment before the host sends it. If several callers try, exactly one gets `ok: true`. From
   * then on only `reportSent` or `fail` ends the payment. If the host crashes after this call, it must find
   * out how much it sent, and report that.
   */
  begin(paymentId: string): Promise<OutgoingPaymentResult<'begin'>>
  /**
   * Reports the totals sent so far. When either amount is reached, or with `final`, the payment completes,
   * and the unused rest returns to the budget of the window in which the payment was created.
   */
  reportSent(paymentId: string, report: SentReport): Promise<OutgoingPaymentResult<'report-sent'>>
  /** Fails a payment that was begun. The totals sent stay charged; the rest returns to the budget. */
  fail(paymentId: string, report?: FailureReport): Promise<OutgoingPaymentResult<'fail'>>
  /** Cancels a payment that was not begun. Its whole amount returns to the budget. */
  cancel(paymentId: string, report?: CancellationReport): Promise<OutgoingPaymentResult<'cancel'>>
}

const sentReport = exactly<SentReport>({
  sentAmount: amount,
  deliveredAmount: amount,
  final: optional(boolean),
})

const failureReport = exactly<FailureReport>({
  sentAmount: optional(amount),
  deliveredAmount: optional(amount),
  reason: optional(string),
})

const cancellationReport = exactly<CancellationReport>({ reason: optional(string) })

export function outgoingPaymentServices(
  payments: OutgoingPayments,
  clock: Clock,
  baseUrl: string,
): OutgoingPaymentServices {
  return {
    ...paymentReader(payments, baseUrl, 'outgoing-payments'),
    toResource(payment) {
      record('payment', payment)
      return outgoingPaymentResource(payment, baseUrl, clock.now())
    },
    async begin(paymentId) {
      text('paymentId', paymentId)
      return payments.begin(paymentId)
    },
    async reportSent(paymentId, report) {
      text('paymentId', paymentId)
      sentReport('report', report)
      return payments.reportSent(paymentId, report)
    },
    async fail(paymentId, report = {}) {
      text('paymentId', paymentId)
      failureReport('report', report)
      return payments.fail(paymentId, report)
    },
    async cancel(paymentId, report = {}) {
      text('paymentId', paymentId)
      cancellationReport('report', report)
      return payments.cancel(paymentId, report)
    },
  }
}
