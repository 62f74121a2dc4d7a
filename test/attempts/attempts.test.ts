import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  type Answer,
  type AttemptsOptions,
  attempts,
  type FoundById,
  type Reply,
  type SettlementChange,
} from '../../src/entry-attempts.js'
import { InvalidInputError, memoryStore, type Store } from '../../src/index.js'
import { manualClock, startOfTests } from '../support/clock.js'
import { runs } from '../support/runs.js'

const lost: Reply = { outcome: 'unknown', reason: 'no reply' }
const request = { id: 'payment-1', amount: 1_000n, otherSide: 'custodian' }

/** A driver whose other side replies and answers as given, in this order; then it does not answer. */
function opened(
  given: {
    readonly replies?: readonly (Reply | Error)[]
    readonly found?: readonly (Exclude<FoundById['found'], 'refused'> | Error)[]
    readonly sums?: readonly bigint[]
  } & Partial<AttemptsOptions> = {},
) {
  const { replies = [], found = [], sums, ...options } = given
  const clock = manualClock()
  const [left, answers, totals] = [[...replies], [...found], [...(sums ?? [])]]
  const orders: { readonly reference: string; readonly amount: bigint }[] = []
  const errors: unknown[] = []
  const evidence = sums === undefined ? 'id' : 'sum'
  const driver = attempts({
    name: 'custodian',
    store: memoryStore(),
    clock,
    evidence,
    notAfter: (now) => now + 60_000,
    async send({ reference, amount }) {
      orders.push({ reference, amount })
      const reply = left.shift() ?? lost
      if (reply instanceof Error) throw reply
      return reply
    },
    async ask({ references }): Promise<Answer | undefined> {
      if (evidence === 'sum') {
        const received = totals.shift()
        return received === undefined ? undefined : { by: 'sum', received }
      }
      const next = answers.shift()
      if (next instanceof Error) throw next
      if (next === undefined) return undefined
      const each = references.map((reference) => [reference, { found: next }])
      return { by: 'id', attempts: Object.fromEntries(each) }
    },
    onError: (error) => errors.push(error),
    ...options,
  })
  return { driver, clock, orders, errors }
}

async function all<Item>(items: AsyncIterable<Item>): Promise<readonly Item[]> {
  const found: Item[] = []
  for await (const item of items) found.push(item)
  return found
}

