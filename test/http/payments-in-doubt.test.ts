import { describe, expect, test } from 'vitest'
import type { Budget } from '../../src/core/budget/record.js'
import { memoryStore, type Store } from '../../src/index.js'
import { type Authority, authorities, payerOf } from '../support/authorities.js'
import { invalidInput } from '../support/invalid-input.js'
import {
  createSpendingWorld,
  grantToPay,
  outgoingItem,
  pay,
  usd,
  withKey,
} from '../support/spending.js'
import { idOfPayment, payingClient, spentUnder } from '../support/spending-client.js'
import type { World } from '../support/world.js'

const minutely = 'R/2026-01-01T00:00:00Z/PT1M'
const totals = (value: number) => ({ sentAmount: usd(value), deliveredAmount: usd(value) })
const doubt = (value: number, since: number) => ({ amount: usd(value), since, reason: 'peer 1' })

/** A wallet with payments of 25.00 that have begun, each of which may have another client's grant behind it. */
async function begun(count = 1, options: { readonly store?: Store } = {}) {
  const paying = await payingClient(options)
  const { world, client } = paying
  const access = [outgoingItem({ debitAmount: usd(1_000_000), interval: minutely })]
  const { token } = await grantToPay(world, client, access)
  const ids: string[] = []
  for (let index = 0; index < count; index++) {
    const created = await pay(client, token, 2_500, {}, withKey(`payment-${index}`))
    const id = idOfPayment(created)
    await world.resources.outgoingPayments.begin(id)
    ids.push(id)
  }
  return { ...paying, token, ids, id: ids[0] ?? '' }
}

async function listed(world: World) {
  const { result } = await world.resources.outgoingPayments.list({ inDoubt: true })
  return result.map(({ paymentId }) => paymentId)
}

/** A wallet with a payment of 25.00 by the authority that has begun. */
async function begunBy(authority: Authority, options: { readonly store?: Store } = {}) {
  const world = createSpendingWorld(options)
  const { outgoingPayments } = world.resources
  const { pay, granted } = await payerOf(world, authority)
  const id = idOfPayment(await pay(2_500))
  await outgoingPayments.begin(id)
  const spent = async () =>
    granted && (await spentUnder(granted.client, granted.token)).spentDebitAmount
  /** Its resource, as its client reads it. No client reads that of an owner. */
  async function read(): Promise<object> {
    const payment = await outgoingPayments.get(id)
    return payment === undefined ? {} : outgoingPayments.toResource(payment)
  }
  return { world, id, spent, read }
}

