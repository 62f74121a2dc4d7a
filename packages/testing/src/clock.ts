import type { Clock, Instant } from 'open-payments-server'

/** A clock that only moves when a test moves it. */
export interface ManualClock extends Clock {
  /** Advances the clock by a number of milliseconds. */
  advance(ms: number): void
  /** Sets the clock to an instant, which may be earlier than its current one. */
  set(instant: Instant): void
}

/**
 * 2026-11-21T12:00:00Z, a Saturday: the default start of a manual clock.
 *
 * @example
 * ```ts
 * import { manualClock, startOfTests } from 'open-payments-server-testing'
 *
 * const clock = manualClock(startOfTests - 1)
 * ```
 */
export const startOfTests: Instant = Date.UTC(2026, 10, 21, 12)

/**
 * Creates a clock that a test controls.
 *
 * @example
 * ```ts
 * import { manualClock } from 'open-payments-server-testing'
 *
 * const clock = manualClock() // the option `clock` of the servers
 * clock.advance(86_400_000)
 * ```
 */
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
