import { createHash } from 'node:crypto'
import {
  createAuthorizationServer,
  createSignatureVerifier,
  type Handler,
  memoryStore,
} from 'open-payments-server'
import { hostCall } from 'open-payments-test-support/host-call'
import { invalidInput } from 'open-payments-test-support/invalid-input'
import { headerOf, withHeader } from 'open-payments-test-support/sign'
import { describe, expect, test } from 'vitest'
import {
  clientKeysOf,
  manualClock,
  seededRandom,
  startOfTests,
  type TestClientOptions,
  testClient,
} from '../src/index.js'

const grantEndpoint = 'https://wallet.example/auth'
const walletAddress = 'https://shop.example'
const access = [{ type: 'incoming-payment', actions: ['create', 'read'] }] as const

function server(...clients: readonly ReturnType<typeof testClient>[]) {
  const clock = manualClock()
  const auth = createAuthorizationServer({
    grantEndpoint,
    consentUrl: 'https://wallet.example/consent',
    store: memoryStore(),
    clientKeys: clientKeysOf(...clients),
    clock,
    random: seededRandom(),
  })
  return { auth, clock }
}

describe('a test client', () => {
  test('with a wallet address gets a token without consent and cannot repeat its request', async () => {
    const clock = manualClock()
    const client = testClient({ seed: 'shop', kid: 'shop-key', walletAddress, clock })
    const { auth } = server(client)
    const body = { client: client.client, access_token: { access } }
    const request = { method: 'POST', url: grantEndpoint, body, nonce: 'once' }
    const granted = await client.send(auth.handle, request)
    expect(granted).toMatchObject({ status: 200, body: { access_token: { access } } })
    expect((await client.send(auth.handle, request)).status).toBeGreaterThanOrEqual(400)
  })

  test('without a wallet address is identified by the key in its request', async () => {
    const clock = manualClock()
    const client = testClient({ seed: 'app', kid: 'app-key', clock })
    expect(client.client).toEqual({ jwk: client.publicJwk })
    const { auth } = server()
    const body = { client: client.client, access_token: { access } }
    const request = { method: 'POST', url: grantEndpoint, body }
    const answer = await client.send(auth.handle, request)
    expect(answer).toMatchObject({ status: 200, body: { access_token: { access } } })
  })

  test('uses its token and its continuation, which the server refuses to another client', async () => {
    const clock = manualClock()
    const client = testClient({ seed: 'shop', kid: 'shop-key', walletAddress, clock })
    const thief = testClient({ seed: 'thief', kid: 'shop-key', walletAddress, clock })
    const { auth } = server(client)
    const body = { client: client.client, access_token: { access } }
    const granted = await client.send(auth.handle, { method: 'POST', url: grantEndpoint, body })
    const { access_token: issued } = granted.body as {
      access_token: { manage: string; value: string }
    }
    const rotation = { method: 'POST', url: issued.manage, token: issued.value }
    expect((await thief.send(auth.handle, rotation)).status).toBe(401)
    const rotated = await client.send(auth.handle, rotation)
    expect(rotated.status).toBe(200)
    const { access_token: next } = rotated.body as {
      access_token: { manage: string; value: string }
    }
    expect(next.value).not.toBe(issued.value)
    const revocation = { method: 'DELETE', url: next.manage, token: next.value }
    expect(await client.send(auth.handle, revocation)).toMatchObject({
      status: 204,
      body: undefined,
    })
  })

  test('is refused after its key was withdrawn', async () => {
    const clock = manualClock()
    const client = testClient({ seed: 'shop', kid: 'shop-key', walletAddress, clock })
    const { auth } = server()
    const body = { client: client.client, access_token: { access } }
    const answer = await client.send(auth.handle, { method: 'POST', url: grantEndpoint, body })
    expect(answer.status).toBeGreaterThanOrEqual(400)
  })

  test('has the same key for the same seed, and publishes it as a JWK', () => {
    const one = testClient({ seed: 'shop', kid: 'one' })
    const other = testClient({ seed: 'shop', kid: 'other' })
    expect(one.publicJwk).toEqual({
      kid: 'one',
      kty: 'OKP',
      crv: 'Ed25519',
      alg: 'EdDSA',
      use: 'sig',
      x: other.publicJwk.x,
    })
    expect(one.jwks).toEqual({ keys: [one.publicJwk] })
    expect(testClient({ seed: 'bank', kid: 'one' }).publicJwk.x).not.toBe(one.publicJwk.x)
    const canonical = `{"crv":"Ed25519","kty":"OKP","x":"${one.publicJwk.x}"}`
    const thumbprint = createHash('sha256').update(canonical).digest('base64url')
    expect(one.thumbprint).toBe(thumbprint)
  })

  test('dates signatures by the request, else by its clock, else by the system clock', () => {
    const request = { method: 'GET', url: 'https://wallet.example/op/incoming-payments/1' }
    const createdOf = (signed: ReturnType<ReturnType<typeof testClient>['sign']>) =>
      Number(/;created=(\d+)/.exec(headerOf(signed, 'signature-input') ?? '')?.[1])
    const clock = manualClock()
    const client = testClient({ seed: 'shop', kid: 'shop-key', clock })
    expect(createdOf(client.sign(request))).toBe(startOfTests / 1000)
    clock.advance(1_999)
    expect(createdOf(client.sign(request))).toBe(startOfTests / 1000 + 1)
    expect(createdOf(client.sign({ ...request, created: 17 }))).toBe(17)
    const before = Math.floor(Date.now() / 1000)
    const created = createdOf(testClient({ seed: 'shop', kid: 'shop-key' }).sign(request))
    expect(created).toBeGreaterThanOrEqual(before)
    expect(created).toBeLessThanOrEqual(Date.now() / 1000)
  })

  test('sends text and bytes unchanged, other values as JSON, and additional headers', async () => {
    const client = testClient({ seed: 'shop', kid: 'shop-key', clock: manualClock() })
    const bodies: string[] = []
    const echo: Handler = async ({ body, headers, method, url }) => {
      bodies.push(Buffer.from(body).toString())
      expect([method, url]).toEqual(['POST', '/auth?a=b'])
      expect(headers).toContainEqual(['Accept', 'application/json'])
      return { status: 200, headers: { 'content-type': 'text/plain' }, body: '{"read":true}' }
    }
    const given = [' {"a": 1}\n', Buffer.from('bytes'), { a: [1, null] }, ['b']]
    for (const body of given) {
      const headers = [['Accept', 'application/json']] as const
      const request = { method: 'POST', url: `${grantEndpoint}?a=b`, body, headers }
      const answer = await client.send(echo, request)
      expect(answer.body).toEqual({ read: true })
      expect(answer.headers).toEqual({ 'content-type': 'text/plain' })
    }
    expect(bodies).toEqual([' {"a": 1}\n', 'bytes', '{"a":[1,null]}', '["b"]'])
  })

  test.each([
    ['kid', { kid: undefined }],
    ['kid', { kid: '' }],
    ['kid', { kid: 1 }],
    ['seed', { seed: undefined }],
    ['seed', { seed: Buffer.alloc(32) }],
    ['walletAddress', { walletAddress: new URL(walletAddress) }],
    ['walletAddress', { walletAddress: '' }],
    ['clock', { clock: () => 0 }],
  ])('is not created with an invalid %s: %j', (name, invalid) => {
    const options = { seed: 'shop', kid: 'shop-key', ...invalid } as TestClientOptions
    expect(() => testClient(options)).toThrow(invalidInput(name))
  })

  test.each(['method', 'url'])('does not sign a request without %s', (name) => {
    const request = { method: 'GET', url: grantEndpoint, [name]: undefined }
    const client = testClient({ seed: 'shop', kid: 'shop-key' })
    expect(() => client.sign(request)).toThrow(invalidInput(`request.${name}`))
  })

  test('covers the idempotency key and no other additional header', () => {
    const client = testClient({ seed: 'shop', kid: 'shop-key', walletAddress })
    const headers = [
      ['Idempotency-Key', '1'],
      ['Accept', 'text/html'],
    ] as const
    const signed = client.sign({ method: 'GET', url: grantEndpoint, headers })
    const input = headerOf(signed, 'signature-input')
    expect(input).toContain('("@method" "@target-uri" "idempotency-key")')
  })

  test('sends requests through a proxy that removes a prefix', async () => {
    const client = testClient({ seed: 'shop', kid: 'shop-key', walletAddress })
    const auth = createAuthorizationServer({
      grantEndpoint: 'https://wallet.example/wallet/auth',
      strippedPrefix: '/wallet',
      consentUrl: 'https://wallet.example/consent',
      store: memoryStore(),
      clientKeys: clientKeysOf(client),
    })
    const body = { client: client.client, access_token: { access } }
    const request = { method: 'POST', url: 'https://wallet.example/wallet/auth', body }
    expect((await client.send(auth.handle, request)).status).toBe(404)
    const proxied = { ...request, strippedPrefix: '/wallet' }
    expect((await client.send(auth.handle, proxied)).status).toBe(200)
  })

  test.each([
    ['/wallet', '/wallet/auth?x', '/auth?x'],
    ['/wallet', '/wallet', '/'],
    ['/wallet', '/wallets/auth', '/wallets/auth'],
  ])('removes the prefix %s from %s', (strippedPrefix, path, left) => {
    const client = testClient({ seed: 'shop', kid: 'shop-key' })
    const url = `https://wallet.example${path}`
    expect(client.sign({ method: 'GET', url, strippedPrefix }).url).toBe(left)
  })

  test('makes signatures that verify, and that fail after any change', async () => {
    const clock = manualClock()
    const client = testClient({ seed: 'shop', kid: 'shop-key', clock })
    const verify = createSignatureVerifier({ url: 'https://wallet.example/own', clock })
    const signed = client.sign({
      method: 'POST',
      url: 'https://wallet.example/own/route?a=1',
      body: { a: 1 },
      token: 'token',
      nonce: 'nonce-1',
    })
    const verdict = { ok: true, keyid: 'shop-key', nonce: 'nonce-1' }
    expect(await verify(signed, client.publicJwk)).toEqual(verdict)
    const changed = [
      { ...signed, method: 'PUT' },
      { ...signed, url: '/own/route?a=2' },
      { ...signed, body: Buffer.from('{"a":2}') },
      withHeader(signed, 'Authorization', 'GNAP another'),
    ]
    for (const each of changed) {
      expect(await verify(each, client.publicJwk)).toMatchObject({ ok: false })
    }
    const stranger = testClient({ seed: 'stranger', kid: 'shop-key' })
    expect(await verify(signed, stranger.publicJwk)).toMatchObject({ ok: false })
    expect(headerOf(signed, 'content-digest')).toMatch(/^sha-512=:/)
    expect(headerOf(signed, 'content-length')).toBe('7')
  })
})

describe('the keys of test clients', () => {
  test('are found by wallet address and kid together', async () => {
    const shop = testClient({ seed: 'shop', kid: 'one', walletAddress })
    const next = testClient({ seed: 'next', kid: 'two', walletAddress })
    const app = testClient({ seed: 'app', kid: 'one' })
    const keys = clientKeysOf(shop, next, app)
    const find = (address: string, kid: string) =>
      keys.find({ walletAddress: address, kid, mayBeNew: true }, hostCall)
    expect(await find(walletAddress, 'one')).toEqual({ kid: 'one', x: shop.publicJwk.x })
    expect(await find(walletAddress, 'two')).toEqual({ kid: 'two', x: next.publicJwk.x })
    expect(await find(walletAddress, 'three')).toBeUndefined()
    expect(await find('https://other.example', 'one')).toBeUndefined()
  })
})