describe.each(authorities)('a payment in doubt, by %s', (authority) => {
  /** What the grant of the payment has spent, if it has one. */
  const payerSpent = (value: number) =>
    authority === 'a client under a grant' ? usd(value) : undefined

  test('says so to the host, and nothing in its resource, from the first report to the decision', async () => {
    const { world, id, read, spent } = await begunBy(authority)
    const { outgoingPayments } = world.resources
    const since = world.clock.now()
    const inDoubt = doubt(1_000, since)
    const before = Object.keys(await read())
    await outgoingPayments.reportSent(id, { ...totals(1_500), inDoubt })
    expect(await outgoingPayments.get(id)).toMatchObject({
      status: 'begun',
      sentAmount: usd(1_500),
      inDoubt,
    })
    expect(await listed(world)).toEqual([id])
    expect(await read()).toMatchObject({ sentAmount: usd(1_500) })

    await outgoingPayments.fail(id, { ...totals(2_500), inDoubt })
    expect(await outgoingPayments.get(id)).toMatchObject({ sentAmount: usd(2_500), inDoubt })
    expect(await listed(world)).toEqual([id])
    expect(await spent()).toEqual(payerSpent(2_500))

    const refunded = usd(1_000)
    const decided = await outgoingPayments.decideDoubt(id, { refunded })
    expect(decided).toMatchObject({
      ok: true,
      changed: true,
      payment: { status: 'failed', sentAmount: usd(1_500), refundedAmount: refunded },
    })
    expect(await outgoingPayments.get(id)).not.toHaveProperty('inDoubt')
    expect(await listed(world)).toEqual([])
    expect(await spent()).toEqual(payerSpent(1_500))
    const again = await outgoingPayments.decideDoubt(id, { refunded })
    expect(again).toMatchObject({ ok: true, changed: false })
    const other = await outgoingPayments.decideDoubt(id, { refunded: usd(0) })
    expect(other).toMatchObject({ ok: false, refusal: 'doubt_decided' })
    const seen = await read()
    expect(seen).toMatchObject({ failed: true, sentAmount: usd(1_500) })
    expect(Object.keys(seen)).toEqual(before)
  })

  test('has no event of its own: the last one is its end', async () => {
    const { world, id } = await begunBy(authority)
    const { outgoingPayments, events } = world.resources
    const inDoubt = doubt(1_000, world.clock.now())
    await outgoingPayments.reportSent(id, { ...totals(0), inDoubt })
    await outgoingPayments.reportSent(id, { ...totals(2_500), inDoubt })
    await outgoingPayments.decideDoubt(id, { refunded: usd(1_000) })
    const types: string[] = []
    await events.drain(({ type }) => void types.push(type))
    expect(types).toEqual([
      'outgoing-payment.created',
      'outgoing-payment.begun',
      'outgoing-payment.completed',
    ])
  })

  test('is not removed while it is in doubt, and its mark is removed once that is decided', async () => {
    const memory = memoryStore()
    const removed: string[] = []
    const store: Store = {
      ...memory,
      remove(records) {
        removed.push(...records.map(({ kind }) => kind))
        return memory.remove(records)
      },
    }
    const { world, id } = await begunBy(authority, { store })
    const { outgoingPayments, sweep } = world.resources
    const sweepAll = async () => {
      while ((await sweep()).more);
    }
    await outgoingPayments.fail(id, { ...totals(2_500), inDoubt: doubt(1, world.clock.now()) })
    world.clock.advance(3 * 365 * 86_400_000)
    await sweepAll()
    expect(await listed(world)).toEqual([id])
    await outgoingPayments.decideDoubt(id, { refunded: usd(0) })
    await sweepAll()
    expect(removed).not.toContain('outgoing-payment')
    expect(removed.filter((kind) => kind === 'doubt')).toHaveLength(1)
    expect(await outgoingPayments.get(id)).toMatchObject({ refundedAmount: usd(0) })
    world.clock.advance(366 * 86_400_000)
    await sweepAll()
    expect(await outgoingPayments.get(id)).toBeUndefined()
  })

  test('is found although another process has reported the doubt meanwhile', async () => {
    const memory = memoryStore()
    let meanwhile: (() => Promise<unknown>) | undefined
    const store: Store = {
      ...memory,
      async commit(commit) {
        const act = meanwhile
        meanwhile = undefined
        await act?.()
        return memory.commit(commit)
      },
    }
    const { world, id } = await begunBy(authority, { store })
    const { outgoingPayments } = world.resources
    const other = world.resources.within(memory).outgoingPayments
    const inDoubt = doubt(1_000, world.clock.now())
    meanwhile = () => other.reportSent(id, { ...totals(500), inDoubt })
    const ended = await outgoingPayments.reportSent(id, { ...totals(1_000), final: true })
    expect(ended).toMatchObject({ ok: true, changed: true, payment: { status: 'completed' } })
    expect(await listed(world)).toEqual([])
    expect((await outgoingPayments.doubt()).payments).toBe(0)
  })
})

describe('the budget of a payment in doubt', () => {
  test('counts back what is refunded in the window in which it was created, and in no other', async () => {
    const memory = memoryStore()
    const budgets: Budget[] = []
    const store: Store = {
      ...memory,
      commit(commit) {
        for (const { kind, next } of commit.changes) {
          if (kind === 'budget') budgets.push(next as Budget)
        }
        return memory.commit(commit)
      },
    }
    const { world, client, token, id } = await begun(1, { store })
    const { outgoingPayments } = world.resources
    await outgoingPayments.fail(id, { ...totals(2_500), inDoubt: doubt(2_500, 0) })
    const own = budgets.at(-1)
    expect(own?.spent.debitAmount).toEqual(usd(2_500))
    world.clock.advance(60_000)
    await pay(client, token, 100, {}, withKey('next-window'))
    expect(budgets.at(-1)?.windowStart).toBe(own?.windowEnd)
    budgets.length = 0
    await outgoingPayments.decideDoubt(id, { refunded: usd(2_500) })
    expect(budgets).toMatchObject([{ id: own?.id, spent: { debitAmount: usd(0) } }])
    expect((await spentUnder(client, token)).spentDebitAmount).toEqual(usd(100))
  })
})

