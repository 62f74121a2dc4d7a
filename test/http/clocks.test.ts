import { describe, expect, test } from 'vitest'
import { memoryStore } from '../../src/index.js'
import { manualClock } from '../support/clock.js'
import {
  alice,
  approvedGrant,
  bob,
  createWorld,
  incomingAccess,
  interactionId,
  outgoingAccess,
  withoutFinish,
} from '../support/world.js'

describe('a server whose clock goes back', () => {
  test('by up to 60 s does not reopen an interaction that it has seen expired', async () => {
    const world = createWorld()
    const client = world.client()
    const { body } = await client.request([outgoingAccess], withoutFinish)
    const id = interactionId(body.interact.redirect)
    world.clock.advance(600_000)
    const approval = { resourceOwner: 'alice', walletAddresses: [alice] }
    const expired = { ok: false, refusal: 'interaction_expired' }
    expect(await world.auth.interactions.approve(id, approval)).toMatchObject(expired)
    world.clock.advance(-60_000)
    expect(await world.auth.interactions.approve(id, approval)).toMatchObject(expired)
    expect(world.errors).toEqual([])
  })

  test('by more follows it, and reports it', async () => {
    const world = createWorld()
    const client = world.client()
    await approvedGrant(world, client)
    world.clock.advance(-60_001)
    await approvedGrant(world, client)
    expect(world.errors).toMatchObject([{ code: 'ERR_CLOCK' }])
  })
})

describe('two servers with different clocks on one store', () => {
  /** A payment that one server creates, read by a server whose clock is behind by so much. */
  async function readBehind(behindMs: number) {
    const store = memoryStore()
    const writer = createWorld({ store, clock: manualClock(1_800_000_000_000 + behindMs) })
    const reader = createWorld({ store, clock: manualClock(1_800_000_000_000) })
    const client = writer.client()
    const { body: granted } = await client.request([incomingAccess])
    const token: string = granted.access_token.value
    const { body: payment } = await client.createPayment(token, { walletAddress: bob })
    const { pathname: url } = new URL(payment.id)
    const request = { method: 'GET', url, headers: [], body: new Uint8Array() }
    return { reader, read: async () => (await reader.handle(request)).status }
  }

  test('say nothing if they may both be right', async () => {
    const { reader, read } = await readBehind(120_000)
    expect(await read()).toBe(200)
    expect(reader.errors).toEqual([])
  })

  test('report a record from the future once a minute, and serve it', async () => {
    const { reader, read } = await readBehind(3_600_000)
    expect(await read()).toBe(200)
    expect(await read()).toBe(200)
    reader.clock.advance(59_999)
    expect(await read()).toBe(200)
    expect(reader.errors).toMatchObject([
      {
        code: 'ERR_CLOCK',
        message: 'a record (incoming-payment) is dated 3600000 ms ahead of this clock',
      },
    ])
    reader.clock.advance(1)
    expect(await read()).toBe(200)
    expect(reader.errors).toHaveLength(2)
  })
})
