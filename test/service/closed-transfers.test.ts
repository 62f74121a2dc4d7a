import fc, { type Scheduler } from 'fast-check'
import { describe, expect, test } from 'vitest'
import { postgresStore } from '../../adapters/postgres.js'
import { memoryStore, type Store } from '../../src/index.js'
import { manualClock, startOfTests } from '../support/clock.js'
import { freshPostgres, servers } from '../support/databases.js'
import { usd } from '../support/incoming-payments.js'
import { paymentServices } from '../support/outbox.js'
import { runs } from '../support/runs.js'

type Fault = 'none' | 'before' | 'after' | 'killed before' | 'killed after'

/** What one process does with a transfer. Its time is over when the clock has moved. */
interface Step {
  readonly process: 0 | 1
  readonly transferId: string
  readonly does: 'receive' | 'receive in time' | 'close' | 'pass'
}

const transferIds = ['a', 'b', 'c'] as const

const steps = fc.array(
  fc.record<Step>({
    process: fc.constantFrom(0, 1),
    transferId: fc.constantFrom(...transferIds),
    does: fc.oneof(
      {
        weight: 8,
        arbitrary: fc.constantFrom<Step['does']>('receive', 'receive in time', 'close'),
      },
      { weight: 1, arbitrary: fc.constant('pass') },
    ),
  }),
  { minLength: 2, maxLength: 14 },
)

const fault = fc.constantFrom<Fault>(
  ...(['none', 'none', 'none', 'before', 'after', 'killed before', 'killed after'] as const),
)
const faults = fc.array(fault, { maxLength: 5 })

/** The store of a process that loses responses, and can be killed, which ends all its calls. */
function ofProcess(store: Store, faults: Fault[]): Store {
  let isKilled = false
  return {
    ...store,
    async load(keys) {
      if (isKilled) throw new Error('the process was killed')
      return store.load(keys)
    },
    async commit(commit) {
      const fault = isKilled ? 'before' : (faults.shift() ?? 'none')
      isKilled ||= fault.startsWith('killed')
      if (fault.endsWith('before')) throw new Error('lost before the commit')
      const committed = await store.commit(commit)
      if (fault.endsWith('after')) throw new Error('lost after the commit')
      return committed
    },
  }
}

type Outcome = 'counted' | 'closed'

/** Lets two processes receive and close transfers in some order, and checks every answer against the end. */
async function checkHistory(
  store: Store,
  seed: string,
  history: readonly Step[],
  faults: readonly Fault[],
  scheduler?: Scheduler,
): Promise<readonly Outcome[]> {
  const clock = manualClock()
  const after = paymentServices({ store, clock, seed: `${seed} after` })
  const id = await after.newPayment()
  const processes = ['one', 'two'].map((name) =>
    paymentServices({
      store: ofProcess(store, [...faults]),
      clock,
      seed: `${seed} ${name}`,
      combines: true,
      ...(scheduler && { scheduler }),
    }),
  )
  const named = (transferId: string) => `${seed} ${transferId}`

  async function carryOut({ process, transferId, does }: Step): Promise<Outcome | undefined> {
    if (does === 'pass') {
      clock.advance(1)
      return undefined
    }
    const { payments } = processes[process] ?? after
    if (does === 'close') {
      const closed = await payments.close(named(transferId), id)
      return closed.ok ? (closed.counted ? 'counted' : 'closed') : undefined
    }
    const limit = does === 'receive' ? {} : { notAfter: startOfTests }
    const funds = { transferId: named(transferId), amount: usd('10'), ...limit }
    const received = await payments.receive(id, funds)
    if (received.ok) return 'counted'
    return received.refusal === 'transfer_closed' ? 'closed' : undefined
  }

  const settled = Promise.allSettled(history.map(carryOut))
  await (scheduler === undefined ? settled : scheduler.waitFor(settled))
  const ends: Outcome[] = []
  for (const transferId of transferIds) {
    const end = await after.payments.close(named(transferId), id)
    if (!end.ok) throw new Error(end.reason)
    ends.push(end.counted ? 'counted' : 'closed')
    // Every call is repeated, as a host does that was killed.
    for (const does of ['receive', 'receive in time', 'close'] as const) {
      const again = { process: 2 as never, transferId, does }
      expect(await carryOut(again)).toBe(ends.at(-1))
    }
  }
  for (const [index, result] of (await settled).entries()) {
    const told = result.status === 'fulfilled' ? result.value : undefined
    const transferId = history[index]?.transferId as (typeof transferIds)[number]
    if (told !== undefined) expect(told).toBe(ends[transferIds.indexOf(transferId)])
  }
  const payment = await after.payments.load(id)
  expect(payment?.received).toBe(String(10 * ends.filter((end) => end === 'counted').length))
  return ends
}

