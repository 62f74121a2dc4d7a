import type { GrantEvent } from '../../core/grant/record.js'
import type { IncomingPaymentEvent } from '../../core/incoming-payment.js'
import type { Instant } from '../../core/instant.js'
import type { OutgoingPaymentEvent } from '../../core/outgoing-payment/record.js'
import type { QuoteEvent } from '../../core/quote.js'
import type { ServiceContext } from '../context.js'
import { deliveredId, type EventRecord, subjectOf } from '../event-record.js'

/** An event as passed to a handler. */
export type DeliveredEvent = (
  | GrantEvent
  | IncomingPaymentEvent
  | OutgoingPaymentEvent
  | QuoteEvent
) & {
  /** The same in every delivery of an event, so that a handler can detect repeats. */
  readonly id: string
  /**
   * The record that changed, as `<kind>/<id>`: the events of one subject are delivered in order, and a broker keeps
   * the order by it. It is unique among servers, has at most 64 characters, and no spaces.
   */
  readonly subject: string
  /** The URL of the server that recorded the event: its `grantEndpoint` or `baseUrl`, without a slash at the end. */
  readonly server: string
}

/** What a handler resolves to if it can deal with an event only later. */
export interface PostponedDelivery {
  /**
   * When the event is delivered again, in milliseconds since 1970, at most 30 days ahead, and not before `backoffMs`
   * has passed. The delivery counts neither as an attempt nor as a failure. The later events of the record wait.
   */
  readonly retryAt: Instant
}

/**
 * Handles an event. The event is done when the handler resolves, unless to a `PostponedDelivery`. If it rejects, does
 * not finish within the lease, or resolves to an invalid `retryAt`, the event is delivered again later.
 */
export type EventHandler = (
  event: DeliveredEvent,
  delivery: {
    /** 1 for the first delivery; higher if earlier deliveries failed or did not finish in time. */
    readonly attempt: number
    /**
     * Aborted when the lease ends. The consumer then no longer waits for the handler. Reading `aborted` checks the
     * time, so that a handler which goes on after a pause of its process sees it: read it directly before an effect.
     */
    readonly signal: AbortSignal
  },
) => // biome-ignore lint/suspicious/noConfusingVoidType: a handler may return nothing
Promise<PostponedDelivery | void> | PostponedDelivery | void

/** How far ahead a handler may postpone an event, in milliseconds: 30 days. */
export const postponedMaxMs = 30 * 86_400_000

export function deliveredEvent(
  { serverUrl }: Pick<ServiceContext, 'serverUrl'>,
  namespace: string,
  record: EventRecord,
): DeliveredEvent {
  const { event } = record
  const [id, subject] = [deliveredId(namespace, record), subjectOf(event)]
  return { ...event, id, subject, server: serverUrl }
}
