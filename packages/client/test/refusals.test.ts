import {
  type ClientRefusal,
  type createClient,
  type Refused,
  verifyFinish,
} from 'open-payments-client'
import type { FetchedDocument } from 'open-payments-server'
import { describe, expect, test } from 'vitest'
import {
  addressOfBob,
  bob,
  clientOf,
  incomingPayment,
  json,
  now,
  origin,
  shopAddress,
  tokenFor,
  usd,
} from './support/other-wallet.js'

const receiver = `${origin}/incoming-payments/7`

const error = (status: number, code: string | undefined, description = '', more: object = {}) =>
  json(status, { error: { ...(code !== undefined && { code }), description, ...more } })

async function refusalOf(answer: FetchedDocument): Promise<Refused> {
  const { wallet, client } = clientOf()
  wallet.fault = async () => answer
  const found = await client.publicReceiverOf(receiver)
  if (found.ok) expect.fail('it was not refused')
  return found
}

// The answers of open-payments-server are those of docs/errors.md, and those of Rafiki are as it sends them.
test.each<readonly [string, FetchedDocument, ClientRefusal]>([
  ['open-payments-server: a signature', error(401, 'invalid_signature'), 'client_refused'],
  ['open-payments-server: a client', error(400, 'invalid_client'), 'client_refused'],
  [
    'open-payments-server: a token',
    error(401, 'invalid_token', 'Invalid Token'),
    'unauthenticated',
  ],
  ['open-payments-server: an access', error(403, 'insufficient_access'), 'forbidden'],
  ['open-payments-server: a limit', error(403, 'insufficient_grant'), 'forbidden'],
  ['open-payments-server: an owner', error(403, 'not_permitted_now'), 'forbidden'],
  ['open-payments-server: a resource', error(404, 'not_found'), 'not_found'],
  ['open-payments-server: an expiry', error(409, 'payment_expired'), 'conflict'],
  ['open-payments-server: a key', error(422, 'request_differs'), 'conflict'],
  ['open-payments-server: a repeat', error(409, 'signature_used'), 'signature_used'],
  ['open-payments-server: a rate', error(429, 'rate_limited'), 'rate_limited'],
  ['open-payments-server: a body', error(400, 'invalid_request'), 'request_refused'],
  ['open-payments-server: a store', error(503, 'busy'), 'unavailable'],
  ['Rafiki: a signature', error(401, '401', 'Signature validation error: no'), 'client_refused'],
  ['Rafiki: a client', error(401, 'invalid_client', 'invalid signature'), 'client_refused'],
  ['Rafiki: an inactive token', error(403, '403', 'Inactive Token'), 'unauthenticated'],
  ['Rafiki: an unknown token', error(401, '401', 'Invalid Token'), 'unauthenticated'],
  [
    'Rafiki: a token to rotate',
    error(401, 'invalid_client', 'invalid access token'),
    'unauthenticated',
  ],
  [
    'Rafiki: a resource',
    error(401, '401', 'Unauthorized', {
      details: { description: 'Failed to get wallet address from quote', id: '1' },
    }),
    'not_found',
  ],
  ['Rafiki: an access', error(403, '403', 'Insufficient Grant'), 'forbidden'],
  ['Rafiki: an amount', error(403, '403', 'unauthorized'), 'forbidden'],
  ['Rafiki: a state', error(409, '409', 'wrong state'), 'conflict'],
  ['Rafiki: a schema', error(400, undefined, 'body.x must be string'), 'request_refused'],
  ['a code alone (RFC 9635)', json(400, { error: 'invalid_client' }), 'client_refused'],
  ['a proxy', json(502, '<html>'), 'unavailable'],
  ['a redirect', json(301, '', { location: 'http://127.0.0.1/' }), 'redirected'],
  ['no JSON', { ...json(200, ''), body: new Uint8Array([60]) }, 'response_invalid'],
  ['more than 1 MiB', { ...json(200, ''), body: new Uint8Array(1_048_577) }, 'response_invalid'],
])('a refusal of %s has a name', async (_, answer, refusal) => {
  const found = await refusalOf(answer)
  expect(found.refusal).toBe(refusal)
  if (refusal !== 'response_invalid') expect(found.answer?.status).toBe(answer.status)
})

