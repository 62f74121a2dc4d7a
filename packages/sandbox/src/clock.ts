import { parseInterval, windowAt } from 'open-payments-server/core'
import { invalidOption } from './error.js'

/** How the time of the sandbox changes. One member. */
export type ClockChange =
  /** A duration of ISO 8601, such as `P1D`, `PT10M` or `P1M`. */
  | { readonly advance: string }
  | { readonly advanceMs: number }
  /** An instant of RFC 3339, after the current time of the sandbox. */
  | { readonly now: string }
  /** Back to the real time. */
  | { readonly reset: true }

/** The time of both wallets: the real time, plus what tests have advanced it by. */
export interface SandboxClock {
  /** Milliseconds since 1970. Does not go back by up to a minute: it stands, as the clocks of the wallets do. */
  now(): number
  /** How far the time is ahead of the real time, in milliseconds. */
  offsetMs(): number
  /**
   * Moves the clock.
   *
   * @throws a `SandboxError` for an invalid change.
   */
  move(change: unknown): void
}

/** A step back of at most this makes the clocks of servers stand. */
const standMaxMs = 60_000

/** A hundred years. */
const aheadMaxMs = 100 * 366 * 86_400_000

export function sandboxClock(real: () => number = () => Date.now()): SandboxClock {
  let offset = 0
  let latest = Number.NEGATIVE_INFINITY
  function at(now: number): number {
    const moved = now + offset
    const stands = moved < latest && latest - moved <= standMaxMs
    latest = stands ? latest : moved
    return latest
  }
  return {
    now: () => at(real()),
    offsetMs() {
      const now = real()
      return at(now) - now
    },
    move(change) {
      const now = real()
      const next = instantOf(change, at(now), now) - now
      if (next > aheadMaxMs) throw invalidOption('the clock can be at most 100 years ahead')
      offset = next
    },
  }
}

function instantOf(change: unknown, now: number, real: number): number {
  const [[name, value] = [], ...others] =
    typeof change === 'object' && change !== null ? Object.entries(change) : []
  if (others.length > 0) throw invalidOption('a change of the clock has one member')
  if (name === 'reset' && value === true) return real
  if (name === 'advanceMs' && Number.isSafeInteger(value) && value >= 0) return now + value
  if (name === 'advanceMs') throw invalidOption('advanceMs must be an integer from 0')
  if (name === 'reset') throw invalidOption('reset must be true')
  if (name === 'advance') {
    const end = typeof value === 'string' && value.startsWith('P') ? endOf(now, value) : undefined
    if (end !== undefined) return end
    throw invalidOption('advance must be a duration of ISO 8601, such as P1D or PT10M')
  }
  if (name === 'now') {
    const end = typeof value === 'string' && !value.startsWith('P') ? endOf(now, value) : undefined
    if (end !== undefined) return end
    throw invalidOption(
      'now must be an instant after the current one, such as 2030-01-01T00:00:00Z',
    )
  }
  throw invalidOption(
    'expected {"advance":"P1D"}, {"advanceMs":60000}, {"now":"2030-01-01T00:00:00Z"} or {"reset":true}',
  )
}

/** Returns the end of the interval that starts now, and ends after a duration or at an instant. */
function endOf(now: number, end: string): number | undefined {
  const interval = parseInterval(`R/${new Date(now).toISOString()}/${end}`)
  return interval.ok ? windowAt(interval.value, now)?.end : undefined
}
