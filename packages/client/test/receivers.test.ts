import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createClient } from 'open-payments-client'
import { guardedFetch } from 'open-payments-server'
import { testKey } from 'open-payments-test-support/keys'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'

const operator = {
  walletAddress: 'https://wallet.example/operator',
  keyId: 'operator-1',
  privateKey: testKey('operator').privateKey,
}
/** Another wallet with the behavior of the current test. */
let server: Server
let origin: string
let answer: RequestListener
let requests: IncomingMessage[]
beforeEach(async () => {
  requests = []
  server = createServer((request, response) => {
    requests.push(request)
    answer(request, response)
  })
  server.listen(0, 'localhost')
  await once(server, 'listening')
  origin = `http://localhost:${(server.address() as AddressInfo).port}`
})
afterEach(() => {
  vi.restoreAllMocks()
  server.closeAllConnections()
  server.close()
})

const receiverUrl = () => `${origin}/incoming-payments/1`

/** A wallet that reads other wallets: on this machine for development, or on the internet. */
function lookingFrom(baseUrl: string, { limitMs = 60_000, timeoutMs = 60_000 } = {}) {
  const fetch = guardedFetch({ allowLoopback: baseUrl.startsWith('http:'), timeoutMs })
  const incomingPayments = { idOf: () => undefined, get: async () => undefined }
  const client = createClient({ ...operator, fetch, limitMs, own: { baseUrl, incomingPayments } })
  return (url: string) => client.receiverOf(url)
}

const development = (limits?: Parameters<typeof lookingFrom>[1]) =>
  lookingFrom('http://localhost:1', limits)

function json(value: unknown, status = 200): RequestListener {
  return (_, response) => {
    response.writeHead(status, { 'content-type': 'application/json' })
    response.end(JSON.stringify(value))
  }
}

interface Behaviour {
  readonly view?: RequestListener
  readonly grant?: RequestListener
  readonly payment?: RequestListener
  readonly account?: RequestListener
}

const amount = (value: string, assetCode = 'USD') => ({ value, assetCode, assetScale: 2 })

const token = (value = 'a-token') => ({
  access_token: {
    value,
    manage: `${origin}/token/1`,
    access: [{ type: 'incoming-payment', actions: ['read-all'] }],
    expires_in: 600,
  },
  continue: { access_token: { value: 'c' }, uri: `${origin}/continue/1` },
})

const paymentAt = (id: string, more: object = {}) => ({
  id,
  walletAddress: `${origin}/bob`,
  completed: false,
  receivedAmount: amount('0'),
  createdAt: '2026-11-22T12:00:00Z',
  methods: [
    {
      type: 'ilp',
      ilpAddress: 'test.other.1',
      sharedSecret: 'MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI',
    },
  ],
  ...more,
})

const account = (more: object = {}) => ({
  id: `${origin}/bob`,
  resourceServer: origin,
  ...more,
})

/** A wallet that behaves correctly except where the test overrides it. */
function behave({ view, grant, payment, account: owner }: Behaviour): RequestListener {
  return (request, response) => {
    const part =
      request.url === '/auth'
        ? (grant ?? json(token()))
        : request.url === '/bob'
          ? (owner ?? json(account()))
          : request.headers.authorization === undefined
            ? (view ?? json({ authServer: `${origin}/auth`, receivedAmount: amount('0') }))
            : (payment ?? json(paymentAt(receiverUrl())))
    part(request, response)
  }
}

