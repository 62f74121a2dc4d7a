import fc from 'fast-check'
import { afterEach, describe, expect, test, vi } from 'vitest'
import {
  endOfWindows,
  type IntervalCounting,
  nextWindowStart,
  parseInterval,
  type RepeatingInterval,
  type SpendingWindow,
  shortestWindowMs,
  windowAt,
} from '../../src/core/interval.js'
import { made, momentOf, moments, moved, never, walkTo } from '../support/intervals.js'
import { runs } from '../support/runs.js'

const day = 86_400_000
const lastInstant = Date.UTC(9999, 11, 31, 23, 59, 59, 999)

function read(text: string): RepeatingInterval {
  const parsed = parseInterval(text)
  if (!parsed.ok) throw new Error(`${text} ${parsed.problem}`)
  return parsed.value
}

/** Formats an instant; the texts of an interval may omit the time. */
function instant(text: string): number {
  return Date.parse(text.includes('T') ? text : `${text}T00:00:00Z`)
}

function written(window: SpendingWindow | undefined): string | undefined {
  if (window === undefined) return undefined
  const [start, end] = [window.start, window.end].map((at) => new Date(at).toISOString())
  return `${start} ${end}`.replaceAll('.000Z', 'Z').replaceAll('T00:00:00Z', '')
}

/** Returns the window of an interval at an instant, as two date-times; a midnight is written as a date. */
function at(text: string, when: string, counting?: IntervalCounting): string | undefined {
  return written(windowAt(read(text), instant(when), counting))
}

/** Returns the windows of an interval from an instant on, each looked up at the end of the one before. */
function windowsFrom(text: string, start: number, most: number, counting?: IntervalCounting) {
  const interval = read(text)
  const windows: SpendingWindow[] = []
  for (let when = start; windows.length < most; ) {
    const window = windowAt(interval, when, counting)
    if (window === undefined) break
    windows.push(window)
    when = window.end
  }
  return windows
}

function startsFrom(text: string, most: number): string[] {
  const [, start = ''] = text.split('/')
  return windowsFrom(text, instant(start), most).map(({ start }) =>
    new Date(start).toISOString().slice(0, 10),
  )
}

