import { describe, expect, test } from 'vitest'
import {
  createResourceServer,
  ilpPaymentMethods,
  memoryStore,
  type Pricing,
  type Store,
} from '../../src/index.js'
import { manualClock } from '../support/clock.js'
import { seededRandom } from '../support/random.js'
import {
  createSpendingWorld,
  eur,
  euroReceiver,
  grantToPay,
  outgoingItem,
  pay,
  payByQuote,
  priceList,
  quoteToken,
  shopReceiver,
  usd,
  withKey,
} from '../support/spending.js'
import {
  errorOf,
  idOfPayment,
  payingClient,
  quoteUrl,
  spentUnder,
  withoutNonce,
} from '../support/spending-client.js'
import { spendingServices } from '../support/spending-services.js'
import {
  alice,
  bob,
  createWorld,
  grantEndpoint,
  resourceServer,
  type TestClient,
  type World,
  type WorldOptions,
} from '../support/world.js'
import { watchedStore } from '../support/written.js'

const day = 86_400_000
const most = 2n ** 64n - 1n

/** One window an hour, from the hour in which the tests begin. */
const hourly = 'R/2026-11-21T12:00:00Z/PT1H'
const minute = 60_000
const hour = 60 * minute

/** Creates a client instance that may pay 100 an hour, or under the given access. */
async function paying(access = [outgoingItem({ interval: hourly, debitAmount: usd(100) })]) {
  const world = createSpendingWorld(longTokens)
  const client = world.client()
  const { token, grantId } = await grantToPay(world, client, access)
  return { world, client, token, grantId, host: world.resources.outgoingPayments }
}

const longTokens: WorldOptions = { auth: { policy: { accessTokenLifetimeMs: 500 * day } } }

/** Creates a payment and begins it. */
async function begun(world: World, client: TestClient, token: string, value: number) {
  const created = await pay(client, token, value)
  if (created.status !== 201) throw new Error(created.body.error.code)
  const paymentId = idOfPayment(created)
  await world.resources.outgoingPayments.begin(paymentId)
  return paymentId
}

async function spent(client: TestClient, token: string): Promise<string> {
  return (await spentUnder(client, token)).spentDebitAmount?.value
}

const refusedOf = async (answer: Promise<{ status: number }>) => (await answer).status === 403

describe('a payment of an earlier window', () => {
  test.each([
    ['fails', (host: Host, paymentId: string) => host.fail(paymentId)],
    ['completes with less', (host: Host, paymentId: string) => host.reportSent(paymentId, less)],
  ])('returns nothing to the current window when it later %s', async (_, end) => {
    const { world, client, token, host } = await paying()
    const early = await begun(world, client, token, 60)
    world.clock.advance(hour)
    await pay(client, token, 100)
    expect(await refusedOf(pay(client, token, 1))).toBe(true)
    expect(await end(host, early)).toMatchObject({ ok: true })
    expect(await spent(client, token)).toBe('100')
    expect(await refusedOf(pay(client, token, 1))).toBe(true)
  })

  test('does not count in the current window', async () => {
    const { world, client, token, host } = await paying()
    const early = await begun(world, client, token, 60)
    world.clock.advance(hour)
    await host.reportSent(early, { sentAmount: usd(60), deliveredAmount: usd(60) })
    expect(await spent(client, token)).toBe('0')
    expect((await pay(client, token, 100)).status).toBe(201)
  })
})

type Host = World['resources']['outgoingPayments']

const less = { sentAmount: usd(10), deliveredAmount: usd(10), final: true }