describe('a receiver in another wallet', () => {
  test.each<readonly [string, RequestListener]>([
    ['names another resource server', json(account({ resourceServer: 'https://bank.example' }))],
    [
      'is the document of another wallet address',
      json(account({ id: 'https://bank.example/eve' })),
    ],
    ['names no resource server', json({ id: 'x' })],
    ['is no JSON', (_, response) => response.end('<html>')],
    ['cannot be read', (_, response) => response.writeHead(500).end()],
  ])('has no wallet address if the document there %s', async (_, owner) => {
    answer = behave({ account: owner })
    const found = await development()(receiverUrl())
    expect(found).toMatchObject({ ok: true })
    expect(found).not.toHaveProperty('receiver.walletAddress')
  })

  test('is read with one unnamed read-all grant, whose request the wallet signs', async () => {
    answer = behave({})
    const elsewhere = development()
    const ilp = {
      ilpAddress: 'test.other.1',
      sharedSecret: 'MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI',
    }
    const walletAddress = `${origin}/bob`
    const asset = { assetCode: 'USD', assetScale: 2 }
    const receiver = { asset, receivedAmount: amount('0'), ilp, walletAddress }
    expect(await elsewhere(receiverUrl())).toEqual({ ok: true, receiver })
    expect(await elsewhere(receiverUrl())).toEqual({ ok: true, receiver })
    const seen = requests.map(({ method, url, headers }) => [
      method,
      url,
      headers.authorization,
      headers['signature-input']?.includes('keyid="operator-1"'),
    ])
    const [view, grant, payment, owner] = [
      ['GET', '/incoming-payments/1', undefined, undefined],
      ['POST', '/auth', undefined, true],
      ['GET', '/incoming-payments/1', 'GNAP a-token', true],
      ['GET', '/bob', undefined, undefined],
    ]
    expect(seen).toEqual([view, grant, payment, owner, view, payment, owner])
  })

  test('has a missing amount, an asset, an expiry and metadata, if that is an object', async () => {
    const expiresAt = '2100-01-01T00:00:00Z'
    const asked = { incomingAmount: amount('2500', 'EUR'), receivedAmount: amount('400', 'EUR') }
    const metadata = { description: 'Invoice 7' }
    answer = behave({ payment: json(paymentAt(receiverUrl(), { ...asked, expiresAt, metadata })) })
    expect(await development()(receiverUrl())).toMatchObject({
      ok: true,
      receiver: { wanted: amount('2100', 'EUR'), expiresAt: Date.parse(expiresAt), metadata },
    })
    answer = behave({ payment: json(paymentAt(receiverUrl(), { metadata: 'Invoice 7' })) })
    const found = await development()(receiverUrl())
    expect(found.ok && found.receiver).not.toHaveProperty('metadata')
  })

  test('is read with a new token if the cached one is refused', async () => {
    let valid = 'one'
    const grant: RequestListener = (...exchange) => json(token(valid))(...exchange)
    const payment: RequestListener = (request, response) =>
      request.headers.authorization === `GNAP ${valid}`
        ? json(paymentAt(receiverUrl()))(request, response)
        : json({ error: { code: 'invalid_token', description: 'no' } }, 401)(request, response)
    answer = behave({ grant, payment })
    const elsewhere = development()
    expect(await elsewhere(receiverUrl())).toMatchObject({ ok: true })
    valid = 'two'
    expect(await elsewhere(receiverUrl())).toMatchObject({ ok: true })
    expect(requests.filter(({ url }) => url === '/auth')).toHaveLength(2)
  })

  test('of a hostile wallet does not cost the token for another wallet of the same server', async () => {
    answer = behave({})
    const hostile = createServer((request, response) => {
      const isRead = request.headers.authorization !== undefined
      const refusal = json({ error: { code: 'invalid_token', description: 'no' } }, 401)
      const part = isRead ? refusal : json({ authServer: `${origin}/auth` })
      part(request, response)
    })
    hostile.listen(0, 'localhost')
    await once(hostile, 'listening')
    const { port } = hostile.address() as AddressInfo
    const elsewhere = development()
    const grants = () => requests.filter(({ url }) => url === '/auth').length
    for (let i = 0; i < 10; i++) {
      expect(await elsewhere(receiverUrl())).toMatchObject({ ok: true })
      const refused = await elsewhere(`http://localhost:${port}/incoming-payments/${i}`)
      expect(refused).toMatchObject({ ok: false })
    }
    // One for the honest wallet, and one for the hostile: neither sees the token of the other.
    expect(grants()).toBe(2)
    hostile.closeAllConnections()
    hostile.close()
  })

  test('gets no requests that the client would send by itself', async () => {
    const sent = vi.spyOn(globalThis, 'fetch')
    answer = behave({})
    expect(await development()(receiverUrl())).toMatchObject({ ok: true })
    expect(sent).not.toHaveBeenCalled()
  })
})

