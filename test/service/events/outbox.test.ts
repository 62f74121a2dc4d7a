import fc, { type Scheduler } from 'fast-check'
import { describe, expect, test, vi } from 'vitest'
import { commitSizeOf } from '../../../packages/testing/src/conformance/trial.js'
import { type Commit, storeBounds } from '../../../src/entry-adapter.js'
import {
  type DrainOptions,
  type EventHandler,
  type FailedDelivery,
  memoryStore,
  type Store,
} from '../../../src/index.js'
import type { EventRecord } from '../../../src/service/events/record.js'
import { type ManualClock, manualClock } from '../../support/clock.js'
import { invalidInput } from '../../support/invalid-input.js'
import { loadOne, removeOne } from '../../support/one-record.js'
import { paymentServices, positionOf, type Setup, withEventLog } from '../../support/outbox.js'
import { fates, lyingStore } from '../../support/proxy-store.js'
import { runs } from '../../support/runs.js'

const second = 1_000

/** Returns a handler that records the positions of the events it receives, and throws if `fails` returns true. */
function listener(fails: (event: { readonly id: string; readonly type: string }) => boolean) {
  const heard: string[] = []
  const handler: EventHandler = (event) => {
    if (fails(event)) throw new Error(`cannot hear of ${event.type}`)
    heard.push(positionOf(event.id))
  }
  return { heard, handler }
}

const never = () => false

/** Returns a promise that resolves when the test calls `open`. */
function gate() {
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { open, opened }
}

/** Returns the events in the store, in the order of their records. */
async function stored({ store, context }: Setup): Promise<readonly EventRecord[]> {
  const namespace = await context.namespace()
  return (await store.due('event', namespace, Number.MAX_SAFE_INTEGER, 10_000)) as EventRecord[]
}

/** Drains until no event is due. */
async function drainAll({ outbox }: Setup, handler: EventHandler): Promise<void> {
  for (let more = true; more; ) {
    const { delivered, failed } = await outbox.drain(handler)
    more = delivered + failed > 0
  }
}

describe('draining', () => {
  test('delivers more events of one record in one call than it reads at a time', async () => {
    const setup = paymentServices()
    const id = await setup.newPayment()
    for (let i = 0; i < 50; i++) await setup.receive(id)
    const versions: number[] = []
    const handler: EventHandler = (event) => void versions.push(Number(event.id.split('.')[2]))
    expect(await setup.outbox.drain(handler)).toEqual({ delivered: 51, failed: 0 })
    expect(versions).toEqual(Array.from({ length: 51 }, (_, index) => index + 1))
  })

  test('is complete when a call delivers nothing, also of the events that handlers cause', async () => {
    const setup = paymentServices()
    await setup.newPayment()
    let caused = 0
    const causing: EventHandler = async () => {
      if (caused++ < 3) await setup.newPayment()
    }
    expect(await setup.outbox.drain(causing)).toEqual({ delivered: 1, failed: 0 })
    while ((await setup.outbox.drain(causing)).delivered > 0);
    expect([caused, await stored(setup)]).toEqual([4, []])
  })

  test('delivers no event of another server on the same store', async () => {
    const one = paymentServices()
    const { store, clock } = one
    const other = paymentServices({ store, clock, serverUrl: 'https://other.example' })
    const id = await one.newPayment()
    const { heard, handler } = listener(never)
    expect(await other.outbox.drain(handler)).toEqual({ delivered: 0, failed: 0 })
    expect(await one.outbox.drain(handler)).toEqual({ delivered: 1, failed: 0 })
    expect(heard).toEqual([`${id}.incoming-payment.1.1`])
  })

  test('delivers a new event immediately if the clock of the consumer is 120 s behind', async () => {
    const ahead = paymentServices({ clock: manualClock(manualClock().now() + 120 * second) })
    const behind = paymentServices({ store: ahead.store, seed: 'another' })
    await ahead.newPayment()
    expect(await behind.outbox.drain(listener(never).handler)).toEqual({ delivered: 1, failed: 0 })
  })

  test('is done by one consumer at a time if their clocks differ by 120 s', async () => {
    const behind = paymentServices()
    await behind.newPayment()
    const clock = manualClock(behind.clock.now() + 120 * second)
    const ahead = paymentServices({ store: behind.store, clock, seed: 'another' })
    const options = { skewMaxMs: 120 * second }
    const { open, opened } = gate()
    const handling = behind.outbox.drain(() => opened, options)
    clock.advance(60 * second - 1)
    const { heard, handler } = listener(never)
    for (let turn = 0; turn < 3; turn++) await ahead.outbox.drain(handler, options)
    expect(heard).toEqual([])
    open()
    expect(await handling).toEqual({ delivered: 1, failed: 0 })
  })

  test('passes the event with its id, and the number of the attempt, to the handler', async () => {
    const setup = paymentServices()
    const id = await setup.newPayment('5')
    const told: unknown[] = []
    await setup.outbox.drain((event, delivery) => void told.push([event, delivery]))
    const event = {
      id: expect.stringMatching(`^${id}\\.incoming-payment\\.1\\.1\\.`),
      type: 'incoming-payment.created',
      at: setup.clock.now(),
      incomingPaymentId: id,
      walletAddress: 'https://wallet.example/bob',
      client: 'https://shop.example',
      receivedAmount: { value: '0', assetCode: 'USD', assetScale: 2 },
      incomingAmount: { value: '5', assetCode: 'USD', assetScale: 2 },
      server: 'https://wallet.example/op',
    }
    expect(told).toEqual([[event, { attempt: 1, signal: expect.any(AbortSignal) }]])
  })

  test('rejects a handler that is not a function, and starts no delivery', async () => {
    const setup = paymentServices()
    await setup.newPayment()
    for (const handler of [undefined, null, {}, 'handle']) {
      const error = invalidInput('handler')
      await expect(setup.outbox.drain(handler as never)).rejects.toEqual(error)
    }
    expect(await stored(setup)).toMatchObject([{ attempts: 0 }])
  })

  const numbers = ['limit', 'concurrency', 'leaseMs', 'backoffMs', 'backoffMaxMs', 'attemptsMax']

  test.each([...numbers, 'skewMaxMs'])(
    'rejects a %s that is no positive integer',
    async (option) => {
      const { outbox } = paymentServices()
      // Clocks that never differ need no time.
      const none = option === 'skewMaxMs' ? [] : [0]
      for (const value of [...none, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY]) {
        const drained = outbox.drain(() => {}, { [option]: value })
        await expect(drained).rejects.toEqual(invalidInput(option))
      }
    },
  )

  test('rejects an option that it does not have', async () => {
    const drained = paymentServices().outbox.drain(() => {}, { limits: 1 } as DrainOptions)
    await expect(drained).rejects.toEqual(invalidInput('limits'))
  })

  test('rejects with the error of the store, and delivers the event again after its lease ends', async () => {
    const setup = paymentServices()
    await setup.newPayment()
    const failing: Store = {
      ...setup.store,
      remove: async () => {
        throw new Error('the store is away')
      },
    }
    const { store: _store, ...rest } = setup
    const troubled = paymentServices({ ...rest, store: failing, seed: 'troubled' })
    const { heard, handler } = listener(never)
    await expect(troubled.outbox.drain(handler)).rejects.toThrow('the store is away')
    await drainAll(setup, handler)
    expect(heard).toHaveLength(1)
    setup.clock.advance(60 * second)
    await drainAll(setup, handler)
    expect(heard).toHaveLength(2)
    expect(await stored(setup)).toEqual([])
  })
})

