import { describe, expect, test } from 'vitest'
import { type AccessItem, memoryStore, type PriceRequest, type Pricing } from '../../src/index.js'
import { hostCall } from '../support/host-call.js'
import { type Fate, fates, lyingStore } from '../support/proxy-store.js'
import {
  createSpendingWorld,
  eur,
  euroReceiver,
  goneReceiver,
  grantToPay,
  newQuote,
  outgoingItem,
  priceList,
  quoteToken,
  shopReceiver,
  usd,
} from '../support/spending.js'
import {
  alice,
  bob,
  createWorld,
  resourceServer,
  type TestClient,
  type WorldOptions,
} from '../support/world.js'
import { watchedStore } from '../support/written.js'

const collection = `${resourceServer}/quotes`
const minute = 60_000

async function setUp(options: WorldOptions = {}) {
  const world = createSpendingWorld(options)
  const client = world.client()
  return { world, client, token: await quoteToken(client) }
}

async function tokenFor(client: TestClient, access: AccessItem): Promise<string> {
  const { body } = await client.request([access])
  return body.access_token.value
}

/** Creates a world with the given price function, and counts the writes. */
async function hostWhoAnswers(price: Pricing['price']) {
  const { store, written } = watchedStore(memoryStore())
  const setup = await setUp({ store, resources: { pricing: { price } } })
  const before = written.count()
  return { ...setup, writes: () => written.count() - before }
}

