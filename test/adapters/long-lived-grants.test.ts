import { afterAll, describe, expect, test } from 'vitest'
import {
  type DeliveredEvent,
  type Handler,
  type Pricing,
  type RefusalReport,
  remoteClientKeys,
  remoteGrants,
} from '../../src/index.js'
import { manualClock } from '../support/clock.js'
import { hostCall } from '../support/host-call.js'
import { bankId, bankKey, introspection } from '../support/introspection.js'
import { type TestKey, testKey } from '../support/keys.js'
import { servedDeployments } from '../support/served.js'
import {
  createSpendingWorld,
  otherReceiver,
  outgoingItem,
  pay,
  priceList,
  shopReceiver,
  usd,
} from '../support/spending.js'
import {
  alice,
  bob,
  carol,
  grantEndpoint,
  incomingAccess,
  interactionId,
} from '../support/world.js'

const shop = 'https://shop.example'
const first = testKey('shop')
const second = testKey('second')
const shopAccount = 'https://bank.example/shop'

const { stores, served, close } = servedDeployments()
afterAll(close)

interface Deployment {
  readonly adapter: string
  readonly store: string
  readonly processes: 1 | 2
}

const deployments = ['express', 'fastify', 'hono'].flatMap((adapter) =>
  Object.keys(stores).flatMap((store) =>
    ([1, 2] as const).map((processes): Deployment => ({ adapter, store, processes })),
  ),
)

/** The shop's receiver names its wallet address, and the other one does not. */
const pricing: Pricing = {
  async price(request) {
    const price = await priceList.price(request, hostCall)
    return request.receiver === shopReceiver
      ? { ...price, receiverWalletAddress: shopAccount }
      : price
  },
}

/** A wallet behind real ports, of which the shop is a customer. */
async function setUp({ adapter, store, processes }: Deployment, rule: 'published' | 'bound') {
  const make = stores[store]
  if (make === undefined) throw new Error(`no store ${store}`)
  const clock = manualClock()
  let keys: readonly TestKey[] = [first]
  let ports: { readonly auth: Handler; readonly resources: Handler } | undefined
  const carry: Handler = (request) => {
    if (ports === undefined) throw new Error('the servers have not started')
    return request.url.startsWith('/auth') ? ports.auth(request) : ports.resources(request)
  }
  const grants = remoteGrants({
    grantEndpoint,
    ...introspection,
    clock,
    async fetch(url, init) {
      const content = init?.body as Uint8Array
      const length = ['Content-Length', `${content.length}`] as const
      const others = [...new Headers(init?.headers)].filter(([name]) => name !== 'content-length')
      const { status, headers, body } = await carry({
        method: 'POST',
        url: new URL(String(url)).pathname,
        headers: [...others, length],
        body: content,
      })
      return new Response(body ?? null, { status, headers: new Headers(headers) })
    },
  })
  const clientKeys = remoteClientKeys({
    clock,
    fetch: () => Promise.reject(new Error('the keys of own accounts are not fetched')),
    ownAccounts: {
      baseUrl: shop,
      walletAddresses: {
        async find(url) {
          const account = { url, assetCode: 'USD', assetScale: 2, publicName: 'The Shop' }
          return url === shop ? { ...account, keys } : undefined
        },
      },
    },
  })
  const world = createSpendingWorld({
    clock,
    carry,
    store: await make(),
    auth: {
      clientKeys,
      policy: { keyBinding: rule },
      resourceServers: [{ id: bankId, keys: [bankKey] }],
    },
    resources: {
      pricing,
      policy: {
        async mayReceive({ type, walletAddress }) {
          if (walletAddress === carol) return { ok: false, refusal: 'payment_not_allowed' }
          return type === 'arrival' && frozen
            ? { ok: false, refusal: 'payment_not_allowed' }
            : { ok: true }
        },
      },
      ...(processes === 2 && { grants, store: await make() }),
    },
  })
  let frozen = false
  const whole = processes === 1 ? await served(adapter, world.handle) : undefined
  ports = {
    auth: whole ?? (await served(adapter, world.auth.handle)),
    resources: whole ?? (await served(adapter, world.resources.handle)),
  }
  const client = world.client()

  /** Requests access, to which Alice consents. */
  async function granted(access: readonly object[], approval: object = {}) {
    const asked = await client.request(access as never, { start: ['redirect'] })
    const id = interactionId(asked.body.interact.redirect)
    const view = await world.auth.interactions.get(id)
    const owner = { resourceOwner: 'alice', walletAddresses: [alice] }
    const approved = await world.auth.interactions.approve(id, { ...owner, ...approval })
    clock.advance(5_000)
    const { body } = await client.continue(asked.body.continue)
    const [grantId = ''] = id.split('.')
    return { view, approved, grantId, token: body.access_token, continuation: asked.body.continue }
  }

  return {
    world,
    clock,
    client,
    granted,
    publish: (...published: readonly TestKey[]) => {
      keys = published
    },
    freeze: () => {
      frozen = true
    },
    refused: () => world.refusals.map(({ refusal }: RefusalReport) => refusal),
  }
}