describe('windowAt', () => {
  test.each<readonly [from: string, text: string, when: string, window: string]>([
    [
      'the first example in the guides',
      'R3/2025-05-20T13:00:00Z/P1M',
      '2025-05-20T13:00:00Z',
      '2025-05-20T13:00:00Z 2025-06-20T13:00:00Z',
    ],
    [
      'the second example in the guides',
      'R3/2025-05-20T13:00:00Z/P1M',
      '2025-07-20T12:59:59.999Z',
      '2025-06-20T13:00:00Z 2025-07-20T13:00:00Z',
    ],
    [
      'the third example in the guides',
      'R3/2025-05-20T13:00:00Z/P1M',
      '2025-08-20T12:59:59.999Z',
      '2025-07-20T13:00:00Z 2025-08-20T13:00:00Z',
    ],
    [
      'the OpenAPI example of eleven months',
      'R11/2022-08-24T14:15:22Z/P1M',
      '2022-08-24T14:15:22Z',
      '2022-08-24T14:15:22Z 2022-09-24T14:15:22Z',
    ],
    [
      'the OpenAPI example of twelve months',
      'R12/2019-08-24T14:15:22Z/P1M',
      '2019-09-24T14:15:21.999Z',
      '2019-08-24T14:15:22Z 2019-09-24T14:15:22Z',
    ],
    [
      'the OpenAPI example with a start and an end, repeated with exact length',
      'R/2017-03-01T13:00:00Z/2018-05-11T15:30:00Z',
      '2018-05-11T15:30:00Z',
      '2018-05-11T15:30:00Z 2019-07-21T18:00:00Z',
    ],
    [
      'the OpenAPI example with an end',
      'R-1/P1Y2M10DT2H30M/2022-05-11T15:30:00Z',
      '2022-05-11T15:29:59.999Z',
      '2021-03-01T13:00:00Z 2022-05-11T15:30:00Z',
    ],
    [
      // 11 January 2020 is two years and four months before the end, minus 20 days and 5 hours.
      'the OpenAPI example with an end, one window earlier',
      'R-1/P1Y2M10DT2H30M/2022-05-11T15:30:00Z',
      '2021-03-01T12:59:59.999Z',
      '2019-12-22T10:30:00Z 2021-03-01T13:00:00Z',
    ],
    [
      'a start with an eastern offset, whose month differs from the UTC month',
      'R/2025-01-01T00:00:00+02:00/P1M',
      '2025-03-15',
      '2025-02-28T22:00:00Z 2025-03-31T22:00:00Z',
    ],
    [
      'a month written as start and end, which repeats every 31 days',
      'R/2025-01-01T00:00:00Z/2025-02-01T00:00:00Z',
      '2025-03-04',
      '2025-03-04 2025-04-04',
    ],
    [
      'a month and a day: 28 February plus a day, not 31 January plus a day',
      'R/2025-01-31T00:00:00Z/P1M1D',
      '2025-03-01',
      '2025-03-01 2025-04-02',
    ],
    ['weeks', 'R/2025-05-20T00:00:00Z/P2W', '2025-06-05', '2025-06-03 2025-06-17'],
    [
      'an interval whose window ends after the last representable date-time',
      'R/2025-05-20T00:00:00Z/P1000Y',
      '9999-12-31',
      '9025-05-20 +010025-05-20',
    ],
    [
      'an interval whose window began before 1970',
      'R/P1000Y/2025-05-20T00:00:00Z',
      '1970-01-01',
      '1025-05-20 2025-05-20',
    ],
  ])('returns the window of %s: %s at %s', (_, text, when, window) => {
    expect(at(text, when)).toBe(window)
  })

  test.each<readonly [what: string, text: string, starts: readonly string[]]>([
    [
      'months from 31 January',
      'R12/2025-01-31T00:00:00Z/P1M',
      ['2025-01-31', '2025-02-28', '2025-03-31', '2025-04-30', '2025-05-31', '2025-06-30'],
    ],
    [
      'months from 31 January in a leap year',
      'R/2024-01-31T00:00:00Z/P1M',
      ['2024-01-31', '2024-02-29', '2024-03-31', '2024-04-30'],
    ],
    [
      'years from a leap day',
      'R/2024-02-29T00:00:00Z/P1Y',
      ['2024-02-29', '2025-02-28', '2026-02-28', '2027-02-28', '2028-02-29'],
    ],
    [
      'years from a leap day across a century that is not a leap year',
      'R/2096-02-29T00:00:00Z/P4Y',
      ['2096-02-29', '2100-02-28', '2104-02-29'],
    ],
    [
      'quarters from the end of one',
      'R/2025-11-30T00:00:00Z/P3M',
      ['2025-11-30', '2026-02-28', '2026-05-30', '2026-08-30'],
    ],
  ])('computes each start from the first: %s, %s', (_, text, starts) => {
    expect(startsFrom(text, starts.length)).toEqual(starts)
  })
})

describe('the time zone of the machine', () => {
  afterEach(() => {
    vi.unstubAllEnvs()
  })

  test.each(['America/New_York', 'Pacific/Kiritimati'])('does not move any window: %s', (zone) => {
    vi.stubEnv('TZ', zone)
    expect(new Date(2025, 0, 1).getTime()).not.toBe(instant('2025-01-01'))
    const starts = ['2025-01-31', '2025-02-28', '2025-03-31', '2025-04-30']
    expect(startsFrom('R/2025-01-31T00:00:00Z/P1M', 4)).toEqual(starts)
    const dawn = '2025-03-31T23:59:59Z 2025-04-30T23:59:59Z'
    expect(at('R/2025-01-31T23:59:59Z/P1M', '2025-04-01')).toBe(dawn)
  })
})

describe('outside every window', () => {
  test.each([-1, lastInstant + 1, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY])(
    'there is no window at %d, which no date-time can represent',
    (when) => {
      for (const text of [
        'R/1970-01-01T00:00:00Z/P1M',
        'R/P1M/9999-12-31T23:59:59Z',
        'R/PT1S/9999-12-31T23:59:59Z',
      ]) {
        expect(windowAt(read(text), when)).toBeUndefined()
      }
    },
  )
})

