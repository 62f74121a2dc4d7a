import type {
  Amount,
  Asset,
  DeliveredEvent,
  EventHandler,
  MayPay,
  RequestedPayment,
} from 'open-payments-server'
import type { OutgoingPaymentEvent } from 'open-payments-server/core'
import { demand, isObject, show } from '../conformance/expectations.js'

/** An event of an outgoing payment, as the handler of events gets it. */
export type DeliveredPaymentEvent = DeliveredEvent & OutgoingPaymentEvent

/** An account of a host, and the code of the host that holds, debits and releases its funds. */
export interface HoldSubject {
  readonly walletAddress: string
  /** The asset of the account. */
  readonly asset: Asset
  /**
   * `policy.mayPay`. It must refuse a payment only if the account does not have the funds. It may do so before or after
   * it answers `confirmation_required`; the owner then confirms, and it is asked again with `isConfirmed: true`.
   */
  readonly mayPay: MayPay
  /**
   * The handler of events. It gets `begun`, `sent`, `completed`, `failed` and `declined` of outgoing payments, some of
   * them twice, and never `created`.
   */
  readonly onEvent: EventHandler
  /**
   * Debits `sentAmount` of the event when the payment ends, if `onEvent` does not: called once for each payment that
   * was begun, before its `completed` or `failed`, with the event of that end. Nothing calls it if the payment was not
   * begun.
   */
  settle?(event: DeliveredPaymentEvent): void | Promise<void>
  /** The balance of the account, including held amounts. */
  balance(): bigint | Promise<bigint>
  /** The part of the balance that is held for payments. */
  held(): bigint | Promise<bigint>
  /** Called at the end of the case. */
  close?(): void | Promise<void>
}

/** How a payment ends. */
export type End = 'completed' | 'failed' | 'declined'

/** A payment about which the case asks. */
export interface TestPayment {
  readonly requested: RequestedPayment
  /** Its events, each the same in every delivery. */
  readonly events: Map<string, DeliveredPaymentEvent>
}

/** An account as a case uses it: its methods fail the case if the host's code rejects or resolves to a wrong value. */
export type TestAccount = ReturnType<typeof testAccount>

