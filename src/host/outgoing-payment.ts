import * as v from 'valibot'
import type { Amount } from '../core/amount.js'
import type { SpentAmounts } from '../core/budget/record.js'
import { totalSpent } from '../core/budget/spent.js'
import type { HostReasons, HostResult, PaymentResult } from '../core/decision.js'
import type { Grant } from '../core/grant/record.js'
import type { SpendingWindow } from '../core/interval.js'
import type { CountedAmount } from '../core/limits.js'
import type {
  DecideDoubt,
  DecideDoubtRefusal,
  PaymentDoubt,
} from '../core/outgoing-payment/doubt.js'
import type { OutgoingPayment } from '../core/outgoing-payment/record.js'
import type { OutgoingPaymentRefusals, Totals } from '../core/outgoing-payment.js'
import type { Clock } from '../ports/host.js'
import { publicReasonLengthMax } from '../protocol/host-answers.js'
import { type OutgoingPaymentBody, outgoingPaymentResource } from '../protocol/outgoing-payment.js'
import type { PaymentCreation } from '../service/create-outgoing-payment.js'
import type { CarriedOut, OutgoingPayments } from '../service/outgoing-payment.js'
import type { OwnerConfirmations } from '../service/owner-confirmation.js'
import type { DoubtSummary } from '../service/payment-doubts.js'
import {
  boolean,
  exactly,
  integer,
  integerFrom,
  type Members,
  oneOf,
  readInput,
  string,
  text,
  textOfAtMost,
} from '../util/input.js'
import { InvalidInputError } from '../util/invalid-input.js'
import type { ItemView } from './approval.js'
import { type ConfirmationServices, confirmationServices } from './confirmation.js'
import { itemView } from './grant.js'
import { type OrderServices, orderServices } from './order.js'
import { byAddressGrantOrDoubt, type ListedPayments } from './outgoing-payment-scope.js'
import { type OutgoingPaymentView, outgoingPaymentView } from './outgoing-payment-view.js'
import { amount, type PaymentReader, paymentReader, record, seenResult, view } from './payments.js'
import type { LimitServices } from './preview.js'

/** What a payment has sent. */
export interface SentReport extends Totals {
  /**
   * True when the host will not send the rest: the payment completes, and the rest returns to the budget.
   * Default: the payment completes as soon as it reaches either amount.
   */
  readonly final?: boolean
  /**
   * What may arrive, and is not proven. Report only what is proven as sent while the payment runs, because totals
   * cannot recede: the doubt comes on top of them. In the report that ends the payment, `sentAmount` includes the
   * doubt, which stays charged until `decideDoubt`. Each report states the whole doubt. Default: nothing is in doubt.
   */
  readonly inDoubt?: PaymentDoubt
}

/** What a payment that failed has sent. */
export interface FailureReport extends Partial<Totals>, HostReasons {
  /** The part of `sentAmount` of which nobody knows whether it arrives, as in `SentReport`. Default: nothing. */
  readonly inDoubt?: PaymentDoubt
}

/** What became of the part of a payment that was in doubt. */
export interface DoubtDecision extends Omit<DecideDoubt, 'commandId'> {}

/** The result of a report of what a payment has sent, and of the decision of its doubt. */
export type ReportResult<Refusal extends string> = HostResult<
  {
    readonly payment: OutgoingPaymentView
    /**
     * What your ledger debits because of this call, in units of the asset of `debitAmount`: by how much it has raised
     * `sentAmount`. Negative if it has refunded a part: credit that. `0n` unless the result is `changed`.
     */
    readonly debit: bigint
    /**
     * What arrives because of this call, in units of the asset of `receiveAmount`: by how much it has raised
     * `deliveredAmount`. In one currency, `debit - credit` is your fee. Negative for a refund, `0n` like `debit`.
     */
    readonly credit: bigint
  },
  Refusal | 'payment_unknown'
>

