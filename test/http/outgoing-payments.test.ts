import { describe, expect, test } from 'vitest'
import { type AccessItem, type Limits, memoryStore, type Pricing } from '../../src/index.js'
import { namespaceOf } from '../../src/protocol/credential.js'
import { authorities, payerOf } from '../support/authorities.js'
import { eventsIn } from '../support/outbox.js'
import {
  createSpendingWorld,
  eur,
  euroReceiver,
  goneReceiver,
  grantToPay,
  otherReceiver,
  outgoingItem,
  pay,
  payByQuote,
  quoteToken,
  shopReceiver,
  usd,
  withKey,
} from '../support/spending.js'
import {
  errorOf,
  idOfPayment,
  payingClient,
  quoteUrl,
  spentUnder,
  withoutNonce,
} from '../support/spending-client.js'
import {
  type Answer,
  alice,
  bob,
  closed,
  origin,
  resourceServer,
  type TestClient,
  type WorldOptions,
} from '../support/world.js'
import { watchedStore } from '../support/written.js'

const hourly = 'R/2026-11-21T12:00:00Z/PT1H'
const collection = `${resourceServer}/outgoing-payments`
const minute = 60_000
const day = 86_400_000
const most = 2n ** 64n - 1n
/** The error for limits that do not permit a payment. `details` name the limit. */
const beyond = (limit: string, problem: string, rest: object = {}) => {
  const details = { path: `limits.${limit}`, problem, ...rest }
  return { code: 'insufficient_grant', description: 'unauthorized', details }
}
const overBudget = beyond('debitAmount', 'leaves less than this payment', { left: usd(0) })

