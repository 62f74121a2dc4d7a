import { describe, expect, test } from 'vitest'
import {
  type MayPay,
  type MayPayAnswer,
  memoryStore,
  type Pricing,
  type WalletAddress,
} from '../../src/index.js'
import { authorities, payerOf } from '../support/authorities.js'
import { hostCall } from '../support/host-call.js'
import { type Fate, fates, lyingStore } from '../support/proxy-store.js'
import { type SignOptions, withHeader } from '../support/sign.js'
import {
  createSpendingWorld,
  grantToPay,
  listPrice,
  outgoingItem,
  pay,
  payByQuote,
  priceList,
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
  alice,
  answerOf,
  bob,
  resourceServer,
  type TestClient,
  type WorldOptions,
} from '../support/world.js'

const minute = 60_000

const ways = authorities.flatMap((authority) =>
  (['quote', 'key'] as const).map((by) => ({ authority, by })),
)

describe.each(ways)('a repeated payment by $authority with its $by', ({ authority, by }) => {
  /** What the grant of a payment has spent, if it has one. */
  const granted = (value: number) =>
    authority === 'a client under a grant' ? usd(value) : undefined

  async function setUp(options: WorldOptions = {}) {
    const world = createSpendingWorld(options)
    const payer = await payerOf(world, authority)
    const { id } = by === 'quote' ? (await payer.quote()).body : { id: '' }
    const ask = (more: object = {}) =>
      by === 'quote' ? payer.payByQuote(id, more) : payer.pay(1000, more, 'the-key')
    const spent = async () =>
      payer.granted &&
      (await spentUnder(payer.granted.client, payer.granted.token)).spentDebitAmount
    return { world, payer, ask, spent }
  }

  test('returns the existing payment, which counts once', async () => {
    const { ask, spent } = await setUp()
    const [one, two] = [await ask(), await ask()]
    expect(two).toEqual(one)
    expect(await spent()).toEqual(granted(1000))
  })

  test('returns the current state of the payment', async () => {
    const { world, ask, spent } = await setUp()
    const id = idOfPayment(await ask())
    const { outgoingPayments } = world.resources
    await outgoingPayments.begin(id)
    await outgoingPayments.fail(id, { sentAmount: usd(300) })
    expect((await ask()).body).toMatchObject({
      failed: true,
      sentAmount: usd(300),
    })
    expect(await spent()).toEqual(granted(300))
  })

  test('succeeds after the account is closed', async () => {
    const accounts: WalletAddress[] = [{ url: alice, assetCode: 'USD', assetScale: 2 }]
    const walletAddresses = {
      find: async (url: string) => accounts.find((account) => account.url === url),
    }
    const { ask } = await setUp({ resources: { walletAddresses } })
    const one = await ask()
    accounts[0] = { url: alice, assetCode: 'USD', assetScale: 2, active: false }
    expect(await ask()).toEqual(one)
    expect(errorOf(await ask({ metadata: {} }))).toEqual([422, 'request_differs'])
    accounts.pop()
    expect(await ask()).toEqual(one)
  })

  test('is refused with another body, and creates no payment', async () => {
    const { ask, spent } = await setUp()
    const one = await ask({ metadata: { note: 'one' } })
    for (const metadata of [{ note: 'two' }, {}, undefined]) {
      const differs = await ask({ metadata })
      expect([differs.status, differs.body.error]).toEqual([
        422,
        { code: 'request_differs', description: 'Already used for another payment' },
      ])
    }
    expect(await ask({ metadata: { note: 'one' } })).toEqual(one)
    expect(await spent()).toEqual(granted(1000))
  })

  test.each(fates.filter((fate) => fate !== 'works'))(
    'creates one payment and returns it immediately, even if its commit %s',
    async (fate) => {
      const next: Fate[] = []
      const { store, records } = lyingStore(memoryStore(), (method) =>
        method === 'commit' ? (next.pop() ?? 'works') : 'works',
      )
      const { ask, spent } = await setUp({ store })
      next.push(fate)
      const one = await ask()
      expect(one.status).toBe(201)
      expect(await ask()).toEqual(one)
      const payments = (await records()).filter(([kind]) => kind === 'outgoing-payment')
      expect(payments.map(([, { id }]) => id.slice(8))).toEqual([idOfPayment(one)])
      expect(await spent()).toEqual(granted(1000))
    },
  )

  test('is busy while another asks the host, and then gets the payment', async () => {
    let decide: (answer: MayPayAnswer) => void = () => {}
    const decision = new Promise<MayPayAnswer>((resolve) => {
      decide = resolve
    })
    let isAsked = false
    const mayPay: MayPay = () => {
      isAsked = true
      return decision
    }
    const { ask } = await setUp({ resources: { policy: { mayPay }, storeTimeoutMs: 500 } })
    const first = ask()
    await expect.poll(() => isAsked).toBe(true)
    expect(errorOf(await ask())).toEqual([503, 'busy'])
    decide({ ok: true })
    expect((await ask()).body.id).toBe((await first).body.id)
  })

  test('succeeds despite later changes of the quote and the price', async () => {
    let takes = true
    const price: Pricing['price'] = async (asked) =>
      takes ? priceList.price(asked, hostCall) : { ok: false, refusal: 'receiver_invalid' }
    const { world, ask, payer } = await setUp({ resources: { pricing: { price } } })
    const one = await ask()
    takes = false
    for (const ms of [0, 6 * minute]) {
      world.clock.advance(ms)
      expect((await ask()).body.id).toBe(one.body.id)
      expect(errorOf(await payer.pay(1))).toEqual([400, 'invalid_receiver'])
    }
  })

  test('in ten concurrent requests creates one payment', async () => {
    const { ask, spent } = await setUp()
    const answers = await Promise.all(Array.from({ length: 10 }, () => ask()))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201]))
    expect(new Set(answers.map(idOfPayment)).size).toBe(1)
    expect(await spent()).toEqual(granted(1000))
  })
})

