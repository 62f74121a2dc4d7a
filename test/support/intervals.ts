import fc from 'fast-check'
import type { SpendingWindow } from '../../src/core/interval.js'

const day = 86_400_000
const lastInstant = Date.UTC(9999, 11, 31, 23, 59, 59, 999)

/** Days from 1970-01-01 to the first of each month from the year 900 on, counted month by month. */
const monthTable = ((): readonly number[] => {
  const lengths = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
  const firsts = [0]
  for (let year = 900; year < 12_100; year++) {
    const leap = year % 400 === 0 || (year % 4 === 0 && year % 100 !== 0)
    for (const [index, length] of lengths.entries()) {
      firsts.push((firsts.at(-1) ?? 0) + length + (leap && index === 1 ? 1 : 0))
    }
  }
  const epoch = firsts[(1970 - 900) * 12] ?? 0
  return firsts.map((days) => days - epoch)
})()

/** Moves the anchor by whole months, using the table, and then by milliseconds. */
export function moved(anchor: number, months: number, ms: number): number {
  const days = Math.floor(anchor / day)
  let [low, high] = [0, monthTable.length - 1]
  while (high - low > 1) {
    const middle = (low + high) >> 1
    if ((monthTable[middle] ?? 0) <= days) low = middle
    else high = middle
  }
  const first = monthTable[low + months] ?? Number.NaN
  const next = monthTable[low + months + 1] ?? Number.NaN
  const dayOfMonth = Math.min(days - (monthTable[low] ?? 0), next - first - 1)
  return (first + dayOfMonth) * day + (anchor - days * day) + ms
}

/** An interval described by its parts, independently of the parser of the library. */
export interface Made {
  readonly form: 'start/duration' | 'duration/end' | 'start/end'
  readonly count: number | undefined
  readonly anchor: number
  readonly months: number
  readonly ms: number
  readonly text: string
}

/** The window of an instant outside every window. */
export const never: SpendingWindow = { start: Number.NaN, end: Number.NaN }

/**
 * Iterates over the windows of an interval from its anchor to the window that contains an instant. A count
 * means that many windows plus `extra`.
 */
export function walkTo(
  { form, count, anchor, months, ms }: Made,
  when: number,
  extra: 0 | 1,
): SpendingWindow {
  const backwards = form === 'duration/end'
  const step = backwards ? -1 : 1
  let near = anchor
  const total = (count ?? Number.POSITIVE_INFINITY) + extra
  for (let n = 1; n <= total; n++) {
    const far = moved(anchor, step * n * months, step * n * ms)
    if (backwards ? when >= near : when < near) return never
    if (backwards ? when >= far : when < far) {
      return backwards ? { start: far, end: near } : { start: near, end: far }
    }
    near = far
  }
  return never
}

const upTo = (max: number) => fc.integer({ min: 0, max })

/** Generates ends of months and leap days often. */
const anchors = fc
  .tuple(
    fc.oneof(fc.integer({ min: 1970, max: 2099 }), fc.integer({ min: 2000, max: 9500 })),
    fc.oneof(upTo(11), fc.constant(1)),
    fc.oneof(fc.integer({ min: 1, max: 28 }), fc.integer({ min: 28, max: 31 })),
    fc.oneof(fc.constantFrom(0, day - 1), upTo(day - 1)),
  )
  .map(([year, month, date, ms]) => {
    const index = (year - 900) * 12 + month
    const first = monthTable[index] ?? 0
    const length = (monthTable[index + 1] ?? 0) - first
    return (first + Math.min(date, length) - 1) * day + ms
  })

interface Lasts {
  readonly months: number
  readonly ms: number
  readonly text: string
}

const durations: fc.Arbitrary<Lasts> = fc.oneof(
  fc.constantFrom(
    { months: 1, ms: 0, text: 'P1M' },
    { months: 12, ms: 0, text: 'P1Y' },
    { months: 1, ms: day, text: 'P1M1D' },
    { months: 1, ms: 30 * day, text: 'P1M30D' },
    { months: 0, ms: 1000, text: 'PT1S' },
    { months: 0, ms: day, text: 'P1D' },
  ),
  upTo(60).map((weeks) => ({ months: 0, ms: (weeks + 1) * 7 * day, text: `P${weeks + 1}W` })),
  fc
    .tuple(upTo(4), upTo(14), upTo(40), upTo(50), upTo(100), upTo(5_000))
    .filter((parts) => parts.some((part) => part > 0))
    .map(([years, months, days, hours, minutes, seconds]) => ({
      months: years * 12 + months,
      ms: days * day + ((hours * 60 + minutes) * 60 + seconds) * 1000,
      text: `P${years}Y${months}M${days}DT${hours}H${minutes}M${seconds}S`,
    })),
  fc.integer({ min: 1, max: 11_000 }).map((months) => ({ months, ms: 0, text: `P${months}M` })),
)

/** Intervals of all three forms, with any offset, with and without a count. */
export const made: fc.Arbitrary<Made> = fc
  .record({
    form: fc.constantFrom('start/duration', 'duration/end', 'start/end'),
    count: fc.option(fc.integer({ min: 1, max: 40 }), { nil: undefined }),
    anchor: anchors,
    lasts: durations,
    lengthMs: fc.oneof(fc.integer({ min: 1, max: 1000 }), fc.integer({ min: 1, max: 400 * day })),
    offset: fc.oneof(fc.constant(0), fc.integer({ min: -1439, max: 1439 })),
  })
  .map(({ form, count, anchor, lasts, lengthMs, offset }) => {
    const repetition = `R${count ?? ''}`
    const there = atOffset(anchor, offset)
    if (form === 'start/end') {
      const text = `${repetition}/${there}/${atOffset(anchor + lengthMs, 0)}`
      return { form, count, anchor, months: 0, ms: lengthMs, text }
    }
    const { months, ms } = lasts
    const [first, second] = form === 'start/duration' ? [there, lasts.text] : [lasts.text, there]
    return { form, count, anchor, months, ms, text: `${repetition}/${first}/${second}` }
  })

/** Formats an instant for a clock with this offset in minutes from UTC. */
function atOffset(instant: number, minutes: number): string {
  const local = new Date(instant + minutes * 60_000).toISOString().slice(0, -1)
  const [hours, rest] = [Math.floor(Math.abs(minutes) / 60), Math.abs(minutes) % 60]
  const offset = [hours, rest].map((part) => String(part).padStart(2, '0')).join(':')
  return `${local}${minutes < 0 ? '-' : '+'}${offset}`
}

/** Instants in and around the first windows, and exactly at their edges. */
export const moments = fc.record({
  windows: fc.oneof(fc.integer({ min: -2, max: 6 }), fc.integer({ min: -2, max: 60 })),
  offset: fc.oneof(fc.constantFrom(-1, 0, 1), fc.double({ min: 0, max: 1, noNaN: true })),
})

/** Returns the instant, or -1 where the table has none. */
export function momentOf(
  { form, anchor, months, ms }: Made,
  { windows, offset }: { readonly windows: number; readonly offset: number },
): number {
  const k = form === 'duration/end' ? -windows : windows
  const edge = moved(anchor, k * months, k * ms)
  const within = Number.isInteger(offset) ? offset : Math.floor(offset * (months * 30 * day + ms))
  return Number.isNaN(edge) ? -1 : Math.min(edge + within, lastInstant)
}