describe('the sent amount stays counted', () => {
  test('for payments that fail midway, however many', async () => {
    const { world, client, token, host } = await paying()
    for (const value of [100, 70, 40]) {
      const paymentId = await begun(world, client, token, value)
      await host.fail(paymentId, { sentAmount: usd(30) })
    }
    expect(await spent(client, token)).toBe('90')
    expect(await refusedOf(pay(client, token, 11))).toBe(true)
  })

  test('under a limit on what is received, if the host reports only what was debited', async () => {
    const { world, client, token, host } = await paying([outgoingItem({ receiveAmount: usd(100) })])
    for (const value of [100, 70, 40]) {
      const paymentId = await begun(world, client, token, value)
      await host.fail(paymentId, { sentAmount: usd(30) })
    }
    expect((await spentUnder(client, token)).spentReceiveAmount).toEqual(usd(90))
    expect(await refusedOf(pay(client, token, 11))).toBe(true)
  })

  test('for all attempts together, not only for the last', async () => {
    const { world, client, token, host } = await paying([outgoingItem({ receiveAmount: usd(100) })])
    const paymentId = await begun(world, client, token, 100)
    for (const delivered of [30, 50, 80]) {
      const totals = { sentAmount: usd(delivered), deliveredAmount: usd(delivered) }
      expect(await host.reportSent(paymentId, totals)).toMatchObject({ ok: true })
    }
    // A report of only the last attempt would decrease the totals.
    const last = { sentAmount: usd(30), deliveredAmount: usd(30), final: true }
    expect(await host.reportSent(paymentId, last)).toMatchObject({ refusal: 'totals_receded' })
    await host.fail(paymentId)
    expect((await spentUnder(client, token)).spentReceiveAmount).toEqual(usd(80))
  })
})

test('a report that returns nothing does not write the budget', async () => {
  const { world, client, token, host } = await paying()
  const paymentId = await begun(world, client, token, 100)
  const budgetId = (await host.get(paymentId))?.budgetId ?? ''
  const before = await world.store.load('budget', budgetId)
  await host.reportSent(paymentId, { sentAmount: usd(10), deliveredAmount: usd(10) })
  expect(await world.store.load('budget', budgetId)).toEqual(before)
})

describe('the unsent amount can be spent again', () => {
  test('if the payment completes before everything is sent', async () => {
    const { world, client, token, host } = await paying()
    const paymentId = await begun(world, client, token, 100)
    await host.reportSent(paymentId, { ...less, sentAmount: usd(0), deliveredAmount: usd(0) })
    expect(await spent(client, token)).toBe('0')
    expect((await pay(client, token, 100)).status).toBe(201)
  })

  test('if the payment arrives completely for less than its hold', async () => {
    const { world, client, token, host } = await paying()
    const paymentId = await begun(world, client, token, 100)
    await host.reportSent(paymentId, { sentAmount: usd(90), deliveredAmount: usd(100) })
    expect(await spent(client, token)).toBe('90')
  })

  test('if the host never sends the payment', async () => {
    const { world, client, token, host } = await paying([outgoingItem({ debitAmount: usd(100) })])
    const created = await pay(client, token, 100)
    world.clock.advance(day)
    expect(await host.begin(idOfPayment(created))).toMatchObject({ refusal: 'payment_lapsed' })
    expect(await world.resources.sweep()).toMatchObject({ lapsed: 1 })
    expect(await spent(client, token)).toBe('0')
  })

  test('immediately when the owner of the account cancels the payment', async () => {
    const { client, token, host } = await paying()
    await host.cancel(idOfPayment(await pay(client, token, 100)), { reason: 'a mistake' })
    expect((await pay(client, token, 100)).status).toBe(201)
  })
})

describe('no concurrent change is lost', () => {
  test('when payments end while others are created', async () => {
    const { world, client, token, host } = await paying([outgoingItem({ debitAmount: usd(1_000) })])
    const ids = await Promise.all(Array.from({ length: 10 }, () => begun(world, client, token, 50)))
    await Promise.all([
      ...ids.map((paymentId) => host.fail(paymentId, { sentAmount: usd(1) })),
      ...ids.map(() => pay(client, token, 50)),
    ])
    expect(await spent(client, token)).toBe('510')
  })

  test('when the clocks of the servers differ', async () => {
    const { world, client, token } = await paying()
    const ahead = manualClock(world.clock.now() + 7)
    const other = serverOnSameStore(world, ahead)
    for (const [index, value] of [10, 20, 30].entries()) {
      const { handle } = index % 2 === 0 ? other : world
      const body = { walletAddress: alice, incomingPayment: shopReceiver, debitAmount: usd(value) }
      const url = `${resourceServer}/outgoing-payments`
      const signed = client.sign({ method: 'POST', url, token, body: JSON.stringify(body) })
      expect((await handle(signed)).status).toBe(201)
    }
    expect(await spent(client, token)).toBe('60')
    expect(await refusedOf(pay(client, token, 41))).toBe(true)
  })
})

