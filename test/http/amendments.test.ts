import fc from 'fast-check'
import { afterAll, describe, expect, test } from 'vitest'
import type { JsonObject } from '../../src/entry-core.js'
import {
  type DeliveredEvent,
  type GrantAmendment,
  type MayPay,
  memoryStore,
  type Pricing,
  type RemoteGrantsOptions,
  type RequestedPayment,
  remoteGrants,
  type Store,
  toFetch,
} from '../../src/index.js'
import { freshStores, servers } from '../support/databases.js'
import { hostCall } from '../support/host-call.js'
import { bankId, bankKey, introspection } from '../support/introspection.js'
import { runs } from '../support/runs.js'
import {
  createSpendingWorld,
  eur,
  grantToPay,
  otherReceiver,
  outgoingItem,
  pay,
  payByQuote,
  priceList,
  shopReceiver,
  usd,
} from '../support/spending.js'
import { errorOf, payingClient, quoteUrl, spentUnder } from '../support/spending-client.js'
import { alice, bob, carol, grantEndpoint, interactionId, type World } from '../support/world.js'

const shop = 'https://bank.example/shop'

/** The shop's receiver names its wallet address, and the other one does not. */
const naming: Pricing = {
  async price(request) {
    const price = await priceList.price(request, hostCall)
    return request.receiver === shopReceiver ? { ...price, receiverWalletAddress: shop } : price
  },
}

const onPostgres = freshStores()
afterAll(onPostgres.drop)

interface Deployment {
  readonly name: string
  readonly store?: () => Promise<Store>
  /** The options of introspection, if the resource server is in another process. */
  readonly remote?: Partial<RemoteGrantsOptions>
}

const deployments: readonly Deployment[] = [
  { name: 'one process' },
  { name: 'two processes', remote: {} },
  ...(servers.PostgreSQL === undefined
    ? []
    : [{ name: 'PostgreSQL', store: onPostgres.open } satisfies Deployment]),
]

/** A wallet, an app that may pay from it, and what the host is asked. */
async function setUp(
  { store, remote }: Deployment,
  access = [outgoingItem({ debitAmount: usd(100) })],
) {
  const asked: RequestedPayment[] = []
  const mayPay: MayPay = async (payment) => {
    asked.push(payment)
    return { ok: true }
  }
  const introspecting =
    remote &&
    remoteGrants({
      grantEndpoint,
      ...introspection,
      fetch: (url, init) => toFetch(world.handle)(new Request(url, init)),
      clock: { now: () => world.clock.now() },
      ...remote,
    })
  const world: World = createSpendingWorld({
    store: (await store?.()) ?? memoryStore(),
    auth: { resourceServers: [{ id: bankId, keys: [bankKey] }] },
    resources: {
      pricing: naming,
      policy: { mayPay },
      ...(introspecting && { grants: introspecting }),
    },
  })
  const client = world.client()
  const granted = await grantToPay(world, client, access)
  const { grants } = world.auth
  const { grantId } = granted
  const items = async () => (await grants.get(grantId))?.access ?? []
  return {
    world,
    client,
    asked,
    ...granted,
    items,
    amend: (amendment: GrantAmendment) => grants.amend(grantId, amendment),
    /** Sets the amount of every item. */
    lower: async (value: number) => {
      const limited = (await items()).map((item) => ({
        ...item,
        limits: { ...item.limits, debitAmount: usd(value) },
      }))
      return grants.amend(grantId, { access: limited })
    },
  }
}

const notNow = {
  error: {
    code: 'not_permitted_now',
    description: 'The account owner does not permit this payment now',
  },
}
const lastRefusal = ({ refusals }: World) => refusals.at(-1)?.refusal