/** The two ways to create a payment that survive a lost response. */
const repeatable = [
  {
    by: 'a quote',
    async request(client: TestClient, token: string) {
      const quoteId = await quoteUrl(client)
      return (more: object = {}, sign: Partial<SignOptions> = {}) =>
        payByQuote(client, token, quoteId, more, sign)
    },
  },
  {
    by: 'an idempotency key',
    async request(client: TestClient, token: string) {
      const key = withKey('the-key')
      return (more: object = {}, sign: Partial<SignOptions> = {}) =>
        pay(client, token, 1000, more, { ...key, ...sign })
    },
  },
]

describe.each(repeatable)('a repeated request of a client with $by', ({ request }) => {
  test('gets 503 while another request asks the host, which is no error, and then the payment', async () => {
    let decide: (answer: MayPayAnswer) => void = () => {}
    const decision = new Promise<MayPayAnswer>((resolve) => {
      decide = resolve
    })
    let isAsked = false
    const mayPay: MayPay = () => {
      isAsked = true
      return decision
    }
    const { world, client, token } = await payingClient({
      resources: { policy: { mayPay }, storeTimeoutMs: 500 },
    })
    const ask = await request(client, token)
    const first = ask()
    await expect.poll(() => isAsked).toBe(true)
    const again = () => ask({}, { nonce: 'the-same-bytes' })
    expect(errorOf(await again())).toEqual([503, 'busy'])
    expect(world.errors).toEqual([])
    expect(world.refusals.at(-1)).toMatchObject({
      refusal: 'busy',
      reason: 'an earlier request for the payment is still undecided',
    })
    decide({ ok: true })
    const { status, body } = await first
    expect(status).toBe(201)
    const repeated = await again()
    expect([repeated.status, repeated.body.id]).toEqual([201, body.id])
  })

  test('of which both read before either writes, gets 503, and then the payment for the same bytes', async () => {
    let decide: (answer: MayPayAnswer) => void = () => {}
    const decision = new Promise<MayPayAnswer>((resolve) => {
      decide = resolve
    })
    const { client, token } = await payingClient({
      resources: { policy: { mayPay: () => decision }, storeTimeoutMs: 500 },
    })
    const ask = await request(client, token)
    const asks = ['n1', 'n2'].map((nonce) => () => ask({}, { nonce }))
    const answers = asks.map((each) => each())
    const refused = await Promise.race(answers)
    expect(errorOf(refused)).toEqual([503, 'busy'])
    decide({ ok: true })
    const all = await Promise.all(answers)
    const created = all.find(({ status }) => status === 201)
    expect((await asks[all.indexOf(refused)]?.())?.body).toEqual(created?.body)
  })

  test('succeeds despite later changes of the quote, price, window and budget', async () => {
    let takes = true
    const price: Pricing['price'] = async (asked) =>
      takes ? priceList.price(asked, hostCall) : { ok: false, refusal: 'receiver_invalid' }
    const { world, client } = await payingClient({ resources: { pricing: { price } } })
    const interval = 'R1/2026-11-21T12:00:00Z/PT6M'
    const bounded = outgoingItem({ interval, debitAmount: usd(1000) })
    const access = [bounded, outgoingItem(undefined, bob)]
    const { token } = await grantToPay(world, client, access)
    const ask = await request(client, token)
    const one = await ask()
    expect(one.status).toBe(201)
    takes = false
    for (const ms of [0, 5 * minute]) {
      world.clock.advance(ms)
      expect(await ask()).toEqual(one)
      expect((await pay(client, token, 1)).status).not.toBe(201)
    }
    // The spent amounts are those of the windows that are open now, as in `GET /outgoing-payment-grant`.
    const { grantSpentDebitAmount: _, grantSpentReceiveAmount: __, ...payment } = one.body
    world.clock.advance(4 * minute)
    expect((await ask()).body).toEqual(payment)
    expect((await pay(client, token, 1)).status).not.toBe(201)
  })

  test('succeeds with another token of the same client', async () => {
    const { world, client, token, accessToken } = await payingClient()
    const quoteId = await quoteUrl(client)
    const again = (value: string) =>
      request === repeatable[0]?.request
        ? payByQuote(client, value, quoteId)
        : pay(client, value, 1000, {}, withKey('the-key'))
    const one = await again(token)
    const rotated = await client.rotate(accessToken)
    expect(await again(rotated.body.access_token.value)).toEqual(one)
    const { token: second } = await grantToPay(world, client)
    expect((await again(second)).body.id).toBe(one.body.id)
    expect((await spentUnder(client, second)).spentDebitAmount).toEqual(usd(0))
  })

  test('with the same bytes and no nonce is not a replay', async () => {
    const { world, client, token } = await payingClient()
    const ask = await request(client, token)
    const sign = withoutNonce(world, client)
    const one = await ask({}, sign)
    expect(await ask({}, sign)).toEqual(one)
    const many = await Promise.all(Array.from({ length: 10 }, () => ask({}, sign)))
    for (const each of many) expect(each).toEqual(one)
  })

  test('with the same bytes and a nonce gets the payment as it was created, without what is spent now', async () => {
    const { world, client, token } = await payingClient()
    const ask = await request(client, token)
    const one = await ask({}, { nonce: 'n1' })
    expect(one.status).toBe(201)
    const { grantSpentDebitAmount: _, grantSpentReceiveAmount: __, ...created } = one.body
    const { outgoingPayments } = world.resources
    await outgoingPayments.begin(idOfPayment(one))
    await outgoingPayments.fail(idOfPayment(one), { sentAmount: usd(300), publicReason: 'no' })
    const two = await ask({}, { nonce: 'n1' })
    expect([two.status, two.body]).toEqual([201, created])
  })

  test('with the same nonce and other bytes is a replay', async () => {
    const { world, client, token } = await payingClient()
    const ask = await request(client, token)
    expect((await ask({}, { nonce: 'n1' })).status).toBe(201)
    world.clock.advance(1_000)
    expect(errorOf(await ask({}, { nonce: 'n1' }))).toEqual([401, 'signature_used'])
  })

  test('in ten concurrent requests, with equal bytes or not, creates one payment', async () => {
    const { world, client, token } = await payingClient()
    const ask = await request(client, token)
    const sign = withoutNonce(world, client)
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, index) => ask({}, index % 2 === 0 ? sign : {})),
    )
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201]))
    expect(new Set(answers.map(idOfPayment)).size).toBe(1)
    expect((await spentUnder(client, token)).spentDebitAmount).toEqual(usd(1000))
  })
})

