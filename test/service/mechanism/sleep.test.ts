import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { sleep } from '../../../src/service/mechanism/sleep.js'

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
