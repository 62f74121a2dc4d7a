import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { memoryStore, type OutgoingPaymentView, type Store } from '../../src/index.js'
import { authorities, payerOf } from '../support/authorities.js'
import { seededRandom } from '../support/random.js'
import { runs } from '../support/runs.js'
import { createSpendingWorld, usd } from '../support/spending.js'
import { bob, incomingAccess, type World } from '../support/world.js'

/**
 * Returns a store whose next commit is written and then rejects. `meanwhile` runs before the
 * rejection.
 */
function unreliableStore() {
  const store = memoryStore()
  let failing: (() => Promise<unknown>) | undefined
  const unreliable: Store = {
    ...store,
    async commit(commit) {
      const committed = await store.commit(commit)
      const meanwhile = failing
      if (meanwhile === undefined) return committed
      failing = undefined
      await meanwhile()
      throw new Error('the connection was lost')
    },
  }
  const loseNextAnswer = (meanwhile: () => Promise<unknown> = async () => {}) => {
    failing = meanwhile
  }
  const keepAnswers = () => {
    failing = undefined
  }
  return { store: unreliable, loseNextAnswer, keepAnswers }
}

async function incomingPaymentIn(world: World): Promise<string> {
  const client = world.client()
  const { body } = await client.request([incomingAccess])
  const created = await client.createPayment(body.access_token.value, { walletAddress: bob })
  return world.resources.incomingPayments.idOf(created.body.id) ?? ''
}

describe('receive', () => {
  test('reports a change the first time only', async () => {
    const world = createSpendingWorld()
    const paymentId = await incomingPaymentIn(world)
    const funds = { transferId: 'one', amount: usd(10) }
    const { incomingPayments } = world.resources
    expect(await incomingPayments.receive(paymentId, funds)).toMatchObject({
      ok: true,
      changed: true,
    })
    expect(await incomingPayments.receive(paymentId, funds)).toMatchObject({
      ok: true,
      changed: false,
    })
    await incomingPayments.complete(paymentId)
    expect(await incomingPayments.receive(paymentId, funds)).toMatchObject({
      ok: true,
      changed: false,
    })
  })

  test('reports a change when the response to its commit is lost, even if another transfer follows', async () => {
    const { store, loseNextAnswer } = unreliableStore()
    const world = createSpendingWorld({ store })
    const paymentId = await incomingPaymentIn(world)
    const { incomingPayments } = world.resources
    const otherProcess = createSpendingWorld({
      store,
      resources: { random: seededRandom('other') },
    })
    const other = { transferId: 'other', amount: usd(1) }
    loseNextAnswer(() => otherProcess.resources.incomingPayments.receive(paymentId, other))
    const funds = { transferId: 'one', amount: usd(10) }
    expect(await incomingPayments.receive(paymentId, funds)).toMatchObject({
      ok: true,
      changed: true,
    })
    expect(await incomingPayments.receive(paymentId, funds)).toMatchObject({
      ok: true,
      changed: false,
    })
    expect(await incomingPayments.receive(paymentId, other)).toMatchObject({
      ok: true,
      changed: false,
    })
  })
})

describe.each(authorities)('a report of a payment by %s', (authority) => {
  async function created(store: Store = memoryStore()) {
    const world = createSpendingWorld({ store })
    const { body } = await (await payerOf(world, authority)).pay(100)
    const { outgoingPayments } = world.resources
    return { outgoingPayments, paymentId: outgoingPayments.idOf(body.id) ?? '' }
  }

  test('returns a change the first time only', async () => {
    const { outgoingPayments, paymentId } = await created()
    expect(await outgoingPayments.begin(paymentId)).toMatchObject({ ok: true, changed: true })
    const part = { sentAmount: usd(40), deliveredAmount: usd(40) }
    expect(await outgoingPayments.reportSent(paymentId, part)).toMatchObject({
      ok: true,
      changed: true,
    })
    expect(await outgoingPayments.reportSent(paymentId, part)).toMatchObject({
      ok: true,
      changed: false,
    })
    expect(await outgoingPayments.fail(paymentId)).toMatchObject({ ok: true, changed: true })
    expect(await outgoingPayments.fail(paymentId)).toMatchObject({ ok: true, changed: false })
  })

  test('returns a change when the response to its commit is lost', async () => {
    const { store, loseNextAnswer } = unreliableStore()
    const { outgoingPayments, paymentId } = await created(store)
    await outgoingPayments.begin(paymentId)
    loseNextAnswer()
    const all = { sentAmount: usd(100), deliveredAmount: usd(100) }
    expect(await outgoingPayments.reportSent(paymentId, all)).toMatchObject({
      ok: true,
      changed: true,
    })
    expect(await outgoingPayments.reportSent(paymentId, all)).toMatchObject({
      ok: true,
      changed: false,
    })
  })
})

