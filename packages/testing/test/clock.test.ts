import fc from 'fast-check'
import { expect, test } from 'vitest'
import { manualClock, startOfTests } from '../src/index.js'

test('a manual clock stands at the start of tests until it is moved', () => {
  const clock = manualClock()
  expect(clock.now()).toBe(startOfTests)
  expect(clock.now()).toBe(startOfTests)
  expect(new Date(startOfTests).toISOString()).toBe('2026-11-21T12:00:00.000Z')
})

test('a manual clock shows the last set instant plus the advances since then', () => {
  const instant = fc.integer({ min: -1e15, max: 1e15 })
  const moves = fc.array(fc.record({ set: fc.boolean(), by: instant }), { maxLength: 20 })
  fc.assert(
    fc.property(instant, moves, (start, all) => {
      const clock = manualClock(start)
      let expected = start
      for (const { set, by } of all) {
        if (set) clock.set(by)
        else clock.advance(by)
        expected = set ? by : expected + by
        expect(clock.now()).toBe(expected)
      }
    }),
  )
})

test('manual clocks are independent of each other', () => {
  const [one, other] = [manualClock(5), manualClock(5)]
  one.advance(10)
  expect([one.now(), other.now()]).toEqual([15, 5])
})
