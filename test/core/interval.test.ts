import fc from 'fast-check'
import { afterEach, describe, expect, test, vi } from 'vitest'
import {
  type CalendarDuration,
  parseInterval,
  type RepeatingInterval,
} from '../../src/core/interval.js'

const may = Date.UTC(2025, 4, 20, 13)

function lasting(components: Partial<CalendarDuration>): CalendarDuration {
  const none = { years: 0, months: 0, weeks: 0, days: 0, hours: 0, minutes: 0, seconds: 0 }
  return { ...none, ...components }
}

function problemOf(text: string): string | undefined {
  const parsed = parseInterval(text)
  return parsed.ok ? undefined : parsed.problem
}

const oneMonth = { form: 'start/duration', start: may, duration: lasting({ months: 1 }) } as const

describe('parsing an interval', () => {
  test.each<readonly [from: string, text: string, interval: RepeatingInterval]>([
    ['the guides', 'R3/2025-05-20T13:00:00Z/P1M', { count: 3, ...oneMonth }],
    [
      'the OpenAPI description, with a start and a duration',
      'R11/2022-08-24T14:15:22Z/P1M',
      {
        count: 11,
        form: 'start/duration',
        start: Date.UTC(2022, 7, 24, 14, 15, 22),
        duration: lasting({ months: 1 }),
      },
    ],
    [
      'the OpenAPI description, with a start and an end',
      'R/2017-03-01T13:00:00Z/2018-05-11T15:30:00Z',
      {
        form: 'start/end',
        start: Date.UTC(2017, 2, 1, 13),
        end: Date.UTC(2018, 4, 11, 15, 30),
      },
    ],
    [
      'the OpenAPI description, with a duration and an end',
      'R-1/P1Y2M10DT2H30M/2022-05-11T15:30:00Z',
      {
        form: 'duration/end',
        duration: lasting({ years: 1, months: 2, days: 10, hours: 2, minutes: 30 }),
        end: Date.UTC(2022, 4, 11, 15, 30),
      },
    ],
    [
      'a client far from UTC',
      'R1/2025-05-20T22:30:00.250+09:30/P1D',
      {
        count: 1,
        form: 'start/duration',
        start: may + 250,
        duration: lasting({ days: 1 }),
      },
    ],
    [
      'a client with one window of a millisecond',
      'R1/2025-05-20T13:00:00Z/2025-05-20T13:00:00.001Z',
      { count: 1, form: 'start/end', start: may, end: may + 1 },
    ],
  ])('reads the interval from %s: %s', (_, text, interval) => {
    expect(parseInterval(text)).toEqual({ ok: true, value: interval })
  })

  test.each<readonly [text: string, count: number | undefined]>([
    ['R', undefined],
    ['R-1', undefined],
    ['R1', 1],
    ['R12', 12],
    ['R999999', 999_999],
  ])('reads the repetition %s', (repetition, count) => {
    const parsed = parseInterval(`${repetition}/2025-05-20T13:00:00Z/P1M`)
    const interval = count === undefined ? oneMonth : { count, ...oneMonth }
    expect(parsed).toEqual({ ok: true, value: interval })
  })

  test.each<readonly [text: string, components: Partial<CalendarDuration>]>([
    ['P1Y', { years: 1 }],
    ['P1M', { months: 1 }],
    ['PT1M', { minutes: 1 }],
    ['P2W', { weeks: 2 }],
    ['P30D', { days: 30 }],
    ['PT24H', { hours: 24 }],
    ['PT1S', { seconds: 1 }],
    // 30 days in seconds, as some programs write them.
    ['PT2592000S', { seconds: 2_592_000 }],
    ['P1DT12H', { days: 1, hours: 12 }],
    ['P1YT1S', { years: 1, seconds: 1 }],
    ['P1M1DT1M1S', { months: 1, days: 1, minutes: 1, seconds: 1 }],
    ['P0Y1M', { months: 1 }],
    ['P1Y2M3DT4H5M6S', { years: 1, months: 2, days: 3, hours: 4, minutes: 5, seconds: 6 }],
  ])('reads the duration %s', (text, components) => {
    const duration = lasting(components)
    expect(parseInterval(`R/2025-05-20T13:00:00Z/${text}`)).toEqual({
      ok: true,
      value: { form: 'start/duration', start: may, duration },
    })
    expect(parseInterval(`R/${text}/2025-05-20T13:00:00Z`)).toEqual({
      ok: true,
      value: { form: 'duration/end', end: may, duration },
    })
  })

  test('reads every count, start and duration exactly', () => {
    const upTo = (max: number) => fc.integer({ min: 0, max })
    // At most a thousand years, all components together.
    const durations = fc
      .tuple(upTo(400), upTo(2_000), upTo(90_000), upTo(9_999), upTo(99_999), upTo(999_999_999))
      .filter((components) => components.some((c) => c > 0))
    fc.assert(
      fc.property(
        fc.option(fc.integer({ min: 1, max: 999_999 }), { nil: undefined }),
        fc.integer({ min: 0, max: Date.UTC(2999, 11, 31) }),
        durations,
        (count, start, [years, months, days, hours, minutes, seconds]) => {
          const duration = { years, months, weeks: 0, days, hours, minutes, seconds }
          const lasts = `P${years}Y${months}M${days}DT${hours}H${minutes}M${seconds}S`
          const text = `R${count ?? ''}/${new Date(start).toISOString()}/${lasts}`
          const interval = { form: 'start/duration', start, duration }
          expect(parseInterval(text)).toEqual({
            ok: true,
            value: count === undefined ? interval : { count, ...interval },
          })
        },
      ),
      { numRuns: 500 },
    )
  })
})

