import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { sleep, steadyClock } from '../../src/service/time.js'
import { manualClock } from '../support/clock.js'

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

describe('sleeping', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  async function isOver(sleeping: Promise<void>): Promise<boolean> {
    const pending = Symbol('pending')
    return (await Promise.race([sleeping, Promise.resolve(pending)])) !== pending
  }

  test.each([0, 1, 3_000, 60_000])('for %i ms ends at that time, not earlier', async (ms) => {
    const sleeping = sleep(ms)
    if (ms > 0) {
      await vi.advanceTimersByTimeAsync(ms - 1)
      expect(await isOver(sleeping)).toBe(false)
    }
    await vi.advanceTimersByTimeAsync(1)
    expect(await isOver(sleeping)).toBe(true)
  })

  test('ends when the signal is aborted, and leaves no timer behind', async () => {
    const controller = new AbortController()
    const sleeping = sleep(60_000, controller.signal)
    controller.abort()
    await sleeping
    expect(vi.getTimerCount()).toBe(0)
  })

  test('ends immediately if the signal is aborted already', async () => {
    await sleep(60_000, AbortSignal.abort())
    expect(vi.getTimerCount()).toBe(0)
  })

  test('for longer than the maximum of a timer does not end immediately', async () => {
    const sleeping = sleep(Number.MAX_SAFE_INTEGER)
    await vi.advanceTimersByTimeAsync(86_400_000)
    expect(await isOver(sleeping)).toBe(false)
  })
})
