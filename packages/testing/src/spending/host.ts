import type {
  EventHandler,
  Instant,
  OutgoingPaymentServices,
  OutgoingPaymentView,
  ReportResult,
  ResourceServer,
} from 'open-payments-server'
import { show } from '../conformance/expectations.js'
import type { SpendingAnswer, WalletDecision, WalletTotals } from './wallet.js'

/**
 * One call of `reportSent`, `fail` or `decideDoubt`, with the ids and amounts of the history.
 *
 * @param outgoingPayments those of `resources.within`, in a transaction of the host.
 */
export type SpendingReport = (
  outgoingPayments: Pick<OutgoingPaymentServices, 'reportSent' | 'fail' | 'decideDoubt'>,
) => Promise<ReportResult<string>>

/**
 * The host's own code around its servers. The search calls it as production does, so that it also finds mistakes of the
 * host's ledger.
 */
export interface SpendingHost {
  /**
   * Makes each report of a payment, of a part, of its end, and of the decision of its doubt: calls `report` with the
   * `outgoingPayments` of a transaction, posts `debit` of the result to the ledger, and resolves to the result. Called
   * again with the same report after it has rejected. Default: the search calls the methods of the server, and a host
   * that has `onEvent` or `problem` gets no payments in doubt. With `wholePayments` and `onEvent`, only for `fail`.
   */
  report?(report: SpendingReport): Promise<ReportResult<string>>
  /**
   * The handler of the events of the resource server. It gets every event except `outgoing-payment.created` before the
   * next step, and some of them twice. With `wholePayments`, it gets `outgoing-payment.created` of a payment that has
   * been begun, in place of the `reportSent` that ends it, and must end it as completed; again after it has rejected,
   * and after the end of the payment.
   */
  readonly onEvent?: EventHandler
  /** A sweep of the host's own. Called after those of the servers, and again while it resolves to `more: true`. */
  // biome-ignore lint/suspicious/noConfusingVoidType: a sweep may return nothing
  sweep?(): Promise<{ readonly more: boolean } | void>
  /**
   * Checks the host's ledger. Called after each step, when nothing runs and, with `onEvent`, no event waits. Returns a
   * sentence about what is wrong, or `undefined`.
   */
  problem?(): string | undefined | Promise<string | undefined>
  /** Called at the end of the history. */
  close?(): void | Promise<void>
}

const postponedError =
  'the handler of events postponed the payment: search it without wholePayments, with the function report'

/**
 * Passes the reports of payments to the host, if it makes them itself.
 *
 * @param wholePayments whether its handler of events pays them.
 */
export function settling(
  { report: ownReport, onEvent, problem }: SpendingHost,
  { outgoingPayments }: Pick<ResourceServer, 'outgoingPayments'>,
  server: string,
  wholePayments: boolean,
) {
  /** Since when a part of each payment can be in doubt. */
  const createdAt = new Map<string, Instant>()
  const hasDoubts = ownReport !== undefined || (onEvent ?? problem) === undefined

  async function make(report: SpendingReport): Promise<SpendingAnswer> {
    return answerOf(await (ownReport?.(report) ?? report(outgoingPayments)))
  }

  function withDoubt<Reported extends Pick<WalletTotals, 'inDoubt'>>(
    id: string,
    { inDoubt: amount, ...totals }: Reported,
  ) {
    const since = createdAt.get(id) ?? 0
    return amount === undefined
      ? totals
      : { ...totals, inDoubt: { amount, since, reason: 'no reply' } }
  }

  /** Lets the handler pay a payment, as at the event of its creation, and resolves to whether it has. */
  async function pays(id: string, handler: EventHandler): Promise<SpendingAnswer> {
    const payment = await outgoingPayments.get(id)
    if (payment === undefined) return { accepted: false, reason: 'payment_unknown' }
    const event = createdEvent(payment, server)
    const delivery = { attempt: 1, signal: new AbortController().signal }
    let problem: unknown = new Error('the handler of events did not end the payment')
    try {
      const postponed = await handler(event, delivery)
      if (postponed?.retryAt !== undefined) problem = new Error(postponedError)
    } catch (error) {
      problem = error
    }
    // A handler also rejects if another call has ended the payment in the meantime.
    const status = (await outgoingPayments.get(id))?.status
    if (status === 'completed') return { accepted: true }
    if (status === 'failed') return { accepted: false, reason: 'payment_over' }
    throw problem
  }

  return {
    created(id: string, at: Instant): void {
      createdAt.set(id, at)
    },
    async reportSent(id: string, totals: WalletTotals): Promise<SpendingAnswer> {
      if (wholePayments && onEvent !== undefined) return pays(id, onEvent)
      return make(({ reportSent }) => reportSent(id, withDoubt(id, totals)))
    },
    fail: (id: string, totals: Omit<WalletTotals, 'final'>): Promise<SpendingAnswer> =>
      make(({ fail }) => fail(id, withDoubt(id, totals))),
    ...(hasDoubts && {
      decideDoubt: (id: string, decision: WalletDecision): Promise<SpendingAnswer> =>
        make(({ decideDoubt }) => decideDoubt(id, decision)),
    }),
  }
}

