import { AsyncLocalStorage } from 'node:async_hooks'
import fc from 'fast-check'
import { afterAll, describe, expect, test } from 'vitest'
import { type MayReceive, type MayReceiveQuery, memoryStore, type Store } from '../../src/index.js'
import { startOfTests } from '../support/clock.js'
import { usd } from '../support/incoming-payments.js'
import { paymentServices, withEventLog } from '../support/outbox.js'
import { fates, lyingStore } from '../support/proxy-store.js'
import { runs } from '../support/runs.js'
import { bob } from '../support/world.js'

const allowed = { ok: true } as const

const reviewUntil = (retryAt: number) =>
  ({ ok: false, refusal: 'review_required', retryAt }) as const

/** What a host does when it is asked; `fails` and `errs` are an exception and a wrong answer. */
const says = [
  ...(['allows', 'payment_not_allowed', 'amount_too_large'] as const),
  ...(['review_required', 'fails', 'errs'] as const),
]
type Says = (typeof says)[number]

function answer(say: Says) {
  if (say === 'allows') return allowed
  if (say === 'fails') throw new Error('no ledger')
  if (say === 'review_required') return reviewUntil(startOfTests + 60_000)
  return say === 'errs' ? (undefined as never) : ({ ok: false, refusal: say } as const)
}

const arrivals = fc.record({
  process: fc.nat({ max: 1 }),
  transferId: fc.constantFrom('a', 'b', 'c', 'd'),
  value: fc.constantFrom('1', '2', '7'),
  say: fc.constantFrom(...says),
})

const calls = new AsyncLocalStorage<{ say: Says; asked: MayReceiveQuery[] }>()
// In Node 20 and 22 it slows all promises of the process.
afterAll(() => calls.disable())

/** Reports arrivals in rounds of concurrent calls, to two processes whose commits are misreported at times. */
function world(scheduler: fc.Scheduler | undefined, lies: readonly (typeof fates)[number][]) {
  const mayReceive: MayReceive = async (query) => {
    const call = calls.getStore()
    call?.asked.push(query)
    await scheduler?.schedule(Promise.resolve(), 'asked')
    return answer(call?.say ?? 'allows')
  }
  const rest = [...lies]
  const logged = withEventLog(memoryStore())
  const liar = lyingStore(logged.store, (method) =>
    method === 'commit' ? (rest.shift() ?? 'works') : 'works',
  )
  const sound = paymentServices({ store: logged.store })
  const processes = ['one', 'two'].map((seed) =>
    paymentServices({
      store: liar.store,
      seed,
      combines: true,
      mayReceive,
      ...(scheduler && { scheduler }),
    }),
  )
  return {
    ...logged,
    sound,
    records: async () => JSON.stringify((await liar.records()).toSorted()),
    async arrive(
      id: string,
      arrival: { process: number; transferId: string; value: string; say: Says },
    ) {
      const { process, transferId, value, say } = arrival
      const asked: MayReceiveQuery[] = []
      const result = await calls.run({ say, asked }, async () =>
        processes[process]?.receive(id, value, transferId).catch((error: Error) => error),
      )
      return { ...arrival, asked, result }
    },
  }
}

