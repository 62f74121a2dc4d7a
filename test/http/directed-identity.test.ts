import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { AccessItem } from '../../src/index.js'
import { jwkOf, testKey } from '../support/keys.js'
import {
  createSpendingWorld,
  grantToPay,
  newQuote,
  payByQuote,
  shopReceiver,
  usd,
} from '../support/spending.js'
import {
  alice,
  bob,
  grantEndpoint,
  incomingAccess,
  outgoingAccess,
  resourceServer,
  type TestClient,
  type World,
  withFinish,
} from '../support/world.js'

/** The access that needs no consent, at every wallet address. */
const openAccess: readonly AccessItem[] = [
  { type: 'incoming-payment', actions: ['create', 'read', 'list', 'complete'] },
  { type: 'quote', actions: ['create', 'read'] },
]

const payee = { walletAddress: bob }

async function granted(client: TestClient) {
  return (await client.request(openAccess)).body
}

async function tokenOf(client: TestClient): Promise<string> {
  return (await granted(client)).access_token.value
}

/** Two clients that differ only in their keys, and one with a wallet address. */
function setUp() {
  const world = createSpendingWorld()
  const one = world.client('one', { byKey: true })
  const two = world.client('two', { byKey: true })
  return { world, one, two, named: world.client('named') }
}

async function createPayment(client: TestClient, walletAddress = bob): Promise<string> {
  const created = await client.createPayment(await tokenOf(client), { walletAddress })
  expect(created.status).toBe(201)
  return created.body.id
}

async function createQuote(client: TestClient): Promise<string> {
  const created = await newQuote(client, await tokenOf(client))
  expect(created.status).toBe(201)
  return created.body.id
}

async function listOf(client: TestClient, walletAddress = bob): Promise<readonly string[]> {
  const url = `${resourceServer}/incoming-payments?wallet-address=${walletAddress}`
  const { status, body } = await client.send({ method: 'GET', url, token: await tokenOf(client) })
  expect(status).toBe(200)
  return body.result.map(({ id }: { id: string }) => id)
}

const statusOf = async (client: TestClient, url: string) =>
  (await client.getPayment(await tokenOf(client), url)).status

const complete = async (client: TestClient, url: string) =>
  (await client.post(`${url}/complete`, undefined, await tokenOf(client))).status

function stored({ resources }: World, url: string) {
  return resources.incomingPayments.getRecord(resources.incomingPayments.idOf(url) ?? '')
}

const who = fc.constantFrom('one', 'two', 'named')
const step = fc.oneof(
  fc.record({ do: fc.constant('pay' as const), who, at: fc.constantFrom(alice, bob) }),
  fc.record({ do: fc.constant('quote' as const), who }),
)