describe.each(deployments)('an amended grant ($name)', (deployment) => {
  test('keeps its token, counts what was spent, and issues the amended access', async () => {
    const { world, client, token, accessToken, lower } = await setUp(deployment)
    expect((await pay(client, token, 60)).status).toBe(201)
    expect(await lower(70)).toEqual({ ok: true, changed: true })
    expect(await lower(70)).toEqual({ ok: true, changed: false })
    expect(errorOf(await pay(client, token, 11))).toEqual([403, 'insufficient_grant'])
    expect((await pay(client, token, 10)).status).toBe(201)
    const { body } = await client.rotate(accessToken)
    expect(body.access_token.access).toEqual([outgoingItem({ debitAmount: usd(70) })])
    expect(await lower(50)).toEqual({ ok: true, changed: true })
    const rotated = body.access_token.value
    expect((await pay(client, rotated, 1)).status).toBe(403)
    expect((await spentUnder(client, rotated)).spentDebitAmount).toEqual(usd(70))
    const types: string[] = []
    await world.auth.events.drain((event: DeliveredEvent) => void types.push(event.type))
    expect(types.filter((type) => type === 'grant.amended')).toHaveLength(2)
    expect(await lower(51)).toMatchObject({ ok: false, refusal: 'access_widened' })
  })

  test('shows a client the same error for a pause and for each condition', async () => {
    const { world, client, token, amend } = await setUp(deployment)
    const refusedAs = async (refusal: string, answer: ReturnType<typeof pay>) => {
      const { status, body, headers } = await answer
      expect([status, body]).toEqual([403, notNow])
      expect(JSON.stringify(headers)).not.toMatch(/retry-after/i)
      expect(lastRefusal(world)).toBe(refusal)
    }
    const pausedUntil = world.clock.now() + 1_000
    await amend({ conditions: { pausedUntil, paymentMax: usd(10), receivers: [`${shop}/`] } })
    await refusedAs('grant_paused', pay(client, token, 1))
    world.clock.advance(999)
    await refusedAs('grant_paused', pay(client, token, 1))
    world.clock.advance(1)
    expect((await pay(client, token, 10)).status).toBe(201)
    await refusedAs('conditions_exceeded', pay(client, token, 11))
    await refusedAs(
      'conditions_exceeded',
      pay(client, token, 1, { incomingPayment: otherReceiver }),
    )
  })

  test('checks the receiver of a quote that was created before the condition', async () => {
    const { client, token, amend } = await setUp(deployment)
    const [named, unnamed] = [
      await quoteUrl(client, { debitAmount: usd(5) }),
      await quoteUrl(client, { debitAmount: usd(5), receiver: otherReceiver }),
    ]
    await amend({ conditions: { receivers: [shop] } })
    expect((await payByQuote(client, token, named)).status).toBe(201)
    expect(errorOf(await payByQuote(client, token, unnamed))).toEqual([403, 'not_permitted_now'])
  })

  test('tells the host its conditions and the receiver, and lets a repeat pass in a pause', async () => {
    const { world, client, token, amend, asked } = await setUp(deployment)
    const data = { level: 2, tags: ['rent'] }
    await amend({ conditions: { receivers: [shop], data } })
    const quote = await quoteUrl(client, { debitAmount: usd(5) })
    const first = await payByQuote(client, token, quote)
    await amend({ conditions: { pausedUntil: world.clock.now() + 60_000 } })
    expect(await payByQuote(client, token, quote)).toMatchObject({ status: 201, body: first.body })
    const told = { conditions: { receivers: [shop], data }, receiverWalletAddress: shop }
    expect(asked).toMatchObject([told])
    const plain = await setUp(deployment)
    await pay(plain.client, plain.token, 1)
    expect(plain.asked[0]).not.toHaveProperty('conditions')
  })

  test('no longer pays with an item that was removed', async () => {
    const items = [alice, bob].map((from) => outgoingItem({ debitAmount: usd(100) }, from))
    const { world, client, token, amend, items: present } = await setUp(deployment, items)
    const [kept] = await present()
    if (kept === undefined) throw new Error('two items were granted')
    await amend({ access: [kept] })
    expect((await pay(client, token, 1, { walletAddress: bob })).status).toBe(403)
    expect(lastRefusal(world)).toBe('identifier_foreign')
    expect((await pay(client, token, 1)).status).toBe(201)
  })

  test('spends within every limit in force and never in a pause, whatever the order', async () => {
    const step = fc.oneof(
      fc.record({ pay: fc.integer({ min: 1, max: 40 }) }),
      fc.record({ lower: fc.integer({ min: 0, max: 100 }) }),
      fc.record({ most: fc.integer({ min: 1, max: 40 }) }),
      fc.record({ pauseMs: fc.constantFrom(0, 1_000) }),
      fc.record({ passMs: fc.constantFrom(500, 1_000) }),
      fc.constant({ rotate: true }),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
        const { world, client, amend, lower, ...granted } = await setUp(deployment)
        let { accessToken } = granted
        let [limit, most, until, spent] = [100, 100, 0, 0]
        for (const each of steps) {
          if ('passMs' in each) world.clock.advance(each.passMs)
          if ('rotate' in each) accessToken = (await client.rotate(accessToken)).body.access_token
          if ('lower' in each && (await lower(each.lower)).ok) limit = each.lower
          if ('most' in each) {
            const amended = await amend({ conditions: { paymentMax: usd(each.most) } })
            if (amended.ok) most = each.most
          }
          if ('pauseMs' in each) {
            until = world.clock.now() + each.pauseMs
            await amend({ conditions: { pausedUntil: until } })
          }
          if (!('pay' in each)) continue
          const { status } = await pay(client, accessToken.value, each.pay)
          const fits = spent + each.pay <= limit && each.pay <= most && world.clock.now() >= until
          expect(status).toBe(fits ? 201 : 403)
          if (fits) spent += each.pay
        }
        // Each run on PostgreSQL has a pool of its own.
        await onPostgres.drop()
      }),
      { numRuns: runs(100, deployment.store ? 5 : 10) },
    )
  })
})

