import * as v from 'valibot'
import type { HostResult } from '../../core/decision.js'
import type { GrantEvent } from '../../core/grant/record.js'
import type { IncomingPaymentEvent } from '../../core/incoming-payment.js'
import type { Instant } from '../../core/instant.js'
import type { OutgoingPaymentEvent } from '../../core/outgoing-payment/record.js'
import type { QuoteEvent } from '../../core/quote.js'
import {
  abortSignal,
  callback,
  type Members,
  optionsOf,
  positiveInteger,
} from '../../util/input.js'
import type { ServiceContext } from '../context.js'
import { deliveredId, type EventRecord, subjectOf } from '../event-record.js'
import { clockDifferenceMaxMs } from '../time.js'

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

/** A failed delivery. */
export interface FailedDelivery {
  readonly event: DeliveredEvent
  readonly attempt: number
  readonly error: unknown
  /** When the event is delivered again; absent if it was set aside. */
  readonly retryAt?: Instant
}

/** How events are delivered. Numbers must be positive integers; durations are in milliseconds. */
export interface DrainOptions {
  /** The maximum number of events that one call delivers. Default 100. */
  readonly limit?: number
  /** The number of records whose events are delivered concurrently. Default 8. */
  readonly concurrency?: number
  /** How long to wait before the call looks for new events again, while handlers run. Default 1,000. */
  readonly pollMs?: number
  /** How long a handler may take before its delivery fails. Default 60,000. */
  readonly leaseMs?: number
  /**
   * By how much the clocks of two consumers may differ. If a consumer dies during a delivery that has taken longer than
   * a second or two, another one delivers the event again when `leaseMs` and this time have passed. Default 120,000,
   * the bound for all servers; a host with one clock can set 0.
   */
  readonly skewMaxMs?: number
  /** The wait after the first failure; each further failure doubles it. Default 1,000. */
  readonly backoffMs?: number
  /** The maximum wait between two deliveries. Default 3,600,000. */
  readonly backoffMaxMs?: number
  /** The number of failed deliveries after which an event is set aside. Default 16, about 4 hours. */
  readonly attemptsMax?: number
  /** Receives each failed delivery. Its own errors are ignored; `consumeEvents` passes them to `onError`. */
  readonly onFailure?: (failure: FailedDelivery) => void
  /** Once aborted, no further delivery starts. */
  readonly signal?: AbortSignal
}

/** An event whose deliveries all failed: a dead letter. */
export interface SetAsideEvent {
  readonly event: DeliveredEvent
  readonly attempts: number
  readonly setAsideAt: Instant
}

/** The undelivered events of a server. */
export interface ServerEvents {
  /**
   * Delivers due events at least once, and the events of each record in order, until none is due, including events that
   * become due in the meantime. Any number of processes may call it concurrently. A failing event delays only the later
   * events of its own record. A call waits up to 15 s to find out whether a consumer that has claimed events is still
   * alive.
   *
   * @returns how many events this call delivered, and how many deliveries failed.
   * @throws the store's error, once the handlers have ended; the events that were in delivery may be delivered again.
   * @throws {InvalidInputError} for an invalid option or handler.
   */
  drain(
    handler: EventHandler,
    options?: DrainOptions,
  ): Promise<{ readonly delivered: number; readonly failed: number }>
  /**
   * Resolves to the oldest events that were set aside, at most `limit` (default 100). Later events of the same
   * record proceed.
   *
   * @throws {InvalidInputError} for an invalid limit.
   */
  listSetAside(limit?: number): Promise<readonly SetAsideEvent[]>
  /**
   * Returns all events that were set aside, oldest first, for a `for await` loop. The library reads them in
   * pages of 100 as the loop proceeds. The loop may call `retry` and `discard`.
   */
  iterateSetAside(): AsyncIterable<SetAsideEvent>
  /**
   * Measures the undelivered events: how many wait, including those in delivery and those that failed and are due
   * within an hour; the age of the oldest of them in milliseconds, 0 if none waits; and how many were set aside. It
   * counts to at most `limit` (default 1,000, maximum 10,000), and reads what it counts.
   *
   * @throws {InvalidInputError} for an invalid limit.
   */
  backlog(
    limit?: number,
  ): Promise<{ readonly waiting: number; readonly oldestAgeMs: number; readonly setAside: number }>
  /** Schedules an event that was set aside for delivery. */
  retry(eventId: string): Promise<HostResult<object, 'event_unknown'>>
  /** Removes an event that was set aside. */
  discard(eventId: string): Promise<HostResult<object, 'event_unknown'>>
}

/** The longest that an event waits after a failure, in milliseconds. */
export const backoffMaxMs = 3_600_000

/** How far ahead a handler may postpone an event, in milliseconds: 30 days. */
export const postponedMaxMs = 30 * 86_400_000

/** The default number of events of a call of `drain` or `listSetAside`. */
export const eventLimit = 100

export const drainOptions = {
  limit: v.optional(positiveInteger, eventLimit),
  concurrency: v.optional(positiveInteger, 8),
  pollMs: v.optional(positiveInteger, 1_000),
  leaseMs: v.optional(positiveInteger, 60_000),
  skewMaxMs: v.optional(
    v.union([v.literal(0), positiveInteger], 'must be a positive integer'),
    clockDifferenceMaxMs,
  ),
  backoffMs: v.optional(positiveInteger, 1_000),
  backoffMaxMs: v.optional(positiveInteger, backoffMaxMs),
  attemptsMax: v.optional(positiveInteger, 16),
  onFailure: v.optional(callback<NonNullable<DrainOptions['onFailure']>>()),
  signal: v.optional(abortSignal),
} satisfies Members<DrainOptions>

export const drainSettings = optionsOf(drainOptions)

export type DrainSettings = v.InferOutput<typeof drainSettings>

export function deliveredEvent(
  { serverUrl }: Pick<ServiceContext, 'serverUrl'>,
  namespace: string,
  record: EventRecord,
): DeliveredEvent {
  const { event } = record
  const [id, subject] = [deliveredId(namespace, record), subjectOf(event)]
  return { ...event, id, subject, server: serverUrl }
}