describe('parsing an invalid interval returns a reason', () => {
  const start = '2025-05-20T13:00:00Z'

  test.each([
    ['an empty string', ''],
    ['slashes without parts', '//'],
    ['a duration without an anchor', 'P1M'],
    ['a date-time without a duration', start],
    ['a repetition without an interval', 'R3'],
    ['no repetition', `${start}/P1M`],
    ['a missing second part', `R3/${start}`],
    ['an empty second part', `R3/${start}/`],
    ['an empty first part', 'R3//P1M'],
    ['a fourth part', `R3/${start}/P1M/P1M`],
    ['a trailing slash', `R3/${start}/P1M/`],
    ['two hyphens instead of a slash', `R3--${start}--P1M`],

    ['the letter n as a number', `Rn/${start}/P1M`],
    ['an empty date-time', `R0/${start}/P1M`],
    ['a count with a leading zero', `R03/${start}/P1M`],
    ['a negative count', `R-2/${start}/P1M`],
    ['negative zero', `R-0/${start}/P1M`],
    ['minus one with a leading zero', `R-01/${start}/P1M`],
    ['a plus sign', `R+3/${start}/P1M`],
    ['a fraction of a repetition', `R1.5/${start}/P1M`],
    ['an exponent', `R1e3/${start}/P1M`],
    ['a million repetitions', `R1000000/${start}/P1M`],
    ['10^30 repetitions', `R1${'0'.repeat(30)}/${start}/P1M`],
    ['a count in hexadecimal', `R0x10/${start}/P1M`],
    ['another letter for R', `X9/${start}/P1M`],
    ['a lower-case r', `r3/${start}/P1M`],
    ['a space after R', `R 3/${start}/P1M`],

    ['two durations', 'R/P1M/P1M'],
    ['30 February', 'R/2020-02-30T00:00:00Z/P1M'],
    ['a date without a time', 'R/2025-05-20/P1M'],
    ['a start without an offset', 'R/2025-05-20T13:00:00/P1M'],
    ['an end without an offset', 'R/P1M/2025-05-20T13:00:00'],
    ['an end without an offset after a start', `R/${start}/2025-06-20T13:00:00`],
    [
      'a start and an end in the same millisecond',
      `R/2025-05-20T13:00:00.0001Z/2025-05-20T13:00:00.0002Z`,
    ],
    ['a start before 1970', 'R/1969-12-31T23:59:59Z/P1M'],
    ['hour 24', 'R/2025-05-20T24:00:00Z/P1M'],
    ['an end equal to the start', `R/${start}/${start}`],
    ['an end equal to the start, with another offset', `R/${start}/2025-05-20T14:00:00+01:00`],
    ['an end before the start', `R/${start}/2025-05-19T13:00:00Z`],
    ['an end before the start, with another offset', `R/${start}/2025-05-20T13:30:00+01:00`],
    ['an end abbreviated to a time', `R/${start}/15:30:00Z`],

    ['no time: P0D', `R/${start}/P0D`],
    ['no time: PT0S', `R/${start}/PT0S`],
    ['no time: P0W', `R/${start}/P0W`],
    ['no time: P0Y0M0DT0H0M0S', `R/${start}/P0Y0M0DT0H0M0S`],
    ['a zero duration before an end', `R/PT0S/${start}`],
    ['nothing: P', `R/${start}/P`],
    ['nothing: PT', `R/${start}/PT`],
    ['nothing after T', `R/${start}/P1DT`],
    ['a negative duration', `R/${start}/-P1M`],
    ['a negative component', `R/${start}/P-1M`],
    ['a positive sign before a component', `R/${start}/P+1M`],
    ['a fraction', `R/${start}/P1.5D`],
    ['a fraction of a second', `R/${start}/PT0.5S`],
    ['a fraction with a comma', `R/${start}/PT1,5H`],
    ['no number', `R/${start}/PM`],
    ['no unit', `R/${start}/P1`],
    ['hours without T', `R/${start}/P1H`],
    ['days after T', `R/${start}/PT1D`],
    ['a second T', `R/${start}/PT1HT1M`],
    ['components out of order', `R/${start}/P1D1M`],
    ['a repeated component', `R/${start}/P1M1M`],
    ['weeks beside days', `R/${start}/P1W1D`],
    ['weeks beside hours', `R/${start}/P1WT1H`],
    ['a lower-case p', `R/${start}/p1M`],
    ['lower-case units', `R/${start}/P1m`],
    ['the alternative form of a duration', `R/${start}/P0001-00-00T00:00:00`],
    ['spaces inside', `R/${start}/P 1 M`],
    ['non-ASCII digits', `R/${start}/P\u0661M`],
    ['ten million years', `R/${start}/P10000000Y`],
    ['a number of 30 digits', `R/${start}/P${'9'.repeat(30)}D`],

    ['a leading space', ` R3/${start}/P1M`],
    ['a trailing space', `R3/${start}/P1M `],
    ['a trailing newline', `R3/${start}/P1M\n`],
    ['a newline after the count', `R3\n/${start}/P1M`],
    ['a trailing NUL', `R3/${start}/P1M\u0000`],
    ['words', 'every month'],
    ['a cron expression', '0 0 1 * *'],
  ])('rejects %s', (_, text) => {
    expect(problemOf(text)).toMatch(/^\S.*\S$/)
  })

  test.each(['P1001Y', 'P1000000Y', 'P12200M', 'P999999999D', 'P500YT999999999H'])(
    'rejects a duration above a thousand years: %s',
    (duration) => {
      expect(problemOf(`R/${start}/${duration}`)).toBe('must not be longer than a thousand years')
    },
  )

  test('the reason does not repeat any of the text', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[a-z]{12,128}$/), (text) => {
        expect(problemOf(`R/${text}/P1M`)).not.toContain(text)
      }),
      { numRuns: 100 },
    )
  })
})

