import { describe, expect, test } from 'vitest'
import {
  type DeliveredEvent,
  type IncomingPaymentCreation,
  type IncomingPaymentView,
  memoryStore,
  type Store,
} from '../../src/index.js'
import { invalidInput } from '../support/invalid-input.js'
import {
  bob,
  carol,
  closed,
  createWorld,
  incomingAccess,
  origin,
  resourceServer,
  type World,
} from '../support/world.js'

const day = 86_400_000
const usd = (value: string) => ({ value, assetCode: 'USD', assetScale: 2 })
const invoice = { walletAddress: bob, idempotencyKey: 'invoice 17', incomingAmount: usd('2500') }

function create(world: World, request: IncomingPaymentCreation = invoice) {
  return world.resources.incomingPayments.create(request)
}

async function created(world: World, request?: IncomingPaymentCreation) {
  const result = await create(world, request)
  if (!result.ok) throw new Error(result.reason)
  return result
}

async function recordOf({ resources }: World, { paymentId }: IncomingPaymentView) {
  const record = await resources.incomingPayments.getRecord(paymentId)
  if (record === undefined) throw new Error('the payment does not exist')
  return record
}

async function eventsOf({ resources }: World): Promise<DeliveredEvent[]> {
  const events: DeliveredEvent[] = []
  await resources.events.drain((event) => void events.push(event))
  return events
}

describe('an incoming payment that the host creates', () => {
  test('has a URL, where a payer reads it with read-all, and everybody its public view', async () => {
    const world = createWorld()
    const metadata = { invoice: 17 }
    const { url, payment, changed } = await created(world, { ...invoice, metadata })
    expect(changed).toBe(true)
    expect(url).toBe(`${resourceServer}/incoming-payments/${payment.paymentId}`)
    expect(world.resources.incomingPayments.toResource(payment).id).toBe(url)
    const client = world.client()
    const token = await client.request([{ type: 'incoming-payment', actions: ['read-all'] }])
    const { status, body } = await client.getPayment(token.body.access_token.value, url)
    expect(status).toBe(200)
    expect(body).toMatchObject({
      id: url,
      walletAddress: bob,
      incomingAmount: usd('2500'),
      metadata,
      expiresAt: new Date(world.clock.now() + 30 * day).toISOString(),
      methods: [{ type: 'ilp' }],
    })
    const path = url.slice(origin.length)
    const bare = await world.handle({
      method: 'GET',
      url: path,
      headers: [],
      body: new Uint8Array(),
    })
    expect(JSON.parse(bare.body ?? '')).toMatchObject({ receivedAmount: usd('0') })
  })

  test('belongs to no client: none can read or complete it as its own', async () => {
    const world = createWorld()
    const { url } = await created(world)
    const client = world.client()
    const actions = ['read', 'complete', 'list'] as const
    const { body } = await client.request([{ ...incomingAccess, actions }])
    const token = body.access_token.value
    expect((await client.getPayment(token, url)).status).toBe(404)
    expect((await client.post(`${url}/complete`, undefined, token)).status).toBe(404)
    const list = `${resourceServer}/incoming-payments?wallet-address=${encodeURIComponent(bob)}`
    const listed = await client.send({ method: 'GET', url: list, token })
    expect(listed.body.result).toEqual([])
  })

  test('receives more than its amount only if the host does not refuse the excess', async () => {
    const world = createWorld()
    const { payment } = await created(world)
    const { receive } = world.resources.incomingPayments
    const funds = { transferId: 'excess', amount: usd('2501') }
    const strictly = { ...funds, refuseExcess: true }
    expect(await receive(payment.paymentId, strictly)).toMatchObject({
      ok: false,
      refusal: 'incoming_amount_exceeded',
    })
    const counted = { ok: true, payment: { receivedAmount: usd('2501'), status: 'completed' } }
    expect(await receive(payment.paymentId, funds)).toMatchObject({ ...counted, changed: true })
    expect(await receive(payment.paymentId, strictly)).toMatchObject({ ...counted, changed: false })
  })

  test('receives what the call says, although the host changes the object while the call runs', async () => {
    const world = createWorld()
    const { payment } = await created(world)
    const funds = { transferId: 'one', amount: usd('10') }
    const arrived = world.resources.incomingPayments.receive(payment.paymentId, funds)
    funds.amount.value = '2500'
    expect(await arrived).toMatchObject({ payment: { receivedAmount: usd('10') } })
    expect((await recordOf(world, payment)).received).toBe('10')
  })

  test('is listed for the host, receives funds, and has events without a client', async () => {
    const world = createWorld()
    const { payment } = await created(world)
    const { incomingPayments } = world.resources
    const { result } = await incomingPayments.list({ walletAddress: bob })
    expect(result.map(({ paymentId }) => paymentId)).toEqual([payment.paymentId])
    const funds = { transferId: 'transfer 1', amount: usd('2500') }
    expect(await incomingPayments.receive(payment.paymentId, funds)).toMatchObject({
      changed: true,
    })
    const events = await eventsOf(world)
    expect(events.map(({ type }) => type)).toEqual([
      'incoming-payment.created',
      'incoming-payment.received',
      'incoming-payment.completed',
    ])
    expect(events[1]).toMatchObject(funds)
    for (const event of [events[0], events[2]]) expect(event).not.toHaveProperty('transferId')
    for (const event of events) {
      expect(event).toMatchObject({ incomingPaymentId: payment.paymentId, walletAddress: bob })
      expect(event).not.toHaveProperty('client')
    }
  })

  test('counts a transfer with an id of up to 1,024 characters, which its event has', async () => {
    const world = createWorld()
    const { payment } = await created(world)
    const { receive } = world.resources.incomingPayments
    const funds = (transferId: string) => ({ transferId, amount: usd('10') })
    const longest = 'Überweisung '.padEnd(1_024, '€')
    expect(await receive(payment.paymentId, funds(longest))).toMatchObject({ changed: true })
    const tooLong = receive(payment.paymentId, funds(`${longest}.`))
    await expect(tooLong).rejects.toEqual(invalidInput('funds.transferId'))
    expect((await eventsOf(world))[1]).toMatchObject(funds(longest))
  })

  test('has an id that the idempotency key does not determine', async () => {
    const [one, other] = [createWorld(), createWorld({ resources: { random: crypto } })]
    expect((await created(one)).payment.paymentId).not.toBe(
      (await created(other)).payment.paymentId,
    )
  })
})