describe('a settlement', () => {
  test('ends with the first proof, and is sent once however often it is called', async () => {
    const { driver, orders } = opened({ replies: [{ outcome: 'proven' }] })
    for (let calls = 0; calls < 3; calls++) {
      const settled = await driver.settle(request)
      expect(settled).toMatchObject({ state: 'ended', arrived: 1_000n, inDoubt: 0n })
    }
    expect(orders).toHaveLength(1)
    expect(await all(driver.inDoubt())).toEqual([])
  })

  test('waits for nothing: it returns when to be called again', async () => {
    const { driver, clock } = opened({ found: ['absent', 'absent', 'absent'] })
    const again = { state: 'again', why: 'may_take_effect', totals: { inDoubt: 1_000n } }
    expect(await driver.settle(request)).toMatchObject({ ...again, retryAt: startOfTests + 1_000 })
    clock.advance(40_000)
    // Twice as old as at the question before, but not after the answer can decide.
    expect(await driver.settle(request)).toMatchObject({ ...again, retryAt: startOfTests + 70_000 })
  })

  test('is sent again after "never", under a new reference', async () => {
    const { driver, clock, orders } = opened({
      replies: [lost, { outcome: 'proven' }],
      found: ['absent', 'absent'],
    })
    await driver.settle(request)
    clock.advance(70_000)
    expect(await driver.settle(request)).toMatchObject({ state: 'ended', arrived: 1_000n })
    expect(orders.map(({ amount }) => amount)).toEqual([1_000n, 1_000n])
    expect(orders[0]?.reference).not.toBe(orders[1]?.reference)
  })

  test('makes at most three calls of the other side at a time, and waits before it sends again', async () => {
    const outcome = fc.constantFrom<Reply>(
      lost,
      { outcome: 'proven', arrived: 1n },
      { outcome: 'refused', reason: 'busy', retryAt: startOfTests },
    )
    const found = fc.constantFrom<FoundById>(
      { found: 'never' },
      { found: 'arrived', arrived: 1n },
      { found: 'pending' },
      { found: 'absent' },
    )
    const property = fc.asyncProperty(fc.array(fc.tuple(outcome, found)), async (said) => {
      let calls = 0
      let sentAt = Number.NEGATIVE_INFINITY
      const answers = [...said]
      const { driver, clock } = opened({
        async send() {
          calls += 1
          expect(clock.now()).toBeGreaterThan(sentAt)
          sentAt = clock.now()
          return answers[0]?.[0] ?? lost
        },
        async ask({ references }) {
          calls += 1
          const answer = answers.shift()?.[1] ?? { found: 'never' }
          const each = references.map((reference) => [reference, answer])
          return { by: 'id', attempts: Object.fromEntries(each) }
        },
      })
      for (;;) {
        calls = 0
        const settled = await driver.settle(request)
        expect(calls).toBeLessThanOrEqual(3)
        if (settled.state === 'ended') return
        expect(settled.retryAt).toBeGreaterThan(clock.now())
        clock.set(settled.retryAt)
      }
    })
    await fc.assert(property, { numRuns: runs(1_000, 100) })
  })

  test('ends at once if the order is found although its reply was lost', async () => {
    const { driver } = opened({ found: ['arrived'] })
    expect(await driver.settle(request)).toMatchObject({ state: 'ended', arrived: 1_000n })
  })

  test('ends with a lasting refusal, and says why', async () => {
    const { driver } = opened({ replies: [{ outcome: 'refused', reason: 'closed' }] })
    const ended = { state: 'ended', arrived: 0n, inDoubt: 0n, reason: 'closed' }
    expect(await driver.settle(request)).toMatchObject(ended)
  })

  test('is called again at the instant that a refusal names', async () => {
    const retryAt = startOfTests + 5_000
    const { driver, clock, orders } = opened({
      replies: [{ outcome: 'refused', reason: 'busy', retryAt }, { outcome: 'proven' }],
    })
    const again = { state: 'again', retryAt, why: 'refused', totals: { inDoubt: 0n } }
    expect(await driver.settle(request)).toMatchObject(again)
    clock.set(retryAt)
    expect(await driver.settle(request)).toMatchObject({ state: 'ended', arrived: 1_000n })
    expect(orders).toHaveLength(2)
  })

  test('ends in doubt if nobody answers in time, and a later call decides', async () => {
    const { driver, clock, orders } = opened({
      found: [new Error('down'), new Error('down'), 'absent'],
    })
    await driver.settle(request)
    clock.advance(1_800_000)
    const inDoubt = { state: 'ended', arrived: 0n, inDoubt: 1_000n }
    expect(await driver.settle(request)).toMatchObject(inDoubt)
    const [view] = await all(driver.inDoubt())
    const doubt = { kind: 'in_doubt', amount: '1000', since: startOfTests, reason: 'no reply' }
    expect(view).toMatchObject({ id: 'payment-1', otherSide: 'custodian', doubts: [doubt] })
    expect(await driver.settle(request)).toMatchObject({ arrived: 0n, inDoubt: 0n })
    expect(await all(driver.inDoubt())).toEqual([])
    expect(orders).toHaveLength(1)
  })

  test('reads the sum before it sends, and sends nothing while nobody answers', async () => {
    const { driver, orders } = opened({ sums: [] })
    const again = { state: 'again', why: 'unreadable', retryAt: startOfTests + 1_000 }
    expect(await driver.settle(request)).toMatchObject(again)
    expect(orders).toEqual([])
  })

  test('counts a sum that was read before the question at its time', async () => {
    const { driver, clock } = opened({
      evidence: 'sum',
      ask: async () => ({ by: 'sum', received: 500n, askedAt: startOfTests }),
    })
    await driver.settle(request)
    clock.advance(70_000)
    expect(await driver.settle(request)).toMatchObject({ state: 'again', why: 'may_take_effect' })
  })

  test('closes an old reference, if the other side can', async () => {
    const closed: string[] = []
    const { driver, clock, orders } = opened({
      found: ['pending', 'pending'],
      replies: [lost, { outcome: 'proven' }],
      close: async ({ reference }) => {
        closed.push(reference)
        return 'never'
      },
    })
    expect(await driver.settle(request)).toMatchObject({ state: 'again' })
    expect(closed).toEqual([])
    clock.advance(60_000)
    expect(await driver.settle(request)).toMatchObject({ state: 'ended', arrived: 1_000n })
    expect(closed).toEqual([orders[0]?.reference])
  })

  test('takes errors and wrong answers of the host as unknown, and reports them', async () => {
    const { driver, errors } = opened({
      replies: [new Error('reset'), { outcome: 'done' } as never],
      found: [new Error('down')],
    })
    const settled = await driver.settle(request)
    expect(settled).toMatchObject({
      state: 'again',
      why: 'unreadable',
      totals: { inDoubt: 1_000n },
    })
    expect(errors.map(String)).toEqual(['Error: reset', 'Error: down'])
    await driver.settle({ ...request, id: 'payment-2' })
    expect(String(errors[2])).toContain('the answer of send is wrong')
  })

  test('takes an answer by reference without attempts as none', async () => {
    const { driver, errors } = opened({ ask: async () => ({ by: 'id' }) as never })
    expect(await driver.settle(request)).toMatchObject({ state: 'again', why: 'unreadable' })
    expect(String(errors[0])).toContain('the answer of ask is wrong')
  })

  test('waits for a reply for a limited time', async () => {
    const { driver, errors } = opened({ send: () => new Promise(() => undefined), replyMs: 1 })
    expect(await driver.settle(request)).toMatchObject({ state: 'again' })
    expect(String(errors[0])).toContain('no reply within 1 ms')
  })

  test('has one amount', async () => {
    const { driver } = opened()
    await driver.settle(request)
    const other = driver.settle({ ...request, amount: 1_001n })
    await expect(other).rejects.toThrow(InvalidInputError)
  })

  test('is refused with an invalid request or option', async () => {
    const { driver } = opened()
    await expect(driver.settle({ ...request, amount: 0n })).rejects.toThrow('request.amount')
    await expect(driver.settle({ ...request, id: 'a/b' })).rejects.toThrow('request.id')
    expect(() => opened({ evidence: 'word' as never })).toThrow('evidence must be one of id, sum')
    expect(() => opened({ margin: 1 } as never)).toThrow('margin')
  })
})

