import { describe, expect, test } from 'vitest'
import {
  alice,
  bob,
  closed,
  createWorld,
  incomingAccess,
  origin,
  resourceServer,
  type TestClient,
  type World,
} from '../support/world.js'

const collection = `${resourceServer}/incoming-payments`
const usd = (value: string) => ({ value, assetCode: 'USD', assetScale: 2 })

async function setUp(options: Parameters<typeof createWorld>[0] = {}) {
  const world = createWorld(options)
  const client = world.client()
  return { world, client, token: await tokenOf(client) }
}

async function tokenOf(client: TestClient, access: object = incomingAccess): Promise<string> {
  const { body } = await client.request([{ ...incomingAccess, ...access }])
  return body.access_token.value
}

let transfers = 0

function arrive(world: World, url: string, value: string, transferId = `transfer ${transfers++}`) {
  const paymentId = world.resources.incomingPayments.idOf(url) ?? ''
  return world.resources.incomingPayments.receive(paymentId, { transferId, amount: usd(value) })
}

describe('creating an incoming payment', () => {
  test('works in a wallet without payment methods', async () => {
    const paymentMethods = { detailsOf: async () => [], paymentIdOf: () => undefined }
    const { world, client, token } = await setUp({ resources: { paymentMethods } })
    const created = await client.createPayment(token, { walletAddress: bob })
    expect([created.status, created.body.methods]).toEqual([201, []])
    expect(await arrive(world, created.body.id, '100')).toMatchObject({ ok: true, changed: true })
    const read = await client.getPayment(token, created.body.id)
    expect(read).toMatchObject({ status: 200, body: { methods: [], receivedAmount: usd('100') } })
    expect(await world.resources.incomingPayments.findByIlpAddress('g.wallet.x')).toBeUndefined()
  })

  test('returns 201 with the complete payment and nothing received', async () => {
    const { world, client, token } = await setUp()
    const metadata = {
      invoice: 'INV-1',
      lines: [{ no: 1, text: 'caffè\u0000\ud800' }],
      constructor: null,
    }
    const { status, headers, body } = await client.createPayment(token, {
      walletAddress: bob,
      incomingAmount: usd('2500'),
      expiresAt: '2026-11-22T14:00:00.5+02:00',
      metadata,
    })
    expect(status).toBe(201)
    expect(headers['content-type']).toBe('application/json')
    expect(body).toEqual({
      id: expect.stringMatching(`^${collection}/[0-9a-f-]{36}$`),
      walletAddress: bob,
      completed: false,
      incomingAmount: usd('2500'),
      receivedAmount: usd('0'),
      expiresAt: '2026-11-22T12:00:00.500Z',
      createdAt: new Date(world.clock.now()).toISOString(),
      metadata,
      methods: [
        {
          type: 'ilp',
          ilpAddress: expect.stringMatching(/^test\.wallet\.[0-9a-f-]{36}\.[\w-]{8}$/),
          sharedSecret: expect.stringMatching(/^[\w-]{43}$/),
        },
      ],
    })
  })

  test('needs only a wallet address, and expires after 30 days by default', async () => {
    const { world, client, token } = await setUp()
    const { body } = await client.createPayment(token, { walletAddress: bob })
    const expiresAt = new Date(world.clock.now() + 30 * 86_400_000).toISOString()
    expect(body).toMatchObject({ expiresAt })
    expect(body).not.toHaveProperty('incomingAmount')
    expect(body).not.toHaveProperty('metadata')
  })

  test('gives each payment unique details, which identify it', async () => {
    const { world, client, token } = await setUp()
    const one = (await client.createPayment(token, { walletAddress: bob })).body
    const two = (await client.createPayment(token, { walletAddress: bob })).body
    const [a, b] = [one.methods[0], two.methods[0]]
    expect(a.ilpAddress).not.toBe(b.ilpAddress)
    expect(a.sharedSecret).not.toBe(b.sharedSecret)
    for (const address of [b.ilpAddress, `${b.ilpAddress}.connection~1`]) {
      const found = await world.resources.incomingPayments.findByIlpAddress(address)
      expect(world.resources.incomingPayments.idOf(two.id)).toBe(found?.paymentId)
    }
    for (const address of [
      'test.wallet',
      'test.wallet.unknown',
      'g.elsewhere.x',
      `x${a.ilpAddress}`,
    ]) {
      expect(await world.resources.incomingPayments.findByIlpAddress(address)).toBeUndefined()
    }
  })

  test('with the same bytes twice in one second creates two payments', async () => {
    const { client, token } = await setUp()
    const parameters = [`keyid="${client.key.kid}"`, `created=${Date.UTC(2026, 10, 21, 12) / 1000}`]
    const one = await client.createPayment(token, { walletAddress: bob }, { parameters })
    const two = await client.createPayment(token, { walletAddress: bob }, { parameters })
    expect([one.status, two.status]).toEqual([201, 201])
    expect(one.body.id).not.toBe(two.body.id)
  })

  test('with the same bytes again is refused if the host chooses that', async () => {
    const { client, token } = await setUp({
      resources: { compatibility: { repeatedRequests: 'refuse' } },
    })
    const parameters = [`keyid="${client.key.kid}"`, `created=${Date.UTC(2026, 10, 21, 12) / 1000}`]
    const one = await client.createPayment(token, { walletAddress: bob }, { parameters })
    const two = await client.createPayment(token, { walletAddress: bob }, { parameters })
    expect([one.status, two.status]).toEqual([201, 409])
  })

  test('consumes a nonce once for each key, even among concurrent requests', async () => {
    const { world, client, token } = await setUp()
    const answers = await Promise.all(
      Array.from({ length: 20 }, () =>
        client.createPayment(token, { walletAddress: bob }, { nonce: 'n1' }),
      ),
    )
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1)
    expect(answers.filter(({ status }) => status === 409)).toHaveLength(19)
    const other = world.client('other')
    const theirs = await tokenOf(other)
    expect(
      (await other.createPayment(theirs, { walletAddress: bob }, { nonce: 'n1' })).status,
    ).toBe(201)
  })

  test('consumes no nonce if the signature is invalid', async () => {
    const { world, client, token } = await setUp()
    const mallory = { ...world.client('mallory').key, kid: client.key.kid }
    const forged = await client.createPayment(
      token,
      { walletAddress: bob },
      { nonce: 'n1', key: mallory },
    )
    expect(forged.status).toBe(401)
    expect(
      (await client.createPayment(token, { walletAddress: bob }, { nonce: 'n1' })).status,
    ).toBe(201)
  })

  test.each([
    [
      'an unknown wallet address',
      { walletAddress: `${origin}/nobody` },
      404,
      'unknown_wallet_address',
    ],
    ['an inactive wallet address', { walletAddress: closed }, 400, 'inactive_wallet_address'],
    ['another asset', { incomingAmount: { ...usd('1'), assetCode: 'EUR' } }, 400, 'invalid_amount'],
    ['another scale', { incomingAmount: { ...usd('1'), assetScale: 3 } }, 400, 'invalid_amount'],
    ['an amount of zero', { incomingAmount: usd('0') }, 400, 'invalid_amount'],
    ['a past expiry', { expiresAt: '2026-11-21T12:00:00Z' }, 400, 'invalid_expiry'],
    ['an expiry beyond 30 days', { expiresAt: '2026-12-21T12:00:00.001Z' }, 400, 'invalid_expiry'],
  ])('is refused for %s', async (_, changes, status, code) => {
    const world = createWorld()
    const client = world.client()
    const { body: granted } = await client.request([
      { type: 'incoming-payment', actions: ['create'] },
    ])
    const answer = await client.createPayment(granted.access_token.value, {
      walletAddress: bob,
      ...changes,
    })
    expect([answer.status, answer.body.error.code]).toEqual([status, code])
  })

  test.each([
    ['walletAddress', {}],
    ['walletAddress', { walletAddress: 42 }],
    ['walletAddress', { walletAddress: 'nonsense' }],
    ['surplus', { walletAddress: bob, surplus: 1 }],
    [
      'incomingAmount.value',
      { walletAddress: bob, incomingAmount: { ...usd('18446744073709551616') } },
    ],
    ['incomingAmount.value', { walletAddress: bob, incomingAmount: { ...usd(' 5 ') } }],
    ['incomingAmount.value', { walletAddress: bob, incomingAmount: { ...usd('5'), value: 5 } }],
    [
      'incomingAmount.assetScale',
      { walletAddress: bob, incomingAmount: { ...usd('5'), assetScale: 256 } },
    ],
    ['expiresAt', { walletAddress: bob, expiresAt: '2026-02-30T00:00:00Z' }],
    ['expiresAt', { walletAddress: bob, expiresAt: '2026-12-01T00:00:00.0001' }],
    ['walletAddress', { walletAddress: null }],
    ['incomingAmount.value', { walletAddress: bob, incomingAmount: { ...usd('5'), value: null } }],
    ['metadata', { walletAddress: bob, metadata: [] }],
    ['metadata', { walletAddress: bob, metadata: { long: 'x'.repeat(8192) } }],
  ])('reports %s as invalid, without its value', async (path, body) => {
    const { client, token } = await setUp()
    const answer = await client.createPayment(token, body)
    expect([answer.status, answer.body.error.code]).toEqual([400, 'invalid_request'])
    expect(answer.body.error.details.path).toBe(path)
    expect(JSON.stringify(answer.body)).not.toMatch(/nonsense|18446744073709551616|02-30|xxxx/)
  })

  test('treats spellings of one wallet address as one', async () => {
    const { client, token } = await setUp()
    const answer = await client.createPayment(token, {
      walletAddress: 'https://WALLET.example:443/bob/',
    })
    expect(answer.body.walletAddress).toBe(bob)
  })
})

