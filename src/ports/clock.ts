import type { Instant } from '../core/instant.js'

/** The source of the current time. `Date` is an implementation. */
export interface Clock {
  /** Returns the current time in milliseconds since the Unix epoch. The library ignores fractions of a millisecond. */
  now(): Instant
}

/** Returns the clock without fractions of a millisecond: records, their order and RFC 3339 have none. */
export function wholeMilliseconds(clock: Clock): Clock {
  return { now: () => Math.floor(clock.now()) }
}
