import { describe, expect, test } from 'vitest'
import { eventRecordId } from '../../src/service/event-record.js'
import { createSpendingWorld, grantToPay, outgoingItem, pay, usd } from '../support/spending.js'
import { bob, incomingAccess } from '../support/world.js'

const day = 86_400_000

/** A wallet in which a client without consent has created incoming payments. */
async function withIncomingPayments(count: number) {
  const world = createSpendingWorld()
  const stranger = world.client('other')
  const { body } = await stranger.request([incomingAccess])
  const ids: string[] = []
  for (let i = 0; i < count; i++) {
    const request = { walletAddress: bob, incomingAmount: usd(5) }
    const created = await stranger.createPayment(body.access_token.value, request)
    ids.push(world.resources.incomingPayments.idOf(created.body.id) ?? '')
  }
  return { world, ids }
}

const sliceOf = (eventRecordId: string) => eventRecordId[7]

describe('incoming payments, which clients create without consent', () => {
  test('do not delay the event of a payment that is to be sent', async () => {
    const { world } = await withIncomingPayments(120)
    world.clock.advance(1_000)
    const client = world.client()
    const { token } = await grantToPay(world, client, [outgoingItem({ debitAmount: usd(100) })])
    await pay(client, token, 100)
    const heard: { readonly type: string; readonly slice: string | undefined }[] = []
    await world.resources.events.drain(
      ({ id, type }) => void heard.push({ type, slice: sliceOf(eventRecordId(id)) }),
      { limit: 200, concurrency: 1 },
    )
    // The slices of the outbox take turns, of at most a second each.
    const created = heard.findIndex(({ type }) => type === 'outgoing-payment.created')
    const before = heard.slice(0, created).filter(({ slice }) => slice === heard[created]?.slice)
    expect([heard.length, created >= 0, before]).toEqual([121, true, []])
  })

  test('are removed a week after their expiry if they received nothing', async () => {
    const { world, ids } = await withIncomingPayments(2)
    const { incomingPayments, sweep } = world.resources
    const [paid = '', unpaid = ''] = ids
    await incomingPayments.receive(paid, { transferId: 'a', amount: usd(1) })
    world.clock.advance(30 * day + 7 * day - 1)
    while ((await sweep()).more);
    expect(await incomingPayments.get(unpaid)).toBeDefined()
    world.clock.advance(1)
    while ((await sweep()).more);
    expect(await incomingPayments.get(unpaid)).toBeUndefined()
    expect(await incomingPayments.get(paid)).toBeDefined()
    world.clock.advance(358 * day - 1)
    while ((await sweep()).more);
    expect(await incomingPayments.get(paid)).toBeDefined()
    world.clock.advance(1)
    while ((await sweep()).more);
    expect(await incomingPayments.get(paid)).toBeUndefined()
  })
})
