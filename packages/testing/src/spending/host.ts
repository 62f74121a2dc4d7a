import type {
  Amount,
  EventHandler,
  Instant,
  OutgoingPaymentView,
  PaymentDoubt,
  ResourceServer,
} from 'open-payments-server'
import { show } from '../conformance/expectations.js'
import type { SpendingAnswer, WalletDecision, WalletTotals } from './wallet.js'

/** How a payment ends: whether it arrived, and what was sent and delivered in all. */
export interface SpendingOutcome extends Omit<WalletTotals, 'final' | 'inDoubt'> {
  readonly arrived: boolean
  /** The part of `sentAmount` of which nobody knows whether it arrives. Only for a host with `decideDoubt`. */
  readonly inDoubt?: PaymentDoubt
}

/**
 * The host's own code around its servers. The search calls it as production does, so that it also finds mistakes of the
 * host's ledger.
 */
export interface SpendingHost {
  /**
   * Ends a payment, usually in one transaction with the host's ledger. Called in place of `fail` and of the
   * `reportSent` that ends the payment, and again with the same outcome after it has rejected. Resolves to the result
   * of `reportSent` or `fail`. Default: the search calls these methods. With `wholePayments` and `onEvent`, only in
   * place of `fail`.
   */
  settle?(
    paymentId: string,
    outcome: SpendingOutcome,
  ): Promise<{ readonly ok: boolean; readonly refusal?: string }>
  /**
   * Decides the doubt of a payment that has ended, usually in one transaction with the host's ledger. Called in place
   * of the method of the server, and again with the same decision after it has rejected. A host with a ledger, which
   * has `settle`, `onEvent` or `problem`, gets payments in doubt only if it has this function.
   */
  decideDoubt?(
    paymentId: string,
    decision: WalletDecision,
  ): Promise<{ readonly ok: boolean; readonly refusal?: string }>
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

/**
 * Passes the ends of payments to the host, if it settles them itself.
 *
 * @param wholePayments whether its handler of events pays them.
 */
export function settling(
  { settle, onEvent, problem, decideDoubt: ownDecision }: SpendingHost,
  { outgoingPayments }: Pick<ResourceServer, 'outgoingPayments'>,
  server: string,
  wholePayments: boolean,
) {
  /** What each payment debits and delivers in all, and since when a part of it can be in doubt. */
  const amounts = new Map<
    string,
    { readonly debit: bigint; readonly receive: bigint; readonly at: Instant }
  >()
  const hasLedger = settle !== undefined || onEvent !== undefined || problem !== undefined
  const decide = ownDecision ?? (hasLedger ? undefined : outgoingPayments.decideDoubt)

  function withDoubt<Reported extends Pick<WalletTotals, 'inDoubt'>>(
    id: string,
    { inDoubt: amount, ...totals }: Reported,
  ) {
    const { at: since = 0 } = amounts.get(id) ?? {}
    return amount === undefined
      ? totals
      : { ...totals, inDoubt: { amount, since, reason: 'no reply' } }
  }

  function ends(id: string, { sentAmount, deliveredAmount, final }: WalletTotals): boolean {
    const { debit, receive } = amounts.get(id) ?? {}
    const reaches = (amount: Amount, whole = -1n) => BigInt(amount.value) === whole
    return final || reaches(sentAmount, debit) || reaches(deliveredAmount, receive)
  }

  /** Lets the handler pay a payment, as at the event of its creation, and resolves to whether it has. */
  async function pays(id: string, handler: EventHandler): Promise<SpendingAnswer> {
    const payment = await outgoingPayments.get(id)
    if (payment === undefined) return { accepted: false, reason: 'payment_unknown' }
    const event = createdEvent(payment, server)
    const delivery = { attempt: 1, signal: new AbortController().signal }
    let problem: unknown = new Error('the handler of events did not end the payment')
    try {
      await handler(event, delivery)
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
    created(id: string, debitAmount: Amount, receiveAmount: Amount, at: Instant): void {
      const [debit, receive] = [BigInt(debitAmount.value), BigInt(receiveAmount.value)]
      amounts.set(id, { debit, receive, at })
    },
    async reportSent(id: string, totals: WalletTotals): Promise<SpendingAnswer> {
      const { final, ...outcome } = withDoubt(id, totals)
      if (wholePayments && onEvent !== undefined) return pays(id, onEvent)
      return settle !== undefined && ends(id, totals)
        ? answerOf(await settle(id, { ...outcome, arrived: true }))
        : answerOf(await outgoingPayments.reportSent(id, { ...outcome, final }))
    },
    async fail(id: string, totals: Omit<WalletTotals, 'final'>): Promise<SpendingAnswer> {
      const outcome = withDoubt(id, totals)
      return settle !== undefined
        ? answerOf(await settle(id, { ...outcome, arrived: false }))
        : answerOf(await outgoingPayments.fail(id, outcome))
    },
    ...(decide !== undefined && {
      decideDoubt: async (id: string, decision: WalletDecision): Promise<SpendingAnswer> =>
        answerOf(await decide(id, decision)),
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
    throw new Error(`settle returned ${show(result)}; expected the result of reportSent or fail`)
  }
  return result.ok ? { accepted: true } : { accepted: false, reason: result.refusal ?? '' }
}
