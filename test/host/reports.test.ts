import { describe, expect, test } from 'vitest'
import { memoryStore, type Store } from '../../src/index.js'
import { authorities, payerOf } from '../support/authorities.js'
import { seededRandom } from '../support/random.js'
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
  return { store: unreliable, loseNextAnswer }
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

test.each(authorities)(
  'a ledger that posts only changes balances when the host reports everything twice, of a payment by %s',
  async (authority) => {
    const world = createSpendingWorld()
    const { incomingPayments, outgoingPayments } = world.resources
    const paymentId = await incomingPaymentIn(world)
    let [credited, debited] = [0n, 0n]
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

    const payer = await payerOf(world, authority, { client: world.client('payer') })
    const { body } = await payer.pay(100)
    const outgoing = outgoingPayments.idOf(body.id) ?? ''
    await outgoingPayments.begin(outgoing)
    let before = 0n
    for (const value of [30, 30, 100, 100]) {
      const totals = { sentAmount: usd(value), deliveredAmount: usd(value) }
      const result = await outgoingPayments.reportSent(outgoing, totals)
      if (!result.ok || !result.changed) continue
      debited += BigInt(result.payment.sentAmount.value) - before
      before = BigInt(result.payment.sentAmount.value)
    }
    expect(debited).toBe(100n)
  },
)
