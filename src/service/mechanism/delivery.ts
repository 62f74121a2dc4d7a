import type { Instant } from '../../core/instant.js'
import { requireKnownOptions } from '../../util/known-options.js'
import { invalidOption } from '../../util/option-error.js'
import type { ServiceContext } from './context.js'
import type { DomainEvent } from './event-types.js'
import type { EventRecord } from './events.js'
import { clockDifferenceMaxMs } from './steady-clock.js'

/** An event as passed to a handler. */
export type DeliveredEvent = DomainEvent & {
  /** The same in every delivery of an event, so that a handler can detect repeats. Differs between named consumers. */
  readonly id: string
  /** The URL of the server that recorded the event: its `grantEndpoint` or `baseUrl`, without a slash at the end. */
  readonly server: string
}

export interface EventDelivery {
  /** 1 for the first delivery; higher if earlier deliveries failed or did not finish in time. */
  readonly attempt: number
  /** Aborted when the lease ends. The consumer then no longer waits for the handler. */
  readonly signal: AbortSignal
}

/**
 * Handles an event. The event is done when the handler resolves. If it rejects, or does not finish within the
 * lease, the event is delivered again later.
 */
export type EventHandler = (event: DeliveredEvent, delivery: EventDelivery) => Promise<void> | void

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
  /** How long a handler may take before its delivery fails. Default 60,000. */
  readonly leaseMs?: number
  /**
   * By how much the clocks of two consumers may differ. If a consumer dies during a delivery, another one delivers the
   * event again when `leaseMs` and this time have passed. Default 120,000, the bound for all servers; a host with one
   * clock can set 0.
   */
  readonly skewMaxMs?: number
  /** The wait after the first failure; each further failure doubles it. Default 1,000. */
  readonly backoffMs?: number
  /** The maximum wait between two deliveries. Default 3,600,000. */
  readonly backoffMaxMs?: number
  /** The number of failed deliveries after which an event is set aside. Default 16, about 4 hours. */
  readonly attemptsMax?: number
  /** Receives each failed delivery. */
  readonly onFailure?: (failure: FailedDelivery) => void
  /** Once aborted, no further delivery starts. */
  readonly signal?: AbortSignal
}

/** How many events one call of `drain` delivered, and how many deliveries failed. */
export interface DrainResult {
  readonly delivered: number
  readonly failed: number
}

/** An event whose deliveries all failed: a dead letter. */
export interface SetAsideEvent {
  readonly event: DeliveredEvent
  readonly attempts: number
  readonly setAsideAt: Instant
}

/** The undelivered events of a server. */
export interface EventOutbox {
  /**
   * Delivers due events at least once, and the events of each record in order. Any number of processes may
   * call it concurrently. A failing event delays only the later events of its own record.
   *
   * @throws the store's error; events in delivery are then delivered again when their lease ends.
   * @throws {OptionError} for an invalid option.
   * @throws {ArgumentError} for an invalid handler.
   */
  drain(handler: EventHandler, options?: DrainOptions): Promise<DrainResult>
  /**
   * Resolves to the oldest events that were set aside, at most `limit` (default 100). Later events of the same
   * record proceed.
   *
   * @throws {ArgumentError} for an invalid limit.
   */
  listSetAside(limit?: number): Promise<readonly SetAsideEvent[]>
  /**
   * Returns all events that were set aside, oldest first, for a `for await` loop. The library reads them in
   * pages of 100 as the loop proceeds. The loop may call `retry` and `discard`.
   */
  iterateSetAside(): AsyncIterable<SetAsideEvent>
  /** Schedules an event that was set aside for delivery. Resolves to false if there is no such event. */
  retry(eventId: string): Promise<boolean>
  /** Removes an event that was set aside. Resolves to false if there is no such event. */
  discard(eventId: string): Promise<boolean>
}

/** The undelivered events of a server, and those of its named consumers. */
export interface ServerEvents extends EventOutbox {
  /**
   * Returns the undelivered events of a consumer that the option `eventConsumers` names. Each consumer gets every event
   * that was recorded while it was listed.
   *
   * @param options.removed true for a consumer that is no longer listed, to deliver or remove what is left.
   * @throws {ArgumentError} for a name that is not listed.
   */
  consumer(name: string, options?: { readonly removed?: boolean }): EventOutbox
}

export const drainDefaults = {
  limit: 100,
  concurrency: 8,
  leaseMs: 60_000,
  skewMaxMs: clockDifferenceMaxMs,
  backoffMs: 1_000,
  backoffMaxMs: 3_600_000,
  attemptsMax: 16,
}

export const drainOptions: Readonly<Record<keyof DrainOptions, unknown>> = {
  ...drainDefaults,
  onFailure: true,
  signal: true,
}

export type Settings = DrainOptions & typeof drainDefaults

/** Validates the options, and fills in defaults. */
export function drainSettings(options: DrainOptions): Settings {
  requireKnownOptions('', options, drainOptions)
  const settings = { ...drainDefaults }
  for (const name of Object.keys(drainDefaults) as (keyof typeof drainDefaults)[]) {
    settings[name] = options[name] ?? drainDefaults[name]
    if (name !== 'skewMaxMs' || settings[name] !== 0) requirePositive(name, settings[name])
  }
  return { ...options, ...settings }
}

export function requirePositive(option: string, value: number): void {
  if (Number.isSafeInteger(value) && value > 0) return
  throw invalidOption(option, 'must be a positive integer')
}

export function deliveredEvent(
  { serverUrl }: Pick<ServiceContext, 'serverUrl'>,
  { id, event }: EventRecord,
): DeliveredEvent {
  return { ...event, id, server: serverUrl }
}