describe('the view of an incoming payment', () => {
  test('has what a host may depend on, and nothing else of the record', async () => {
    const world = createWorld()
    const metadata = { invoice: 17 }
    const { payment } = await created(world, { ...invoice, metadata })
    const { paymentId } = payment
    const now = world.clock.now()
    const view = {
      paymentId,
      walletAddress: bob,
      status: 'open',
      incomingAmount: usd('2500'),
      receivedAmount: usd('0'),
      createdAt: now,
      expiresAt: now + 30 * day,
      metadata,
    }
    expect(payment).toStrictEqual(view)
    const { incomingPayments } = world.resources
    expect(await incomingPayments.get(paymentId)).toStrictEqual(view)
    const query = { walletAddress: bob }
    expect((await incomingPayments.list(query)).result).toStrictEqual([view])
    for await (const each of incomingPayments.iterate(query)) expect(each).toStrictEqual(view)
    const funds = { transferId: 'transfer 1', amount: usd('7') }
    const some = { ...view, receivedAmount: usd('7') }
    expect(await incomingPayments.receive(paymentId, funds)).toMatchObject({ payment: some })
    const completed = { ...some, status: 'completed' }
    const result = await incomingPayments.complete(paymentId)
    expect(result).toStrictEqual({ ok: true, payment: completed, changed: true })
    expect(await recordOf(world, payment)).toMatchObject({ id: paymentId, version: 3 })
  })

  test('names the client that created it', async () => {
    const world = createWorld()
    const client = world.client()
    const { body } = await client.request([incomingAccess])
    await client.createPayment(body.access_token.value, { walletAddress: bob })
    const { result } = await world.resources.incomingPayments.list({ walletAddress: bob })
    expect(result).toMatchObject([{ client: 'https://shop.example' }])
    expect(result[0]).not.toHaveProperty('incomingAmount')
  })

  test('is expired from its expiry on, before a sweep and after it', async () => {
    const world = createWorld()
    const { payment } = await created(world)
    const { incomingPayments, sweep } = world.resources
    const statusNow = async () => (await incomingPayments.get(payment.paymentId))?.status
    world.clock.advance(30 * day)
    expect(await statusNow()).toBe('open')
    world.clock.advance(1)
    expect(await statusNow()).toBe('expired')
    await sweep()
    expect(await statusNow()).toBe('expired')
  })
})

