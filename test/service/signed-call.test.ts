import { describe, expect, test } from 'vitest'
import type { HttpRequest } from '../../src/entry-adapter.js'
import { recordsOf } from '../../src/service/load.js'
import {
  countedOnceWrite,
  type Proof,
  type RepeatRule,
  type ReplayRecord,
  replayRecordOf,
} from '../../src/service/signed-call.js'
import { decideInOrder } from '../../src/service/write/round.js'
import { pay } from '../support/spending.js'
import { payingClient, withoutNonce } from '../support/spending-client.js'
import {
  bob,
  createWorld,
  incomingAccess,
  issuedGrant,
  resourceServer,
  type World,
} from '../support/world.js'

const second = 1_000

/** Sends a request with a nonce, which is accepted, and returns it for a replay. */
async function acceptedRequest(world: World, created: number): Promise<HttpRequest> {
  const client = world.client()
  const { body } = await client.request([incomingAccess])
  const request = client.sign({
    method: 'POST',
    url: `${resourceServer}/incoming-payments`,
    token: body.access_token.value,
    body: JSON.stringify({ walletAddress: bob }),
    created: created / second,
    nonce: 'n1',
  })
  expect((await world.handle(request)).status).toBe(201)
  return request
}

describe('a nonce', () => {
  test('is refused again in another request with another created time', async () => {
    const world = createWorld()
    const client = world.client()
    const { token } = await issuedGrant(world, client)
    const first = await client.rotate(token, { nonce: 'n1' })
    world.clock.advance(second)
    const next = first.body.access_token
    expect((await client.rotate(next, { nonce: 'n1' })).status).toBe(401)
    expect(world.refusals.at(-1)).toMatchObject({ refusal: 'replayed' })
    expect((await client.rotate(next, { nonce: 'n2' })).status).toBe(200)
  })

  test('is remembered for as long as its signature is fresh, however often the server is swept', async () => {
    const world = createWorld()
    const created = world.clock.now() + 60 * second
    const captured = await acceptedRequest(world, created)
    for (const age of [-60, 0, 150, 299, 300]) {
      world.clock.set(created + age * second)
      expect(await world.resources.sweep()).toMatchObject({ removed: 0 })
      expect((await world.handle(captured)).status).toBe(401)
      expect(world.refusals.at(-1)).toMatchObject({ refusal: 'replayed' })
    }
    world.clock.advance(1)
    expect((await world.handle(captured)).status).toBe(401)
    expect(world.refusals.at(-1)).toMatchObject({ refusal: 'signature_invalid' })
    world.clock.set(created + 480 * second + 1)
    expect(await world.resources.sweep()).toMatchObject({ removed: 1 })
  })

  test('is remembered for 60 s more, for commits in flight, when a server 120 s ahead sweeps', async () => {
    const world = createWorld()
    const created = world.clock.now()
    const captured = await acceptedRequest(world, created)
    world.clock.set(created + 480 * second)
    expect(await world.resources.sweep()).toMatchObject({ removed: 0 })
    world.clock.set(created + 300 * second)
    expect((await world.handle(captured)).status).toBe(401)
    expect(world.refusals.at(-1)).toMatchObject({ refusal: 'replayed' })
  })
})

describe('a request whose host takes longer than its signature is valid', () => {
  test.each([
    [300, 201],
    [301, 503],
  ])('is committed after %i s or not at all', async (seconds, status) => {
    let waitMs = 0
    const world = createWorld({
      resources: {
        walletAddresses: {
          async find(url) {
            world.clock.advance(waitMs)
            return { url, assetCode: 'USD', assetScale: 2 }
          },
        },
      },
    })
    const client = world.client()
    const { body } = await client.request([{ ...incomingAccess, actions: ['create', 'list'] }])
    const token = body.access_token.value
    waitMs = seconds * second
    const created = await client.createPayment(token, { walletAddress: bob })
    expect(created.status).toBe(status)
    waitMs = 0
    const query = `wallet-address=${encodeURIComponent(bob)}`
    const list = await client.getPayment(token, `${resourceServer}/incoming-payments?${query}`)
    expect(list.body.result).toHaveLength(status === 201 ? 1 : 0)
  })
})

