import type { Instant } from '../../core/decision.js'
import { invalidOption } from '../../util/option-error.js'
import type { DomainEvent } from './events.js'

/** An event as a handler gets it. */
export type DeliveredEvent = DomainEvent & {
  /** The same at every delivery of this event: what a handler tells repeats by. */
  readonly id: string
}

export interface Delivery {
  /** 1 at first; more when an earlier delivery failed or was not finished in time. */
  readonly attempt: number
  /** Given when the lease ends: what is still being done is no longer waited for. */
  readonly signal: AbortSignal
}

/**
 * Hears of an event. When it resolves the event is done; when it rejects, or has not ended within its lease, it
 * comes again later.
 */
export type EventHandler = (event: DeliveredEvent, delivery: Delivery) => Promise<void> | void

/** A delivery that failed, and what becomes of the event. */
export interface FailedDelivery {
  readonly event: DeliveredEvent
  readonly attempt: number
  readonly error: unknown
  /** When it will be tried again; absent when it was set aside. */
  readonly retryAt?: Instant
}

/** How events are delivered: positive whole numbers, durations in milliseconds. */
export interface DrainOptions {
  /** The most events that one call delivers. Default 100. */
  readonly limit?: number
  /** How many records' events are delivered at a time. Default 8. */
  readonly concurrency?: number
  /** How long a handler may take before its delivery has failed. Default 60,000. */
  readonly leaseMs?: number
  /** Wait after the first failure; it doubles with each further one. Default 1,000. */
  readonly backoffMs?: number
  /** The longest wait between two deliveries. Default 3,600,000. */
  readonly backoffMaxMs?: number
  /** After so many deliveries, failed or never finished, it is set aside. Default 16, about four hours. */
  readonly attemptsMax?: number
  /** Hears of each delivery that failed. */
  readonly onFailure?: (failure: FailedDelivery) => void
  /** Once aborted, no further delivery begins. */
  readonly signal?: AbortSignal
}

/** What one call of `drain` came to, in events. */
export interface DrainResult {
  readonly delivered: number
  readonly failed: number
}

/** An event that was given up after its last delivery failed. */
export interface SetAsideEvent {
  readonly event: DeliveredEvent
  readonly attempts: number
  readonly setAsideAt: Instant
}

/** The events of one server, waiting to be delivered. */
export interface EventOutbox {
  /**
   * Delivers the events that are due, each at least once, those of one record in the order in which they
   * happened. Any number of processes may do so at a time. An event that fails holds up the later ones of
   * its own record, and nothing else.
   *
   * @throws whatever the store throws; events on the way are then delivered again when their lease ends.
   * @throws `TypeError` with code `ERR_INVALID_OPTION` and the name of the `option` that could not work.
   */
  drain(handler: EventHandler, options?: DrainOptions): Promise<DrainResult>
  /** The oldest events that were given up; later ones of the same record have gone on without them. */
  listSetAside(limit?: number): Promise<readonly SetAsideEvent[]>
  /** Has an event that was set aside delivered again. False: there is no such event. */
  retry(eventId: string): Promise<boolean>
  /** Forgets an event that was set aside. False: there is no such event. */
  discard(eventId: string): Promise<boolean>
}

export const drainDefaults = {
  limit: 100,
  concurrency: 8,
  leaseMs: 60_000,
  backoffMs: 1_000,
  backoffMaxMs: 3_600_000,
  attemptsMax: 16,
}

export type Settings = DrainOptions & typeof drainDefaults

/** Fills in what is not given, and refuses numbers by which nothing could be delivered. */
export function drainSettings(options: DrainOptions): Settings {
  const settings = { ...drainDefaults }
  for (const name of Object.keys(drainDefaults) as (keyof typeof drainDefaults)[]) {
    settings[name] = options[name] ?? drainDefaults[name]
    requirePositive(name, settings[name])
  }
  return { ...options, ...settings }
}

export function requirePositive(option: string, value: number): void {
  if (Number.isSafeInteger(value) && value > 0) return
  throw invalidOption(option, 'must be a positive whole number')
}