/** Another process of the same wallet, or another wallet on the same store. */
function serverOnSameStore(world: World, clock: World['clock'], baseUrl = resourceServer) {
  return createResourceServer({
    store: world.store,
    clock,
    random: seededRandom('another process'),
    baseUrl,
    grantEndpoint,
    introspect: world.auth.introspect,
    walletAddresses: { find: async (url) => ({ url, assetCode: 'USD', assetScale: 2 }) },
    paymentMethods: ilpPaymentMethods({
      addressPrefix: 'test.wallet',
      secret: Buffer.alloc(32, 7),
    }),
    pricing: priceList,
  })
}

test('a server ignores the records of another wallet in the same store', async () => {
  const { world, client, token } = await paying()
  const paymentId = idOfPayment(await pay(client, token, 100))
  const quoteId = await quoteUrl(client)
  const other = serverOnSameStore(world, world.clock, 'https://other.example/op')
  expect(await other.outgoingPayments.get(paymentId)).toBeUndefined()
  expect(await other.outgoingPayments.begin(paymentId)).toMatchObject({
    refusal: 'payment_unknown',
  })
  world.clock.advance(day)
  expect(await other.sweep()).toMatchObject({ lapsed: 0 })
  const url = quoteId.replace(resourceServer, 'https://other.example/op')
  const { handle } = other
  const signed = client.sign({ method: 'GET', url, token: await quoteToken(client) })
  expect((await handle(signed)).status).toBe(404)
})

describe('without a limited amount', () => {
  test('reading the spent amounts changes nothing', async () => {
    const { store, written } = watchedStore(memoryStore())
    const { world, client } = await payingClient({ store })
    const { token } = await grantToPay(world, client, [outgoingItem({ interval: hourly })])
    const none = { spentDebitAmount: null, spentReceiveAmount: null }
    const ask = async () => {
      const before = written.count()
      const url = `${resourceServer}/outgoing-payment-grant`
      const { body } = await client.getPayment(token, url, withoutNonce(world, client))
      expect(written.count()).toBe(before)
      return body
    }
    expect(await ask()).toEqual(none)
    await pay(client, token, 100)
    const both = { spentDebitAmount: usd(100), spentReceiveAmount: usd(100) }
    expect(await ask()).toEqual(both)
    expect(await ask()).toEqual(both)
  })

  test('payments complete and fail without errors or refusals', async () => {
    const { world, client, token, host } = await paying([outgoingItem()])
    const [one, two] = [
      await begun(world, client, token, 100),
      await begun(world, client, token, 100),
    ]
    await host.reportSent(one, { sentAmount: usd(100), deliveredAmount: usd(100) })
    await host.fail(two)
    expect([world.errors, world.refusals]).toEqual([[], []])
    expect((await spentUnder(client, token)).spentDebitAmount).toEqual(usd(100))
  })
})

describe('a request that waits', () => {
  test('for other writers ends with ERR_CONTENTION and stores nothing', async () => {
    const { store, written } = watchedStore(memoryStore())
    let contended = false
    const commit: typeof store.commit = (commit) =>
      contended ? Promise.resolve(false) : store.commit(commit)
    const services = spendingServices({ store: { ...store, commit } })
    const payer = await services.payer([outgoingItem({ debitAmount: usd(100) })])
    contended = true
    const input = { walletAddress: alice, incomingPayment: shopReceiver, debitAmount: usd(10) }
    const before = written.count()
    await expect(services.pay(payer, input)).rejects.toMatchObject({ code: 'ERR_CONTENTION' })
    expect(written.count()).toBe(before)
  })

  test('until the next window opens counts in the window of its arrival', async () => {
    const price: Pricing['price'] = async (asked) => {
      if (slow) world.clock.advance(2 * minute)
      return priceList.price(asked)
    }
    let slow = true
    const world = createSpendingWorld({ ...longTokens, resources: { pricing: { price } } })
    const client = world.client()
    const access = [outgoingItem({ interval: hourly, debitAmount: usd(100) })]
    const { token } = await grantToPay(world, client, access)
    world.clock.advance(hour - minute)
    const first = await pay(client, token, 60)
    expect([first.status, first.body.grantSpentDebitAmount]).toEqual([201, usd(60)])
    slow = false
    expect(await spent(client, token)).toBe('0')
    const second = await pay(client, token, 100)
    expect([second.status, second.body.grantSpentDebitAmount]).toEqual([201, usd(100)])
    // The hold starts at the arrival of the request, as the window does.
    const held = await world.resources.outgoingPayments.get(idOfPayment(first))
    expect((held?.holdUntil ?? 0) - (held?.createdAt ?? 0)).toBe(day)
  })
})

