import fc, { type Scheduler } from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { RecordKind } from '../../src/entry-adapter.js'
import { memoryStore, type Store, type SweepResult } from '../../src/index.js'
import { retired, sweepKinds } from '../../src/service/sweep.js'
import { manualClock, startOfTests } from '../support/clock.js'
import { usd } from '../support/incoming-payments.js'
import { invalidInput } from '../support/invalid-input.js'
import { loadOne } from '../support/one-record.js'
import {
  paymentServices,
  type Setup,
  storedEvents,
  type Written,
  withEventLog,
} from '../support/outbox.js'
import { runs } from '../support/runs.js'
import { checkThenAct, lastWriteWins } from '../support/stores.js'
import {
  answerOf,
  bob,
  createWorld,
  incomingAccess,
  issuedGrant,
  outgoingAccess,
  withFinish,
} from '../support/world.js'

const second = 1_000
const day = 86_400 * second

/** The lifetime of the payments of `paymentServices`. */
const lifetimeMs = 60 * second

function expiriesIn(written: readonly Written[]): string[] {
  return written
    .flatMap(({ event }) =>
      event.type === 'incoming-payment.expired' ? event.incomingPaymentId : [],
    )
    .toSorted()
}

function logged(options: Parameters<typeof paymentServices>[0] = {}) {
  const { store, written } = withEventLog(options.store ?? memoryStore())
  return { ...paymentServices({ ...options, store }), written }
}

async function count({ store, context }: Setup, kind: RecordKind): Promise<number> {
  const namespace = await context.namespace()
  return (await store.due(kind, namespace, Number.MAX_SAFE_INTEGER, 100_000)).length
}

describe('recording expiries', () => {
  test('changes neither what the server accepts nor what a client sees', async () => {
    const [swept, unswept] = [logged(), logged()]
    for (const setup of [swept, unswept]) {
      const id = await setup.newPayment('5')
      await setup.receive(id, '3', 'counted')
      setup.clock.advance(lifetimeMs + 1)
      if (setup === swept) await setup.sweep()
      expect(await setup.receive(id, '3', 'counted')).toMatchObject({ ok: true })
      expect(await setup.receive(id, '2')).toMatchObject({ ok: false, refusal: 'payment_expired' })
      expect(await setup.payments.load(id)).toMatchObject({ received: '3', completed: false })
    }
  })

  test('counts its expiry when the response to the commit is lost', async () => {
    const clock = manualClock()
    const store = memoryStore()
    let lost = 0
    const forgetful: Store = {
      ...store,
      async commit(commit) {
        const committed = await store.commit(commit)
        if (clock.now() === startOfTests || lost++ > 0) return committed
        throw new Error('the connection is gone')
      },
    }
    const setup = logged({ store: forgetful, clock })
    await setup.newPayment()
    clock.advance(lifetimeMs + 1)
    expect(await setup.sweep()).toMatchObject({ expired: 1, removed: 0 })
    expect(lost).toBe(1)
  })
})

type Twin = (scheduler: Scheduler, store: Store) => Store

interface Search {
  readonly name: string
  readonly run: (scheduler: Scheduler, twin: Twin) => Promise<void>
  readonly twins: readonly { readonly fault: string; readonly twin: Twin }[]
}