describe('the repetition count', () => {
  test('of three allows a fourth month when repetitions are counted', () => {
    const text = 'R3/2025-05-20T13:00:00Z/P1M'
    const fourth = '2025-08-20T13:00:00Z 2025-09-20T13:00:00Z'
    expect(at(text, '2025-08-20T13:00:00Z', 'repetitions')).toBe(fourth)
    expect(at(text, '2025-09-20T13:00:00Z', 'repetitions')).toBeUndefined()
  })

  test('of two ends after three months when repetitions are counted', () => {
    const text = 'R2/2022-07-01T13:00:00Z/P1M'
    const third = '2022-09-01T13:00:00Z 2022-10-01T13:00:00Z'
    expect(at(text, '2022-10-01T12:59:59.999Z', 'repetitions')).toBe(third)
    expect(at(text, '2022-10-01T13:00:00Z', 'repetitions')).toBeUndefined()
  })

  test.each(['R', 'R-1'])('is unlimited for %s with either counting', (repetition) => {
    for (const counting of ['occurrences', 'repetitions'] as const) {
      const text = `${repetition}/2025-05-20T00:00:00Z/P1M`
      expect(at(text, '9999-12-25', counting)).toBe('9999-12-20 +010000-01-20')
      expect(endOfWindows(read(text), counting)).toBeUndefined()
    }
  })
})

describe('the end of the last window', () => {
  test.each<
    readonly [text: string, occurrences: string | undefined, repetitions: string | undefined]
  >([
    ['R3/2025-05-20T13:00:00Z/P1M', '2025-08-20T13:00:00Z', '2025-09-20T13:00:00Z'],
    ['R1/2025-01-31T00:00:00Z/P1M', '2025-02-28', '2025-03-31'],
    ['R12/2024-02-29T00:00:00Z/P1Y', '2036-02-29', '2037-02-28'],
    ['R2/2025-01-01T00:00:00Z/2025-01-02T00:00:00Z', '2025-01-03', '2025-01-04'],
    ['R5/P1M/2022-05-11T15:30:00Z', '2022-05-11T15:30:00Z', '2022-05-11T15:30:00Z'],
    ['R/P1M/2022-05-11T15:30:00Z', '2022-05-11T15:30:00Z', '2022-05-11T15:30:00Z'],
    ['R-1/P1Y/9999-12-31T23:59:59.999Z', '9999-12-31T23:59:59.999Z', '9999-12-31T23:59:59.999Z'],
    ['R/2025-05-20T13:00:00Z/P1M', undefined, undefined],
    ['R-1/2025-05-20T13:00:00Z/2025-05-21T13:00:00Z', undefined, undefined],
    ['R1/9999-12-29T23:59:59.999Z/P1D', '9999-12-30T23:59:59.999Z', '9999-12-31T23:59:59.999Z'],
    ['R1/9999-12-30T00:00:00Z/P1D', '9999-12-31', undefined],
    ['R1/9999-11-30T12:00:00Z/P1M', '9999-12-30T12:00:00Z', undefined],
    ['R999999/2025-01-01T00:00:00Z/P1000Y', undefined, undefined],
    ['R999999/1970-01-01T00:00:00Z/9999-12-31T00:00:00Z', undefined, undefined],
    ['R999999/P1000Y/2025-01-01T00:00:00Z', '2025-01-01', '2025-01-01'],
  ])('of %s is %s by occurrences and %s by repetitions', (text, occurrences, repetitions) => {
    const interval = read(text)
    const orNone = (when: string | undefined) => (when === undefined ? undefined : instant(when))
    expect(endOfWindows(interval)).toBe(orNone(occurrences))
    expect(endOfWindows(interval, 'occurrences')).toBe(orNone(occurrences))
    expect(endOfWindows(interval, 'repetitions')).toBe(orNone(repetitions))
  })
})