const limited = [outgoingItem({ debitAmount: usd(2500) })]

describe.each(deployments)(
  'grants that last, on $adapter with $store in $processes process(es)',
  (deployment) => {
    test('a client, its keys, and an owner who changes their mind', async () => {
      const wallet = await setUp(deployment, 'published')
      const { world, client, granted, publish, refused, clock } = wallet
      const by = (key: TestKey) => ({ key })

      // The app's name, and an account that the owner chooses.
      const { identifier: _identifier, ...anyAccount } = outgoingItem({ debitAmount: usd(2500) })
      const accounts = [
        { url: alice, assetCode: 'USD', assetScale: 2 },
        { url: carol, assetCode: 'EUR', assetScale: 2 },
      ]
      const conditions = { paymentMax: usd(1000) }
      const choice = { walletAddresses: accounts, account: alice, conditions }
      const { view, grantId, token } = await granted([anyAccount], choice)
      expect(view?.display).toEqual({ uri: shop, name: 'The Shop' })
      expect(view?.needAccount).toHaveLength(1)
      expect(token.access).toEqual(limited)

      // Conditions.
      expect((await pay(client, token.value, 1001)).status).toBe(403)
      expect((await pay(client, token.value, 1000)).status).toBe(201)

      // A new key signs at once, a removed one never, and one that is added again at once.
      publish(first, second)
      expect((await pay(client, token.value, 100, {}, by(second))).status).toBe(201)
      publish(second)
      expect((await pay(client, token.value, 100, {}, by(first))).status).toBe(401)
      expect((await client.rotate(token, by(first))).status).toBe(400)
      publish(second, first)
      const rotated = await client.rotate(token, by(second))
      expect(rotated.status).toBe(200)
      const { value } = rotated.body.access_token
      const types: string[] = []
      await world.auth.events.drain((event: DeliveredEvent) => void types.push(event.type))
      expect(types.filter((type) => type === 'grant.key-changed')).toHaveLength(1)
      expect(await world.auth.grants.getRecord(grantId)).toMatchObject({
        client: { walletAddress: shop, kid: second.kid },
      })

      // The owner lowers the limit to 15.00, names one receiver, and pauses. 11.00 are spent.
      const { amend, get } = world.auth.grants
      const [item] = (await get(grantId))?.access ?? []
      if (item === undefined) throw new Error('an item is granted')
      const access = [{ ...item, limits: { debitAmount: usd(1500) } }]
      const receivers = [shopAccount]
      expect(await amend(grantId, { access, conditions: { receivers } })).toMatchObject({
        ok: true,
      })
      expect((await pay(client, value, 401)).status).toBe(403)
      const elsewhere = { incomingPayment: otherReceiver }
      expect((await pay(client, value, 1, elsewhere)).status).toBe(403)
      expect((await pay(client, value, 300)).status).toBe(201)
      const pausedUntil = clock.now() + 60_000
      await amend(grantId, { conditions: { pausedUntil } })
      expect((await pay(client, value, 100)).status).toBe(403)
      clock.set(pausedUntil)
      expect((await pay(client, value, 100)).status).toBe(201)
      expect(
        refused().filter((each) => each.startsWith('conditions') || each === 'grant_paused'),
      ).toEqual(['conditions_exceeded', 'conditions_exceeded', 'grant_paused'])
      const wider = [{ ...item, limits: { debitAmount: usd(2500) } }]
      expect(await amend(grantId, { access: wider })).toMatchObject({ refusal: 'access_widened' })
      const other = { resourceOwner: 'mallory', conditions: { pausedUntil: null } }
      expect(await amend(grantId, other)).toMatchObject({ refusal: 'not_the_owner' })

      // Money that the wallet refuses.
      const asked = await client.request([incomingAccess, { ...incomingAccess, identifier: carol }])
      const receiving = asked.body.access_token.value
      const refusedCreation = await client.createPayment(receiving, { walletAddress: carol })
      expect([refusedCreation.status, refusedCreation.body.error.code]).toEqual([
        403,
        'payment_denied',
      ])
      const created = await client.createPayment(receiving, { walletAddress: bob })
      expect(created.status).toBe(201)
      const { incomingPayments } = world.resources
      const id = incomingPayments.idOf(created.body.id) ?? ''
      wallet.freeze()
      const arrival = { transferId: 'one', amount: usd(5) }
      expect(await incomingPayments.receive(id, arrival)).toMatchObject({
        refusal: 'payment_not_allowed',
      })
      const read = await client.getPayment(receiving, created.body.id)
      expect(read.body.receivedAmount).toEqual(usd(0))
    })

    test("keys that are bound to a grant stay the grant's", async () => {
      const { client, granted, publish } = await setUp(deployment, 'bound')
      const { token } = await granted(limited)
      publish(first, second)
      expect((await pay(client, token.value, 100, {}, { key: second })).status).toBe(401)
      expect((await client.rotate(token, { key: second })).status).toBe(401)
      expect((await pay(client, token.value, 100)).status).toBe(201)
    })
  },
)