const searches: readonly Search[] = [
  {
    name: 'expiries are recorded once, and funds at the last moment are counted before or refused after, in any order',
    async run(scheduler, twin) {
      const calm = memoryStore()
      const { store, written } = withEventLog(twin(scheduler, calm))
      const setup = paymentServices({ store: calm })
      const [wanted, open, idle] = [
        await setup.newPayment('10'),
        await setup.newPayment(),
        await setup.newPayment(),
      ]
      const [lastMoment, later] = [
        manualClock(startOfTests + lifetimeMs),
        manualClock(startOfTests + lifetimeMs + 1),
      ]
      const payer = paymentServices({ store, scheduler, clock: lastMoment, seed: 'payer' })
      const sweeping = [1, 2, 3].map(async (n) => {
        const sweeper = paymentServices({ store, scheduler, clock: later, seed: `sweeper ${n}` })
        return (await sweeper.sweep()).expired
      })
      const [received, expired] = await scheduler.waitFor(
        Promise.all([
          Promise.all([payer.receive(wanted, '10'), payer.receive(open, '3')]),
          Promise.all(sweeping),
        ]),
      )
      const expiries = expiriesIn(written)
      expect(expired.reduce((sum, n) => sum + n, 0)).toBe(expiries.length)
      expect(expiries.filter((id) => id === idle)).toEqual([idle])
      // A sweep whose clock is ahead may record the expiry of a payment before funds are counted.
      for (const [index, [id, value]] of [
        [wanted, '10'] as const,
        [open, '3'] as const,
      ].entries()) {
        const counted = received[index]?.ok === true
        expect((await setup.payments.load(id))?.received).toBe(counted ? value : '0')
        const told = written
          .filter(({ event }) => 'incomingPaymentId' in event && event.incomingPaymentId === id)
          .map(({ event }) => event.type)
        const end = `incoming-payment.${counted && id === wanted ? 'completed' : 'expired'}`
        expect(told).toEqual([...(counted ? ['incoming-payment.received'] : []), end])
      }
    },
    twins: [
      {
        fault: 'lets the last writer win',
        twin: (_scheduler, store) => lastWriteWins(store),
      },
      { fault: 'checks first and acts later', twin: checkThenAct },
    ],
  },
  {
    name: 'expired payments without retention are reported once and removed once',
    async run(scheduler, twin) {
      const calm = memoryStore()
      const { store, written } = withEventLog(twin(scheduler, calm))
      const setup = paymentServices({ store: calm, retentionMs: 0 })
      const ids = [await setup.newPayment(), await setup.newPayment()]
      const clock = manualClock(startOfTests + lifetimeMs + 1)
      const sweeping = [1, 2, 3].map(async (n) => {
        const sweeper = paymentServices({ store, scheduler, clock, seed: `sweeper ${n}` })
        let [expired, removed] = [0, 0]
        for (let round = 0; round < 3; round++) {
          const settled = await sweeper.sweep()
          expired += settled.expired
          removed += settled.removed
        }
        return { expired, removed }
      })
      const settled = await scheduler.waitFor(Promise.all(sweeping))
      expect(expiriesIn(written)).toEqual(ids.toSorted())
      expect(settled.reduce((sum, { expired }) => sum + expired, 0)).toBe(2)
      expect(settled.reduce((sum, { removed }) => sum + removed, 0)).toBe(2)
      for (const id of ids) expect(await setup.payments.load(id)).toBeUndefined()
    },
    twins: [
      {
        fault: 'claims the removal of a record that another process removed',
        twin: (_scheduler, store) => ({
          ...store,
          async remove(records) {
            await store.remove(records)
            return records.map(() => true)
          },
        }),
      },
      {
        fault: 'restores removed records',
        twin: (_scheduler, store) => lastWriteWins(store),
      },
    ],
  },
]

const schedules = 500

function check({ run }: Search, twin: Twin, numRuns: number) {
  const property = fc.asyncProperty(fc.scheduler(), (scheduler) => run(scheduler, twin))
  return fc.check(property, { numRuns, endOnFailure: true })
}

describe.each(searches)('$name', (search) => {
  test(`holds in ${runs(schedules)} interleavings of store responses`, async () => {
    const { errorInstance, counterexample } = await check(
      search,
      (_scheduler, store) => store,
      runs(schedules),
    )
    expect(errorInstance, fc.stringify(counterexample)).toBeNull()
  })

  test.each(search.twins)('does not hold with a store that $fault', async ({ twin }) => {
    const { failed } = await check(search, twin, schedules)
    expect(failed).toBe(true)
  })
})