describe('a refusal', () => {
  test('has what the server said, and how long it asks to wait', async () => {
    const details = { path: 'limits.debitAmount', problem: 'is exceeded' }
    const { headers: _, ...answer } = error(403, 'insufficient_grant', 'unauthorized', { details })
    expect(await refusalOf({ ...answer, headers: { 'retry-after': '7' } })).toMatchObject({
      answer: { status: 403, code: 'insufficient_grant', description: 'unauthorized', details },
      retryAfterMs: 7_000,
    })
  })

  test('is temporary where waiting helps', async () => {
    for (const [answer, isTemporary] of [
      [error(403, 'not_permitted_now'), true],
      [error(403, 'insufficient_grant'), false],
      [error(429, 'rate_limited'), true],
      [error(503, 'busy'), true],
      [error(404, 'not_found'), false],
    ] as const) {
      expect(await refusalOf(answer)).toMatchObject({ isTemporary })
    }
  })

  test('tells others nothing about the network', async () => {
    const { client } = clientOf({ fetch: undefined })
    const found = await client.receiverOf('https://10.0.0.1/incoming-payments/7')
    expect(found).toMatchObject({ ok: false, refusal: 'url_refused' })
    if (!found.ok) expect(found.publicReason).not.toMatch(/10\.0|public|private network/)
  })
})

const servers = { authServer: `${origin}/auth`, resourceServer: origin }
const grant = { ...servers, token: 't', manage: `${origin}/token/1`, access: [] }

test('a token is sent to the servers of its grant, and to no other', async () => {
  const { wallet, client } = clientOf()
  const elsewhere = 'https://eve.example'
  expect(await client.getPayment(grant, `${elsewhere}/outgoing-payments/1`)).toMatchObject({
    refusal: 'url_refused',
  })
  wallet.fault = async (_, act) => {
    act()
    return json(200, { ...addressOfBob, resourceServer: elsewhere })
  }
  const quote = `${origin}/quotes/1`
  expect(await client.createPayment({ walletAddress: bob, grant, quote })).toMatchObject({
    refusal: 'url_refused',
  })
  expect(wallet.arrived.filter(({ url }) => url.startsWith(elsewhere))).toEqual([])
})

test('a payment that waits for its owner leads to the page of the wallet, of no other scheme', async () => {
  const { wallet, client } = clientOf()
  const pay = () => client.createPayment({ walletAddress: bob, grant, quote: `${origin}/quotes/1` })
  const page = (url: string) => async () =>
    error(403, 'confirmation_required', '', { details: { url, until: '2026-11-29T13:00:00Z' } })
  const answering = (answer: () => Promise<FetchedDocument>) => {
    wallet.fault = async ({ method }, act) => (method === 'POST' ? answer() : act())
  }
  answering(page(`${origin}/confirm/1`))
  const until = now + 3_600_000
  expect(await pay()).toMatchObject({
    refusal: 'confirmation_required',
    url: `${origin}/confirm/1`,
    until,
  })
  answering(page('javascript:alert(1)'))
  expect(await pay()).toMatchObject({ ok: false, refusal: 'forbidden' })
})

describe('a token that its server no longer knows', () => {
  test.each([
    ['open-payments-server', error(404, 'invalid_rotation')],
    ['Rafiki', error(401, 'invalid_client', 'invalid access token')],
  ])('is revoked: %s', async (_, answer) => {
    const { wallet, client } = clientOf()
    wallet.fault = async () => answer
    expect(await client.revokeToken(grant)).toEqual({ ok: true })
  })

  test('may live if its server refuses the client', async () => {
    const { wallet, client } = clientOf()
    wallet.fault = async () => error(401, 'invalid_client', 'invalid signature')
    expect(await client.revokeToken(grant)).toMatchObject({ refusal: 'client_refused' })
  })
})