describe('an idempotency key', () => {
  test('finds the payment of an equal request that was created while a higher price was determined', async () => {
    let other: ReturnType<typeof pay> | undefined
    const price: Pricing['price'] = async (asked) => {
      if (other !== undefined) return priceList.price(asked, hostCall)
      other = pay(client, token, 100, {}, withKey('same'))
      await other
      return { ...listPrice(asked), receiveAmount: usd(200) }
    }
    const { world, client } = await payingClient({ resources: { pricing: { price } } })
    const { token } = await grantToPay(world, client, [outgoingItem({ receiveAmount: usd(100) })])
    const answer = await pay(client, token, 100, {}, withKey('same'))
    expect(answer.status).toBe(201)
    expect(answer).toEqual(await other)
  })

  test('belongs to its client; the same key of another client creates another payment', async () => {
    const { world, client, token } = await payingClient()
    const other = world.client('other')
    const theirs = await grantToPay(world, other)
    const one = await pay(client, token, 100, {}, withKey('same'))
    const two = await pay(other, theirs.token, 100, {}, withKey('same'))
    expect([one.status, two.status]).toEqual([201, 201])
    expect(one.body.id).not.toBe(two.body.id)
  })

  test('distinguishes payments that are otherwise equal', async () => {
    const { client, token } = await payingClient()
    const one = await pay(client, token, 100, {}, withKey('one'))
    const two = await pay(client, token, 100, {}, withKey('two'))
    expect(one.body.id).not.toBe(two.body.id)
    expect(two.body.grantSpentDebitAmount).toEqual(usd(200))
  })

  test('can be used again after a refusal', async () => {
    const { client, token } = await payingClient()
    expect(errorOf(await pay(client, token, 2501, {}, withKey('one')))[0]).toBe(403)
    expect((await pay(client, token, 2500, {}, withKey('one'))).status).toBe(201)
  })

  test('is not used later by the same bytes as a refused request', async () => {
    const { world, client, token } = await payingClient()
    const all = await pay(client, token, 2500)
    const sign = { ...withKey('one'), ...withoutNonce(world, client) }
    const refused = await pay(client, token, 100, {}, sign)
    expect(refused.status).toBe(403)
    await world.resources.outgoingPayments.cancel(idOfPayment(all))
    expect(await pay(client, token, 100, {}, sign)).toEqual(refused)
    expect((await pay(client, token, 100, {}, withKey('one'))).status).toBe(201)
  })

  test('is one key with quotes, as a String of Structured Fields, and without', async () => {
    const { client, token } = await payingClient()
    for (const [quoted, bare] of [
      ['"order-7"', 'order-7'],
      ['"say \\"hi\\"."', undefined],
      ['"a\\\\b"', 'a\\b'],
    ]) {
      const one = await pay(client, token, 100, {}, withKey(quoted ?? ''))
      expect(one.status).toBe(201)
      if (bare === undefined) continue
      expect(await pay(client, token, 100, {}, withKey(bare))).toEqual(one)
      expect(await pay(client, token, 100, {}, withKey(quoted ?? ''))).toEqual(one)
    }
  })

  test.each(['"a', '"a" b', '"a";b', '"a", "b"', '""', '"\\a"', `"${'x'.repeat(256)}"`])(
    'must be one String, not %s',
    async (key) => {
      const { client, token } = await payingClient()
      expect(errorOf(await pay(client, token, 1, {}, withKey(key)))).toEqual([
        400,
        'invalid_request',
      ])
    },
  )

  test('must be covered by the signature, so that an attacker cannot remove or replace it', async () => {
    const { client, token } = await payingClient()
    const components = ['@method', '@target-uri', 'authorization', 'content-digest']
    const covered = (names: readonly string[]) => ({
      ...withKey('one'),
      components: names.map((name) => `"${name}"`),
    })
    const uncovered = await pay(client, token, 100, {}, covered(components))
    expect(errorOf(uncovered)).toEqual([401, 'invalid_signature'])
    expect((await spentUnder(client, token)).spentDebitAmount).toEqual(usd(0))
    const all = covered([...components, 'idempotency-key'])
    expect((await pay(client, token, 100, {}, all)).status).toBe(201)
  })

  test('makes no other payment of a captured request or of its repeat when it is removed or replaced', async () => {
    const { world, client, token } = await payingClient()
    const body = { walletAddress: alice, incomingPayment: shopReceiver, debitAmount: usd(100) }
    const url = `${resourceServer}/outgoing-payments`
    const sign = () => {
      const content = { method: 'POST', url, token, body: JSON.stringify(body) }
      return client.sign({ ...content, ...withoutNonce(world, client), ...withKey('one') })
    }
    const first = sign()
    world.clock.advance(1_000)
    for (const captured of [first, sign()]) {
      expect((await world.handle(captured)).status).toBe(201)
      for (const keys of [[], ['two']]) {
        const changed = withHeader(captured, 'Idempotency-Key', ...keys)
        expect(errorOf(answerOf(await world.handle(changed)))).toEqual([401, 'invalid_signature'])
      }
    }
    expect((await spentUnder(client, token)).spentDebitAmount).toEqual(usd(100))
  })

  test.each(['', 'a b', 'x'.repeat(256), 'a\tb'])(
    'must consist of 1 to 255 visible characters, or be a String, not "%s"',
    async (key) => {
      const { client, token } = await payingClient()
      expect(errorOf(await pay(client, token, 1, {}, withKey(key)))).toEqual([
        400,
        'invalid_request',
      ])
    },
  )

  test.each(['a', '!', '"8e03978e-40d5-43e8-bc93-6894a57f9324"', 'x'.repeat(255), 'a,b'])(
    'may be %s',
    async (key) => {
      const { client, token } = await payingClient()
      expect((await pay(client, token, 1, {}, withKey(key))).status).toBe(201)
    },
  )

  test('must not repeat in a request', async () => {
    const { client, token } = await payingClient()
    const headers = [...(withKey('a').headers ?? []), ...(withKey('b').headers ?? [])]
    expect(errorOf(await pay(client, token, 1, {}, { headers }))).toEqual([400, 'invalid_request'])
  })
})

