import { describe, expect, test } from 'vitest'
import {
  type AuthorizationServer,
  createResourceServer,
  type GrantSource,
  ilpPaymentMethods,
  memoryStore,
  type ResourceServerOptions,
  type Store,
} from '../../src/index.js'
import { type Wiring, wired, wiringOf } from '../../src/servers/options.js'
import { manualClock, startOfTests } from '../support/clock.js'
import { invalidInput } from '../support/invalid-input.js'
import { loadOne } from '../support/one-record.js'
import { loadPublicRecord } from '../support/public-record.js'
import { seededRandom } from '../support/random.js'
import {
  createSpendingWorld,
  grantToPay,
  outgoingItem,
  pay,
  priceList,
  shopReceiver,
  usd,
} from '../support/spending.js'
import { errorOf, idOfPayment } from '../support/spending-client.js'
import { alice, answerOf, grantEndpoint, resourceServer, type World } from '../support/world.js'

const limit = 1_000

const resourceOptions = {
  store: memoryStore(),
  clock: manualClock(),
  random: seededRandom('another'),
  baseUrl: resourceServer,
  walletAddresses: {
    find: async (url: string) => ({ url, assetCode: 'USD', assetScale: 2 }),
  },
  paymentMethods: ilpPaymentMethods({
    addressPrefix: 'test.wallet',
    secret: new Uint8Array(32).fill(7),
  }),
  pricing: priceList,
}

/** Another resource server under the authorization server of a world. */
function another(world: World, options: Partial<ResourceServerOptions> = {}) {
  const { store, clock, auth } = world
  return createResourceServer({ ...resourceOptions, store, clock, grants: auth, ...options })
}

async function paying(world = createSpendingWorld()) {
  const client = world.client()
  const granted = await grantToPay(world, client, [outgoingItem({ debitAmount: usd(limit) })])
  return { world, client, ...granted }
}

type Paying = Awaited<ReturnType<typeof paying>>

function paymentRequest(
  { client, token }: Paying,
  baseUrl = resourceServer,
  nonce?: string,
  value = limit,
) {
  const body = { walletAddress: alice, incomingPayment: shopReceiver, debitAmount: usd(value) }
  return client.sign({
    method: 'POST',
    url: `${baseUrl}/outgoing-payments`,
    token,
    body: JSON.stringify(body),
    ...(nonce === undefined ? {} : { nonce }),
  })
}

const spellings = [
  'https://wallet.example/op/',
  'https://WALLET.example/op',
  'https://wallet.example:443/op',
]

describe('servers on one store', () => {
  test.each(spellings)('with the base URL spelled %s are one server', async (baseUrl) => {
    const setup = await paying()
    const other = another(setup.world, { baseUrl })
    expect((await pay(setup.client, setup.token, limit)).status).toBe(201)
    const answer = await other.handle(paymentRequest(setup))
    expect(answerOf(answer).body.error.code).toBe('insufficient_grant')
  })

  test.each(spellings)('with the base URL spelled %s count a nonce once', async (baseUrl) => {
    const setup = await paying()
    const request = paymentRequest(setup, resourceServer, 'once')
    const first = answerOf(await setup.world.handle(request))
    expect(first.status).toBe(201)
    const again = await another(setup.world, { baseUrl }).handle(request)
    const idOf = (url: string) => url.slice(url.lastIndexOf('/'))
    expect(idOf(answerOf(again).body.id)).toBe(idOf(first.body.id))
    const other = paymentRequest(setup, resourceServer, 'once', 5)
    expect(errorOf(answerOf(await setup.world.handle(other)))).toEqual([401, 'signature_used'])
  })

  test('with different base URLs share the limits of a grant', async () => {
    const setup = await paying()
    const baseUrl = 'https://second.example/op'
    const second = another(setup.world, { baseUrl })
    expect((await pay(setup.client, setup.token, limit)).status).toBe(201)
    const answer = await second.handle(paymentRequest(setup, baseUrl))
    expect(answerOf(answer).body.error.code).toBe('insufficient_grant')
  })

  test('remove the budgets that they share when the grant is removed', async () => {
    const { world, client, token, grantId } = await paying()
    const { outgoingPayments } = world.resources
    const paid = await outgoingPayments.getRecord(idOfPayment(await pay(client, token, limit)))
    const budgetId = paid?.budgetId ?? ''
    expect(await loadOne(world.store, 'budget', budgetId)).toBeDefined()
    await world.auth.grants.revoke(grantId)
    world.clock.advance(800 * 86_400_000)
    for (const { sweep } of [world.auth, world.resources]) while ((await sweep()).more);
    expect(await loadOne(world.store, 'budget', budgetId)).toBeUndefined()
  })
})

/** Revokes the grant just before the first commit of an outgoing payment. */
function revokingStore(store: Store, revoke: () => Promise<unknown>): Store {
  let revoked = false
  return {
    ...store,
    async commit(commit) {
      if (!revoked && commit.changes.some(({ kind }) => kind === 'outgoing-payment')) {
        revoked = true
        await revoke()
      }
      return store.commit(commit)
    },
  }
}

