import { describe, expect, test } from 'vitest'
import type { HttpRequest } from '../../src/entry-adapter.js'
import { createWalletAddressServer, type RateLimit } from '../../src/index.js'
import { type TestKey, testKey } from '../support/keys.js'
import {
  alice,
  bob,
  createWorld,
  grantEndpoint,
  incomingAccess,
  issuedGrant,
  origin,
  resourceServer,
  type TestClient,
} from '../support/world.js'

/** Creates a world that records every counted call, and applies the given rate limit. */
function setUp(rateLimit: RateLimit = () => undefined) {
  const calls: Parameters<RateLimit>[0][] = []
  const counting = (call: Parameters<RateLimit>[0]) => {
    calls.push(call)
    return rateLimit(call)
  }
  const world = createWorld({ auth: { rateLimit: counting }, resources: { rateLimit: counting } })
  return { world, calls, client: world.client() }
}

const tooMany = () => ({ retryAfterMs: 2_500 })
const options = { method: 'OPTIONS', url: '/auth', headers: [], body: new Uint8Array() }

/** Signs a grant request with two keys. */
function signedTwice(client: TestClient, one: TestKey, two: TestKey): HttpRequest {
  const access_token = { access: [incomingAccess] }
  const body = JSON.stringify({ client: client.client, access_token })
  const asked = { method: 'POST', url: grantEndpoint, body }
  const request = client.sign({ ...asked, key: one })
  const another = client.sign({ ...asked, key: two, label: 'sig2' })
  const added = another.headers.filter(([name]) => name.startsWith('Signature'))
  return { ...request, headers: [...request.headers, ...added] }
}

describe('the rate limit', () => {
  test('counts each signed call once, with its client, key and operation', async () => {
    const { world, calls, client } = setUp()
    const { token, body, interactRef } = await issuedGrant(world, client)
    await client.continue(body.continue, interactRef)
    const { body: rotated } = await client.rotate(token)
    await client.revoke(rotated.access_token)
    const { body: granted } = await client.request([incomingAccess])
    const { value } = granted.access_token
    const { body: payment } = await client.createPayment(value, { walletAddress: bob })
    await client.getPayment(value, payment.id)
    await client.cancel(granted.continue)
    expect(calls.map(({ operation, method }) => `${method} ${operation}`)).toEqual([
      'POST requestGrant',
      'POST continueGrant',
      'POST continueGrant',
      'POST rotateToken',
      'DELETE revokeToken',
      'POST requestGrant',
      'POST createIncomingPayment',
      'GET getIncomingPayment',
      'DELETE cancelGrant',
    ])
    const buckets = calls.map(({ operation, bucket }) => [operation, bucket])
    expect(buckets.filter(([, bucket]) => bucket !== 'requests')).toEqual([
      ['revokeToken', 'revocations'],
      ['cancelGrant', 'revocations'],
    ])
    const known = { client: 'https://shop.example', keyid: 'shop-key', at: world.clock.now() }
    for (const call of calls) expect(call).toEqual(expect.objectContaining(known))
  })

  test('identifies a client without a wallet address by the thumbprint of its key', async () => {
    const { world, calls } = setUp()
    const client = world.client('directed', { byKey: true })
    await client.request([incomingAccess])
    const urn = `urn:ietf:params:oauth:jwk-thumbprint:sha-256:${client.key.thumbprint}`
    expect(calls).toMatchObject([{ client: urn, keyid: 'directed-key' }])
  })

  test('does not count calls that another key signed, so that one client cannot use up the limit of another', async () => {
    const { world, calls, client } = setUp()
    const { body } = await client.request([incomingAccess])
    calls.length = 0
    const { key } = world.client('mallory')
    const as = { key: { ...key, kid: client.key.kid } }
    const { value } = body.access_token
    expect((await client.request([incomingAccess], undefined, as)).status).toBe(401)
    expect((await client.rotate(body.access_token, as)).status).toBe(401)
    expect((await client.createPayment(value, { walletAddress: bob }, as)).status).toBe(401)
    expect((await client.request([incomingAccess], undefined, { created: 0 })).status).toBe(401)
    expect(calls).toEqual([])
  })

  test('counts the verified key, whatever the order of the signatures', async () => {
    const { world, calls, client } = setUp()
    const request = signedTwice(client, testKey('mallory'), client.key)
    expect((await world.handle(request)).status).toBe(200)
    expect(calls).toMatchObject([{ client: 'https://shop.example', keyid: 'shop-key' }])
  })

  test('counts unsigned operations without a client, even if the request is signed', async () => {
    const { world, calls, client } = setUp()
    await world.handle(options)
    await world.handle(client.sign({ method: 'OPTIONS', url: grantEndpoint }))
    const at = world.clock.now()
    const call = { operation: 'discover', method: 'OPTIONS', bucket: 'requests', at }
    expect(calls).toEqual([call, call])
  })
})