describe('a sweep', () => {
  test('removes payments and transfers after their retention, transfers a day later', async () => {
    const setup = logged({ retentionMs: 10 * day })
    const [paid, unpaid] = [await setup.newPayment('5'), await setup.newPayment()]
    await setup.receive(paid, '5')
    setup.clock.set(startOfTests + lifetimeMs + 10 * day - 1)
    expect(await setup.sweep()).toMatchObject({ removed: 0 })
    setup.clock.advance(1)
    expect(await setup.sweep()).toMatchObject({ removed: 2 })
    expect(await setup.payments.load(paid)).toBeUndefined()
    expect(await setup.payments.load(unpaid)).toBeUndefined()
    expect(await count(setup, 'transfer')).toBe(1)
    setup.clock.advance(day - 1)
    expect(await setup.sweep()).toMatchObject({ removed: 0 })
    setup.clock.advance(1)
    expect(await setup.sweep()).toMatchObject({ removed: 1 })
    expect(await count(setup, 'transfer')).toBe(0)
    // The sweeps above recorded the expiry too, and no event is lost.
    expect(expiriesIn(setup.written)).toEqual([unpaid])
    expect(await storedEvents(setup)).toHaveLength(setup.written.length)
  })

  test('keeps a record that changed after the query', async () => {
    const store = memoryStore()
    const { context } = paymentServices({ store })
    const id = `${await context.namespace()}kept`
    const found = { id, version: 1, commandId: 'a', dueAt: 1, retainUntil: 1 }
    const changed = { id, version: 2, commandId: 'b', dueAt: startOfTests * 2 }
    await store.commit({
      changes: [{ kind: 'grant', next: found, expectedVersion: 0 }],
      guards: [],
    })
    await store.commit({
      changes: [{ kind: 'grant', next: changed, expectedVersion: 1 }],
      guards: [],
    })
    const lagging = { ...context, store: { ...store, due: async () => [found] } }
    expect(await sweepKinds(lagging, [retired('grant')])).toMatchObject({ removed: 0 })
    expect(await loadOne(store, 'grant', id)).toEqual(changed)
  })

  test('keeps a record that is due for another reason', async () => {
    const { store, context } = paymentServices()
    const id = `${await context.namespace()}kept`
    const next = { id, version: 1, commandId: 'a', dueAt: 1, retainUntil: startOfTests + 1 }
    await store.commit({ changes: [{ kind: 'grant', next, expectedVersion: 0 }], guards: [] })
    expect(await sweepKinds(context, [retired('grant')])).toMatchObject({ removed: 0 })
    expect(await loadOne(store, 'grant', id)).toEqual(next)
  })

  test('processes at most the given number of records of each kind', async () => {
    const { store, context } = paymentServices()
    const namespace = await context.namespace()
    for (let i = 0; i < 6; i++) {
      const kind = i % 2 === 0 ? 'grant' : 'replay'
      const next = { id: `${namespace}${i}`, version: 1, commandId: 'a', dueAt: i, retainUntil: i }
      await store.commit({ changes: [{ kind, next, expectedVersion: 0 }], guards: [] })
    }
    const kinds = [retired('grant'), retired('replay')]
    const sweep = () => sweepKinds(context, kinds, { limit: 2 })
    expect(await sweep()).toMatchObject({ removed: 4, more: true })
    expect(await sweep()).toMatchObject({ removed: 2, more: false })
  })

  test('rejects a limit that is not a positive integer', async () => {
    const setup = paymentServices()
    for (const limit of [0, -1, 1.5, Number.NaN, 10_001]) {
      await expect(setup.sweep({ limit })).rejects.toEqual(invalidInput('limit'))
    }
  })

  test.each(['stop', {}, null, new AbortController()])(
    'rejects a signal that is not an AbortSignal: %j',
    async (signal) => {
      const problem = invalidInput('signal')
      const sweep = paymentServices().sweep({ signal: signal as never })
      await expect(sweep).rejects.toEqual(problem)
    },
  )

  test('processes no further record after its signal is aborted', async () => {
    const { store, context } = paymentServices()
    const namespace = await context.namespace()
    for (let i = 0; i < 20; i++) {
      const next = { id: `${namespace}${i}`, version: 1, commandId: 'a', dueAt: 1, retainUntil: 1 }
      await store.commit({ changes: [{ kind: 'grant', next, expectedVersion: 0 }], guards: [] })
    }
    const controller = new AbortController()
    const stopping: Store = {
      ...store,
      async due(...query) {
        controller.abort()
        return store.due(...query)
      },
    }
    const inside = { ...context, store: stopping }
    const swept = await sweepKinds(inside, [retired('grant')], {
      limit: 10,
      signal: controller.signal,
    })
    expect(swept).toMatchObject({ removed: 0, more: false })
    expect(await store.due('grant', namespace, startOfTests, 100)).toHaveLength(20)
  })

  test('removes the records of all kinds by one call of the store', async () => {
    const { store, context } = paymentServices()
    const namespace = await context.namespace()
    for (let i = 0; i < 60; i++) {
      const next = { id: `${namespace}${i}`, version: 1, commandId: 'a', dueAt: 1, retainUntil: 1 }
      const kind = i % 2 === 0 ? 'grant' : 'replay'
      await store.commit({ changes: [{ kind, next, expectedVersion: 0 }], guards: [] })
    }
    const calls: number[] = []
    const counting: Store = {
      ...store,
      remove(records) {
        calls.push(records.length)
        return store.remove(records)
      },
    }
    const kinds = [retired('grant'), retired('replay')]
    const swept = await sweepKinds({ ...context, store: counting }, kinds)
    expect([swept.removed, calls]).toEqual([60, [60]])
  })

  test('that repeats while there is more leaves nothing due, whatever its limit', async () => {
    const property = fc.asyncProperty(
      fc.integer({ min: 1, max: 7 }),
      fc.array(fc.constantFrom('open', 'paid', 'retired'), { maxLength: 12 }),
      async (limit, states) => {
        const setup = logged({ retentionMs: day })
        for (const state of states) {
          const id = await setup.newPayment('5')
          if (state === 'paid') await setup.receive(id, '5')
        }
        setup.clock.advance(lifetimeMs + (states.includes('retired') ? 3 * day : 1))
        let expired = 0
        for (let more = true; more; ) {
          const swept = await setup.sweep({ limit })
          expired += swept.expired
          more = swept.more
        }
        const { context, store, clock } = setup
        const namespace = await context.namespace()
        for (const kind of ['incoming-payment', 'transfer', 'replay'] as const) {
          expect(await store.due(kind, namespace, clock.now(), 100)).toEqual([])
        }
        expect(expired).toBe(states.filter((state) => state !== 'paid').length)
      },
    )
    await fc.assert(property, { numRuns: 200 })
  })

  test('continues after a failed removal, and then rejects with its error', async () => {
    const { store, context } = paymentServices()
    const namespace = await context.namespace()
    const ids = Array.from({ length: 20 }, (_, i) => `${namespace}${i}`)
    for (const id of ids) {
      const next = { id, version: 1, commandId: 'a', dueAt: 1, retainUntil: 1 }
      await store.commit({ changes: [{ kind: 'grant', next, expectedVersion: 0 }], guards: [] })
    }
    const failing: Store = {
      ...store,
      async remove(records) {
        if (records.some(({ id }) => id === ids[3])) throw new Error('locked')
        return store.remove(records)
      },
    }
    const inside = { ...context, store: failing }
    const replay = { id: `${namespace}n`, version: 1, commandId: 'a', dueAt: 1, retainUntil: 1 }
    const change = { kind: 'replay', next: replay, expectedVersion: 0 } as const
    await store.commit({ changes: [change], guards: [] })
    const kinds = [retired('grant'), retired('replay')]
    await expect(sweepKinds(inside, kinds)).rejects.toThrow('locked')
    expect(await loadOne(store, 'replay', replay.id), 'a record of another kind').toBeUndefined()
    expect(await loadOne(store, 'grant', ids[3] ?? '')).toBeDefined()
    expect(await store.due('grant', namespace, startOfTests, 100)).toHaveLength(1)
  })
})