describe('a grant that is revoked between introspection and commit', () => {
  const hosts: readonly (readonly [string, (world: World) => Partial<ResourceServerOptions>])[] = [
    ['passes the authorization server', () => ({})],
    [
      'wraps its introspection',
      ({ auth }) => ({ grants: { ...auth, introspect: (query) => auth.introspect(query) } }),
    ],
  ]

  test.each(hosts)('cannot pay if the host %s', async (_, options) => {
    const setup = await paying()
    const { world, grantId } = setup
    const store = revokingStore(world.store, () => world.auth.grants.revoke(grantId))
    const { grants = world.auth } = options(world)
    const { options: shared, ...more } = wiringOf(grants) as Wiring
    const server = another(world, {
      store,
      grants: wired(grants, { ...more, options: { ...shared, store } }),
    })
    const answer = answerOf(await server.handle(paymentRequest(setup)))
    expect([answer.status, answer.body.error.code]).toEqual([401, 'invalid_token'])
  })

  test('is known to belong to the store by no member that the host sees, and in a copy too', async () => {
    const { world } = await paying()
    expect(Object.keys(world.auth)).not.toContain('shared')
    expect(JSON.stringify(world.auth)).not.toContain('store')
    const other = { store: memoryStore(), grants: { ...world.auth } }
    expect(() => another(world, other)).toThrow(invalidInput('store'))
  })

  test('can pay at a server that keeps its payments in another database', async () => {
    const setup = await paying()
    const { introspect } = setup.world.auth
    const server = another(setup.world, {
      store: memoryStore(),
      grants: { grantEndpoint, introspect },
    })
    expect(answerOf(await server.handle(paymentRequest(setup))).status).toBe(201)
  })
})

describe('a resource server with an authorization server in the same process', () => {
  const { store: _store, clock: _clock, random: _random, ...options } = resourceOptions
  const without = (grants: GrantSource) => ({ ...options, grants })

  test('uses its store, clock, hooks and other shared options', async () => {
    const seen: string[] = []
    const world = createSpendingWorld({
      auth: {
        rateLimit: ({ operation }) => void seen.push(operation),
        compatibility: { repeatedRequests: 'refuse' },
      },
    })
    const setup = await paying(world)
    const server = createResourceServer(without(world.auth))
    const request = setup.client.sign({
      method: 'GET',
      url: `${resourceServer}/outgoing-payments?wallet-address=${encodeURIComponent(alice)}`,
      token: setup.token,
    })
    expect((await server.handle(request)).status).toBe(200)
    expect((await server.handle(request)).status).toBe(409)
    expect(seen.at(-1)).toBe('listOutgoingPayments')
    expect(world.refusals.at(-1)).toMatchObject({ operation: 'listOutgoingPayments' })
    const created = await server.incomingPayments.create({
      walletAddress: alice,
      idempotencyKey: 'invoice 1',
    })
    if (!created.ok) throw new Error(created.reason)
    expect(
      await loadPublicRecord(world.store, 'incoming-payment', created.payment.paymentId),
    ).toMatchObject({
      createdAt: world.clock.now(),
    })
  })

  test('uses an option of its own instead', async () => {
    const { auth } = createSpendingWorld()
    const seen: string[] = []
    const server = createResourceServer({
      ...without(auth),
      onRefusal: ({ refusal }) => void seen.push(refusal),
      onError: undefined as never,
    })
    await server.handle({ method: 'GET', url: '/op/nothing', headers: [], body: new Uint8Array() })
    expect(seen).toEqual(['route_unknown'])
  })

  test.each([
    ['another store', (auth: AuthorizationServer) => ({ ...without(auth), store: memoryStore() })],
    [
      'no store, for grants in another process',
      ({ grantEndpoint, introspect }: AuthorizationServer) =>
        without({ grantEndpoint, introspect }),
    ],
  ])('cannot be created with %s', (_, options) => {
    const { auth } = createSpendingWorld()
    expect(() => createResourceServer(options(auth))).toThrow(invalidInput('store'))
  })
})

describe('a payment without a quote', () => {
  test('is refused at a price that has ended', async () => {
    const price = priceList.price
    const world = createSpendingWorld({
      resources: {
        pricing: {
          price: async (...asked) => ({ ...(await price(...asked)), expiresAt: startOfTests - 1 }),
        },
      },
    })
    const { client, token } = await paying(world)
    const answer = await pay(client, token, 10)
    expect([answer.status, answer.body.error.code]).toEqual([400, 'invalid_quote'])
  })

  test('with the same key is the same payment, whatever the order of the members', async () => {
    const { client, token } = await paying()
    const sign = { headers: [['Idempotency-Key', 'key']] as const }
    const one = await pay(client, token, 10, { metadata: { a: 1, b: { c: 2, d: [3, 4] } } }, sign)
    const two = await pay(client, token, 10, { metadata: { b: { d: [3, 4], c: 2 }, a: 1 } }, sign)
    expect([one.status, two.status]).toEqual([201, 201])
    expect(two.body.id).toBe(one.body.id)
    const other = { metadata: { a: 1, b: { c: 2, d: [4, 3] } } }
    expect((await pay(client, token, 10, other, sign)).status).toBe(422)
  })
})