describe('a handler that fails', () => {
  test('receives the event again after delays that double up to the maximum', async () => {
    const setup = paymentServices()
    await setup.newPayment()
    const failures: FailedDelivery[] = []
    const options = { backoffMs: 100, backoffMaxMs: 500, onFailure: failures.push.bind(failures) }
    const waits: number[] = []
    let failedAt = setup.clock.now()
    while (failures.length < 6) {
      const { failed } = await setup.outbox.drain(() => Promise.reject(new Error('no')), options)
      if (failed > 0) {
        waits.push(setup.clock.now() - failedAt)
        failedAt = setup.clock.now()
        expect(failures.at(-1)?.retryAt).toBeGreaterThan(failedAt)
      }
      setup.clock.advance(50)
    }
    expect(waits).toEqual([0, 100, 200, 400, 500, 500])
    expect(failures.map(({ attempt }) => attempt)).toEqual([1, 2, 3, 4, 5, 6])
  })

  test('causes the event to be set aside after the last attempt, and the later events are delivered', async () => {
    const setup = paymentServices()
    const id = await setup.newPayment()
    await setup.receive(id)
    const failures: FailedDelivery[] = []
    const options = { attemptsMax: 3, onFailure: failures.push.bind(failures) }
    const { heard, handler } = listener(({ type }) => type === 'incoming-payment.created')
    for (let attempt = 1; attempt <= 3; attempt++) {
      expect(await setup.outbox.drain(handler, options)).toEqual({ delivered: 0, failed: 1 })
      setup.clock.advance(60 * second)
    }
    expect(failures.map(({ attempt, retryAt }) => [attempt, retryAt === undefined])).toEqual([
      [1, false],
      [2, false],
      [3, true],
    ])
    expect(failures.at(-1)?.error).toEqual(new Error('cannot hear of incoming-payment.created'))
    expect(failures.at(-1)).not.toHaveProperty('retryAt')
    expect(await setup.outbox.drain(handler, options)).toEqual({ delivered: 1, failed: 0 })
    expect(heard).toEqual([`${id}.incoming-payment.2.1`])
    expect(await setup.outbox.listSetAside()).toEqual([
      {
        event: expect.objectContaining({
          id: expect.stringMatching(`^${id}\\.incoming-payment\\.1\\.1\\.`),
          type: 'incoming-payment.created',
        }),
        attempts: 3,
        setAsideAt: setup.clock.now() - 60 * second,
      },
    ])
  })

  test('leaves events in the backlog until they are delivered or set aside', async () => {
    const setup = paymentServices()
    expect(await setup.outbox.backlog()).toEqual({ waiting: 0, oldestAgeMs: 0, setAside: 0 })
    const id = await setup.newPayment()
    setup.clock.advance(30 * second)
    await setup.receive(id)
    const waiting = { waiting: 2, oldestAgeMs: 30 * second, setAside: 0 }
    expect(await setup.outbox.backlog()).toEqual(waiting)
    expect(await setup.outbox.backlog(1)).toMatchObject({ waiting: 1 })
    await expect(setup.outbox.backlog(0)).rejects.toThrow('limit')
    const { handler } = listener(({ type }) => type === 'incoming-payment.created')
    await setup.outbox.drain(handler, { attemptsMax: 2 })
    expect(await setup.outbox.backlog()).toEqual(waiting) // it is due again later
    setup.clock.advance(60 * second)
    await setup.outbox.drain(handler, { attemptsMax: 2 })
    expect(await setup.outbox.backlog()).toMatchObject({ waiting: 1, setAside: 1 })
    await setup.outbox.drain(handler)
    expect(await setup.outbox.backlog()).toEqual({ waiting: 0, oldestAgeMs: 0, setAside: 1 })
  })

  test('does not delay other records, however many events its own record has', async () => {
    const setup = paymentServices()
    const stuck = await setup.newPayment()
    for (let i = 0; i < 250; i++) await setup.receive(stuck)
    const { heard, handler } = listener(
      ({ id }) => positionOf(id) === `${stuck}.incoming-payment.1.1`,
    )
    await setup.outbox.drain(handler, { backoffMs: 10 * second })
    setup.clock.advance(1)
    const free = await setup.newPayment()
    for (let calls = 0; calls < 4; calls++) await setup.outbox.drain(handler)
    expect(heard).toEqual([`${free}.incoming-payment.1.1`])
    // The delayed events are delivered too.
    setup.clock.advance(10 * second)
    const healed = listener(never)
    await drainAll(setup, healed.handler)
    const versions = healed.heard.map((id) => Number(id.split('.')[2]))
    expect(versions).toEqual(Array.from({ length: 251 }, (_, index) => index + 1))
  })

  test('times out at the end of the lease if it never returns, and delays no other record', async () => {
    vi.useFakeTimers()
    const setup = paymentServices()
    const stuck = await setup.newPayment()
    const free = await setup.newPayment()
    const failures: FailedDelivery[] = []
    const signals: AbortSignal[] = []
    const heard: string[] = []
    const handler: EventHandler = ({ id }, { signal }) => {
      if (!id.startsWith(stuck)) return void heard.push(positionOf(id))
      signals.push(signal)
      return new Promise<void>(() => {})
    }
    const onFailure = failures.push.bind(failures)
    const draining = setup.outbox.drain(handler, { leaseMs: second, backoffMs: 5, onFailure })
    await vi.advanceTimersByTimeAsync(second - 1)
    expect([heard.length, signals[0]?.aborted, failures.length]).toEqual([1, false, 0])
    await vi.advanceTimersByTimeAsync(1)
    expect(await draining).toEqual({ delivered: 1, failed: 1 })
    expect([vi.getTimerCount(), signals[0]?.aborted]).toEqual([0, true])
    vi.useRealTimers()
    expect(heard).toEqual([`${free}.incoming-payment.1.1`])
    expect(failures).toMatchObject([
      {
        attempt: 1,
        error: new Error('the handler did not finish within 1000 ms'),
        retryAt: expect.anything(),
      },
    ])

    setup.clock.advance(5)
    const again = listener(never)
    expect(await setup.outbox.drain(again.handler)).toEqual({ delivered: 1, failed: 0 })
    expect(again.heard).toEqual([`${stuck}.incoming-payment.1.1`])
  })

  /** Delivers one event in a process that stops for good during the delivery, and ends the lease. */
  async function crash(setup: Setup, options: DrainOptions): Promise<void> {
    const { open, opened } = gate()
    const handler = () => {
      open()
      return new Promise<void>(() => {})
    }
    void setup.outbox.drain(handler, options)
    await opened
    setup.clock.advance(second)
  }

  test('causes the event to be set aside if it crashes the process at each attempt', async () => {
    const setup = paymentServices()
    const id = await setup.newPayment()
    await setup.receive(id)
    const options = { attemptsMax: 3, leaseMs: second }
    for (let process = 1; process <= 3; process++) await crash(setup, options)
    const failures: FailedDelivery[] = []
    const { heard, handler } = listener(never)
    const survivor = { ...options, onFailure: failures.push.bind(failures) }
    expect(await setup.outbox.drain(handler, survivor)).toEqual({ delivered: 0, failed: 1 })
    expect(await setup.outbox.drain(handler, survivor)).toEqual({ delivered: 1, failed: 0 })
    expect(heard).toEqual([`${id}.incoming-payment.2.1`])
    expect(failures).toEqual([
      expect.objectContaining({
        attempt: 3,
        error: new Error('the last delivery started but did not finish'),
      }),
    ])
    expect(failures[0]).not.toHaveProperty('retryAt')
    expect(await setup.outbox.listSetAside()).toMatchObject([{ attempts: 3 }])
  })

  test('causes one failure if two consumers set its event aside at the same time', async () => {
    const setup = paymentServices()
    const { store, clock } = setup
    const other = paymentServices({ store, clock, seed: 'other' })
    await setup.newPayment()
    const options = { attemptsMax: 1, leaseMs: second }
    await crash(setup, options)
    const { heard, handler } = listener(never)
    const drained = await Promise.all(
      [setup, other].map(({ outbox }) => outbox.drain(handler, options)),
    )
    expect(drained).toEqual([
      { delivered: 0, failed: 1 },
      { delivered: 0, failed: 0 },
    ])
    expect(heard).toEqual([])
    expect(await setup.outbox.listSetAside()).toHaveLength(1)
  })
})