describe('each granted item has its own budget', () => {
  test('for each of two wallet addresses', async () => {
    const { client, token } = await paying([
      outgoingItem({ debitAmount: usd(100) }, alice),
      outgoingItem({ debitAmount: usd(50) }, bob),
    ])
    expect((await pay(client, token, 100)).status).toBe(201)
    const fromBob = await pay(client, token, 50, { walletAddress: bob })
    expect([fromBob.status, fromBob.body.grantSpentDebitAmount]).toEqual([201, usd(150)])
    expect(await refusedOf(pay(client, token, 1, { walletAddress: bob }))).toBe(true)
    expect(await refusedOf(pay(client, token, 1))).toBe(true)
  })

  test('for each of two assets, whose values are never added', async () => {
    const { client, token } = await paying([
      outgoingItem({ receiveAmount: usd(100) }),
      outgoingItem({ receiveAmount: eur(100) }),
    ])
    const dollars = await pay(client, token, 100)
    expect(dollars.body.grantSpentReceiveAmount).toEqual(usd(100))
    const euros = await pay(client, token, 200, { incomingPayment: euroReceiver })
    expect(euros.body).toMatchObject({ grantSpentDebitAmount: usd(300) })
    expect(euros.body).not.toHaveProperty('grantSpentReceiveAmount')
    expect(await refusedOf(pay(client, token, 1))).toBe(true)
  })

  test('even if the client has a second grant with the same access', async () => {
    const { world, client, token } = await paying()
    const access = [outgoingItem({ interval: hourly, debitAmount: usd(100) })]
    const second = await grantToPay(world, client, access)
    expect((await pay(client, token, 100)).status).toBe(201)
    expect((await pay(client, second.token, 100)).status).toBe(201)
  })
})

test('a payment with a quote loads everything that it depends on concurrently', async () => {
  const together = ['budget', 'budget', 'budget', 'outgoing-payment', 'quote']
  const { store, asked } = answeringTogether(memoryStore(), together)
  const { world, client } = await payingClient({ store })
  const limits = [outgoingItem({ debitAmount: usd(20) }), outgoingItem({ debitAmount: usd(100) })]
  const access = [...limits, outgoingItem({ debitAmount: usd(100) }, bob)]
  const { token } = await grantToPay(world, client, access)
  const url = await quoteUrl(client, { debitAmount: usd(20) })
  asked.length = 0
  expect((await payByQuote(client, token, url)).status).toBe(201)
  expect(asked.filter((kind) => kind !== 'grant').toSorted()).toEqual(together)
})

/** Delays these loads until all of them are requested. */
function answeringTogether(store: Store, kinds: readonly string[]) {
  const asked: string[] = []
  const waiting: (() => void)[] = []
  const together: Store = {
    ...store,
    loadAll: undefined,
    async load(kind, id) {
      asked.push(kind)
      if (kinds.includes(kind)) {
        await new Promise<void>((resolve) => {
          waiting.push(resolve)
          if (waiting.length === kinds.length) for (const go of waiting) go()
        })
      }
      return store.load(kind, id)
    },
  }
  return { store: together, asked }
}

describe('a receiver', () => {
  const spellings = [
    'https://BANK.example/incoming-payments/usd-1',
    'https://bank.example:443/incoming-payments/usd-1',
    'https://bank.example/incoming-payments/usd-1/',
    'https://bank.example/x/../incoming-payments/usd-1',
  ]

  test.each(spellings)('is equal in every spelling: %s', async (spelling) => {
    const { client, token } = await paying([outgoingItem({ receiver: shopReceiver })])
    expect((await pay(client, token, 1, { incomingPayment: spelling })).status).toBe(201)
    const other = await paying([outgoingItem({ receiver: spelling })])
    const quote = await quoteUrl(other.client)
    expect((await payByQuote(other.client, other.token, quote)).body.receiver).toBe(shopReceiver)
  })

  test.each([
    'https://bank.example/incoming-payments/USD-1',
    'https://bank.example/incoming-payments/usd-1/more',
    'https://bank.example:8443/incoming-payments/usd-1',
  ])('differs if its path or host differs: %s', async (another) => {
    const { client, token } = await paying([outgoingItem({ receiver: shopReceiver })])
    expect(await refusedOf(pay(client, token, 1, { incomingPayment: another }))).toBe(true)
  })
})

