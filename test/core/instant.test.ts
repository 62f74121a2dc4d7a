import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { formatInstant, parseInstant, wholeMilliseconds } from '../../src/core/instant.js'
import { runs } from '../support/runs.js'

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour

/** Days since 1970-01-01, computed from years and months without `Date`. */
function dayNumber(year: number, month: number, dayOfMonth: number): number {
  const leap = (y: number) => (y % 4 === 0 && y % 100 !== 0) || y % 400 === 0
  let days = 0
  for (let y = 1970; y < year; y++) days += leap(y) ? 366 : 365
  const lengths = [31, leap(year) ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
  for (let m = 1; m < month; m++) days += lengths[m - 1] ?? 0
  return days + dayOfMonth - 1
}

/** Formats an instant per RFC 3339 for a clock with this offset. */
function asSeenWith(instant: number, offsetMinutes: number): string {
  const shown = new Date(instant + offsetMinutes * minute).toISOString().slice(0, -1)
  const size = Math.abs(offsetMinutes)
  const two = (n: number) => String(n).padStart(2, '0')
  return `${shown}${offsetMinutes < 0 ? '-' : '+'}${two(Math.floor(size / 60))}:${two(size % 60)}`
}

/** 9999-12-31T23:59:59.999Z. */
const last = dayNumber(9999, 12, 31) * day + day - 1

describe('parsing an RFC 3339 date-time', () => {
  const noon = dayNumber(2026, 11, 21) * day + 12 * hour

  test.each([
    ['in UTC', '2026-11-21T12:00:00Z', noon],
    ['with lower-case t and z', '2026-11-21t12:00:00z', noon],
    ['with an eastern offset', '2026-11-21T13:00:00+01:00', noon],
    ['with a western offset', '2026-11-21T04:30:00-07:30', noon],
    ['with an offset that crosses midnight', '2026-11-22T01:45:00+13:45', noon],
    ['with an offset of zero', '2026-11-21T12:00:00+00:00', noon],
    ['with an unknown local offset', '2026-11-21T12:00:00-00:00', noon],
    ['with the largest offset', '2026-11-22T11:59:00+23:59', noon],
    ['with tenths', '2026-11-21T12:00:00.5Z', noon + 500],
    ['with hundredths', '2026-11-21T12:00:00.05Z', noon + 50],
    ['with milliseconds', '2026-11-21T12:00:00.005Z', noon + 5],
    ['with a zero fraction', '2026-11-21T12:00:00.0Z', noon],
    ['with zeros beyond the milliseconds', '2026-11-21T12:00:00.123000Z', noon + 123],
    ['with nine digits of fraction', '2026-11-21T12:00:00.120000000Z', noon + 120],
    ['with microseconds, truncated', '2026-11-21T12:00:00.425456+00:00', noon + 425],
    ['with seven digits, truncated', '2026-11-21T12:00:00.4674567+00:00', noon + 467],
    ['with nanoseconds, never rounded up', '2026-11-21T12:00:00.999999999Z', noon + 999],
    ['with less than a millisecond', '2026-11-21T12:00:00.0009Z', noon],
    ['with a thousand digits', `2026-11-21T12:00:00.1${'9'.repeat(999)}Z`, noon + 199],
    ['with a fraction and an offset', '2026-11-21T13:00:00.999+01:00', noon + 999],
    ['on 29 February of a leap year', '2024-02-29T00:00:00Z', dayNumber(2024, 2, 29) * day],
    ['on 29 February 2000', '2000-02-29T00:00:00Z', dayNumber(2000, 2, 29) * day],
    ['at the last second of a day', '2026-11-21T23:59:59Z', noon + 12 * hour - 1000],
    ['at the first instant', '1970-01-01T00:00:00Z', 0],
    ['at the first instant, with an eastern offset', '1970-01-01T05:30:00+05:30', 0],
    ['at the first instant, with a western offset', '1969-12-31T19:00:00-05:00', 0],
    ['at the end of four-digit years', '9999-12-31T23:59:59.999Z', last],
    ['after the end by less than a millisecond', '9999-12-31T23:59:59.9999999Z', last],
    ['at the end, with a western offset', '9999-12-31T22:59:59.999-01:00', last],
  ])('reads a date-time %s: %s', (_, text, instant) => {
    expect(parseInstant(text)).toBe(instant)
  })

  test.each([
    ['an empty string', ''],
    ['a date without a time', '2026-11-21'],
    ['a time without a date', '12:00:00Z'],
    ['a missing offset', '2026-11-21T12:00:00'],
    ['missing seconds', '2026-11-21T12:00Z'],
    ['a space instead of T', '2026-11-21 12:00:00Z'],
    ['an underscore instead of T', '2026-11-21_12:00:00Z'],
    ['30 February', '2024-02-30T00:00:00Z'],
    ['29 February of a common year', '2026-02-29T00:00:00Z'],
    ['29 February 2100, which is not a leap year', '2100-02-29T00:00:00Z'],
    ['31 April', '2026-04-31T00:00:00Z'],
    ['31 November', '2026-11-31T00:00:00Z'],
    ['32 January', '2026-01-32T00:00:00Z'],
    ['day 0', '2026-01-00T00:00:00Z'],
    ['month 0', '2026-00-01T00:00:00Z'],
    ['month 13', '2026-13-01T00:00:00Z'],
    ['hour 24', '2026-11-21T24:00:00Z'],
    ['minute 60', '2026-11-21T12:60:00Z'],
    ['a leap second', '2016-12-31T23:59:60Z'],
    ['a leap second with a western offset', '2016-12-31T15:59:60-08:00'],
    ['second 61', '2026-11-21T12:00:61Z'],
    ['an offset of 24 hours', '2026-11-21T12:00:00+24:00'],
    ['an offset of 60 minutes', '2026-11-21T12:00:00+01:60'],
    ['an offset without a colon', '2026-11-21T12:00:00+0100'],
    ['an offset with only hours', '2026-11-21T12:00:00+01'],
    ['an offset with seconds', '2026-11-21T12:00:00+01:00:00'],
    ['an offset with a typographic minus sign', '2026-11-21T12:00:00\u221201:00'],
    ['Z and an offset', '2026-11-21T12:00:00Z+01:00'],
    ['a named time zone', '2026-11-21T12:00:00+01:00[Europe/Paris]'],
    ['a fraction without digits', '2026-11-21T12:00:00.Z'],
    ['a comma as the decimal separator', '2026-11-21T12:00:00,5Z'],
    ['a fraction of a minute', '2026-11-21T12:00.5Z'],
    ['a week date', '2026-W47-6T12:00:00Z'],
    ['an ordinal date', '2026-325T12:00:00Z'],
    ['the basic format', '20261121T120000Z'],
    ['single-digit months and days', '2026-1-1T12:00:00Z'],
    ['a two-digit year', '26-11-21T12:00:00Z'],
    ['a signed year', '+002026-11-21T12:00:00Z'],
    ['a negative year', '-000001-11-21T12:00:00Z'],
    ['the year 0', '0000-01-01T00:00:00Z'],
    ['the year 70', '0070-01-01T00:00:00Z'],
    ['1969', '1969-12-31T23:59:59Z'],
    ['the last millisecond before 1970', '1969-12-31T23:59:59.999Z'],
    ['a time in 1970 that is in 1969 in UTC', '1970-01-01T00:59:59+01:00'],
    ['a time in 9999 that is in 10000 in UTC', '9999-12-31T23:59:59-00:01'],
    ['the year 10000', '10000-01-01T00:00:00Z'],
    ['surrounding spaces', ' 2026-11-21T12:00:00Z '],
    ['a trailing newline', '2026-11-21T12:00:00Z\n'],
    ['the HTTP date format', 'Sat, 21 Nov 2026 12:00:00 GMT'],
    ['milliseconds since 1970', '1795262400000'],
    ['non-ASCII digits', '202\u0666-11-21T12:00:00Z'],
    ['a very long fraction without an offset', `2026-11-21T12:00:00.${'0'.repeat(1_000_000)}`],
  ])('rejects %s', (_, text) => {
    expect(parseInstant(text)).toBeUndefined()
  })
})

describe('every instant', () => {
  const instants = fc.integer({ min: 0, max: last })
  const offsets = fc.integer({ min: -(23 * 60 + 59), max: 23 * 60 + 59 })

  test('survives a round trip through its text form', () => {
    fc.assert(
      fc.property(instants, (instant) => {
        const text = formatInstant(instant)
        expect(text).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
        expect(parseInstant(text)).toBe(instant)
      }),
      { numRuns: runs(1000) },
    )
  })

  test('is the same for every offset', () => {
    // Stays a day away from both ends, so that local times keep four-digit years.
    const inner = fc.integer({ min: day, max: last - day })
    fc.assert(
      fc.property(inner, offsets, (instant, offset) => {
        expect(parseInstant(asSeenWith(instant, offset))).toBe(instant)
      }),
      { numRuns: runs(2000) },
    )
  })

  test('has exactly one calendar date', () => {
    const field = (max: number) => fc.integer({ min: 0, max })
    const year = fc.integer({ min: 1970, max: 2400 })
    fc.assert(
      fc.property(year, field(13), field(32), field(25), (y, m, d, h) => {
        const two = (n: number) => String(n).padStart(2, '0')
        const lengthOfMonth = dayNumber(y, m + 1, 1) - dayNumber(y, m, 1)
        const exists = m >= 1 && m <= 12 && d >= 1 && d <= lengthOfMonth && h <= 23
        const wanted = exists ? dayNumber(y, m, d) * day + h * hour : undefined
        expect(parseInstant(`${y}-${two(m)}-${two(d)}T${two(h)}:00:00Z`)).toBe(wanted)
      }),
      { numRuns: runs(2000) },
    )
  })

  test('matches the result of Date, unless the text is rejected', () => {
    const near = instants.map((instant) => new Date(instant).toISOString())
    const mangled = fc
      .tuple(near, fc.nat(), fc.constantFrom(...'0123456789TtZz:+-. W'))
      .map(([text, at, character]) => {
        const position = at % text.length
        return text.slice(0, position) + character + text.slice(position + 1)
      })
    fc.assert(
      fc.property(mangled, (text) => {
        const instant = parseInstant(text)
        if (instant !== undefined) expect(instant).toBe(Date.parse(text.toUpperCase()))
      }),
      { numRuns: runs(2000) },
    )
  })
})

test('a clock with fractions of a millisecond is rounded down', () => {
  expect(wholeMilliseconds({ now: () => 1_700_000_000_000.9 }).now()).toBe(1_700_000_000_000)
})