describe('creating an outgoing payment', () => {
  test('with a quote returns 201 with its amounts and the spent amounts of its grant', async () => {
    const { world, client, token } = await payingClient()
    const quoteId = await quoteUrl(client, { receiver: euroReceiver, debitAmount: usd(1000) })
    const metadata = { invoice: 'INV-1', constructor: null, lines: ['caffè\u0000\ud800'] }
    const { status, headers, body } = await payByQuote(client, token, quoteId, { metadata })
    expect([status, headers['content-type']]).toEqual([201, 'application/json'])
    expect(body).toStrictEqual({
      id: expect.stringMatching(`^${collection}/[0-9a-f-]{36}$`),
      walletAddress: alice,
      quoteId,
      failed: false,
      receiver: euroReceiver,
      debitAmount: usd(1000),
      receiveAmount: eur(500),
      sentAmount: usd(0),
      metadata,
      createdAt: new Date(world.clock.now()).toISOString(),
      grantSpentDebitAmount: usd(1000),
      grantSpentReceiveAmount: eur(500),
    })
  })

  test('directly to an incoming payment returns the same, except for the quote', async () => {
    const { world, client, token } = await payingClient()
    const { status, body } = await pay(client, token, 1000, { incomingPayment: `${euroReceiver}/` })
    expect(status).toBe(201)
    expect(body).toStrictEqual({
      id: expect.stringMatching(`^${collection}/[0-9a-f-]{36}$`),
      walletAddress: alice,
      failed: false,
      receiver: euroReceiver,
      debitAmount: usd(1000),
      receiveAmount: eur(500),
      sentAmount: usd(0),
      createdAt: new Date(world.clock.now()).toISOString(),
      grantSpentDebitAmount: usd(1000),
      grantSpentReceiveAmount: eur(500),
    })
  })

  test.each<readonly [what: string, access: AccessItem]>([
    ['a receive amount', outgoingItem({ receiveAmount: eur(5000) })],
    ['a debit amount', outgoingItem({ debitAmount: usd(5000) })],
    ['only an interval', outgoingItem({ interval: hourly })],
    ['no limits', outgoingItem()],
  ])('returns both spent amounts under an item with %s', async (_, access) => {
    const { world, client } = await payingClient()
    const { token } = await grantToPay(world, client, [access])
    const toEuros = { incomingPayment: euroReceiver }
    await pay(client, token, 1000, toEuros)
    const { body } = await pay(client, token, 200, toEuros)
    expect(body).toMatchObject({
      grantSpentDebitAmount: usd(1200),
      grantSpentReceiveAmount: eur(600),
    })
    expect(await spentUnder(client, token)).toEqual({
      spentDebitAmount: usd(1200),
      spentReceiveAmount: eur(600),
    })
  })

  test('returns no total of receive amounts in different assets', async () => {
    const { world, client } = await payingClient()
    const { token } = await grantToPay(world, client, [outgoingItem()])
    await pay(client, token, 1000, { incomingPayment: euroReceiver })
    const { body } = await pay(client, token, 200)
    expect(body).toMatchObject({ grantSpentDebitAmount: usd(1200) })
    expect(body).not.toHaveProperty('grantSpentReceiveAmount')
    expect(await spentUnder(client, token)).toEqual({
      spentDebitAmount: usd(1200),
      spentReceiveAmount: null,
    })
  })

  test('counts the spent amounts of all items of a grant together', async () => {
    const { world, client } = await payingClient()
    const access = [outgoingItem({ debitAmount: usd(100) }), outgoingItem({ interval: hourly })]
    const { token } = await grantToPay(world, client, access)
    await pay(client, token, 100)
    const { body } = await pay(client, token, 30)
    expect(body.grantSpentDebitAmount).toEqual(usd(130))
    expect(await spentUnder(client, token)).toMatchObject({ spentDebitAmount: usd(130) })
  })

  test('records one event with the amounts to send, and without the metadata of the client', async () => {
    const { world, client, token } = await payingClient()
    const { body } = await pay(client, token, 5, { metadata: { note: 'shibboleth' } })
    const namespace = await namespaceOf(resourceServer)
    const events = await eventsIn(world.store, namespace)
    const created = events.filter(({ id }) => id.includes('.outgoing-payment.'))
    expect(created).toMatchObject([
      {
        event: {
          type: 'outgoing-payment.created',
          walletAddress: alice,
          client: 'https://shop.example',
          receiver: shopReceiver,
          debitAmount: usd(5),
          receiveAmount: usd(5),
          outgoingPaymentId: world.resources.outgoingPayments.idOf(body.id),
        },
      },
    ])
    expect(JSON.stringify(created)).not.toContain('shibboleth')
  })

  test('accepts the largest possible amount, and not one unit above the limit', async () => {
    const { world, client } = await payingClient()
    const access = [outgoingItem({ debitAmount: usd(most) })]
    const { token } = await grantToPay(world, client, access)
    expect((await pay(client, token, most)).body.grantSpentDebitAmount).toEqual(usd(most))
    expect((await pay(client, token, 1)).body.error).toEqual(overBudget)
  })

  test('over the budget is refused with the message that deployed clients expect', async () => {
    const { world, client, token } = await payingClient()
    expect((await pay(client, token, 2500)).status).toBe(201)
    const over = await pay(client, token, 1)
    expect([over.status, over.body]).toEqual([403, { error: overBudget }])
    expect(world.refusals.at(-1)).toMatchObject({
      refusal: 'limits_exceeded',
      reason: 'limits.debitAmount leaves less than this payment',
      operation: 'createOutgoingPayment',
    })
  })

  const otherAsset = 'is in another asset'
  const noWindow = beyond('interval', 'has no window at this time')

  test.each<readonly [string, Limits, object]>([
    [
      'has another receiver',
      { receiver: otherReceiver },
      beyond('receiver', 'is another receiver'),
    ],
    [
      'is too large by itself',
      { debitAmount: usd(9) },
      beyond('debitAmount', 'is less than this payment'),
    ],
    [
      'has another asset than the debit limit',
      { debitAmount: eur(100) },
      beyond('debitAmount', otherAsset),
    ],
    [
      'has another asset than the receive limit',
      { receiveAmount: eur(100) },
      beyond('receiveAmount', otherAsset),
    ],
    [
      'precedes the first window',
      { interval: 'R/2027-01-01T00:00:00Z/P1D' },
      beyond('interval', 'has no window at this time', {
        nextWindowAt: '2027-01-01T00:00:00.000Z',
      }),
    ],
    ['follows the last window', { interval: 'R2/2026-11-01T00:00:00Z/P1W' }, noWindow],
  ])('is refused if the payment %s', async (_, limits, error) => {
    const { world, client } = await payingClient()
    // The second item is usable forever, so that the grant does not end.
    const elsewhere = outgoingItem(undefined, bob)
    const { token } = await grantToPay(world, client, [outgoingItem(limits), elsewhere])
    const answer = await pay(client, token, 10)
    expect([answer.status, answer.body.error]).toEqual([403, error])
  })
})