describe('a handler that succeeds', () => {
  test('leaves no timer behind, and its signal is not aborted', async () => {
    vi.useFakeTimers()
    const setup = paymentServices()
    await setup.newPayment()
    const signals: AbortSignal[] = []
    await setup.outbox.drain((_event, { signal }) => void signals.push(signal))
    const timers = vi.getTimerCount()
    await vi.advanceTimersByTimeAsync(60 * second)
    vi.useRealTimers()
    expect([timers, signals.map(({ aborted }) => aborted)]).toEqual([0, [false]])
  })
})

describe('an event that is set aside', () => {
  async function withOneSetAside() {
    const setup = paymentServices()
    const id = await setup.newPayment()
    const reject = () => Promise.reject(new Error('no'))
    await setup.outbox.drain(reject, { attemptsMax: 1 })
    const [setAside] = await setup.outbox.listSetAside()
    return { ...setup, eventId: setAside?.event.id ?? '', paymentId: id }
  }

  const unknownEvent = {
    ok: false,
    refusal: 'event_unknown',
    reason: 'no event with this id is set aside',
  }

  test('is delivered again on retry, before the later events of its record', async () => {
    const setup = await withOneSetAside()
    await setup.receive(setup.paymentId)
    expect(await setup.outbox.retry(setup.eventId)).toEqual({ ok: true, changed: true })
    expect(await setup.outbox.listSetAside()).toEqual([])
    const attempts: number[] = []
    const { heard, handler } = listener(never)
    await setup.outbox.drain((event, delivery) => {
      attempts.push(delivery.attempt)
      return handler(event, delivery)
    })
    const place = `${setup.paymentId}.incoming-payment`
    expect(heard).toEqual([`${place}.1.1`, `${place}.2.1`])
    expect(attempts).toEqual([1, 1])
    expect(await setup.outbox.retry(setup.eventId)).toEqual(unknownEvent)
  })

  test.each(fates)('is scheduled once on retry, also if its commit %s', async (fate) => {
    const setup = await withOneSetAside()
    const { store, clock } = setup
    let commits = 0
    const { store: lying } = lyingStore(store, (method) =>
      method === 'commit' && ++commits === 1 ? fate : 'works',
    )
    const { outbox } = paymentServices({ store: lying, clock, seed: 'other' })
    expect(await outbox.retry(setup.eventId)).toEqual({ ok: true, changed: true })
    expect(await setup.outbox.drain(listener(never).handler)).toEqual({ delivered: 1, failed: 0 })
  })

  test('stays removed if it is discarded and scheduled at the same time', async () => {
    const setup = await withOneSetAside()
    const { store, clock, eventId } = setup
    const late: Store = {
      ...store,
      async commit(commit) {
        await setup.outbox.discard(eventId)
        return store.commit(commit)
      },
    }
    const { outbox } = paymentServices({ store: late, clock, seed: 'other' })
    expect(await outbox.retry(eventId)).toEqual({ ok: true, changed: false })
    expect(await stored(setup)).toEqual([])
  })

  test('is removed on discard', async () => {
    const setup = await withOneSetAside()
    expect(await setup.outbox.discard(setup.eventId)).toEqual({ ok: true, changed: true })
    expect(await setup.outbox.discard(setup.eventId)).toEqual(unknownEvent)
    expect(await setup.outbox.retry(setup.eventId)).toEqual(unknownEvent)
    expect(await setup.outbox.listSetAside()).toEqual([])
    expect(await stored(setup)).toEqual([])
  })

  test('is neither delivered nor removed, however much time passes', async () => {
    const setup = await withOneSetAside()
    setup.clock.advance(10 * 365 * 86_400 * second)
    const { heard, handler } = listener(never)
    await drainAll(setup, handler)
    await setup.sweep()
    expect(heard).toEqual([])
    expect(await setup.outbox.listSetAside()).toHaveLength(1)
  })

  test.each(['retry', 'discard'] as const)(
    'is the only kind of event that %s accepts',
    async (action) => {
      const setup = await withOneSetAside()
      await setup.receive(setup.paymentId)
      const [waiting] = await stored(setup)
      expect(await setup.outbox[action](waiting?.id ?? '')).toEqual(unknownEvent)
      expect(await setup.outbox[action]('no such event')).toEqual(unknownEvent)
      const { store, clock } = setup
      const other = paymentServices({ store, clock, serverUrl: 'https://other.example' })
      expect(await other.outbox[action](setup.eventId)).toEqual(unknownEvent)
      expect(await other.outbox.listSetAside()).toEqual([])
      expect(await setup.outbox.listSetAside()).toHaveLength(1)
      expect(await stored(setup)).toHaveLength(1)
    },
  )

  test('is found in a loop over all of them, which may retry and discard', async () => {
    const setup = paymentServices()
    const ids: string[] = []
    for (let i = 0; i < 120; i++) {
      ids.push(`${await setup.newPayment()}.incoming-payment.1.1`)
      setup.clock.advance(1)
      await setup.outbox.drain(() => Promise.reject(new Error('no')), { attemptsMax: 1 })
    }
    const found: string[] = []
    for await (const { event, attempts } of setup.outbox.iterateSetAside()) {
      found.push(event.id)
      expect(attempts).toBe(1)
      const action = found.length % 2 === 0 ? 'retry' : 'discard'
      expect(await setup.outbox[action](event.id)).toEqual({ ok: true, changed: true })
    }
    expect(found.map(positionOf)).toEqual(ids)
    expect(await setup.outbox.listSetAside()).toEqual([])
  })

  test.each(['retry', 'discard'] as const)('must have an id for %s', async (action) => {
    const { outbox } = paymentServices()
    for (const id of [undefined, null, '', 17, {}]) {
      const error = invalidInput('eventId')
      await expect(outbox[action](id as never)).rejects.toEqual(error)
    }
  })

  test('cannot be listed with an invalid limit', async () => {
    const { outbox } = paymentServices()
    for (const limit of [0, -1, 1.5, '10', null]) {
      const error = invalidInput('limit')
      await expect(outbox.listSetAside(limit as never)).rejects.toEqual(error)
    }
  })

  test('is listed with others, oldest first, up to the given limit', async () => {
    const setup = paymentServices()
    const ids: string[] = []
    for (let i = 0; i < 3; i++) {
      ids.push(`${await setup.newPayment()}.incoming-payment.1.1`)
      await setup.outbox.drain(() => Promise.reject(new Error('no')), { attemptsMax: 1 })
      setup.clock.advance(1)
    }
    const listed = await setup.outbox.listSetAside(2)
    expect(listed.map(({ event }) => positionOf(event.id))).toEqual(ids.slice(0, 2))
  })
})

