import type { Client, IssuedGrant } from 'open-payments-client'
import type { FetchedDocument } from 'open-payments-server'
import { describe, expect, test } from 'vitest'
import {
  addressOfBob,
  authServer,
  bob,
  clientOf,
  incomingPayment,
  json,
  now,
  origin,
  type otherWallet,
  shopAddress,
  tokenFor,
  usd,
} from './support/other-wallet.js'

const receiver = `${origin}/incoming-payments/7`
const quote = `${origin}/quotes/1`
const eve = 'https://eve.example'
const eur = (value: string) => ({ value, assetCode: 'EUR', assetScale: 2 })

const grant: IssuedGrant = {
  ...{ authServer, resourceServer: origin },
  ...{ token: 'paying-token', manage: `${origin}/token/1`, access: [] },
  continuation: { uri: `${origin}/continue/1`, token: 'c-token' },
}

const calls: readonly (readonly [string, (client: Client) => Promise<object>])[] = [
  ['addressOf', (client) => client.addressOf(bob)],
  ['receiverOf', (client) => client.receiverOf(receiver)],
  ['publicReceiverOf', (client) => client.publicReceiverOf(receiver)],
  ['createReceiver', (client) => client.createReceiver({ walletAddress: bob, expiresAt: now + 1 })],
  ['completeReceiver', (client) => client.completeReceiver(receiver)],
  ['requestGrant', (client) => client.requestGrant({ walletAddress: bob, access: [] })],
  ['rotateToken', (client) => client.rotateToken(grant)],
  ['createQuote', (client) => client.createQuote({ walletAddress: bob, receiver })],
  ['getQuote', (client) => client.getQuote(bob, quote)],
  ['createPayment', (client) => client.createPayment({ walletAddress: bob, grant, quote })],
  ['getPayment', (client) => client.getPayment(grant, `${origin}/outgoing-payments/1`)],
  ['read', (client) => client.read(receiver, { access: { grant } })],
]

describe.each(calls)('%s', (_, call) => {
  const bytes = (text: string): FetchedDocument => ({
    ...json(200, ''),
    body: new TextEncoder().encode(text),
  })

  test.each<[string, FetchedDocument]>([
    ['a million open brackets', bytes('['.repeat(1_000_000))],
    ['deep objects', bytes(`${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`)],
    ['half a million numbers', bytes(`[${'1,'.repeat(500_000)}1]`)],
    ['a megabyte of digits', bytes(`{"assetScale":${'9'.repeat(1_000_000)}}`)],
    ['the prototype', bytes('{"__proto__":{"id":"x"},"constructor":{"prototype":{}}}')],
    ['the same member twice', bytes(`{"id":"${bob}","id":"${eve}"}`)],
    ['bytes that are no UTF-8', { ...json(200, ''), body: new Uint8Array([0x22, 0xff, 0x22]) }],
  ])('ends with a named refusal for %s', async (_, answer) => {
    const { wallet, client } = clientOf()
    wallet.fault = async () => answer
    const began = performance.now()
    const found = await call(client)
    const isName = expect.stringMatching(/^[a-z_]+$/)
    if ('refusal' in found) expect(found.refusal).toEqual(isName)
    else expect(found).toEqual({ ok: true, document: expect.anything() })
    // No JSON bomb occupies the process; the body of 1 MiB itself is read in a few milliseconds.
    expect(performance.now() - began).toBeLessThan(20_000)
  })
})

