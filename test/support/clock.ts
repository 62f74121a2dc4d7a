import type { Clock } from '../../src/index.js'

/** A clock that stands until it is moved. */
export interface ManualClock extends Clock {
  advance(ms: number): void
  set(instant: number): void
}

/** 2026-11-21T12:00:00Z, a Saturday. */
export const startOfTests = Date.UTC(2026, 10, 21, 12)

export function manualClock(start: number = startOfTests): ManualClock {
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