describe('funds that arrive', () => {
  test('complete a payment when they reach or exceed its amount, and are rejected afterwards', async () => {
    const { world, client, token } = await setUp()
    const { body } = await client.createPayment(token, {
      walletAddress: bob,
      incomingAmount: usd('100'),
    })
    expect(await arrive(world, body.id, '60')).toMatchObject({
      ok: true,
      payment: { receivedAmount: usd('60'), status: 'open' },
    })
    expect(await arrive(world, body.id, '41')).toMatchObject({
      ok: true,
      payment: { receivedAmount: usd('101'), status: 'completed' },
    })
    expect(await arrive(world, body.id, '1')).toMatchObject({
      ok: false,
      refusal: 'payment_completed',
    })
    const { body: read } = await client.getPayment(token, body.id)
    expect(read).toMatchObject({ completed: true, receivedAmount: usd('101'), methods: [] })
  })

  test('are accepted until the instant of expiry, and rejected after it', async () => {
    const { world, client, token } = await setUp()
    const expiresAt = new Date(world.clock.now() + 1_000).toISOString()
    const { body } = await client.createPayment(token, { walletAddress: bob, expiresAt })
    world.clock.advance(1_000)
    expect(await arrive(world, body.id, '1', 'in time')).toMatchObject({ ok: true })
    world.clock.advance(1)
    expect(await arrive(world, body.id, '1')).toMatchObject({ refusal: 'payment_expired' })
    expect(await arrive(world, body.id, '1', 'in time')).toMatchObject({
      ok: true,
      payment: { receivedAmount: usd('1') },
    })
    const { body: read } = await client
      .getPayment(token, body.id)
      .then((answer) => (answer.status === 200 ? answer : Promise.reject(answer.body)))
    expect(read).toMatchObject({ completed: false, methods: [] })
  })

  test('for an unknown payment are rejected as unknown', async () => {
    const { world } = await setUp()
    expect(await arrive(world, `${collection}/unknown`, '5')).toMatchObject({
      refusal: 'payment_unknown',
    })
    expect(
      world.resources.incomingPayments.idOf('https://elsewhere.example/incoming-payments/1'),
    ).toBeUndefined()
    expect(world.resources.incomingPayments.idOf(`${collection}/a/b`)).toBeUndefined()
  })
})

