import { describe, expect, test } from 'vitest'
import type { HttpRequest } from '../../src/entry-adapter.js'
import {
  createWalletAddressServer,
  type RefusalReport,
  type WalletAddress,
  type WalletAddressServerOptions,
} from '../../src/index.js'
import { manualClock } from '../support/clock.js'
import { jwkOf, testKey } from '../support/keys.js'
import { answerOf, createWorld } from '../support/world.js'

const origin = 'https://wallet.example'
const grantEndpoint = `${origin}/auth`
const resourceServerUrl = `${origin}/op`
const key = testKey('alice')

const alice: WalletAddress = {
  url: `${origin}/alice`,
  publicName: 'Alice 👩🏽 <b>',
  assetCode: 'USD',
  assetScale: 2,
  keys: [key, testKey('second')],
}
const bob: WalletAddress = { url: `${origin}/people/bob`, assetCode: 'JPY', assetScale: 0 }

function setUp(
  accounts: readonly WalletAddress[] = [alice, bob],
  options: Partial<WalletAddressServerOptions> = {},
) {
  const asked: string[] = []
  const reports: RefusalReport[] = []
  const errors: unknown[] = []
  const server = createWalletAddressServer({
    baseUrl: origin,
    grantEndpoint,
    resourceServerUrl,
    walletAddresses: {
      async find(url) {
        asked.push(url)
        return accounts.find((account) => account.url === url)
      },
    },
    clock: manualClock(),
    onRefusal: (report) => reports.push(report),
    onError: (error) => errors.push(error),
    ...options,
  })
  const send = async (method: string, url: string, more: Partial<HttpRequest> = {}) =>
    answerOf(await server.handle({ method, url, headers: [], body: new Uint8Array(), ...more }))
  return { server, send, get: (url: string) => send('GET', url), asked, reports, errors }
}

describe('the names that accounts can have', () => {
  const atOrigin = { grantEndpoint: `${origin}/auth/`, resourceServerUrl: `${origin}/` }

  test.each(['/alice', '/people/bob', '/quotes2', '/auth2', '/alice/quotes', '/jwks.json2', ''])(
    'include %j',
    (path) => {
      const { server } = setUp([], atOrigin)
      expect(server.canServe(origin + path, ['/consent', ''])).toBe(true)
    },
  )

  test.each([
    ['the path of a route', '/quotes'],
    ['it in other letters', '/Quotes'],
    ['a path below it', '/quotes/alice'],
    ['the path of another collection', '/incoming-payments'],
    ['the path of the grant endpoint', '/auth'],
    ['a path below the grant endpoint', '/auth/alice'],
    ['the path of a key set', '/alice/jwks.json'],
    ['the path of a route of the host', '/consent'],
    ['a path below it', '/Consent/alice'],
    ['a slash at its end', '/alice/'],
    ['an unnecessary escape', '/%61lice'],
    ['a query', '/alice?x'],
  ])('do not include one with %s: %s', (_, path) => {
    const { server } = setUp([], atOrigin)
    expect(server.canServe(origin + path, ['/consent'])).toBe(false)
  })

  test('depend on where the other servers are', () => {
    const elsewhere = {
      grantEndpoint: 'https://auth.example',
      resourceServerUrl: 'https://op.example',
    }
    const { server: alone } = setUp([], elsewhere)
    expect(alone.canServe(`${origin}/quotes`)).toBe(true)
    expect(alone.canServe('https://op.example/alice')).toBe(false)
    const { server: mounted } = setUp([], { resourceServerUrl })
    expect(mounted.canServe(`${origin}/quotes`)).toBe(true)
    expect(mounted.canServe(`${origin}/op`)).toBe(false)
    const { server: below } = setUp([], { ...atOrigin, baseUrl: `${origin}/people` })
    expect(below.canServe(`${origin}/people/quotes`)).toBe(true)
    expect(below.canServe(`${origin}/alice`)).toBe(false)
  })
})

