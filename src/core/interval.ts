import { UTCDateMini } from '@date-fns/utc/date/mini'
import { addMonths } from 'date-fns/addMonths'
import { ok, type Problem, type Result } from './decision.js'
import { type Instant, lastInstant, parseInstant } from './instant.js'

/** A calendar duration, component by component: a month is not a number of milliseconds. */
export interface CalendarDuration {
  readonly years: number
  readonly months: number
  readonly weeks: number
  readonly days: number
  readonly hours: number
  readonly minutes: number
  readonly seconds: number
}

/**
 * An ISO 8601 repeating interval, `R[n]/…/…`. Without `count` it repeats without end.
 *
 * @see Open Payments OpenAPI, schema `interval`
 */
export type RepeatingInterval = { readonly count?: number } & IntervalSpan

/** The span that repeats, in the form in which it was written. */
export type IntervalSpan =
  | {
      readonly form: 'start/duration'
      readonly start: Instant
      readonly duration: CalendarDuration
    }
  | { readonly form: 'duration/end'; readonly duration: CalendarDuration; readonly end: Instant }
  | { readonly form: 'start/end'; readonly start: Instant; readonly end: Instant }

/**
 * The meaning of the count in `R3/…`: 3 windows in total (`occurrences`), or 3 repetitions after the first
 * window, so 4 windows (`repetitions`).
 */
export type IntervalCounting = 'occurrences' | 'repetitions'

/** One window of a repeating interval. `end` is exclusive: it is the start of the next window. */
export interface SpendingWindow {
  /** The first instant of the window. */
  readonly start: Instant
  /** The first instant after it. */
  readonly end: Instant
}

/** The interval, or the problem with its text. */
export type ParsedInterval = Result<RepeatingInterval, Problem>

const lengthMax = 128
const dayMs = 86_400_000
/** A thousand years: longer than any real limit, and within the range of date arithmetic. */
const durationMaxMs = 1_000 * 366 * dayMs
/** 400 years of the calendar have 4,800 months and 146,097 days. */
const meanMonthMs = (146_097 * dayMs) / 4_800
const duration =
  /^P(?:(\d{1,9})W|(?=\d|T\d)(?:(\d{1,9})Y)?(?:(\d{1,9})M)?(?:(\d{1,9})D)?(?:T(?=\d)(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9})S)?)?)$/

/**
 * Parses a repeating interval with a strict grammar: the three forms in the examples of the OpenAPI, and 1 to
 * 999,999 repetitions (absent or -1: unbounded). Components must be integers, date-times must have an offset,
 * and nothing may be negative, empty or zero. Ambiguous text is rejected, because a lenient reading could raise
 * a spending limit.
 *
 * @example
 * ```ts
 * import { parseInterval } from 'open-payments-server/core'
 *
 * const interval = parseInterval('R/2026-01-31T00:00:00Z/P1M') // each month, without an end
 * if (!interval.ok) console.log(interval.problem)
 * ```
 */
export function parseInterval(text: string): ParsedInterval {
  if (text.length > lengthMax)
    return { ok: false, problem: `must have at most ${lengthMax} characters` }
  const [repetition = '', first = '', second = '', ...rest] = text.split('/')
  if (second === '' || rest.length > 0) return { ok: false, problem: 'must have the form R[n]/a/b' }
  if (!/^R(?:-1|[1-9]\d{0,5})?$/.test(repetition)) {
    return { ok: false, problem: 'must repeat 1 to 999999 times, or without end (R or R-1)' }
  }
  const span = parseSpan(first, second)
  if (!span.ok) return span
  const count = /^R\d/.test(repetition) ? { count: Number(repetition.slice(1)) } : {}
  return ok({ ...count, ...span.value })
}

function parseSpan(first: string, second: string): Result<IntervalSpan, Problem> {
  const start = parseInstant(first)
  const end = parseInstant(second)
  if (start !== undefined && end !== undefined) {
    return start < end
      ? ok({ form: 'start/end', start, end })
      : { ok: false, problem: 'must end after it starts' }
  }
  const length = parseDuration(start === undefined ? first : second)
  if (!length.ok) return length
  if (start !== undefined) return ok({ form: 'start/duration', start, duration: length.value })
  if (end !== undefined) return ok({ form: 'duration/end', duration: length.value, end })
  return {
    ok: false,
    problem: 'must have a start or an end that is an RFC 3339 date-time with an offset',
  }
}