describe('a used signature', () => {
  test('is remembered for as long as it would be accepted, despite sweeps', async () => {
    for (let ageMs = -60 * second; ageMs <= 300 * second; ageMs += 30 * second) {
      const world = createWorld()
      const client = world.client()
      const granted = await client.request([incomingAccess])
      const created = Math.floor(world.clock.now() / 1000) + 60
      const request = client.sign({
        method: 'POST',
        url: granted.body.continue.uri.replace(/auth.*/, 'op/incoming-payments'),
        token: granted.body.access_token.value,
        body: JSON.stringify({ walletAddress: bob }),
        created,
        nonce: 'used once',
      })
      expect(answerOf(await world.handle(request)).status).toBe(201)
      world.clock.set(created * 1000 + ageMs)
      await world.resources.sweep()
      expect(answerOf(await world.handle(request)).status, `${ageMs} ms`).toBe(409)
      expect(world.refusals.at(-1)).toMatchObject({ refusal: 'repeated' })
    }
  })

  test('is forgotten once no clock within the tolerance would accept it', async () => {
    const world = createWorld()
    await world.client().request([incomingAccess])
    world.clock.advance(480 * second)
    expect(await world.auth.sweep()).toMatchObject({ removed: 0 })
    world.clock.advance(1)
    expect(await world.auth.sweep()).toMatchObject({ removed: 1 })
    expect(await world.auth.sweep()).toMatchObject({ removed: 0 })
  })
})