describe.each(authorities)('a payment by %s', (authority) => {
  async function setUp(options: WorldOptions = {}, of: { readonly walletAddress?: string } = {}) {
    const world = createSpendingWorld(options)
    return { world, ...(await payerOf(world, authority, of)) }
  }

  test.each([
    [
      'a receiver that accepts no payments',
      { incomingPayment: goneReceiver },
      400,
      'invalid_receiver',
    ],
    [
      'an amount in another scale',
      { debitAmount: { ...usd(1), assetScale: 0 } },
      400,
      'invalid_amount',
    ],
    ['a receiver with an invalid URL', { incomingPayment: bob }, 400, 'invalid_request'],
    [
      'both a quote and a receiver',
      { quoteId: `${resourceServer}/quotes/x` },
      400,
      'invalid_request',
    ],
    ['metadata that is an array', { metadata: [] }, 400, 'invalid_request'],
    ['an unknown member', { expiresAt: '2026-12-01T00:00:00Z' }, 400, 'invalid_request'],
  ])('is refused for %s', async (_, changes, status, code) => {
    const { pay } = await setUp()
    expect(errorOf(await pay(1, changes))).toEqual([status, code])
  })

  test.each([
    ['unknown', `${origin}/nobody`, 404, 'unknown_wallet_address'],
    ['inactive', closed, 400, 'inactive_wallet_address'],
  ])('is refused from an account that is %s, quoted or not', async (_, at, status, code) => {
    const from = { walletAddress: at }
    const { pay, quote, payByQuote } = await setUp({}, from)
    const { id } = (await quote()).body
    expect(errorOf(await pay(1, from))).toEqual([status, code])
    expect(errorOf(await payByQuote(id, from))).toEqual([status, code])
  })

  test('reports the minimum amount to send', async () => {
    const { pay } = await setUp()
    const answer = await pay(1, { incomingPayment: euroReceiver })
    expect([answer.status, answer.body.error]).toEqual([
      400,
      {
        code: 'invalid_amount',
        description: 'non-positive receive amount',
        details: { minSendAmount: usd(2) },
      },
    ])
  })

  test.each<readonly [string, unknown]>([
    ['nothing', undefined],
    ['another amount', { ok: true, debitAmount: usd(9), receiveAmount: usd(9) }],
    ['nothing to receive', { ok: true, debitAmount: usd(10), receiveAmount: usd(0) }],
    ['an invalid refusal', { ok: false, refusal: 'limits_exceeded' }],
    ['a price without ok', { debitAmount: usd(10), receiveAmount: usd(10) }],
    ['a refusal without ok', { refusal: 'receiver_invalid' }],
  ])('returns 500 if the host returns %s, and stores nothing', async (_, answer) => {
    const { store, written } = watchedStore(memoryStore())
    const price: Pricing['price'] = async () => answer as never
    const { world, pay } = await setUp({ store, resources: { pricing: { price } } })
    const before = written.count()
    expect(errorOf(await pay(10))).toEqual([500, 'internal_error'])
    expect(String(world.errors)).toContain('the answer of pricing.price is wrong')
    expect(written.count()).toBe(before)
  })
})