test('a grant is denied by the word about its redirect, not by one about a poll', async () => {
  const { wallet, client } = clientOf()
  wallet.fault = async () => error(401, 'request_denied', 'Grant cannot be polled')
  const continuation = { uri: `${origin}/continue/1`, token: 'c-token' }
  const polled = { ...servers, continuation, continueAt: now }
  const redirected = { ...polled, finish: { clientNonce: 'c', serverNonce: 's' } }
  expect(await client.continueGrant(polled)).toMatchObject({ refusal: 'consent_denied' })
  expect(await client.continueGrant(redirected)).toMatchObject({ refusal: 'request_refused' })
  expect(await client.continueGrant(redirected, { interactRef: 'r' })).toMatchObject({
    refusal: 'consent_denied',
  })
})

describe('a quote that Rafiki calls invalid', () => {
  const quote = `${origin}/quotes/1`
  const payment = `${origin}/outgoing-payments/1`
  const found = { ...{ id: payment, quoteId: quote, walletAddress: bob, receiver }, ...amounts() }
  const invalid = error(400, '400', 'invalid quote')

  /** Pays by the quote at a server that refuses it, and has this to say about the payment with its id. */
  async function pay(read: FetchedDocument) {
    const { wallet, client } = clientOf()
    wallet.fault = async ({ method, url }, act) => {
      if (url === bob) return act()
      return method === 'POST' ? invalid : read
    }
    const paid = await client.createPayment({ walletAddress: bob, grant, quote })
    expect(wallet.to('POST', '/outgoing-payments')).toHaveLength(1)
    expect(wallet.to('GET', '/outgoing-payments/1')).toHaveLength(1)
    return paid
  }

  test('was paid before: the call gets its payment', async () => {
    expect(await pay(json(200, found))).toMatchObject({ ok: true, payment: { id: payment } })
  })

  test('was never paid: the request is refused', async () => {
    const answer = { status: 400, code: '400', description: 'invalid quote' }
    const refusal = { ok: false, refusal: 'request_refused', answer }
    const details = { description: 'Failed to get wallet address from outgoing payment', id: '1' }
    for (const read of [error(404, '404'), error(401, '401', 'Unauthorized', { details })]) {
      expect(await pay(read)).toMatchObject(refusal)
    }
  })

  test.each([
    ['cannot be read', error(503, undefined)],
    ['may not be read', error(403, '403', 'Insufficient Grant')],
    ['is that of another quote', json(200, { ...found, quoteId: `${origin}/quotes/2` })],
    ['has another id', json(200, { ...found, id: `${origin}/outgoing-payments/2` })],
  ])('has an unknown outcome if the payment with its id %s', async (_, read) => {
    const unknown = { ok: false, refusal: 'outcome_unknown', repeat: 'same_quote' }
    expect(await pay(read)).toMatchObject(unknown)
  })
})

function amounts() {
  return { debitAmount: usd('100'), receiveAmount: usd('100'), sentAmount: usd('0') }
}

describe('a text of a server is short in a refusal:', () => {
  const long = '\u{1F40E}'.repeat(50_000)

  test('its code, its description and its details', async () => {
    for (const answer of [
      error(400, long, long, { details: { problem: long } }),
      json(400, { error: long }),
    ]) {
      const { reason, answer: said } = await refusalOf(answer)
      expect(reason.length).toBeLessThanOrEqual(4_096)
      expect(JSON.stringify(said).length).toBeLessThanOrEqual(4_096)
      for (const text of [reason, said?.code ?? '', said?.description ?? '']) {
        expect(text).toBe(text.toWellFormed())
      }
    }
  })

  test('details are whole, or absent', async () => {
    const details = { path: 'a', problem: 'b'.repeat(16_000) }
    expect(await refusalOf(error(400, 'c', '', { details }))).toMatchObject({ answer: { details } })
    const tooLong = { path: 'a', problem: 'b'.repeat(17_000) }
    const { answer } = await refusalOf(error(400, 'c', '', { details: tooLong }))
    expect(answer).not.toHaveProperty('details')
  })

  test('the page of a payment that waits for its owner has at most 8,192 characters', async () => {
    const { wallet, client } = clientOf()
    const details = { url: `${origin}/${'a'.repeat(9_000)}` }
    wallet.fault = async ({ method }, act) =>
      method === 'POST' ? error(403, 'confirmation_required', '', { details }) : act()
    const paid = await client.createPayment({
      walletAddress: bob,
      grant,
      quote: `${origin}/quotes/1`,
    })
    expect(paid).toMatchObject({ refusal: 'forbidden' })
  })

  test('and the error of a network, and the name of an account', async () => {
    const { wallet, client } = clientOf()
    wallet.fault = async () => Promise.reject(new Error(long))
    const found = await client.addressOf(bob)
    expect(found).toMatchObject({ refusal: 'no_response' })
    expect(!found.ok && found.reason.length).toBeLessThanOrEqual(4_096)
    wallet.fault = async () => json(200, { ...addressOfBob, publicName: long })
    const named = await client.addressOf(bob)
    expect(named.ok && named.address.publicName?.length).toBe(256)
  })
})