/** Returns the event of the creation of a payment, each time the same. */
function createdEvent(payment: OutgoingPaymentView, server: string) {
  const { paymentId, walletAddress, client, grantId, quoteId, createdAt } = payment
  const { receiver, receiverWalletAddress, debitAmount, receiveAmount } = payment
  return {
    id: `${paymentId}.created`,
    type: 'outgoing-payment.created' as const,
    subject: `outgoing-payment/${paymentId}`,
    server,
    at: createdAt,
    outgoingPaymentId: paymentId,
    walletAddress,
    ...(client !== undefined && { client, grantId }),
    ...(quoteId !== undefined && { quoteId }),
    receiver,
    ...(receiverWalletAddress !== undefined && { receiverWalletAddress }),
    debitAmount,
    receiveAmount,
    sentAmount: { ...debitAmount, value: '0' },
    deliveredAmount: { ...receiveAmount, value: '0' },
  }
}

/** Returns a function that delivers the events so far to the host, and then checks its ledger. */
export function checking({ onEvent, problem }: SpendingHost, { events }: ResourceServer) {
  let deliveries = 0

  async function deliverAll(handler: EventHandler): Promise<void> {
    const errors: unknown[] = []
    const deliver: EventHandler = async (event, delivery) => {
      if (event.type === 'outgoing-payment.created') return // the search begins payments itself
      try {
        const result = await handler(event, delivery)
        if (result?.retryAt !== undefined || ++deliveries % 2 === 1) return result
        return await handler(event, delivery)
      } catch (error) {
        errors.push(error)
      }
    }
    while ((await events.drain(deliver, { concurrency: 1 })).delivered > 0);
    if (errors.length === 0) return
    throw new Error('the handler of events rejected', { cause: errors[0] })
  }

  return async () => {
    if (onEvent === undefined) return problem?.()
    await deliverAll(onEvent)
    // The end of a payment whose call of `mayPay` was lost is delivered later: until then, the host holds its amount.
    const { waiting } = await events.backlog(1)
    return waiting === 0 ? problem?.() : undefined
  }
}

/** Repeats the sweep of the host until nothing is left. */
export async function sweptBy({ sweep }: SpendingHost): Promise<void> {
  while ((await sweep?.())?.more === true);
}

export function answerOf(result: {
  readonly ok: boolean
  readonly refusal?: string
}): SpendingAnswer {
  if (typeof result?.ok !== 'boolean') {
    throw new Error(`report returned ${show(result)}; expected the result of the report`)
  }
  return result.ok ? { accepted: true } : { accepted: false, reason: result.refusal ?? '' }
}