describe('paying a quote', () => {
  test('is allowed only to its client, and others learn nothing about it', async () => {
    const { world, client } = await payingClient()
    const quoteId = await quoteUrl(client)
    const other = world.client('other')
    const { token } = await grantToPay(world, other)
    const foreign = await payByQuote(other, token, quoteId)
    const unknown = await payByQuote(other, token, quoteId.replace(/.{6}$/, 'AAAAAA'))
    expect(foreign.body.error).toEqual({ code: 'invalid_quote', description: 'unknown quote' })
    expect(unknown).toEqual(foreign)
    await payByQuote(client, (await grantToPay(world, client)).token, quoteId)
    expect(await payByQuote(other, token, quoteId)).toEqual(foreign)
  })

  test.each([
    'https://elsewhere.example/op/quotes/BuBTyeHHYfO0dJlrXwsia36Pdr2kaw',
    `${resourceServer}/quotes/a/b`,
    `${resourceServer}/outgoing-payments/BuBTyeHHYfO0dJlrXwsia36Pdr2kaw`,
    `${resourceServer}/quotes/${'x'.repeat(200)}`,
  ])('needs the URL of a quote, not %s', async (quoteId) => {
    const { client, token } = await payingClient()
    expect(errorOf(await payByQuote(client, token, quoteId))).toEqual([404, 'invalid_quote'])
  })

  test('accepts every spelling of the URL', async () => {
    const { client, token } = await payingClient()
    const quoteId = await quoteUrl(client)
    const written = quoteId.replace('https://wallet.example', 'https://WALLET.example:443')
    expect((await payByQuote(client, token, `${written}/`)).body.quoteId).toBe(quoteId)
  })

  test('needs the wallet address of the quote', async () => {
    const { world, client } = await payingClient()
    const access = [outgoingItem(undefined, alice), outgoingItem(undefined, bob)]
    const { token } = await grantToPay(world, client, access)
    const answer = await payByQuote(client, token, await quoteUrl(client), { walletAddress: bob })
    const details = { path: 'walletAddress', problem: 'must be the wallet address of the quote' }
    expect([answer.status, answer.body.error]).toEqual([
      400,
      { code: 'invalid_quote', description: 'invalid quote', details },
    ])
    expect(world.refusals.at(-1)?.refusal).toBe('quote_mismatch')
  })

  test.each(authorities)(
    'is possible to %s until the quote expires, and not at that instant',
    async (authority) => {
      const world = createSpendingWorld()
      const { granted, quote, payByQuote } = await payerOf(world, authority)
      const [first, second] = [await quote(), await quote()]
      world.clock.advance(5 * minute - 1)
      expect((await payByQuote(first.body.id)).status).toBe(201)
      world.clock.advance(1)
      const late = await payByQuote(second.body.id)
      expect([late.status, late.body.error.code]).toEqual([400, 'invalid_quote'])
      if (granted) expect(world.refusals.at(-1)?.refusal).toBe('quote_expired')
    },
  )

  test('has no idempotency key, with which a second quote would be a second payment', async () => {
    const { client, token } = await payingClient()
    const [first, second] = [await quoteUrl(client), await quoteUrl(client)]
    for (const quoteId of [first, second]) {
      const { status, body } = await payByQuote(client, token, quoteId, {}, withKey('order-7'))
      expect([status, body.error]).toEqual([
        400,
        {
          code: 'invalid_request',
          description: 'Invalid Idempotency-Key',
          details: {
            problem: 'Idempotency-Key must be absent, because the quote identifies the payment',
          },
        },
      ])
    }
    const one = await payByQuote(client, token, first)
    expect(one.status).toBe(201)
    expect((await payByQuote(client, token, first)).body.id).toBe(one.body.id)
  })
})