describe('whatever the host says about arrivals', () => {
  test('exactly the allowed ones count once, and no repeat of them is asked about', async () => {
    const met = new Set<string>()
    await fc.assert(
      fc.asyncProperty(
        fc.scheduler(),
        fc.option(fc.constantFrom('3', '12'), { nil: undefined }),
        fc.array(fc.array(arrivals, { minLength: 1, maxLength: 5 }), { maxLength: 3 }),
        fc.array(fc.constantFrom(...fates), { maxLength: 4 }),
        async (scheduler, incomingAmount, rounds, lies) => {
          const { sound, arrive, written } = world(scheduler, lies)
          const id = await sound.newPayment(incomingAmount)
          const counted = new Map<string, bigint>()
          for (const round of rounds) {
            const before = new Set(counted.keys())
            const settled = Promise.all(round.map((arrival) => arrive(id, arrival)))
            await scheduler.waitFor(settled)
            for (const { transferId, value, say, asked, result } of await settled) {
              expect(asked.length).toBeLessThanOrEqual(before.has(transferId) ? 0 : 1)
              if (result === undefined) throw new Error('no result')
              const isAsked = asked.length === 1
              if (result instanceof Error)
                expect([isAsked, say]).toEqual([true, expect.stringMatching(/fails|errs/)])
              else if (result.ok && result.changed) {
                expect([isAsked, say]).toEqual([true, 'allows'])
                expect(counted.has(transferId)).toBe(false)
                counted.set(transferId, BigInt(value))
              } else if (!result.ok && says.some((each) => each === result.refusal)) {
                expect([isAsked, result.refusal]).toEqual([true, say])
              }
              met.add(
                result instanceof Error ? say : result.ok ? `${result.changed}` : result.refusal,
              )
            }
          }
          const total = [...counted.values()].reduce((sum, value) => sum + value, 0n)
          expect(await sound.payments.load(id)).toMatchObject({ received: `${total}` })
          const events = written.filter(({ event }) => event.type === 'incoming-payment.received')
          expect(events).toHaveLength(counted.size)
        },
      ),
      { numRuns: runs(200, 50) },
    )
    expect([...met].toSorted()).toEqual(
      [...says.slice(1), 'false', 'payment_completed', 'transfer_mismatch', 'true'].toSorted(),
    )
  })

  test('one that is not allowed leaves every record as it was', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(arrivals, { maxLength: 12 }), async (sequence) => {
        const { sound, arrive, records } = world(undefined, [])
        const id = await sound.newPayment('12')
        for (const arrival of sequence) {
          const before = await records()
          const { result, asked } = await arrive(id, arrival)
          const isChanged =
            result !== undefined && !(result instanceof Error) && result.ok && result.changed
          expect((await records()) === before).toBe(!isChanged)
          if (isChanged) expect(asked).toMatchObject([{ type: 'arrival', incomingPaymentId: id }])
        }
      }),
      { numRuns: runs(150, 25) },
    )
  })

  test('a host that allows all of them changes nothing', async () => {
    const step = fc.record({
      transferId: fc.constantFrom('a', 'b', 'c'),
      value: fc.constantFrom('0', '1', '5'),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 8 }), async (steps) => {
        async function run(mayReceive: { readonly mayReceive?: MayReceive }) {
          const { store, records } = lyingStore(memoryStore(), () => 'works')
          const setup = paymentServices({ store, ...mayReceive })
          const id = await setup.newPayment('6')
          const results: unknown[] = []
          for (const { value, transferId } of steps)
            results.push(await setup.receive(id, value, transferId))
          const request = { walletAddress: bob, incomingAmount: usd('3') }
          for (const key of ['k', 'k', 'l'])
            results.push(await setup.payments.createOnce(request, key))
          return { results, records: await records() }
        }
        expect(await run({ mayReceive: () => allowed })).toEqual(await run({}))
      }),
      { numRuns: runs(150, 25) },
    )
  })
})

describe('the host is asked about an arrival', () => {
  test('while others count, however slow it is', async () => {
    let release = () => {}
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    const mayReceive: MayReceive = async (query) => {
      if (query.type === 'arrival' && query.transferId === 'slow') await held
      return allowed
    }
    const { newPayment, receive } = paymentServices({ combines: true, mayReceive })
    const id = await newPayment()
    const slow = receive(id, '1', 'slow')
    for (const other of await Promise.all([receive(id, '2'), receive(id, '3')])) {
      expect(other).toMatchObject({ ok: true, changed: true })
    }
    release()
    expect(await slow).toMatchObject({ changed: true, payment: { received: '6' } })
  })

  test('and its refusal does not hide that the same transfer was counted meanwhile', async () => {
    const store = memoryStore()
    const other = paymentServices({ store, seed: 'other' })
    const id = await other.newPayment('9')
    const mayReceive: MayReceive = async () => {
      await other.receive(id, '9', 'once')
      return { ok: false, refusal: 'payment_not_allowed' }
    }
    const result = await paymentServices({ store, mayReceive }).receive(id, '9', 'once')
    expect(result).toMatchObject({ ok: true, changed: false, payment: { received: '9' } })
  })

  test('before it counts, even if the payment appears while it waits for others', async () => {
    const memory = memoryStore()
    const id = await paymentServices({ store: memory }).newPayment()
    let looks = 0
    const late: Store = {
      ...memory,
      async load(keys) {
        const found = await memory.load(keys)
        return found.map((each, i) =>
          keys[i]?.kind === 'incoming-payment' && looks++ < 2 ? undefined : each,
        )
      },
    }
    const asked: MayReceiveQuery[] = []
    const mayReceive: MayReceive = (query) => {
      asked.push(query)
      return allowed
    }
    const { receive } = paymentServices({ store: late, seed: 'late', combines: true, mayReceive })
    for (const early of await Promise.all([receive(id), receive(id)])) {
      expect(early).toMatchObject({ ok: false, refusal: 'payment_unknown' })
    }
    expect(asked).toEqual([])
    expect(await receive(id)).toMatchObject({ changed: true, payment: { received: '1' } })
    expect(asked).toHaveLength(1)
  })
})

