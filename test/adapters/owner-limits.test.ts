import { afterAll, describe, expect, test } from 'vitest'
import type { Handler, MayPay, SpendingLimit } from '../../src/index.js'
import { manualClock } from '../support/clock.js'
import { isLong } from '../support/runs.js'
import { servedDeployments } from '../support/served.js'
import { createSpendingWorld, grantToPay, pay, usd, withKey } from '../support/spending.js'
import { errorOf, idOfPayment, spentUnder } from '../support/spending-client.js'
import { alice } from '../support/world.js'

const { stores, served, close } = servedDeployments()
afterAll(close)

const adapters = isLong ? ['express', 'fastify', 'hono'] : ['express']
const deployments = adapters.flatMap((adapter) =>
  Object.keys(stores).map((store) => ({ adapter, store })),
)

const confirmMs = 480_000

/** A wallet behind a real port, with two apps that may each pay 25.00 from the account of Alice. */
async function setUp({ adapter, store }: (typeof deployments)[number]) {
  const make = stores[store]
  if (make === undefined) throw new Error(`no store ${store}`)
  const clock = manualClock()
  const account: { limits: readonly SpendingLimit[]; confirmsFrom: number } = {
    limits: [],
    confirmsFrom: Number.POSITIVE_INFINITY,
  }
  const asked: string[] = []
  const mayPay: MayPay = ({ outgoingPaymentId: id, debitAmount, isConfirmed }) => {
    asked.push(id)
    if (Number(debitAmount.value) < account.confirmsFrom || isConfirmed) return { ok: true }
    const url = `https://wallet.example/confirm/${id}`
    return { ok: false, refusal: 'confirmation_required', url, until: clock.now() + confirmMs }
  }
  let port: Handler | undefined
  const world = createSpendingWorld({
    clock,
    store: await make(),
    carry(request) {
      if (port === undefined) throw new Error('the server has not started')
      return port(request)
    },
    resources: { policy: { mayPay, accountLimits: () => account.limits } },
  })
  port = await served(adapter, world.handle)
  const [shop, bookshop] = [world.client('shop'), world.client('bookshop')]
  const [first, second] = [await grantToPay(world, shop), await grantToPay(world, bookshop)]
  return {
    world,
    clock,
    account,
    asked,
    first: { ...first, client: shop },
    second: { ...second, client: bookshop },
  }
}

type App = Awaited<ReturnType<typeof setUp>>['first']

const debited = async ({ client, token }: App) =>
  (await spentUnder(client, token)).spentDebitAmount?.value

const exceeded = {
  error: {
    code: 'not_permitted_now',
    description: 'The account owner does not permit this payment now',
  },
}

describe.each(deployments)('on $adapter with $store', (deployment) => {
  test("a payment beyond the owner's limits for its grant is refused until the next window", async () => {
    const { world, clock, first, second } = await setUp(deployment)
    const start = clock.now()
    const interval = `R/${new Date(start).toISOString()}/PT1M`
    const conditions = { limits: [{ payments: 2, interval }, { debitAmount: usd(1000) }] }
    const { amend } = world.auth.grants
    expect(await amend(first.grantId, { resourceOwner: 'alice', conditions })).toMatchObject({
      ok: true,
    })
    expect((await pay(first.client, first.token, 400)).status).toBe(201)
    const tooMuch = await pay(first.client, first.token, 601)
    expect([tooMuch.status, tooMuch.body]).toEqual([403, exceeded])
    expect((await pay(first.client, first.token, 400)).status).toBe(201)
    const tooOften = await pay(first.client, first.token, 100)
    expect([tooOften.status, tooOften.body]).toEqual([403, exceeded])
    clock.set(start + 60_000)
    expect((await pay(first.client, first.token, 201)).status).toBe(403)
    expect((await pay(first.client, first.token, 200)).status).toBe(201)
    expect((await pay(second.client, second.token, 2500)).status).toBe(201)
    expect([await debited(first), await debited(second)]).toEqual(['1000', '2500'])
  })

  test('the limits of an account count the payments of both apps, also at the same time', async () => {
    const { world, account, first, second } = await setUp(deployment)
    account.limits = [{ debitAmount: usd(1000) }]
    expect((await pay(first.client, first.token, 600)).status).toBe(201)
    const tooMuch = await pay(second.client, second.token, 401)
    expect([tooMuch.status, tooMuch.body]).toEqual([403, exceeded])
    // 4.00 are left: for one of two payments of 3.00.
    const both = [first, second].map(({ client, token }) => pay(client, token, 300))
    const statuses = (await Promise.all(both)).map(({ status }) => status)
    expect(statuses.toSorted()).toEqual([201, 403])
    expect((await pay(first.client, first.token, 101)).status).toBe(403)
    const [limit] = await world.resources.outgoingPayments.limitsOf({ walletAddress: alice })
    expect(limit).toMatchObject({ source: 'account', left: { debitAmount: usd(100) } })
    // A higher limit of the owner applies to the next payment, and so does a lower one.
    account.limits = [{ debitAmount: usd(1200) }]
    expect((await pay(second.client, second.token, 300)).status).toBe(201)
    account.limits = [{ debitAmount: usd(500) }]
    expect((await pay(first.client, first.token, 1)).status).toBe(403)
    expect(Number(await debited(first)) + Number(await debited(second))).toBe(1200)
  })

  test('a payment waits for the confirmation of its owner, and its repeat gets the payment', async () => {
    const { world, clock, account, asked, first } = await setUp(deployment)
    account.confirmsFrom = 1000
    const until = new Date(clock.now() + confirmMs).toISOString()
    const request = (key: string) => pay(first.client, first.token, 1000, {}, withKey(key))
    expect((await pay(first.client, first.token, 999)).status).toBe(201)
    const waiting = await request('one')
    const id = asked.at(-1) ?? ''
    expect([waiting.status, waiting.body.error]).toMatchObject([
      403,
      {
        code: 'confirmation_required',
        details: { url: `https://wallet.example/confirm/${id}`, until },
      },
    ])
    expect((await request('one')).body).toEqual(waiting.body)
    const { toConfirm, confirm, decline } = world.resources.outgoingPayments
    const payment = await toConfirm(id)
    if (payment === undefined) throw new Error('the payment waits')
    const { receiver, debitAmount, receiveAmount } = payment
    const shown = { resourceOwner: 'alice', receiver, debitAmount, receiveAmount }
    const other = { ...shown, debitAmount: usd(1001) }
    expect(await confirm(id, other)).toMatchObject({ refusal: 'payment_differs' })
    expect(await confirm(id, shown)).toMatchObject({ ok: true })
    const created = await request('one')
    expect([created.status, idOfPayment(created)]).toEqual([201, id])
    expect(await debited(first)).toBe('1999')

    account.confirmsFrom = 1
    const small = () => pay(first.client, first.token, 2, {}, withKey('two'))
    expect(errorOf(await small())).toEqual([403, 'confirmation_required'])
    expect(await decline(asked.at(-1) ?? '', { resourceOwner: 'alice' })).toMatchObject({
      ok: true,
    })
    expect(errorOf(await small())).toEqual([403, 'confirmation_declined'])
    expect(await debited(first)).toBe('1999')
  })
})
