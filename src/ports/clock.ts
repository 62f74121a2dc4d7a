import type { Instant } from '../core/instant.js'

/** The source of the current time. `Date` is an implementation. */
export interface Clock {
  /** Returns the current time in milliseconds since the Unix epoch. The library ignores fractions of a millisecond. */
  now(): Instant
}