/** What payments have spent under one granted item for outgoing payments, and what is left. */
export interface ItemBudget {
  /** The item, with the `label` of its token if the grant has several. */
  readonly item: ItemView
  /** Whether the item can pay now: false outside all windows of its interval. */
  readonly isOpen: boolean
  /** The window that is open now; absent without an interval, and outside all of its windows. */
  readonly window?: SpendingWindow
  /**
   * The totals that payments have sent and reserved in the window, or, without an interval, under the grant. A total is
   * `null` if it cannot be expressed as one amount, or if nothing was spent and its asset is not known.
   */
  readonly spent: SpentAmounts
  /** What is left of the limited amount; zero outside all windows. Empty if the limits contain no amount. */
  readonly left: Partial<Readonly<Record<CountedAmount, Amount>>>
}

/**
 * The operations on outgoing payments that the host calls. The host receives the event
 * `outgoing-payment.created`, claims the payment with `begin` before it sends anything, and ends it with
 * `reportSent` or `fail`. Every call may be repeated and counts once, except that only one `begin` succeeds. Each
 * throws an `InvalidInputError` for an invalid argument, before it reads the store.
 */
export interface OutgoingPaymentServices
  extends PaymentReader<OutgoingPaymentView, OutgoingPayment, ListedPayments>,
    LimitServices,
    ConfirmationServices,
    OrderServices {
  /** Returns the payment as clients see it. */
  toResource(payment: OutgoingPaymentView): OutgoingPaymentBody
  /**
   * Resolves to the current budget of each item for outgoing payments of a grant, such as for the owner's page. Empty
   * if the id is unknown. It changes nothing.
   *
   * @param grant the id of the grant. With `remoteGrants`, the record from `grants.getRecord` of the authorization
   *   server, because the store of this server contains the budgets and not the grants.
   * @throws {InvalidInputError} for an id with `remoteGrants`.
   */
  budgetsOf(grant: string | Grant): Promise<readonly ItemBudget[]>
  /**
   * Claims a payment before the host sends it. If several processes try, exactly one gets `ok: true`. From
   * then on only `reportSent` or `fail` ends the payment. If the host crashes after this call, it must find
   * out how much it sent, and report that.
   */
  begin(
    paymentId: string,
  ): Promise<PaymentResult<OutgoingPaymentView, OutgoingPaymentRefusals['begin']>>
  /**
   * Reports the totals sent so far. In one transaction with your ledger, debit `debit` of the result. When either
   * amount is reached, or with `final`, the payment completes, and the unused rest returns to the budget of the window
   * in which the payment was created.
   */
  reportSent(
    paymentId: string,
    report: SentReport,
  ): Promise<ReportResult<OutgoingPaymentRefusals['report-sent']>>
  /**
   * Fails a payment that was begun. The totals sent stay charged; the rest returns to the budget. Without totals, the
   * last reported ones apply. With only one, the library derives the other from it at the price of the payment, rounded
   * up, and never less than the last reported total. `reason` is for your own use; never part of a response.
   * `publicReason`, of 1 to 256 characters, is for the client: it reads it as `metadata.cancellationReason`, unless it
   * sent a member of this name.
   */
  fail(
    paymentId: string,
    report?: FailureReport,
  ): Promise<ReportResult<OutgoingPaymentRefusals['fail']>>
  /**
   * Decides the doubt of a payment that has ended. What was `refunded` is no longer sent, and counts back in the
   * budgets of the window in which the payment was created, also after the end of that window, and in no others. In one
   * transaction with your ledger, credit what `debit` has below zero to the payer. A repeat changes nothing;
   * another decision is refused with `doubt_decided`, and of a payment that `attempts` settle, with
   * `decided_by_attempts`: its driver decides. No event tells of it, because your own code decides.
   */
  decideDoubt(paymentId: string, decision: DoubtDecision): Promise<ReportResult<DecideDoubtRefusal>>
  /**
   * Measures what is in doubt, such as for gauges.
   *
   * @param limit the most payments that are read, the oldest doubts first: 1 to 10,000. Default 1,000.
   */
  doubt(limit?: number): Promise<DoubtSummary>
  /**
   * Cancels a payment that was not begun. Its whole amount returns to the budget. `reason` and `publicReason` are those
   * of `fail`.
   */
  cancel(
    paymentId: string,
    report?: HostReasons,
  ): Promise<PaymentResult<OutgoingPaymentView, OutgoingPaymentRefusals['cancel']>>
}