const countings = fc.constantFrom<IntervalCounting>('occurrences', 'repetitions')
const upTo = (max: number) => fc.integer({ min: 0, max })

describe('looking up a window', () => {
  test('finds the same window as an iteration over all windows', () => {
    const met = { inside: 0, outside: 0 }
    fc.assert(
      fc.property(made, moments, countings, (interval, moment, counting) => {
        const when = momentOf(interval, moment)
        if (when < 0) return true
        const walked = walkTo(interval, when, counting === 'repetitions' ? 1 : 0)
        const { start, end } = windowAt(read(interval.text), when, counting) ?? never
        met[Number.isNaN(start) ? 'outside' : 'inside'] += 1
        return Object.is(start, walked.start) && Object.is(end, walked.end)
      }),
      { numRuns: runs(100_000) },
    )
    expect(Math.min(met.inside, met.outside)).toBeGreaterThan(runs(20_000))
  })

  test('returns the same window from its first to its last millisecond, and adjacent windows share a boundary', () => {
    fc.assert(
      fc.property(made, moments, countings, ({ text, ...made }, moment, counting) => {
        const interval = read(text)
        const window = windowAt(interval, momentOf({ text, ...made }, moment), counting)
        if (window === undefined || window.start <= 0 || window.end > lastInstant) return
        expect(windowAt(interval, window.start, counting)).toEqual(window)
        expect(windowAt(interval, window.end - 1, counting)).toEqual(window)
        const [before, after] = [window.start - 1, window.end].map((when) =>
          windowAt(interval, when, counting),
        )
        if (before !== undefined) expect(before.end).toBe(window.start)
        if (after === undefined) expect(endOfWindows(interval, counting)).toBe(window.end)
        else expect(after.start).toBe(window.end)
      }),
      { numRuns: runs(5_000) },
    )
  })

  test('finds exactly as many windows as the count specifies, from the start to the end of the last', () => {
    fc.assert(
      fc.property(made, countings, ({ text, form, count = 3, anchor, months, ms }, counting) => {
        const interval = { ...read(text), count }
        const total = counting === 'repetitions' ? count + 1 : count
        const start = form === 'duration/end' ? moved(anchor, -total * months, -total * ms) : anchor
        const end = endOfWindows(interval, counting)
        if (!(start >= 0) || end === undefined) return
        let when = start
        for (let n = 0; n < total; n++) {
          const window = windowAt(interval, when, counting)
          expect(window?.start).toBe(when)
          when = window?.end ?? Number.NaN
        }
        expect(when).toBe(end)
        expect(windowAt(interval, end, counting)).toBeUndefined()
        expect(windowAt(interval, start - 1, counting)).toBeUndefined()
      }),
      { numRuns: runs(1_000) },
    )
  })

  test('returns a window or undefined and never throws, for every valid interval', () => {
    const counts = fc.constantFrom('R', 'R1', 'R999999')
    const lasts = fc.constantFrom('PT1S', 'P1M', 'P1000Y', 'P11000M', 'P365000D', 'P999Y11M')
    const edges = fc.constantFrom(0, 1, day, lastInstant - day, lastInstant - 1, lastInstant)
    const instants = fc.oneof(edges, upTo(lastInstant))
    const anything = fc.oneof(instants, fc.double(), fc.integer())
    fc.assert(
      fc.property(
        counts,
        lasts,
        instants,
        anything,
        fc.boolean(),
        (count, last, anchor, when, ahead) => {
          const there = new Date(anchor).toISOString()
          const interval = read(ahead ? `${count}/${there}/${last}` : `${count}/${last}/${there}`)
          const end = endOfWindows(interval, 'repetitions')
          if (end !== undefined) expect(end).toBeLessThanOrEqual(lastInstant)
          const window = windowAt(interval, when, 'repetitions')
          if (window === undefined) return
          expect(window.start).toBeLessThanOrEqual(when)
          expect(window.end).toBeGreaterThan(when)
          expect(Number.isSafeInteger(window.start) && Number.isSafeInteger(window.end)).toBe(true)
        },
      ),
      { numRuns: runs(5_000) },
    )
  })
})