describe('a handler that takes longer than its lease', () => {
  test.each([1, 16])(
    'does not change the event when it fails late, with a maximum of %i attempts',
    async (attemptsMax) => {
      const setup = paymentServices()
      const { store, clock } = setup
      const other = paymentServices({ store, clock, seed: 'other' })
      await setup.newPayment()
      const began = gate()
      const goOn = gate()
      const failures: FailedDelivery[] = []
      const failing = setup.outbox.drain(
        async () => {
          began.open()
          await goOn.opened
          throw new Error('too late')
        },
        { attemptsMax, onFailure: failures.push.bind(failures) },
      )
      await began.opened
      clock.advance(60 * second)
      await other.outbox.drain(async () => {
        goOn.open()
        await failing
      })
      expect(failures).toMatchObject([{ attempt: 1, retryAt: clock.now() }])
      expect(await setup.outbox.listSetAside()).toEqual([])
      expect(await stored(setup)).toEqual([])
    },
  )
})

describe('an event behind a failed one of its record', () => {
  test('is delivered in the same call as the failed one', async () => {
    const setup = paymentServices()
    const { store, clock } = setup
    const other = paymentServices({ store, clock, seed: 'other' })
    const id = await setup.newPayment()
    await setup.receive(id)
    await setup.outbox.drain(() => Promise.reject(new Error('no')))
    clock.advance(second)
    const { heard, handler } = listener(never)
    const drained = await setup.outbox.drain(async (event, delivery) => {
      // Meanwhile the other consumer finds the later event, but the record is leased.
      if (delivery.attempt === 2) {
        expect(await other.outbox.drain(handler)).toEqual({ delivered: 0, failed: 0 })
        expect((await stored(setup)).map(({ dueAt }) => dueAt)).toEqual([
          clock.now() + 60 * second,
          clock.now() + 60 * second,
        ])
      }
      return handler(event, delivery)
    })
    expect(drained).toEqual({ delivered: 2, failed: 0 })
    expect(heard.map((event) => event.split('.')[2])).toEqual(['1', '2'])
  })
})