describe('a wallet address', () => {
  test('returns its name, its asset and its servers', async () => {
    const { status, headers, body } = await setUp().get('/alice')
    expect(status).toBe(200)
    expect(headers).toEqual({
      'content-type': 'application/json',
      'cache-control': 'no-cache',
      etag: expect.stringMatching(/^"[\w-]{43}"$/),
      'access-control-allow-origin': '*',
    })
    expect(body).toEqual({
      id: 'https://wallet.example/alice',
      publicName: 'Alice 👩🏽 <b>',
      assetCode: 'USD',
      assetScale: 2,
      authServer: 'https://wallet.example/auth',
      resourceServer: 'https://wallet.example/op',
    })
  })

  test('may have no name and any depth below the base URL', async () => {
    const { body } = await setUp().get('/people/bob')
    expect(body).toEqual({
      id: 'https://wallet.example/people/bob',
      assetCode: 'JPY',
      assetScale: 0,
      authServer: grantEndpoint,
      resourceServer: resourceServerUrl,
    })
  })

  test('has the public properties of its account beside the standard members', async () => {
    const publicProperties = { kyc: { level: 2 }, tags: ['shop', null], constructor: true }
    const { body } = await setUp([{ ...bob, publicProperties }]).get('/people/bob')
    expect(body).toEqual({
      id: bob.url,
      assetCode: 'JPY',
      assetScale: 0,
      authServer: grantEndpoint,
      resourceServer: resourceServerUrl,
      ...publicProperties,
    })
  })

  test('publishes the servers exactly as configured', async () => {
    const servers = {
      grantEndpoint: 'https://Auth.example:443/gnap/',
      resourceServerUrl: 'https://op.example/',
    }
    const { body } = await setUp([alice], servers).get('/alice')
    expect(body.authServer).toBe(servers.grantEndpoint)
    expect(body.resourceServer).toBe(servers.resourceServerUrl)
  })

  test('may be opened when it is first asked for', async () => {
    const find = async (url: string) => ({ ...alice, url })
    const { get } = setUp([], { walletAddresses: { find } })
    expect((await get('/new')).body).toMatchObject({ id: `${origin}/new`, assetCode: 'USD' })
  })

  test('reveals nothing else of its account', async () => {
    const more = { owner: 'alice', balance: '100', active: false, iban: 'XX00' }
    const { body } = await setUp([{ ...alice, ...more } as WalletAddress]).get('/alice')
    expect(Object.keys(body).toSorted()).toEqual([
      'assetCode',
      'assetScale',
      'authServer',
      'id',
      'publicName',
      'resourceServer',
    ])
  })

  test.each(['/alice', '/alice/', '/alice?x=1', '/alice/?'])('is found at %s', async (url) => {
    const { get, asked } = setUp()
    expect((await get(url)).body.id).toBe(alice.url)
    expect(asked).toEqual([alice.url])
  })

  test('at the root of its host is found there', async () => {
    const root: WalletAddress = { ...bob, url: origin, keys: [key] }
    const { get } = setUp([root])
    expect((await get('/')).body.id).toBe(origin)
    expect((await get('/jwks.json')).body.keys).toEqual([jwkOf(key)])
  })

  test('responds to HEAD as to GET', async () => {
    const { send, get } = setUp()
    const head = await send('HEAD', '/alice')
    const got = await get('/alice')
    expect(head.status).toBe(200)
    expect(head.headers).toEqual(got.headers)
    expect((await send('HEAD', '/nobody')).status).toBe(404)
  })

  test('needs no signature, and ignores any', async () => {
    const headers = [
      ['Signature', 'garbage'],
      ['Authorization', 'Bearer x'],
    ] as const
    expect((await setUp().send('GET', '/alice', { headers })).status).toBe(200)
  })
})

