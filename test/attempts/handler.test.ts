import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  type Attempts,
  attempts,
  type FoundById,
  type Order,
  type Reply,
  reportSettled,
  type SettleRequest,
  settlementHandler,
} from '../../src/entry-attempts.js'
import { memoryStore, type OutgoingPaymentView } from '../../src/index.js'
import { runs } from '../support/runs.js'
import { eur, euroReceiver, pay, usd, withKey } from '../support/spending.js'
import { idOfPayment, payingClient } from '../support/spending-client.js'

const minute = 60_000
const hour = 60 * minute

/** What becomes of an order: the bank gets it or not, now or later, and the host gets its reply or not. */
type Fate =
  | 'arrives'
  | 'refused'
  | 'refused later'
  | 'request lost'
  | 'reply lost'
  | 'late'
  | 'killed'
  | 'answers'

/** A bank that carries out an order once, and not after its `notAfter`. */
function bankOf(clock: { now(): number }) {
  const carriedOut = new Map<string, bigint>()
  const refused = new Set<string>()
  const late: Order<SettleRequest>[] = []
  const state = { fates: [] as Fate[], isDown: false, sent: 0 }

  function carryOut({ reference, amount, notAfter = 0 }: Order<SettleRequest>) {
    if (clock.now() <= notAfter) carriedOut.set(reference, amount)
  }
  return {
    state,
    arrived: () => [...carriedOut.values()].reduce((sum, amount) => sum + amount, 0n),
    deliverLate() {
      for (const order of late.splice(0)) carryOut(order)
    },
    async send(order: Order<SettleRequest>): Promise<Reply> {
      state.sent += 1
      const fate = state.fates.shift() ?? 'arrives'
      if (fate === 'refused' || fate === 'refused later') refused.add(order.reference)
      if (fate === 'late') late.push(order)
      if (fate === 'arrives' || fate === 'reply lost' || fate === 'killed') carryOut(order)
      if (fate === 'killed') throw new Error('the process was killed')
      if (fate === 'arrives') return { outcome: 'proven' }
      if (fate === 'refused') return { outcome: 'refused', reason: 'the account is closed' }
      return { outcome: 'unknown', reason: 'no reply' }
    },
    async ask({ references }: { readonly references: readonly string[] }) {
      if (state.isDown) return undefined
      const found = (reference: string): FoundById => {
        if (refused.has(reference)) return { found: 'refused', reason: 'the account is closed' }
        return { found: carriedOut.has(reference) ? 'arrived' : 'absent' }
      }
      const attempts = references.map((reference) => [reference, found(reference)] as const)
      return { by: 'id', attempts: Object.fromEntries(attempts) } as const
    },
  }
}

/** A payment of 10.01 dollars, of which 5.00 euros arrive, and a consumer whose handler settles it at a bank. */
async function created(
  more: { readonly isKilledAt?: (report: number) => 'before' | 'after' | undefined } = {},
) {
  const { world, client, token } = await payingClient({ store: memoryStore() })
  const body = await pay(client, token, 1_001, { incomingPayment: euroReceiver }, withKey('1'))
  const id = idOfPayment(body)
  const { outgoingPayments, events } = world.resources
  const bank = bankOf(world.clock)
  const settlements = attempts({
    name: 'bank',
    store: memoryStore(),
    clock: world.clock,
    evidence: 'id',
    notAfter: (now) => now + minute,
    onError: () => undefined,
    send: (order) => bank.send(order),
    ask: bank.ask,
  })
  let reports = 0
  let debited = 0n
  const handle = settlementHandler({
    outgoingPayments,
    settlements,
    clock: world.clock,
    async report(paymentId, settled) {
      const killed = more.isKilledAt?.(reports++)
      if (killed === 'before') throw new Error('the process was killed')
      const reported = await reportSettled(outgoingPayments, paymentId, settled)
      if (reported.ok) debited += reported.debit
      if (killed === 'after') throw new Error('the process was killed')
      return reported
    },
  })
  return {
    ...{ world, id, bank, settlements, outgoingPayments },
    debited: () => debited,
    view: async () => (await outgoingPayments.get(id)) as OutgoingPaymentView,
    /** Delivers what is due. */
    drain: () => events.drain(handle, { onFailure: () => undefined }),
    /** Delivers what is due, again and again for a time. */
    async drainFor(ms: number, stepMs = minute) {
      for (let passed = 0; passed < ms; passed += stepMs) {
        await events.drain(handle, { onFailure: () => undefined })
        world.clock.advance(stepMs)
        bank.deliverLate()
      }
    },
  }
}

