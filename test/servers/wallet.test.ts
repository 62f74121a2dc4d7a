import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { spendingRoutes } from '../../src/http/routes.js'
import {
  createWallet,
  HostAnswerError,
  ilpPaymentMethods,
  memoryStore,
  type WalletOptions,
} from '../../src/index.js'
import { manualClock } from '../support/clock.js'
import { invalidInput } from '../support/invalid-input.js'
import { publishedKeys, testKey } from '../support/keys.js'
import { loadPublicRecord } from '../support/public-record.js'
import { seededRandom } from '../support/random.js'
import { runs } from '../support/runs.js'
import { signedRequest } from '../support/sign.js'
import { priceList } from '../support/spending.js'
import { alice, answerOf, origin } from '../support/world.js'

const options = {
  baseUrl: origin,
  consentUrl: `${origin}/consent`,
  store: memoryStore(),
  walletAddresses: {
    find: async (url) => (url === alice ? { url, assetCode: 'USD', assetScale: 2 } : undefined),
  },
  paymentMethods: ilpPaymentMethods({ addressPrefix: 'test.wallet', secret: Buffer.alloc(32, 7) }),
} satisfies WalletOptions

function setUp(more: Partial<WalletOptions> = {}) {
  const clock = manualClock()
  const clientKeys = publishedKeys()
  const key = testKey('shop')
  const client = 'https://shop.example'
  clientKeys.publish(client, key)
  const wallet = createWallet({
    ...options,
    store: memoryStore(),
    clock,
    random: seededRandom(),
    clientKeys,
    pricing: priceList,
    ...more,
  })
  let nonces = 0
  async function send(method: string, url: string, body?: object, token?: string) {
    const request = signedRequest({
      key,
      created: Math.floor(clock.now() / 1000),
      nonce: `nonce-${nonces++}`,
      method,
      url,
      ...(body && { body: JSON.stringify(body) }),
      ...(token && { token }),
    })
    const { strippedPrefix = '' } = more
    return answerOf(
      await wallet.handle({ ...request, url: request.url.slice(strippedPrefix.length) }),
    )
  }
  return { wallet, client, key, clientKeys, send, clock }
}

