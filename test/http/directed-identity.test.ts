import { describe, expect, test } from 'vitest'
import { jwkOf, testKey } from '../support/keys.js'
import {
  bob,
  createWorld,
  grantEndpoint,
  incomingAccess,
  outgoingAccess,
  type TestClient,
  withFinish,
} from '../support/world.js'

const payee = { walletAddress: bob }

async function granted(client: TestClient, more: object = {}) {
  return (await client.request([{ ...incomingAccess, ...more }])).body
}

async function tokenOf(client: TestClient, more: object = {}): Promise<string> {
  return (await granted(client, more)).access_token.value
}

/** Two client instances that differ only in their keys, and one with a wallet address. */
function setUp() {
  const world = createWorld()
  return {
    world,
    one: world.client('one', { byKey: true }),
    two: world.client('two', { byKey: true }),
    named: world.client('named'),
  }
}

describe('a client instance that is identified by its key', () => {
  test('creates a payment and reads it, and so does every later grant of that key', async () => {
    const { one } = setUp()
    const token = await tokenOf(one)
    const created = await one.createPayment(token, payee)
    expect(created.status).toBe(201)
    for (const value of [token, await tokenOf(one)]) {
      const read = await one.getPayment(value, created.body.id)
      expect(read.body).toEqual(created.body)
    }
  })

  test('is the same under any `kid`', async () => {
    const { world, one } = setUp()
    const { body } = await one.createPayment(await tokenOf(one), payee)
    const renamed = { ...one.key, kid: 'another name' }
    const as = { key: renamed }
    const request = { client: { jwk: jwkOf(renamed) }, access_token: { access: [incomingAccess] } }
    const again = await one.post(grantEndpoint, request, undefined, as)
    const value: string = again.body.access_token.value
    expect((await one.getPayment(value, body.id, as)).status).toBe(200)
    expect(world.clientKeys.asked).toEqual([])
  })

  test('sees no records of another key or of a wallet address', async () => {
    const { one, two, named } = setUp()
    const clients = [one, two, named]
    const payments = await Promise.all(
      clients.map(
        async (client) => (await client.createPayment(await tokenOf(client), payee)).body,
      ),
    )
    for (const [index, client] of clients.entries()) {
      const token = await tokenOf(client)
      const seen = await Promise.all(payments.map(({ id }) => client.getPayment(token, id)))
      expect(seen.map(({ status }) => status)).toEqual(
        payments.map((_, other) => (other === index ? 200 : 404)),
      )
    }
  })

  test('sees no records of a wallet address that publishes the same key', async () => {
    const { world, one } = setUp()
    world.clientKeys.publish('https://one.example', testKey('one'))
    const { body } = await one.createPayment(await tokenOf(one), payee)
    const published = { client: 'https://one.example', access_token: { access: [incomingAccess] } }
    const { access_token } = (await one.post(grantEndpoint, published)).body
    expect((await one.getPayment(access_token.value, body.id)).status).toBe(404)
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