describe('a transfer is counted or closed, and no answer is ever taken back', () => {
  test('in any order of two processes, with lost responses, kills and repeats', async () => {
    const met = new Set<Outcome>()
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), steps, faults, async (scheduler, history, faults) => {
        const ends = await checkHistory(memoryStore(), 'one', history, faults, scheduler)
        for (const end of ends) met.add(end)
      }),
      { numRuns: runs(2_000, 150) },
    )
    expect(met.size).toBe(2)
  })

  test.skipIf(servers.PostgreSQL === undefined)('on PostgreSQL', async () => {
    const { pool, schema, drop } = await freshPostgres()
    try {
      let run = 0
      await fc.assert(
        fc.asyncProperty(steps, faults, async (history, faults) => {
          await checkHistory(postgresStore(pool, { schema }), `${run++}`, history, faults)
        }),
        { numRuns: runs(200, 20) },
      )
    } finally {
      await drop()
    }
  })
})

describe('a transfer that arrives late', () => {
  test('is closed if an attempt to count it was lost, and the next one is too late', async () => {
    const clock = manualClock()
    const store = memoryStore()
    const setup = paymentServices({ store, clock })
    const id = await setup.newPayment()
    let held: (() => Promise<boolean>) | undefined
    const slow: Store = {
      ...store,
      async commit(commit) {
        if (held !== undefined) return store.commit(commit)
        held = () => store.commit(commit)
        clock.advance(1)
        throw new Error('no response: the commit may still take effect')
      },
    }
    const { payments } = paymentServices({ store: slow, clock, seed: 'slow' })
    const funds = { transferId: 'first', amount: usd('10'), notAfter: startOfTests }
    expect(await payments.receive(id, funds)).toMatchObject({ refusal: 'transfer_closed' })
    expect(await held?.()).toBe(false)
    expect(await setup.payments.load(id)).toMatchObject({ received: '0' })
    expect(await setup.payments.close('first', id)).toMatchObject({ counted: false })
  })

  test.each([
    ['waits for mayReceive', true, 'transfer_closed'],
    ['does not', false, undefined],
  ])('is refused although it came in time, if it %s', async (_, waits, refusal) => {
    const clock = manualClock()
    const { payments, newPayment } = paymentServices({
      clock,
      mayReceive({ type }) {
        if (type === 'arrival' && waits) clock.advance(1)
        return { ok: true }
      },
    })
    const id = await newPayment()
    const funds = { transferId: 'first', amount: usd('10'), notAfter: startOfTests }
    expect((await payments.receive(id, funds)) as object).toMatchObject(
      refusal === undefined ? { ok: true } : { ok: false, refusal },
    )
  })

  test('is closed without asking mayReceive about it', async () => {
    const clock = manualClock()
    const asked: string[] = []
    const { payments, newPayment } = paymentServices({
      clock,
      mayReceive({ type }) {
        asked.push(type)
        return { ok: true }
      },
    })
    const id = await newPayment()
    clock.advance(1)
    const funds = { transferId: 'first', amount: usd('10') }
    const late = await payments.receive(id, { ...funds, notAfter: startOfTests })
    expect(late).toMatchObject({ ok: false, refusal: 'transfer_closed' })
    expect(await payments.receive(id, funds)).toMatchObject({ refusal: 'transfer_closed' })
    expect(asked).toEqual(['creation'])
  })
})

describe('the mark of a closed transfer', () => {
  test('is kept until a sweep has removed the payment, and no answer is made up afterwards', async () => {
    const { clock, payments, newPayment, sweep, store, context } = paymentServices()
    const id = await newPayment()
    expect(await payments.close('first', id)).toMatchObject({ counted: false, changed: true })
    const sweepAll = async () => {
      while ((await sweep()).more);
    }
    const namespace = await context.namespace()
    const marks = () => store.due('transfer', namespace, Number.MAX_SAFE_INTEGER, 10)
    // It expires after a minute, and is kept for another one.
    clock.advance(120_001)
    await sweepAll()
    expect(await payments.load(id)).toBeUndefined()
    expect(await marks()).toHaveLength(1)
    expect(await payments.close('first', id)).toMatchObject({ counted: false, changed: false })
    expect(await payments.close('second', id)).toMatchObject({ refusal: 'payment_unknown' })
    clock.advance(86_400_000)
    await sweepAll()
    expect(await marks()).toHaveLength(0)
    expect(await payments.close('first', id)).toMatchObject({ refusal: 'payment_unknown' })
  })
})
