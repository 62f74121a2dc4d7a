import { afterAll, describe, expect, test } from 'vitest'
import {
  type AccountLimits,
  createAuthorizationServer,
  type HostResult,
  type MayPay,
  memoryStore,
  type Store,
  type WalletAddress,
} from '../../src/index.js'
import { type Authority, authorities, type Payer, payerOf } from '../support/authorities.js'
import { freshStores, servers } from '../support/databases.js'
import { createSpendingWorld, outgoingItem, pay, usd, withKey } from '../support/spending.js'
import { errorOf, spentUnder } from '../support/spending-client.js'
import { alice, grantEndpoint, origin } from '../support/world.js'

const minute = 60_000
const day = 86_400_000
const daily = 'R/2026-01-01T00:00:00Z/P1D'
const resourceOwner = 'alice'
const notNow = [403, 'not_permitted_now']

const onPostgres = freshStores()
afterAll(onPostgres.drop)

type OpenStore = readonly [string, () => Promise<Store>]

const onPostgreSQL: OpenStore = ['PostgreSQL', onPostgres.open]
const stores: readonly OpenStore[] = [
  ['memory', async () => memoryStore()],
  ...(servers.PostgreSQL === undefined ? [] : [onPostgreSQL]),
]

const aClient: Authority = 'a client under a grant'

/** Both authorities on each store. */
const everywhere = stores.flatMap(([name, open]) =>
  authorities.map((authority) => ({ name, authority, open })),
)

/**
 * A wallet whose owner confirms payments above 50, and two payers: one by this authority, and an app. Each app has a
 * grant for 1,000, and the limits of the account count what the owner orders.
 */
async function twoPayers({
  authority = aClient,
  accountLimits = () => [],
  store = memoryStore(),
  confirmMs = 15 * minute,
}: {
  readonly authority?: Authority
  readonly accountLimits?: AccountLimits
  readonly store?: Store
  readonly confirmMs?: number
} = {}) {
  const asked: string[] = []
  const host = { refuses: false }
  const world = createSpendingWorld({
    store,
    resources: {
      walletAddresses: { find: async (url) => (url === alice ? account.of : undefined) },
      policy: { accountLimits, mayPay: (...asked) => mayPay(...asked) },
    },
  })
  const account: { of: WalletAddress | undefined } = {
    of: { url: alice, assetCode: 'USD', assetScale: 2 },
  }
  const mayPay: MayPay = ({ outgoingPaymentId: id, debitAmount, isConfirmed, isPreview }) => {
    if (!isPreview && !isConfirmed) asked.push(id)
    if (isConfirmed && host.refuses) return { ok: false, refusal: 'funds_insufficient' }
    if (BigInt(debitAmount.value) <= 50n || isConfirmed) return { ok: true }
    const url = `${origin}/confirm/${id}`
    return {
      ok: false,
      refusal: 'confirmation_required',
      url,
      until: world.clock.now() + confirmMs,
    }
  }
  const client = world.client()
  const order = { countsInAccountLimits: true, resourceOwner }
  const payer = await payerOf(world, authority, { limit: 1_000, client, order })
  const agent = await payerOf(world, aClient, { limit: 1_000, client })
  const { outgoingPayments, events } = world.resources

  /** Requests a payment that its owner must confirm. */
  async function waiting(by: Payer = payer, value = 60, key: string = crypto.randomUUID()) {
    const request = () => by.pay(value, {}, key)
    expect(errorOf(await request())).toEqual([403, 'confirmation_required'])
    const id = asked.at(-1) ?? ''
    const shown = { receiver: shownReceiver, debitAmount: usd(value), receiveAmount: usd(value) }
    const confirm = () => outgoingPayments.confirm(id, { ...shown, resourceOwner })
    const decline = () => outgoingPayments.decline(id, { resourceOwner })
    return { id, request, confirm, decline }
  }
  const ids = async (scope: Parameters<typeof outgoingPayments.listToConfirm>[0]) =>
    (await outgoingPayments.listToConfirm(scope)).result.map(({ paymentId }) => paymentId)
  async function ends() {
    const types: string[] = []
    await events.drain((event) => {
      if (/declined|created/.test(event.type)) types.push(event.type)
    })
    return types
  }
  const payBy = async (by: Payer, value: number) => errorOf(await by.pay(value))
  return { world, client, account, host, payer, agent, outgoingPayments, waiting, ids, ends, payBy }
}

/** The grant of an app. */
function grantOf({ granted }: Payer) {
  if (granted === undefined) throw new Error('it pays without a grant')
  return granted
}

/** A wallet whose owner confirms payments above 50, and has two apps. */
async function twoApps(options: Parameters<typeof twoPayers>[0] = {}) {
  const setting = await twoPayers(options)
  return { ...setting, app: setting.payer, shop: grantOf(setting.payer) }
}