describe('a wallet', () => {
  test.each([
    ['at its origin', {}, `${origin}/auth`, origin],
    [
      'below paths of their own',
      { grantEndpoint: `${origin}/gnap`, resourceServerUrl: `${origin}/op` },
      `${origin}/gnap`,
      `${origin}/op`,
    ],
    [
      'below a prefix that a proxy strips',
      { baseUrl: `${origin}/op`, strippedPrefix: '/op' },
      `${origin}/op/auth`,
      `${origin}/op`,
    ],
  ])('serves grants, payments and wallet addresses %s', async (_, more, authServer, resources) => {
    const account = `${'baseUrl' in more ? more.baseUrl : origin}/alice`
    const { client, send } = setUp({
      ...more,
      walletAddresses: {
        find: async (url) =>
          url === account ? { url, assetCode: 'USD', assetScale: 2 } : undefined,
      },
    })
    const found = await send('GET', account)
    expect(found).toMatchObject({
      status: 200,
      body: { id: account, authServer, resourceServer: resources },
    })
    const access = [{ type: 'incoming-payment', actions: ['create', 'read'] }]
    const granted = await send('POST', found.body.authServer, {
      client,
      access_token: { access },
    })
    expect(granted.status).toBe(200)
    const token = granted.body.access_token.value
    const created = await send(
      'POST',
      `${found.body.resourceServer}/incoming-payments`,
      { walletAddress: account },
      token,
    )
    expect(created.status).toBe(201)
    expect(created.body.id.startsWith(`${resources}/incoming-payments/`)).toBe(true)
    expect((await send('GET', created.body.id, undefined, token)).status).toBe(200)
  })

  test('answers for every other path as a wallet address server', async () => {
    const { send } = setUp()
    for (const path of ['/nobody', '/incoming-paymentsx', '/authors', '/']) {
      const { status, headers } = await send('GET', origin + path)
      expect([path, status, headers['access-control-allow-origin']]).toEqual([path, 404, '*'])
    }
    expect((await send('GET', alice)).status).toBe(200)
    expect((await send('DELETE', `${origin}/incoming-payments`)).status).toBe(405)
    expect((await send('GET', `${origin}/auth/nothing`)).headers).not.toHaveProperty(
      'access-control-allow-origin',
    )
  })

  test('without prices serves no quotes, so that a wallet address may have their path', async () => {
    const account = `${origin}/quotes`
    const { wallet } = setUp()
    const priced = await wallet.handle({
      method: 'GET',
      url: '/quotes',
      headers: [],
      body: new Uint8Array(),
    })
    expect(priced.status).toBe(405)
    const unpriced = createWallet({
      ...options,
      walletAddresses: { find: async (url) => ({ url, assetCode: 'USD', assetScale: 2 }) },
    })
    const answer = await unpriced.handle({
      method: 'GET',
      url: '/quotes',
      headers: [],
      body: new Uint8Array(),
    })
    expect(answerOf(answer)).toMatchObject({ status: 200, body: { id: account } })
  })

  const layouts = fc.constantFrom<Partial<WalletOptions>>(
    {},
    { grantEndpoint: `${origin}/gnap`, resourceServerUrl: `${origin}/op` },
    { baseUrl: `${origin}/bank` },
    { baseUrl: `${origin}/bank`, strippedPrefix: '/bank', grantEndpoint: `${origin}/bank/gnap` },
  )
  const segments = fc.constantFrom(
    ...['alice', 'bank', 'auth', 'authors', 'gnap', 'op', 'continue', 'introspect', 'jwks.json'],
    ...['quotes', 'Quotes', 'quotes2', 'incoming-payments', 'outgoing-payment-grant', 'complete'],
  )

  test('serves every account that it says it can serve', async () => {
    const met = new Set<boolean>()
    const paths = fc.array(segments, { minLength: 1, maxLength: 3 })
    await fc.assert(
      fc.asyncProperty(layouts, paths, async (layout, path) => {
        const { wallet, send } = setUp({
          ...layout,
          walletAddresses: { find: async (url) => ({ url, assetCode: 'USD', assetScale: 2 }) },
        })
        const account = [layout.baseUrl ?? origin, ...path].join('/')
        const can = wallet.addresses.canServe(account)
        met.add(can)
        const { status, body } = await send('GET', account)
        if (!can) return
        expect([status, body.id]).toEqual([200, account])
        expect((await send('GET', `${account}/jwks.json`)).body).toEqual({ keys: [] })
      }),
      { numRuns: runs(500) },
    )
    expect([...met].sort()).toEqual([false, true])
  })

  test('gives each server its part of the policy', async () => {
    const { send, client } = setUp({
      policy: {
        accessTokens: { lifetimeMs: 30_000 },
        incomingPayments: { expiryDefaultMs: 60_000 },
        mayRequest: ({ access }) => ({ ok: access.length === 1 }),
        mayReceive: ({ metadata }) =>
          metadata === undefined ? { ok: true } : { ok: false, refusal: 'payment_not_allowed' },
      },
    })
    const item = { type: 'incoming-payment', actions: ['create'] }
    const refused = await send('POST', `${origin}/auth`, {
      client,
      access_token: { access: [item, { type: 'quote', actions: ['create'] }] },
    })
    expect(refused.status).toBe(403)
    const granted = await send('POST', `${origin}/auth`, {
      client,
      access_token: { access: [item] },
    })
    expect(granted.body.access_token.expires_in).toBe(30)
    const token = granted.body.access_token.value
    const body = { walletAddress: alice }
    const created = await send('POST', `${origin}/incoming-payments`, body, token)
    const { createdAt, expiresAt } = created.body
    expect(Date.parse(expiresAt) - Date.parse(createdAt)).toBe(60_000)
    const unwanted = { ...body, metadata: {} }
    const denied = await send('POST', `${origin}/incoming-payments`, unwanted, token)
    expect(denied.status).toBe(403)
  })

  test('has the services of its servers on another store', async () => {
    const { wallet } = setUp()
    const other = memoryStore()
    const inside = wallet.within(other)
    const created = await inside.incomingPayments.create({
      walletAddress: alice,
      idempotencyKey: 'invoice 1',
    })
    if (!created.ok) throw new Error(created.reason)
    const { paymentId } = created.payment
    expect(await loadPublicRecord(other, 'incoming-payment', paymentId, origin)).toBeDefined()
    expect(await wallet.resources.incomingPayments.get(created.payment.paymentId)).toBeUndefined()
    expect(Object.keys(inside).sort()).toEqual([
      'grants',
      'incomingPayments',
      'interactions',
      'outgoingPayments',
      'quotes',
    ])
  })

  test('reads the keys of its own accounts from the host at each request', async () => {
    const account = { url: alice, assetCode: 'USD', assetScale: 2, keys: [testKey('shop')] }
    const world: { found: (() => object) | undefined } = { found: () => account }
    const errors: unknown[] = []
    const { send, key, clientKeys } = setUp({
      onError: (error) => void errors.push(error),
      walletAddresses: {
        find: async (url) => (url === alice ? (world.found?.() as never) : undefined),
      },
    })
    clientKeys.publish(`${origin}/nobody`, key)
    const access = [{ type: 'incoming-payment', actions: ['create'] }]
    const ask = (client: string) =>
      send('POST', `${origin}/auth`, { client, access_token: { access } })
    expect((await ask(`${origin}/nobody`)).body.error.code).toBe('invalid_client')
    let token = (await ask(alice)).body.access_token
    const attempts = {
      ask: () => ask(alice),
      pay: () => send('POST', `${origin}/incoming-payments`, { walletAddress: alice }, token.value),
      rotate: () => send('POST', token.manage, undefined, token.value),
    }
    async function statuses() {
      const ask = (await attempts.ask()).status
      const pay = (await attempts.pay()).status
      const rotated = await attempts.rotate()
      if (rotated.status === 200) token = rotated.body.access_token
      return [ask, pay, rotated.status]
    }
    expect(await statuses()).toEqual([200, 201, 200])
    const keys =
      (...xs: string[]) =>
      () => ({ ...account, keys: xs.map((x) => ({ ...key, x })) })
    const { x: other } = testKey('other')
    const smallOrder = Buffer.from([1, ...Array<number>(31).fill(0)]).toString('base64url')
    const others = Array.from({ length: 100 }, (_, i) => ({ kid: `installation-${i}`, x: other }))
    const changes: [string, () => object, number[]][] = [
      ['is one of many', () => ({ ...account, keys: [...others, key] }), [200, 201, 200]],
      ['is removed', keys(), [400, 401, 400]],
      ['has its kid twice', keys(key.x, other), [500, 500, 500]],
      ['is of small order', keys(smallOrder), [500, 500, 500]],
      ['is replaced', keys(other), [401, 401, 400]],
      [
        'cannot be read',
        () => {
          throw new Error('no connection')
        },
        [503, 503, 503],
      ],
    ]
    for (const [what, found, expected] of changes) {
      world.found = found
      expect([what, await statuses()]).toEqual([what, expected])
      const wrong = expected.filter((status) => status === 500)
      expect(errors.splice(0)).toEqual(wrong.map(() => expect.any(HostAnswerError)))
      world.found = () => account
      expect([what, await statuses()]).toEqual([what, [200, 201, 200]])
    }
    expect(clientKeys.asked).toEqual([])
  })

  test.each([
    ['grantEndpoint', { grantEndpoint: 'https://other.example/auth' }],
    ['resourceServerUrl', { resourceServerUrl: 'https://other.example' }],
    ['grantEndpoint', { grantEndpoint: origin }],
    ['grantEndpoint', { baseUrl: `${origin}/bank`, grantEndpoint: `${origin}/bankers` }],
    ['consentUrl', { consentUrl: 'consent' }],
    ['clientKeys', { clientKeys: {} as never }],
    ['walletAddresses', { walletAddresses: {} as never }],
    ['policy.quote', { policy: { quote: {} } as never }],
    ['introspect', { introspect: () => undefined } as never],
  ])('is not created with a wrong %s', (option, more) => {
    expect(() => createWallet({ ...options, ...more })).toThrow(invalidInput(option))
  })

  test.each([
    ['at its origin', {}, ''],
    ['below a path of its own', { resourceServerUrl: `${origin}/op` }, '/op'],
    ['below a prefix', { baseUrl: `${origin}/bank`, strippedPrefix: '/bank' }, ''],
  ])('%s, names the absent option to the host for what it does not serve', async (_, more, at) => {
    const reasonOf = async (method: string, path: string, given: Partial<WalletOptions>) => {
      const reasons: string[] = []
      const onRefusal = ({ reason }: { reason: string }) => void reasons.push(reason)
      const wallet = createWallet({ ...options, ...more, ...given, onRefusal })
      const url = at + path.replace('{id}', 'of-a-payment')
      const request = { method, url, headers: [], body: new Uint8Array() }
      const { status, body } = answerOf(await wallet.handle(request))
      expect(JSON.stringify(body ?? '')).not.toContain('option')
      return { status, reason: reasons.join() }
    }
    for (const { method, path, operation } of spendingRoutes) {
      const without = await reasonOf(method, path, {})
      expect(without.reason).toMatch(new RegExp(`; ${operation} needs the option pricing$`))
      expect([404, 405]).toContain(without.status)
      const priced = await reasonOf(method, path, { pricing: priceList })
      expect([priced.status, priced.reason]).toEqual([401, expect.not.stringContaining('option')])
    }
    expect((await reasonOf('POST', '/quote', {})).reason).not.toContain('option')
  })

  test('names the absent option for an introspection', async () => {
    const reasons: string[] = []
    const wallet = createWallet({
      ...options,
      onRefusal: ({ reason }) => void reasons.push(reason),
    })
    const request = { method: 'POST', url: '/auth/introspect', headers: [], body: new Uint8Array() }
    expect((await wallet.handle(request)).status).toBe(404)
    expect(reasons).toEqual([
      expect.stringMatching(
        /; introspectToken needs the option resourceServers of createAuthorizationServer$/,
      ),
    ])
  })

  test('names the options of both servers for a policy that it does not know', () => {
    const policy = { mayRecieve: () => ({ ok: true }) } as never
    expect(() => createWallet({ ...options, policy })).toThrow(
      /policy\.mayRecieve is not known: the options are .*\bmayRequest\b.*\bmayReceive\b/,
    )
  })
})