function parseDuration(text: string): Result<CalendarDuration, Problem> {
  const parts = duration.exec(text)
  if (parts === null) {
    return {
      ok: false,
      problem: 'must have two date-times, or a date-time and a duration such as P1M',
    }
  }
  const [weeks = 0, years = 0, months = 0, days = 0, hours = 0, minutes = 0, seconds = 0] = parts
    .slice(1)
    .map((part) => Number(part ?? 0))
  const read = { years, months, weeks, days, hours, minutes, seconds }
  const mostMs = (years * 366 + months * 31) * dayMs + exactMsOf(read)
  if (mostMs === 0) return { ok: false, problem: 'must be longer than zero' }
  if (mostMs > durationMaxMs)
    return { ok: false, problem: 'must not be longer than a thousand years' }
  return ok(read)
}

/** The length of a duration without its years and months. */
function exactMsOf({ weeks, days, hours, minutes, seconds }: CalendarDuration): number {
  return (weeks * 7 + days) * dayMs + ((hours * 60 + minutes) * 60 + seconds) * 1000
}

/**
 * Finds the window that contains an instant. The start of the window may be before 1970.
 *
 * Windows are calculated in UTC from the anchor of the interval, not from the window before: monthly windows
 * from 31 January start on 28 February, 31 March and 30 April. The cost does not depend on the instant.
 *
 * @param interval the value that `parseInterval` returns.
 * @returns `undefined` before the first window, from the end of the last window on, and for a number that is
 *   not an instant in the years 1970 to 9999.
 *
 * @example
 * ```ts
 * import { parseInterval, windowAt } from 'open-payments-server/core'
 *
 * const interval = parseInterval('R/2026-01-01T00:00:00Z/P1M')
 * if (interval.ok) windowAt(interval.value, Date.now()) // { start, end } of this month, in UTC
 * ```
 */
export function windowAt(
  interval: RepeatingInterval,
  at: Instant,
  counting: IntervalCounting = 'occurrences',
): SpendingWindow | undefined {
  if (!(at >= 0 && at <= lastInstant)) return undefined
  const series = seriesOf(interval, counting)
  const { k, start, end } = windowOf(series, at)
  return k >= series.first && k < series.beyond ? { start, end } : undefined
}

/**
 * Returns the end of the last window. An interval with an end as its anchor repeats backwards from that end,
 * so it has a last window even if it repeats without end.
 *
 * @param interval the value that `parseInterval` returns.
 * @returns `undefined` if there is no last window, or it ends after the year 9999.
 *
 * @example
 * ```ts
 * import { endOfWindows, parseInterval } from 'open-payments-server/core'
 *
 * const interval = parseInterval('R12/2026-01-01T00:00:00Z/P1M')
 * if (interval.ok) endOfWindows(interval.value) // 2027-01-01, in milliseconds since 1970
 * ```
 */
export function endOfWindows(
  interval: RepeatingInterval,
  counting: IntervalCounting = 'occurrences',
): Instant | undefined {
  const series = seriesOf(interval, counting)
  // `Date` cannot represent boundaries much further out, and the estimate is off by a few days at most.
  if (series.anchor + series.beyond * series.meanMs > 2 * lastInstant) return undefined
  const end = boundary(series, series.beyond)
  return end > lastInstant ? undefined : end
}

/**
 * Whether every window of `narrow` is a window of `wide`, with the same start and end. It is not enough that the
 * windows of `narrow` begin inside windows of `wide`: one window of `wide` could then contain the amounts of two.
 *
 * @param wide, narrow values that `parseInterval` returns.
 */
export function coversWindows(
  wide: RepeatingInterval,
  narrow: RepeatingInterval,
  counting: IntervalCounting = 'occurrences',
): boolean {
  const [outer, inner] = [seriesOf(wide, counting), seriesOf(narrow, counting)]
  if (outer.months !== inner.months || outer.exactMs !== inner.exactMs) return false
  const { k: shift, start } = windowOf(outer, inner.anchor)
  return (
    start === inner.anchor &&
    (shift === 0 || canMove(outer, inner)) &&
    shift + inner.first >= outer.first &&
    shift + inner.beyond <= outer.beyond
  )
}