test('an amendment while a payment is in progress is seen by its commit', async () => {
  let isFirst = true
  const racing = await setUp({
    name: 'one process',
    store: async () => {
      const store = memoryStore()
      return {
        ...store,
        async commit(asked) {
          if (isFirst && asked.changes.some(({ kind }) => kind === 'outgoing-payment')) {
            isFirst = false
            await racing.amend({ conditions: { paymentMax: usd(5) } })
          }
          return store.commit(asked)
        },
      }
    },
  })
  expect((await pay(racing.client, racing.token, 6)).status).toBe(403)
  expect(lastRefusal(racing.world)).toBe('conditions_exceeded')
  expect((await pay(racing.client, racing.token, 5)).status).toBe(201)
})

test.each<readonly [string, JsonObject | null]>([
  ['other data', { blocked: true }],
  ['no data', null],
])('an amendment to %s while the host decides lets it decide again', async (_, data) => {
  const asked: unknown[] = []
  let amend = async () => undefined as unknown
  const mayPay: MayPay = async ({ conditions }) => {
    asked.push(conditions?.data)
    await amend()
    return asked.length === 1 ? { ok: true } : { ok: false, refusal: 'payment_not_allowed' }
  }
  const { world, client, token, grantId } = await payingClient({
    resources: { policy: { mayPay } },
  })
  const { grants } = world.auth
  await grants.amend(grantId, { conditions: { data: { blocked: false } } })
  amend = () => grants.amend(grantId, { conditions: { data } })
  expect(errorOf(await pay(client, token, 5))).toEqual([403, 'payment_denied'])
  expect(asked).toEqual([{ blocked: false }, data ?? undefined])
  expect((await spentUnder(client, token)).spentDebitAmount).toEqual(usd(0))
})

test('an amendment while the host determines a price, for longer than a commit may take, is no reason for 503', async () => {
  const storeTimeoutMs = 500
  let pricing = async () => undefined as unknown
  const slow: Pricing = {
    async price(request) {
      await pricing()
      await new Promise((resolve) => setTimeout(resolve, storeTimeoutMs + 50))
      return priceList.price(request, hostCall)
    },
  }
  const { world, client, token, grantId } = await payingClient({
    resources: { pricing: slow, storeTimeoutMs },
  })
  pricing = () => world.auth.grants.amend(grantId, { conditions: { paymentMax: usd(5) } })
  expect((await pay(client, token, 5)).status).toBe(201)
})

test('in two processes with a cache, an amendment holds for the next payment', async () => {
  const cached = { name: 'cached', remote: { cache: { ttlMs: 1_000 } } }
  const { world, client, token, amend } = await setUp(cached)
  await pay(client, token, 1)
  await amend({ conditions: { pausedUntil: world.clock.now() + 60_000 } })
  expect((await pay(client, token, 1)).status).toBe(403)
})

