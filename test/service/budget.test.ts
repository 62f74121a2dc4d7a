import { describe, expect, test } from 'vitest'
import { memoryStore } from '../../src/index.js'
import { loadOne } from '../support/one-record.js'
import { createSpendingWorld, grantToPay, outgoingItem, pay, usd } from '../support/spending.js'
import type { World } from '../support/world.js'

const day = 86_400_000

/** Loads the budget that the given payment is charged to. */
async function budgetOf(world: World, { body }: { body: { id: string } }) {
  const payment = await world.resources.outgoingPayments.getRecord(
    world.resources.outgoingPayments.idOf(body.id) ?? '',
  )
  return loadOne(world.store, 'budget', payment?.budgetId ?? '')
}

async function paidUnder(
  limits: Parameters<typeof outgoingItem>[0],
  world = createSpendingWorld(),
  name = 'shop',
) {
  const client = world.client(name)
  const grant = await grantToPay(world, client, [outgoingItem(limits)])
  const payment = await pay(client, grant.token, 1000)
  return { world, client, grant, payment }
}

async function removeAll(world: World): Promise<void> {
  for (const { sweep } of [world.auth, world.resources]) while ((await sweep()).more);
}

describe('the budget of a window', () => {
  const monthly = { debitAmount: usd(1000), interval: 'R/2026-11-01T00:00:00Z/P1M' }

  test('is kept for a year and a day after the window ends, then removed', async () => {
    const { world, payment } = await paidUnder(monthly)
    const kept = Date.UTC(2026, 11, 1) + 366 * day
    world.clock.advance(kept - 1 - world.clock.now())
    await removeAll(world)
    const { id = '' } = (await budgetOf(world, payment)) ?? {}
    expect(await loadOne(world.store, 'budget', id)).toBeDefined()
    world.clock.advance(1)
    await removeAll(world)
    expect(await loadOne(world.store, 'budget', id)).toBeUndefined()
  })
})

describe('the budget for the lifetime of a grant', () => {
  test('is kept as long as the grant exists', async () => {
    const { world, client, grant, payment } = await paidUnder({ debitAmount: usd(1000) })
    for (let year = 0; year < 5; year++) {
      world.clock.advance(400 * day)
      await removeAll(world)
    }
    expect(await world.auth.grants.getRecord(grant.grantId)).toBeDefined()
    const rotated = await client.rotate(grant.accessToken)
    const more = await pay(client, rotated.body.access_token.value, 1001)
    expect(more.status, 'only the lapsed amount is available again').toBe(403)
    const all = await pay(client, rotated.body.access_token.value, 1000)
    expect(all.status).toBe(201)
    expect(payment.status).toBe(201)
  })

  test('does not keep a sweep from removing other budgets that are due', async () => {
    const store = memoryStore()
    const world = createSpendingWorld({ store })
    const first = await paidUnder({ debitAmount: usd(1000) }, world)
    const daily = { debitAmount: usd(1000), interval: 'R/2026-11-01T00:00:00Z/P1D' }
    await paidUnder(daily, world, 'kiosk')
    world.clock.advance(1_000 * day)
    await world.resources.sweep()
    const [id = ''] = [(await budgetOf(world, first.payment))?.id]
    while ((await world.resources.sweep({ limit: 1 })).more);
    expect(await store.due('budget', id.slice(0, 8), world.clock.now(), 10)).toEqual([])
    expect(await loadOne(store, 'budget', id), 'the grant still exists').toBeDefined()
  })

  test('is removed once the grant is removed', async () => {
    const { world, grant, payment } = await paidUnder({ debitAmount: usd(1000) })
    const before = await budgetOf(world, payment)
    await world.auth.grants.revoke(grant.grantId)
    world.clock.advance(400 * day)
    await removeAll(world)
    expect(await world.auth.grants.getRecord(grant.grantId)).toBeUndefined()
    expect(await loadOne(world.store, 'budget', before?.id ?? '')).toBeUndefined()
  })
})
