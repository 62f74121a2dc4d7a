import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Budget } from '../../src/core/budget.js'
import type { Grant } from '../../src/core/grant/record.js'
import { heldBy, type OutgoingPayment } from '../../src/core/outgoing-payment/record.js'
import { memoryStore, type RecordChange, type Store } from '../../src/index.js'
import {
  checkThenAct,
  guardsFirst,
  ignoresGuards,
  lastWriteWins,
  upsert,
} from '../support/broken-stores/commits.js'
import { manualClock, startOfTests } from '../support/clock.js'
import { runs } from '../support/runs.js'
import { same } from '../support/same.js'
import { shopReceiver, usd } from '../support/spending.js'
import {
  type Payer,
  type SpendingServices,
  spendingPolicy,
  spendingServices,
} from '../support/spending-services.js'
import { turnstile } from '../support/turnstile.js'
import { alice } from '../support/world.js'

/** The number of interleavings of store calls in each search, unless a race specifies its own. */
const orders = 1_000

const access = [
  {
    type: 'outgoing-payment',
    actions: ['create'],
    identifier: alice,
    limits: { debitAmount: usd(100) },
  },
] as const

/** The concurrent operations of a race, and the services for use before and after them. */
interface Scene {
  readonly setup: SpendingServices
  /** Returns the services of another process on the contested store. Its clock may differ. */
  process(name: string, ms?: number): SpendingServices
  run<Result>(...running: readonly Promise<Result>[]): Promise<Result[]>
  /** The committed changes, in order. */
  readonly written: readonly RecordChange[]
}

interface Race {
  readonly name: string
  readonly run: (scene: Scene) => Promise<void>
  /** A broken store that this search must detect. */
  readonly twin: (store: Store, between: () => Promise<unknown>) => Store
  readonly fault: string
  readonly schedules?: number
}

const checksAndActs: Pick<Race, 'twin' | 'fault'> = {
  fault: 'checks first and acts later',
  twin: (store, between) => checkThenAct(store, between),
}
const lastWins = { fault: 'lets the last writer win', twin: lastWriteWins }
const replaces = { fault: 'overwrites existing records on creation', twin: upsert }

const paying = (value: number) => ({
  walletAddress: alice,
  incomingPayment: shopReceiver,
  debitAmount: usd(value),
})

type Paid = Awaited<ReturnType<SpendingServices['pay']>>
type HostResult = { readonly ok: boolean; readonly refusal?: string }

const idOf = (answer: Paid) => (answer.ok ? answer.payment.id : answer.refusal)

function paymentsIn({ written }: Scene): OutgoingPayment[] {
  return written
    .filter(({ kind }) => kind === 'outgoing-payment')
    .map(({ next }) => next as OutgoingPayment)
}

/**
 * Returns the total of the budget, which must equal the amounts of its payments and be within the
 * limit.
 */
async function spent(scene: Scene): Promise<bigint> {
  const payments = new Map(paymentsIn(scene).map((payment) => [payment.id, payment.budgetId]))
  let total = 0n
  let budget: Budget | undefined
  for (const [id, budgetId = ''] of payments) {
    const payment = await scene.setup.payments.load(id)
    if (payment !== undefined) total += heldBy(payment).debitAmount
    budget = (await scene.setup.store.load('budget', budgetId)) as Budget | undefined
  }
  same(BigInt(budget?.spent.debitAmount?.value ?? 0), total)
  same(total <= 100n, true)
  return total
}

/** Expects every payment record to follow the state machine. */
function expectLawful(scene: Scene): void {
  const last = new Map<string, OutgoingPayment>()
  for (const payment of paymentsIn(scene)) {
    const before = last.get(payment.id)
    same(payment.version, (before?.version ?? 0) + 1)
    same(before?.state === 'completed' || before?.state === 'failed', false)
    same(BigInt(payment.sent) >= BigInt(before?.sent ?? 0), true)
    last.set(payment.id, payment)
  }
}

/** Creates a payment of the whole limit, and begins it if `begun` is true. */
async function paid(scene: Scene, { begun = false } = {}) {
  const payer = await scene.setup.payer(access)
  const answer = await scene.setup.pay(payer, paying(100))
  if (!answer.ok) throw new Error(answer.reason)
  const { id } = answer.payment
  if (begun) await scene.setup.payments.begin(id)
  return { payer, id }
}