describe('an arrival that waits for a review', () => {
  const retryAt = startOfTests + 30_000

  /** A host whose reviews end with these answers, by transfer: until then, every arrival waits. */
  async function setUp(incomingAmount?: string) {
    const reviewed = new Map<string, Exclude<Says, 'fails' | 'errs'>>()
    const mayReceive: MayReceive = (query) => {
      if (query.type === 'creation') return allowed
      const end = reviewed.get(query.transferId) ?? 'review_required'
      return end === 'review_required' ? reviewUntil(retryAt) : answer(end)
    }
    const logged = withEventLog(memoryStore())
    const services = paymentServices({ store: logged.store, mayReceive })
    const id = await services.newPayment(incomingAmount)
    return { ...services, ...logged, id, reviewed }
  }
  const waits = {
    ok: false,
    refusal: 'review_required',
    reason: 'the arrival waits for a review',
    retryAt,
  }

  test('is neither counted nor refused, until the review ends', async () => {
    const { id, receive, reviewed, payments, written } = await setUp()
    for (const _ of [1, 2]) expect(await receive(id, '7', 'one')).toEqual(waits)
    expect(await payments.load(id)).toMatchObject({ received: '0', version: 1 })
    reviewed.set('one', 'allows').set('two', 'payment_not_allowed')
    expect(await receive(id, '7', 'one')).toMatchObject({ ok: true, changed: true })
    expect(await receive(id, '5', 'two')).toMatchObject({ refusal: 'payment_not_allowed' })
    reviewed.clear()
    expect(await receive(id, '7', 'one')).toMatchObject({ ok: true, changed: false })
    expect(written.map(({ event }) => event.type)).toEqual([
      'incoming-payment.created',
      'incoming-payment.received',
    ])
  })

  test.each<readonly [end: string, refusal: string, by: (setup: Setup) => Promise<unknown>]>([
    ['expires', 'payment_expired', async ({ clock }) => clock.advance(60_001)],
    [
      'expires, which a sweep records',
      'payment_expired',
      async ({ clock, sweep }) => {
        clock.advance(60_001)
        await sweep()
      },
    ],
    ['is cancelled', 'payment_expired', ({ payments, id }) => payments.cancel(id, {})],
    ['is completed', 'payment_completed', ({ payments, id }) => payments.completeById(id)],
    [
      'has received its amount otherwise',
      'payment_completed',
      ({ receive, reviewed, id }) => {
        reviewed.set('other', 'allows')
        return receive(id, '9', 'other')
      },
    ],
    [
      'stays open, and the host closes the transfer',
      'transfer_closed',
      ({ payments, id }) => payments.close('one', id),
    ],
  ])(
    'does not hold its payment open: once it %s, it is refused without a question',
    async (_, refusal, by) => {
      const setup = await setUp('9')
      const { id, receive, reviewed } = setup
      expect(await receive(id, '7', 'one')).toEqual(waits)
      await by(setup)
      for (const end of [undefined, 'allows'] as const) {
        if (end !== undefined) reviewed.set('one', end)
        expect(await receive(id, '7', 'one')).toMatchObject({ ok: false, refusal })
      }
    },
  )

  test('has a reason of the host, which may wait for 30 days and not longer', async () => {
    const month = 30 * 86_400_000
    const told = { ...reviewUntil(startOfTests + month), reason: 'on the list' }
    async function resultOf(given: object) {
      const { newPayment, receive } = paymentServices({
        mayReceive: ({ type }) => (type === 'creation' ? allowed : (given as never)),
      })
      return receive(await newPayment())
    }
    expect(await resultOf(told)).toEqual(told)
    for (const at of [startOfTests, startOfTests + month + 1, 1.5, '17', undefined, null]) {
      await expect(resultOf({ ...told, retryAt: at })).rejects.toThrow(/mayReceive.*retryAt/s)
    }
    await expect(resultOf({ ...told, reason: 7 })).rejects.toThrow(/mayReceive.*reason/s)
  })

  test('is no answer about a creation, which cannot wait', async () => {
    const { payments, newPayment } = paymentServices({ mayReceive: () => reviewUntil(retryAt) })
    await expect(newPayment()).rejects.toThrow('mayReceive')
    await expect(payments.createOnce({ walletAddress: bob }, 'key')).rejects.toThrow('mayReceive')
  })
})

type Setup = ReturnType<typeof paymentServices> & {
  readonly id: string
  readonly reviewed: Map<string, Exclude<Says, 'fails' | 'errs'>>
}
