import { describe, expect, test } from 'vitest'
import { type AccessItem, memoryStore, type Store } from '../../src/index.js'
import { removeOne } from '../support/one-record.js'
import { loadPublicRecord } from '../support/public-record.js'
import {
  alice,
  bob,
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

const notFound = { status: 404, code: 'not_found' }
const insufficient = { status: 403, code: 'insufficient_access' }

async function tokenOf(client: TestClient, access: Partial<AccessItem> = {}): Promise<string> {
  const all: AccessItem = {
    type: 'incoming-payment',
    actions: ['create', 'read', 'complete'],
    identifier: bob,
  }
  const { body } = await client.request([{ ...all, ...access }])
  return body.access_token.value
}

async function setUp(options: Parameters<typeof createWorld>[0] = {}) {
  const world = createWorld(options)
  const client = world.client()
  const token = await tokenOf(client)
  const { body: payment } = await client.createPayment(token, {
    walletAddress: bob,
    incomingAmount: usd('100'),
    metadata: { invoice: 'INV-1' },
  })
  const paymentId = world.resources.incomingPayments.idOf(payment.id) ?? ''
  return { world, client, token, payment, paymentId }
}

type Send = Parameters<TestClient['post']>

const complete = (client: TestClient, token: string, id: string, body?: Send[1], more?: Send[3]) =>
  client.post(`${id}/complete`, body, token, more)

async function failureOf(call: ReturnType<TestClient['send']>) {
  const { status, body } = await call
  return { status, code: body.error?.code }
}

const arrive = ({ resources }: World, paymentId: string, value: string, transferId: string) =>
  resources.incomingPayments.receive(paymentId, { transferId, amount: usd(value) })

/** Delivers all events and returns their types, in order. */
async function toldOf({ resources }: World): Promise<string[]> {
  const told: string[] = []
  await resources.events.drain(async ({ type }) => void told.push(type))
  return told
}

describe('completing an incoming payment', () => {
  test('returns the completed payment without payment methods', async () => {
    const { world, client, token, payment, paymentId } = await setUp()
    await arrive(world, paymentId, '30', 'one')
    const { methods: _methods, ...rest } = payment
    const { status, headers, body } = await complete(client, token, payment.id)
    expect([status, headers['content-type']]).toEqual([200, 'application/json'])
    expect(body).toEqual({ ...rest, receivedAmount: usd('30'), completed: true })
    const read = (await client.getPayment(token, payment.id)).body
    expect(read).toEqual({ ...body, methods: [] })
  })

  test('rejects later funds, but still accepts repeated reports of counted funds', async () => {
    const { world, client, token, payment, paymentId } = await setUp()
    await arrive(world, paymentId, '30', 'one')
    await complete(client, token, payment.id)
    expect(await arrive(world, paymentId, '1', 'two')).toMatchObject({
      ok: false,
      refusal: 'payment_completed',
    })
    expect(await arrive(world, paymentId, '30', 'one')).toMatchObject({ ok: true })
  })

  test('again returns the same, and records one event', async () => {
    const { world, client, token, payment } = await setUp()
    const first = await complete(client, token, payment.id)
    world.clock.advance(1_000)
    expect(await complete(client, token, payment.id)).toEqual(first)
    expect(await toldOf(world)).toEqual(['incoming-payment.created', 'incoming-payment.completed'])
  })

  test('again with the same bytes returns the same and is not a replay', async () => {
    const { world, client, token, payment } = await setUp()
    const created = Math.floor(world.clock.now() / 1000)
    const parameters = [`keyid="${client.key.kid}"`, `created=${created}`]
    const first = await complete(client, token, payment.id, undefined, { parameters })
    expect(first.status).toBe(200)
    expect(await complete(client, token, payment.id, undefined, { parameters })).toEqual(first)
  })

  test('by twenty concurrent requests happens once, with equal responses', async () => {
    const { world, client, token, payment } = await setUp()
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => complete(client, token, payment.id)),
    )
    for (const answer of answers) expect(answer).toEqual(answers[0])
    expect(answers[0]?.status).toBe(200)
    expect(await toldOf(world)).toEqual(['incoming-payment.created', 'incoming-payment.completed'])
  })

  test('accepts no content except an empty object', async () => {
    const { client, token, payment } = await setUp()
    for (const body of [[], null, 'now', 1, { completed: false }, { metadata: {} }]) {
      const failure = await failureOf(complete(client, token, payment.id, body))
      expect(failure).toEqual({ status: 400, code: 'invalid_request' })
    }
    const broken = await failureOf(
      complete(client, token, payment.id, undefined, { body: '{"completed"' }),
    )
    expect(broken).toEqual({ status: 400, code: 'invalid_request' })
    expect((await client.getPayment(token, payment.id)).body.completed).toBe(false)
    expect((await complete(client, token, payment.id, {})).status).toBe(200)
  })
})