/** Returns the changes since the grant last changed. They must not depend on its earlier state. */
function afterGrantChanged({ written }: Scene, grantId: string): readonly RecordChange[] {
  const since = written.findLastIndex(({ kind, next }) => kind === 'grant' && next.id === grantId)
  return written.slice(since)
}

const races: Race[] = [
  {
    name: 'concurrent payments from one budget: accepted payments fit, and refused payments would not',
    ...checksAndActs,
    async run(scene) {
      const payer = await scene.setup.payer(access)
      const values = [60, 40, 50]
      const answers = await scene.run(
        ...values.map((value, index) => scene.process(`payer ${index}`).pay(payer, paying(value))),
      )
      const total = await spent(scene)
      const accepted = values.filter((_, index) => answers[index]?.ok)
      same(total, BigInt(accepted.reduce((sum, value) => sum + value, 0)))
      for (const [index, answer] of answers.entries()) {
        if (answer.ok) continue
        same(answer.refusal, 'limits_exceeded')
        expect(total + BigInt(values[index] ?? 0)).toBeGreaterThan(100n)
      }
    },
  },
  {
    name: 'payments while the grant is revoked: none is made after the revocation',
    fault: 'ignores guards',
    twin: ignoresGuards,
    async run(scene) {
      const payer = await scene.setup.payer(access)
      const [, ...answers] = await scene.run<unknown>(
        scene.process('owner').revoke(payer),
        scene.process('payer 1').pay(payer, paying(30)),
        scene.process('payer 2').pay(payer, paying(40)),
      )
      await expectNoneAfter(scene, payer, answers as Paid[])
      const grant = (await scene.setup.grants.load(payer.grantId)) as Grant
      same(grant.state, 'finalized')
    },
  },
  {
    name: 'payments while the token is rotated: none is made with the old token after the rotation',
    fault: 'checks guards before the write instead of with it',
    twin: (store, between) => guardsFirst(slowToAnswer(store, between)),
    async run(scene) {
      const payer = await scene.setup.payer(access)
      const [rotated, ...answers] = await scene.run<unknown>(
        scene.process('shop').rotate(payer),
        scene.process('payer 1').pay(payer, paying(30)),
        scene.process('payer 2').pay(payer, paying(40)),
      )
      await expectNoneAfter(scene, payer, answers as Paid[])
      // The new token can spend the rest of the same budget, to the last unit.
      const left = 100 - Number(await spent(scene))
      expect(await scene.setup.pay(rotated as Payer, paying(left + 1))).toHaveProperty('refusal')
      expect(await scene.setup.pay(rotated as Payer, paying(left))).toHaveProperty('payment')
    },
  },
  {
    name: 'a payment that begins as it lapses either begins or fails, never both',
    ...lastWins,
    async run(scene) {
      const { id } = await paid(scene)
      const { holdMs } = spendingPolicy.payments
      const [lapsed, ...begun] = await scene.run<unknown>(
        scene.process('sweep', holdMs).sweep(),
        scene.process('sender 1', holdMs - 1).payments.begin(id),
        scene.process('sender 2', holdMs - 1).payments.begin(id),
      )
      const claims = (begun as HostResult[]).filter(({ ok }) => ok).length
      same(claims + (lapsed as { lapsed: number }).lapsed, 1)
      expectLawful(scene)
      same(await spent(scene), claims === 1 ? 100n : 0n)
    },
  },
  {
    name: 'a payment that begins as it is cancelled either begins or fails, never both',
    ...checksAndActs,
    async run(scene) {
      const { id } = await paid(scene)
      const [first, second, ...withdrawn] = await scene.run<HostResult>(
        scene.process('sender 1').payments.begin(id),
        scene.process('sender 2').payments.begin(id),
        scene.process('owner').payments.cancel(id, {}),
        scene.process('support').payments.cancel(id, { reason: 'a mistake' }),
      )
      const claims = [first, second].filter((each) => each?.ok).length
      expect(claims).toBeLessThanOrEqual(1)
      for (const { ok } of withdrawn) same(ok, claims === 0)
      expectLawful(scene)
      same(await spent(scene), claims === 1 ? 100n : 0n)
    },
  },
  {
    name: 'concurrent reports of sent amounts: totals never decrease, and the rest is returned once',
    ...lastWins,
    async run(scene) {
      const { id } = await paid(scene, { begun: true })
      const totals = (value: number) => ({ sentAmount: usd(value), deliveredAmount: usd(value) })
      const results = await scene.run<HostResult>(
        scene.process('rail 1').payments.reportSent(id, totals(40)),
        scene.process('rail 2').payments.reportSent(id, { ...totals(60), final: true }),
        scene.process('rail 3').payments.reportSent(id, totals(80)),
      )
      expectLawful(scene)
      const payment = (await scene.setup.payments.load(id)) as OutgoingPayment
      const known = [40, 60, 80].filter((_, index) => results[index]?.ok)
      same(Number(payment.sent), Math.max(...known))
      same(await spent(scene), payment.state === 'completed' ? 60n : 100n)
    },
  },
  {
    name: 'a payment that fails as its totals are reported ends once, and returns the unsent amount',
    ...checksAndActs,
    async run(scene) {
      const { id } = await paid(scene, { begun: true })
      const [reported, ...failed] = await scene.run<HostResult>(
        scene
          .process('rail')
          .payments.reportSent(id, { sentAmount: usd(100), deliveredAmount: usd(100) }),
        scene.process('watch 1').payments.fail(id, { sentAmount: usd(40) }),
        scene.process('watch 2').payments.fail(id, {}),
      )
      expectLawful(scene)
      const payment = (await scene.setup.payments.load(id)) as OutgoingPayment
      same(payment.state, reported?.ok ? 'completed' : 'failed')
      same(
        failed.some(({ ok }) => ok),
        !reported?.ok,
      )
      same(await spent(scene), BigInt(payment.sent))
    },
  },
  {
    name: 'a payment that fails as others are made frees exactly its unsent amount for them',
    ...lastWins,
    schedules: 300,
    async run(scene) {
      const { payer, id } = await paid(scene, { begun: true })
      const [failed, ...answers] = await scene.run<unknown>(
        scene.process('rail').payments.fail(id, { sentAmount: usd(30) }),
        scene.process('payer 1').pay(payer, paying(40)),
        scene.process('payer 2').pay(payer, paying(50)),
      )
      expect(failed).toMatchObject({ ok: true })
      expectLawful(scene)
      const accepted = (answers as Paid[]).map(({ ok }) => ok)
      same(accepted.every(Boolean), false)
      same(await spent(scene), 30n + (accepted[0] ? 40n : 0n) + (accepted[1] ? 50n : 0n))
    },
  },
  {
    name: 'a quote that is paid three times concurrently results in one payment with one body',
    ...replaces,
    async run(scene) {
      const payer = await scene.setup.payer(access)
      const request = { walletAddress: alice, receiver: shopReceiver, debitAmount: usd(60) }
      const quoted = await scene.setup.quote(payer.client, request)
      if (quoted.ok === false) throw new Error(quoted.reason)
      const input = { walletAddress: alice, quoteId: quoted.quote.id }
      const answers = await scene.run(
        scene.process('payer 1').pay(payer, input),
        scene.process('payer 2').pay(payer, input),
        scene.process('payer 3').pay(payer, { ...input, metadata: { note: 'another' } }),
      )
      await expectOnePayment(scene, answers)
    },
  },
  {
    name: 'an idempotency key that is used three times concurrently results in one payment with one body',
    ...replaces,
    async run(scene) {
      const payer = await scene.setup.payer(access)
      const key = { idempotencyKey: 'key' }
      const answers = await scene.run(
        scene.process('payer 1').pay(payer, paying(60), key),
        scene.process('payer 2').pay(payer, paying(60), key),
        scene.process('payer 3').pay(payer, paying(50), key),
      )
      await expectOnePayment(scene, answers)
    },
  },
  {
    name: 'a keyed request that arrives twice with the same bytes results in one payment, in both responses',
    ...replaces,
    schedules: 300,
    async run(scene) {
      const payer = await scene.setup.payer(access)
      const proof = {
        thumbprint: 'thumbprint',
        keyid: 'key',
        createdAt: startOfTests,
        signature: new Uint8Array(64),
      }
      const request = { idempotencyKey: 'key', proof }
      const answers = await scene.run(
        scene.process('payer 1').pay(payer, paying(60), request),
        scene.process('payer 2').pay(payer, paying(60), request),
      )
      same(answers.map(idOf), [paymentsIn(scene)[0]?.id, paymentsIn(scene)[0]?.id])
      expect(paymentsIn(scene)).toHaveLength(1)
      await spent(scene)
    },
  },
]