describe('reading an incoming payment', () => {
  test('shows it to its client, with payment methods while it can be paid', async () => {
    const { client, token } = await setUp()
    const { body } = await client.createPayment(token, { walletAddress: bob })
    expect((await client.getPayment(token, body.id)).body).toEqual(body)
  })

  test('is possible with another token of the same client after the first one expires', async () => {
    const { world, client, token } = await setUp()
    const { body } = await client.createPayment(token, { walletAddress: bob })
    world.clock.advance(600_000)
    expect((await client.getPayment(token, body.id)).status).toBe(401)
    expect((await client.getPayment(await tokenOf(client), body.id)).status).toBe(200)
  })

  test('returns the same 404 for an unknown payment and for a payment of another client', async () => {
    const { world, client, token } = await setUp()
    const { body } = await client.createPayment(token, { walletAddress: bob })
    const other = world.client('other')
    const foreign = await other.getPayment(await tokenOf(other), body.id)
    const unknown = await client.getPayment(token, `${collection}/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAA`)
    const odd = await client.getPayment(token, `${collection}/${'x'.repeat(500)}`)
    expect(foreign.status).toBe(404)
    expect(unknown).toEqual(foreign)
    expect(odd).toEqual(foreign)
  })

  test('with read-all without an identifier is possible for any client that knows its URL', async () => {
    const { world, client, token } = await setUp()
    const { body } = await client.createPayment(token, { walletAddress: bob })
    const payer = world.client('payer')
    const granted = await payer.request([{ type: 'incoming-payment', actions: ['read-all'] }])
    const readAll = granted.body.access_token.value
    const answer = await payer.getPayment(readAll, body.id)
    expect(answer.status).toBe(200)
    expect(answer.body).toEqual(body)
    expect(answer.body.methods).toHaveLength(1)
  })

  test('with read-all and an identifier reaches all payments of that wallet address, and no others', async () => {
    const { world, client, token } = await setUp()
    const forBob = (await client.createPayment(token, { walletAddress: bob })).body
    const toAlice = await tokenOf(client, { identifier: alice })
    const forAlice = (await client.createPayment(toAlice, { walletAddress: alice })).body
    const reader = world.client('reader')
    const readAll = await tokenOf(reader, { actions: ['read-all'], identifier: alice })
    expect((await reader.getPayment(readAll, forAlice.id)).status).toBe(200)
    expect((await reader.getPayment(readAll, forBob.id)).status).toBe(404)
  })

  test('with read-all does not allow listing, completing or creating', async () => {
    const { world, client, token } = await setUp()
    const { body } = await client.createPayment(token, { walletAddress: bob })
    const payer = world.client('payer')
    const granted = await payer.request([{ type: 'incoming-payment', actions: ['read-all'] }])
    const readAll = granted.body.access_token.value
    const list = `${collection}?wallet-address=${encodeURIComponent(bob)}`
    const answers = [
      await payer.getPayment(readAll, list),
      await payer.post(`${body.id}/complete`, undefined, readAll),
      await payer.createPayment(readAll, { walletAddress: bob }),
    ]
    for (const { status, body } of answers) {
      expect([status, body.error.code]).toEqual([403, 'insufficient_access'])
    }
    expect((await client.getPayment(token, body.id)).body.completed).toBe(false)
  })
})
