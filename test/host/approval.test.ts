import { describe, expect, test } from 'vitest'
import type { AccessItem, DeliveredEvent, Limits } from '../../src/index.js'
import { createSpendingWorld, outgoingItem, pay, usd } from '../support/spending.js'
import { alice, interactionId, type TestClient, type World, withFinish } from '../support/world.js'

const owner = { resourceOwner: 'alice', walletAddresses: [alice] }
const monthly = 'R/2020-01-01T00:00:00Z/P1M'

async function requested(client: TestClient, limits: Limits) {
  const { body } = await client.request([outgoingItem(limits)], { start: ['redirect'] })
  const id = interactionId(body.interact.redirect)
  return { id, grantId: id.split('.')[0] ?? '', continuation: body.continue }
}

async function approved(world: World, wide: Limits, narrow: Limits) {
  const { id, grantId } = await requested(world.client(), wide)
  const access = [outgoingItem(narrow)]
  return { result: await world.auth.interactions.approve(id, { ...owner, access }), grantId }
}

describe('an owner who approves less than was requested', () => {
  test.each<[string, Limits, Limits, string | undefined]>([
    ['a lower amount', { debitAmount: usd(100) }, { debitAmount: usd(99) }, undefined],
    [
      'three windows of an interval without end',
      { interval: monthly, debitAmount: usd(100) },
      { interval: 'R3/2020-01-01T00:00:00Z/P1M', debitAmount: usd(100) },
      '2020-04-01',
    ],
    [
      'two windows that begin later',
      { interval: monthly, debitAmount: usd(100) },
      { interval: 'R2/2020-03-01T00:00:00Z/P1M', debitAmount: usd(10) },
      '2020-05-01',
    ],
    [
      'an end for an amount without an interval',
      { debitAmount: usd(100) },
      { interval: 'R1/2020-01-01T00:00:00Z/P1Y', debitAmount: usd(100) },
      '2021-01-01',
    ],
  ])('grants %s', async (_, wide, narrow, end) => {
    const world = createSpendingWorld()
    const { result, grantId } = await approved(world, wide, narrow)
    expect(result).toMatchObject({ ok: true })
    const view = await world.auth.grants.get(grantId)
    expect(view?.access).toEqual([{ ...outgoingItem(narrow), itemId: '1' }])
    expect(view?.expiresAt).toBe(end && Date.parse(end))
  })

  test('counts windows as the server does: R1 is two windows if a count is one of repetitions', async () => {
    const compatibility = { intervalCounting: 'repetitions' } as const
    const world = createSpendingWorld({ auth: { compatibility } })
    const once = { interval: 'R1/2020-01-01T00:00:00Z/P1Y', debitAmount: usd(100) }
    const { result } = await approved(world, { debitAmount: usd(100) }, once)
    expect(result).toMatchObject({ ok: false, refusal: 'access_widened' })
  })

  test('limits what the client spends', async () => {
    const world = createSpendingWorld()
    const client = world.client()
    const asked = { interval: monthly, debitAmount: usd(100) }
    const { id, continuation } = await requested(client, asked)
    const now = new Date(world.clock.now())
    const [year, month] = [now.getUTCFullYear(), now.getUTCMonth()]
    const start = new Date(Date.UTC(year, month, 1)).toISOString()
    const narrow = { interval: `R1/${start}/P1M`, debitAmount: usd(60) }
    const access: AccessItem[] = [outgoingItem(narrow)]
    await world.auth.interactions.approve(id, { ...owner, access })
    world.clock.advance(5_000)
    const { body } = await client.continue(continuation)
    const token = body.access_token.value
    expect(body.access_token.access).toEqual(access)
    expect((await pay(client, token, 60)).status).toBe(201)
    expect((await pay(client, token, 1)).status).toBe(403)
    world.clock.advance(Date.UTC(year, month + 1, 1) - world.clock.now())
    const rotated = await client.rotate(body.access_token)
    expect(rotated.status).not.toBe(200)
  })
})

describe('an owner who denies', () => {
  async function denied(...denials: ({ resourceOwner: string } | undefined)[]) {
    const world = createSpendingWorld()
    const { body } = await world.client().request([outgoingItem()], withFinish)
    const id = interactionId(body.interact.redirect)
    for (const denial of denials) {
      expect(await world.auth.interactions.deny(id, denial)).toMatchObject({ ok: true })
    }
    const events: DeliveredEvent[] = []
    await world.auth.events.drain((event) => void events.push(event))
    const view = await world.auth.grants.get(id.split('.')[0] ?? '')
    const listed = await world.auth.grants.list({ resourceOwner: 'alice' })
    return { view, listed, event: events.find(({ type }) => type === 'grant.denied') }
  }

  test('is named by the grant and its event, and does not see it among the connected apps', async () => {
    const { view, event, listed } = await denied({ resourceOwner: 'alice' })
    expect(view).toMatchObject({ status: 'denied', resourceOwner: 'alice' })
    expect(view).not.toHaveProperty('approvedAt')
    expect(event).toMatchObject({ resourceOwner: 'alice' })
    expect(listed.result).toEqual([])
  })

  test('need not be named', async () => {
    const { view, event } = await denied(undefined)
    expect(view).not.toHaveProperty('resourceOwner')
    expect(event).not.toHaveProperty('resourceOwner')
  })

  test('is the one of the first denial', async () => {
    const { view } = await denied({ resourceOwner: 'alice' }, { resourceOwner: 'bob' })
    expect(view).toMatchObject({ resourceOwner: 'alice' })
  })
})