describe('creating an incoming payment again with its idempotency key', () => {
  test('returns the payment as it is now, also after the account was closed', async () => {
    const accounts = [{ url: bob, assetCode: 'USD', assetScale: 2 }]
    const walletAddresses = {
      find: async (url: string) => accounts.find((account) => account.url === url),
    }
    const world = createWorld({ resources: { walletAddresses } })
    const { payment, url } = await created(world)
    await world.resources.incomingPayments.receive(payment.paymentId, {
      transferId: 'transfer 1',
      amount: usd('100'),
    })
    accounts.length = 0
    const { incomingAmount, ...rest } = invoice
    const again = await created(world, { incomingAmount, ...rest })
    expect(again).toMatchObject({ url, changed: false, payment: { receivedAmount: usd('100') } })
    expect(await eventsOf(world)).toHaveLength(2)
  })

  test.each<[string, Partial<IncomingPaymentCreation>]>([
    ['amount', { incomingAmount: usd('2501') }],
    ['wallet address', { walletAddress: carol }],
    ['expiry', { expiresAt: Date.now() * 2 }],
    ['metadata', { metadata: { invoice: 18 } }],
  ])('is refused with another %s', async (_, other) => {
    const world = createWorld()
    const { payment } = await created(world)
    expect(await create(world, { ...invoice, ...other })).toMatchObject({
      ok: false,
      refusal: 'request_differs',
    })
    expect(await world.resources.incomingPayments.get(payment.paymentId)).toEqual(payment)
  })

  test('is refused once a sweep has removed the payment, and possible a day later', async () => {
    const world = createWorld()
    const { payment } = await created(world)
    const { paidRetainUntil } = await recordOf(world, payment)
    const { sweep } = world.resources
    const sweepAll = async () => {
      while ((await sweep()).more);
    }
    world.clock.advance(38 * day)
    await sweepAll()
    expect(await world.resources.incomingPayments.get(payment.paymentId)).toBeUndefined()
    expect(await create(world)).toMatchObject({ ok: false, refusal: 'payment_unknown' })
    world.clock.advance(paidRetainUntil + day - world.clock.now())
    await sweepAll()
    expect(await create(world)).toMatchObject({ ok: true, changed: true })
  })

  test('concurrently creates one payment, which one call created', async () => {
    const world = createWorld()
    const results = await Promise.all(Array.from({ length: 8 }, () => created(world)))
    expect(new Set(results.map(({ url }) => url)).size).toBe(1)
    expect(results.filter(({ changed }) => changed)).toHaveLength(1)
    expect((await eventsOf(world)).map(({ type }) => type)).toEqual(['incoming-payment.created'])
  })

  test('happens inside one call whose commit succeeded without a response', async () => {
    const memory = memoryStore()
    let lost = 0
    const store: Store = {
      ...memory,
      async commit(commit) {
        const committed = await memory.commit(commit)
        if (lost++ === 0) throw new Error('the connection ended')
        return committed
      },
    }
    const world = createWorld({ store })
    expect(await create(world)).toMatchObject({ ok: true, changed: true })
    const { result } = await world.resources.incomingPayments.list({ walletAddress: bob })
    expect(result).toHaveLength(1)
  })
})

describe('creating an incoming payment in a transaction of the host', () => {
  test('writes through the store of the transaction alone', async () => {
    const world = createWorld()
    const inside = memoryStore()
    const { incomingPayments } = world.resources.within(inside)
    const result = await incomingPayments.create(invoice)
    if (!result.ok) throw new Error(result.reason)
    expect(await incomingPayments.get(result.payment.paymentId)).toEqual(result.payment)
    expect(await world.resources.incomingPayments.get(result.payment.paymentId)).toBeUndefined()
  })
})

describe('a request that a client may not make', () => {
  const now = createWorld().clock.now()
  const refusals: readonly [string, object, number, object][] = [
    [
      'an unknown account',
      { walletAddress: `${origin}/nobody` },
      404,
      refused('wallet_address_unknown'),
    ],
    ['an inactive account', { walletAddress: closed }, 400, refused('wallet_address_inactive')],
    ['another asset', { walletAddress: carol }, 400, refused('amount_invalid')],
    ['no amount', { incomingAmount: usd('0') }, 400, refused('amount_invalid')],
    ['the past', { expiresAt: now }, 400, refused('expiry_invalid')],
    ['a late expiry', { expiresAt: now + 31 * day }, 400, refused('expiry_invalid')],
  ]

  function refused(refusal: string) {
    return { ok: false, refusal }
  }

  test.each(refusals)(
    'gets the same refusal from the host: %s',
    async (_, part, status, result) => {
      const world = createWorld()
      expect(await create(world, { ...invoice, ...part })).toMatchObject(result)
      const client = world.client()
      const { body } = await client.request([{ type: 'incoming-payment', actions: ['create'] }])
      const {
        idempotencyKey: _key,
        expiresAt,
        ...asked
      } = { expiresAt: undefined, ...invoice, ...part }
      const iso = expiresAt === undefined ? {} : { expiresAt: new Date(expiresAt).toISOString() }
      const answer = await client.createPayment(body.access_token.value, { ...asked, ...iso })
      expect(answer.status).toBe(status)
      expect(await eventsOf(world)).toEqual([])
    },
  )

  test.each<[string, object]>([
    ['request.incomingAmount.value', { incomingAmount: usd('-1') }],
    ['request.incomingAmount.value', { incomingAmount: usd('1.5') }],
    ['request.incomingAmount.assetScale', { incomingAmount: { ...usd('1'), assetScale: 1.5 } }],
    ['request.expiresAt', { expiresAt: -1 }],
    ['request.expiresAt', { expiresAt: Number.MAX_SAFE_INTEGER }],
    ['request.metadata', { metadata: { text: 'x'.repeat(9_000) } }],
    ['request.metadata', { metadata: { at: 17n } }],
    ['request.walletAddress', { walletAddress: 'ftp://wallet.example/bob' }],
  ])('is an invalid argument for the host: %s', async (argument, part) => {
    const world = createWorld()
    const failed = create(world, { ...invoice, ...part } as IncomingPaymentCreation)
    await expect(failed).rejects.toEqual(invalidInput(argument))
  })
})