const shownReceiver = 'https://bank.example/incoming-payments/usd-1'
const refusalOf = (result: HostResult) => (result.ok ? 'ok' : result.refusal)
const created = [201, undefined]

describe.each(everywhere)('what $authority asks for, on $name', ({ authority, open }) => {
  test('takes nothing of the limits of the account before the owner has allowed it', async () => {
    for (const limit of [{ debitAmount: usd(80) }, { payments: 2 }]) {
      const store = await open()
      const { payer, agent, waiting, payBy, outgoingPayments } = await twoPayers({
        ...{ authority, store },
        accountLimits: () => [{ ...limit, interval: daily }],
      })
      await waiting(payer, 79)
      await waiting(payer, 80)
      await waiting(payer, 51)
      expect(await payBy(agent, 2)).toEqual(created)
      const [left] = await outgoingPayments.limitsOf({ walletAddress: alice })
      expect(left?.left).toEqual(limit.payments ? { payments: 1 } : { debitAmount: usd(78) })
    }
  })

  test('is charged to them by its confirmation, which they can refuse', async () => {
    const store = await open()
    const { world, agent, waiting, payBy, ids } = await twoPayers({
      ...{ authority, store },
      accountLimits: () => [{ debitAmount: usd(100), interval: daily }],
    })
    const { id, confirm, request } = await waiting()
    expect(await payBy(agent, 41)).toEqual(created)
    const refused = await confirm()
    expect(refused).toEqual({
      ok: false,
      refusal: 'account_limit_exceeded',
      reason: 'a limit of the account does not allow the payment now',
    })
    expect(await ids({ walletAddress: alice })).toEqual([id])
    expect(errorOf(await request())).toEqual([403, 'confirmation_required'])
    const other = await waiting(agent, 59)
    expect(refusalOf(await other.confirm())).toBe('ok')
    expect(await payBy(agent, 1)).toEqual(notNow)
    expect(refusalOf(await other.confirm())).toBe('ok')
    await world.resources.outgoingPayments.cancel(other.id)
    expect(refusalOf(await confirm())).toBe('account_limit_exceeded')
    expect(await payBy(agent, 50)).toEqual(created)
  })
})

describe.each(authorities)('the limits of the account, with payments by %s', (authority) => {
  test('count a payment in the window of its confirmation', async () => {
    const { world, client, agent, waiting } = await twoPayers({
      authority,
      accountLimits: () => [{ debitAmount: usd(100), interval: daily }],
      confirmMs: day,
    })
    const { confirm } = await waiting()
    const { clock } = world
    clock.advance(day - (clock.now() % day))
    const { body } = await client.rotate(grantOf(agent).accessToken)
    const again = async (value: number) =>
      errorOf(await pay(client, body.access_token.value, value))
    expect(await again(50)).toEqual(created)
    expect(refusalOf(await confirm())).toBe('account_limit_exceeded')
    expect(await again(1)).toEqual(created)
  })

  test('get back what the host does not allow after the confirmation', async () => {
    const { waiting, agent, payBy, host } = await twoPayers({
      authority,
      accountLimits: () => [{ debitAmount: usd(100) }],
    })
    const { confirm } = await waiting()
    host.refuses = true
    expect(refusalOf(await confirm())).toBe('funds_insufficient')
    host.refuses = false
    expect(await payBy(agent, 50)).toEqual(created)
    expect(await payBy(agent, 50)).toEqual(created)
  })
})

describe('the limits of the account', () => {
  test('get back what a pause of the grant does not allow after the confirmation', async () => {
    const { waiting, agent, payBy, world, shop } = await twoApps({
      accountLimits: () => [{ debitAmount: usd(100) }],
    })
    const { confirm } = await waiting()
    await world.auth.grants.amend(shop.grantId, { conditions: { pausedUntil: 2 ** 42 } })
    expect(refusalOf(await confirm())).toBe('grant_paused')
    expect(await payBy(agent, 50)).toEqual(created)
    expect(await payBy(agent, 50)).toEqual(created)
  })
})

describe('payments of one grant that wait for their owner', () => {
  test('are ten at most, however many are requested at once', async () => {
    const { client, app, shop, agent, ids, outgoingPayments, waiting, payBy } = await twoApps()
    const answers = await Promise.all(
      Array.from({ length: 14 }, (_, index) =>
        pay(client, shop.token, 60, {}, withKey(`key-${index}`)),
      ),
    )
    const codes = answers.map((answer) => errorOf(answer)[1])
    expect(codes.filter((code) => code === 'confirmation_required')).toHaveLength(10)
    expect(codes.filter((code) => code === 'not_permitted_now')).toHaveLength(4)
    const [first = '', ...others] = await ids({ grantId: shop.grantId })
    expect(others).toHaveLength(9)
    expect(await spentUnder(client, shop.token)).toMatchObject({ spentDebitAmount: usd(600) })
    expect(await payBy(app, 50)).toEqual(created)
    await waiting(agent)
    expect(errorOf(await pay(client, shop.token, 60))).toEqual(notNow)
    await outgoingPayments.decline(first, { resourceOwner })
    await waiting(app)
    expect(errorOf(await pay(client, shop.token, 60))).toEqual(notNow)
  })
})