test('a receiver has no wallet address whose collection its URL only passes through', async () => {
  const { wallet, client } = clientOf()
  const url = `${origin}/incoming-payments/../mallory/incoming-payments/1`
  wallet.fault = async ({ url: requested, headers = {} }, act) => {
    if (!requested.includes('/mallory/')) return act()
    const isOpen = headers['authorization'] === undefined
    return json(200, isOpen ? { authServer: `${origin}/auth` } : incomingPayment(url))
  }
  const found = await client.receiverOf(url)
  expect(found).toMatchObject({ ok: true, receiver: { ilp: {} } })
  expect(found.ok && found.receiver).not.toHaveProperty('walletAddress')
})

test('a return with a long hash is refused at once', async () => {
  const finish = { clientNonce: 'c', serverNonce: 's' }
  const query = new URLSearchParams({ hash: `${'='.repeat(1_000_000)}x`, interact_ref: 'r' })
  const found = await verifyFinish({ authServer: `${origin}/auth`, finish }, query)
  expect(found).toMatchObject({ refusal: 'finish_invalid' })
})

test('a grant is not continued again at once if its server asks for no wait', async () => {
  const { wallet, client } = clientOf({ limitMs: 500 })
  wallet.fault = async () => {
    await new Promise((resolve) => setTimeout(resolve, 1))
    return { ...error(400, 'too_fast'), headers: { 'retry-after': '0' } }
  }
  const continuation = { uri: `${origin}/continue/1`, token: 'c-token' }
  const pending = { ...servers, continuation, continueAt: now }
  expect(await client.continueGrant(pending)).toMatchObject({ refusal: 'too_fast' })
  expect(wallet.arrived).toHaveLength(1)
})

describe('a server cannot', () => {
  const lies: readonly (readonly [
    string,
    (path: string) => object | undefined,
    (client: ReturnType<typeof createClient>) => Promise<object>,
  ])[] = [
    [
      'show the wallet address of another server',
      () => ({ ...addressOfBob, id: 'https://eve.example/bob' }),
      (client) => client.addressOf(bob),
    ],
    [
      'get a token of another authorization server',
      (path) =>
        path === '/bob' ? { ...addressOfBob, authServer: 'https://eve.example/auth' } : undefined,
      (client) =>
        client.createPayment({
          ...{ walletAddress: bob, quote: `${origin}/quotes/1` },
          grant,
        }),
    ],
    [
      'have tokens managed elsewhere',
      (path) =>
        path === '/auth'
          ? { access_token: { ...tokenFor([]).access_token, manage: 'https://eve.example/1' } }
          : undefined,
      (client) => client.requestGrant({ walletAddress: bob, access: [] }),
    ],
    [
      'show another incoming payment',
      (path) =>
        path.startsWith('/incoming')
          ? { ...incomingPayment(`${origin}/incoming-payments/8`), authServer: `${origin}/auth` }
          : undefined,
      (client) => client.receiverOf(receiver),
    ],
    [
      'quote more than what was asked for',
      (path) =>
        path === '/quotes'
          ? { id: `${origin}/quotes/1`, receiver, debitAmount: usd('101'), receiveAmount: usd('1') }
          : undefined,
      (client) => client.createQuote({ walletAddress: bob, receiver, debitAmount: usd('100') }),
    ],
    [
      'quote less for the receiver than what was asked for',
      (path) =>
        path === '/quotes'
          ? { id: `${origin}/quotes/1`, receiver, debitAmount: usd('100'), receiveAmount: usd('1') }
          : undefined,
      (client) => client.createQuote({ walletAddress: bob, receiver, receiveAmount: usd('100') }),
    ],
    [
      'quote for another receiver',
      (path) =>
        path === '/quotes'
          ? {
              id: `${origin}/quotes/1`,
              receiver: `${receiver}8`,
              debitAmount: usd('1'),
              receiveAmount: usd('1'),
            }
          : undefined,
      (client) => client.createQuote({ walletAddress: bob, receiver }),
    ],
  ]

  test.each(lies)('%s', async (_, lie, call) => {
    const { wallet, client } = clientOf()
    wallet.fault = async ({ url }, act) => {
      const value = lie(new URL(url).pathname)
      return value === undefined ? act() : json(200, value)
    }
    expect(await call(client)).toMatchObject({ ok: false, refusal: 'response_invalid' })
    expect(wallet.arrived.every(({ url }) => url.startsWith(origin))).toBe(true)
  })

  test('change the amount of a receiver: whether it exists is unknown', async () => {
    const { wallet, client } = clientOf()
    wallet.fault = async ({ method, url }, act) => {
      const more = { incomingAmount: usd('500') }
      const isCreation = method === 'POST' && url.endsWith('/incoming-payments')
      return isCreation ? json(201, incomingPayment(`${url}/1`, more)) : act()
    }
    const asked = { walletAddress: bob, incomingAmount: usd('5'), expiresAt: now + 1_000 }
    expect(await client.createReceiver(asked)).toMatchObject({
      refusal: 'outcome_unknown',
      repeat: 'never',
    })
  })
})