describe('a call of drain', () => {
  async function manyEvents() {
    const setup = paymentServices()
    for (let record = 0; record < 5; record++) {
      const id = await setup.newPayment()
      for (let i = 0; i < 4; i++) await setup.receive(id)
    }
    return setup
  }

  test('starts no more deliveries than its limit, whatever the number of records', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 30 }),
        fc.integer({ min: 1, max: 8 }),
        fc.integer({ min: 0, max: 3 }),
        async (limit, concurrency, failing) => {
          const setup = await manyEvents()
          let begun = 0
          const handler = async () => {
            begun += 1
            if (begun <= failing) throw new Error('no')
          }
          const { delivered, failed } = await setup.outbox.drain(handler, { limit, concurrency })
          expect(begun).toBe(delivered + failed)
          expect(begun).toBeLessThanOrEqual(limit)
          if (failing === 0) expect(delivered).toBe(Math.min(limit, 25))
        },
      ),
      { numRuns: 60 },
    )
  })

  test.each([1, 3, 8])(
    'delivers to %i records concurrently, or to all if there are fewer',
    async (n) => {
      const setup = await manyEvents()
      const active = new Set<string>()
      let most = 0
      const handler: EventHandler = async ({ id }) => {
        const [record = ''] = id.split('.')
        expect(active).not.toContain(record)
        active.add(record)
        most = Math.max(most, active.size)
        for (let queues = 0; queues < 50; queues++) await undefined
        active.delete(record)
      }
      expect(await setup.outbox.drain(handler, { concurrency: n })).toMatchObject({ failed: 0 })
      expect(most).toBe(Math.min(n, 5))
    },
  )

  test('starts no further delivery after its signal is aborted', async () => {
    const setup = await manyEvents()
    const controller = new AbortController()
    let begun = 0
    const handler = () => {
      begun += 1
      if (begun === 3) controller.abort()
    }
    const { signal } = controller
    const drained = await setup.outbox.drain(handler, { signal, concurrency: 1 })
    expect(drained).toEqual({ delivered: 3, failed: 0 })
    expect(await setup.outbox.drain(handler, { signal })).toEqual({ delivered: 0, failed: 0 })
    expect(await stored(setup)).toHaveLength(22)
  })
})