describe('a token is sent to no other server than its own', () => {
  /** Every request with a token, by its origin. */
  const withToken = (wallet: ReturnType<typeof otherWallet>, token: string) =>
    wallet.arrived.filter(({ headers = {} }) => headers['authorization'] === `GNAP ${token}`)

  test.each<[string, (client: Client) => Promise<object>]>([
    ['a payment', (client) => client.getPayment(grant, `${eve}/outgoing-payments/1`)],
    ['a document', (client) => client.read(`${eve}/x`, { access: { grant } })],
    [
      'a payment at a user',
      (client) => client.getPayment(grant, `https://bank.example@eve.example/1`),
    ],
    ['a payment at another port', (client) => client.getPayment(grant, `${origin}:8443/1`)],
    ['a payment over http', (client) => client.getPayment(grant, 'http://bank.example/1')],
    ['a quote', (client) => client.getQuote(bob, `${eve}/quotes/1`)],
    ['no URL', (client) => client.getPayment(grant, 'nowhere')],
    ['no URL to read', (client) => client.read('nowhere', { access: { grant } })],
  ])('for %s', async (_, call) => {
    const { wallet, client } = clientOf()
    expect(await call(client)).toMatchObject({ ok: false, refusal: 'url_refused' })
    expect(wallet.arrived.filter(({ url }) => !url.startsWith(`${origin}/`))).toEqual([])
  })

  test('whatever servers a wallet address names after the grant', async () => {
    const { wallet, client } = clientOf()
    for (const lie of [{ resourceServer: eve }, { authServer: `${eve}/auth` }]) {
      wallet.fault = async (request, act) =>
        request.url === bob ? json(200, { ...addressOfBob, ...lie }) : act()
      const paid = await client.createPayment({ walletAddress: bob, grant, quote })
      expect(paid).toMatchObject({ ok: false })
    }
    expect(withToken(wallet, grant.token)).toEqual([])
  })

  test('which two wallets at one authorization server each get for themselves', async () => {
    const { wallet, client } = clientOf()
    const there = `${eve}/incoming-payments/7`
    let issued = 0
    wallet.fault = async ({ url, headers = {} }, act) => {
      if (url === authServer) {
        issued += 1
        const { access_token, ...rest } = tokenFor([])
        return json(200, { access_token: { ...access_token, value: `token-${issued}` }, ...rest })
      }
      const isOpen = headers['authorization'] === undefined
      if (url === there) return json(200, isOpen ? { authServer } : incomingPayment(there))
      return act()
    }
    await client.receiverOf(receiver)
    await client.receiverOf(there)
    const [first, second] = ['token-1', 'token-2'].map((token) =>
      withToken(wallet, token).map(({ url }) => new URL(url).origin),
    )
    expect([first, second]).toEqual([[origin], [eve]])
  })
})

describe('a wallet cannot', () => {
  const lies: readonly (readonly [string, string, object, (client: Client) => Promise<object>])[] =
    [
      [
        'show a quote in another asset than that of the account',
        '/quotes/1',
        { id: quote, receiver, debitAmount: eur('1'), receiveAmount: usd('1') },
        (client) => client.getQuote(bob, quote),
      ],
      [
        'show another quote',
        '/quotes/1',
        { id: `${origin}/quotes/2`, receiver, debitAmount: usd('1'), receiveAmount: usd('1') },
        (client) => client.getQuote(bob, quote),
      ],
      [
        'show the quote of another account',
        '/quotes/1',
        {
          ...{ id: quote, receiver, debitAmount: usd('1'), receiveAmount: usd('1') },
          walletAddress: `${origin}/mallory`,
        },
        (client) => client.getQuote(bob, quote),
      ],
      [
        'show a payment of another id',
        '/outgoing-payments/1',
        {
          ...{ id: `${origin}/outgoing-payments/2`, receiver, debitAmount: usd('1') },
          ...{ sentAmount: usd('1'), failed: false },
        },
        (client) => client.getPayment(grant, `${origin}/outgoing-payments/1`),
      ],
      [
        'show a payment that has sent another asset than it debits',
        '/outgoing-payments/1',
        {
          ...{ id: `${origin}/outgoing-payments/1`, receiver, debitAmount: usd('1') },
          ...{ sentAmount: eur('1'), failed: false },
        },
        (client) => client.getPayment(grant, `${origin}/outgoing-payments/1`),
      ],
      [
        'show an amount that has more than 64 bits',
        '/quotes/1',
        { id: quote, receiver, debitAmount: usd('18446744073709551616'), receiveAmount: usd('1') },
        (client) => client.getQuote(bob, quote),
      ],
      [
        'show an amount that is no number',
        '/quotes/1',
        { id: quote, receiver, debitAmount: usd('1e3'), receiveAmount: usd('1') },
        (client) => client.getQuote(bob, quote),
      ],
    ]

  test.each(lies)('%s', async (_, path, lie, call) => {
    const { wallet, client } = clientOf()
    wallet.fault = async ({ url }, act) => (new URL(url).pathname === path ? json(200, lie) : act())
    expect(await call(client)).toMatchObject({ ok: false, refusal: 'response_invalid' })
  })

  const creations: readonly (readonly [
    string,
    string,
    object,
    (client: Client) => Promise<object>,
  ])[] = [
    [
      'create a payment in another account',
      '/outgoing-payments',
      { walletAddress: `${origin}/mallory` },
      (client) => client.createPayment({ walletAddress: bob, grant, quote }),
    ],
    [
      'create a payment of another quote',
      '/outgoing-payments',
      { quoteId: `${origin}/quotes/2` },
      (client) => client.createPayment({ walletAddress: bob, grant, quote }),
    ],
    [
      'create a payment that debits more than what was ordered',
      '/outgoing-payments',
      { debitAmount: usd('101') },
      (client) =>
        client.createPayment({
          ...{ walletAddress: bob, grant, receiver, debitAmount: usd('100') },
          idempotencyKey: 'one',
        }),
    ],
    [
      'create a payment in another asset',
      '/outgoing-payments',
      { debitAmount: eur('100'), sentAmount: eur('0') },
      (client) =>
        client.createPayment({
          ...{ walletAddress: bob, grant, receiver, debitAmount: usd('100') },
          idempotencyKey: 'one',
        }),
    ],
    [
      'create a receiver at another server',
      '/incoming-payments',
      { id: `${eve}/incoming-payments/1` },
      (client) => client.createReceiver({ walletAddress: bob, expiresAt: now + 1 }),
    ],
    [
      'create a receiver in another account',
      '/incoming-payments',
      { walletAddress: `${origin}/mallory` },
      (client) => client.createReceiver({ walletAddress: bob, expiresAt: now + 1 }),
    ],
    [
      'create a receiver in another asset',
      '/incoming-payments',
      { receivedAmount: eur('0') },
      (client) => client.createReceiver({ walletAddress: bob, expiresAt: now + 1 }),
    ],
  ]

  test.each(creations)('%s: the outcome is unknown', async (_, path, lie, call) => {
    const { wallet, client } = clientOf()
    wallet.fault = async (request, act) => {
      const answer = act()
      const isCreation = request.method === 'POST' && new URL(request.url).pathname === path
      if (!isCreation) return answer
      const honest = JSON.parse(new TextDecoder().decode(answer.body))
      return json(201, { ...honest, ...lie })
    }
    expect(await call(client)).toMatchObject({ ok: false, refusal: 'outcome_unknown' })
  })
})