test.each([undefined, null, false, 0, ''])(
  'a call is served if the rate limit returns %j',
  async (nothing) => {
    const { world, client } = setUp((() => nothing) as never)
    expect((await client.request([incomingAccess])).status).toBe(200)
    expect(world.errors).toEqual([])
  },
)

describe('a call over the rate limit', () => {
  test('has no effect, and can be sent again unchanged', async () => {
    let limit: ReturnType<RateLimit> = tooMany()
    const { world, client } = setUp(() => limit)
    const access_token = { access: [incomingAccess] }
    const request = client.sign({
      method: 'POST',
      url: grantEndpoint,
      body: JSON.stringify({ client: client.client, access_token }),
    })
    expect((await world.handle(request)).status).toBe(429)
    const known = { client: 'https://shop.example', keyid: 'shop-key' }
    expect(world.refusals).toMatchObject([{ refusal: 'rate_limited', ...known }])
    limit = undefined
    expect((await world.handle(request)).status).toBe(200)
    // The request is also a replay now, but the rate limit is checked first.
    limit = tooMany()
    expect((await world.handle(request)).status).toBe(429)
    limit = undefined
    expect((await world.handle(request)).status).toBe(409)
  })

  test('counts once if two keys of one client signed it', async () => {
    const { world, calls, client } = setUp(tooMany)
    const second = testKey('second')
    world.clientKeys.publish('https://shop.example', client.key, second)
    expect((await world.handle(signedTwice(client, client.key, second))).status).toBe(429)
    expect(calls).toHaveLength(1)
  })

  test.each([
    [0, '1'],
    [1, '1'],
    [1_000, '1'],
    [1_001, '2'],
    [-5_000, '1'],
    [Number.NaN, '1'],
    [Number.POSITIVE_INFINITY, '1'],
    [undefined as never, '1'],
  ])(
    'receives a retry-after in whole seconds, at least one, for %d ms',
    async (retryAfterMs, expected) => {
      const { client } = setUp(async () => ({ retryAfterMs }))
      const { status, headers } = await client.request([incomingAccess])
      expect([status, headers['retry-after']]).toEqual([429, expected])
    },
  )
})

describe('a rate limit that fails', () => {
  test.each<[string, RateLimit]>([
    [
      'synchronously',
      () => {
        throw new Error('no counter')
      },
    ],
    ['asynchronously', () => Promise.reject(new Error('no counter'))],
  ])('%s refuses no call, and the error is reported', async (_, rateLimit) => {
    const { world, client } = setUp(rateLimit)
    const { token } = await issuedGrant(world, client)
    expect((await client.rotate(token)).status).toBe(200)
    expect((await world.handle(options)).status).toBe(200)
    expect(world.errors).toHaveLength(4)
    for (const error of world.errors) expect(error).toBeInstanceOf(Error)
  })

  test('refuses no call even if onError of the host fails too', async () => {
    const fail = () => {
      throw new Error('everything fails')
    }
    const world = createWorld({ auth: { rateLimit: fail, onError: fail } })
    expect((await world.client().request([incomingAccess])).status).toBe(200)
  })
})

describe('the wallet address server', () => {
  function wallets(rateLimit: RateLimit) {
    const find = async (url: string) =>
      url === alice ? { url, assetCode: 'USD', assetScale: 2 } : undefined
    const walletAddresses = { find }
    const urls = { baseUrl: origin, grantEndpoint, resourceServerUrl: resourceServer }
    const options = { ...urls, walletAddresses }
    return createWalletAddressServer({ ...options, rateLimit })
  }

  test('counts reads, which need no signature', async () => {
    const calls: Parameters<RateLimit>[0][] = []
    const { handle } = wallets((call) => void calls.push(call))
    for (const url of ['/alice', '/alice/jwks.json']) {
      expect((await handle({ ...options, method: 'GET', url })).status).toBe(200)
    }
    expect(calls.map(({ operation }) => operation)).toEqual([
      'getWalletAddress',
      'getWalletAddressKeys',
    ])
  })
})