describe('creating a quote', () => {
  test.each([
    ['a fixed send amount', { debitAmount: usd(1000) }, usd(1000), usd(1000)],
    ['a fixed receive amount', { receiveAmount: usd(700) }, usd(700), usd(700)],
    ['no amount, if the receiver specifies one', {}, usd(1000), usd(1000)],
    [
      'an amount in the asset of the receiver',
      { receiver: euroReceiver, receiveAmount: eur(50) },
      usd(100),
      eur(50),
    ],
    [
      'the largest possible amount',
      { debitAmount: usd(2n ** 64n - 1n) },
      usd(2n ** 64n - 1n),
      usd(2n ** 64n - 1n),
    ],
  ])('returns 201 for %s', async (_, asked, debitAmount, receiveAmount) => {
    const { world, client, token } = await setUp()
    const { status, headers, body } = await newQuote(client, token, asked)
    expect([status, headers['content-type']]).toEqual([201, 'application/json'])
    const now = world.clock.now()
    expect(body).toStrictEqual({
      id: expect.stringMatching(`^${collection}/[0-9a-f-]{36}$`),
      walletAddress: alice,
      receiver: 'receiver' in asked ? asked.receiver : shopReceiver,
      debitAmount,
      receiveAmount,
      method: 'ilp',
      createdAt: new Date(now).toISOString(),
      expiresAt: new Date(now + 5 * minute).toISOString(),
    })
  })

  test('passes the paying account, the client and only the amounts of the client to the host', async () => {
    const asked: PriceRequest[] = []
    const price: Pricing['price'] = async (request) => {
      asked.push(request)
      return priceList.price(request, hostCall)
    }
    const { client, token } = await setUp({ resources: { pricing: { price } } })
    await newQuote(client, token, { walletAddress: `${alice}/`, debitAmount: usd(5) })
    await newQuote(client, token, { receiver: `${shopReceiver}/` })
    const account = expect.objectContaining({ url: alice, assetCode: 'USD' })
    const from = { account, client: 'https://shop.example' }
    const request = { receiver: shopReceiver, ...from, method: 'ilp' }
    expect(asked).toStrictEqual([{ ...request, debitAmount: usd(5) }, request])
  })

  test('expires with its price, if that is earlier', async () => {
    const endsAt = Date.UTC(2026, 10, 21, 12, 1)
    const price = async () => ({
      ok: true as const,
      debitAmount: usd(10),
      receiveAmount: usd(9),
      expiresAt: endsAt,
    })
    const { client, token } = await setUp({ resources: { pricing: { price } } })
    const { body } = await newQuote(client, token)
    expect(body.expiresAt).toBe(new Date(endsAt).toISOString())
  })

  test.each([
    ['a send amount of zero', { debitAmount: usd(0) }, 400, 'invalid_amount'],
    ['a receive amount of zero', { receiveAmount: usd(0) }, 400, 'invalid_amount'],
    [
      'a send amount in another scale',
      { debitAmount: { ...usd(1), assetScale: 3 } },
      400,
      'invalid_amount',
    ],
    ['a receiver that accepts no payments', { receiver: goneReceiver }, 400, 'invalid_receiver'],
    ['both amounts', { debitAmount: usd(1), receiveAmount: usd(1) }, 400, 'invalid_request'],
    ['another method', { method: 'card' }, 400, 'invalid_request'],
    ['a receiver that is not an incoming payment', { receiver: bob }, 400, 'invalid_request'],
  ])('is refused for %s', async (_, asked, status, code) => {
    const { client, token } = await setUp()
    const answer = await newQuote(client, token, asked)
    expect([answer.status, answer.body.error.code]).toEqual([status, code])
  })

  test('reports the minimum amount to send, with the message that deployed clients expect', async () => {
    const { client, token } = await setUp()
    const answer = await newQuote(client, token, { receiver: euroReceiver, debitAmount: usd(1) })
    expect([answer.status, answer.body]).toEqual([
      400,
      {
        error: {
          code: 'invalid_amount',
          description: 'non-positive receive amount',
          details: { minSendAmount: usd(2) },
        },
      },
    ])
    const gone = await newQuote(client, token, { receiver: goneReceiver })
    expect(gone.body.error).toEqual({ code: 'invalid_receiver', description: 'invalid receiver' })
  })

  test('reveals the reason of the host only to the operator', async () => {
    const price = async () =>
      ({ ok: false, refusal: 'amount_missing', reason: 'the ledger says shibboleth' }) as const
    const { world, client, token } = await setUp({ resources: { pricing: { price } } })
    const answer = await newQuote(client, token)
    expect([answer.status, answer.body.error]).toEqual([
      400,
      { code: 'invalid_amount', description: 'Missing amount' },
    ])
    expect(world.refusals.at(-1)).toMatchObject({
      refusal: 'amount_missing',
      reason: 'the ledger says shibboleth',
      operation: 'createQuote',
      client: 'https://shop.example',
    })
  })

  test('is limited to the wallet address that the owner chose', async () => {
    const { world, client } = await setUp()
    const quoting = { type: 'quote', actions: ['create', 'read'] } as const
    const asked = [outgoingItem(), quoting]
    const narrowed = [outgoingItem(), { ...quoting, identifier: alice }]
    const { token } = await grantToPay(world, client, asked, narrowed)
    expect((await newQuote(client, token)).status).toBe(201)
    const elsewhere = await newQuote(client, token, { walletAddress: bob })
    expect([elsewhere.status, elsewhere.body.error.code]).toEqual([403, 'insufficient_access'])
    expect(world.refusals.at(-1)?.refusal).toBe('identifier_foreign')
  })

  test('with the same bytes twice in one second creates two quotes', async () => {
    const { world, client, token } = await setUp()
    const created = Math.floor(world.clock.now() / 1_000)
    const parameters = [`keyid="${client.key.kid}"`, `created=${created}`]
    const body = { walletAddress: alice, receiver: shopReceiver, method: 'ilp' }
    const one = await client.post(collection, body, token, { parameters })
    const two = await client.post(collection, body, token, { parameters })
    expect([one.status, two.status]).toEqual([201, 201])
    expect(one.body.id).not.toBe(two.body.id)
  })

  test.each(fates.filter((fate) => fate !== 'works'))(
    'creates one quote and returns it, even if its commit %s',
    async (fate) => {
      const next: Fate[] = []
      const { store, records } = lyingStore(memoryStore(), () => next.pop() ?? 'works')
      const { client, token } = await setUp({ store })
      next.push(fate, 'works')
      const { status, body } = await newQuote(client, token)
      expect(status).toBe(201)
      const quotes = (await records()).filter(([kind]) => kind === 'quote')
      expect(quotes.map(([, { id }]) => `${collection}/${id.slice(8)}`)).toEqual([body.id])
      expect((await client.getPayment(token, body.id)).body).toEqual(body)
    },
  )
})