describe('the list of payments in doubt', () => {
  test('is of the whole server, oldest doubt first, in pages with cursors', async () => {
    const { world, ids } = await begun(5)
    const { outgoingPayments } = world.resources
    const now = world.clock.now()
    for (const [index, id] of ids.entries()) {
      const inDoubt = doubt(100 + index, now - index * 1_000)
      await outgoingPayments.reportSent(id, { ...totals(0), inDoubt })
    }
    const oldestFirst = ids.toReversed()
    expect(await listed(world)).toEqual(oldestFirst)
    const first = await outgoingPayments.list({ inDoubt: true, first: 2 })
    expect(first.result.map(({ paymentId }) => paymentId)).toEqual(oldestFirst.slice(0, 2))
    expect(first.pagination).toMatchObject({ hasNextPage: true, hasPreviousPage: false })
    const cursor = first.pagination.endCursor
    const next = await outgoingPayments.list({ inDoubt: true, first: 9, cursor })
    expect(next.result.map(({ paymentId }) => paymentId)).toEqual(oldestFirst.slice(2))
    const all: string[] = []
    for await (const { paymentId } of outgoingPayments.iterate({ inDoubt: true }))
      all.push(paymentId)
    expect(all).toEqual(oldestFirst)
    expect(await outgoingPayments.doubt()).toEqual({
      payments: 5,
      oldestAgeMs: 4_000,
      amounts: [usd(100 + 101 + 102 + 103 + 104)],
    })
    expect(await outgoingPayments.doubt(2)).toMatchObject({ payments: 2, amounts: [usd(207)] })
  })

  test('takes at most three calls of the store for a page, however many payments it has', async () => {
    const memory = memoryStore()
    let calls = 0
    const counting = (name: 'load' | 'list') => (query: never) => {
      calls += 1
      return memory[name](query) as never
    }
    const store = { ...memory, load: counting('load'), list: counting('list') }
    const { world, ids } = await begun(70, { store })
    const { outgoingPayments } = world.resources
    for (const id of ids) {
      const inDoubt = doubt(1, world.clock.now())
      await outgoingPayments.reportSent(id, { ...totals(0), inDoubt })
    }
    calls = 0
    const { result } = await outgoingPayments.list({ inDoubt: true, first: 100 })
    expect(result).toHaveLength(70)
    expect(calls).toBe(3)
  })

  test('cannot be combined with an account or a grant', async () => {
    const { world } = await begun()
    const { outgoingPayments } = world.resources
    for (const other of [{ grantId: 'grant' }, { walletAddress: 'https://wallet.example/alice' }]) {
      const query = { inDoubt: true, ...other } as never
      await expect(outgoingPayments.list(query)).rejects.toEqual(invalidInput('query.inDoubt'))
    }
    const query = { inDoubt: false } as never
    await expect(outgoingPayments.list(query)).rejects.toEqual(invalidInput('query.inDoubt'))
  })
})

describe('deciding a doubt in a transaction of the host', () => {
  test('writes through the store of the transaction alone', async () => {
    const { world, id } = await begun()
    const { outgoingPayments } = world.resources
    await outgoingPayments.fail(id, { ...totals(2_500), inDoubt: doubt(1_000, 0) })
    const rolledBack = world.resources.within(memoryStore()).outgoingPayments
    const refunded = usd(1_000)
    expect(await rolledBack.decideDoubt(id, { refunded })).toMatchObject({
      refusal: 'payment_unknown',
    })
    expect(await listed(world)).toEqual([id])
  })
})
