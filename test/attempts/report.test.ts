import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { attempts, type FoundById, type Reply, reportSettled } from '../../src/entry-attempts.js'
import { memoryStore, type OutgoingPaymentView, type Store } from '../../src/index.js'
import { runs } from '../support/runs.js'
import { eur, euroReceiver, pay, usd, withKey } from '../support/spending.js'
import { idOfPayment, payingClient } from '../support/spending-client.js'

type Word = 'arrives' | 'refuses' | 'is silent'
const replies: Readonly<Record<Word, Reply>> = {
  arrives: { outcome: 'proven' },
  refuses: { outcome: 'refused', reason: 'the account is closed' },
  'is silent': { outcome: 'unknown', reason: 'no reply' },
}
const found = { arrives: 'arrived', refuses: 'never', 'is silent': 'pending' } as const

/** A payment of 10.01 dollars, of which 5.00 euros arrive, and a driver whose other side says what the test says. */
async function begun(store: Store = memoryStore()) {
  const { world, client, token, grantId } = await payingClient({ store })
  const created = await pay(client, token, 1_001, { incomingPayment: euroReceiver }, withKey('1'))
  const id = idOfPayment(created)
  const { outgoingPayments } = world.resources
  await outgoingPayments.begin(id)
  /** `part`: what arrived of the first attempt, in the answer to the next question. */
  const other: { word: Word; part?: bigint } = { word: 'is silent' }
  const transfers = attempts({
    name: 'bank',
    store,
    clock: world.clock,
    evidence: 'id',
    async send() {
      return replies[other.word]
    },
    async ask({ references }) {
      const { part, word } = other
      delete other.part
      const answer: FoundById =
        part === undefined ? { found: found[word] } : { found: 'arrived', arrived: part }
      return { by: 'id', attempts: Object.fromEntries(references.map((each) => [each, answer])) }
    },
  })
  return {
    world,
    id,
    other,
    transfers,
    view: async () => (await outgoingPayments.get(id)) as OutgoingPaymentView,
    spent: async () => (await outgoingPayments.budgetsOf(grantId))[0]?.spent.debitAmount,
    async settle() {
      const settled = await transfers.settle({ id, amount: 500n })
      return { settled, reported: await reportSettled(outgoingPayments, id, settled) }
    },
  }
}

const halfAnHour = 1_800_000

