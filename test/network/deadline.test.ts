import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { withDeadline } from '../../src/network/deadline.js'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

describe('a deadline', () => {
  test('rejects work that ignores its signal', async () => {
    const late = withDeadline(1_000, () => new Promise(() => undefined)).catch((error) => error)
    await vi.advanceTimersByTimeAsync(1_000)
    expect(await late).toMatchObject({ name: 'TimeoutError' })
  })

  test('rejects with the reason of the signal of the caller, before or during the work', async () => {
    const outer = new AbortController()
    const work = vi.fn(() => new Promise(() => undefined))
    const ended = withDeadline(1_000, work, outer.signal).catch((error) => error)
    outer.abort('stopped')
    expect(await ended).toBe('stopped')
    await expect(withDeadline(1_000, work, outer.signal)).rejects.toBe('stopped')
    expect(work).toHaveBeenCalledOnce()
  })

  test('leaves neither a timer nor a listener behind', async () => {
    const outer = new AbortController()
    const remove = vi.spyOn(outer.signal, 'removeEventListener')
    expect(await withDeadline(1_000, async () => 'done', outer.signal)).toBe('done')
    expect(remove).toHaveBeenCalledOnce()
    expect(vi.getTimerCount()).toBe(0)
  })
})
