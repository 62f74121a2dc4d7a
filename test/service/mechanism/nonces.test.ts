import { describe, expect, test } from 'vitest'
import { memoryStore } from '../../../src/built-in/memory-store.js'
import type { HttpRequest } from '../../../src/index.js'
import {
  consumeNonce,
  nonceGuardOf,
  type Proof,
  refuseRepeats,
  signatureOf,
} from '../../../src/service/mechanism/nonces.js'
import { seededRandom } from '../../support/random.js'
import {
  bob,
  createWorld,
  incomingAccess,
  issuedGrant,
  resourceServer,
  type World,
} from '../../support/world.js'

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

describe('a request without a nonce', () => {
  const proof: Proof = {
    thumbprint: 'thumbprint',
    keyid: 'key',
    createdAt: 1_000 * second,
    signature: new Uint8Array(64),
  }

  function setUp() {
    const store = memoryStore()
    const context = {
      store,
      random: seededRandom(),
      pacing: { elapsedMs: () => 0, sleep: async () => undefined },
      namespace: async () => 'namespac',
      signatureRules: { ageMaxMs: 300 * second },
    } as unknown as Parameters<typeof nonceGuardOf>[0]
    const guarded = async (commandId: string, given = proof) => {
      const call = { now: proof.createdAt, commandId }
      const guard = await nonceGuardOf(context, given, 'refuse-repeat', call)
      return { ...call, replay: { guard, consumed: false } }
    }
    return { context, guarded }
  }
  const accepted = { ok: true } as const
  const refusal = { ok: false } as const

  test('has no record where repeats are accepted', async () => {
    const { context } = setUp()
    const call = { now: 0, commandId: 'one' }
    expect(await nonceGuardOf(context, proof, 'accept-repeat', call)).toBeUndefined()
  })

  test('can be repeated after a refusal, and not after it was accepted', async () => {
    const { context, guarded } = setUp()
    const consume = async (commandId: string, answer: { readonly ok: boolean }) =>
      consumeNonce(context, (await guarded(commandId)).replay, answer)
    expect(await consume('one', refusal)).toBe(refusal)
    expect(await consume('two', refusal)).toBe(refusal)
    expect(await consume('three', accepted)).toBe(accepted)
    expect(await consume('four', accepted)).toMatchObject({ refusal: 'replayed' })
    expect(await consume('five', refusal)).toMatchObject({ refusal: 'replayed' })
  })

  test('cannot be repeated after a refusal if every repeat is refused', async () => {
    const { context, guarded } = setUp()
    const consume = async (commandId: string) => {
      const call = await guarded(commandId)
      await refuseRepeats(context, proof, call)
      return consumeNonce(context, call.replay, refusal)
    }
    expect(await consume('one')).toBe(refusal)
    expect(await consume('two')).toMatchObject({ refusal: 'replayed' })
  })

  test('is named on the grant by its signature, one with a nonce is not', async () => {
    const { guarded } = setUp()
    const { replay } = await guarded('one')
    expect(signatureOf(replay)).toEqual({ signature: replay.guard?.change.next.id })
    const withNonce = await guarded('two', { ...proof, nonce: 'n1' })
    expect(signatureOf(withNonce.replay)).toEqual({})
    expect(signatureOf({ guard: undefined, consumed: false })).toEqual({})
  })
})