describe('a client that is identified by its key', () => {
  test('sees the records that its key created and no others, in any order of creation', () =>
    fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 8 }), async (steps) => {
        const { one, two, named } = setUp()
        const clients: Readonly<Record<string, TestClient>> = { one, two, named }
        const made: { url: string; by: TestClient | undefined; at?: string }[] = []
        for (const each of steps) {
          const by = clients[each.who] ?? named
          if (each.do === 'quote') made.push({ url: await createQuote(by), by })
          else made.push({ url: await createPayment(by, each.at), by, at: each.at })
        }
        for (const client of [one, two, named]) {
          const own = made.filter(({ by }) => by === client)
          for (const { url, by } of made) {
            expect(await statusOf(client, url)).toBe(by === client ? 200 : 404)
          }
          for (const walletAddress of [alice, bob]) {
            const there = own.filter(({ at }) => at === walletAddress).map(({ url }) => url)
            expect((await listOf(client, walletAddress)).toSorted()).toEqual(there.toSorted())
          }
        }
      }),
      { numRuns: 12 },
    ))

  test('can complete only its own payments', async () => {
    const { world, one, two, named } = setUp()
    for (const owner of [one, two, named]) {
      const url = await createPayment(owner)
      for (const other of [one, two, named].filter((each) => each !== owner)) {
        expect(await complete(other, url)).toBe(404)
        expect(await stored(world, url)).toMatchObject({ completed: false, version: 1 })
      }
      expect(await complete(owner, url)).toBe(200)
      expect(await stored(world, url)).toMatchObject({ completed: true, version: 2 })
    }
  })

  test('is the same under any `kid` and in every grant', async () => {
    const { one } = setUp()
    const [payment, quote] = [await createPayment(one), await createQuote(one)]
    const as = { key: { ...one.key, kid: 'another name' } }
    const request = { client: { jwk: jwkOf(as.key) }, access_token: { access: openAccess } }
    const { body } = await one.post(grantEndpoint, request, undefined, as)
    const token: string = body.access_token.value
    const list = `${resourceServer}/incoming-payments?wallet-address=${bob}`
    const listed = await one.send({ method: 'GET', url: list, token, ...as })
    expect(listed.body.result).toMatchObject([{ id: payment }])
    expect((await one.getPayment(token, payment, as)).status).toBe(200)
    expect((await one.getPayment(token, quote, as)).status).toBe(200)
    expect((await one.post(`${payment}/complete`, undefined, token, as)).status).toBe(200)
  })

  test('is distinct from a wallet address that publishes the same key', async () => {
    const { world, one } = setUp()
    world.clientKeys.publish('https://one.example', testKey('one'))
    const request = { client: 'https://one.example', access_token: { access: openAccess } }
    const published = (await one.post(grantEndpoint, request)).body.access_token.value
    const [payment, quote] = [await createPayment(one), await createQuote(one)]
    const list = `${resourceServer}/incoming-payments?wallet-address=${bob}`
    expect((await one.getPayment(published, payment)).status).toBe(404)
    expect((await one.getPayment(published, quote)).status).toBe(404)
    expect((await one.post(`${payment}/complete`, undefined, published)).status).toBe(404)
    expect((await one.getPayment(published, list)).body.result).toEqual([])
    const { body } = await one.createPayment(published, { walletAddress: bob })
    expect(await statusOf(one, body.id)).toBe(404)
    expect(await listOf(one)).toEqual([payment])
  })

  test('receives quotes that no other client can pay', async () => {
    const { world, one, named } = setUp()
    const quote = await createQuote(one)
    const { token } = await grantToPay(world, named)
    const answer = await payByQuote(named, token, quote)
    expect([answer.status, answer.body.error.code]).toEqual([404, 'invalid_quote'])
    const own = await newQuote(named, await tokenOf(named), { receiver: shopReceiver })
    expect((await payByQuote(named, token, own.body.id)).status).toBe(201)
  })

  test('is identified to the host by the thumbprint of its key', async () => {
    const { world, one } = setUp()
    const paymentId = world.resources.incomingPayments.idOf(await createPayment(one)) ?? ''
    const owner = `urn:ietf:params:oauth:jwk-thumbprint:sha-256:${one.key.thumbprint}`
    expect(await world.resources.incomingPayments.get(paymentId)).toMatchObject({ client: owner })
    const funds = { transferId: 'transfer-1', amount: usd(5) }
    expect(await world.resources.incomingPayments.receive(paymentId, funds)).toMatchObject({
      ok: true,
    })
    const heard: unknown[] = []
    await world.resources.events.drain((event) => void heard.push(event))
    expect(heard).toMatchObject([
      { type: 'incoming-payment.created', client: owner },
      { type: 'incoming-payment.received', client: owner },
    ])
  })

  test('cannot be impersonated with its token alone', async () => {
    const { one, two } = setUp()
    const grant = await granted(one)
    const { value } = grant.access_token
    const { body } = await one.createPayment(value, payee)
    const stolen = [
      await two.createPayment(value, payee),
      await two.getPayment(value, body.id),
      await two.rotate(grant.access_token),
      await two.revoke(grant.access_token),
      await two.cancel(grant.continue),
    ]
    expect(stolen.map(({ status }) => status)).toEqual([401, 401, 401, 401, 401])
    expect((await one.getPayment(value, body.id)).status).toBe(200)
  })

  test('cannot be impersonated with its public key alone', async () => {
    const { one, two } = setUp()
    const { body } = await one.createPayment(await tokenOf(one), payee)
    const request = { client: one.client, access_token: { access: [incomingAccess] } }
    const as = { key: { ...two.key, kid: one.key.kid } }
    expect((await two.post(grantEndpoint, request, undefined, as)).status).toBe(401)
    expect((await two.getPayment(await tokenOf(two), body.id)).status).toBe(404)
  })

  test('rotates and revokes its tokens like other clients', async () => {
    const { one } = setUp()
    const grant = await granted(one)
    const { body } = await one.createPayment(grant.access_token.value, payee)
    const { access_token: next } = (await one.rotate(grant.access_token)).body
    expect((await one.getPayment(grant.access_token.value, body.id)).status).toBe(401)
    expect((await one.getPayment(next.value, body.id)).status).toBe(200)
    expect((await one.revoke(next)).status).toBe(204)
    expect((await one.getPayment(next.value, body.id)).status).toBe(401)
  })

  test.each([
    ['outgoing payments', outgoingAccess],
    ['the outgoing payments of others', { ...outgoingAccess, actions: ['read-all'] }],
    ['lists of the payments of others', { ...incomingAccess, actions: ['list-all'] }],
  ] as const)('cannot request %s, with or without an interaction', async (_, access) => {
    const { one } = setUp()
    const interactive = await one.request([access], withFinish)
    expect([interactive.status, interactive.body.error]).toEqual([
      400,
      {
        code: 'invalid_client',
        description: 'Interactive grants need a client wallet address',
      },
    ])
    expect((await one.request([access])).body.error.code).toBe('invalid_request')
  })

  test('may offer an interaction that is not needed', async () => {
    const { one } = setUp()
    const { body } = await one.request([incomingAccess], withFinish)
    expect(body).toHaveProperty('access_token')
    expect(body).not.toHaveProperty('interact')
  })
})