test('orders of the owner wait in any number, and take no place of an app', async () => {
  const { payer, agent, waiting, ids } = await twoPayers({ authority: 'the owner of the account' })
  for (let count = 1; count <= 12; count++) await waiting(payer)
  for (let count = 1; count <= 10; count++) await waiting(agent)
  expect(errorOf(await agent.pay(60))).toEqual(notNow)
  await waiting(payer)
  expect(await ids({ walletAddress: alice })).toHaveLength(20)
  expect(await ids({ grantId: grantOf(agent).grantId })).toHaveLength(10)
})

describe.each(authorities)('payments by %s that wait for their owner', (authority) => {
  test('are listed for the page of their owner until they are decided or over', async () => {
    const { world, payer, agent, ids, waiting, outgoingPayments } = await twoPayers({ authority })
    const one = await waiting(payer, 60)
    world.clock.advance(1_000)
    const two = await waiting(agent, 70)
    world.clock.advance(1_000)
    const three = await waiting(agent, 80)
    const { clock } = world
    expect(await ids({ walletAddress: alice })).toEqual([one.id, two.id, three.id])
    expect(await ids({ grantId: grantOf(agent).grantId })).toEqual([two.id, three.id])
    const { result: waitingOnes } = await outgoingPayments.listToConfirm({ walletAddress: alice })
    const { client, grantId } = waitingOnes[0] ?? {}
    expect({ client, grantId }).toEqual({ client: undefined, grantId: undefined, ...payer.named })
    const page = await outgoingPayments.listToConfirm({ walletAddress: alice, last: 1 })
    expect(page).toMatchObject({
      pagination: { hasNextPage: false, hasPreviousPage: true },
      result: [{ paymentId: three.id, url: `${origin}/confirm/${three.id}`, itemId: '1' }],
    })
    expect(page.result).toEqual([await outgoingPayments.toConfirm(three.id)])
    await two.confirm()
    await three.decline()
    expect(await ids({ walletAddress: alice })).toEqual([one.id])
    clock.advance(15 * minute)
    expect(await ids({ walletAddress: alice })).toEqual([])
    await world.resources.sweep()
    const { grantId: ended } = payer.named
    if (ended !== undefined) expect(await ids({ grantId: ended })).toEqual([])
  })

  test('are in no list that shows payments', async () => {
    const { waiting, outgoingPayments, payer, agent } = await twoPayers({ authority })
    await waiting()
    expect((await outgoingPayments.list({ walletAddress: alice })).result).toEqual([])
    const { grantId } = payer.granted ?? grantOf(agent)
    expect((await outgoingPayments.list({ grantId })).result).toEqual([])
  })

  test.each(['with a key', 'by a quote'])(
    'are confirmed only from an account that exists, %s',
    async (by) => {
      const { account, payer, ids, outgoingPayments } = await twoPayers({ authority })
      const requested =
        by === 'by a quote'
          ? await payer.payByQuote((await payer.quote({ debitAmount: usd(60) })).body.id)
          : await payer.pay(60, {}, 'k')
      expect(errorOf(requested)).toEqual([403, 'confirmation_required'])
      const [id = ''] = await ids({ walletAddress: alice })
      const shown = { receiver: shownReceiver, debitAmount: usd(60), receiveAmount: usd(60) }
      const confirm = () => outgoingPayments.confirm(id, { ...shown, resourceOwner })
      const present = account.of
      account.of = undefined
      expect(refusalOf(await confirm())).toBe('wallet_address_unknown')
      account.of = present && { ...present, active: false }
      expect(refusalOf(await confirm())).toBe('wallet_address_inactive')
      account.of = present
      expect(refusalOf(await confirm())).toBe('ok')
      account.of = undefined
      expect(await confirm()).toMatchObject({ ok: true, changed: false })
    },
  )
})