describe('a ledger that posts what each change of a payment debits', () => {
  const share = fc.nat({ max: 100 })
  const report = fc.record({
    do: fc.constantFrom('report', 'report', 'finish', 'fail', 'decide'),
    sent: share,
    delivered: share,
    inDoubt: share,
    /** Whether the host repeats the call, and whether the response to its first commit is lost. */
    repeats: fc.boolean(),
    loses: fc.boolean(),
  })

  test('has debited what the payment has sent, and credited what has arrived, whatever is reported, refused, repeated or lost', async () => {
    const seen = { parts: 0, refunds: 0, lost: 0 }
    const property = fc.asyncProperty(
      fc.constantFrom(...authorities),
      fc.array(report, { maxLength: 8, size: '+1' }),
      async (authority, steps) => {
        const { store, loseNextAnswer, keepAnswers } = unreliableStore()
        const world = createSpendingWorld({ store })
        const { body } = await (await payerOf(world, authority)).pay(100)
        const { outgoingPayments } = world.resources
        const paymentId = outgoingPayments.idOf(body.id) ?? ''
        await outgoingPayments.begin(paymentId)
        let debited = 0n
        let credited = 0n
        for (const step of steps) {
          const totals = { sentAmount: usd(step.sent), deliveredAmount: usd(step.delivered) }
          const doubt = { amount: usd(step.inDoubt), since: world.clock.now(), reason: 'peer 1' }
          const said = { ...totals, ...(step.inDoubt > 0 && { inDoubt: doubt }) }
          const call = () => {
            if (step.do === 'fail') return outgoingPayments.fail(paymentId, said)
            if (step.do === 'decide') {
              return outgoingPayments.decideDoubt(paymentId, { refunded: usd(step.inDoubt) })
            }
            const final = step.do === 'finish'
            return outgoingPayments.reportSent(paymentId, { ...said, ...(final && { final }) })
          }
          if (step.loses) loseNextAnswer()
          for (const result of [await call(), ...(step.repeats ? [await call()] : [])]) {
            if (!result.ok) continue
            debited += result.debit
            credited += result.credit
            if (!result.changed) expect([result.debit, result.credit]).toEqual([0n, 0n])
            if (result.changed && step.loses) seen.lost++
            if (result.debit > 0n && debited > result.debit) seen.parts++
            if (result.debit < 0n) seen.refunds++
          }
          keepAnswers()
          const payment = await outgoingPayments.get(paymentId)
          const { sentAmount, deliveredAmount } = payment as OutgoingPaymentView
          expect(usd(debited)).toEqual(sentAmount)
          expect(usd(credited)).toEqual(deliveredAmount)
        }
      },
    )
    await fc.assert(property, { numRuns: runs(2_000, 150) })
    for (const [what, count] of Object.entries(seen)) expect(count, what).toBeGreaterThan(0)
  })
})

test('a ledger that posts only changes balances when the host reports everything twice', async () => {
  const world = createSpendingWorld()
  const { incomingPayments } = world.resources
  const paymentId = await incomingPaymentIn(world)
  let credited = 0n
  for (const [index, value] of [7, 7, 11, 2].flatMap((each, i) => [
    [i, each] as const,
    [i, each] as const,
  ])) {
    const funds = { transferId: `transfer-${index}`, amount: usd(value) }
    const result = await incomingPayments.receive(paymentId, funds)
    if (result.ok && result.changed) credited += BigInt(value)
  }
  expect(credited).toBe(27n)
  expect((await incomingPayments.get(paymentId))?.receivedAmount.value).toBe('27')
})