test.each([undefined, Number.NaN, '2030-01-01T00:00:00Z'])(
  'a creation that expires at %s is an error of the caller, and sends nothing',
  async (expiresAt) => {
    const { wallet, client } = clientOf()
    const created = client.createReceiver({ walletAddress: bob, expiresAt: expiresAt as number })
    await expect(created).rejects.toMatchObject({ code: 'ERR_INVALID_INPUT' })
    expect(wallet.arrived).toEqual([])
  },
)

test('a receiver that takes no more money is closed, with what it has received', async () => {
  const { wallet, client } = clientOf()
  for (const more of [
    { completed: true },
    { expiresAt: '2026-11-29T11:59:59Z' },
    { incomingAmount: usd('0') },
  ]) {
    wallet.fault = async ({ url, headers = {} }, act) =>
      url === receiver && 'authorization' in headers ? json(200, incomingPayment(url, more)) : act()
    expect(await client.receiverOf(receiver)).toMatchObject({
      refusal: 'receiver_closed',
      receivedAmount: usd('0'),
    })
  }
  wallet.fault = async ({ url, headers = {} }, act) =>
    url === receiver && 'authorization' in headers
      ? json(200, incomingPayment(url, { methods: [] }))
      : act()
  expect(await client.receiverOf(receiver)).toMatchObject({ refusal: 'receiver_unpayable' })
})

test('members that the client does not know, and null, change nothing', async () => {
  const { wallet, client } = clientOf()
  wallet.fault = async (_, act) => {
    const answer = act()
    const value = JSON.parse(new TextDecoder().decode(answer.body))
    return json(answer.status, {
      ...value,
      additional: [{ x: null }],
      incomingAmount: null,
      metadata: null,
    })
  }
  expect(await client.receiverOf(receiver)).toMatchObject({ ok: true })
})

test.each([
  ['$bank.example/bob', bob],
  ['$bank.example', `${origin}/.well-known/pay`],
  [bob, bob],
])('the address %s is read at %s', async (text, url) => {
  const { wallet, client } = clientOf()
  wallet.fault = async () => json(200, addressOfBob)
  expect(await client.addressOf(text)).toMatchObject({ ok: true, address: { id: bob } })
  expect(wallet.arrived.map((each) => each.url)).toEqual([url])
  expect(wallet.arrived[0]?.headers).not.toHaveProperty('signature')
})