// The search: writers, consumers that fail and crash, and a clock, in any order.

const leaseMs = 1_000

type Fault = 'none' | 'fails' | 'crashes leasing' | 'crashes handling' | 'crashes acknowledging'

interface Plan {
  /**
   * The clock offset of each writer, and the index of the payment that each of its transfers is
   * for.
   */
  readonly writers: readonly { readonly offMs: number; readonly receives: readonly number[] }[]
  /** The faults in the deliveries of each consumer, in order. A crashed consumer restarts. */
  readonly consumers: readonly (readonly Fault[])[]
  readonly moves: readonly number[]
  /** How long a process takes to restart. */
  readonly restartMs: number
}

const fault = fc.constantFrom<Fault>(
  'none',
  'none',
  'none',
  'fails',
  'crashes leasing',
  'crashes handling',
  'crashes acknowledging',
)

const plan: fc.Arbitrary<Plan> = fc.record({
  writers: fc.array(
    fc.record({
      offMs: fc.constantFrom(-5_000, -300, 0, 300, 5_000),
      receives: fc.array(fc.nat({ max: 1 }), { minLength: 1, maxLength: 4 }),
    }),
    { minLength: 2, maxLength: 2 },
  ),
  consumers: fc.array(fc.array(fault, { maxLength: 6 }), { minLength: 2, maxLength: 3 }),
  moves: fc.array(fc.constantFrom(400, leaseMs - 1, leaseMs, 3_000), {
    minLength: 4,
    maxLength: 12,
  }),
  restartMs: fc.constantFrom(1, leaseMs),
})

/** How often each fault occurred, and how often an event was delivered more than once. */
const met = new Map<string, number>()

function meet(what: string): void {
  met.set(what, (met.get(what) ?? 0) + 1)
}

interface OngoingDelivery {
  readonly id: string
  readonly stream: string
  readonly leasedUntil: number
}

function streamOf(id: string): string {
  return id.split('.').slice(0, 2).join('.')
}

function placeOf(id: string): number {
  const [, , version, number] = id.split('.').map(Number)
  return (version ?? 0) * 10 + (number ?? 0)
}

/** Watches every delivery and records violations. */
function watcher(written: readonly { readonly id: string }[]) {
  const problems: string[] = []
  const heard = new Set<string>()
  const ongoing = new Set<OngoingDelivery>()
  const leases = new Map<string, number>()

  return {
    problems,
    heard,
    leased: (id: string, attempt: number, until: number) => leases.set(`${id} ${attempt}`, until),
    begin(id: string, attempt: number): OngoingDelivery {
      const stream = streamOf(id)
      const leasedUntil = leases.get(`${id} ${attempt}`) ?? 0
      if (heard.has(id)) meet('delivered again')
      for (const earlier of written) {
        const overtaken = streamOf(earlier.id) === stream && placeOf(earlier.id) < placeOf(id)
        if (overtaken && !heard.has(earlier.id)) problems.push(`${id} overtook ${earlier.id}`)
      }
      for (const other of ongoing) {
        // A delivery that was delayed until its lease ended may overlap with the next one.
        const atOneTime = Math.abs(other.leasedUntil - leasedUntil) < leaseMs
        if (other.stream === stream && atOneTime) {
          problems.push(`${id} was delivered beside ${other.id}`)
        }
      }
      const delivery = { id, stream, leasedUntil }
      ongoing.add(delivery)
      return delivery
    },
    succeed: (id: string) => void heard.add(id),
    end: (delivery: OngoingDelivery) => void ongoing.delete(delivery),
  }
}

type Watcher = ReturnType<typeof watcher>

/** Returns the event that a commit leases for a delivery, if it leases one. */
async function leasedIn(store: Store, { changes }: Commit): Promise<EventRecord | undefined> {
  const [change] = changes
  if (change?.kind !== 'event' || change.expectedVersion === 0) return undefined
  const before = (await loadOne(store, 'event', change.next.id)) as EventRecord | undefined
  const next = change.next as EventRecord
  return next.attempts > (before?.attempts ?? 0) ? next : undefined
}

/**
 * Returns the drain function of a consumer process. After a crash the process does nothing more.
 */