/** Delays every load, so that the loaded record may be outdated on arrival. */
function slowToAnswer(store: Store, between: () => Promise<unknown>): Store {
  return {
    ...store,
    async load(kind, id) {
      const record = await store.load(kind, id)
      await between()
      return record
    },
    async loadAll(keys) {
      const records = await store.loadAll?.(keys)
      await between()
      return records ?? []
    },
  }
}

/** Expects no payment after the change of the grant, and a payment for every accepted request. */
async function expectNoneAfter(scene: Scene, { grantId }: Payer, answers: readonly Paid[]) {
  const later = afterGrantChanged(scene, grantId)
  same(
    later.filter(({ kind }) => kind === 'outgoing-payment'),
    [],
  )
  for (const answer of answers) {
    if (!answer.ok) same(answer.refusal, 'token_unknown')
  }
  const made = answers.flatMap((answer) => (answer.ok ? idOf(answer) : []))
  expect(paymentsIn(scene).map(({ id }) => id)).toEqual(expect.arrayContaining(made))
  expect(paymentsIn(scene)).toHaveLength(made.length)
  await spent(scene)
}

/** Expects one payment. The first two requests are equal; the third differs. */
async function expectOnePayment(
  scene: Scene,
  [first, second, other]: readonly (Paid | undefined)[],
) {
  const [made, ...more] = paymentsIn(scene)
  same(more, [])
  const told = [first, second, other].map((answer) => answer && idOf(answer))
  const wonByOther = made?.debitAmount.value === '50' || made?.metadata !== undefined
  expect(told).toEqual(
    wonByOther
      ? ['request_differs', 'request_differs', made?.id]
      : [made?.id, made?.id, 'request_differs'],
  )
  same(await spent(scene), BigInt(made?.debitAmount.value ?? 0))
}