describe('a payment with neither quote nor key', () => {
  test('is created by each request, and once for equal bytes', async () => {
    const { world, client, token } = await payingClient()
    const [one, two] = [await pay(client, token, 100), await pay(client, token, 100)]
    expect(one.body.id).not.toBe(two.body.id)
    const sign = withoutNonce(world, client)
    const first = await pay(client, token, 100, {}, sign)
    expect(first.status).toBe(201)
    const repeated = await pay(client, token, 100, {}, sign)
    expect([repeated.status, repeated.body.id]).toEqual([201, first.body.id])
    expect((await spentUnder(client, token)).spentDebitAmount).toEqual(usd(300))
  })

  test('is not created later by the same bytes as a refused request', async () => {
    const { world, client, token } = await payingClient()
    const all = await pay(client, token, 2500)
    const sign = withoutNonce(world, client)
    const refused = await pay(client, token, 100, {}, sign)
    expect(refused.status).toBe(403)
    await world.resources.outgoingPayments.cancel(idOfPayment(all))
    expect(await pay(client, token, 100, {}, sign)).toEqual(refused)
    expect((await pay(client, token, 100)).status).toBe(201)
  })

  test.each(fates.filter((fate) => fate !== 'works'))(
    'is created once, even if its commit %s',
    async (fate) => {
      const next: Fate[] = []
      const { store, records } = lyingStore(memoryStore(), (method) =>
        method === 'commit' ? (next.pop() ?? 'works') : 'works',
      )
      const { world, client, token } = await payingClient({ store })
      const sign = withoutNonce(world, client)
      next.push(fate)
      const one = await pay(client, token, 1000, {}, sign)
      expect(one.status).toBe(201)
      const payments = (await records()).filter(([kind]) => kind === 'outgoing-payment')
      expect(payments.map(([, { id }]) => id.slice(8))).toEqual([idOfPayment(one)])
      expect((await spentUnder(client, token)).spentDebitAmount).toEqual(usd(1000))
    },
  )
})