describe('a page for the owner', () => {
  const pages: readonly (readonly [string, string | undefined])[] = [
    ['https://bank.example/a b?c="d"#é', 'https://bank.example/a%20b?c=%22d%22#%C3%A9'],
    ['javascript:alert(1)', undefined],
    ['http://bank.example/consent', undefined],
    ['https://user@bank.example/', undefined],
    ['https://bank.example/\u001b[2J', undefined],
    ['https://bank.example/#\u202egro.evil', undefined],
    ['https://bank.example/\u0000', undefined],
    ['nowhere', undefined],
  ]

  test.each(pages)('%j is %j for consent', async (redirect, expected) => {
    const { wallet, client } = clientOf()
    wallet.fault = async ({ url }, act) =>
      url === authServer
        ? json(200, { interact: { redirect, finish: 'n' }, continue: tokenFor([]).continue })
        : act()
    const interact = { finishUri: `${shopAddress}/finish` }
    const state = await client.requestGrant({ walletAddress: bob, access: [], interact })
    if (expected === undefined) expect(state).toMatchObject({ refusal: 'response_invalid' })
    else expect(state).toMatchObject({ ok: true, pending: { redirect: expected } })
  })

  test.each(pages)('%j is %j for a confirmation', async (url, expected) => {
    const { wallet, client } = clientOf()
    const error = { code: 'confirmation_required', details: { url } }
    wallet.fault = async ({ method }, act) => (method === 'POST' ? json(403, { error }) : act())
    const paid = await client.createPayment({ walletAddress: bob, grant, quote })
    if (expected === undefined) expect(paid).toMatchObject({ refusal: 'forbidden' })
    else expect(paid).toMatchObject({ refusal: 'confirmation_required', url: expected })
  })
})

test('Documents are read as they are: openly, under a grant, or with access of their own', async () => {
  const { wallet, client } = clientOf()
  const list = { result: [{ id: receiver, metadata: { b: [null] } }], pagination: {} }
  wallet.fault = async ({ url }, act) => (url.startsWith(`${receiver}s`) ? json(200, list) : act())
  const access = { authServer, type: 'incoming-payment', actions: ['list'] } as const
  for (const way of [{}, { access }, { access: { grant } }]) {
    expect(await client.read(`${receiver}s?first=1`, way)).toEqual({ ok: true, document: list })
  }
  const tokens = wallet.arrived
    .filter(({ url }) => url.startsWith(`${receiver}s`))
    .map(({ headers = {} }) => headers['authorization'])
  expect(tokens).toEqual([undefined, 'GNAP a-token', 'GNAP paying-token'])
})

test('What a server writes begins no line in a log, and moves no cursor', async () => {
  const { wallet, client } = clientOf()
  const description = 'no\r\n2026-11-29 paid\u001b[2J\u2028\u202e'
  wallet.fault = async () => json(400, { error: { code: 'a\nb', description } })
  const found = await client.addressOf(bob)
  expect(!found.ok && found.reason).toMatch(/^[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+$/u)
})