describe('the keys of a wallet address', () => {
  test('are public Ed25519 keys for signatures', async () => {
    const { status, headers, body } = await setUp().get('/alice/jwks.json')
    expect(status).toBe(200)
    expect(headers).toEqual({
      'content-type': 'application/json',
      'cache-control': 'no-cache',
      etag: expect.stringMatching(/^"[\w-]{43}"$/),
      'access-control-allow-origin': '*',
    })
    expect(body).toEqual({ keys: [jwkOf(key), jwkOf(testKey('second'))] })
  })

  test('never include a private part, even if the host provides it', async () => {
    const d = key.privateKey.export({ format: 'jwk' }).d ?? ''
    const careless = { ...jwkOf(key), d } as unknown as { kid: string; x: string }
    const { body } = await setUp([{ ...alice, keys: [careless] }]).get('/alice/jwks.json')
    expect(body).toEqual({ keys: [jwkOf(key)] })
    expect(JSON.stringify(body)).not.toContain(d)
  })

  test('are an empty set if the account has none', async () => {
    expect((await setUp().get('/people/bob/jwks.json')).body).toEqual({ keys: [] })
    expect((await setUp([{ ...bob, keys: [] }]).get('/people/bob/jwks.json')).body).toEqual({
      keys: [],
    })
  })

  test('are not found for an unknown account', async () => {
    const { status, body } = await setUp().get('/nobody/jwks.json')
    expect(status).toBe(404)
    expect(body.error.code).toBe('not_found')
  })
})

describe('a cache', () => {
  const versioned = (version: string) => ({ headers: [['If-None-Match', version]] as const })

  test.each(['/alice', '/alice/jwks.json'])('asks whether %s still holds', async (url) => {
    const { send, get } = setUp()
    const { headers } = await get(url)
    const etag = headers['etag'] ?? ''
    for (const version of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
      const { server } = setUp()
      const request = { method: 'GET', url, body: new Uint8Array(), ...versioned(version) }
      expect(await server.handle(request)).toEqual({
        status: 304,
        headers: { 'cache-control': 'no-cache', etag, 'access-control-allow-origin': '*' },
      })
    }
    for (const version of ['', '"other"', etag.slice(1, -1), `${etag}x`]) {
      expect((await send('GET', url, versioned(version))).status).toBe(200)
    }
  })

  test('learns of a new key at once', async () => {
    const before = (await setUp().get('/alice/jwks.json')).headers['etag'] ?? ''
    const more = [...(alice.keys ?? []), testKey('third')]
    const { send } = setUp([{ ...alice, keys: more }])
    const { status, body } = await send('GET', '/alice/jwks.json', versioned(before))
    expect([status, body.keys.length]).toEqual([200, 3])
  })
})

describe('an unknown wallet address', () => {
  test.each([
    '/',
    '/nobody',
    '/Alice',
    '/alic',
    '/alice/x',
    '/alice/jwks.json//',
    '/alice/jwks.jso',
    '/alice/jwks.json/jwks.json',
    '/%61lice',
    '/alice%00',
    '/alice%20',
    '/people/alice',
    '/x/../alice',
    '/%2e/alice',
    '//alice',
    '/alice//',
    '/alice%2fjwks.json',
    '/people%2fbob',
    '/people\\bob',
    `/${'a'.repeat(4_000)}`,
  ])('is not found: %s', async (url) => {
    const { get, errors } = setUp()
    const { status, headers, body } = await get(url)
    expect(status).toBe(404)
    expect(body.error).toEqual({ code: 'not_found', description: expect.any(String) })
    expect(headers['cache-control']).toBe('no-store')
    expect(errors).toEqual([])
  })

  test.each(['https://evil.example/alice', 'http://wallet.example/alice', '*', ''])(
    'with an invalid target is refused: %j',
    async (url) => {
      expect((await setUp().get(url)).status).toBe(400)
    },
  )

  test('is never looked up in a spelling that is not canonical', async () => {
    const { get, asked } = setUp()
    for (const url of ['/%61lice', '/alice//', '/x/../alice', '/alice?a', '/alice/', '/a b']) {
      await get(url)
    }
    expect(asked).toEqual([alice.url, alice.url])
  })
})

