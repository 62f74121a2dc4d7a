import { describe, expect, test } from 'vitest'
import type { Grant } from '../../src/entry-core.js'
import { type Amount, type Limits, memoryStore } from '../../src/index.js'
import { authorities, payerOf } from '../support/authorities.js'
import {
  createSpendingWorld,
  eur,
  grantToPay,
  outgoingItem,
  pay,
  usd,
} from '../support/spending.js'
import { idOfPayment } from '../support/spending-client.js'
import { alice, type TestClient, type World } from '../support/world.js'

const day = 86_400_000

async function recordOf({ auth }: World, grantId: string): Promise<Grant> {
  const grant = await auth.grants.getRecord(grantId)
  if (grant === undefined) throw new Error('the grant does not exist')
  return grant
}

async function payTimes({ clock }: World, client: TestClient, token: string, times: number) {
  const urls: string[] = []
  for (let time = 0; time < times; time++) {
    clock.advance(1)
    urls.push((await pay(client, token, 10)).body.id)
  }
  return urls
}

describe('the outgoing payments under a grant', () => {
  test('are listed in order and in pages, without those of other grants', async () => {
    const world = createSpendingWorld()
    const client = world.client()
    const [one, other] = [await grantToPay(world, client), await grantToPay(world, client)]
    const urls = await payTimes(world, client, one.token, 3)
    await payTimes(world, client, other.token, 2)
    const { list, iterate, idOf } = world.resources.outgoingPayments
    const ids = urls.map((url) => idOf(url))
    const { grantId } = one
    const { result, pagination } = await list({ grantId, first: 2 })
    expect(result.map(({ paymentId }) => paymentId)).toEqual(ids.slice(0, 2))
    const cursor = pagination.endCursor ?? ''
    const rest = await list({ grantId, first: 2, cursor })
    expect(rest.result.map(({ paymentId }) => paymentId)).toEqual(ids.slice(2))
    const all: string[] = []
    for await (const { paymentId } of iterate({ grantId })) all.push(paymentId)
    expect(all).toEqual(ids)
    expect((await list({ walletAddress: alice })).result).toHaveLength(5)
    expect((await list({ grantId: 'unknown' })).result).toEqual([])
  })

  test('stay in the list when they change', async () => {
    const world = createSpendingWorld()
    const client = world.client()
    const { token, grantId } = await grantToPay(world, client)
    const [url = ''] = await payTimes(world, client, token, 1)
    const { outgoingPayments } = world.resources
    await outgoingPayments.cancel(outgoingPayments.idOf(url) ?? '')
    const { result } = await outgoingPayments.list({ grantId })
    expect(result).toMatchObject([{ status: 'failed' }])
  })
})