describe('what a settlement has brought', () => {
  test('was debited by a word alone, which an operator corrects: that is listed until it is corrected', async () => {
    const { world, id, view } = await begun()
    const sums = [0n, 500n]
    const { settle, decide, inDoubt } = attempts({
      name: 'sums',
      store: memoryStore(),
      clock: world.clock,
      evidence: 'sum',
      send: async () => replies['is silent'],
      ask: async () => ({ by: 'sum', received: sums.shift() ?? 500n }),
    })
    const work = async () => {
      const settled = await settle({ id, amount: 500n })
      return reportSettled(world.resources.outgoingPayments, id, settled)
    }
    const listed = async () => {
      const kinds: string[] = []
      for await (const { doubts } of inDoubt()) {
        kinds.push(...doubts.map(({ kind, amount }) => `${kind} ${amount}`))
      }
      return kinds
    }
    expect(await work()).toMatchObject({ ok: true, debit: 1_001n })
    expect(await decide(id, 'never', 'ada')).toMatchObject({
      settlement: { totals: { withdrawn: 500n } },
    })
    for (const left of [['withdrawn 500'], []]) {
      expect(await work()).toMatchObject({ ok: true, changed: false, debit: 0n })
      expect(await view()).toMatchObject({ status: 'completed', sentAmount: usd(1_001) })
      expect(await listed()).toEqual(left)
      await decide(id, 'corrected', 'ada')
    }
  })

  test('completes its payment, once', async () => {
    const { settle, other, view } = await begun()
    other.word = 'arrives'
    expect((await settle()).reported).toMatchObject({ ok: true, changed: true })
    expect(await view()).toMatchObject({
      status: 'completed',
      sentAmount: usd(1_001),
      deliveredAmount: eur(500),
    })
    expect((await settle()).reported).toMatchObject({ ok: true, changed: false })
  })

  test('fails its payment, once, with the reason', async () => {
    const { settle, other, view, spent } = await begun()
    other.word = 'refuses'
    expect((await settle()).reported).toMatchObject({ ok: true, changed: true })
    expect(await view()).toMatchObject({
      status: 'failed',
      failure: 'the account is closed',
      sentAmount: usd(0),
    })
    expect(await spent()).toEqual(usd(0))
    expect((await settle()).reported).toMatchObject({ ok: true, changed: false })
  })

  test('is in doubt while it may arrive, with its age and the reason', async () => {
    const { settle, world, view } = await begun()
    const since = world.clock.now()
    expect((await settle()).settled).toMatchObject({ state: 'again' })
    const inDoubt = { amount: usd(1_001), since, reason: 'no reply' }
    expect(await view()).toMatchObject({ status: 'begun', sentAmount: usd(0), inDoubt })
    world.clock.advance(1_000)
    expect((await settle()).reported).toMatchObject({ ok: true, changed: false })
  })

  test.each([
    ['arrives', 0, 1_001, 500],
    ['refuses', 1_001, 0, 0],
  ] as const)(
    'is debited in doubt, and decided when the other side at last says that it %s',
    async (word, refund, sent, arrived) => {
      const { settle, world, other, view, spent } = await begun()
      await settle()
      world.clock.advance(halfAnHour)
      expect((await settle()).settled).toMatchObject({ state: 'ended', inDoubt: 500n })
      expect(await view()).toMatchObject({
        status: 'failed',
        sentAmount: usd(1_001),
        inDoubt: { amount: usd(1_001), reason: 'no reply' },
      })
      expect(await spent()).toEqual(usd(1_001))
      expect((await settle()).reported).toMatchObject({ ok: true, changed: false })
      other.word = word
      expect((await settle()).reported).toMatchObject({ ok: true, changed: true })
      expect(await view()).toMatchObject({
        sentAmount: usd(sent),
        deliveredAmount: eur(arrived),
        refundedAmount: usd(refund),
      })
      expect(await view()).not.toHaveProperty('inDoubt')
      expect(await spent()).toEqual(usd(sent))
      expect((await settle()).reported).toMatchObject({ ok: true, changed: false })
    },
  )

  test('is decided by an operator of the driver', async () => {
    const { settle, world, transfers, id, view } = await begun()
    await settle()
    world.clock.advance(halfAnHour)
    await settle()
    await transfers.decide(id, 'never', 'ada')
    expect((await settle()).reported).toMatchObject({ ok: true, changed: true })
    expect(await view()).toMatchObject({ sentAmount: usd(0), refundedAmount: usd(1_001) })
  })

  test('is a part of the payment at its price, rounded up', async () => {
    const { settle, other, view } = await begun()
    await settle()
    other.part = 333n
    other.word = 'refuses' // the rest
    await settle()
    const seen = await view()
    // 333 of 500 euro cents, at 1001 for 500: 666.666 cents.
    expect(seen).toMatchObject({ sentAmount: usd(667), deliveredAmount: eur(333) })
  })

  test('is refused for a payment that is unknown', async () => {
    const { settle, world } = await begun()
    const { settled } = await settle()
    const { outgoingPayments } = world.resources
    const unknown = '00000000-0000-7000-8000-000000000000'
    expect(await reportSettled(outgoingPayments, unknown, settled)).toMatchObject({
      ok: false,
      refusal: 'payment_unknown',
    })
  })
})

test('debits what arrived and what is in doubt, and at last what arrived, in any history', async () => {
  const step = fc.record({
    word: fc.constantFrom<Word>('arrives', 'refuses', 'is silent', 'is silent'),
    isPart: fc.boolean(),
    waitMs: fc.constantFrom(0, 1_000, 60_000, halfAnHour),
  })
  const history = fc.array(step, { maxLength: 8 })
  const property = fc.asyncProperty(
    history,
    fc.bigInt({ min: 0n, max: 500n }),
    async (steps, part) => {
      const { settle, other, world, view, spent } = await begun()
      const price = (delivered: bigint) => (delivered * 1_001n + 499n) / 500n
      const ends: string[] = []
      const last: (typeof steps)[number] = { word: 'refuses', isPart: false, waitMs: 0 }
      let isWhole = true
      for (const { word, isPart, waitMs } of [...steps, last]) {
        other.word = word
        if (isPart && isWhole && ends.length === 0) other.part = part
        isWhole &&= !isPart
        const { settled, reported } = await settle()
        expect(reported).toMatchObject({ ok: true })
        const { proven, inDoubt } = settled.totals
        const seen = await view()
        const known = settled.state === 'ended' ? proven + inDoubt : proven
        expect(seen.sentAmount).toEqual(usd(price(known)))
        const doubtful = price(proven + inDoubt) - price(proven)
        expect(BigInt(seen.inDoubt?.amount.value ?? 0)).toBe(doubtful)
        expect(seen.endedAt !== undefined).toBe(settled.state === 'ended')
        if (seen.endedAt !== undefined) {
          ends.push(seen.status)
          expect(await spent()).toEqual(seen.sentAmount)
        }
        world.clock.advance(waitMs)
      }
      expect(new Set(ends).size).toBe(1)
      expect(await view()).not.toHaveProperty('inDoubt')
    },
  )
  await fc.assert(property, { numRuns: runs(600, 12) })
})