describe('reading an outgoing payment', () => {
  test('shows its current state to the client that created it', async () => {
    const { world, client, token } = await payingClient()
    const { body } = await pay(client, token, 100)
    const { grantSpentDebitAmount: _, grantSpentReceiveAmount: __, ...created } = body
    expect((await client.getPayment(token, body.id)).body).toEqual(created)
    const id = world.resources.outgoingPayments.idOf(body.id) ?? ''
    await world.resources.outgoingPayments.begin(id)
    const half = { sentAmount: usd(50), deliveredAmount: usd(50) }
    await world.resources.outgoingPayments.reportSent(id, half)
    const { body: read } = await client.getPayment(token, body.id)
    expect(read).toEqual({ ...created, sentAmount: usd(50) })
    const payment = await world.resources.outgoingPayments.get(id)
    expect(payment && world.resources.outgoingPayments.toResource(payment)).toEqual(read)
  })

  const reasons = { reason: 'the account is blocked', publicReason: 'the receiver is closed' }

  test.each([
    ['a failed payment', true],
    ['a cancelled payment', false],
  ])('shows the public reason of %s, and never the private one', async (_, isBegun) => {
    const { world, client, token } = await payingClient()
    const { outgoingPayments } = world.resources
    const created = await pay(client, token, 10, { metadata: { order: 7 } })
    const id = idOfPayment(created)
    if (isBegun) await outgoingPayments.begin(id)
    const ended = await outgoingPayments[isBegun ? 'fail' : 'cancel'](id, reasons)
    expect(ended).toMatchObject({ ok: true, changed: true })
    const { body } = await client.getPayment(token, created.body.id)
    const metadata = { order: 7, cancellationReason: 'the receiver is closed' }
    expect(body).toMatchObject({ failed: true, metadata })
    const list = `${collection}?wallet-address=${encodeURIComponent(alice)}`
    expect((await client.getPayment(token, list)).body.result).toEqual([body])
    expect(JSON.stringify(body)).not.toContain('blocked')
    const record = await outgoingPayments.get(id)
    expect(record).toMatchObject({ metadata: { order: 7 }, failure: 'the account is blocked' })
  })

  test('shows a public reason without metadata of the client, and none that was not published', async () => {
    const { world, client, token } = await payingClient()
    const { outgoingPayments } = world.resources
    const [published, kept] = [await pay(client, token, 10), await pay(client, token, 10)]
    await outgoingPayments.cancel(idOfPayment(published), { publicReason: 'closed' })
    await outgoingPayments.cancel(idOfPayment(kept), { reason: 'blocked' })
    const one = await client.getPayment(token, published.body.id)
    expect(one.body.metadata).toStrictEqual({ cancellationReason: 'closed' })
    const other = await client.getPayment(token, kept.body.id)
    expect(other.body).not.toHaveProperty('metadata')
  })

  test('keeps the metadata of the client if it has a reason of its own', async () => {
    const { world, client, token } = await payingClient()
    const metadata = { cancellationReason: 'of the client' }
    const created = await pay(client, token, 10, { metadata })
    await world.resources.outgoingPayments.cancel(idOfPayment(created), reasons)
    const { body } = await client.getPayment(token, created.body.id)
    expect(body.metadata).toStrictEqual(metadata)
  })

  test('shows it as failed once the host can no longer begin it', async () => {
    const { world, client } = await payingClient({
      auth: { policy: { accessTokens: { lifetimeMs: 10 * day } } },
    })
    const { token } = await grantToPay(world, client)
    const { body } = await pay(client, token, 100)
    world.clock.advance(day - 1)
    expect((await client.getPayment(token, body.id)).body.failed).toBe(false)
    world.clock.advance(1)
    expect((await client.getPayment(token, body.id)).body.failed).toBe(true)
    expect((await spentUnder(client, token)).spentDebitAmount).toEqual(usd(100))
    expect(await world.resources.sweep()).toMatchObject({ lapsed: 1 })
    expect((await spentUnder(client, token)).spentDebitAmount).toEqual(usd(0))
  })

  test('returns the same 404 for an unknown payment and for a payment of another client', async () => {
    const { world, client, token } = await payingClient()
    const { body } = await pay(client, token, 100)
    const other = world.client('other')
    const theirs = await grantToPay(world, other)
    const foreign = await other.getPayment(theirs.token, body.id)
    expect(errorOf(foreign)).toEqual([404, 'not_found'])
    for (const id of ['AAAAAAAAAAAAAAAAAAAAAAAAAAAAAA', 'x'.repeat(500)]) {
      expect(await client.getPayment(token, `${collection}/${id}`)).toEqual(foreign)
    }
  })

  test('with read-all reaches all payments of the wallet address, and no others', async () => {
    const { world, client } = await payingClient()
    const both = [outgoingItem(undefined, alice), outgoingItem(undefined, bob)]
    const { token } = await grantToPay(world, client, both)
    const ours = await pay(client, token, 100)
    const elsewhere = await pay(client, token, 100, { walletAddress: bob })
    const reader = world.client('reader')
    const all = { ...outgoingItem(), actions: ['read-all'] as const }
    const { token: readAll } = await grantToPay(world, reader, [all])
    expect((await reader.getPayment(readAll, ours.body.id)).status).toBe(200)
    expect((await reader.getPayment(readAll, elsewhere.body.id)).status).toBe(404)
  })
})

