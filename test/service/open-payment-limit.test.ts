import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { memoryStore, type Store } from '../../src/index.js'
import {
  createOpenPaymentLimit,
  type OpenPaymentLimit,
} from '../../src/service/open-payment-limit.js'
import { runs } from '../support/runs.js'

const list = 'namespac https://wallet.example/bob https://shop.example open'
const lifetimeMs = 1_000_000

/** Payments in a store, and processes that each create payments with a limit of their own. */
function setUp({ openMax, processes = 1 }: { openMax: number; processes?: number }) {
  const store = memoryStore()
  let read = 0
  const counting: Store = {
    ...store,
    async list(query) {
      const page = await store.list(query)
      read += page.records.length
      return page
    },
  }
  const limits: OpenPaymentLimit[] = Array.from({ length: processes }, () =>
    createOpenPaymentLimit(counting, openMax),
  )
  const open: { id: string; expiresAt: number }[] = []
  let created = 0

  async function write(id: string, version: number, expiresAt?: number): Promise<void> {
    const lists = expiresAt === undefined ? [] : [{ list, at: expiresAt }]
    const next = { id, version, commandId: `${id} ${version}`, lists }
    const change = { kind: 'incoming-payment', next, expectedVersion: version - 1 } as const
    expect(await store.commit({ changes: [change], guards: [] })).toBe(true)
  }

  return {
    openAt: (now: number) => open.filter(({ expiresAt }) => now <= expiresAt).length,
    read: () => read,
    /** Creates a payment in a process; resolves to whether it was within the limit. */
    async create(now: number, process = 0): Promise<boolean> {
      const id = `namespac${created++}`
      const expiresAt = now + lifetimeMs
      const result = await limits[process]?.within(list, now, async () => {
        await write(id, 1, expiresAt)
        open.push({ id, expiresAt })
      })
      return result === undefined
    },
    async complete(): Promise<void> {
      const ended = open.shift()
      if (ended !== undefined) await write(ended.id, 2)
    },
  }
}

describe('the open payments of a client instance at a wallet address', () => {
  test.each([1, 9, 10, 25, 250])('are at most %i in one process', async (openMax) => {
    const { create, openAt } = setUp({ openMax })
    const within = await Promise.all(Array.from({ length: 2 * openMax + 5 }, () => create(0)))
    const uncounted = Math.floor(openMax / 10)
    expect(openAt(0)).toBeLessThanOrEqual(openMax)
    // A limit that is nearly reached is counted once per second.
    expect(openAt(0)).toBeGreaterThanOrEqual(openMax - uncounted)
    expect(within.filter(Boolean)).toHaveLength(openAt(0))
  })

  test('never exceed the maximum by more than a tenth for each process, and reach it', async () => {
    const step = fc.oneof(
      { weight: 6, arbitrary: fc.record({ create: fc.nat(4), process: fc.nat(2) }) },
      fc.constant('complete' as const),
      fc.record({ waitMs: fc.nat(2_000) }),
    )
    let full = 0
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 30 }),
        fc.array(step, { maxLength: 80 }),
        async (openMax, steps) => {
          const { create, complete, openAt } = setUp({ openMax, processes: 3 })
          let now = 0
          for (const each of steps) {
            if (each === 'complete') await complete()
            else if ('waitMs' in each) now += each.waitMs
            else {
              const { process } = each
              const many = Array.from({ length: each.create }, () => create(now, process))
              if ((await Promise.all(many)).includes(false)) full += 1
            }
            expect(openAt(now)).toBeLessThanOrEqual(openMax + 3 * Math.floor(openMax / 10))
          }
        },
      ),
      { numRuns: runs(200) },
    )
    expect(full).toBeGreaterThan(runs(10, 0))
  })

  test('leave room for others when they are completed or expire', async () => {
    const { create, complete } = setUp({ openMax: 20 })
    let now = 0
    while (await create(now)) now += 1_000
    await complete()
    await complete()
    now += 1_000
    expect([await create(now), await create(now), await create(now)]).toEqual([true, true, false])
    now += lifetimeMs + 1
    expect(await create(now)).toBe(true)
  })

  test('are refused with the time when a retry may help', async () => {
    const limit = createOpenPaymentLimit(memoryStore(), 1)
    const first = limit.within(list, 0, () => new Promise<never>(() => {}))
    void first
    expect(await limit.within(list, 0, async () => 'created')).toMatchObject({
      refusal: 'open_payments_exceeded',
      retryAt: 60_000,
    })
  })

  test('cost at most ten reads of a record for each creation, and none for a refusal', async () => {
    const { create, read } = setUp({ openMax: 1_000 })
    let created = 0
    while (await create(created)) created += 1
    expect(created).toBe(1_000)
    expect(read()).toBeLessThanOrEqual(10 * created)
    const before = read()
    for (let i = 0; i < 100; i++) expect(await create(created)).toBe(false)
    expect(read()).toBe(before)
  })
})