describe('an unusable receiver', () => {
  const html: RequestListener = (_, response) => response.end('<p>Hello</p>')
  const moved: RequestListener = (_, response) =>
    response.writeHead(302, { location: `${origin}/elsewhere` }).end()
  const huge: RequestListener = (_, response) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(`{"authServer":"${'x'.repeat(10_000_000)}"}`)
  }
  const broken =
    (more: object): RequestListener =>
    (...exchange) =>
      json(paymentAt(receiverUrl(), more))(...exchange)

  test.each<[string, Behaviour]>([
    ['is an HTML page', { view: html }],
    ['does not exist', { view: json({}, 404) }],
    ['redirects', { view: moved }],
    ['has no authorization server', { view: json({}) }],
    ['has an invalid authorization server URL', { view: json({ authServer: 'here' }) }],
    ['is null', { view: json(null) }],
    ['has 10 MB', { view: huge }],
    ['refuses the grant', { grant: json({ error: { code: 'request_denied' } }, 403) }],
    [
      'requires consent',
      {
        grant: json({
          interact: { redirect: 'https://a.example', finish: 'x' },
          continue: token().continue,
        }),
      },
    ],
    ['redirects the grant request', { grant: moved }],
    ['does not return the payment', { payment: json({}, 404) }],
    ['redirects the request with the token', { payment: moved }],
    [
      'returns another payment',
      { payment: broken({ id: 'https://other.example/incoming-payments/2' }) },
    ],
    ['is complete', { payment: broken({ completed: true, methods: [] }) }],
    ['has received its amount', { payment: broken({ incomingAmount: amount('0') }) }],
    ['has expired', { payment: broken({ expiresAt: '2020-01-01T00:00:00Z' }) }],
    ['cannot be paid over Interledger', { payment: broken({ methods: [] }) }],
    ['mixes assets', { payment: broken({ incomingAmount: amount('1', 'EUR') }) }],
    ['has no amounts', { payment: broken({ receivedAmount: undefined }) }],
    [
      'has an invalid scale',
      { payment: broken({ receivedAmount: { ...amount('0'), assetScale: -1 } }) },
    ],
  ])('that %s is refused permanently', async (_, behaviour) => {
    answer = behave(behaviour)
    const found = await development()(receiverUrl())
    expect(found).toMatchObject({ ok: false, isTemporary: false })
    expect(requests.some(({ url }) => url === '/elsewhere')).toBe(false)
  })

  const silent: RequestListener = () => undefined
  const later: RequestListener = (_, response) =>
    response.writeHead(503, { 'retry-after': '100000' }).end('{}')

  test.each<[string, Behaviour]>([
    ['a grant of 10 MB', { grant: huge }],
    ['a payment of 10 MB', { payment: huge }],
    ['an HTML page instead of a payment', { payment: html }],
  ])('that returns %s is refused', async (_, behaviour) => {
    answer = behave(behaviour)
    expect(await development()(receiverUrl())).toMatchObject({ ok: false })
  })

  test.each<[string, Behaviour]>([
    ['its view', { view: silent }],
    ['its grant', { grant: silent }],
    ['its payment', { payment: silent }],
    ['its view temporarily', { view: later }],
    ['its payment temporarily', { payment: later }],
  ])('that does not return %s is refused in time', async (_, behaviour) => {
    answer = behave(behaviour)
    expect(await development({ timeoutMs: 200 })(receiverUrl())).toMatchObject({
      ok: false,
      isTemporary: true,
    })
  })

  test.each<[string, Behaviour, string]>([
    ['does not exist', { view: json({}, 404) }, 'the incoming payment does not exist'],
    ['is an HTML page', { view: html }, 'its server did not respond with an incoming payment'],
    ['has expired', { payment: broken({ expiresAt: '2020-01-01T00:00:00Z' }) }, 'has expired'],
  ])('that %s is refused with a reason that the app may know', async (_, behaviour, reason) => {
    answer = behave(behaviour)
    const publicReason = expect.stringContaining(reason)
    expect(await development()(receiverUrl())).toMatchObject({ ok: false, publicReason })
  })

  test('in a private network looks to the app like one that does not respond', async () => {
    answer = silent
    const late = await development({ timeoutMs: 200 })(receiverUrl())
    const inside = await development()('https://10.0.0.1/incoming-payments/1')
    const publicReason = expect.stringContaining('cannot be reached')
    for (const found of [late, inside]) expect(found).toMatchObject({ ok: false, publicReason })
  })

  test('is refused at its deadline, regardless of the number of requests', async () => {
    answer = behave({ payment: silent })
    expect(await development({ limitMs: 1 })(receiverUrl())).toMatchObject({
      ok: false,
      refusal: 'timed_out',
    })
  })

  test('is refused while 32 other reads are running', async () => {
    answer = silent
    const elsewhere = development({ timeoutMs: 2_000 })
    const found = await Promise.all(Array.from({ length: 40 }, () => elsewhere(receiverUrl())))
    expect(found.filter((each) => !each.ok && each.refusal === 'busy')).toHaveLength(8)
    answer = behave({})
    await expect.poll(() => elsewhere(receiverUrl())).toMatchObject({ ok: true })
  })
})

describe('a wallet on the internet', () => {
  test.each([
    'https://127.0.0.1/incoming-payments/1',
    'https://localhost/incoming-payments/1',
    'https://[::1]/incoming-payments/1',
    'https://169.254.169.254/latest/meta-data',
    'https://10.0.0.1/incoming-payments/1',
    'https://192.168.1.1/incoming-payments/1',
    'https://[::ffff:10.0.0.1]/incoming-payments/1',
    'http://wallet.other.example/incoming-payments/1',
    'https://other.example:22/incoming-payments/1',
    'https://wallet.example/op/..%2fincoming-payments/1',
    'https://wallet.example/alice',
    'ftp://other.example/1',
    'not a URL',
  ])('does not request a receiver at %s', async (url) => {
    const found = await lookingFrom('https://wallet.example')(url)
    expect(found).toMatchObject({ ok: false, isTemporary: false })
  })
})

describe('a wallet in development', () => {
  test.each(['https://169.254.169.254/latest/meta-data', 'http://10.0.0.1/incoming-payments/1'])(
    'does not request a receiver at %s',
    async (url) => {
      const found = await development()(url)
      expect(found).toMatchObject({ ok: false, isTemporary: false })
    },
  )

  test('does not request a grant from an authorization server at a private address', async () => {
    answer = behave({ view: json({ authServer: 'http://10.0.0.1/auth' }) })
    const found = await development()(receiverUrl())
    expect(found).toMatchObject({ ok: false })
    expect(requests).toHaveLength(1)
  })
})
