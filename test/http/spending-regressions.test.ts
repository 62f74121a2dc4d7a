import { describe, expect, test } from 'vitest'
import { memoryStore, type Pricing, type Store } from '../../src/index.js'
import { hostCall } from '../support/host-call.js'
import { loadOne } from '../support/one-record.js'
import {
  createSpendingWorld,
  grantToPay,
  outgoingItem,
  pay,
  payByQuote,
  priceList,
  shopReceiver,
  usd,
} from '../support/spending.js'
import {
  errorOf,
  idOfPayment,
  payingClient,
  quoteUrl,
  spentUnder,
  withoutNonce,
} from '../support/spending-client.js'
import {
  alice,
  bob,
  createWorld,
  resourceServer,
  type TestClient,
  type World,
  type WorldOptions,
} from '../support/world.js'
import { watchedStore } from '../support/written.js'

const day = 86_400_000

/** One window an hour, from the hour in which the tests begin. */
const hourly = 'R/2026-11-21T12:00:00Z/PT1H'
const minute = 60_000
const hour = 60 * minute

/** Creates a client that may pay 100 an hour, or under the given access. */
async function paying(access = [outgoingItem({ interval: hourly, debitAmount: usd(100) })]) {
  const world = createSpendingWorld(longTokens)
  const client = world.client()
  const { token, grantId } = await grantToPay(world, client, access)
  return { world, client, token, grantId, host: world.resources.outgoingPayments }
}

const longTokens: WorldOptions = { auth: { policy: { accessTokens: { lifetimeMs: 500 * day } } } }

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
})

test('a report that returns nothing does not write the budget', async () => {
  const { world, client, token, host } = await paying()
  const paymentId = await begun(world, client, token, 100)
  const budgetId = (await host.getRecord(paymentId))?.budgetId ?? ''
  const before = await loadOne(world.store, 'budget', budgetId)
  await host.reportSent(paymentId, { sentAmount: usd(10), deliveredAmount: usd(10) })
  expect(await loadOne(world.store, 'budget', budgetId)).toEqual(before)
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
})

describe('a request that waits', () => {
  test('until the next window opens counts in the window of its arrival', async () => {
    const price: Pricing['price'] = async (asked) => {
      if (slow) world.clock.advance(2 * minute)
      return priceList.price(asked, hostCall)
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

test('a payment with a quote loads everything that it depends on as one snapshot', async () => {
  const store = memoryStore()
  const asked: (readonly string[])[] = []
  const watched: Store = {
    ...store,
    load(keys) {
      asked.push(keys.map(({ kind }) => kind))
      return store.load(keys)
    },
  }
  const { world, client } = await payingClient({ store: watched })
  const limits = [outgoingItem({ debitAmount: usd(20) }), outgoingItem({ debitAmount: usd(100) })]
  const access = [...limits, outgoingItem({ debitAmount: usd(100) }, bob)]
  const { token } = await grantToPay(world, client, access)
  async function loadsOfPayment() {
    const url = await quoteUrl(client, { debitAmount: usd(20) })
    asked.length = 0
    expect((await payByQuote(client, token, url)).status).toBe(201)
    return asked.map((kinds) => kinds.toSorted())
  }
  const all = ['budget', 'budget', 'budget', 'outgoing-payment', 'quote']
  // The budgets of the first payment are guessed wrong: this grant has three.
  const guessed = ['budget', 'grant', 'outgoing-payment', 'quote']
  expect(await loadsOfPayment()).toEqual([guessed, all])
  expect(await loadsOfPayment()).toEqual([[...all, 'grant'].toSorted()])
})

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
    const budget = (await host.getRecord(one))?.budgetId ?? ''
    expect(await loadOne(world.store, 'budget', budget)).toMatchObject({
      spent: { debitAmount: usd(70) },
    })
  })
})

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
    'R0/2026-11-21T12:00:00Z/P1D',
    'R/2020-02-30T00:00:00Z/P1D',
    'P1M',
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
})