describe('an operator', () => {
  async function inDoubt() {
    const world = opened()
    await world.driver.settle(request)
    return world
  }

  test.each([
    ['arrived', 1_000n],
    ['never', 0n],
  ] as const)('decides what is in doubt: %s', async (what, proven) => {
    const { driver, clock, orders } = await inDoubt()
    const decided = await driver.decide('payment-1', what, 'ada')
    expect(decided).toMatchObject({ ok: true, changed: true })
    expect(await driver.get('payment-1')).toMatchObject({
      totals: { proven, inDoubt: 0n },
      doubts: [],
    })
    const second = await driver.decide('payment-1', what, 'ada')
    expect(second).toMatchObject({ ok: false, refusal: 'nothing_in_doubt' })
    clock.advance(3_600_000)
    await driver.settle(request)
    expect(orders).toHaveLength(1)
  })

  test('confirms what arrived by word, or decides that it never did', async () => {
    for (const [what, proven] of [
      ['arrived', 1_000n],
      ['never', 0n],
    ] as const) {
      const { driver } = opened({ sums: [500n, 1_500n] })
      const settled = await driver.settle(request)
      expect(settled).toMatchObject({ state: 'ended', totals: { byWord: 1_000n, proven: 0n } })
      await driver.decide('payment-1', what, 'ada')
      const totals = { proven, byWord: 0n, inDoubt: 0n }
      const withdrawn = { kind: 'withdrawn', amount: '1000' }
      const doubts = what === 'never' ? [withdrawn] : []
      expect(await driver.get('payment-1')).toMatchObject({ totals, doubts })
      await driver.decide('payment-1', 'corrected', 'ada')
      expect(await all(driver.inDoubt())).toEqual([])
    }
  })

  test.each(['ask', 'close'] as const)(
    'who decides "never" while the other side says "arrived" is told of the excess: %s',
    async (by) => {
      const never = () => driver.decide('payment-1', 'never', 'ada')
      const says: Partial<AttemptsOptions> = {
        async ask({ references: [reference = ''] }) {
          if (by === 'close') return undefined
          await never()
          return { by: 'id', attempts: { [reference]: { found: 'arrived' } } }
        },
        async close() {
          await never()
          return 'arrived'
        },
        closeAfterMs: 0,
      }
      const { driver, orders } = opened({ ...says, replies: [lost, { outcome: 'proven' }] })
      const totals = { proven: 1_000n, excess: 1_000n, free: 0n }
      expect(await driver.settle(request)).toMatchObject({ state: 'ended', totals })
      expect(orders).toHaveLength(1)
      expect(await all(driver.inDoubt())).toMatchObject([{ id: 'payment-1', totals }])
    },
  )

  test('is refused for what is unknown', async () => {
    const { driver } = await inDoubt()
    const unknown = await driver.decide('payment-2', 'never', 'ada')
    expect(unknown).toMatchObject({ ok: false, refusal: 'settlement_unknown' })
    const attempt = await driver.decide('payment-1', 'never', 'ada', { reference: 'other' })
    expect(attempt).toMatchObject({ ok: false, refusal: 'attempt_unknown' })
    expect(await driver.get('payment-2')).toBeUndefined()
  })
})