test('amounts beyond 64 bits are refused by validation', async () => {
  const { store, written } = watchedStore(memoryStore())
  const { world, client } = await payingClient({ store })
  const { token } = await grantToPay(world, client, [outgoingItem({ debitAmount: usd(most) })])
  const before = written.count()
  const sign = withoutNonce(world, client)
  expect(errorOf(await pay(client, token, most + 1n, {}, sign))).toEqual([400, 'invalid_request'])
  expect(written.count()).toBe(before)
  expect((await pay(client, token, most)).status).toBe(201)
  expect(await refusedOf(pay(client, token, 1))).toBe(true)
  const widest = [outgoingItem({ debitAmount: usd(most + 1n) })]
  expect(errorOf(await client.request(widest, { start: ['redirect'] }))).toEqual([
    400,
    'invalid_request',
  ])
})

describe('windows of a month', () => {
  const monthly = outgoingItem({ interval: 'R12/2027-01-31T00:00:00Z/P1M', debitAmount: usd(100) })

  test('begin on the last day of shorter months, and on the 31st again afterwards', async () => {
    const { world, client, token } = await paying([monthly])
    const openings = ['01-31', '02-28', '03-31', '04-30', '05-31', '06-30', '07-31']
    for (const opening of openings) {
      world.clock.set(Date.parse(`2027-${opening}T00:00:00Z`))
      expect((await pay(client, token, 100)).body.grantSpentDebitAmount).toEqual(usd(100))
      expect(await refusedOf(pay(client, token, 1))).toBe(true)
    }
    world.clock.set(Date.parse('2027-08-30T23:59:59.999Z'))
    expect(await refusedOf(pay(client, token, 1))).toBe(true)
  })

  test('end after the granted twelve, and so does the grant', async () => {
    const { world, client, token } = await paying([monthly])
    world.clock.set(Date.parse('2027-01-30T23:59:59.999Z'))
    expect(await refusedOf(pay(client, token, 1))).toBe(true)
    world.clock.set(Date.parse('2028-01-30T23:59:59.999Z'))
    expect((await pay(client, token, 100)).status).toBe(201)
    world.clock.advance(1)
    expect(errorOf(await pay(client, token, 1))).toEqual([401, 'invalid_token'])
  })
})

describe('rotation and revocation', () => {
  test('keep the spent amounts', async () => {
    const { world, client, token, accessToken } = await payingClient()
    await pay(client, token, 1500)
    const { body } = await client.rotate(accessToken)
    const { value } = body.access_token
    expect(await spent(client, value)).toBe('1500')
    expect(await refusedOf(pay(client, value, 1001))).toBe(true)
    expect((await pay(client, value, 1000)).status).toBe(201)
    expect(world.errors).toEqual([])
  })

  test('allow payments in progress to end, and count their sent amounts', async () => {
    const { world, client, token, grantId, host } = await paying()
    const [one, two] = [
      await begun(world, client, token, 50),
      await begun(world, client, token, 50),
    ]
    await world.auth.grants.revoke(grantId)
    const totals = { sentAmount: usd(50), deliveredAmount: usd(50) }
    expect(await host.reportSent(one, totals)).toMatchObject({ ok: true })
    expect(await host.fail(two, { sentAmount: usd(20) })).toMatchObject({ ok: true })
    const budget = (await host.get(one))?.budgetId ?? ''
    expect(await world.store.load('budget', budget)).toMatchObject({
      spent: { debitAmount: usd(70) },
    })
  })
})

test('the same bytes with a key, sent twice concurrently, create one payment and return it in both responses', async () => {
  const { world, client, token } = await payingClient({ store: waitingForTwo(memoryStore()) })
  const sign = { ...withoutNonce(world, client), ...withKey('key') }
  const both = await Promise.all([1, 2].map(() => pay(client, token, 100, {}, sign)))
  expect(both.map(({ status }) => status)).toEqual([201, 201])
  expect(both[1]?.body).toEqual(both[0]?.body)
  expect(await spent(client, token)).toBe('100')
})

test('a nonce is accepted once, even in two concurrent requests with one key', async () => {
  const { client, token } = await payingClient({ store: waitingForTwo(memoryStore()) })
  const sign = { ...withKey('key'), nonce: 'n1' }
  const both = await Promise.all([1, 2].map(() => pay(client, token, 100, {}, sign)))
  expect(both.map(({ status }) => status).toSorted()).toEqual([201, 401])
  expect(await spent(client, token)).toBe('100')
})