describe('the record of a signed request', () => {
  const proof: Proof = {
    key: { kid: 'key', x: 'x', thumbprint: 'thumbprint' },
    createdAt: 1_000 * second,
    signature: new Uint8Array(64),
  }
  const settings = {
    namespace: async () => 'namespac',
    signatureRules: { ageMaxMs: 300 * second },
  }
  const recordOf = (rule: RepeatRule, more: Partial<Proof> = {}) =>
    replayRecordOf(settings, { ...proof, ...more }, rule, 'command')

  test.each<[RepeatRule, without: boolean | undefined, withNonce: boolean]>([
    ['accept', undefined, true],
    ['refuse', false, true],
    ['refuse-every', true, true],
  ])('is also written by a refusal, with the rule %s: %s, with a nonce: %s', async (...row) => {
    const [rule, without, withNonce] = row
    expect((await recordOf(rule))?.byRefusal).toBe(without)
    expect((await recordOf(rule, { nonce: 'n1' }))?.byRefusal).toBe(withNonce)
  })

  test('is that of the nonce and key, whatever the rest of the request', async () => {
    const one = await recordOf('accept', { nonce: 'n1' })
    const signature = new Uint8Array(64).fill(1)
    const same = await recordOf('refuse', { nonce: 'n1', signature })
    expect(same?.key).toEqual(one?.key)
    expect([one?.of, same?.of]).toEqual(['nonce', 'nonce'])
    const otherKey = { ...proof.key, thumbprint: 'another' }
    for (const other of [{ nonce: 'n2' }, { nonce: 'n1', key: otherKey }]) {
      expect((await recordOf('accept', other))?.key).not.toEqual(one?.key)
    }
  })

  test('is that of the signature of a request without a nonce', async () => {
    const one = await recordOf('refuse')
    expect(one?.of).toBe('signature')
    expect((await recordOf('refuse-every'))?.key).toEqual(one?.key)
    const other = await recordOf('refuse', { signature: new Uint8Array(64).fill(1) })
    expect(other?.key).not.toEqual(one?.key)
  })
})

describe('a used request', () => {
  const version = { kind: 'grant', id: 'grant', version: 1 } as const
  const write = {
    reads: [version],
    guard: { record: version, ifChanged: { ok: false, refusal: 'outdated' } },
    decide: () => ({ result: { ok: true } }),
  } as const
  const used = { id: 'nonce', version: 1, commandId: 'earlier' }
  const records = new Map([
    ...recordsOf('grant', { id: 'grant', version: 2, commandId: 'amending' }),
    ...recordsOf('replay', used),
  ])
  const outcomeOf = (commandId: string, repeated?: () => { result: { ok: boolean } }) => {
    const record = { ...used, commandId }
    const key = { kind: 'replay', id: 'nonce' } as const
    const replay: ReplayRecord = { key, record, of: 'nonce', byRefusal: true }
    const counted = countedOnceWrite<{ ok: boolean }>(write, replay, repeated)
    return decideInOrder([counted], { records }, () => true).outcomes[0]
  }
  const decided = (result: object) => ({ type: 'decided', result })

  test('is not outdated, although what its commit guarded has changed since', () => {
    expect(outcomeOf('earlier')).toEqual(decided({ ok: true }))
    expect(outcomeOf('me')).toMatchObject(decided({ ok: false, refusal: 'replayed' }))
    const again = { ok: false, refusal: 'declined' }
    expect(outcomeOf('me', () => ({ result: again }))).toEqual(decided(again))
  })
})

describe('a byte-identical repeat', () => {
  test('of a payment is not answered as a withdrawn key or an expired token', async () => {
    const { world, client, token } = await payingClient()
    const sign = withoutNonce(world, client)
    expect((await pay(client, token, 1, {}, sign)).status).toBe(201)
    const { status, body } = await pay(client, token, 1, {}, sign)
    const error = { code: 'signature_used', description: 'Signature has already been used' }
    expect([status, body.error]).toEqual([401, error])
  })

  test('of a rotation is not answered as an invalid signature', async () => {
    const world = createWorld()
    const client = world.client()
    const { token } = await issuedGrant(world, client)
    expect((await client.rotate(token, { nonce: 'n1' })).status).toBe(200)
    const { status, body } = await client.rotate(token, { nonce: 'n1' })
    const error = { code: 'invalid_client', description: 'Signature has already been used' }
    expect([status, body.error]).toEqual([401, error])
  })
})