describe.each(authorities)('the view of an outgoing payment by %s', (authority) => {
  test('has what a host may depend on, and nothing else of the record', async () => {
    const world = createSpendingWorld()
    const { pay, named } = await payerOf(world, authority)
    const { body } = await pay(100)
    const { outgoingPayments } = world.resources
    const paymentId = outgoingPayments.idOf(body.id) ?? ''
    const now = world.clock.now()
    const record = await outgoingPayments.getRecord(paymentId)
    const { receiver, receiverWalletAddress, receiveAmount, holdUntil } = record ?? {}
    const zero = (amount: Amount | undefined) => ({ ...amount, value: '0' })
    const view = {
      paymentId,
      walletAddress: alice,
      ...named,
      ...(named.grantId && { itemId: '1' }),
      receiver,
      ...(receiverWalletAddress && { receiverWalletAddress }),
      status: 'created',
      debitAmount: usd(100),
      receiveAmount,
      sentAmount: usd(0),
      deliveredAmount: zero(receiveAmount),
      createdAt: now,
      holdUntil,
    }
    expect(await outgoingPayments.get(paymentId)).toStrictEqual(view)
    const lists = [{ walletAddress: alice }, ...(named.grantId ? [{ grantId: named.grantId }] : [])]
    for (const list of lists) {
      expect((await outgoingPayments.list(list)).result).toStrictEqual([view])
    }
    const begun = { ...view, status: 'begun' }
    const changed = { ok: true, changed: true }
    expect(await outgoingPayments.begin(paymentId)).toStrictEqual({ ...changed, payment: begun })
    const totals = { sentAmount: usd(40), deliveredAmount: zero(receiveAmount) as Amount }
    expect(await outgoingPayments.reportSent(paymentId, totals)).toStrictEqual({
      ...changed,
      payment: { ...begun, ...totals },
      debit: 40n,
      credit: 0n,
    })
    const reasons = { reason: 'no route', publicReason: 'the receiver is away' }
    const { reason: failure, publicReason } = reasons
    expect(await outgoingPayments.fail(paymentId, reasons)).toStrictEqual({
      ...changed,
      payment: { ...begun, ...totals, status: 'failed', endedAt: now, failure, publicReason },
      debit: 0n,
      credit: 0n,
    })
  })

  test('has failed once its hold has expired, before a sweep and after it', async () => {
    const world = createSpendingWorld()
    const id = idOfPayment(await (await payerOf(world, authority)).pay(100))
    const { outgoingPayments, sweep } = world.resources
    const statusNow = async () => (await outgoingPayments.get(id))?.status
    const { holdUntil = 0 } = (await outgoingPayments.get(id)) ?? {}
    world.clock.advance(holdUntil - world.clock.now() - 1)
    expect(await statusNow()).toBe('created')
    world.clock.advance(1)
    expect(await statusNow()).toBe('failed')
    expect(await outgoingPayments.getRecord(id)).toMatchObject({ state: 'created' })
    await sweep()
    expect(await statusNow()).toBe('failed')
  })
})

describe('the budgets of a grant', () => {
  async function granted(...limits: (Limits | undefined)[]) {
    const world = createSpendingWorld()
    const client = world.client()
    const items = limits.map((each) => outgoingItem(each))
    const { token, grantId } = await grantToPay(world, client, items)
    return {
      world,
      client,
      token,
      budgets: () => world.resources.outgoingPayments.budgetsOf(grantId),
    }
  }

  test('show what each item has spent and has left in its window', async () => {
    const { world, client, token, budgets } = await granted(
      { debitAmount: usd(100), interval: 'R/2020-01-01T00:00:00Z/P1D' },
      { receiveAmount: usd(500) },
    )
    await pay(client, token, 60)
    await pay(client, token, 60)
    const now = world.clock.now()
    const start = now - (now % day)
    const [daily, forLife] = await budgets()
    expect(daily).toEqual({
      item: {
        ...outgoingItem({ debitAmount: usd(100), interval: 'R/2020-01-01T00:00:00Z/P1D' }),
        itemId: '1',
      },
      isOpen: true,
      window: { start, end: start + day },
      spent: { debitAmount: usd(60), receiveAmount: expect.objectContaining({ assetCode: 'USD' }) },
      left: { debitAmount: usd(40) },
    })
    const received = BigInt(forLife?.spent.receiveAmount?.value ?? 0)
    expect(received).toBeGreaterThan(0n)
    expect(forLife?.left).toEqual({ receiveAmount: usd(500n - received) })
    expect(forLife).not.toHaveProperty('window')
    world.clock.advance(day)
    expect((await budgets())[0]).toMatchObject({
      spent: { debitAmount: usd(0), receiveAmount: null },
      left: { debitAmount: usd(100) },
    })
  })

  test('have nothing left outside all windows, and no bound without an amount', async () => {
    const { budgets } = await granted(
      { debitAmount: eur(100), interval: 'R1/2020-01-01T00:00:00Z/P1D' },
      undefined,
    )
    const [over, unlimited] = await budgets()
    const nothing = { debitAmount: null, receiveAmount: null }
    expect(over).toMatchObject({ isOpen: false, spent: nothing, left: { debitAmount: eur(0) } })
    expect(over).not.toHaveProperty('window')
    expect(unlimited).toMatchObject({ isOpen: true, spent: nothing, left: {} })
  })

  test('return what a payment did not send', async () => {
    const { world, client, token, budgets } = await granted({ debitAmount: usd(100) })
    const { body } = await pay(client, token, 60)
    const { outgoingPayments } = world.resources
    await outgoingPayments.cancel(outgoingPayments.idOf(body.id) ?? '')
    expect(await budgets()).toMatchObject([{ left: { debitAmount: usd(100) } }])
  })

  test('are none for a request without a decision', async () => {
    const world = createSpendingWorld()
    const client = world.client()
    const { body } = await client.request([outgoingItem()], { start: ['redirect'] })
    const [grantId = ''] = body.continue.uri.split('/').at(-1).split('.')
    expect(await world.resources.outgoingPayments.budgetsOf(grantId)).toEqual([])
  })

  test('are none for an unknown grant', async () => {
    const { budgetsOf } = createSpendingWorld().resources.outgoingPayments
    for (const id of ['', 'unknown', '\ud800']) expect(await budgetsOf(id)).toEqual([])
  })

  test('are read with the record of the grant by a server whose grants are elsewhere', async () => {
    const world = createSpendingWorld()
    const { grantId } = await grantToPay(world, world.client(), [
      outgoingItem({ debitAmount: usd(100) }),
    ])
    const { grantEndpoint, introspect } = world.auth
    const elsewhere = createSpendingWorld({
      resources: { grants: { grantEndpoint, introspect }, store: memoryStore() },
    })
    const { budgetsOf } = elsewhere.resources.outgoingPayments
    await expect(budgetsOf(grantId)).rejects.toThrow(
      'grant must be the record from grants.getRecord, because of remoteGrants',
    )
    const grant = await recordOf(world, grantId)
    expect(await budgetsOf(grant)).toMatchObject([{ left: { debitAmount: usd(100) } }])
  })
})