/** Delays commits of payments until two requests have loaded one. */
function waitingForTwo(store: Store): Store {
  let looks = 0
  let go = () => {}
  const both = new Promise<void>((resolve) => {
    go = resolve
  })
  return {
    ...store,
    loadAll: undefined,
    load(kind, id) {
      if (kind === 'outgoing-payment' && ++looks === 2) go()
      return store.load(kind, id)
    },
    async commit(commit) {
      if (commit.changes.some(({ kind }) => kind === 'outgoing-payment')) await both
      return store.commit(commit)
    },
  }
}

test.each(['revoked', 'rotated'])(
  'a payment is refused if the token is %s between its decision and its commit',
  async (change) => {
    const memory = memoryStore()
    let before = async () => {}
    const store: Store = {
      ...memory,
      async commit(commit) {
        if (commit.changes.some(({ kind }) => kind === 'outgoing-payment')) await before()
        return memory.commit(commit)
      },
    }
    const { world, client, token, grantId, accessToken } = await payingClient({ store })
    before = async () => {
      before = async () => {}
      if (change === 'revoked') await world.auth.grants.revoke(grantId)
      else expect((await client.rotate(accessToken)).status).toBe(200)
    }
    expect((await pay(client, token, 100)).status).toBe(401)
    const { outgoingPayments } = world.resources
    expect((await outgoingPayments.list({ walletAddress: alice })).result).toEqual([])
  },
)

describe('a grant request is refused if it has an invalid limit', () => {
  test.each([
    'R/2026-11-21T12:00:00Z/PT0S',
    'R/2026-11-21T12:00:00Z/P0D',
    'R/2026-11-21T12:00:00Z/P',
    'R/2026-11-21T12:00:00Z/PT',
    'R/2026-11-21T12:00:00Z/P1DT',
    'R/2026-11-21T12:00:00Z/-P1D',
    'R/2026-11-21T12:00:00Z/P-1D',
    'R/2026-11-21T12:00:00Z/P1.5D',
    'R/2026-11-21T12:00:00Z/P1000000000D',
    'R/2026-11-21T12:00:00Z/P2000Y',
    'R0/2026-11-21T12:00:00Z/P1D',
    'R-2/2026-11-21T12:00:00Z/P1D',
    'R1e3/2026-11-21T12:00:00Z/P1D',
    'R0x10/2026-11-21T12:00:00Z/P1D',
    'R1.5/2026-11-21T12:00:00Z/P1D',
    'R1000000000/2026-11-21T12:00:00Z/P1D',
    'Rn/2026-11-21T12:00:00Z/P1D',
    'X9/2026-11-21T12:00:00Z/P1D',
    'R/2020-02-30T00:00:00Z/P1D',
    'R/2026-11-21T24:00:00Z/P1D',
    'R/2026-11-21T12:00:00/P1D',
    'R/2026-11-21/P1D',
    'R/10000-01-01T00:00:00Z/P1D',
    'R/2026-11-21T12:00:00Z/2026-11-21T12:00:00Z',
    'R/2026-11-22T12:00:00Z/2026-11-21T12:00:00Z',
    'R/P1M/P1M',
    'P1M',
    'R/P1M',
    '',
    `R/2026-11-21T12:00:00Z/P${'0'.repeat(200)}1D`,
  ])('the interval %s', async (interval) => {
    const client = createWorld().client()
    const access = [outgoingItem({ interval, debitAmount: usd(1) })]
    const answer = await client.request(access, { start: ['redirect'] })
    expect(errorOf(answer)).toEqual([400, 'invalid_request'])
    expect(answer.body.error.details).toEqual({
      path: 'access_token.access.0.limits.interval',
      problem: expect.stringMatching(/^must (not )?(be|have|end|repeat) /),
    })
  })

  test.each(['', ' 5 ', '0x10', '-0', '1.0', '18446744073709551616'])(
    'the amount "%s", or both amounts',
    async (value) => {
      const client = createWorld().client()
      for (const limits of [
        { debitAmount: usd(value) },
        { receiveAmount: usd(value) },
        { debitAmount: usd(1), receiveAmount: usd(1) },
      ]) {
        const answer = await client.request([outgoingItem(limits)], { start: ['redirect'] })
        expect(errorOf(answer)).toEqual([400, 'invalid_request'])
      }
    },
  )
})
