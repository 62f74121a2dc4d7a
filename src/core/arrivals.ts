import type { Amount } from './amount.js'
import type { Decision } from './decision.js'
import {
  decideIncomingPayment,
  type IncomingPayment,
  type IncomingPaymentEvent,
  type ReceiveRefusal,
  retainTransferUntil,
  type Transfer,
} from './incoming-payment.js'
import type { Instant } from './instant.js'

/** Funds that arrived for an incoming payment. */
export interface Arrival {
  readonly commandId: string
  /** The id of the record that makes the transfer count once. */
  readonly transferId: string
  readonly amount: Amount
  readonly at: Instant
}

export type ArrivalDecision = Decision<IncomingPayment, IncomingPaymentEvent, ReceiveRefusal>

/** An incoming payment, and what is known of the transfers of some arrivals. */
export interface LoadedArrivals {
  readonly payment: IncomingPayment
  /** The stored transfer of each arrival, loaded after the payment; `undefined` if it has not been counted. */
  readonly transfers: readonly (Transfer | undefined)[]
  /** The payment, loaded after the transfers, if one of them is stored: the payment that includes it. */
  readonly including?: IncomingPayment | undefined
}

/** The decisions on arrivals, and the records of one commit that carries out all of them. */
export interface DecidedArrivals {
  readonly decisions: readonly ArrivalDecision[]
  /** The next version of the payment; absent if it accepts none of the arrivals. */
  readonly next?: IncomingPayment
  readonly events: readonly IncomingPaymentEvent[]
  readonly counted: readonly Transfer[]
}

/**
 * Decides several arrivals for one payment in order, each on the outcome of the arrivals before it. The decisions are
 * the same as with one commit per arrival, but the payment gets only one new version. A refused arrival does not affect
 * the others.
 *
 * @param commandId of the commit that writes all changes.
 */
export function decideArrivals(
  { payment, transfers, including = payment }: LoadedArrivals,
  arrivals: readonly Arrival[],
  commandId: string,
): DecidedArrivals {
  let current = payment
  const events: IncomingPaymentEvent[] = []
  const counted = new Map<string, Transfer>()
  const decisions = arrivals.map((arrival, index): ArrivalDecision => {
    const command = {
      type: 'receive',
      commandId: arrival.commandId,
      amount: arrival.amount,
    } as const
    const stored = transfers[index]
    if (stored !== undefined) return decideIncomingPayment(including, stored, command, arrival.at)
    const before = { ...current, version: payment.version }
    const transfer = counted.get(arrival.transferId)
    const decision = decideIncomingPayment(before, transfer, command, arrival.at)
    if (decision.outcome === 'refused') return decision
    if (decision.outcome === 'unchanged') return { ...decision, record: current }
    current = { ...decision.record, commandId }
    events.push(...decision.events)
    counted.set(arrival.transferId, transferOf(payment, arrival))
    return { ...decision, record: current }
  })
  const next = current === payment ? {} : { next: current }
  return { decisions, ...next, events, counted: [...counted.values()] }
}

function transferOf(payment: IncomingPayment, arrival: Arrival): Transfer {
  const { value, assetCode, assetScale } = arrival.amount
  const retainUntil = retainTransferUntil(payment)
  return {
    id: arrival.transferId,
    version: 1,
    commandId: arrival.commandId,
    dueAt: retainUntil,
    retainUntil,
    paymentId: payment.id,
    amount: { value, assetCode, assetScale },
  }
}