describe('the start of the next window', () => {
  const next = (text: string, when: string) => {
    const start = nextWindowStart(read(text), instant(when))
    return start === undefined ? undefined : new Date(start).toISOString().slice(0, 10)
  }

  test.each<readonly [text: string, when: string, start: string | undefined]>([
    ['R2/2026-01-01T00:00:00Z/P1D', '1970-01-01', '2026-01-01'],
    ['R2/2026-01-01T00:00:00Z/P1D', '2025-12-31', '2026-01-01'],
    ['R2/2026-01-01T00:00:00Z/P1D', '2026-01-01', '2026-01-02'],
    ['R2/2026-01-01T00:00:00Z/P1D', '2026-01-02', undefined],
    ['R2/P1D/2026-01-03T00:00:00Z', '2025-12-01', '2026-01-01'],
    ['R2/P1D/2026-01-03T00:00:00Z', '2026-01-01', '2026-01-02'],
    ['R/9999-12-30T00:00:00Z/P1D', '9999-12-30', '9999-12-31'],
    ['R/9999-12-30T00:00:00Z/P1D', '9999-12-31', undefined],
    ['R1/9999-12-31T23:59:59.999Z/PT1S', '9999-12-30', '9999-12-31'],
  ])('of %s after %s is %s', (text, when, start) => {
    expect(next(text, when)).toBe(start)
  })

  test.each([-1, lastInstant + 1, Number.NaN])('is none outside all time: %d', (when) => {
    expect(nextWindowStart(read('R/2026-01-01T00:00:00Z/P1D'), when)).toBeUndefined()
  })
})

describe('the cost of finding a window', () => {
  test.each<readonly [text: string, window: string]>([
    ['R/1970-01-01T00:00:00Z/PT1S', '9999-12-31T23:59:59Z +010000-01-01'],
    ['R/1970-01-01T00:00:00Z/1970-01-01T00:00:00.001Z', '9999-12-31T23:59:59.999Z +010000-01-01'],
    ['R/1970-01-30T23:59:00Z/P1M', '9999-12-30T23:59:00Z +010000-01-30T23:59:00Z'],
  ])('is low for a window 8,000 years after the start of the interval: %s', (text, window) => {
    expect(at(text, '9999-12-31T23:59:59.999Z')).toBe(window)
  })

  test('is low for a window 8,000 years before the end of the interval', () => {
    const window = '1970-01-01 1970-01-01T00:00:01Z'
    expect(at('R/PT1S/9999-12-31T23:59:59Z', '1970-01-01')).toBe(window)
  })
})

describe('shortestWindowMs', () => {
  test.each([
    ['R/2026-01-01T00:00:00Z/PT59S', 59_000],
    ['R/2026-01-01T00:00:00Z/2026-01-01T00:00:00.001Z', 1],
    ['R/P2W/2026-01-01T00:00:00Z', 14 * day],
    ['R/2026-01-31T00:00:00Z/P1M', 28 * day],
    ['R/2026-01-31T00:00:00Z/P1M1D', 29 * day],
    ['R/2024-02-29T00:00:00Z/P1Y', 365 * day],
  ])('of %s is %i ms, and a window has this length', (text, shortest) => {
    const interval = read(text)
    expect(shortestWindowMs(interval)).toBe(shortest)
    const lengths = windowsFrom(text, instant('2025-12-31'), 1).concat(
      windowsFrom(text, instant(text.includes('P2W') ? '2025-01-01' : '2026-01-31'), 60),
    )
    expect(Math.min(...lengths.map(({ start, end }) => end - start))).toBe(shortest)
  })

  test('exceeds the length of no window', () => {
    fc.assert(
      fc.property(made, moments, (interval, moment) => {
        const { text } = interval
        const shortest = shortestWindowMs(read(text))
        const window = windowAt(read(text), momentOf(interval, moment))
        if (window === undefined) return
        const length = window.end - window.start
        expect(length).toBeGreaterThanOrEqual(shortest)
        if (!/P[^T]*[YM]/.test(text)) expect(length).toBe(shortest)
      }),
      { numRuns: runs(500) },
    )
  })
})
