import { describe, expect, test } from 'vitest'
import type { AccessItem } from '../../src/index.js'
import type { SignOptions } from '../support/sign.js'
import {
  alice,
  bob,
  carol,
  closed,
  createWorld,
  interactionId,
  origin,
  resourceServer,
  type TestClient,
  type World,
  withFinish,
} from '../support/world.js'

const collection = `${resourceServer}/incoming-payments`
const usd = (value: string) => ({ value, assetCode: 'USD', assetScale: 2 })

const insufficient = { code: 'insufficient_access', description: 'Insufficient Grant' }

type Access = Partial<AccessItem>

/**
 * Requests a token without consent, by default to create and list payments at Bob's wallet address.
 */
async function tokenOf(client: TestClient, ...access: readonly Access[]): Promise<string> {
  const asked = access.length === 0 ? [{}] : access
  const items = asked.map((item): AccessItem => {
    return { type: 'incoming-payment', actions: ['create', 'list'], identifier: bob, ...item }
  })
  const { body } = await client.request(items)
  return body.access_token.value
}

/** Requests a token with the consent of Alice. */
async function consented(world: World, client: TestClient, access: readonly AccessItem[]) {
  const { body } = await client.request(access, withFinish)
  const id = interactionId(body.interact.redirect)
  const approval = { resourceOwner: 'alice', walletAddresses: [alice] }
  const result = await world.auth.interactions.approve(id, approval)
  const redirect = new URL((result.ok && result.redirect) || '')
  const ref = redirect.searchParams.get('interact_ref') ?? ''
  return (await client.continue(body.continue, ref)).body.access_token.value as string
}

const listAll = (...more: readonly AccessItem[]): readonly AccessItem[] => [
  { type: 'incoming-payment', actions: ['list-all'], identifier: alice },
  ...more,
]

function list(
  client: TestClient,
  token: string,
  query: Readonly<Record<string, string | number>> = {},
  more: Partial<SignOptions> = {},
) {
  const url = new URL(collection)
  const parameters = { 'wallet-address': bob, ...query }
  for (const [name, value] of Object.entries(parameters)) {
    url.searchParams.set(name, String(value))
  }
  return client.send({ method: 'GET', url: url.href, token, ...more })
}

/** Creates payments, one every millisecond, and returns their URLs. */
async function created(world: World, client: TestClient, count: number, walletAddress = bob) {
  const token = await tokenOf(client, { identifier: walletAddress })
  const urls: string[] = []
  for (let i = 0; i < count; i++) {
    world.clock.advance(1)
    urls.push((await client.createPayment(token, { walletAddress })).body.id)
  }
  return urls
}

const idsOf = (answer: { body: { result: { id: string }[] } }) =>
  answer.body.result.map(({ id }) => id)

async function setUp(options: Parameters<typeof createWorld>[0] = {}) {
  const world = createWorld(options)
  const client = world.client()
  return { world, client, token: await tokenOf(client) }
}

describe('a list of incoming payments', () => {
  test('shows them as stored, oldest first, without payment methods', async () => {
    const { world, client, token } = await setUp()
    const one = await client.createPayment(token, {
      walletAddress: bob,
      incomingAmount: usd('100'),
      metadata: { invoice: 'INV-1' },
    })
    world.clock.advance(1)
    const two = await client.createPayment(token, { walletAddress: bob })
    const paymentId = world.resources.incomingPayments.idOf(one.body.id) ?? ''
    await world.resources.incomingPayments.receive(paymentId, {
      transferId: 'one',
      amount: usd('100'),
    })
    const answer = await list(client, token)
    expect([answer.status, answer.headers['content-type']]).toEqual([200, 'application/json'])
    const { methods: _one, ...first } = one.body
    const { methods: _two, ...second } = two.body
    expect(answer.body).toEqual({
      pagination: {
        startCursor: expect.stringMatching(/^[\w-]+$/),
        endCursor: expect.stringMatching(/^[\w-]+$/),
        hasNextPage: false,
        hasPreviousPage: false,
      },
      result: [{ ...first, completed: true, receivedAmount: usd('100') }, second],
    })
  })

  test('can be paged in both directions, with 20 payments on a page by default', async () => {
    const { world, client, token } = await setUp()
    const urls = await created(world, client, 23)
    const first = await list(client, token)
    expect(idsOf(first)).toEqual(urls.slice(0, 20))
    const { endCursor, ...sides } = first.body.pagination
    expect(sides).toMatchObject({ hasNextPage: true, hasPreviousPage: false })

    const next = await list(client, token, { cursor: endCursor, first: 2 })
    expect(idsOf(next)).toEqual(urls.slice(20, 22))
    expect(next.body.pagination).toMatchObject({ hasNextPage: true, hasPreviousPage: true })

    const back = await list(client, token, { cursor: next.body.pagination.startCursor, last: 5 })
    expect(idsOf(back)).toEqual(urls.slice(15, 20))
    expect(back.body.pagination).toMatchObject({ hasNextPage: true, hasPreviousPage: true })

    const newest = await list(client, token, { last: 3 })
    expect(idsOf(newest)).toEqual(urls.slice(20))
    expect(newest.body.pagination).toMatchObject({ hasNextPage: false, hasPreviousPage: true })
    expect(idsOf(await list(client, token, { first: 100 }))).toEqual(urls)
  })

  test('that is empty has no cursors', async () => {
    const { client, token } = await setUp()
    const nothing = { pagination: { hasNextPage: false, hasPreviousPage: false }, result: [] }
    expect((await list(client, token)).body).toStrictEqual(nothing)
    for (const walletAddress of [closed, `${origin}/nobody`, 'https://elsewhere.example/bob']) {
      const own = await tokenOf(client, { identifier: walletAddress })
      const answer = await list(client, own, { 'wallet-address': walletAddress })
      expect(answer.body).toStrictEqual(nothing)
    }
  })

  test('is the same for every spelling of the wallet address', async () => {
    const { world, client, token } = await setUp()
    const urls = await created(world, client, 1)
    const answer = await list(client, token, {
      'wallet-address': 'https://WALLET.example:443/bob/',
    })
    expect(idsOf(answer)).toEqual(urls)
  })

  test('can be requested again with the same bytes in the same second', async () => {
    const { world, client, token } = await setUp()
    const created = Math.floor(world.clock.now() / 1000)
    const parameters = [`keyid="${client.key.kid}"`, `created=${created}`]
    const one = await list(client, token, {}, { parameters })
    expect(await list(client, token, {}, { parameters })).toEqual(one)
  })
})

