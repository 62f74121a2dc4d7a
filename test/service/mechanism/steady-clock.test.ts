import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { steadyClock } from '../../../src/service/mechanism/steady-clock.js'
import { manualClock } from '../../support/clock.js'

function setUp() {
  const clock = manualClock(1_000_000)
  const reports: { readonly code: string; readonly message: string }[] = []
  const steady = steadyClock(clock, (error) => void reports.push(error))
  steady.now()
  return { clock, steady, reports }
}

describe('a clock that goes back', () => {
  test('by up to 60 s stands still until it has caught up', () => {
    const { clock, steady, reports } = setUp()
    clock.advance(-60_000)
    expect(steady.now()).toBe(1_000_000)
    clock.advance(59_999)
    expect(steady.now()).toBe(1_000_000)
    clock.advance(2)
    expect(steady.now()).toBe(1_000_001)
    expect(reports).toEqual([])
  })

  test('by more is followed and reported once', () => {
    const { clock, steady, reports } = setUp()
    clock.advance(-60_001)
    expect([steady.now(), steady.now()]).toEqual([939_999, 939_999])
    expect(reports).toMatchObject([
      { code: 'ERR_CLOCK', message: 'the clock went back by 60001 ms' },
    ])
  })

  test('is never earlier than before, and at most 60 s ahead', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: -20_000, max: 20_000 })), (steps) => {
        const { clock, steady } = setUp()
        let before = steady.now()
        for (const step of steps) {
          clock.advance(step)
          const now = steady.now()
          if (before - clock.now() <= 60_000) expect(now).toBeGreaterThanOrEqual(before)
          expect(now - clock.now()).toBeGreaterThanOrEqual(0)
          expect(now - clock.now()).toBeLessThanOrEqual(60_000)
          before = now
        }
      }),
    )
  })
})
