import * as v from 'valibot'
import type { OutgoingPaymentServices } from '../host/outgoing-payment.js'
import type { OutgoingPaymentView } from '../host/outgoing-payment-view.js'
import type { Clock } from '../ports/host.js'
import { clockOption } from '../protocol/host-options.js'
import type { EventHandler, PostponedDelivery } from '../service/events/handler.js'
import {
  callback,
  type Members,
  optionsOf,
  port,
  positiveInteger,
  readInput,
} from '../util/input.js'
import type { Attempts } from './attempts.js'
import type { SettleRequest } from './options.js'
import {
  arrivedAtEnd,
  type ReportedSettlement,
  reportSettled,
  type SettledPayments,
  totalsAt,
} from './report.js'
import type { Settled } from './views.js'

/** Options of `settlementHandler`. `requestOf` is required if `settle` needs members of your own. */
export type SettlementHandlerOptions<Request extends SettleRequest = SettleRequest> = {
  /** The calls of the resource server. */
  readonly outgoingPayments: Pick<OutgoingPaymentServices, 'begin'> & SettledPayments
  /** The driver: one settlement for each payment, of its `receiveAmount`, under its id. */
  readonly settlements: Pick<Attempts<Request>, 'get' | 'settle'>
  /**
   * Reports what a settlement has brought, and posts it to your ledger, in one transaction. Called again with the same
   * result after a crash. Default: `reportSettled`, for a ledger that is not in the database of the library.
   */
  readonly report?: (paymentId: string, settled: Settled) => Promise<ReportedSettlement>
  /** How long after an answer that decides nothing a part in doubt is asked about again. Default 3,600,000: an hour. */
  readonly askAgainMs?: number
  /** The source of the time. Default: `Date`. */
  readonly clock?: Clock
} & (SettleRequest extends Request
  ? Partial<SettlementRequests<Request>>
  : SettlementRequests<Request>)

/** What `send` and `ask` of a driver need of each payment. */
export interface SettlementRequests<Request extends SettleRequest> {
  /**
   * Returns what `send` and `ask` need beside the id and the amount. Default: `otherSide`, the receiver of the payment.
   */
  readonly requestOf: (
    payment: OutgoingPaymentView,
  ) => Omit<Request, 'id' | 'amount'> | Promise<Omit<Request, 'id' | 'amount'>>
}

const handlerOptions = optionsOf({
  outgoingPayments: port<SettlementHandlerOptions['outgoingPayments']>(
    'begin',
    'get',
    'reportSent',
  ),
  settlements: port<SettlementHandlerOptions['settlements']>('get', 'settle'),
  requestOf: v.optional(callback()),
  report: v.optional(callback()),
  askAgainMs: v.optional(positiveInteger, 3_600_000),
  clock: clockOption,
} satisfies Members<SettlementHandlerOptions>)

/**
 * Returns a handler of events that carries each outgoing payment out by a driver of `attempts`: it begins the payment,
 * settles it, reports what has arrived, and asks about what is in doubt until that is decided. It ignores the other
 * events, so that your own handler can call it with each event. Any number of processes may.
 *
 * A payment that ended before it began is never sent. Of one that has ended, nothing is sent any more.
 *
 * If other code ends a payment while its order is under way, the event is set aside once the debit differs.
 *
 * @throws {InvalidInputError} for an invalid or unknown option. The handler rejects, so that the event is delivered
 *   again and in the end set aside, with what `report` refuses, and with the errors of the store.
 *
 * @example
 * ```ts
 * import { consumeEvents } from 'open-payments-server'
 * import { type Attempts, settlementHandler } from 'open-payments-server/attempts'
 *
 * declare const transfers: Attempts
 * const { outgoingPayments, events } = wallet.resources
 * consumeEvents([events], settlementHandler({ outgoingPayments, settlements: transfers }))
 * ```
 */
export function settlementHandler<Request extends SettleRequest>(
  options: SettlementHandlerOptions<Request>,
): EventHandler {
  const { askAgainMs, clock } = readInput('', handlerOptions, options)
  const { outgoingPayments, settlements } = options
  const report: NonNullable<SettlementHandlerOptions['report']> =
    options.report ?? ((id, settled) => reportSettled(outgoingPayments, id, settled))
  const requestOf: SettlementRequests<Request>['requestOf'] =
    options.requestOf ?? (({ receiver }) => ({ otherSide: receiver }) as Omit<Request, never>)

  async function settle(payment: OutgoingPaymentView): Promise<Settled> {
    const { paymentId: id, receiveAmount } = payment
    const request = { ...(await requestOf(payment)), id, amount: BigInt(receiveAmount.value) }
    const settled = await settlements.settle(request as Request)
    const reported = await report(id, settled)
    if (!reported.ok) throw new Error(`${id}: ${reported.reason}`)
    return settled
  }

  async function pay(id: string): Promise<PostponedDelivery | undefined> {
    const begun = await outgoingPayments.begin(id)
    // A stopped process may have begun it.
    if (!begun.ok && begun.refusal !== 'payment_begun') return compare(id)
    const payment = begun.ok ? begun.payment : await outgoingPayments.get(id)
    const settled = payment && (await settle(payment))
    return settled?.state === 'again' ? { retryAt: settled.retryAt } : undefined
  }

  /** Rejects if other code has ended a payment with another debit than its settlement has brought. */
  async function compare(id: string): Promise<undefined> {
    const [payment, settlement] = [await outgoingPayments.get(id), await settlements.get(id)]
    if (payment === undefined || settlement === undefined) return undefined
    const known = arrivedAtEnd(settlement.totals)
    const priceOf = (arrived: bigint) => BigInt(totalsAt(payment, arrived).sentAmount.value)
    const debited = BigInt(payment.sentAmount.value)
    const most = priceOf(known + settlement.totals.inDoubt)
    if (debited >= priceOf(known) && debited <= most) return undefined
    throw new Error(`${id}: other code has ended the payment, of which ${known} has arrived`)
  }

  async function ask(id: string): Promise<PostponedDelivery | undefined> {
    const payment = await outgoingPayments.get(id)
    // Without a settlement, other code has ended the payment, and `settle` would send it.
    if (!payment?.inDoubt || (await settlements.get(id)) === undefined) return undefined
    const settled = await settle(payment)
    if (settled.state === 'again') return { retryAt: settled.retryAt }
    return settled.inDoubt > 0n ? { retryAt: clock.now() + askAgainMs } : undefined
  }

  return async (event) => {
    switch (event.type) {
      case 'outgoing-payment.created':
        return pay(event.outgoingPaymentId)
      case 'outgoing-payment.completed':
      case 'outgoing-payment.failed':
        return ask(event.outgoingPaymentId)
      default:
        return undefined
    }
  }
}
