import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Commit, storeBounds } from '../../../src/entry-adapter.js'
import {
  type DrainOptions,
  type EventHandler,
  type FailedDelivery,
  memoryStore,
  type Store,
} from '../../../src/index.js'
import { isInDelivery } from '../../../src/service/event-record.js'
import { commitSizeOf } from '../../support/bounded-store.js'
import { manualClock, turns, whileTimePasses } from '../../support/clock.js'
import { invalidInput } from '../../support/invalid-input.js'
import { paymentServices, positionOf, type Setup, storedEvents } from '../../support/outbox.js'
import { fates, lyingStore } from '../../support/proxy-store.js'
import { isLong, runs } from '../../support/runs.js'
import { virtualTime } from '../../support/virtual-time.js'

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

/** Drains until no event is due. */
async function drainAll({ outbox }: Setup, handler: EventHandler): Promise<void> {
  for (let more = true; more; ) {
    const { delivered, failed } = await outbox.drain(handler)
    more = delivered + failed > 0
  }
}

describe('a record with many events', () => {
  /** Delivers one record with many events, and others with one each. Returns how long the others waited, in ms. */
  async function waitsBeside(events: number, writtenMs: number): Promise<readonly number[]> {
    const time = virtualTime()
    const { now: start } = manualClock()
    const startAt = start()
    const clock = { ...manualClock(), now: () => startAt + Math.floor(time.now()) }
    const { newPayment, receive, outbox } = paymentServices({ clock, pacing: time.pacing })
    const recordedAt = new Map<string, number>()
    const waits: number[] = []
    const stopping = new AbortController()
    const handler: EventHandler = async (event) => {
      const of = 'incomingPaymentId' in event ? event.incomingPaymentId : ''
      const at = recordedAt.get(of)
      if (at !== undefined) waits.push(time.now() - at)
      await time.sleep(20)
    }
    async function consume(): Promise<void> {
      const { signal } = stopping
      while (!signal.aborted) {
        await outbox.drain(handler, { concurrency: 2, limit: 100_000, pollMs: 200, signal })
        await time.pacing.sleep(200, signal)
      }
    }
    async function live(): Promise<void> {
      const long = await newPayment()
      const consuming = consume()
      const receiving = (async () => {
        for (let i = 0; i < events; i++) {
          if (writtenMs > 0) await time.sleep(writtenMs / events)
          await receive(long)
        }
      })()
      for (let i = 0; i < 60; i++) {
        await time.sleep(50)
        recordedAt.set(await newPayment(), time.now())
      }
      await receiving
      while (waits.length < recordedAt.size) await time.sleep(100)
      stopping.abort()
      await consuming
    }
    await time.until(live())
    return waits
  }

  test.each([
    [0, 0],
    [200, 0],
    [200, 2_000],
    ...(isLong
      ? ([
          [60, 0],
          [600, 0],
          [600, 2_000],
          [1_500, 1_000],
        ] as const)
      : []),
  ] as const)(
    'lets no other record wait for a second: %i events, written in %i ms',
    async (events, writtenMs) => {
      expect(Math.max(...(await waitsBeside(events, writtenMs)))).toBeLessThan(second)
    },
  )
})

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

  test('goes on until no event is due, also with the events that handlers cause', async () => {
    const setup = paymentServices()
    await setup.newPayment()
    let caused = 0
    const causing: EventHandler = async () => {
      if (caused++ < 3) await setup.newPayment()
    }
    expect(await setup.outbox.drain(causing)).toEqual({ delivered: 4, failed: 0 })
    expect([caused, await storedEvents(setup)]).toEqual([4, []])
  })

  test('delivers no event of another server on the same store', async () => {
    const one = paymentServices()
    const { store, clock } = one
    const other = paymentServices({ store, clock, serverUrl: 'https://other.example' })
    const id = await one.newPayment()
    const { heard, handler } = listener(never)
    expect(await other.outbox.drain(handler)).toEqual({ delivered: 0, failed: 0 })
    expect(await one.outbox.drain(handler)).toEqual({ delivered: 1, failed: 0 })
    expect(heard).toEqual([`${id}.incoming-payment.1`])
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
    const { heard, handler } = listener(never)
    for (let passed = 0; passed < 58; passed++) {
      await turns(3)
      behind.clock.advance(second)
      clock.advance(second)
      if (passed > 2) await ahead.outbox.drain(handler, options)
    }
    expect(heard).toEqual([])
    open()
    expect(await whileTimePasses(behind.clock, handling)).toEqual({ delivered: 1, failed: 0 })
  })

  test('passes the event with its id, and the number of the attempt, to the handler', async () => {
    const setup = paymentServices()
    const id = await setup.newPayment('5')
    const told: unknown[] = []
    await setup.outbox.drain((event, delivery) => void told.push([event, delivery]))
    const event = {
      id: expect.stringMatching(`^[\\w-]{8}${id}\\.incoming-payment\\.0001\\.`),
      type: 'incoming-payment.created',
      at: setup.clock.now(),
      incomingPaymentId: id,
      walletAddress: 'https://wallet.example/bob',
      client: 'https://shop.example',
      receivedAmount: { value: '0', assetCode: 'USD', assetScale: 2 },
      incomingAmount: { value: '5', assetCode: 'USD', assetScale: 2 },
      subject: `incoming-payment/${id}`,
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
    expect(await storedEvents(setup)).toMatchObject([{ attempts: 0 }])
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

  test('rejects with the error of the store, and another call delivers the event again', async () => {
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
    expect(heard).toHaveLength(1)
    const failedAt = setup.clock.now()
    await whileTimePasses(setup.clock, drainAll(setup, handler))
    await whileTimePasses(setup.clock, setup.outbox.drain(handler))
    setup.clock.advance(second)
    await drainAll(setup, handler)
    expect(setup.clock.now() - failedAt).toBeLessThan(20 * second)
    expect(heard).toHaveLength(2)
    expect(await storedEvents(setup)).toEqual([])
  })
})

describe('a handler that fails', () => {
  test('delays nothing else if the callback for failures throws', async () => {
    const setup = paymentServices()
    await setup.newPayment()
    const { open, opened } = gate()
    const slow = await setup.newPayment()
    const handler: EventHandler = async (event) => {
      if (positionOf(event.id).startsWith(slow)) return opened
      throw new Error('no')
    }
    const reported: number[] = []
    const onFailure = ({ attempt }: FailedDelivery) => {
      reported.push(attempt)
      throw new Error('cannot report')
    }
    const drained = setup.outbox.drain(handler, { onFailure, backoffMs: 60 * second })
    drained.catch(() => undefined)
    for (let i = 0; i < 20; i++) {
      await turns(10)
      setup.clock.advance(250)
    }
    open()
    expect(await whileTimePasses(setup.clock, drained)).toEqual({ delivered: 1, failed: 1 })
    expect(reported).toEqual([1])
  })

  test('receives the event again in the same call, while another handler runs', async () => {
    const setup = paymentServices()
    await setup.newPayment()
    await setup.newPayment()
    const { open, opened } = gate()
    const attempts: number[] = []
    const handler: EventHandler = async (event, { attempt }) => {
      if (positionOf(event.id) === slow) return opened
      attempts.push(attempt)
      if (attempt === 1) throw new Error('no')
    }
    const [slow] = (await storedEvents(setup)).map(({ id }) => positionOf(id))
    const drained = setup.outbox.drain(handler, { backoffMs: 100 })
    for (let i = 0; i < 20; i++) {
      await turns(10)
      setup.clock.advance(250)
    }
    expect(attempts).toEqual([1, 2])
    open()
    expect(await whileTimePasses(setup.clock, drained)).toEqual({ delivered: 2, failed: 1 })
  })

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
      const delivered = attempt === 3 ? 1 : 0
      expect(await setup.outbox.drain(handler, options)).toEqual({ delivered, failed: 1 })
      setup.clock.advance(60 * second)
    }
    expect(failures.map(({ attempt, retryAt }) => [attempt, retryAt === undefined])).toEqual([
      [1, false],
      [2, false],
      [3, true],
    ])
    expect(failures.at(-1)?.error).toEqual(new Error('cannot hear of incoming-payment.created'))
    expect(failures.at(-1)).not.toHaveProperty('retryAt')
    expect(await setup.outbox.drain(handler, options)).toEqual({ delivered: 0, failed: 0 })
    expect(heard).toEqual([`${id}.incoming-payment.2`])
    expect(await setup.outbox.listSetAside()).toEqual([
      {
        event: expect.objectContaining({
          id: expect.stringMatching(`^[\\w-]{8}${id}\\.incoming-payment\\.0001\\.`),
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
    expect(await setup.outbox.backlog()).toEqual({ waiting: 0, oldestAgeMs: 0, setAside: 1 })
  })

  test('does not delay other records, however many events its own record has', async () => {
    const setup = paymentServices()
    const stuck = await setup.newPayment()
    for (let i = 0; i < 250; i++) await setup.receive(stuck)
    const { heard, handler } = listener(
      ({ id }) => positionOf(id) === `${stuck}.incoming-payment.1`,
    )
    await setup.outbox.drain(handler, { backoffMs: 10 * second })
    setup.clock.advance(1)
    const free = await setup.newPayment()
    for (let calls = 0; calls < 4; calls++) await setup.outbox.drain(handler)
    expect(heard).toEqual([`${free}.incoming-payment.1`])
    // The delayed events are delivered too.
    setup.clock.advance(10 * second)
    const healed = listener(never)
    await drainAll(setup, healed.handler)
    const versions = healed.heard.map((id) => Number(id.split('.')[2]))
    expect(versions).toEqual(Array.from({ length: 251 }, (_, index) => index + 1))
  })

  test('times out at the end of the lease if it never returns, and delays no other record', async () => {
    const setup = paymentServices()
    const stuck = await setup.newPayment()
    const free = await setup.newPayment()
    const failures: FailedDelivery[] = []
    const signals: AbortSignal[] = []
    const heard: string[] = []
    const handler: EventHandler = ({ id }, { signal }) => {
      if (!positionOf(id).startsWith(stuck)) return void heard.push(positionOf(id))
      signals.push(signal)
      return new Promise<void>(() => {})
    }
    const onFailure = failures.push.bind(failures)
    const leaseMs = 5 * second
    const draining = setup.outbox.drain(handler, { leaseMs, backoffMs: 5, onFailure })
    await turns()
    expect(heard).toHaveLength(1)
    setup.clock.advance(2 * second)
    await turns()
    setup.clock.advance(3 * second - 1)
    await turns()
    expect([signals[0]?.aborted, failures.length]).toEqual([false, 0])
    setup.clock.advance(1)
    expect(await draining).toEqual({ delivered: 1, failed: 1 })
    expect(signals[0]?.aborted).toBe(true)
    expect(heard).toEqual([`${free}.incoming-payment.1`])
    expect(failures).toMatchObject([
      {
        attempt: 1,
        error: new Error('the handler did not finish within 5000 ms'),
        retryAt: expect.anything(),
      },
    ])

    setup.clock.advance(5)
    const again = listener(never)
    expect(await setup.outbox.drain(again.handler)).toEqual({ delivered: 1, failed: 0 })
    expect(again.heard).toEqual([`${stuck}.incoming-payment.1`])
  })

  test.each([
    ['its lease', 5 * second, { leaseMs: 5 * second }],
    ['the claim of its consumer', 10 * second, {}],
  ])('sees after a pause of the process that %s has ended', async (_, pauseMs, options) => {
    const setup = paymentServices()
    await setup.newPayment()
    const seen: boolean[] = []
    const handler: EventHandler = (_event, { signal }) => {
      // Nothing else runs between these lines, no timer either.
      setup.clock.advance(pauseMs - 1)
      seen.push(signal.aborted)
      setup.clock.advance(1)
      seen.push(signal.aborted)
      expect(() => signal.throwIfAborted()).toThrow()
    }
    await setup.outbox.drain(handler, options)
    expect(seen).toEqual([false, true])
  })

  let crashes = 0

  /** Delivers one event in a process that dies during the delivery. */
  async function crash({ store, clock }: Setup, options: DrainOptions): Promise<void> {
    const { open, opened } = gate()
    let isDead = false
    const forever = new Promise<never>(() => {})
    const mortal =
      <Args extends unknown[], Result>(call: (...args: Args) => Promise<Result>) =>
      async (...args: Args): Promise<Result> => {
        if (isDead) return forever
        const result = await call(...args)
        return isDead ? forever : result
      }
    const { outbox } = paymentServices({
      clock,
      seed: `crash ${++crashes}`,
      store: {
        load: mortal(store.load),
        list: mortal(store.list),
        due: mortal(store.due),
        commit: mortal(store.commit),
        remove: mortal(store.remove),
      },
    })
    const handler = () => {
      isDead = true
      open()
      return forever
    }
    async function consume(): Promise<void> {
      for (; !isDead; await turns(1)) await outbox.drain(handler, options)
    }
    void consume()
    await whileTimePasses(clock, opened)
  }

  test('causes the event to be set aside if it crashes the process at each attempt', async () => {
    const setup = paymentServices()
    const id = await setup.newPayment()
    await setup.receive(id)
    const options = { attemptsMax: 3 }
    for (let process = 1; process <= 3; process++) await crash(setup, options)
    const failures: FailedDelivery[] = []
    const { heard, handler } = listener(never)
    const survivor = { ...options, onFailure: failures.push.bind(failures) }
    const drained = { delivered: 0, failed: 0 }
    for (let calls = 0; calls < 3; calls++) {
      const { delivered, failed } = await whileTimePasses(
        setup.clock,
        setup.outbox.drain(handler, survivor),
      )
      drained.delivered += delivered
      drained.failed += failed
      setup.clock.advance(60 * second)
    }
    expect(drained).toEqual({ delivered: 1, failed: 1 })
    expect(heard).toEqual([`${id}.incoming-payment.2`])
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
    const options = { attemptsMax: 1 }
    await crash(setup, options)
    const { heard, handler } = listener(never)
    let failures = 0
    for (let calls = 0; calls < 3; calls++) {
      const drained = Promise.all(
        [setup, other].map(({ outbox }) => outbox.drain(handler, options)),
      )
      for (const { failed } of await whileTimePasses(clock, drained)) failures += failed
      clock.advance(60 * second)
    }
    expect(failures).toBe(1)
    expect(heard).toEqual([])
    expect(await setup.outbox.listSetAside()).toHaveLength(1)
  })
})

describe('a handler that wants an event later', () => {
  const day = 86_400 * second

  test('receives it at that instant, as the same attempt, and the next event of the record after it', async () => {
    const setup = paymentServices()
    const id = await setup.newPayment()
    await setup.receive(id)
    const failures: FailedDelivery[] = []
    const options = { attemptsMax: 1, onFailure: failures.push.bind(failures) }
    const retryAt = setup.clock.now() + 5 * day
    const told: unknown[] = []
    const handler: EventHandler = (event, { attempt }) => {
      told.push([positionOf(event.id).split('.').at(-1), attempt])
      return setup.clock.now() < retryAt ? { retryAt } : undefined
    }
    expect(await setup.outbox.drain(handler, options)).toEqual({ delivered: 0, failed: 0 })
    setup.clock.set(retryAt - 1)
    expect(await setup.outbox.drain(handler, options)).toEqual({ delivered: 0, failed: 0 })
    expect(told).toEqual([['1', 1]])
    setup.clock.set(retryAt)
    expect(await setup.outbox.drain(handler, options)).toEqual({ delivered: 2, failed: 0 })
    expect(told).toEqual([
      ['1', 1],
      ['1', 1],
      ['2', 1],
    ])
    expect([failures, await storedEvents(setup)]).toEqual([[], []])
  })

  test('delays no other record, and receives the event again after the pause at least', async () => {
    const setup = paymentServices()
    const id = await setup.newPayment()
    let postponed = 0
    const handler: EventHandler = (event) => {
      if (!positionOf(event.id).startsWith(id)) return undefined
      postponed += 1
      return { retryAt: 0 }
    }
    await setup.outbox.drain(handler)
    await setup.newPayment()
    expect(await setup.outbox.drain(handler)).toEqual({ delivered: 1, failed: 0 })
    expect(postponed).toBe(1)
    setup.clock.advance(second)
    await setup.outbox.drain(handler)
    expect(postponed).toBe(2)
  })

  test('counts no attempt also if the delivery has got a lease, or an earlier one failed', async () => {
    const setup = paymentServices()
    await setup.newPayment()
    await setup.outbox.drain(() => Promise.reject(new Error('no')))
    setup.clock.advance(second)
    const { open, opened } = gate()
    const draining = setup.outbox.drain(async () => {
      await opened
      return { retryAt: setup.clock.now() + 60 * second }
    })
    for (let passed = 0; passed < 5; passed++) {
      await turns()
      setup.clock.advance(second)
    }
    expect(await storedEvents(setup)).toMatchObject([{ attempts: 2 }])
    open()
    await whileTimePasses(setup.clock, draining)
    const [event] = await storedEvents(setup)
    expect([event?.attempts, event !== undefined && isInDelivery(event)]).toEqual([1, false])
  })

  test.each([
    ['a date', new Date(), 'must be an instant in milliseconds since 1970'],
    ['a text', '2026-12-01T00:00:00Z', 'must be an instant in milliseconds since 1970'],
    ['a fraction', 1.5, 'must be an instant in milliseconds since 1970'],
    ['no number', Number.NaN, 'must be an instant in milliseconds since 1970'],
    ['nothing', undefined, 'must be an instant in milliseconds since 1970'],
    ['negative', -1, 'must be an instant in milliseconds since 1970'],
    ['31 days ahead', manualClock().now() + 31 * day, 'must be at most 30 days ahead'],
  ])('has failed if the instant is %s', async (_, retryAt, problem) => {
    const setup = paymentServices()
    await setup.newPayment()
    const failures: FailedDelivery[] = []
    const onFailure = failures.push.bind(failures)
    const message = `retryAt ${problem}`
    const handler = () => ({ retryAt: retryAt as number })
    expect(await setup.outbox.drain(handler, { onFailure })).toEqual({ delivered: 0, failed: 1 })
    expect(failures).toMatchObject([
      {
        attempt: 1,
        error: invalidInput('retryAt', { message }),
        retryAt: setup.clock.now() + second,
      },
    ])
  })

  test('has a type for what it resolves to', () => {
    const handlers: EventHandler[] = [
      () => undefined,
      async () => {},
      () => ({ retryAt: 1 }),
      async () => (Math.random() < 0.5 ? { retryAt: 1 } : undefined),
      // @ts-expect-error an instant is a number of milliseconds
      () => ({ retryAt: new Date() }),
      // @ts-expect-error the instant is the only member
      async () => ({ again: 1 }),
      // @ts-expect-error a text says nothing to the consumer
      async () => 'later',
    ]
    expect(handlers).toHaveLength(7)
  })

  test('has handled it if the value has no such member', async () => {
    const setup = paymentServices()
    for (const value of [null, 0, 'later', {}, []]) {
      await setup.newPayment()
      const handler = () => value as never
      expect(await setup.outbox.drain(handler)).toEqual({ delivered: 1, failed: 0 })
    }
  })

  test('counts exactly the failures, and keeps the order, however often it fails and postpones', async () => {
    const outcomes = fc.array(
      fc.oneof(
        fc.constant({ type: 'done' } as const),
        fc.constant({ type: 'failed' } as const),
        fc.record({
          type: fc.constant('postponed' as const),
          ms: fc.integer({ min: 0, max: 600_000 }),
        }),
      ),
      { maxLength: 20 },
    )
    await fc.assert(
      fc.asyncProperty(outcomes, async (given) => {
        const setup = paymentServices()
        const id = await setup.newPayment()
        for (let i = 0; i < 2; i++) await setup.receive(id)
        const left = [...given]
        const failures = new Map<string, number>()
        const done: string[] = []
        let [wanted, wantedAt] = ['', 0]
        const handler: EventHandler = (event, { attempt }) => {
          const place = positionOf(event.id).split('.').at(-1) ?? ''
          expect(place).toBe(`${done.length + 1}`)
          expect(attempt).toBe((failures.get(place) ?? 0) + 1)
          if (place === wanted) expect(setup.clock.now()).toBeGreaterThanOrEqual(wantedAt)
          const outcome = left.shift() ?? { type: 'done' }
          if (outcome.type === 'failed') {
            failures.set(place, attempt)
            throw new Error('no')
          }
          if (outcome.type === 'done') return void done.push(place)
          wanted = place
          wantedAt = setup.clock.now() + outcome.ms
          return { retryAt: wantedAt }
        }
        for (let calls = 0; done.length < 3 && calls < 60; calls++) {
          await setup.outbox.drain(handler, { backoffMaxMs: 600_000, attemptsMax: 100 })
          setup.clock.advance(600_000)
        }
        expect([done, await storedEvents(setup)]).toEqual([['1', '2', '3'], []])
      }),
      { numRuns: runs(40) },
    )
  })
})

describe('a handler that succeeds', () => {
  test('leaves no timer behind, and its signal is not aborted', async () => {
    const time = virtualTime()
    const setup = paymentServices({ pacing: time.pacing })
    await setup.newPayment()
    const signals: AbortSignal[] = []
    await setup.outbox.drain((_event, { signal }) => void signals.push(signal))
    expect([time.timers(), signals.map(({ aborted }) => aborted)]).toEqual([0, [false]])
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
    expect(heard).toEqual([`${place}.1`, `${place}.2`])
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
    expect(await storedEvents(setup)).toEqual([])
  })

  test('is removed on discard', async () => {
    const setup = await withOneSetAside()
    expect(await setup.outbox.discard(setup.eventId)).toEqual({ ok: true, changed: true })
    expect(await setup.outbox.discard(setup.eventId)).toEqual(unknownEvent)
    expect(await setup.outbox.retry(setup.eventId)).toEqual(unknownEvent)
    expect(await setup.outbox.listSetAside()).toEqual([])
    expect(await storedEvents(setup)).toEqual([])
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
      const [waiting] = await storedEvents(setup)
      expect(await setup.outbox[action](waiting?.id ?? '')).toEqual(unknownEvent)
      expect(await setup.outbox[action]('no such event')).toEqual(unknownEvent)
      const { store, clock } = setup
      const other = paymentServices({ store, clock, serverUrl: 'https://other.example' })
      expect(await other.outbox[action](setup.eventId)).toEqual(unknownEvent)
      expect(await other.outbox.listSetAside()).toEqual([])
      expect(await setup.outbox.listSetAside()).toHaveLength(1)
      expect(await storedEvents(setup)).toHaveLength(1)
    },
  )

  test('is found in a loop over all of them, which may retry and discard', async () => {
    const setup = paymentServices()
    const ids: string[] = []
    for (let i = 0; i < 120; i++) {
      ids.push(`${await setup.newPayment()}.incoming-payment.1`)
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
      ids.push(`${await setup.newPayment()}.incoming-payment.1`)
      await setup.outbox.drain(() => Promise.reject(new Error('no')), { attemptsMax: 1 })
      setup.clock.advance(1)
    }
    const listed = await setup.outbox.listSetAside(2)
    expect(listed.map(({ event }) => positionOf(event.id))).toEqual(ids.slice(0, 2))
  })
})

describe('a handler of a consumer that was paused', () => {
  test.each([1, 16])(
    'does not change the event when it fails late, with a maximum of %i attempts',
    async (attemptsMax) => {
      const setup = paymentServices()
      // The stopwatch of the paused consumer stands still.
      const clock = manualClock()
      const other = paymentServices({ store: setup.store, clock, seed: 'other' })
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
      await whileTimePasses(
        clock,
        other.outbox.drain(() => {}),
      )
      clock.advance(second)
      await other.outbox.drain(async () => {
        goOn.open()
        await failing
      })
      expect(failures).toMatchObject([{ attempt: 1, retryAt: setup.clock.now() }])
      expect(await setup.outbox.listSetAside()).toEqual([])
      expect(await storedEvents(setup)).toEqual([])
    },
  )
})

describe('an event behind a failed one of its record', () => {
  test('is delivered in the same call as the failed one', async () => {
    const setup = paymentServices()
    const id = await setup.newPayment()
    await setup.receive(id)
    await setup.outbox.drain(() => Promise.reject(new Error('no')))
    setup.clock.advance(second)
    const { heard, handler } = listener(never)
    expect(await setup.outbox.drain(handler)).toEqual({ delivered: 2, failed: 0 })
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
        await turns(50)
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
    expect(await storedEvents(setup)).toHaveLength(22)
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
    commits.length = 0
    await setup.outbox.drain(fail, { limit: 300 })
    const rescheduled = commits.filter(({ changes }) => changes.length > 1)
    expect(rescheduled.reduce((sum, { changes }) => sum + changes.length, 0)).toBe(199)
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
    await setup.outbox.backlog(1_000_000)
    expect(Math.max(...limits)).toBe(storeBounds.dueLimit)
  })

  test('when it removes and counts the deliveries of many handlers', async () => {
    const setup = paymentServices()
    const count = storeBounds.removeRecords + 10
    for (let i = 0; i < count; i++) await setup.newPayment()
    const { open, opened } = gate()
    let begun = 0
    const drained = setup.outbox.drain(
      async () => {
        begun += 1
        if (begun === count) open()
        await opened
      },
      { concurrency: 2 * count, limit: 2 * count },
    )
    expect(await drained).toEqual({ delivered: count, failed: 0 })
  })

  test('when an operation writes one payment, with at most 10 of the size', async () => {
    const { commits } = await manyEvents(3)
    const sizes = commits.map(commitSizeOf)
    expect(Math.max(...sizes)).toBeLessThanOrEqual(10)
  })
})
