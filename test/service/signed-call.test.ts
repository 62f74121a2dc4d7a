import { describe, expect, test } from 'vitest'
import type { HttpRequest } from '../../src/entry-adapter.js'
import { recordsOf } from '../../src/service/load.js'
import {
  countedOnceWrite,
  type Proof,
  type RepeatRule,
  type ReplayRecord,
  replayRecordOf,
  type UsedSignature,
} from '../../src/service/signed-call.js'
import { decideInOrder } from '../../src/service/write/round.js'
import type { Decided } from '../../src/service/write/write.js'
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
      expect((await world.handle(captured)).status).toBe(409)
      expect(world.refusals.at(-1)).toMatchObject({ refusal: 'repeated' })
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
    expect((await world.handle(captured)).status).toBe(409)
    expect(world.refusals.at(-1)).toMatchObject({ refusal: 'repeated' })
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
    expect([one?.record.signatureHash, same?.record.signatureHash]).toEqual([
      expect.stringMatching(/^[\w-]{22}$/),
      expect.not.stringMatching(`^${one?.record.signatureHash}$`),
    ])
    const otherKey = { ...proof.key, thumbprint: 'another' }
    for (const other of [{ nonce: 'n2' }, { nonce: 'n1', key: otherKey }]) {
      expect((await recordOf('accept', other))?.key).not.toEqual(one?.key)
    }
  })

  test('is that of the signature of a request without a nonce', async () => {
    const one = await recordOf('refuse')
    expect(one?.record).not.toHaveProperty('signatureHash')
    expect((await recordOf('refuse-every'))?.key).toEqual(one?.key)
    const other = await recordOf('refuse', { signature: new Uint8Array(64).fill(1) })
    expect(other?.key).not.toEqual(one?.key)
  })
})

test('a request with an interim decision is not recorded as used', () => {
  const key = { kind: 'replay', id: 'nonce' } as const
  const record = { id: 'nonce', version: 1, commandId: 'me' }
  const replay: ReplayRecord = { key, record, bySuccess: true, byRefusal: true }
  const settings = { recordsEvents: () => true, namespace: 'namespac' }
  const commitOf = (type: 'interim' | 'answer') => {
    const write = { reads: [], decide: () => ({ type, result: { ok: false } }) }
    const counted = countedOnceWrite<{ ok: boolean }>(write, replay)
    return decideInOrder([counted], { type: 'loaded', records: new Map() }, settings).commit
  }
  expect(commitOf('interim').changes).toEqual([])
  expect(commitOf('answer').changes).toMatchObject([{ kind: 'replay', expectedVersion: 0 }])
})

describe('a used request', () => {
  const settings = { recordsEvents: () => true, namespace: 'namespac' }
  const version = { kind: 'grant', id: 'grant', version: 1 } as const
  const write = {
    reads: [version],
    guard: { record: version, ifChanged: { ok: false, refusal: 'outdated' } },
    decide: () => ({ type: 'answer', result: { ok: true } }) as const,
  } as const
  const used = { id: 'nonce', version: 1, commandId: 'earlier', signatureHash: 'one' }
  const outcomeOf = (
    commandId: string,
    {
      stored = {},
      signatureHash = 'one',
      repeated,
    }: {
      stored?: Partial<UsedSignature>
      signatureHash?: string
      repeated?: () => Decided<{ ok: boolean }>
    } = {},
  ) => {
    const records = new Map([
      ...recordsOf('grant', { id: 'grant', version: 2, commandId: 'amending' }),
      ...recordsOf('replay', { ...used, ...stored }),
    ])
    const record = { ...used, signatureHash, commandId }
    const key = { kind: 'replay', id: 'nonce' } as const
    const replay: ReplayRecord = { key, record, bySuccess: true, byRefusal: true }
    const counted = countedOnceWrite<{ ok: boolean }>(write, replay, repeated)
    return decideInOrder([counted], { type: 'loaded', records }, settings).outcomes[0]
  }
  const decided = (result: object) => ({ type: 'decided', result })

  test('is not outdated, although what its commit guarded has changed since', () => {
    expect(outcomeOf('earlier')).toEqual(decided({ ok: true }))
    const resultId = 'the-id'
    const repeat = outcomeOf('me', { stored: { resultId } })
    expect(repeat).toMatchObject(decided({ ok: false, refusal: 'repeated', resultId }))
    const again = { ok: true, again: true }
    expect(outcomeOf('me', { repeated: () => ({ type: 'answer', result: again }) })).toEqual(
      decided(again),
    )
  })

  test('gets the refusal of the first again, whatever its operation would say now', () => {
    const refusal = { refusal: 'too_fast', reason: 'too fast', retryAt: 7, details: { path: 'x' } }
    const repeated = () => ({ type: 'answer', result: { ok: true } }) as const
    const answer = { ok: false, outcome: 'refused', ...refusal }
    expect(outcomeOf('me', { stored: { refusal }, repeated })).toEqual(decided(answer))
  })

  test('with the nonce of another signature gets neither its result nor its refusal', () => {
    const refusal = { refusal: 'too_fast', reason: 'too fast' }
    const repeated = () => ({ type: 'answer', result: { ok: true } }) as const
    for (const stored of [{ resultId: 'the-id' }, { refusal }, {}]) {
      const outcome = outcomeOf('me', { stored, signatureHash: 'another', repeated })
      expect(outcome).toEqual(decided(expect.objectContaining({ refusal: 'replayed' })))
      expect(outcome).not.toHaveProperty('result.resultId')
    }
  })
})

describe('a byte-identical repeat', () => {
  test('of a payment gets the payment, without the amounts that are spent now', async () => {
    const { world, client, token } = await payingClient()
    const sign = withoutNonce(world, client)
    const one = await pay(client, token, 1, {}, sign)
    const { grantSpentDebitAmount: _, grantSpentReceiveAmount: __, ...created } = one.body
    const two = await pay(client, token, 1, {}, sign)
    expect([one.status, two.status, two.body]).toEqual([201, 201, created])
  })

  test('of a rotation is not answered as an invalid signature, nor as an expired token', async () => {
    const world = createWorld()
    const client = world.client()
    const { token } = await issuedGrant(world, client)
    expect((await client.rotate(token, { nonce: 'n1' })).status).toBe(200)
    const { status, body, headers } = await client.rotate(token, { nonce: 'n1' })
    const description = 'Request has already been answered: sign it again'
    expect([status, body.error]).toEqual([409, { code: 'signature_used', description }])
    expect(JSON.stringify(headers)).not.toMatch(/www-authenticate/i)
  })
})
