import { once } from 'node:events'
import { createServer } from 'node:http'
import { afterEach, describe, expect, test } from 'vitest'
import { toExpress } from '../../adapters/express.js'
import type { HttpRequest } from '../../src/entry-adapter.js'
import {
  createAuthorizationServer,
  createResourceServer,
  type Handler,
  ilpPaymentMethods,
  memoryStore,
  type RefusalReport,
  type RemoteGrantsOptions,
  remoteGrants,
  type Store,
} from '../../src/index.js'
import { manualClock } from '../support/clock.js'
import { listening, stopped } from '../support/hosts.js'
import { bankId, bankKey, introspection, privateJwkOf } from '../support/introspection.js'
import { publishedKeys, testKey } from '../support/keys.js'
import { exchange, headerValues, requestBytes } from '../support/raw-http.js'
import { type SignOptions, signedRequest } from '../support/sign.js'

/** Returns a memory store that collects the kinds of its records. */
function watchedStore(): Store & { readonly kinds: Set<string> } {
  const store = memoryStore()
  const kinds = new Set<string>()
  return {
    ...store,
    kinds,
    commit(commit) {
      for (const { kind } of commit.changes) kinds.add(kind)
      return store.commit(commit)
    },
  }
}

/** Starts a server whose port is known before it has a handler. */
async function startServer() {
  let handle: Handler | undefined
  const server = createServer(
    toExpress(async (request) => {
      if (handle === undefined) throw new Error('not ready')
      return handle(request)
    }),
  )
  const port = await listening(server)
  return {
    port,
    origin: `http://localhost:${port}`,
    serve(given: Handler) {
      handle = given
    },
    stop: () => stopped(server),
    async restart() {
      server.listen(port, 'localhost')
      await once(server, 'listening')
    },
  }
}

const running: { stop(): Promise<void> }[] = []

afterEach(async () => {
  for (const server of running.splice(0)) await server.stop()
})

/** Creates the two servers of a bank, with separate stores, connected only by HTTP. */
async function setUp(options: Partial<RemoteGrantsOptions> = {}) {
  const clock = manualClock()
  const [atAuth, atBank] = [await startServer(), await startServer()]
  running.push(atAuth, atBank)
  const grantEndpoint = `${atAuth.origin}/auth`
  const baseUrl = `${atBank.origin}/op`
  const bob = `${atBank.origin}/bob`
  const stores = { auth: watchedStore(), bank: watchedStore() }
  const refusals: RefusalReport[] = []
  const clientKeys = publishedKeys()

  const auth = createAuthorizationServer({
    grantEndpoint,
    consentUrl: `${atAuth.origin}/consent`,
    store: stores.auth,
    clientKeys,
    clock,
    recordsEvents: true,
    resourceServers: [{ id: bankId, keys: [bankKey], accessTypes: ['incoming-payment'] }],
  })
  const account = { url: bob, assetCode: 'USD', assetScale: 2 }
  const resources = createResourceServer({
    baseUrl,
    store: stores.bank,
    clock,
    recordsEvents: true,
    grants: remoteGrants({
      grantEndpoint,
      ...introspection,
      allowLoopback: true,
      clock,
      ...options,
    }),
    walletAddresses: { find: async (url) => (url === bob ? account : undefined) },
    paymentMethods: ilpPaymentMethods({ addressPrefix: 'test.bank', secret: Buffer.alloc(32, 7) }),
    onRefusal: (report) => void refusals.push(report),
  })
  atAuth.serve(auth.handle)
  atBank.serve(resources.handle)
  return {
    clock,
    atAuth,
    auth,
    resources,
    stores,
    refusals,
    clientKeys,
    grantEndpoint,
    baseUrl,
    bob,
  }
}

type Bank = Awaited<ReturnType<typeof setUp>>

