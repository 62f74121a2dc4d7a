import type { Instant } from 'open-payments-server'
import type { IntervalCounting, Result, SpendingWindow } from 'open-payments-server/core'

/** No window contains the instant: it lies before the first or after the last. */
export interface Closed {
  readonly ok: false
  readonly closed: 'not yet' | 'over'
}

const dayMs = 86_400_000
const unitMs: Readonly<Record<string, number>> = {
  W: 7 * dayMs,
  D: dayMs,
  H: 3_600_000,
  M: 60_000,
  S: 1_000,
}

/** How an interval repeats: forwards or backwards from an anchor, by months and milliseconds. */
interface Schedule {
  readonly anchor: Instant
  readonly backwards: boolean
  readonly months: number
  readonly ms: number
  /** The number of windows. */
  readonly count: number
}

/**
 * Returns the window of a repeating interval that contains an instant. It shares no code with the library and
 * works differently: it walks from the anchor month by month, so that a mistake in one is not repeated in the
 * other.
 *
 * @param interval a repeating interval that the library accepts.
 */
export function windowAt(
  interval: string,
  at: Instant,
  counting: IntervalCounting,
): Result<SpendingWindow, Closed> {
  const schedule = readInterval(interval, counting)
  const { anchor, backwards, months, ms, count } = schedule
  if (backwards ? at >= anchor : at < anchor) return closed(backwards ? 'over' : 'not yet')
  const windows =
    months === 0
      ? windowsOfLength(ms, anchor, at, backwards)
      : walked(monthlyEdges(schedule), at, months, ms, backwards)
  const { index, window } = windows
  if (index < count) return { ok: true, value: window }
  return closed(backwards ? 'not yet' : 'over')
}

function closed(closed: Closed['closed']): Closed {
  return { ok: false, closed }
}

/** Returns whether the last window has ended. */
export function hasEnded(found: Result<unknown, Closed>): boolean {
  return !found.ok && found.closed === 'over'
}

interface Numbered {
  /** The number of windows between this one and the anchor. */
  readonly index: number
  readonly window: SpendingWindow
}

function windowsOfLength(ms: number, anchor: Instant, at: Instant, backwards: boolean): Numbered {
  const windows = Math.floor((at - anchor) / ms)
  const start = anchor + windows * ms
  return { index: backwards ? -windows - 1 : windows, window: { start, end: start + ms } }
}

/** Walks from the anchor until the next boundary lies beyond the instant. */
function walked(
  nextEdge: () => Instant,
  at: Instant,
  months: number,
  ms: number,
  backwards: boolean,
): Numbered {
  const sign = backwards ? -1 : 1
  let near = nextEdge()
  for (let index = 0; ; index++) {
    let next = near
    for (let passed = 0; passed < months; passed++) next = nextEdge()
    const far = next + sign * (index + 1) * ms
    const edge = near + sign * index * ms
    if (backwards ? far <= at : far > at) {
      return { index, window: backwards ? { start: far, end: edge } : { start: edge, end: far } }
    }
    near = next
  }
}

/** Returns the anchor's day and time in each successive month, limited to the last day of the month. */
function monthlyEdges({ anchor, backwards }: Schedule): () => Instant {
  const date = new Date(anchor)
  const [dayOfMonth, timeMs] = [date.getUTCDate(), ((anchor % dayMs) + dayMs) % dayMs]
  let [year, month] = [date.getUTCFullYear(), date.getUTCMonth() + 1]
  let first = Math.floor(anchor / dayMs) - (dayOfMonth - 1)

  function advance(): void {
    if (!backwards) first += daysIn(year, month)
    month += backwards ? -1 : 1
    if (month === 0 || month === 13) {
      year += backwards ? -1 : 1
      month = backwards ? 12 : 1
    }
    if (backwards) first -= daysIn(year, month)
  }

  return () => {
    const next = (first + Math.min(dayOfMonth, daysIn(year, month)) - 1) * dayMs + timeMs
    advance()
    return next
  }
}

function daysIn(year: number, month: number): number {
  if (month === 2) return isLeap(year) ? 29 : 28
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31
}

function isLeap(year: number): boolean {
  if (year % 400 === 0) return true
  return year % 4 === 0 && year % 100 !== 0
}

function readInterval(interval: string, counting: IntervalCounting): Schedule {
  const [repeats = '', first = '', second = ''] = interval.toUpperCase().split('/')
  const number = Number(repeats.slice(1) || '-1')
  const windows = counting === 'repetitions' ? number + 1 : number
  const count = number < 0 ? Number.POSITIVE_INFINITY : windows
  const backwards = first.startsWith('P')
  const anchor = Date.parse(backwards ? second : first)
  if (backwards || second.startsWith('P')) {
    return { anchor, backwards, count, ...readLength(backwards ? first : second) }
  }
  return { anchor, backwards, count, months: 0, ms: Date.parse(second) - anchor }
}

function readLength(duration: string): { months: number; ms: number } {
  const [date = '', time = ''] = duration.slice(1).split('T')
  let [months, ms] = [0, 0]
  for (const [, count, unit = ''] of date.matchAll(/(\d+)([YMWD])/g)) {
    if (unit === 'Y') months += 12 * Number(count)
    else if (unit === 'M') months += Number(count)
    else ms += Number(count) * (unitMs[unit] ?? 0)
  }
  for (const [, count, unit = ''] of time.matchAll(/(\d+)([HMS])/g)) {
    ms += Number(count) * (unitMs[unit] ?? 0)
  }
  return { months, ms }
}
