import * as v from 'valibot'
import type { Instant } from '../../core/instant.js'
import {
  abortSignal,
  callback,
  type Members,
  optionsOf,
  positiveInteger,
} from '../../util/input.js'
import { clockDifferenceMaxMs } from '../time.js'
import type { DeliveredEvent } from './handler.js'

/** A failed delivery. */
export interface FailedDelivery {
  readonly event: DeliveredEvent
  /** 1 for the first delivery. */
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

/** The longest that an event waits after a failure, in milliseconds. */
export const backoffMaxMs = 3_600_000

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