describe('a host that returns a price', () => {
  const price = { ok: true, debitAmount: usd(100), receiveAmount: usd(100) } as const
  const answers: readonly [string, unknown][] = [
    ['nothing', undefined],
    ['null', null],
    ['an empty object', {}],
    ['one amount', { debitAmount: usd(100) }],
    ['nothing to debit', { ...price, debitAmount: usd(0) }],
    ['nothing to receive', { ...price, receiveAmount: usd(0) }],
    ['a negative amount', { ...price, receiveAmount: usd(-1) }],
    ['more than 64 bits', { ...price, receiveAmount: usd(2n ** 64n) }],
    ['a fraction', { ...price, receiveAmount: usd('99.5') }],
    ['numbers', { ...price, debitAmount: { ...usd(100), value: 100 } }],
    ['another amount than requested', { ...price, debitAmount: usd(99) }],
    ['another asset than the account', { ...price, debitAmount: eur(100) }],
    ['an amount without an asset', { ...price, receiveAmount: { value: '100' } }],
    ['an expiry that is a date object', { ...price, expiresAt: new Date() }],
    ['an expiry that is not a number', { ...price, expiresAt: Number.NaN }],
    ['a refusal of another kind', { refusal: 'limits_exceeded' }],
    ['an unknown refusal', { refusal: 'shibboleth' }],
  ]

  test.each(answers)('causes a 500 if the price is invalid: %s', async (_, answer) => {
    const { world, client, token, writes } = await hostWhoAnswers(async () => answer as never)
    const { status, body } = await newQuote(client, token, { debitAmount: usd(100) })
    expect([status, body]).toEqual([
      500,
      { error: { code: 'internal_error', description: 'Internal server error' } },
    ])
    expect(String(world.errors)).toMatch(/^TypeError: the answer of pricing\.price is wrong: /)
    expect(writes()).toBe(0)
  })

  test('causes a 503 and no write when it rejects, and only the operator receives the reason', async () => {
    const { world, client, token, writes } = await hostWhoAnswers(async () => {
      throw new Error('shibboleth')
    })
    const { status, body } = await newQuote(client, token)
    expect([status, JSON.stringify(body).includes('shibboleth')]).toEqual([503, false])
    expect(String(world.errors)).toContain('shibboleth')
    expect(writes()).toBe(0)
  })

  test('can include other members, which the client does not see', async () => {
    const more = { fee: 5n, margin: new Date(), debitAmount: { ...usd(100), margin: 'shibboleth' } }
    const { client, token } = await hostWhoAnswers(async () => ({ ...price, ...more }))
    const { status, body } = await newQuote(client, token, { debitAmount: usd(100) })
    expect([status, body.debitAmount]).toEqual([201, usd(100)])
    expect(JSON.stringify(body)).not.toMatch(/shibboleth|fee|margin/)
  })

  test('causes invalid_quote if the price has expired', async () => {
    const { client, token } = await hostWhoAnswers(async () => ({ ...price, expiresAt: 1 }))
    const { status, body } = await newQuote(client, token)
    expect([status, body.error]).toEqual([
      400,
      { code: 'invalid_quote', description: 'invalid quote' },
    ])
  })
})

describe('reading a quote', () => {
  test('shows it to its client, even if it is expired', async () => {
    const { world, client, token } = await setUp()
    const { body } = await newQuote(client, token)
    expect((await client.getPayment(token, body.id)).body).toEqual(body)
    world.clock.advance(6 * minute)
    expect((await client.getPayment(token, body.id)).body).toEqual(body)
  })

  test('returns the same 404 for an unknown quote and for a quote of another client', async () => {
    const { world, client, token } = await setUp()
    const { body } = await newQuote(client, token)
    const other = world.client('other')
    const foreign = await other.getPayment(await quoteToken(other), body.id)
    expect(foreign.status).toBe(404)
    for (const id of ['AAAAAAAAAAAAAAAAAAAAAAAAAAAAAA', 'x'.repeat(500)]) {
      expect(await client.getPayment(token, `${collection}/${id.slice(8)}`)).toEqual(foreign)
    }
  })

  test('with read-all shows a client its own quotes only', async () => {
    const { world, client, token } = await setUp()
    const { body } = await newQuote(client, token)
    const access = { type: 'quote', actions: ['read-all'] } as const
    const own = await tokenFor(client, access)
    expect((await client.getPayment(own, body.id)).body).toEqual(body)
    const other = world.client('other')
    expect((await other.getPayment(await tokenFor(other, access), body.id)).status).toBe(404)
  })

  test('returns 404 if the wallet offers no quotes', async () => {
    const client = createWorld().client()
    const token = await quoteToken(client)
    const answers = [
      await newQuote(client, token),
      await client.getPayment(token, `${collection}/x`),
    ]
    expect(answers.map(({ status }) => status)).toEqual([404, 404])
  })
})

test.each([
  ['for a year', 365 * 24 * 60 * minute],
  ['for an hour', 3_600_000],
  ['for as short as possible', 600_000],
])(
  'a quote is forgotten no later than its payment, if payments are kept %s',
  async (_, retentionMs) => {
    const world = createSpendingWorld({
      resources: { policy: { outgoingPayments: { retentionMs } } },
    })
    const { quotes, outgoingPayments } = world.resources
    for (const paidAfter of [0, 299_999]) {
      const quoted = await quotes.create({
        walletAddress: alice,
        receiver: shopReceiver,
        debitAmount: usd(1),
      })
      if (!quoted.ok) throw new Error(quoted.reason)
      const { quoteId } = quoted.quote
      world.clock.advance(paidAfter)
      await outgoingPayments.create({ walletAddress: alice, quoteId })
      await outgoingPayments.cancel(quoteId)
      const isKept = async () => {
        const [payment, quote] = [await outgoingPayments.get(quoteId), await quotes.get(quoteId)]
        if (payment === undefined) expect(quote).toBeUndefined()
        return payment !== undefined
      }
      for (const atMost of [300_000, retentionMs / 2, retentionMs, 24 * 60 * minute, retentionMs]) {
        world.clock.advance(atMost)
        while ((await world.resources.sweep()).more);
        await isKept()
      }
      expect(await isKept()).toBe(false)
    }
  },
)