function consumerProcess(setup: SetupOf, faults: Fault[], watch: Watcher) {
  const { store, clock, scheduler, seed } = setup
  let isDead = false
  const planned = new Map<string, Fault>()
  const deliveries = new Set<OngoingDelivery>()

  function crash(): never {
    isDead = true
    for (const delivery of deliveries) watch.end(delivery)
    throw new Error('the process has crashed')
  }
  const mortal =
    <Args extends unknown[], Result>(call: (...args: Args) => Promise<Result>) =>
    async (...args: Args) => {
      if (isDead) crash()
      const result = await call(...args)
      if (isDead) crash()
      return result
    }

  const { outbox } = paymentServices({
    clock,
    scheduler,
    seed,
    store: {
      load: mortal(store.load),
      list: mortal(store.list),
      due: mortal(store.due),
      remove: mortal(store.remove),
      commit: mortal(async (commit) => {
        const leased = await leasedIn(store, commit)
        const committed = await store.commit(commit)
        if (!committed || leased === undefined) return committed
        const { id, dueAt = 0, attempts } = leased
        watch.leased(id, attempts, dueAt)
        const fault = faults.shift() ?? 'none'
        planned.set(id, fault)
        meet(fault)
        if (fault === 'crashes leasing') crash()
        return true
      }),
    },
  })
  const handler: EventHandler = async ({ id }, { attempt }) => {
    if (isDead) crash()
    const delivery = watch.begin(id, attempt)
    deliveries.add(delivery)
    await scheduler.schedule(Promise.resolve(), `handling ${id}`)
    if (isDead) crash()
    const fault = planned.get(id)
    if (fault === 'crashes handling') crash()
    if (fault !== 'fails') watch.succeed(id)
    if (fault === 'crashes acknowledging') crash()
    watch.end(delivery)
    if (fault === 'fails') throw new Error('no')
  }
  return () =>
    outbox.drain(handler, { leaseMs, backoffMs: 100, backoffMaxMs: 2_000, attemptsMax: 1_000 })
}

interface SetupOf {
  readonly store: Store
  readonly clock: ManualClock
  readonly scheduler: Scheduler
  readonly seed: string
}

type Twin = (store: Store, scheduler: Scheduler, clock: ManualClock) => Store

async function act(plan: Plan, scheduler: Scheduler, twin: Twin): Promise<void> {
  const clock = manualClock()
  const { store, written } = withEventLog(twin(memoryStore(), scheduler, clock))
  const calm = paymentServices({ store, clock, seed: 'calm' })
  const ids = [await calm.newPayment('3'), await calm.newPayment()]
  const watch = watcher(written)

  const writing = plan.writers.map(async ({ offMs, receives }, index) => {
    const own = { now: () => clock.now() + offMs, advance: clock.advance, set: clock.set }
    const writer = paymentServices({ store, clock: own, scheduler, seed: `writer ${index}` })
    for (const payment of receives) await writer.receive(ids[payment] ?? '')
  })
  const consuming = plan.consumers.map(async (planned, index) => {
    const faults = [...planned]
    for (let process = 0; process < 6; process++) {
      const seed = `consumer ${index} ${process}`
      const drain = consumerProcess({ store, clock, scheduler, seed }, faults, watch)
      await drain().catch(() => clock.advance(plan.restartMs))
    }
  })
  const moving = plan.moves.map(async (ms) => {
    await scheduler.schedule(Promise.resolve(), `let ${ms} ms pass`)
    clock.advance(ms)
  })
  await scheduler.waitFor(Promise.all([...writing, ...consuming, ...moving]))

  // Once every participant behaves, no event may be missing.
  for (let round = 0; round < 10; round++) {
    clock.advance(10_000)
    await calm.outbox.drain(({ id }) => watch.succeed(id))
  }
  const lost = written.filter(({ id }) => !watch.heard.has(id)).map(({ id }) => `${id} was lost`)
  const left = (await stored(calm)).map(({ id }) => `${id} was left`)
  expect([...watch.problems, ...lost, ...left]).toEqual([])
}

function search(twin: Twin, { numRuns, ...more }: { numRuns: number; seed?: number }) {
  const property = fc.asyncProperty(fc.scheduler(), plan, (scheduler, plan) =>
    act(plan, scheduler, twin),
  )
  return fc.check(property, { numRuns, endOnFailure: true, ...more })
}

const schedules = 1_000

