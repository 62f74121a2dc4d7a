import { describe, expect, test } from 'vitest'
import { memoryStore } from '../../src/index.js'
import { manualClock } from '../support/clock.js'
import {
  createSpendingWorld,
  grantToPay,
  newQuote,
  outgoingItem,
  payByQuote,
  quoteToken,
  usd,
} from '../support/spending.js'
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
})

describe('signatures with a clock of their own', () => {
  /** A wallet whose clock a test moves, while clients sign with the real time. */
  function movedWorld() {
    const clock = manualClock()
    const signed = manualClock()
    const signatures = { clock: signed }
    const world = createWorld({ clock, auth: { signatures }, resources: { signatures } })
    const created = () => ({ created: Math.floor(signed.now() / 1000) })
    return { world, clock, signed, created }
  }

  test.each([-3, 1, 30])(
    'are as fresh as before after the clock of the server moves by %i days',
    async (days) => {
      const { world, clock, signed, created } = movedWorld()
      const client = world.client()
      clock.advance(days * 86_400_000)
      const request = () => client.request([incomingAccess], undefined, created())
      const { body } = await request()
      const { value } = body.access_token
      const create = () => client.createPayment(value, { walletAddress: bob }, created())
      expect((await create()).status).toBe(201)
      const { created: then } = created()
      signed.advance(300_000)
      expect((await client.request([incomingAccess], undefined, { created: then })).status).toBe(
        200,
      )
      signed.advance(1_001)
      expect((await client.request([incomingAccess], undefined, { created: then })).status).toBe(
        401,
      )
      expect(world.refusals.at(-1)?.reason).toBe('created is too long ago')
      const early = { created: created().created + 62 }
      expect((await client.request([incomingAccess], undefined, early)).status).toBe(401)
      expect(world.refusals.at(-1)?.reason).toBe('created is in the future')
    },
  )

  test('count once while the clock of the server stands at another time', async () => {
    const { world, clock, created } = movedWorld()
    const client = world.client()
    clock.advance(30 * 86_400_000)
    const { body } = await client.request([incomingAccess], undefined, created())
    const again = { ...created(), nonce: 'once' }
    const create = () =>
      client.createPayment(body.access_token.value, { walletAddress: bob }, again)
    expect((await create()).status).toBe(201)
    await world.resources.sweep()
    expect((await create()).status).toBe(409)
    expect(world.refusals.at(-1)?.refusal).toBe('repeated')
  })

  test('leave what expires to the clock of the server', async () => {
    const { world, clock, created } = movedWorld()
    const client = world.client()
    const { body } = await client.request([incomingAccess], undefined, created())
    clock.advance(30 * 86_400_000)
    const { value } = body.access_token
    const create = () => client.createPayment(value, { walletAddress: bob }, created())
    expect((await create()).status).toBe(401)
    expect(world.refusals.at(-1)?.refusal).toBe('token_unknown')
  })
})

describe('a clock with fractions of milliseconds', () => {
  /** Like `performance.timeOrigin + performance.now()`. */
  const fractional = () => manualClock(1_795_262_400_000.625)

  test('serves a whole flow, and stores whole milliseconds', async () => {
    const written: object[] = []
    const memory = memoryStore()
    const commit: typeof memory.commit = async (commit) => {
      written.push(...commit.changes.map(({ next }) => next))
      return memory.commit(commit)
    }
    const clock = fractional()
    const store = { ...memory, commit }
    const world = createSpendingWorld({ clock, store })
    const { incomingPayments, outgoingPayments, events } = world.resources
    const client = world.client()
    const { body: granted } = await client.request([incomingAccess])
    clock.advance(0.5)
    const rotated = await client.rotate(granted.access_token)
    expect(rotated.status).toBe(200)
    const incoming: string = rotated.body.access_token.value
    const created = await client.createPayment(incoming, { walletAddress: bob })
    expect(created.status).toBe(201)
    const id = incomingPayments.idOf(created.body.id) ?? ''
    const arrival = { transferId: 'one', amount: usd(10) }
    expect(await incomingPayments.receive(id, arrival)).toMatchObject({ ok: true })

    const { token } = await grantToPay(world, client, [
      outgoingItem({ debitAmount: usd(100), interval: 'R/2026-11-21T12:00:00Z/P1D' }),
    ])
    const quote = await newQuote(client, await quoteToken(client), { debitAmount: usd(20) })
    expect(quote.status).toBe(201)
    const paid = await payByQuote(client, token, quote.body.id)
    expect(paid.status).toBe(201)
    const paymentId = outgoingPayments.idOf(paid.body.id) ?? ''
    expect(await outgoingPayments.begin(paymentId)).toMatchObject({ ok: true })
    const totals = { sentAmount: usd(20), deliveredAmount: usd(20) }
    expect(await outgoingPayments.reportSent(paymentId, totals)).toMatchObject({ ok: true })

    const told: string[] = []
    clock.advance(120_000.25)
    await events.drain((event) => void told.push(event.type))
    expect(told).toContain('incoming-payment.received')
    expect(told).toContain('outgoing-payment.completed')
    clock.advance(400 * 86_400_000)
    for (const { sweep } of [world.auth, world.resources]) while ((await sweep()).more);
    expect(await incomingPayments.get(id)).toBeUndefined()
    expect(world.errors).toEqual([])

    const times = written.flatMap(timesIn)
    expect(times.length).toBeGreaterThan(20)
    expect(times.filter((time) => !Number.isInteger(time))).toEqual([])
  })

  /** Returns all numbers in a record that are times. */
  function timesIn(value: unknown): number[] {
    if (typeof value === 'number') return value > 1_500_000_000_000 ? [value] : []
    return typeof value === 'object' && value !== null ? Object.values(value).flatMap(timesIn) : []
  }
})
