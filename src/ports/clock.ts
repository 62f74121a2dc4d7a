import type { Instant } from '../core/decision.js'

/** Tells the time. `Date` is one. */
export interface Clock {
  now(): Instant
}
