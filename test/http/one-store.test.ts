import { describe, expect, test } from 'vitest'
import {
  createResourceServer,
  type Introspect,
  ilpPaymentMethods,
  memoryStore,
  type ResourceServerOptions,
  type Store,
} from '../../src/index.js'
import { startOfTests } from '../support/clock.js'
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
import { idOfPayment } from '../support/spending-client.js'
import { alice, answerOf, grantEndpoint, resourceServer, type World } from '../support/world.js'

const limit = 1_000

/** Another resource server under the authorization server of a world. */
function another(world: World, options: Partial<ResourceServerOptions> = {}) {
  return createResourceServer({
    store: world.store,
    clock: world.clock,
    random: seededRandom('another'),
    baseUrl: resourceServer,
    grantEndpoint,
    introspect: world.auth.introspect,
    walletAddresses: { find: async (url) => ({ url, assetCode: 'USD', assetScale: 2 }) },
    paymentMethods: ilpPaymentMethods({
      addressPrefix: 'test.wallet',
      secret: new Uint8Array(32).fill(7),
    }),
    pricing: priceList,
    ...options,
  })
}

async function paying(world = createSpendingWorld()) {
  const client = world.client()
  const granted = await grantToPay(world, client, [outgoingItem({ debitAmount: usd(limit) })])
  return { world, client, ...granted }
}

type Paying = Awaited<ReturnType<typeof paying>>

function paymentRequest({ client, token }: Paying, baseUrl = resourceServer, nonce?: string) {
  const body = { walletAddress: alice, incomingPayment: shopReceiver, debitAmount: usd(limit) }
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
    expect(answerOf(await setup.world.handle(request)).status).toBe(201)
    const again = await another(setup.world, { baseUrl }).handle(request)
    expect(answerOf(again).body.error.code).toBe('invalid_signature')
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
    const paid = await outgoingPayments.get(idOfPayment(await pay(client, token, limit)))
    const budgetId = paid?.budgetId ?? ''
    expect(await world.store.load('budget', budgetId)).toBeDefined()
    await world.auth.grants.revoke(grantId)
    world.clock.advance(800 * 86_400_000)
    for (const { sweep } of [world.auth, world.resources]) while ((await sweep()).more);
    expect(await world.store.load('budget', budgetId)).toBeUndefined()
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
    ['passes on introspect', () => ({})],
    ['wraps introspect', ({ auth }) => ({ introspect: (query) => auth.introspect(query) })],
    ['opens the database twice', ({ store }) => ({ store: { ...store } })],
  ]

  test.each(hosts)('cannot pay if the host %s', async (_, options) => {
    const setup = await paying()
    const { world, grantId } = setup
    const given = options(world)
    const store = revokingStore(given.store ?? world.store, () => world.auth.grants.revoke(grantId))
    const introspect: Introspect = given.introspect ?? world.auth.introspect
    const server = another(world, { store, introspect })
    const answer = answerOf(await server.handle(paymentRequest(setup)))
    expect([answer.status, answer.body.error.code]).toEqual([401, 'invalid_token'])
  })

  test('can pay at a server that declares its grants to be in another database', async () => {
    const setup = await paying()
    const { world } = setup
    const server = another(world, { store: memoryStore(), guardsGrants: false })
    expect(answerOf(await server.handle(paymentRequest(setup))).status).toBe(201)
  })

  test('fails with an explanation at a server that should have declared it', async () => {
    const setup = await paying()
    const errors: unknown[] = []
    const server = another(setup.world, {
      store: memoryStore(),
      onError: (error) => void errors.push(error),
    })
    expect(answerOf(await server.handle(paymentRequest(setup))).status).toBe(500)
    expect(String(errors[0])).toContain('guardsGrants')
  })
})

describe('a payment without a quote', () => {
  test('is refused at a price that has ended', async () => {
    const price = priceList.price
    const world = createSpendingWorld({
      resources: {
        pricing: {
          price: async (request) => ({ ...(await price(request)), expiresAt: startOfTests - 1 }),
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