describe('a page of another origin', () => {
  test.each(['/alice', '/alice/jwks.json'])('may read %s', async (url) => {
    const { headers } = await setUp().get(url)
    expect(headers['access-control-allow-origin']).toBe('*')
    expect(headers).not.toHaveProperty('access-control-allow-credentials')
  })

  test.each([
    ['an unknown wallet address', 'GET', '/nobody', 404],
    ['a method that is not allowed', 'POST', '/alice', 405],
  ])('can read the status of a refusal for %s', async (_, method, url, expected) => {
    const { status, headers } = await setUp().send(method, url)
    expect(status).toBe(expected)
    expect(headers['access-control-allow-origin']).toBe('*')
  })

  test.each(['/alice', '/alice/jwks.json', '/alice/'])(
    'receives the preflight response for %s',
    async (url) => {
      const { send, asked } = setUp()
      const { status, headers, body } = await send('OPTIONS', url, {
        headers: [
          ['Origin', 'https://publisher.example'],
          ['Access-Control-Request-Method', 'GET'],
          ['Access-Control-Request-Headers', 'content-type'],
        ],
      })
      expect([status, body]).toEqual([204, undefined])
      expect(headers).toEqual({
        'access-control-allow-origin': '*',
        'access-control-allow-methods': 'GET, HEAD',
        'access-control-allow-headers': '*',
        'access-control-max-age': '86400',
        'cache-control': 'no-store',
        allow: 'GET, HEAD, OPTIONS',
      })
      expect(asked).toEqual([alice.url])
    },
  )

  test('learns that there is no wallet address from its request, not from the preflight', async () => {
    const { server, send } = setUp()
    expect((await send('OPTIONS', '/nobody')).status).toBe(204)
    const request = { method: 'OPTIONS', headers: [], body: new Uint8Array() }
    const unmatched = async (url: string) => (await server.handle({ ...request, url })).unmatched
    expect([await unmatched('/nobody'), await unmatched('/alice')]).toEqual([true, undefined])
  })

  test('cannot read responses of the other servers', async () => {
    const { handle } = createWorld()
    for (const url of ['/auth', '/op/incoming-payments', '/op/incoming-payments/x']) {
      const { headers } = await handle({ method: 'GET', url, headers: [], body: new Uint8Array() })
      expect(headers).not.toHaveProperty('access-control-allow-origin')
    }
  })
})

describe('a method that is not allowed for the keys', () => {
  test('is refused with each allowed method listed once', async () => {
    const { status, headers } = await setUp().send('POST', '/alice/jwks.json')
    expect(status).toBe(405)
    expect(headers['allow']).toBe('GET, OPTIONS, HEAD')
  })
})

describe('a server below a path', () => {
  test('finds wallet addresses only there', async () => {
    const account = { ...alice, url: `${origin}/w/alice` }
    const { get } = setUp([account, alice], { baseUrl: `${origin}/w/` })
    expect((await get('/w/alice')).body.id).toBe(account.url)
    expect((await get('/w/alice/jwks.json')).status).toBe(200)
    expect((await get('/alice')).status).toBe(404)
  })

  test('that a proxy strips finds them by their complete URL', async () => {
    const account = { ...alice, url: `${origin}/w/alice` }
    const { get, reports } = setUp([account], { baseUrl: `${origin}/w`, strippedPrefix: '/w' })
    expect((await get('/alice')).body.id).toBe(account.url)
    expect((await get('/w/alice')).status).toBe(404)
    expect(reports.at(-1)?.reason).toBe(
      'the wallet address does not exist; the path arrives with /w, which strippedPrefix adds again: leave strippedPrefix out',
    )
  })
})

describe('the handlers by operation', () => {
  test('serve one operation each, for hosts with their own routing', async () => {
    const { server } = setUp()
    const { getWalletAddress, getWalletAddressKeys } = server.handlers
    const request = { method: 'GET', headers: [], body: new Uint8Array() }
    const ask = async (handler: typeof getWalletAddress, url: string) =>
      answerOf(await handler({ ...request, url }))
    expect((await ask(getWalletAddress, '/alice')).body.id).toBe(alice.url)
    expect((await ask(getWalletAddressKeys, '/alice/jwks.json')).body.keys).toHaveLength(2)
    expect((await ask(getWalletAddressKeys, '/alice')).status).toBe(404)
    expect((await ask(getWalletAddress, '/alice/jwks.json')).status).toBe(404)
  })

  test('each have a route in the table', () => {
    const { server } = setUp()
    const operations = server.routes.map(({ operation }) => operation)
    expect(operations.toSorted()).toEqual(Object.keys(server.handlers).toSorted())
  })
})