describe('the host', () => {
  test('writes each change in its own transaction, and a lost race writes nothing', async () => {
    const changes: SettlementChange[] = []
    const store = memoryStore()
    const { driver } = opened({
      store,
      replies: [{ outcome: 'proven' }],
      async transaction(change, write) {
        const ok = await write(store)
        if (ok) changes.push(change)
        return { ok }
      },
    })
    await driver.settle(request)
    const moved = changes.map(({ before, after }) => [
      after.inDoubt - before.inDoubt,
      after.proven - before.proven,
    ])
    expect(moved).toEqual([
      [0n, 0n],
      [1_000n, 0n],
      [-1_000n, 1_000n],
    ])
  })

  test('sends nothing after its end, also if an operator finds that nothing arrived', async () => {
    const { driver, orders } = opened({ sums: [0n, 1_000n, 1_000n] })
    expect(await driver.settle(request)).toMatchObject({ state: 'ended', arrived: 1_000n })
    expect(await driver.decide('payment-1', 'never', 'ada')).toMatchObject({ ok: true })
    expect(await driver.settle(request)).toMatchObject({ state: 'ended', arrived: 0n })
    expect(orders).toHaveLength(1)
  })

  test('repeats after a commit whose outcome it did not learn', async () => {
    const store = memoryStore()
    let commits = 0
    const failing: Store = {
      ...store,
      async commit(commit) {
        const isCommitted = await store.commit(commit)
        commits += 1
        if (commits % 2 === 0) throw new Error('the connection was lost')
        return isCommitted
      },
    }
    const { driver, orders } = opened({ store: failing, replies: [{ outcome: 'proven' }] })
    expect(await driver.settle(request)).toMatchObject({ state: 'ended', arrived: 1_000n })
    expect(orders).toHaveLength(1)
  })

  test('removes settlements past their retention, but none with a doubt', async () => {
    const { driver, clock } = opened({ replies: [{ outcome: 'proven' }], retentionMs: 86_400_000 })
    await driver.settle(request)
    await driver.settle({ ...request, id: 'payment-2' })
    expect(await driver.sweep()).toEqual({ removed: 0, more: false })
    clock.advance(86_400_000)
    expect(await driver.sweep()).toEqual({ removed: 1, more: false })
    expect(await driver.get('payment-1')).toBeUndefined()
    expect(await driver.get('payment-2')).toBeDefined()
  })
})