/**
 * Whether a series has the same boundaries when it is counted from another of its boundaries. With months, that
 * boundary must be on the anchor's day of the month: counted from 28 February, the next boundary is 28 March, not 31
 * March.
 */
function canMove(
  { anchor, months, exactMs }: WindowSeries,
  to: Pick<WindowSeries, 'anchor'>,
): boolean {
  if (months === 0) return true
  return exactMs === 0 && new Date(anchor).getUTCDate() === new Date(to.anchor).getUTCDate()
}

/**
 * Returns the length of the shortest window that an interval of this form can have, in milliseconds. It is the length
 * of every window if the duration has no months and years: of these, the shortest have 28 and 365 days.
 */
export function shortestWindowMs(interval: RepeatingInterval): number {
  const { months, exactMs } = seriesOf(interval, 'occurrences')
  return (Math.floor(months / 12) * 365 + (months % 12) * 28) * dayMs + exactMs
}

/**
 * Returns when the next window after an instant starts: the first one, if it is before the first. Returns `undefined`
 * from the start of the last window on.
 */
export function nextWindowStart(
  interval: RepeatingInterval,
  at: Instant,
  counting: IntervalCounting = 'occurrences',
): Instant | undefined {
  if (!(at >= 0 && at <= lastInstant)) return undefined
  const series = seriesOf(interval, counting)
  const next = Math.max(windowOf(series, at).k + 1, series.first)
  if (next >= series.beyond) return undefined
  const start = boundary(series, next)
  return start > lastInstant ? undefined : start
}

export function hasOneWindow(interval: RepeatingInterval, counting: IntervalCounting): boolean {
  const { first, beyond } = seriesOf(interval, counting)
  return beyond - first === 1
}

/** Window k starts at `anchor + k × duration` and ends at the next boundary, for `first` ≤ k < `beyond`. */
interface WindowSeries {
  readonly anchor: Instant
  readonly months: number
  readonly exactMs: number
  readonly meanMs: number
  readonly first: number
  readonly beyond: number
}

function seriesOf(interval: RepeatingInterval, counting: IntervalCounting): WindowSeries {
  const { count = Number.POSITIVE_INFINITY } = interval
  const windows = counting === 'repetitions' ? count + 1 : count
  const ahead = { first: 0, beyond: windows }
  switch (interval.form) {
    case 'start/duration':
      return { anchor: interval.start, ...lengthOf(interval.duration), ...ahead }
    case 'duration/end':
      return { anchor: interval.end, ...lengthOf(interval.duration), first: -windows, beyond: 0 }
    case 'start/end': {
      const exactMs = interval.end - interval.start
      return { anchor: interval.start, months: 0, exactMs, meanMs: exactMs, ...ahead }
    }
  }
}

function lengthOf(duration: CalendarDuration) {
  const months = duration.years * 12 + duration.months
  const exactMs = exactMsOf(duration)
  return { months, exactMs, meanMs: months * meanMonthMs + exactMs }
}

/**
 * Finds the window that contains an instant, as if the series had neither a first nor a last one. With months the
 * estimate may be off by one: boundaries differ from their mean position by a few days, and are at least a month apart.
 */
function windowOf(series: WindowSeries, at: Instant): SpendingWindow & { readonly k: number } {
  const k = Math.floor((at - series.anchor) / series.meanMs)
  const start = boundary(series, k)
  if (start > at) return { k: k - 1, start: boundary(series, k - 1), end: start }
  const end = boundary(series, k + 1)
  return end > at ? { k, start, end } : { k: k + 1, start: end, end: boundary(series, k + 2) }
}

/** Adds months first and constrains the day to the length of the month; the remaining length is fixed. */
function boundary({ anchor, months, exactMs }: WindowSeries, k: number): Instant {
  const moved = months === 0 ? anchor : addMonths(anchor, k * months, inUtc).getTime()
  return moved + k * exactMs
}

/** Makes date-fns calculate in UTC, and not in the time zone of the machine. */
const inUtc = { in: (value: Date | number | string) => new UTCDateMini(value) }