/** Returns a client that reaches both servers over HTTP. */
function clientOf({ clock, clientKeys, grantEndpoint, baseUrl, bob }: Bank, name = 'shop') {
  const key = testKey(name)
  const walletAddress = `https://${name}.example`
  clientKeys.publish(walletAddress, key)
  let nonces = 0

  async function send(method: string, url: string, more: Partial<SignOptions> & { json?: object }) {
    const { json, ...rest } = more
    const request = signedRequest({
      method,
      url,
      key,
      created: Math.floor(clock.now() / 1000),
      nonce: `${name} ${nonces++}`,
      ...(json && { body: JSON.stringify(json) }),
      ...rest,
    })
    const response = await exchange(Number(new URL(url).port), bytesOf(request, url))
    const text = response.body.toString()
    return {
      status: response.status,
      header: (wanted: string) => headerValues(response, wanted)[0],
      body: text === '' ? undefined : JSON.parse(text),
    }
  }

  const access = [{ type: 'incoming-payment', actions: ['create', 'read'], identifier: bob }]
  return {
    async grant() {
      const json = { client: walletAddress, access_token: { access } }
      const { body } = await send('POST', grantEndpoint, { json })
      return body.access_token as { value: string; manage: string }
    },
    create: (token: string) =>
      send('POST', `${baseUrl}/incoming-payments`, { token, json: { walletAddress: bob } }),
    read: (token: string, url: string) => send('GET', url, { token }),
    rotate: (token: { value: string; manage: string }) =>
      send('POST', token.manage, { token: token.value }),
    revoke: (token: { value: string; manage: string }) =>
      send('DELETE', token.manage, { token: token.value }),
  }
}

function bytesOf({ method, url, headers, body }: HttpRequest, absolute: string): Buffer {
  const { host } = new URL(absolute)
  return requestBytes(method, url, [['Host', host], ['Connection', 'close'], ...headers], body)
}

describe('a bank whose two servers are connected only by HTTP', () => {
  test('allows a client to create and read a payment with a token of the other server', async () => {
    const bank = await setUp()
    const shop = clientOf(bank)
    const { value } = await shop.grant()
    const created = await shop.create(value)
    expect([created.status, created.body.walletAddress]).toEqual([201, bank.bob])
    const read = await shop.read(value, created.body.id)
    expect([read.status, read.body.id]).toEqual([200, created.body.id])

    expect([...bank.stores.auth.kinds].sort()).toEqual(['event', 'grant', 'replay', 'server'])
    expect([...bank.stores.bank.kinds].sort()).toEqual([
      'event',
      'incoming-payment',
      'replay',
      'server',
    ])
    const id = bank.resources.incomingPayments.idOf(created.body.id) ?? ''
    const payment = await bank.resources.incomingPayments.get(id)
    expect(payment?.client).toBe('https://shop.example')
  })

  test('returns 503 while the other server is down, creates nothing, and recovers afterwards', async () => {
    const bank = await setUp()
    const shop = clientOf(bank)
    const { value } = await shop.grant()
    const { body: payment } = await shop.create(value)
    await bank.atAuth.stop()
    bank.stores.bank.kinds.clear()
    for (const answer of [await shop.create(value), await shop.read(value, payment.id)]) {
      expect([answer.status, answer.body.error.code]).toEqual([503, 'introspection_unavailable'])
      expect(answer.header('retry-after')).toBe('1')
      expect(answer.header('www-authenticate')).toBeUndefined()
    }
    expect([...bank.stores.bank.kinds]).toEqual([])
    expect(bank.refusals.at(-1)?.reason).toMatch(/^the server cannot be reached/)
    expect(JSON.stringify(bank.refusals)).not.toContain(value.slice(-20))
    await bank.atAuth.restart()
    expect((await shop.read(value, payment.id)).status).toBe(200)
  })

  test('returns 503 instead of 401 if the authorization server does not know its key', async () => {
    const mallory = testKey('mallory')
    const key = { kid: bankKey.kid, privateKey: privateJwkOf(mallory) }
    const bank = await setUp({ key })
    const shop = clientOf(bank)
    expect((await shop.create((await shop.grant()).value)).status).toBe(503)
    expect(bank.refusals.at(-1)?.reason).toBe('the response has status 400')
  })

  test('sends fewer requests with a cache, and accepts a revoked token until the cache entry expires', async () => {
    const bank = await setUp({ cache: { ttlMs: 2_000 } })
    const shop = clientOf(bank)
    const token = await shop.grant()
    const { body: payment } = await shop.create(token.value)
    await shop.revoke(token)
    await bank.atAuth.stop()
    bank.clock.advance(1_999)
    expect((await shop.read(token.value, payment.id)).status).toBe(200)
    await bank.atAuth.restart()
    bank.clock.advance(1)
    expect((await shop.read(token.value, payment.id)).status).toBe(401)
  })
})
