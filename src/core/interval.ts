import { addMonths, create } from 'temporal-polyfill/fns/PlainDate'
import type { Instant } from './decision.js'
import { lastInstant, parseInstant } from './instant.js'
import { ok, type Problem, type Result } from './result.js'

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
 * An ISO 8601 repeating interval, `R[n]/…/…`. Without `count` it repeats for ever.
 *
 * @see Open Payments OpenAPI, schema `interval`
 */
export type RepeatingInterval = { readonly count?: number } & IntervalSpan

/** What repeats, in the form in which it was written. */
export type IntervalSpan =
  | {
      readonly form: 'start/duration'
      readonly start: Instant
      readonly duration: CalendarDuration
    }
  | { readonly form: 'duration/end'; readonly duration: CalendarDuration; readonly end: Instant }
  | { readonly form: 'start/end'; readonly start: Instant; readonly end: Instant }

/**
 * What the count of `R3/…` means: 3 windows in all (`occurrences`), or 3 repetitions of the first, which are
 * 4 windows (`repetitions`).
 */
export type IntervalCounting = 'occurrences' | 'repetitions'

/** One turn of a repeating interval. Its end, which is the start of the next one, lies outside it. */
export interface SpendingWindow {
  readonly start: Instant
  readonly end: Instant
}

/** What `parseInterval` answers: the interval, or what is wrong with the text. */
export type ParsedInterval = Result<RepeatingInterval, Problem>

const lengthMax = 128
const dayMs = 86_400_000
/** A thousand years: more than anyone can mean, and far within what can be reckoned with. */
const durationMaxMs = 1_000 * 366 * dayMs
/** 400 years of the calendar have 4,800 months and 146,097 days. */
const meanMonthMs = (146_097 * dayMs) / 4_800
const duration =
  /^P(?:(\d{1,9})W|(?=\d|T\d)(?:(\d{1,9})Y)?(?:(\d{1,9})M)?(?:(\d{1,9})D)?(?:T(?=\d)(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9})S)?)?)$/

/**
 * Reads a repeating interval by a strict grammar: the three forms of the OpenAPI's examples, 1 to
 * 999,999 repetitions (absent or -1: unbounded), whole components, offsets required, nothing negative,
 * empty or zero. A limit on spending is what a thief would stretch, so nothing is guessed.
 */
export function parseInterval(text: string): ParsedInterval {
  if (text.length > lengthMax)
    return { ok: false, problem: `is longer than ${lengthMax} characters` }
  const [repetition = '', first = '', second = '', ...rest] = text.split('/')
  if (second === '' || rest.length > 0) return { ok: false, problem: 'is not of the form R[n]/a/b' }
  if (!/^R(?:-1|[1-9]\d{0,5})?$/.test(repetition)) {
    return { ok: false, problem: 'repeats neither 1 to 999999 times nor without end (R, R-1)' }
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
      : { ok: false, problem: 'ends before it has started' }
  }
  const length = parseDuration(start === undefined ? first : second)
  if (!length.ok) return length
  if (start !== undefined) return ok({ form: 'start/duration', start, duration: length.value })
  if (end !== undefined) return ok({ form: 'duration/end', duration: length.value, end })
  return {
    ok: false,
    problem: 'has neither a start nor an end that is an RFC 3339 date-time with an offset',
  }
}

function parseDuration(text: string): Result<CalendarDuration, Problem> {
  const parts = duration.exec(text)
  if (parts === null) {
    return {
      ok: false,
      problem: 'has neither two date-times nor a date-time and a duration such as P1M',
    }
  }
  const [weeks = 0, years = 0, months = 0, days = 0, hours = 0, minutes = 0, seconds = 0] = parts
    .slice(1)
    .map((part) => Number(part ?? 0))
  const read = { years, months, weeks, days, hours, minutes, seconds }
  const mostMs = (years * 366 + months * 31) * dayMs + exactMsOf(read)
  if (mostMs === 0) return { ok: false, problem: 'lasts no time at all' }
  if (mostMs > durationMaxMs) return { ok: false, problem: 'lasts longer than a thousand years' }
  return ok(read)
}

/** All of a duration but its years and months. */
function exactMsOf({ weeks, days, hours, minutes, seconds }: CalendarDuration): number {
  return (weeks * 7 + days) * dayMs + ((hours * 60 + minutes) * 60 + seconds) * 1000
}

/**
 * The window that an instant lies in, or `undefined` before the first window, from the end of the last one
 * on, and at what is no instant of the years 1970 to 9999. The window's own start may lie before 1970.
 *
 * Windows are reckoned in UTC from what the interval is anchored at, not from each other: from 31 January
 * on by P1M they start on 28 February, 31 March, 30 April. The work is the same wherever the instant lies.
 *
 * @param interval as `parseInterval` answers it.
 */
export function windowAt(
  interval: RepeatingInterval,
  at: Instant,
  counting: IntervalCounting = 'occurrences',
): SpendingWindow | undefined {
  if (!(at >= 0 && at <= lastInstant)) return undefined
  const turns = turnsOf(interval, counting)
  const k = turnAt(turns, at)
  return k >= turns.first && k < turns.beyond
    ? { start: boundary(turns, k), end: boundary(turns, k + 1) }
    : undefined
}

/**
 * When the last window is over; `undefined` if there is none, or none before the year 10000. What is
 * anchored at an end repeats backwards from it, so that there it is over even if it repeats without end.
 *
 * @param interval as `parseInterval` answers it.
 */
export function endOfWindows(
  interval: RepeatingInterval,
  counting: IntervalCounting = 'occurrences',
): Instant | undefined {
  const turns = turnsOf(interval, counting)
  // Further out there are no dates to reckon with, and the mean is never wrong by more than days.
  if (turns.anchor + turns.beyond * turns.meanMs > 2 * lastInstant) return undefined
  const end = boundary(turns, turns.beyond)
  return end > lastInstant ? undefined : end
}

/** Window k lasts from `anchor + k × duration` to the next such boundary, for k from `first` to below `beyond`. */
interface Turns {
  readonly anchor: Instant
  readonly months: number
  readonly exactMs: number
  readonly meanMs: number
  readonly first: number
  readonly beyond: number
}

function turnsOf(interval: RepeatingInterval, counting: IntervalCounting): Turns {
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
 * The k of the last boundary that is not after an instant. Where there are months the estimate may be off,
 * by one at most: boundaries lie a few days from their mean, and a month apart.
 */
function turnAt(turns: Turns, at: Instant): number {
  const k = Math.floor((at - turns.anchor) / turns.meanMs)
  if (boundary(turns, k) > at) return k - 1
  return boundary(turns, k + 1) > at ? k : k + 1
}

/** Months come first, and stop at the end of a month that is too short; the rest has one length always. */
function boundary({ anchor, months, exactMs }: Turns, k: number): Instant {
  return monthsFrom(anchor, k * months) + k * exactMs
}

function monthsFrom(anchor: Instant, months: number): Instant {
  if (months === 0) return anchor
  const from = new Date(anchor)
  const date = create(from.getUTCFullYear(), from.getUTCMonth() + 1, from.getUTCDate())
  const { year, month, day } = addMonths(date, months)
  return Date.UTC(year, month - 1, day) + (anchor % dayMs)
}