describe('completing a payment', () => {
  test('is allowed to its client, with any token for this wallet address or for all', async () => {
    const { client, payment } = await setUp()
    const { body } = await client.request([{ type: 'incoming-payment', actions: ['complete'] }])
    for (const token of [
      await tokenOf(client, { actions: ['complete'] }),
      body.access_token.value,
    ]) {
      expect((await complete(client, token, payment.id)).status).toBe(200)
    }
  })

  test('is refused to other clients with the same 404 as an unknown payment', async () => {
    const { world, client, token, payment, paymentId } = await setUp()
    const other = world.client('other')
    const byKey = world.client('one', { byKey: true })
    const foreign = await complete(other, await tokenOf(other), payment.id)
    const unknown = await complete(client, token, `${collection}/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAA`)
    expect({ status: foreign.status, code: foreign.body.error.code }).toEqual(notFound)
    expect(unknown).toEqual(foreign)
    expect(await failureOf(complete(byKey, await tokenOf(byKey), payment.id))).toEqual(notFound)
    expect((await world.resources.incomingPayments.get(paymentId))?.status).toBe('open')
  })

  test.each<readonly [actions: AccessItem['actions']]>([[['create', 'read', 'list']]])(
    'is refused with a token for only %j',
    async (actions) => {
      const { client, payment } = await setUp()
      const token = await tokenOf(client, { actions })
      expect(await failureOf(complete(client, token, payment.id))).toEqual(insufficient)
      const unknown = complete(client, token, `${collection}/unknown`)
      expect(await failureOf(unknown)).toEqual(insufficient)
    },
  )

  test('is refused with read-all, with or without complete', async () => {
    const { world, client } = await setUp()
    const toAlice = await tokenOf(client, { identifier: alice })
    const { body: payment } = await client.createPayment(toAlice, { walletAddress: alice })
    const reader = world.client('reader')
    const access: AccessItem = {
      type: 'incoming-payment',
      actions: ['read-all', 'list-all', 'complete'],
      identifier: alice,
    }
    const { body } = await reader.request([access], withFinish)
    const id = interactionId(body.interact.redirect)
    const approval = { resourceOwner: 'alice', walletAddresses: [alice] }
    const result = await world.auth.interactions.approve(id, approval)
    const ref = new URL((result.ok && result.redirect) || '').searchParams.get('interact_ref') ?? ''
    const issued = await reader.continue(body.continue, ref)
    const token = issued.body.access_token.value
    expect((await reader.getPayment(token, payment.id)).status).toBe(200)
    expect(await failureOf(complete(reader, token, payment.id))).toEqual(notFound)
  })
})

describe('the host', () => {
  test('can complete any payment, and gets a refusal for unknown ones', async () => {
    const { world, paymentId } = await setUp()
    const { incomingPayments } = world.resources
    const payment = { paymentId, status: 'completed' }
    for (const changed of [true, false]) {
      const completed = { ok: true, payment, changed }
      expect(await incomingPayments.complete(paymentId)).toMatchObject(completed)
    }
    for (const id of ['unknown', `${paymentId.slice(0, 24)}000000000000`]) {
      expect(await incomingPayments.complete(id)).toEqual({
        ok: false,
        refusal: 'payment_unknown',
        reason: 'the incoming payment does not exist',
      })
    }
  })

  test('can complete a payment in another store, without effect on its own', async () => {
    const copied = memoryStore()
    const { world, paymentId } = await setUp()
    const stored = await loadPublicRecord(world.store, 'incoming-payment', paymentId)
    if (stored === undefined) throw new Error('there is no payment')
    const change = { kind: 'incoming-payment', next: stored, expectedVersion: 0 } as const
    await copied.commit({ changes: [change], guards: [] })
    const { incomingPayments } = world.resources.within(copied)
    expect(await incomingPayments.complete(paymentId)).toMatchObject({ ok: true })
    expect((await world.resources.incomingPayments.get(paymentId))?.status).toBe('open')
  })
})

/** A store from which the payment is removed just before it changes. */
function removingStore() {
  const sound = memoryStore()
  const state = { armed: false }
  const store: Store = {
    ...sound,
    async commit(commit) {
      const [change] = commit.changes
      if (state.armed && change !== undefined) {
        state.armed = false
        await removeOne(sound, 'incoming-payment', change.next.id, change.expectedVersion)
      }
      return sound.commit(commit)
    },
  }
  return { store, state }
}