export function testAccount(subject: HoldSubject) {
  const { walletAddress, asset } = subject
  const waiting = { signal: new AbortController().signal }

  async function call<Result>(name: string, work: () => Result | Promise<Result>): Promise<Result> {
    try {
      return await work()
    } catch (error) {
      const problem = error instanceof Error ? error.message : show(error)
      throw new Error(`${name} rejected with: ${problem}`, { cause: error })
    }
  }

  async function amountIn(name: 'balance' | 'held'): Promise<bigint> {
    const value: unknown = await call(name, () => subject[name]())
    demand(typeof value === 'bigint', () => `${name} returned ${show(value)}; expected a bigint`)
    return value
  }

  async function answerTo(requested: RequestedPayment) {
    const answer: unknown = await call('mayPay', () =>
      subject.mayPay(structuredClone(requested), waiting),
    )
    const isAnswer = isObject(answer) && typeof answer['ok'] === 'boolean'
    demand(isAnswer, () => `mayPay returned ${show(answer)}; expected an object with ok`)
    return answer
  }

  /** Asks about a payment, which its owner confirms if the host wants that, and resolves to whether it is allowed. */
  async function ask({ requested }: TestPayment): Promise<boolean> {
    const answer = await answerTo(requested)
    if (answer['refusal'] !== 'confirmation_required') return answer['ok'] === true
    return (await answerTo({ ...requested, isConfirmed: true }))['ok'] === true
  }

  const preview = ({ requested }: TestPayment) => answerTo({ ...requested, isPreview: true })

  function eventOf(
    { requested, events }: TestPayment,
    type: OutgoingPaymentEvent['type'],
    sent: bigint,
  ) {
    const known = events.get(type)
    if (known !== undefined) return known
    const { metadata: _metadata, conditions: _conditions, ...payment } = requested
    const event = {
      ...payment,
      type,
      at: Date.now(),
      sentAmount: { ...asset, value: `${sent}` },
      deliveredAmount: { ...payment.receiveAmount, value: `${arrivingFor(sent)}` },
      id: `${requested.outgoingPaymentId}.${type}`,
      subject: `outgoing-payment/${requested.outgoingPaymentId}`,
      server: new URL(walletAddress).origin,
    }
    events.set(type, event)
    return event
  }

  /** Delivers the event of a payment. Its further deliveries are the same event, whatever was sent. */
  async function deliver(payment: TestPayment, type: 'begun' | 'sent' | End, sent = 0n) {
    const event = eventOf(payment, `outgoing-payment.${type}`, sent)
    const delivery = { attempt: 1, signal: new AbortController().signal }
    const result = await call('onEvent', () => subject.onEvent(structuredClone(event), delivery))
    // No time passes in a case, so that a later delivery would be the same one.
    demand(
      result?.retryAt === undefined,
      () => `onEvent postponed ${event.type}; expected it to handle the event`,
    )
  }

  /** Lets the host debit what was sent, before the event of the end. */
  async function settle(payment: TestPayment, type: 'completed' | 'failed', sent: bigint) {
    const event = eventOf(payment, `outgoing-payment.${type}`, sent)
    await call('settle', () => subject.settle?.(structuredClone(event)))
  }

  return {
    ask,
    deliver,
    /** A payment of this value. Something else arrives, in another asset. */
    payment(value: bigint): TestPayment {
      const debitAmount: Amount = { ...asset, value: `${value}` }
      const assetCode = asset.assetCode === 'EUR' ? 'USD' : 'EUR'
      const receiveAmount: Amount = { value: `${arrivingFor(value)}`, assetCode, assetScale: 2 }
      const requested: RequestedPayment = {
        outgoingPaymentId: crypto.randomUUID(),
        walletAddress,
        client: 'https://shop.example',
        grantId: crypto.randomUUID(),
        receiver: 'https://bank.example/incoming-payments/1',
        debitAmount,
        receiveAmount,
      }
      return { requested, events: new Map() }
    },
    /** Asks about a payment that must be allowed. */
    async allows(payment: TestPayment, when: string) {
      const { value } = payment.requested.debitAmount
      demand(await ask(payment), () => `mayPay refused a payment of ${value} ${when}; expected ok`)
    },
    /** Asks about a payment that must be refused. */
    async refuses(payment: TestPayment, when: string) {
      const { value } = payment.requested.debitAmount
      const isRefused = !(await ask(payment))
      demand(isRefused, () => `mayPay allowed a payment of ${value} ${when}; expected a refusal`)
    },
    /** Previews a payment that the host would make, at least once its owner has confirmed it. */
    async allowsPreview(payment: TestPayment, when: string) {
      const { value } = payment.requested.debitAmount
      const { ok, refusal } = await preview(payment)
      demand(
        ok === true || refusal === 'confirmation_required',
        () => `mayPay refused a preview of ${value} ${when}; expected ok`,
      )
    },
    /** Previews a payment that the host would refuse. */
    async refusesPreview(payment: TestPayment, when: string) {
      const { value } = payment.requested.debitAmount
      const isRefused = (await preview(payment))['ok'] === false
      demand(isRefused, () => `mayPay allowed a preview of ${value} ${when}; expected a refusal`)
    },
    settle,
    /** Ends a payment that was begun, after this much was sent. */
    async end(payment: TestPayment, type: 'completed' | 'failed', sent: bigint) {
      await settle(payment, type, sent)
      await deliver(payment, type)
    },
    async has(expected: { readonly balance: bigint; readonly held: bigint }, when: string) {
      for (const name of ['balance', 'held'] as const) {
        const value = await amountIn(name)
        demand(
          value === expected[name],
          () => `${when}, ${name} is ${value}; expected ${expected[name]}`,
        )
      }
    },
    /** The available amount: both a debit and a hold reduce it. */
    available: async () => (await amountIn('balance')) - (await amountIn('held')),
    close: () => call('close', () => subject.close?.()),
  }
}

function arrivingFor(value: bigint): bigint {
  return value === 0n ? 0n : 3n * value + 1n
}
