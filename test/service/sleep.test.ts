import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { sleep } from '../../src/service/sleep.js'

describe('sleeping', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  async function isOver(sleeping: Promise<void>): Promise<boolean> {
    const pending = Symbol('pending')
    return (await Promise.race([sleeping, Promise.resolve(pending)])) !== pending
  }

  test.each([0, 1, 3_000, 60_000])('for %i ms ends then, and not sooner', async (ms) => {
    const sleeping = sleep(ms)
    if (ms > 0) {
      await vi.advanceTimersByTimeAsync(ms - 1)
      expect(await isOver(sleeping)).toBe(false)
    }
    await vi.advanceTimersByTimeAsync(1)
    expect(await isOver(sleeping)).toBe(true)
  })

  test('ends when the signal is given, and leaves no timer behind', async () => {
    const controller = new AbortController()
    const sleeping = sleep(60_000, controller.signal)
    controller.abort()
    await sleeping
    expect(vi.getTimerCount()).toBe(0)
  })

  test('does not begin when the signal was given before', async () => {
    await sleep(60_000, AbortSignal.abort())
    expect(vi.getTimerCount()).toBe(0)
  })

  test('for longer than a timer can be set for does not end at once', async () => {
    const sleeping = sleep(Number.MAX_SAFE_INTEGER)
    await vi.advanceTimersByTimeAsync(86_400_000)
    expect(await isOver(sleeping)).toBe(false)
  })
})