describe('the cost of parsing a long text', () => {
  afterEach(() => {
    vi.restoreAllMocks()
  })

  /** Counts the characters that regular expressions and `split` receive. */
  function charactersRead(text: string): number {
    let count = 0
    const { exec } = RegExp.prototype
    const { split } = String.prototype
    vi.spyOn(RegExp.prototype, 'exec').mockImplementation(function (this: RegExp, given: string) {
      count += given.length
      return exec.call(this, given)
    })
    vi.spyOn(String.prototype, 'split').mockImplementation(function (
      this: string,
      ...given: unknown[]
    ) {
      count += this.length
      return Reflect.apply(split, this, given)
    })
    parseInterval(text)
    vi.restoreAllMocks()
    return count
  }

  test('128 characters are parsed, and the 129th causes a rejection for the length', () => {
    const inTime = `R/${'x'.repeat(126)}`
    expect(problemOf(inTime)).toBeDefined()
    expect(problemOf(inTime)).not.toContain('128')
    expect(problemOf(`${inTime}x`)).toContain('128')
  })

  test('an interval that is valid except for its length is rejected for its length', () => {
    const zeros = '0'.repeat(128)
    expect(problemOf(`R/2025-05-20T13:00:00Z/PT${zeros}1S`)).toContain('128')
  })

  test('an interval of ordinary length is parsed', () => {
    expect(charactersRead('R3/2025-05-20T13:00:00Z/P1M')).toBeGreaterThan(0)
  })

  test.each([
    ['slashes', '/'],
    ['digits', '1'],
    ['repetitions', 'R1/'],
    ['durations', 'P1Y'],
    ['components', '1M'],
    ['date-times', '2025-05-20T13:00:00Z/'],
  ])('none of a million %s are parsed', (_, unit) => {
    expect(charactersRead(`R1/P${unit.repeat(1_000_000)}`)).toBe(0)
  })

  test('no text of up to 128 characters is scanned more than a few times', () => {
    const junk = fc
      .array(
        fc.constantFrom(
          'R',
          'R1',
          '/',
          'P',
          'T',
          '1',
          '1111111',
          'Y',
          'M',
          'W',
          'D',
          'H',
          'S',
          ':',
          '-',
          'Z',
          '2025-05-20T13:00:00Z',
        ),
        { maxLength: 128, size: 'max' },
      )
      .map((parts) => parts.join('').slice(0, 128))
    fc.assert(
      fc.property(junk, (text) => {
        expect(charactersRead(text)).toBeLessThanOrEqual(10 * 128)
      }),
      { numRuns: 300 },
    )
  })
})
