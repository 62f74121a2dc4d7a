import fc from 'fast-check'
import {
  type IntervalCounting,
  windowAt as libraryWindowAt,
  parseInterval,
} from 'open-payments-server/core'
import { runs } from 'open-payments-test-support/runs'
import { describe, expect, test } from 'vitest'
import { arbitraries, startOfTests } from '../src/index.js'
import { windowAt } from '../src/spending/windows.js'

const day = 86_400_000

/** The window in the model, written as dates. */
function at(text: string, when: string, counting: IntervalCounting = 'occurrences'): string {
  const turn = windowAt(text, Date.parse(when), counting)
  if (!turn.ok) return turn.closed
  const { start, end } = turn.value
  return [start, end].map((edge) => new Date(edge).toISOString().slice(0, 10)).join(' ')
}

describe('the windows of the model', () => {
  test.each([
    ['R/2025-01-31T00:00:00Z/P1M', '2025-02-27T00:00:00Z', '2025-01-31 2025-02-28'],
    ['R/2025-01-31T00:00:00Z/P1M', '2025-02-28T00:00:00Z', '2025-02-28 2025-03-31'],
    ['R/2024-01-31T00:00:00Z/P1M', '2024-02-28T23:59:59Z', '2024-01-31 2024-02-29'],
    ['R/2024-02-29T00:00:00Z/P1Y', '2027-02-28T00:00:00Z', '2027-02-28 2028-02-29'],
    ['R/2096-02-29T00:00:00Z/P4Y', '2101-01-01T00:00:00Z', '2100-02-28 2104-02-29'],
    ['R/2025-05-20T00:00:00Z/P2W', '2025-06-05T00:00:00Z', '2025-06-03 2025-06-17'],
    ['R/2025-01-31T00:00:00Z/P1M1D', '2025-03-01T00:00:00Z', '2025-03-01 2025-04-02'],
    ['R4/P1M/2025-05-31T00:00:00Z', '2025-03-15T00:00:00Z', '2025-02-28 2025-03-31'],
    [
      'R/2025-01-01T00:00:00Z/2025-02-01T00:00:00Z',
      '2025-03-04T00:00:00Z',
      '2025-03-04 2025-04-04',
    ],
    ['R/2025-05-20T00:00:00Z/P1M', '2025-05-19T23:59:59Z', 'not yet'],
    ['R3/2025-05-20T00:00:00Z/P1M', '2025-08-20T00:00:00Z', 'over'],
    ['R4/P1M/2025-05-31T00:00:00Z', '2025-05-31T00:00:00Z', 'over'],
    ['R4/P1M/2025-05-31T00:00:00Z', '2025-01-30T00:00:00Z', 'not yet'],
  ])('of %s at %s: %s', (text, when, window) => {
    expect(at(text, when)).toBe(window)
  })

  test('include one more if the wallet counts repetitions', () => {
    const text = 'R3/2025-05-20T00:00:00Z/P1M'
    expect(at(text, '2025-08-20T00:00:00Z', 'repetitions')).toBe('2025-08-20 2025-09-20')
    expect(at(text, '2025-09-20T00:00:00Z', 'repetitions')).toBe('over')
    expect(at('R/2025-05-20T00:00:00Z/P1M', '2035-05-20T00:00:00Z', 'repetitions')).toBe(
      '2035-05-20 2035-06-20',
    )
  })

  test('are those of the library, for every interval at every instant', () => {
    const { interval } = arbitraries(fc)
    // The model walks month by month, so it is slow for distant instants.
    const instant = fc.oneof(
      { weight: 1, arbitrary: fc.integer({ min: 0, max: 253_402_300_799_999 }) },
      {
        weight: 6,
        arbitrary: fc.integer({ min: startOfTests - 800 * day, max: startOfTests + 800 * day }),
      },
    )
    const counting = fc.constantFrom<IntervalCounting[]>('occurrences', 'repetitions')
    const texts = fc.oneof(interval(), interval(startOfTests))
    fc.assert(
      fc.property(texts, instant, counting, (text, at, counting) => {
        const parsed = parseInterval(text)
        if (!parsed.ok) throw new Error(parsed.problem)
        const turn = windowAt(text, at, counting)
        const window = libraryWindowAt(parsed.value, at, counting)
        expect(turn.ok ? turn.value : undefined).toEqual(window)
        // The edges themselves, where the library and its model could differ by one.
        for (const edge of window === undefined ? [] : [window.start, window.end - 1]) {
          if (edge >= 0 && edge <= 253_402_300_799_999) {
            expect(windowAt(text, edge, counting)).toEqual({ ok: true, value: window })
          }
        }
      }),
      { numRuns: runs(2_000) },
    )
  })
})