describe('conditions', () => {
  const large = 'x'.repeat(8 * 1024)

  test.each<readonly [object, string]>([
    [{ conditions: { paymentmax: usd(1) } }, 'conditions.paymentmax is not known'],
    [
      { conditions: { paymentMax: { ...usd(1), value: '-1' } } },
      'conditions.paymentMax.value must',
    ],
    [{ conditions: { paymentMax: { ...usd(1), more: 1 } } }, 'conditions.paymentMax.more is not'],
    [{ conditions: { receivers: [] } }, 'conditions.receivers must contain 1 to 50'],
    [{ conditions: { receivers: Array(51).fill(shop) } }, 'conditions.receivers must contain 1 to'],
    [{ conditions: { receivers: [shop, 'shop'] } }, 'conditions.receivers.1 must be'],
    [
      { conditions: { receivers: [`${shop}/${'x'.repeat(500)}`] } },
      'conditions.receivers.0 must have at most',
    ],
    [{ conditions: { pausedUntil: -1 } }, 'conditions.pausedUntil must be an integer from 0'],
    [{ conditions: { pausedUntil: '2027-01-01' } }, 'conditions.pausedUntil must be an integer'],
    [{ conditions: { data: [] } }, 'conditions.data must be an object of JSON'],
    [{ conditions: { data: { at: new Date(0) } } }, 'conditions.data must be an object of JSON'],
    [{ conditions: { data: { big: 1n } } }, 'conditions.data must be an object of JSON'],
    [{ conditions: { data: { large } } }, 'conditions.data must not be larger than 8192 bytes'],
    [{ conditions: { data: { of: Array(600).fill(0) } } }, 'conditions.data '],
    [
      { conditions: { data: { a: { b: { c: { d: { e: { f: { g: { h: {} } } } } } } } } } },
      'conditions.data must not be nested more than 8 levels deep',
    ],
    [{ access: [outgoingItem()] }, 'access.0.itemId must be a non-empty string'],
    [{ acces: [] }, 'acces is not known'],
  ])('are checked with the path of the problem: %o', async (amendment, problem) => {
    const { world, grantId } = await setUp({ name: 'one process' })
    const before = await world.auth.grants.getRecord(grantId)
    await expect(world.auth.grants.amend(grantId, amendment)).rejects.toThrow(
      `amendment.${problem}`,
    )
    expect(await world.auth.grants.getRecord(grantId)).toEqual(before)
  })

  test('stand in every view, and only narrow', async () => {
    const { world, grantId, amend } = await setUp({ name: 'one process' })
    const data = { level: 1 }
    const changed = { ok: true, changed: true }
    expect(
      await amend({ conditions: { paymentMax: usd(9), receivers: [shop, bob], data } }),
    ).toEqual(changed)
    data.level = 2
    for (const conditions of [
      { paymentMax: usd(10) },
      { paymentMax: eur(1) },
      { receivers: [carol] },
    ]) {
      expect(await amend({ conditions })).toMatchObject({ refusal: 'conditions_widened' })
    }
    expect(await amend({ conditions: { receivers: [bob], data: null } })).toEqual(changed)
    const conditions = { paymentMax: usd(9), receivers: [bob] }
    const view = await world.auth.grants.get(grantId)
    expect(view).toMatchObject({ conditions, access: [{ itemId: '1' }] })
    const { result } = await world.auth.grants.list({ resourceOwner: 'alice' })
    expect(result).toEqual([view])
    expect(await amend({ resourceOwner: 'bob' })).toMatchObject({ refusal: 'not_the_owner' })
    expect(await world.auth.grants.amend('unknown', {})).toMatchObject({ refusal: 'grant_unknown' })
  })

  test('of an approval hold from the first payment', async () => {
    const world = createSpendingWorld()
    const client = world.client()
    const item = outgoingItem({ debitAmount: usd(100) })
    const { body } = await client.request([item], { start: ['redirect'] })
    const id = interactionId(body.interact.redirect)
    const owner = { resourceOwner: 'alice', walletAddresses: [alice] }
    const approve = (paymentMax = usd(5)) =>
      world.auth.interactions.approve(id, { ...owner, conditions: { paymentMax } })
    expect(await approve(eur(5))).toMatchObject({ ok: false, refusal: 'limits_contradicted' })
    expect(await approve()).toMatchObject({ ok: true, changed: true })
    expect(await approve(usd(6))).toMatchObject({ refusal: 'decided_otherwise' })
    expect(await world.auth.interactions.get(id)).toMatchObject({
      conditions: { paymentMax: usd(5) },
    })
    world.clock.advance(5_000)
    const issued = await client.continue(body.continue)
    const token = issued.body.access_token.value
    expect(JSON.stringify(issued.body)).not.toContain('paymentMax')
    expect((await pay(client, token, 6)).status).toBe(403)
    expect((await pay(client, token, 5)).status).toBe(201)
  })
})
