import { describe, expect, test } from 'vitest'
import {
  bob,
  createWorld,
  incomingAccess,
  issuedGrant,
  resourceServer,
} from '../../support/world.js'

const second = 1_000

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
    const client = world.client()
    const { body } = await client.request([incomingAccess])
    const created = world.clock.now() + 60 * second
    const captured = client.sign({
      method: 'POST',
      url: `${resourceServer}/incoming-payments`,
      token: body.access_token.value,
      body: JSON.stringify({ walletAddress: bob }),
      created: created / second,
      nonce: 'n1',
    })
    expect((await world.handle(captured)).status).toBe(201)
    for (const age of [-60, 0, 150, 299, 300]) {
      world.clock.set(created + age * second)
      expect(await world.resources.sweep()).toMatchObject({ removed: 0 })
      expect((await world.handle(captured)).status).toBe(401)
      expect(world.refusals.at(-1)).toMatchObject({ refusal: 'replayed' })
    }
    world.clock.advance(1)
    expect((await world.handle(captured)).status).toBe(401)
    expect(world.refusals.at(-1)).toMatchObject({ refusal: 'signature_invalid' })
    world.clock.set(created + 360 * second)
    expect(await world.resources.sweep()).toMatchObject({ removed: 1 })
  })
})