/** Stores that each break one rule of the delivery. */
const twins: readonly { readonly fault: string; readonly problem: RegExp; readonly twin: Twin }[] =
  [
    {
      fault: 'offers every due event instead of the oldest of its record',
      problem: /overtook|was delivered beside/,
      twin: (store, _scheduler, clock) => ({
        ...store,
        async list(query) {
          const page = await store.list(query)
          const due = (page.records as readonly EventRecord[]).filter(
            ({ attempts, dueAt = 0 }) => attempts === 0 || dueAt <= clock.now(),
          )
          return { ...page, records: due }
        },
      }),
    },
    {
      fault: 'orders the events of a record by the clocks of their writers',
      problem: /overtook|was delivered beside/,
      twin: (store) => ({
        ...store,
        commit: ({ changes, guards }) =>
          store.commit({
            guards,
            changes: changes.map((change) => {
              if (change.kind !== 'event') return change
              const { event, lists } = change.next as EventRecord
              return { ...change, next: { ...change.next, lists: [{ ...lists[0], at: event.at }] } }
            }),
          }),
      }),
    },
    {
      fault: 'acknowledges when the delivery begins',
      problem: /was lost/,
      twin: (store) => ({
        ...store,
        async commit(commit) {
          const committed = await store.commit(commit)
          for (const { kind, next, expectedVersion } of commit.changes) {
            const leased = kind === 'event' && expectedVersion > 0
            if (committed && leased) await removeOne(store, kind, next.id, next.version)
          }
          return committed
        },
      }),
    },
    {
      fault: 'leases without comparing versions',
      problem: /was delivered beside/,
      twin: (store) => ({
        ...store,
        async commit({ changes, guards }) {
          const lenient = changes.map(async (change) => {
            if (change.kind !== 'event' || change.expectedVersion === 0) return change
            const current = await loadOne(store, 'event', change.next.id)
            return { ...change, expectedVersion: current?.version ?? 0 }
          })
          return store.commit({ changes: await Promise.all(lenient), guards })
        },
      }),
    },
    {
      fault: 'leases without an end',
      problem: /was lost/,
      twin: (store) => ({
        ...store,
        async commit(commit) {
          const leased = await leasedIn(store, commit)
          if (leased === undefined) return store.commit(commit)
          const { dueAt: _dueAt, ...next } = leased
          const change = { kind: 'event', next, expectedVersion: next.version - 1 } as const
          return store.commit({ changes: [change], guards: [] })
        },
      }),
    },
    {
      fault: 'forgets an event after a failed delivery',
      problem: /was lost/,
      twin: (store) => ({
        ...store,
        async commit(commit) {
          const committed = await store.commit(commit)
          for (const { kind, next } of commit.changes) {
            if (kind === 'event' && 'failedAt' in next) {
              await removeOne(store, kind, next.id, next.version)
            }
          }
          return committed
        },
      }),
    },
  ]

describe('with failing and crashing consumers, and writers whose clocks disagree', () => {
  test(`every event is delivered, in order, to one consumer at a time, in ${runs(schedules)} interleavings`, async () => {
    const { errorInstance, counterexample } = await search((store) => store, {
      numRuns: runs(schedules),
    })
    expect(errorInstance, fc.stringify(counterexample)).toBeNull()
  })

  test('the search reaches every fault many times', async () => {
    met.clear()
    await search((store) => store, { numRuns: runs(200, 80), seed: 1 })
    const everywhere = [
      'none',
      'fails',
      'crashes leasing',
      'crashes handling',
      'crashes acknowledging',
      'delivered again',
    ]
    for (const what of everywhere) expect(met.get(what), what).toBeGreaterThan(runs(20, 5))
  })

  test.each(twins)('the search finds a delivery that $fault', async ({ twin, problem }) => {
    const { errorInstance } = await search(twin, { numRuns: schedules, seed: 1 })
    const found = (errorInstance as { actual?: unknown } | null)?.actual
    expect(found).toEqual(expect.arrayContaining([expect.stringMatching(problem)]))
  })
})

/** A store that notes every commit and the limit of every query. */
function noted() {
  const commits: Commit[] = []
  const limits: number[] = []
  const store = memoryStore()
  const noting: Store = {
    ...store,
    commit(commit) {
      commits.push(commit)
      return store.commit(commit)
    },
    due(kind, namespace, before, limit) {
      limits.push(limit)
      return store.due(kind, namespace, before, limit)
    },
    list(query) {
      limits.push(query.limit)
      return store.list(query)
    },
  }
  return { store: noting, commits, limits }
}

/** Services with one payment with so many events, which are all due. */
async function manyEvents(count: number) {
  const { store, commits, limits } = noted()
  const setup = paymentServices({ store })
  const id = await setup.newPayment()
  for (let i = 1; i < count; i++) await setup.receive(id)
  return { setup, commits, limits }
}

describe('the outbox calls a store within storeBounds', () => {
  const fail = async () => {
    throw new Error('no')
  }

  test('when it reschedules more events than one load may contain', async () => {
    const { setup, commits } = await manyEvents(200)
    await setup.outbox.drain(fail, { limit: 300 })
    commits.length = 0
    await setup.outbox.drain(fail, { limit: 300 })
    const rescheduled = commits.filter(({ changes }) => changes.length > 1)
    expect(rescheduled.map(({ changes }) => changes.length)).toEqual([60, 60, 60, 19])
    for (const commit of commits) {
      expect(commitSizeOf(commit)).toBeLessThanOrEqual(storeBounds.commitSize)
    }
  })

  test('when it drains and lists with greater limits', async () => {
    const { setup, limits } = await manyEvents(1)
    for (let i = 1; i < 120; i++) await setup.newPayment()
    await setup.outbox.drain(fail, { limit: 1_000_000, attemptsMax: 1 })
    const listed = await setup.outbox.listSetAside(1_000_000)
    expect(listed).toHaveLength(120)
    expect(await setup.outbox.listSetAside(3)).toEqual(listed.slice(0, 3))
    expect(Math.max(...limits)).toBe(storeBounds.dueLimit)
  })

  test('when an operation writes one payment, with at most 10 of the size', async () => {
    const { commits } = await manyEvents(3)
    const sizes = commits.map(commitSizeOf)
    expect(Math.max(...sizes)).toBeLessThanOrEqual(10)
  })
})