describe('the servers', () => {
  test('remove their own records: grants, payments, transfers, signatures', async () => {
    const world = createWorld()
    const client = world.client()
    const { token, continue: continuation } = await issuedGrant(world, client)
    const granted = await client.request([incomingAccess])
    const created = await client.createPayment(granted.body.access_token.value, {
      walletAddress: bob,
      incomingAmount: usd('5'),
    })
    const paymentId = world.resources.incomingPayments.idOf(created.body.id) ?? ''
    const funds = { transferId: 'a', amount: usd('2') }
    await world.resources.incomingPayments.receive(paymentId, funds)
    await client.request([outgoingAccess], withFinish)

    world.clock.advance(31 * day)
    expect(await world.resources.sweep()).toMatchObject({ expired: 1 })
    expect(await world.resources.sweep()).toMatchObject({ expired: 0 })
    world.clock.advance(2 * 365 * day)
    // The payment and its transfer. The first sweep removed the nonce of the request.
    expect(await world.resources.sweep()).toMatchObject({ removed: 2 })
    expect(await world.resources.incomingPayments.get(paymentId)).toBeUndefined()
    // The grant without consent, the undecided request and the nonces of four requests.
    expect(await world.auth.sweep()).toMatchObject({ removed: 6 })
    expect(await world.auth.sweep()).toMatchObject({ removed: 0 })

    // The grant with the consent of its owner still exists two years later.
    const rotated = await client.rotate(token)
    expect(rotated.status).toBe(200)
    expect((await client.cancel(continuation)).status).toBe(204)
    world.clock.advance(30 * day)
    expect((await world.auth.sweep()).removed).toBeGreaterThan(0)
    expect((await client.rotate(rotated.body.access_token)).status).toBe(404)
  })

  test('record expiries in batches of the given size', async () => {
    const world = createWorld()
    const client = world.client()
    const { body } = await client.request([incomingAccess])
    for (let i = 0; i < 5; i++) {
      await client.createPayment(body.access_token.value, { walletAddress: bob })
    }
    world.clock.advance(31 * day)
    const batches: SweepResult[] = []
    for (let i = 0; i < 4; i++) batches.push(await world.resources.sweep({ limit: 2 }))
    expect(batches.map(({ expired }) => expired)).toEqual([2, 2, 1, 0])
    expect(batches.map(({ more }) => more)).toEqual([true, true, true, false])
  })
})