const decidedBy = v.optional(oneOf('attempts'))

const inDoubt = v.optional(
  exactly({
    amount,
    since: integer,
    reason: textOfAtMost(256),
    decidedBy,
  } satisfies Members<PaymentDoubt>),
)

const sentReport = exactly({
  sentAmount: amount,
  deliveredAmount: amount,
  final: v.optional(boolean),
  inDoubt,
} satisfies Members<SentReport>)

const doubtDecision = exactly({
  refunded: amount,
  deliveredAmount: v.optional(amount),
  decidedBy,
} satisfies Members<DoubtDecision>)

/** The most payments in doubt that one call measures. */
const doubtLimit = v.optional(integerFrom(1, 10_000), 1_000)

const failureReasons = {
  reason: v.optional(string),
  publicReason: v.optional(textOfAtMost(publicReasonLengthMax)),
} satisfies Members<HostReasons>

const failureReport = exactly({
  sentAmount: v.optional(amount),
  deliveredAmount: v.optional(amount),
  inDoubt,
  ...failureReasons,
} satisfies Members<FailureReport>)

const cancellationReport = exactly(failureReasons)

export function outgoingPaymentServices(
  payments: OutgoingPayments,
  clock: Clock,
  baseUrl: string,
  hasGrants: boolean,
  limits: LimitServices,
  confirmations: OwnerConfirmations,
  creation: Pick<PaymentCreation, 'order'> | undefined,
): OutgoingPaymentServices {
  const seen = (payment: OutgoingPayment) => outgoingPaymentView(payment, clock.now())
  function reported<Refusal extends string>(result: CarriedOut<Refusal>): ReportResult<Refusal> {
    return result.ok ? { ...result, payment: seen(result.payment) } : result
  }
  return {
    ...paymentReader(payments, seen, baseUrl, 'outgoing-payments', byAddressGrantOrDoubt),
    ...limits,
    ...confirmationServices(confirmations, seen),
    ...orderServices(creation, seen, baseUrl),
    toResource(payment) {
      readInput('payment', view, payment)
      const { paymentId: id, status: state, sentAmount } = payment
      const content = { ...payment, id, state, sent: sentAmount.value }
      return outgoingPaymentResource(content, baseUrl, clock.now())
    },
    async budgetsOf(grant) {
      const isId = typeof grant === 'string'
      if (isId && !hasGrants) {
        const problem = 'must be the record from grants.getRecord, because of remoteGrants'
        throw new InvalidInputError('grant', problem)
      }
      if (!isId) readInput('grant', record, grant)
      const { id: grantId, granted: access } =
        (isId ? await payments.loadGrant(grant) : grant) ?? {}
      if (grantId === undefined || access === undefined) return []
      const found = await payments.budgetsUnder({ grantId, access }, clock.now())
      return found.map(({ item, spent, ...budget }) => {
        return { item: itemView(item), spent: totalSpent([spent]), ...budget }
      })
    },
    async begin(paymentId) {
      readInput('paymentId', text, paymentId)
      return seenResult(await payments.begin(paymentId), seen)
    },
    async reportSent(paymentId, report) {
      readInput('paymentId', text, paymentId)
      const copy = readInput('report', sentReport, report)
      return reported(await payments.reportSent(paymentId, copy))
    },
    async fail(paymentId, report = {}) {
      readInput('paymentId', text, paymentId)
      const copy = readInput('report', failureReport, report)
      return reported(await payments.fail(paymentId, copy))
    },
    async decideDoubt(paymentId, decision) {
      readInput('paymentId', text, paymentId)
      const copy = readInput('decision', doubtDecision, decision)
      return reported(await payments.decideDoubt(paymentId, copy))
    },
    async doubt(limit) {
      return payments.doubt(readInput('limit', doubtLimit, limit))
    },
    async cancel(paymentId, report = {}) {
      readInput('paymentId', text, paymentId)
      const copy = readInput('report', cancellationReport, report)
      return seenResult(await payments.cancel(paymentId, copy), seen)
    },
  }
}