test('ends, and debits no more than the payment allows, whatever the other side says, at any price', async () => {
  const answer = fc.oneof(
    fc.record({
      found: fc.constant('arrived' as const),
      arrived: fc.bigInt({ min: 0n, max: 15n }),
    }),
    fc.record({ found: fc.constantFrom('never' as const, 'pending' as const, 'absent' as const) }),
  )
  const amount = fc.integer({ min: 1, max: 12 })
  const property = fc.asyncProperty(
    fc.array(fc.array(answer, { minLength: 1, maxLength: 3 }), { maxLength: 6 }),
    fc.constantFrom<FoundById>({ found: 'never' }, { found: 'arrived' }),
    amount,
    amount,
    async (answers, last, debit, receive) => {
      const price = async () => ({
        ok: true as const,
        debitAmount: usd(debit),
        receiveAmount: eur(receive),
      })
      const store = memoryStore()
      const { world, client, token } = await payingClient({
        store,
        resources: { pricing: { price } },
      })
      const created = await pay(
        client,
        token,
        debit,
        { incomingPayment: euroReceiver },
        withKey('1'),
      )
      const id = idOfPayment(created)
      const { outgoingPayments } = world.resources
      await outgoingPayments.begin(id)
      const references: string[] = []
      let said: readonly FoundById[] = []
      const { settle, inDoubt } = attempts({
        name: 'bank',
        store,
        clock: world.clock,
        evidence: 'id',
        notAfter: (now) => now,
        marginMs: 0,
        async send({ reference }) {
          references.push(reference)
          return { outcome: 'unknown', reason: 'no reply' }
        },
        // Also about those that were decided: an earlier word may have been wrong.
        async ask() {
          const found = references.map((each, index) => [each, said[index % said.length]] as const)
          return { by: 'id', attempts: Object.fromEntries(found) as Record<string, FoundById> }
        },
      })
      const work = async () => {
        const settled = await settle({ id, amount: BigInt(receive) })
        const reported = await reportSettled(outgoingPayments, id, settled)
        expect(reported).toMatchObject({ ok: true })
        return settled
      }
      const most = (arrived: bigint) => (arrived < BigInt(receive) ? arrived : BigInt(receive))
      const priceOf = (arrived: bigint) =>
        Number((most(arrived) * BigInt(debit) + BigInt(receive) - 1n) / BigInt(receive))
      const check = async ({ state, totals }: Awaited<ReturnType<typeof work>>) => {
        const seen = await outgoingPayments.get(id)
        const { proven, excess } = totals
        expect(seen?.endedAt !== undefined).toBe(state === 'ended' || proven >= BigInt(receive))
        if (state === 'ended') {
          expect(seen?.sentAmount).toEqual(usd(priceOf(proven + totals.inDoubt)))
          expect(Number(seen?.deliveredAmount.value)).toBeGreaterThanOrEqual(Number(most(proven)))
        }
        let listed = 0n
        for await (const { doubts } of inDoubt()) {
          for (const { amount } of doubts) listed += BigInt(amount)
        }
        expect(listed).toBe(totals.inDoubt + excess)
      }
      for (const each of answers) {
        said = each
        await check(await work())
        world.clock.advance(60_000)
      }
      world.clock.advance(halfAnHour)
      said = [{ found: 'pending' }]
      await check(await work())
      said = [last]
      await check(await work())
      expect(await outgoingPayments.get(id)).not.toHaveProperty('inDoubt')
    },
  )
  await fc.assert(property, { numRuns: runs(600, 40) })
})