describe('a payment that is removed during its completion is unknown', () => {
  test('to its client', async () => {
    const { store, state } = removingStore()
    const { client, token, payment } = await setUp({ store })
    state.armed = true
    const parameters = [`keyid="${client.key.kid}"`, `created=${Date.UTC(2026, 10, 21, 12) / 1000}`]
    const answer = complete(client, token, payment.id, undefined, { parameters })
    expect(await failureOf(answer)).toEqual(notFound)
    expect(state.armed).toBe(false)
  })

  test('to the host', async () => {
    const { store, state } = removingStore()
    const { world, paymentId } = await setUp({ store })
    state.armed = true
    const result = await world.resources.incomingPayments.complete(paymentId)
    expect(result).toMatchObject({ ok: false, refusal: 'payment_unknown' })
    expect(state.armed).toBe(false)
  })
})

describe('the public view of an incoming payment', () => {
  const anonymous = (
    world: World,
    url: string,
    headers: readonly (readonly [string, string])[] = [],
    method = 'GET',
  ) => world.handle({ method, url: url.slice(origin.length), headers, body: new Uint8Array() })

  test('shows the received amount and the authorization server, and nothing else', async () => {
    const { world, payment, paymentId } = await setUp()
    await arrive(world, paymentId, '30', 'one')
    const answer = await anonymous(world, payment.id)
    expect([answer.status, answer.headers['cache-control']]).toEqual([200, 'no-store'])
    expect(JSON.parse(answer.body ?? '')).toStrictEqual({
      receivedAmount: usd('30'),
      authServer: `${origin}/auth`,
    })
    const head = await anonymous(world, payment.id, [], 'HEAD')
    expect([head.status, head.body]).toEqual([200, undefined])
  })

  test('remains after the payment is complete or expired', async () => {
    const { world, payment, paymentId } = await setUp()
    await world.resources.incomingPayments.complete(paymentId)
    world.clock.advance(40 * 86_400_000)
    expect((await anonymous(world, payment.id)).status).toBe(200)
  })

  test('does not exist for an unknown payment', async () => {
    const { world } = await setUp()
    for (const id of ['unknown', 'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAA', 'x'.repeat(500), '%00']) {
      const answer = await anonymous(world, `${collection}/${id}`)
      expect([answer.status, JSON.parse(answer.body ?? '')]).toEqual([
        404,
        { error: { code: 'not_found', description: 'Not found' } },
      ])
    }
  })

  test.each<readonly [name: string, value: string, code: string]>([
    ['Authorization', 'GNAP some-token', 'invalid_signature'],
    ['authorization', 'Bearer some-token', 'invalid_signature'],
    ['Authorization', '', 'invalid_signature'],
    ['Signature', 'sig1=:AAAA:', 'invalid_signature'],
    ['Signature-Input', 'sig1=()', 'invalid_signature'],
    ['SIGNATURE', '', 'invalid_signature'],
  ])('is refused for a request with an invalid %s: "%s"', async (name, value, code) => {
    const { world, payment } = await setUp()
    const answer = await anonymous(world, payment.id, [[name, value]])
    expect([answer.status, JSON.parse(answer.body ?? '').error.code]).toEqual([401, code])
    expect(answer.headers['www-authenticate']).toBe(`GNAP as_uri=${origin}/auth`)
  })

  test('is refused with a valid signature without a token, or with an expired token', async () => {
    const { world, client, token, payment } = await setUp()
    expect(await failureOf(client.send({ method: 'GET', url: payment.id }))).toEqual({
      status: 401,
      code: 'missing_token',
    })
    world.clock.advance(600_000)
    expect(await failureOf(client.getPayment(token, payment.id))).toEqual({
      status: 401,
      code: 'invalid_token',
    })
  })

  test('is refused to a client that must not read the payment', async () => {
    const { world, payment } = await setUp()
    const other = world.client('other')
    const foreign = other.getPayment(await tokenOf(other), payment.id)
    expect(await failureOf(foreign)).toEqual(notFound)
    const completer = await tokenOf(other, { actions: ['complete'] })
    expect(await failureOf(other.getPayment(completer, payment.id))).toEqual(insufficient)
  })

  test('takes one load from the store and no commit', async () => {
    const sound = memoryStore()
    const calls: string[] = []
    const store: Store = {
      ...sound,
      load: (keys) => {
        calls.push(`load ${keys.map(({ kind }) => kind)}`)
        return sound.load(keys)
      },
      commit: (commit) => {
        calls.push('commit')
        return sound.commit(commit)
      },
    }
    const { world, payment } = await setUp({ store })
    calls.length = 0
    await anonymous(world, payment.id)
    expect(calls).toEqual(['load incoming-payment'])
  })
})
