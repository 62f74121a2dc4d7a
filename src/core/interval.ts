import type { Instant } from './decision.js'
import { parseInstant } from './instant.js'

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

/** What `parseInterval` answers: the interval, or what is wrong with the text. */
export type ParsedInterval = { readonly interval: RepeatingInterval } | { readonly problem: string }

const lengthMax = 128
const dayMs = 86_400_000
/** A thousand years: more than anyone can mean, and far within what can be reckoned with. */
const durationMaxMs = 1_000 * 366 * dayMs
const duration =
  /^P(?:(\d{1,9})W|(?=\d|T\d)(?:(\d{1,9})Y)?(?:(\d{1,9})M)?(?:(\d{1,9})D)?(?:T(?=\d)(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9})S)?)?)$/

/**
 * Reads a repeating interval by a strict grammar: the three forms of the OpenAPI's examples, 1 to
 * 999,999 repetitions (absent or -1: unbounded), whole components, offsets required, nothing negative,
 * empty or zero. A limit on spending is what a thief would stretch, so nothing is guessed.
 */
export function parseInterval(text: string): ParsedInterval {
  if (text.length > lengthMax) return { problem: `is longer than ${lengthMax} characters` }
  const [repetition = '', first = '', second = '', ...rest] = text.split('/')
  if (second === '' || rest.length > 0) return { problem: 'is not of the form R[n]/a/b' }
  if (!/^R(?:-1|[1-9]\d{0,5})?$/.test(repetition)) {
    return { problem: 'repeats neither 1 to 999999 times nor without end (R, R-1)' }
  }
  const span = parseSpan(first, second)
  if ('problem' in span) return span
  const count = /^R\d/.test(repetition) ? { count: Number(repetition.slice(1)) } : {}
  return { interval: { ...count, ...span } }
}

function parseSpan(first: string, second: string): IntervalSpan | { problem: string } {
  const start = parseInstant(first)
  const end = parseInstant(second)
  if (start !== undefined && end !== undefined) {
    return start < end
      ? { form: 'start/end', start, end }
      : { problem: 'ends before it has started' }
  }
  const length = parseDuration(start === undefined ? first : second)
  if ('problem' in length) return length
  if (start !== undefined) return { form: 'start/duration', start, duration: length }
  if (end !== undefined) return { form: 'duration/end', duration: length, end }
  return { problem: 'has neither a start nor an end that is an RFC 3339 date-time with an offset' }
}

function parseDuration(text: string): CalendarDuration | { problem: string } {
  const parts = duration.exec(text)
  if (parts === null) {
    return { problem: 'has neither two date-times nor a date-time and a duration such as P1M' }
  }
  const [weeks = 0, years = 0, months = 0, days = 0, hours = 0, minutes = 0, seconds = 0] = parts
    .slice(1)
    .map((part) => Number(part ?? 0))
  const timeMs = ((hours * 60 + minutes) * 60 + seconds) * 1000
  const mostMs = (years * 366 + months * 31 + weeks * 7 + days) * dayMs + timeMs
  if (mostMs === 0) return { problem: 'lasts no time at all' }
  if (mostMs > durationMaxMs) return { problem: 'lasts longer than a thousand years' }
  return { years, months, weeks, days, hours, minutes, seconds }
}