test.each([
  'bob',
  'ftp://bank.example/bob',
  `${bob}?x`,
  `${bob}#x`,
  'https://a:b@bank.example/bob',
  '$',
  'https://bank.example/ bob',
])('the address %s is not requested', async (text) => {
  const { wallet, client } = clientOf()
  expect(await client.addressOf(text)).toMatchObject({ ok: false, refusal: 'url_refused' })
  expect(wallet.arrived).toEqual([])
})

describe('a token', () => {
  test('is requested once for an origin, a server and actions', async () => {
    const { wallet, client } = clientOf()
    await Promise.all([client.receiverOf(receiver), client.receiverOf(receiver)])
    await client.receiverOf(receiver)
    expect(wallet.to('POST', '/auth')).toHaveLength(1)
    await client.createReceiver({ walletAddress: bob, expiresAt: now + 1_000 })
    const actions = wallet.to('POST', '/auth').map(({ json }) => JSON.stringify(json))
    expect(actions.map((text) => /"actions":\[([^\]]*)\]/.exec(text)?.[1])).toEqual([
      '"read-all"',
      '"create"',
    ])
  })

  test('that was revoked is replaced for a read', async () => {
    const { wallet, client } = clientOf()
    await client.receiverOf(receiver)
    let refusals = 1
    wallet.fault = async ({ headers = {} }, act) => {
      const isRefused = headers['authorization'] !== undefined && refusals-- > 0
      return isRefused ? error(403, '403', 'Inactive Token') : act()
    }
    expect(await client.receiverOf(receiver)).toMatchObject({ ok: true })
    expect(wallet.to('POST', '/auth')).toHaveLength(2)
  })

  test('that a server refuses at once is not replaced, however often it is used', async () => {
    const { wallet, client } = clientOf()
    wallet.fault = async ({ headers = {} }, act) =>
      headers['authorization'] === undefined ? act() : error(401, '401', 'Invalid Token')
    for (const _ of [1, 2, 3]) {
      expect(await client.receiverOf(receiver)).toMatchObject({ refusal: 'unauthenticated' })
    }
    expect(wallet.to('POST', '/auth')).toHaveLength(1)
  })
})

test('a read whose signature was used is signed again, with another nonce', async () => {
  const { wallet, client } = clientOf()
  let copies = 1
  wallet.fault = async ({ headers = {} }, act) =>
    'authorization' in headers && copies-- > 0 ? error(409, 'signature_used') : act()
  expect(await client.receiverOf(receiver)).toMatchObject({ ok: true })
  const inputs = wallet.arrived
    .filter(({ headers = {} }) => 'authorization' in headers)
    .map(({ headers = {} }) => headers['signature-input'])
  expect(new Set(inputs).size).toBe(2)
})

test('at most 32 receivers are read at the same time', async () => {
  const { wallet, client } = clientOf()
  let open: () => void = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  wallet.fault = async (_, act) => opened.then(act)
  const reading = Array.from({ length: 32 }, () => client.receiverOf(receiver))
  expect(await client.receiverOf(receiver)).toMatchObject({ refusal: 'busy', isTemporary: true })
  open()
  for (const found of await Promise.all(reading)) expect(found).toMatchObject({ ok: true })
})

describe('the own wallet', () => {
  const own = {
    baseUrl: shopAddress,
    incomingPayments: {
      idOf: (url: string) => /^https:\/\/shop\.example\/incoming-payments\/(\w+)$/.exec(url)?.[1],
      get: async (id: string) =>
        id === '1'
          ? ({
              walletAddress: `${shopAddress}/a`,
              receivedAmount: usd('1'),
              status: 'pending',
              expiresAt: now + 1,
            } as never)
          : undefined,
    },
  }

  test('answers first, without a request', async () => {
    const { wallet, client } = clientOf({ own })
    expect(await client.receiverOf(`${shopAddress}/incoming-payments/1`)).toMatchObject({
      ok: true,
      receiver: { walletAddress: `${shopAddress}/a`, receivedAmount: usd('1') },
    })
    for (const path of ['/incoming-payments/2', '/other']) {
      expect(await client.receiverOf(shopAddress + path)).toMatchObject({ refusal: 'not_found' })
    }
    expect(wallet.arrived).toEqual([])
  })
})