/** Wraps a store and records every change that it commits. */
function recorded(store: Store, written: RecordChange[]): Store {
  return {
    ...store,
    async commit(commit) {
      const landed = await store.commit(commit)
      if (landed) written.push(...commit.changes.filter(({ kind }) => kind !== 'event'))
      return landed
    },
  }
}

async function play({ run }: Race, twin: Race['twin'], order: readonly number[]): Promise<void> {
  const gate = turnstile(order)
  const written: RecordChange[] = []
  const store = recorded(memoryStore(), written)
  const contested = twin(store, () => gate.pass('between check and act'))
  const scene: Scene = {
    written,
    setup: spendingServices({ store }),
    process: (name, ms = 0) =>
      spendingServices({
        store: gate.store(name, contested),
        clock: manualClock(startOfTests + ms),
        seed: name,
        sleep: () => gate.pass(`${name}: pause`),
      }),
    run: gate.run,
  }
  try {
    await run(scene)
  } catch (error) {
    throw new Error(`in this order:\n${gate.log.join('\n')}`, { cause: error })
  }
}

const order = fc.array(fc.nat({ max: 11 }), { minLength: 40, maxLength: 60, size: 'max' })

function search(race: Race, twin: Race['twin'], numRuns: number) {
  const property = fc.asyncProperty(order, (numbers) => play(race, twin, numbers))
  return fc.check(property, { numRuns, endOnFailure: true })
}

describe.each(races)('$name', (race) => {
  const { schedules = orders } = race

  test(`holds in ${runs(schedules)} interleavings of store calls`, async () => {
    const { errorInstance } = await search(race, (store) => store, runs(schedules))
    if (errorInstance !== null) throw errorInstance
  })

  test(`does not hold with a store that ${race.fault}`, async () => {
    const { failed } = await search(race, race.twin, schedules)
    expect(failed).toBe(true)
  })
})