describe('an owner or a client that ends a grant', () => {
  test.each<[string, (setting: Awaited<ReturnType<typeof twoApps>>) => Promise<unknown>]>([
    ['its owner revokes', ({ world, shop }) => world.auth.grants.revoke(shop.grantId)],
    ['its owner revokes all of', ({ world }) => world.auth.grants.revokeAll({ resourceOwner })],
    ['its client cancels', ({ client, shop }) => client.cancel(shop.continuation)],
    ['its client revokes the token of', ({ client, shop }) => client.revoke(shop.accessToken)],
    [
      'its owner lowers the limit of',
      ({ world, shop }) =>
        world.auth.grants.amend(shop.grantId, {
          access: [{ itemId: '1', ...outgoingItem({ debitAmount: usd(59) }) }],
        }),
    ],
    [
      'a transaction revokes',
      ({ world, shop }) => world.auth.within(world.store).grants.revoke(shop.grantId),
    ],
  ])('declines at once what waits under the grant that %s', async (_, end) => {
    const setting = await twoApps()
    const { shop, agent, ids, ends, waiting, world } = setting
    const { confirm } = await waiting()
    await waiting()
    const other = await waiting(agent)
    await end(setting)
    expect(await ids({ grantId: shop.grantId })).toEqual([])
    const { result } = await world.resources.outgoingPayments.list({ walletAddress: alice })
    expect(result).toEqual([])
    const declined = (await ends()).filter((type) => type.endsWith('declined'))
    expect(declined.length).toBeGreaterThanOrEqual(2)
    expect(['grant_ended', 'limits_exceeded']).toContain(refusalOf(await confirm()))
    expect(declined.length === 2).toBe((await ids({ walletAddress: alice })).includes(other.id))
  })

  test('declines nothing by a pause, which may end', async () => {
    const { world, shop, ids, waiting } = await twoApps()
    const { id, confirm } = await waiting()
    const { grants } = world.auth
    await grants.amend(shop.grantId, { conditions: { pausedUntil: world.clock.now() + minute } })
    expect(await ids({ grantId: shop.grantId })).toEqual([id])
    await grants.amend(shop.grantId, { conditions: { pausedUntil: null } })
    expect(refusalOf(await confirm())).toBe('ok')
  })

  test('in another process leaves the decision to the confirmation', async () => {
    const { world, shop, ids, ends, waiting, store } = await sharedStore()
    const { id, confirm } = await waiting()
    const elsewhere = createAuthorizationServer({
      store,
      clock: world.clock,
      grantEndpoint,
      consentUrl: `${origin}/consent`,
      clientKeys: { find: async () => undefined },
    })
    await elsewhere.grants.revoke(shop.grantId)
    expect(await ids({ grantId: shop.grantId })).toEqual([])
    expect(await world.resources.outgoingPayments.toConfirm(id)).toBeUndefined()
    expect(await ends()).toEqual([])
    expect(refusalOf(await confirm())).toBe('grant_ended')
    expect(await ends()).toEqual(['outgoing-payment.declined'])
  })
})

test('the limits of a grant count a payment in the window of its request at a confirmation in a later one', async () => {
  for (const [most, expected] of [
    [100, 'ok'],
    [60, 'ok'],
    [59, 'conditions_exceeded'],
  ] as const) {
    const { world, shop, waiting } = await twoApps({ confirmMs: day })
    const { grants } = world.auth
    const limited = (value: number) =>
      grants.amend(shop.grantId, {
        conditions: { limits: [{ debitAmount: usd(value), interval: daily }] },
      })
    await limited(200)
    const { confirm } = await waiting()
    world.clock.advance(day - (world.clock.now() % day))
    await limited(most)
    expect(refusalOf(await confirm())).toBe(expected)
  }
})

test.each(authorities)(
  'repeats by %s that wait for the host share their looks at the store',
  async (authority) => {
    const looks = { count: 0 }
    const memory = memoryStore()
    const load: Store['load'] = async (keys) => {
      const [first, ...others] = keys
      if (first?.kind === 'outgoing-payment' && others.length === 0) looks.count += 1
      return memory.load(keys)
    }
    let allow: ((answer: { readonly ok: true }) => void) | undefined
    const mayPay: MayPay = () => new Promise((resolve) => (allow = resolve))
    const world = createSpendingWorld({
      store: { ...memory, load },
      resources: { policy: { mayPay } },
    })
    const payer = await payerOf(world, authority, { limit: null })
    const request = () => payer.pay(1, {}, 'k')
    const first = request()
    await expect.poll(() => allow).toBeDefined()
    looks.count = 0
    const repeats = await Promise.all(Array.from({ length: 50 }, request))
    expect(new Set(repeats.map(({ status }) => status))).toEqual(new Set([503]))
    // 50 keep looking for 3 s, with pauses of 200 to 400 ms after the first three.
    expect(looks.count).toBeLessThan(20)
    allow?.({ ok: true })
    expect((await first).status).toBe(201)
    expect((await request()).status).toBe(201)
  },
)

async function sharedStore() {
  const store = memoryStore()
  return { ...(await twoApps({ store })), store }
}
