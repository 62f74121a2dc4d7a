import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { demoAccounts } from '../../examples/wallet/accounts.js'
import { foreignReceivers } from '../../examples/wallet/foreign-receivers.js'
import { guardedClient } from '../../examples/wallet/guarded-client.js'
import { memorySecrets } from '../../examples/wallet/secrets.js'
import { type GuardedFetch, guardedFetch } from '../../src/index.js'

const operator = async () =>
  (await demoAccounts('https://wallet.example', memorySecrets())).operator
let client: Awaited<ReturnType<typeof guardedClient>>
/** What the client sends its requests by: it takes long to make, and each test has a fetch of its own. */
let through: GuardedFetch
beforeAll(async () => {
  client = await guardedClient(await operator(), (...request) => through(...request))
}, 60_000)

/** Another wallet, as bad as a test wants it. */
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

const receiverUrl = () => `${origin}/op/incoming-payments/1`

/** A wallet that looks at other wallets: on this machine for development, or on the internet. */
function lookingFrom(baseUrl: string, { deadlineMs = 60_000, timeoutMs = 20_000 } = {}) {
  const fetch = guardedFetch({ allowLoopback: baseUrl.startsWith('http:'), timeoutMs })
  through = fetch
  return foreignReceivers({ baseUrl, fetch, openClient: async () => client, deadlineMs })
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

/** A wallet that behaves, except where it does not. */
function behave({ view, grant, payment }: Behaviour): RequestListener {
  return (request, response) => {
    const part =
      request.url === '/auth'
        ? (grant ?? json(token()))
        : request.headers.authorization === undefined
          ? (view ?? json({ authServer: `${origin}/auth`, receivedAmount: amount('0') }))
          : (payment ?? json(paymentAt(receiverUrl())))
    part(request, response)
  }
}

describe('a receiver in another wallet', () => {
  test('is read with an unnamed read-all grant, which the wallet signs and asks for once', async () => {
    answer = behave({})
    const elsewhere = development()
    const ilp = {
      ilpAddress: 'test.other.1',
      sharedSecret: 'MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI',
    }
    const receiver = { asset: { assetCode: 'USD', assetScale: 2 }, ilp }
    expect(await elsewhere(receiverUrl())).toEqual({ ok: true, receiver })
    expect(await elsewhere(receiverUrl())).toEqual({ ok: true, receiver })
    const seen = requests.map(({ method, url, headers }) => [
      method,
      url,
      headers.authorization,
      headers['signature-input']?.includes('keyid="operator-1"'),
    ])
    const [view, grant, payment] = [
      ['GET', '/op/incoming-payments/1', undefined, undefined],
      ['POST', '/auth', undefined, true],
      ['GET', '/op/incoming-payments/1', 'GNAP a-token', true],
    ]
    expect(seen).toEqual([view, grant, payment, view, payment])
  })

  test('says what it still wants, in which asset, and until when', async () => {
    const expiresAt = '2100-01-01T00:00:00Z'
    const asked = { incomingAmount: amount('2500', 'EUR'), receivedAmount: amount('400', 'EUR') }
    answer = behave({ payment: json(paymentAt(receiverUrl(), { ...asked, expiresAt })) })
    expect(await development()(receiverUrl())).toMatchObject({
      ok: true,
      receiver: { wanted: amount('2100', 'EUR'), expiresAt: Date.parse(expiresAt) },
    })
  })

  test('is read with a new token when the one that was kept is refused', async () => {
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

  test('is asked for nothing that the client would send by itself', async () => {
    const sent = vi.spyOn(globalThis, 'fetch')
    answer = behave({})
    expect(await development()(receiverUrl())).toMatchObject({ ok: true })
    expect(sent).not.toHaveBeenCalled()
  })
})

describe('a receiver that is none', () => {
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
    ['is a page', { view: html }],
    ['is not there', { view: json({}, 404) }],
    ['leads elsewhere', { view: moved }],
    ['has no authorization server', { view: json({}) }],
    ['has an authorization server that is no URL', { view: json({ authServer: 'here' }) }],
    ['is null', { view: json(null) }],
    ['has 10 MB', { view: huge }],
    ['gives no grant', { grant: json({ error: { code: 'request_denied' } }, 403) }],
    [
      'wants consent',
      {
        grant: json({
          interact: { redirect: 'https://a.example', finish: 'x' },
          continue: token().continue,
        }),
      },
    ],
    ['sends the request for a grant elsewhere', { grant: moved }],
    ['shows no payment', { payment: json({}, 404) }],
    ['sends the token elsewhere', { payment: moved }],
    [
      'shows another payment',
      { payment: broken({ id: 'https://other.example/incoming-payments/2' }) },
    ],
    ['is complete', { payment: broken({ completed: true, methods: [] }) }],
    ['has what it asked for', { payment: broken({ incomingAmount: amount('0') }) }],
    ['has expired', { payment: broken({ expiresAt: '2020-01-01T00:00:00Z' }) }],
    ['cannot be paid over Interledger', { payment: broken({ methods: [] }) }],
    ['mixes assets', { payment: broken({ incomingAmount: amount('1', 'EUR') }) }],
    ['has no amounts', { payment: broken({ receivedAmount: undefined }) }],
    [
      'has a scale that is none',
      { payment: broken({ receivedAmount: { ...amount('0'), assetScale: -1 } }) },
    ],
  ])('because it %s is refused for good', async (_, behaviour) => {
    answer = behave(behaviour)
    const found = await development()(receiverUrl())
    expect(found).toMatchObject({ ok: false })
    expect(found).not.toHaveProperty('temporary')
    expect(requests.some(({ url }) => url === '/elsewhere')).toBe(false)
  })

  const silent: RequestListener = () => undefined
  const later: RequestListener = (_, response) =>
    response.writeHead(503, { 'retry-after': '100000' }).end('{}')

  test.each<[string, Behaviour]>([
    ['a grant of 10 MB', { grant: huge }],
    ['a payment of 10 MB', { payment: huge }],
    ['a page for a payment', { payment: html }],
  ])('because it answers with %s is refused', async (_, behaviour) => {
    answer = behave(behaviour)
    expect(await development()(receiverUrl())).toMatchObject({ ok: false })
  })

  test.each<[string, Behaviour]>([
    ['its view', { view: silent }],
    ['its grant', { grant: silent }],
    ['its payment', { payment: silent }],
    ['its view for now', { view: later }],
    ['its payment for now', { payment: later }],
  ])('because it does not answer with %s is refused in time', async (_, behaviour) => {
    answer = behave(behaviour)
    expect(await development({ timeoutMs: 200 })(receiverUrl())).toMatchObject({
      ok: false,
      temporary: true,
    })
  })

  test('is refused at its deadline, however many requests that takes', async () => {
    answer = behave({ payment: silent })
    expect(await development({ deadlineMs: 1 })(receiverUrl())).toMatchObject({
      ok: false,
      reason: 'the other wallet did not answer within 1 ms',
    })
  })

  test('is not waited for by more than 32 at a time', async () => {
    answer = silent
    const elsewhere = development({ timeoutMs: 2_000 })
    const reads = Array.from({ length: 40 }, () => elsewhere(receiverUrl()).catch(String))
    const outcomes = await Promise.all(reads)
    expect(outcomes.filter((outcome) => typeof outcome === 'string')).toHaveLength(8)
    answer = behave({})
    expect(await elsewhere(receiverUrl())).toMatchObject({ ok: true })
  })
})

describe('a wallet on the internet', () => {
  test.each([
    'https://127.0.0.1/op/incoming-payments/1',
    'https://localhost/op/incoming-payments/1',
    'https://[::1]/op/incoming-payments/1',
    'https://169.254.169.254/latest/meta-data',
    'https://10.0.0.1/op/incoming-payments/1',
    'https://192.168.1.1/op/incoming-payments/1',
    'https://[::ffff:10.0.0.1]/op/incoming-payments/1',
    'http://wallet.other.example/op/incoming-payments/1',
    'https://other.example:22/op/incoming-payments/1',
    'https://wallet.example/op/..%2fincoming-payments/1',
    'https://wallet.example/alice',
    'ftp://other.example/1',
    'not a URL',
  ])('does not look for a receiver at %s', async (url) => {
    const found = await lookingFrom('https://wallet.example')(url)
    expect(found).toMatchObject({ ok: false })
    expect(found).not.toHaveProperty('temporary')
  })

  test('does not reach this machine, and nothing is asked of it', async () => {
    answer = behave({})
    const elsewhere = lookingFrom('https://wallet.example')
    for (const url of [receiverUrl(), receiverUrl().replace('http:', 'https:')]) {
      expect(await elsewhere(url)).toMatchObject({ ok: false })
    }
    expect(requests).toEqual([])
  })
})

describe('a wallet in development', () => {
  test.each(['https://169.254.169.254/latest/meta-data', 'http://10.0.0.1/op/incoming-payments/1'])(
    'does not look for a receiver at %s',
    async (url) => {
      const found = await development()(url)
      expect(found).toMatchObject({ ok: false })
      expect(found).not.toHaveProperty('temporary')
    },
  )

  test('does not ask an authorization server for a grant at a private address', async () => {
    answer = behave({ view: json({ authServer: 'http://10.0.0.1/auth' }) })
    const found = await development()(receiverUrl())
    expect(found).toMatchObject({ ok: false })
    expect(requests).toHaveLength(1)
  })
})
