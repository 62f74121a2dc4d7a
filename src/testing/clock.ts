import type { Clock, Instant } from 'open-payments-server'

/** A clock that stands until it is moved. */
export interface ManualClock extends Clock {
  /** Moves the clock by so many milliseconds. */
  advance(ms: number): void
  /** Moves the clock to an instant, which may lie in its past. */
  set(instant: Instant): void
}

/** 2026-11-21T12:00:00Z, a Saturday: where a manual clock stands unless it is told otherwise. */
export const startOfTests: Instant = Date.UTC(2026, 10, 21, 12)

/** Gives a server a time that the test holds in its hands. */
export function manualClock(start: Instant = startOfTests): ManualClock {
  let now = start
  return {
    now: () => now,
    advance(ms) {
      now += ms
    },
    set(instant) {
      now = instant
    },
  }
}
