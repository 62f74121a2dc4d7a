import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  coversWindows,
  hasOneWindow,
  type IntervalCounting,
  parseInterval,
  type RepeatingInterval,
  windowAt,
} from '../../src/core/interval.js'
import { isLong, runs } from '../support/runs.js'

const day = 86_400_000

function read(text: string): RepeatingInterval {
  const parsed = parseInterval(text)
  if (!parsed.ok) throw new Error(`${text} ${parsed.problem}`)
  return parsed.value
}

const durations = ['P1M', 'P2M', 'P1Y', 'P12M', 'P1W', 'P7D', 'P14D', 'P1M1D'] as const
/** Days that months constrain, and starts of windows of each other. */
const anchors = [
  '2024-01-01',
  '2024-01-08',
  '2024-01-29',
  '2024-01-31',
  '2024-02-29',
  '2024-03-01',
  '2024-03-31',
  '2025-01-31',
  '2025-02-28',
  '2025-03-01',
].map((date) => `${date}T00:00:00Z`)

const everyInterval = ['R', 'R1', 'R2', 'R3', 'R5'].flatMap((count) =>
  anchors.flatMap((anchor) =>
    durations.flatMap((duration) => {
      const texts = [`${count}/${anchor}/${duration}`, `${count}/${duration}/${anchor}`]
      const dayOfMonth = Number(anchor.slice(8, 10))
      return texts.map((text) => ({ text, duration, dayOfMonth, interval: read(text) }))
    }),
  ),
)
type Tried = (typeof everyInterval)[number]
const intervals = fc.constantFrom(...everyInterval)

const countings = fc.constantFrom<IntervalCounting>('occurrences', 'repetitions')
const years = { from: Date.UTC(2016, 0, 1), to: Date.UTC(2034, 0, 1) }

/** The windows of an interval between two instants, found day by day. */
function windowsOf(interval: RepeatingInterval, counting: IntervalCounting): ReadonlySet<string> {
  const found = new Set<string>()
  for (let at = years.from; at < years.to; at += day) {
    const window = windowAt(interval, at, counting)
    if (window !== undefined) found.add(`${window.start} ${window.end}`)
  }
  return found
}

/** Compares with the windows of both, and returns whether the first interval covers the second one. */
function expectCover(
  wide: Tried,
  narrow: Tried,
  counting: IntervalCounting,
  windows: typeof windowsOf,
): boolean {
  const covered = coversWindows(wide.interval, narrow.interval, counting)
  const isPlain = wide.duration === narrow.duration && wide.duration !== 'P1M1D'
  const isExact = isPlain && Math.max(wide.dayOfMonth, narrow.dayOfMonth) <= 28
  if (!covered && !isExact) return covered
  const outer = windows(wide.interval, counting)
  const isSubset = [...windows(narrow.interval, counting)].every((each) => outer.has(each))
  if (covered !== isSubset) expect.fail(`${wide.text} and ${narrow.text}: ${covered}`)
  return covered
}

describe('an interval that covers another one', () => {
  test('has each of its windows, whatever the forms of both', () => {
    fc.assert(
      fc.property(intervals, intervals, countings, (wide, narrow, counting) => {
        expectCover(wide, narrow, counting, windowsOf)
      }),
      { numRuns: runs(400, 100) },
    )
  })

  test.runIf(isLong).each(['occurrences', 'repetitions'] as const)(
    'has each of its windows, for every pair of intervals, counting %s',
    (counting) => {
      const windows = new Map(
        everyInterval.map(({ interval }) => [interval, windowsOf(interval, counting)]),
      )
      const known = (interval: RepeatingInterval) => windows.get(interval) ?? new Set()
      const results = everyInterval.flatMap((wide) =>
        everyInterval.map((narrow) => expectCover(wide, narrow, counting, known)),
      )
      expect(new Set(results)).toEqual(new Set([true, false]))
    },
  )

  test.each([
    ['R/2026-01-01T00:00:00Z/PT1H', 'R/2026-01-01T00:00:00Z/PT2H'],
    ['R/2026-01-01T00:00:00Z/PT2H', 'R/2026-01-01T00:00:00Z/PT1H'],
    ['R/2026-01-01T00:00:00Z/P1M', 'R/2026-01-01T00:00:00Z/P1MT1H'],
    ['R/2026-01-10T00:00:00Z/P1MT1H', 'R/2026-02-10T01:00:00Z/P1MT1H'],
  ])(
    'has no other duration, and none that mixes months and hours from another time: %s and %s',
    (wide, narrow) => {
      expect(coversWindows(read(wide), read(narrow))).toBe(false)
    },
  )

  test('covers what each interval that it covers covers', () => {
    fc.assert(
      fc.property(intervals, intervals, intervals, countings, (a, b, c, counting) => {
        expect(coversWindows(a.interval, a.interval, counting)).toBe(true)
        const [ab, bc] = [
          coversWindows(a.interval, b.interval, counting),
          coversWindows(b.interval, c.interval, counting),
        ]
        if (ab && bc) expect(coversWindows(a.interval, c.interval, counting)).toBe(true)
      }),
      { numRuns: runs(20_000, 2_000) },
    )
  })

  test.each([
    ['R/2024-01-31T00:00:00Z/P1M', 'R/2024-03-31T00:00:00Z/P1M', true],
    ['R/2024-01-31T00:00:00Z/P1M', 'R/2024-02-29T00:00:00Z/P1M', false],
    ['R/2024-01-01T00:00:00Z/P1M', 'R/2024-01-01T00:00:00Z/P31D', false],
    ['R/2024-01-01T00:00:00Z/P1M', 'R/2024-02-01T00:00:00.001Z/P1M', false],
    ['R/2024-01-01T00:00:00Z/2024-01-02T00:00:00Z', 'R7/2024-05-01T00:00:00Z/P1D', true],
    ['R9/P1M/2024-12-01T00:00:00Z', 'R/P1M/2024-12-01T00:00:00Z', false],
    ['R/P1M/2024-12-01T00:00:00Z', 'R9/P1M/2024-11-01T00:00:00Z', true],
    ['R/P1M/2024-12-01T00:00:00Z', 'R/2024-01-01T00:00:00Z/P1M', false],
  ])('%s and %s: %s', (wide, narrow, covered) => {
    expect(coversWindows(read(wide), read(narrow))).toBe(covered)
  })
})

test('R1 has one window, unless a count is one of repetitions', () => {
  const once = read('R1/2024-01-01T00:00:00Z/P1M')
  expect(hasOneWindow(once, 'occurrences')).toBe(true)
  expect(hasOneWindow(once, 'repetitions')).toBe(false)
  expect(hasOneWindow(read('R/2024-01-01T00:00:00Z/P1M'), 'occurrences')).toBe(false)
})