describe('listing outgoing payments', () => {
  async function threePayments() {
    const { world, client, token } = await payingClient()
    const urls: string[] = []
    for (const value of [1, 2, 3]) {
      world.clock.advance(1)
      urls.push((await pay(client, token, value)).body.id)
    }
    return { world, client, token, urls }
  }

  function list(client: TestClient, token: string, query: Record<string, string> = {}) {
    const url = new URL(collection)
    for (const [name, value] of Object.entries({ 'wallet-address': alice, ...query })) {
      url.searchParams.set(name, value)
    }
    return client.send({ method: 'GET', url: url.href, token })
  }

  const idsIn = ({ body }: Answer) => body.result.map(({ id }: { id: string }) => id)

  test('returns the payments of the client, oldest first, in pages', async () => {
    const { client, token, urls } = await threePayments()
    const all = await list(client, token)
    expect(idsIn(all)).toEqual(urls)
    expect(all.body.result[0]).toStrictEqual((await client.getPayment(token, urls[0] ?? '')).body)
    const first = await list(client, token, { first: '2' })
    expect(idsIn(first)).toEqual(urls.slice(0, 2))
    expect(first.body.pagination).toMatchObject({ hasNextPage: true, hasPreviousPage: false })
    const cursor = first.body.pagination.endCursor
    expect(idsIn(await list(client, token, { first: '2', cursor }))).toEqual(urls.slice(2))
    expect(idsIn(await list(client, token, { last: '1' }))).toEqual(urls.slice(2))
  })

  test('shows no payments of other clients, except with list-all', async () => {
    const { world, urls } = await threePayments()
    const other = world.client('other')
    const own = await grantToPay(world, other)
    expect(idsIn(await list(other, own.token))).toEqual([])
    const all = { ...outgoingItem(), actions: ['list-all'] as const }
    const listAll = await grantToPay(world, other, [all])
    expect(idsIn(await list(other, listAll.token))).toEqual(urls)
  })

  test('is available to the host for all clients', async () => {
    const { world, urls } = await threePayments()
    const { outgoingPayments } = world.resources
    const page = await outgoingPayments.list({ walletAddress: alice, last: 2 })
    expect(page.result.map(({ paymentId }) => paymentId)).toEqual(
      urls.slice(1).map((url) => outgoingPayments.idOf(url)),
    )
    await expect(outgoingPayments.list({ walletAddress: 'alice' })).rejects.toThrow(TypeError)
    expect(outgoingPayments.idOf(`${collection}/a/b`)).toBeUndefined()
  })
})

describe('reading the spent amounts', () => {
  test('returns both amounts, null without a limit, and changes nothing', async () => {
    const { store, written } = watchedStore(memoryStore())
    const { world, client } = await payingClient({ store })
    const ask = async (access: readonly AccessItem[]) => {
      const { token } = await grantToPay(world, client, access)
      const before = written.count()
      const url = `${resourceServer}/outgoing-payment-grant`
      const sign = withoutNonce(world, client)
      const answers = [
        await client.getPayment(token, url, sign),
        await client.getPayment(token, url, sign),
      ]
      expect(answers[1]).toEqual(answers[0])
      expect(written.count()).toBe(before)
      return answers[0]?.body
    }
    const debit = outgoingItem({ debitAmount: usd(10) })
    const receive = outgoingItem({ receiveAmount: eur(10) })
    const interval = 'R/2027-01-01T00:00:00Z/P1D'
    const closedNow = outgoingItem({ interval, debitAmount: usd(10) })
    const none = { spentDebitAmount: null, spentReceiveAmount: null }
    expect(await ask([outgoingItem()])).toStrictEqual(none)
    expect(await ask([closedNow])).toStrictEqual(none)
    expect(await ask([debit])).toStrictEqual({ ...none, spentDebitAmount: usd(0) })
    expect(await ask([closedNow, debit, receive])).toStrictEqual({
      spentDebitAmount: usd(0),
      spentReceiveAmount: eur(0),
    })
  })

  test('needs a token that may create outgoing payments, as at the reference server', async () => {
    const { world, client } = await payingClient()
    const url = `${resourceServer}/outgoing-payment-grant`
    const tokenTo = async (actions: readonly ('create' | 'read' | 'list')[]) => {
      const item = { ...outgoingItem({ debitAmount: usd(10) }), actions } as AccessItem
      return (await grantToPay(world, client, [item])).token
    }
    for (const token of [
      await quoteToken(client),
      await tokenTo(['read']),
      await tokenTo(['list']),
    ]) {
      const answer = await client.getPayment(token, url)
      expect(errorOf(answer)).toEqual([403, 'insufficient_access'])
      expect(answer.body.error.description).toBe('Insufficient Grant')
    }
    const { body } = await client.getPayment(await tokenTo(['create']), url)
    expect(body.spentDebitAmount).toEqual(usd(0))
  })
})
