import { describe, expect, test, vi } from 'vitest'
import { runSweeps, type SweepOptions } from '../../src/index.js'
import { invalidInput } from '../support/invalid-input.js'

/** A server with this many calls of `sweep` to do. */
function serverWith(calls: number) {
  const given: SweepOptions[] = []
  const server: Parameters<typeof runSweeps>[0][number] = {
    async sweep(options = {}) {
      given.push(options)
      return { more: given.length < calls }
    },
  }
  return { server, given }
}

/** Randomness that returns one byte. */
const constant = (byte: number) => ({
  getRandomValues: (array: Uint8Array) => array.fill(byte),
})

describe('running sweeps', () => {
  test('repeats the sweep of each server until no more records are due', async () => {
    const [one, two] = [serverWith(3), serverWith(1)]
    const runner = runSweeps([one.server, two.server], { limit: 7, everyMs: 1_000_000 })
    await expect.poll(() => two.given.length).toBe(1)
    await runner.stop()
    expect(one.given.map(({ limit }) => limit)).toEqual([7, 7, 7])
    expect(two.given).toHaveLength(1)
  })

  test('passes errors on, and sweeps the other servers and the same one in the next run', async () => {
    const errors: unknown[] = []
    let calls = 0
    const failing: Parameters<typeof runSweeps>[0][number] = {
      async sweep() {
        calls += 1
        throw new Error(`error ${calls}`)
      },
    }
    const { server, given } = serverWith(1)
    const onError = (error: unknown) => void errors.push(error)
    const runner = runSweeps([failing, server], { everyMs: 1, onError, random: constant(0) })
    await expect.poll(() => calls).toBeGreaterThan(2)
    await runner.stop()
    expect(errors).toHaveLength(calls)
    expect(given.length).toBeGreaterThan(1)
  })

  test('goes on if the callback for errors throws', async () => {
    let calls = 0
    const failing: Parameters<typeof runSweeps>[0][number] = {
      sweep: () => Promise.reject(new Error(`error ${++calls}`)),
    }
    const onError = () => {
      throw new Error('the log is full')
    }
    const runner = runSweeps([failing], { everyMs: 1, onError, random: constant(0) })
    await expect.poll(() => calls).toBeGreaterThan(2)
    await runner.stop()
  })

  test.each([
    [0, 500],
    [255, 1_500],
  ])(
    'waits between half and one and a half times the interval: byte %i, %i ms',
    async (byte, ms) => {
      vi.useFakeTimers()
      try {
        const { server, given } = serverWith(0)
        const runner = runSweeps([server], { everyMs: 1_000, random: constant(byte) })
        await vi.advanceTimersByTimeAsync(ms - 1)
        expect(given).toHaveLength(1)
        await vi.advanceTimersByTimeAsync(1)
        expect(given).toHaveLength(2)
        await runner.stop()
      } finally {
        vi.useRealTimers()
      }
    },
  )

  test('stops after the current call, whose signal it aborts, and starts no other', async () => {
    let end = () => {}
    const given: SweepOptions[] = []
    const server: Parameters<typeof runSweeps>[0][number] = {
      sweep(options = {}) {
        given.push(options)
        return new Promise((resolve) => {
          end = () => resolve({ more: true })
        })
      },
    }
    const runner = runSweeps([server, server])
    let stopped = false
    const stopping = runner.stop().then(() => {
      stopped = true
    })
    expect(given[0]?.signal?.aborted).toBe(true)
    await Promise.resolve()
    expect(stopped).toBe(false)
    end()
    await stopping
    expect(given).toHaveLength(1)
  })

  test('ends with the block that declares it by await using', async () => {
    const signals: (AbortSignal | undefined)[] = []
    const sweep = async ({ signal }: SweepOptions = {}) => {
      signals.push(signal)
      return { more: !signal?.aborted }
    }
    {
      await using runner = runSweeps([{ sweep }])
      expect(runner.stop).toBeTypeOf('function')
    }
    const { length } = signals
    expect(signals.at(-1)?.aborted).toBe(true)
    await new Promise((resolve) => setImmediate(resolve))
    expect(signals).toHaveLength(length)
  })

  test.each([
    [{ everyMs: 0 }, 'everyMs'],
    [{ limit: 0 }, 'limit'],
    [{ limit: 10_001 }, 'limit'],
    [{ evryMs: 1 }, 'evryMs'],
    [{ random: {} }, 'random'],
    [{ onError: 'log' }, 'onError'],
  ])('refuses the options %j', (options, path) => {
    const run = () => runSweeps([serverWith(1).server], options as object)
    expect(run).toThrow(invalidInput(path))
  })

  test('refuses servers without sweep', () => {
    expect(() => runSweeps([{}] as never)).toThrow(invalidInput('servers.0.sweep'))
    expect(() => runSweeps(undefined as never)).toThrow(invalidInput('servers'))
  })
})