const fates = fc.array(
  fc.constantFrom<Fate>(
    'arrives',
    'request lost',
    'reply lost',
    'late',
    'killed',
    'refused',
    'refused later',
  ),
  { maxLength: 6 },
)
const kills = fc.array(fc.constantFrom('before' as const, 'after' as const, undefined), {
  maxLength: 6,
})

describe('a handler that settles payments', () => {
  test('debits exactly what arrives, in every history of lost messages and kills', async () => {
    const history = fc.record({ fates, kills, downMs: fc.constantFrom(0, 10 * minute, 3 * hour) })
    const property = fc.asyncProperty(history, async ({ fates, kills, downMs }) => {
      const { bank, drainFor, view, debited, settlements, id } = await created({
        isKilledAt: (report) => kills[report],
      })
      bank.state.fates = [...fates]
      bank.state.isDown = downMs > 0
      await drainFor(downMs, 5 * minute)
      bank.state.isDown = false
      await drainFor(8 * hour, 15 * minute)
      const { sentAmount, deliveredAmount, inDoubt, endedAt } = await view()
      expect([endedAt === undefined, inDoubt]).toEqual([false, undefined])
      expect(deliveredAmount).toEqual(eur(bank.arrived()))
      // The price: 2.002 dollars for a euro, rounded up.
      expect(sentAmount).toEqual(usd((bank.arrived() * 1_001n + 499n) / 500n))
      expect(debited()).toBe(BigInt(sentAmount.value))
      expect([0n, 500n]).toContain(bank.arrived())
      expect((await settlements.get(id))?.totals.inDoubt).toBe(0n)
    })
    await fc.assert(property, { numRuns: runs(600, 40) })
  })

  test('completes a payment in one delivery if its reply arrives', async () => {
    const { drain, view, bank } = await created()
    await drain()
    expect(await view()).toMatchObject({ status: 'completed', sentAmount: usd(1_001) })
    expect(bank.arrived()).toBe(500n)
  })

  test('sends nothing of a payment that was cancelled before it began', async () => {
    const { drainFor, outgoingPayments, id, bank, settlements } = await created()
    await outgoingPayments.cancel(id)
    await drainFor(hour)
    expect([bank.state.sent, await settlements.get(id)]).toEqual([0, undefined])
  })

  test('sends nothing of a payment that other code ended in doubt', async () => {
    const { drainFor, outgoingPayments, id, bank, world, settlements } = await created()
    await outgoingPayments.begin(id)
    const inDoubt = { amount: usd(1_001), since: world.clock.now(), reason: 'no reply' }
    await outgoingPayments.fail(id, { sentAmount: usd(1_001), inDoubt })
    await drainFor(3 * hour)
    expect([bank.state.sent, await settlements.get(id)]).toEqual([0, undefined])
    expect((await outgoingPayments.get(id))?.inDoubt).toBeDefined()
  })

  test('asks every hour about a payment that ended in doubt, and refunds what never arrived', async () => {
    const { drainFor, view, bank } = await created()
    bank.state.fates = ['request lost']
    bank.state.isDown = true
    await drainFor(2 * hour)
    expect(await view()).toMatchObject({ status: 'failed', inDoubt: { amount: usd(1_001) } })
    bank.state.isDown = false
    await drainFor(hour + minute)
    expect(await view()).toMatchObject({ sentAmount: usd(0), refundedAmount: usd(1_001) })
    expect((await view()).inDoubt).toBeUndefined()
    expect(bank.state.sent).toBe(1)
  })

  test('carries the decision of an operator to the payment', async () => {
    const { drainFor, view, bank, settlements, id } = await created()
    bank.state.fates = ['reply lost']
    bank.state.isDown = true
    await drainFor(2 * hour)
    expect(await settlements.decide(id, 'arrived', 'ada')).toMatchObject({ ok: true })
    await drainFor(hour + minute)
    expect(await view()).toMatchObject({ sentAmount: usd(1_001), deliveredAmount: eur(500) })
    expect((await view()).inDoubt).toBeUndefined()
  })

  test('sends no second order once the bank has refused the first, also after a reply of "later"', async () => {
    const { drainFor, view, bank } = await created()
    bank.state.fates = ['refused later']
    await drainFor(hour)
    expect(await view()).toMatchObject({ status: 'failed', failure: 'the account is closed' })
    expect([bank.state.sent, bank.arrived()]).toEqual([1, 0n])
  })

  test('alone decides what is in doubt: a refund that the driver does not know of is refused', async () => {
    const { drainFor, view, bank, outgoingPayments, id, debited } = await created()
    bank.state.fates = ['reply lost']
    bank.state.isDown = true
    await drainFor(2 * hour)
    const refund = await outgoingPayments.decideDoubt(id, { refunded: usd(1_001) })
    expect(refund).toMatchObject({ ok: false, refusal: 'decided_by_attempts' })
    bank.state.isDown = false
    await drainFor(hour + minute)
    expect(await view()).toMatchObject({ sentAmount: usd(1_001), deliveredAmount: eur(500) })
    expect([(await view()).inDoubt, debited()]).toEqual([undefined, 1_001n])
  })

  test('has the event set aside if other code ends a payment whose order then arrives', async () => {
    const { world, id, bank, settlements, outgoingPayments, debited } = await created()
    const send = bank.send
    bank.send = async (order) => {
      await outgoingPayments.fail(id)
      return send(order)
    }
    const failures: string[] = []
    const handle = settlementHandler({ outgoingPayments, settlements, clock: world.clock })
    const onFailure = ({ error }: { readonly error: unknown }) => failures.push(String(error))
    for (let passed = 0; passed < 24 * hour; passed += hour) {
      await world.resources.events.drain(handle, { onFailure })
      world.clock.advance(hour)
    }
    expect([bank.arrived(), debited()]).toEqual([500n, 0n])
    expect(failures).toHaveLength(16)
    expect(failures.at(-1)).toContain('other code has ended the payment, of which 500 has arrived')
    expect(await world.resources.events.backlog()).toMatchObject({ setAside: 1 })
  })

  test('accepts the longest receiver that a client can choose', async () => {
    const { settlements } = await created()
    const otherSide = `https://bank.example/${'r'.repeat(2_027)}`
    const settled = await settlements.settle({ id: 'long', amount: 1n, otherSide })
    expect([otherSide.length, settled.state]).toEqual([2_048, 'ended'])
  })

  test('has an event set aside that the payment refuses, and says why', async () => {
    const { outgoingPayments, id, world } = await created()
    const errors: unknown[] = []
    const settled = { state: 'ended', arrived: 500n, inDoubt: 0n } as never
    const settlements: Pick<Attempts, 'get' | 'settle'> = {
      get: async () => undefined,
      async settle() {
        await outgoingPayments.fail(id)
        return settled
      },
    }
    const report = async () =>
      ({ ok: false, refusal: 'payment_over', reason: 'the payment is over' }) as const
    const handle = settlementHandler({ outgoingPayments, settlements, report })
    await world.resources.events.drain(handle, {
      onFailure: ({ error }) => errors.push(error),
    })
    expect(String(errors[0])).toContain(`${id}: the payment is over`)
  })

  test('gives send and ask what requestOf returns, and else the receiver', async () => {
    const { outgoingPayments, world } = await created()
    type Transfer = SettleRequest & { readonly iban: string }
    const requests: Transfer[] = []
    const settlements: Pick<Attempts<Transfer>, 'get' | 'settle'> = {
      get: async () => undefined,
      async settle(request) {
        requests.push(request)
        return { state: 'again', retryAt: world.clock.now() + minute, why: 'pending' } as never
      },
    }
    const report = async () => ({ ok: true, changed: false, debit: 0n }) as never
    const requestOf = async ({ receiver }: OutgoingPaymentView) => ({ iban: `iban of ${receiver}` })
    const handle = settlementHandler<Transfer>({ outgoingPayments, settlements, report, requestOf })
    const drained = await world.resources.events.drain(handle)
    expect(requests).toMatchObject([{ amount: 500n, iban: `iban of ${euroReceiver}` }])
    expect(drained.failed).toBe(0)
    // @ts-expect-error: the driver needs an `iban`.
    expect(() => settlementHandler<Transfer>({ outgoingPayments, settlements })).not.toThrow()
  })
})