describe('a token to list payments', () => {
  test('with list-all and consent shows all payments of that wallet address only', async () => {
    const { world, client } = await setUp()
    const reader = world.client('reader')
    const here = await created(world, client, 2, alice)
    const own = await created(world, reader, 1, alice)
    await created(world, client, 2, bob)
    const ownElsewhere = await created(world, reader, 1, bob)

    const token = await consented(world, reader, listAll())
    expect(idsOf(await list(reader, token, { 'wallet-address': alice }))).toEqual([...here, ...own])
    const elsewhere = await list(reader, token)
    const details = {
      path: 'wallet-address',
      problem: 'must be the identifier in the access of the token',
    }
    expect([elsewhere.status, elsewhere.body.error]).toEqual([403, { ...insufficient, details }])

    const anywhere: AccessItem = { type: 'incoming-payment', actions: ['list'] }
    const both = await consented(world, reader, listAll(anywhere))
    expect(idsOf(await list(reader, both, { 'wallet-address': alice }))).toEqual([...here, ...own])
    expect(idsOf(await list(reader, both))).toEqual(ownElsewhere)
  })

  test('without a wallet address shows the payments of its client at every wallet address', async () => {
    const { world, client } = await setUp()
    const other = world.client('other')
    const atBob = await created(world, client, 1, bob)
    const atCarol = await created(world, client, 1, carol)
    await created(world, other, 1, carol)
    const { body } = await client.request([{ type: 'incoming-payment', actions: ['list'] }])
    const token = body.access_token.value
    expect(idsOf(await list(client, token))).toEqual(atBob)
    expect(idsOf(await list(client, token, { 'wallet-address': carol }))).toEqual(atCarol)
  })

  test('shows only the payments of its client, even with a cursor of another client', async () => {
    const { world, client, token } = await setUp()
    const other = world.client('other')
    const before = await created(world, client, 1)
    await created(world, other, 2)
    const after = await created(world, client, 1)
    const theirs = await list(other, await tokenOf(other), { first: 1 })
    const cursor = theirs.body.pagination.endCursor
    expect(idsOf(await list(client, token, { cursor }))).toEqual(after)
    expect(idsOf(await list(client, token, { cursor, last: 10 }))).toEqual(before)
  })
})

describe('an invalid query', () => {
  test('is refused without a wallet address', async () => {
    const { client, token } = await setUp()
    const { status, body } = await client.send({ method: 'GET', url: collection, token })
    expect([status, body.error.details]).toEqual([
      400,
      { path: 'wallet-address', problem: 'is missing' },
    ])
  })

  test('is checked after the rights, and before the wallet address', async () => {
    const { client, token } = await setUp()
    const creator = await tokenOf(client, { actions: ['create'] })
    expect((await list(client, creator, { first: 0 })).status).toBe(403)
    expect((await list(client, token, { first: 0, 'wallet-address': carol })).status).toBe(400)
  })
})

describe('the host', () => {
  test('lists the payments of all clients at a wallet address', async () => {
    const { world, client } = await setUp()
    const urls = [
      ...(await created(world, client, 2)),
      ...(await created(world, world.client('other'), 2)),
    ]
    await created(world, client, 1, carol)
    const { incomingPayments } = world.resources
    const page = await incomingPayments.list({ walletAddress: bob, first: 3 })
    expect(page.result.map((payment) => incomingPayments.toResource(payment).id)).toEqual(
      urls.slice(0, 3),
    )
    expect(page.pagination).toMatchObject({ hasNextPage: true, hasPreviousPage: false })
    const { endCursor: cursor = '' } = page.pagination
    const rest = await incomingPayments.list({ walletAddress: bob, cursor })
    expect(rest.result.map(({ paymentId }) => paymentId)).toEqual([
      incomingPayments.idOf(urls[3] ?? ''),
    ])
  })

  test('lists payments in another store', async () => {
    const { world, client } = await setUp()
    await created(world, client, 1)
    const { incomingPayments } = world.resources.within(createWorld().store)
    expect((await incomingPayments.list({ walletAddress: bob })).result).toEqual([])
  })
})