describe.each(authorities)('an outgoing payment by %s that has ended', (authority) => {
  test('is kept until its retention is over, and then removed by a sweep', async () => {
    const retentionMs = 10 * day
    const policy = { outgoingPayments: { retentionMs } }
    const world = createSpendingWorld({ resources: { recordsEvents: false, policy } })
    const { pay } = await payerOf(world, authority)
    const { outgoingPayments } = world.resources
    const [ended, sending] = [await pay(10), await pay(10)]
    await outgoingPayments.cancel(idOfPayment(ended))
    await outgoingPayments.begin(idOfPayment(sending))
    const kept = async () => {
      while ((await world.resources.sweep()).more);
      const all = [ended, sending].map((each) => outgoingPayments.get(idOfPayment(each)))
      return (await Promise.all(all)).map((payment) => payment?.status)
    }
    world.clock.advance(retentionMs - 1)
    expect(await kept()).toEqual(['failed', 'begun'])
    world.clock.advance(1)
    expect(await kept()).toEqual([undefined, 'begun'])
  })
})

test.each(authorities.flatMap((by) => [['reportSent', by] as const, ['fail', by] as const]))(
  '%s records what the call says of a payment by %s, although the host changes the object while the call runs',
  async (method, authority) => {
    const world = createSpendingWorld()
    const { outgoingPayments } = world.resources
    const id = idOfPayment(await (await payerOf(world, authority)).pay(10))
    await outgoingPayments.begin(id)
    const report = { sentAmount: { ...usd(4) }, deliveredAmount: { ...usd(4) } }
    const reported = outgoingPayments[method](id, report)
    report.sentAmount.value = '9'
    expect(await reported).toMatchObject({ payment: { sentAmount: usd(4) } })
  },
)

test.each(authorities)(
  'a public reason of a payment by %s has at most 256 characters',
  async (authority) => {
    const world = createSpendingWorld()
    const id = idOfPayment(await (await payerOf(world, authority)).pay(10))
    const { cancel, get } = world.resources.outgoingPayments
    const tooLong = cancel(id, { publicReason: 'x'.repeat(257) })
    await expect(tooLong).rejects.toThrow('report.publicReason must have 1 to 256 characters')
    expect((await get(id))?.status).toBe('created')
    const longest = { publicReason: 'x'.repeat(256) }
    expect(await cancel(id, longest)).toMatchObject({ ok: true, payment: longest })
  },
)
