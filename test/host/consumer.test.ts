import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import {
  consumeEvents,
  type DrainOptions,
  type EventHandler,
  type FailedDelivery,
  type ServerEvents,
} from '../../src/index.js'
import { invalidInput } from '../support/invalid-input.js'
import { paymentServices } from '../support/outbox.js'

type DrainResult = Awaited<ReturnType<ServerEvents['drain']>>

const nothing: DrainResult = { delivered: 0, failed: 0 }

/** Returns a source whose calls of `drain` return the results of a script, one after another. */
function scriptedSource(...script: readonly (() => Promise<DrainResult> | DrainResult)[]) {
  const calls: { handler: EventHandler; options: DrainOptions | undefined; at: number }[] = []
  const source: ServerEvents = {
    async drain(handler, options) {
      calls.push({ handler, options, at: Date.now() })
      return (await script[calls.length - 1]?.()) ?? nothing
    },
    backlog: async () => ({ waiting: 0, oldestAgeMs: 0, setAside: 0 }),
    listSetAside: async () => [],
    async *iterateSetAside() {},
    retry: async () => ({ ok: true, changed: false }),
    discard: async () => ({ ok: true, changed: false }),
  }
  return { source, calls }
}

describe('a consumer', () => {
  beforeEach(() => {
    vi.useFakeTimers()
  })

  afterEach(() => {
    vi.useRealTimers()
    vi.restoreAllMocks()
  })

  test('drains again immediately after a delivery, and otherwise after the poll interval', async () => {
    const { source, calls } = scriptedSource(
      () => ({ delivered: 100, failed: 0 }),
      () => ({ delivered: 1, failed: 3 }),
      () => nothing,
      () => ({ delivered: 0, failed: 2 }),
    )
    const start = Date.now()
    const consumer = consumeEvents([source], () => {}, { pollMs: 250 })
    await vi.advanceTimersByTimeAsync(600)
    await consumer.stop()
    expect(calls.map(({ at }) => at - start)).toEqual([0, 0, 0, 250, 500])
  })

  test('reports the errors of the handler to onFailure, else to onError, else it prints them', async () => {
    const failure = { error: new Error('the rail is down') } as FailedDelivery
    const reported: string[] = []
    vi.spyOn(console, 'error').mockImplementation((error) => {
      reported.push(`printed: ${error}`)
    })
    const onError = (error: unknown) => void reported.push(`onError: ${error}`)
    const onFailure = ({ error }: FailedDelivery) => void reported.push(`onFailure: ${error}`)
    for (const options of [{ onError }, { onError, onFailure }, {}]) {
      const { source, calls } = scriptedSource()
      const consumer = consumeEvents([source], () => {}, options)
      calls[0]?.options?.onFailure?.(failure)
      await consumer.stop()
    }
    expect(reported).toEqual([
      'onError: Error: the rail is down',
      'onFailure: Error: the rail is down',
      'printed: Error: the rail is down',
    ])
  })

  test('polls once a second by default', async () => {
    const { source, calls } = scriptedSource()
    const consumer = consumeEvents([source], () => {})
    await vi.advanceTimersByTimeAsync(2_999)
    expect(calls).toHaveLength(3)
    await consumer.stop()
  })

  test('passes its handler and its options to the source', async () => {
    const { source, calls } = scriptedSource()
    const handler = () => {}
    const options = { limit: 7, concurrency: 2, leaseMs: 5, attemptsMax: 3, pollMs: 10 }
    const consumer = consumeEvents([source], handler, options)
    await vi.advanceTimersByTimeAsync(0)
    await consumer.stop()
    expect(calls[0]?.handler).toBe(handler)
    const own = { onFailure: expect.any(Function), signal: expect.any(AbortSignal) }
    expect(calls[0]?.options).toMatchObject({ ...options, ...own })
  })

  test('continues after the store fails, and reports the error', async () => {
    const away = new Error('the store is away')
    const fail = () => Promise.reject(away)
    const { source, calls } = scriptedSource(fail, fail, () => nothing)
    const errors: unknown[] = []
    const onError = (error: unknown) => void errors.push(error)
    const consumer = consumeEvents([source], () => {}, { pollMs: 100, onError })
    await vi.advanceTimersByTimeAsync(250)
    expect(errors).toEqual([away, away])
    expect(calls).toHaveLength(3)
    await consumer.stop()
  })

  test('continues after the store fails without an error callback', async () => {
    const printed = vi.spyOn(console, 'error').mockReturnValue()
    const { source, calls } = scriptedSource(() => Promise.reject(new Error('away')))
    const consumer = consumeEvents([source], () => {}, { pollMs: 100 })
    await vi.advanceTimersByTimeAsync(150)
    expect(calls).toHaveLength(2)
    expect(printed.mock.calls.map(([error]) => `${error}`)).toEqual(['Error: away'])
    await consumer.stop()
  })

  test('continues after its callback for errors throws', async () => {
    const { source, calls } = scriptedSource(() => Promise.reject(new Error('away')))
    const onError = () => {
      throw new Error('the log is full')
    }
    const consumer = consumeEvents([source], () => {}, { pollMs: 100, onError })
    await vi.advanceTimersByTimeAsync(250)
    expect(calls).toHaveLength(3)
    expect(await consumer.stop()).toBe(true)
  })

  test('does not let one source delay another', async () => {
    const stuck = scriptedSource(() => new Promise<DrainResult>(() => {}))
    const free = scriptedSource(() => ({ delivered: 1, failed: 0 }))
    consumeEvents([stuck.source, free.source], () => {}, { pollMs: 100 })
    await vi.advanceTimersByTimeAsync(250)
    expect(stuck.calls).toHaveLength(1)
    expect(free.calls).toHaveLength(4)
  })

  test('stops immediately while it waits, and leaves no timer behind', async () => {
    const { source, calls } = scriptedSource()
    const consumer = consumeEvents([source, source], () => {})
    await vi.advanceTimersByTimeAsync(0)
    await consumer.stop()
    expect(vi.getTimerCount()).toBe(0)
    await vi.advanceTimersByTimeAsync(10_000)
    expect(calls).toHaveLength(2)
    await consumer.stop()
  })

  test('stops only after the deliveries in progress end', async () => {
    let finish = () => {}
    const { source, calls } = scriptedSource(
      () =>
        new Promise((resolve) => {
          finish = () => resolve({ delivered: 5, failed: 0 })
        }),
    )
    const consumer = consumeEvents([source], () => {})
    await vi.advanceTimersByTimeAsync(0)
    let stopped = false
    const stopping = consumer.stop().then(() => {
      stopped = true
    })
    await vi.advanceTimersByTimeAsync(5_000)
    expect(calls[0]?.options?.signal?.aborted).toBe(true)
    expect(stopped).toBe(false)
    finish()
    await stopping
    expect(calls).toHaveLength(1)
  })

  test('ends with the block that declares it by await using', async () => {
    const { source, calls } = scriptedSource()
    {
      await using consumer = consumeEvents([source], () => {}, { pollMs: 10 })
      expect(consumer.stop).toBeTypeOf('function')
      await vi.advanceTimersByTimeAsync(10)
    }
    await vi.advanceTimersByTimeAsync(10_000)
    expect(calls).toHaveLength(2)
    expect(vi.getTimerCount()).toBe(0)
  })

  test('stops after a bounded time although a delivery does not end, and says so', async () => {
    const stuck = scriptedSource(() => new Promise<DrainResult>(() => {}))
    const consumer = consumeEvents([stuck.source], () => {})
    await vi.advanceTimersByTimeAsync(0)
    const ended: boolean[] = []
    void consumer.stop({ timeoutMs: 300 }).then((each) => ended.push(each))
    await vi.advanceTimersByTimeAsync(299)
    expect(ended).toEqual([])
    await vi.advanceTimersByTimeAsync(1)
    expect(ended).toEqual([false])
    const byDefault = consumer.stop()
    await vi.advanceTimersByTimeAsync(10_000)
    expect(await byDefault).toBe(false)
  })

  test('refuses a time-out of 0 and goes on', async () => {
    const { source, calls } = scriptedSource()
    const consumer = consumeEvents([source], () => {}, { pollMs: 100 })
    await expect(consumer.stop({ timeoutMs: 0 })).rejects.toEqual(invalidInput('timeoutMs'))
    await vi.advanceTimersByTimeAsync(100)
    expect(calls).toHaveLength(2)
    expect(await consumer.stop()).toBe(true)
    expect(vi.getTimerCount()).toBe(0)
  })

  test('throws immediately for sources or a handler that it cannot use', () => {
    const { source, calls } = scriptedSource()
    for (const [sources, handler, argument] of [
      [undefined, () => {}, 'sources'],
      [source, () => {}, 'sources'],
      [[source, null], () => {}, 'sources.1'],
      [[{}], () => {}, 'sources.0.drain'],
      [[source], undefined, 'handler'],
      [[source], { handle: () => {} }, 'handler'],
    ] as const) {
      const consume = () => consumeEvents(sources as never, handler as never)
      const error = invalidInput(argument)
      expect(consume).toThrow(error)
    }
    expect(calls).toHaveLength(0)
  })

  test('throws immediately for a callback for errors that is not a function', () => {
    const consume = () => consumeEvents([], () => {}, { onError: 'log' as never })
    expect(consume).toThrow(invalidInput('onError'))
  })

  test.each(['pollMs', 'limit', 'concurrency'])('throws immediately for a %s of 0', (option) => {
    const { source, calls } = scriptedSource()
    const consume = () => consumeEvents([source], () => {}, { [option]: 0 })
    expect(consume).toThrow(invalidInput(option))
    expect(calls).toHaveLength(0)
  })
})

describe('several consumers of one outbox', () => {
  test('deliver each event once until they are stopped', async () => {
    const setup = paymentServices()
    const heard: string[] = []
    let enough = () => {}
    const heardAll = new Promise<void>((resolve) => {
      enough = resolve
    })
    const handler: EventHandler = async ({ id }) => {
      heard.push(id)
      if (heard.length === 12) enough()
    }
    const consumers = [1, 2, 3].map(() => consumeEvents([setup.outbox], handler, { pollMs: 1 }))
    for (let record = 0; record < 3; record++) {
      const id = await setup.newPayment()
      for (let i = 0; i < 3; i++) await setup.receive(id)
    }
    await heardAll
    await Promise.all(consumers.map((consumer) => consumer.stop()))
    expect(new Set(heard).size).toBe(12)
    await setup.newPayment()
    expect(heard).toHaveLength(12)
  })
})
