import { expect, test } from 'vitest'
import type { AccessItem, DeliveredEvent } from '../../src/index.js'
import { bob, createWorld, resourceServer } from '../support/world.js'

const usd = (value: string) => ({ value, assetCode: 'USD', assetScale: 2 })
const reason = 'the order was withdrawn'

/** A payment of a client that has received 30 of 100. */
async function setUp() {
  const world = createWorld()
  const client = world.client()
  const access: AccessItem = {
    type: 'incoming-payment',
    actions: ['create', 'read', 'list', 'complete'],
    identifier: bob,
  }
  const { body } = await client.request([access])
  const token: string = body.access_token.value
  const { body: payment } = await client.createPayment(token, {
    walletAddress: bob,
    incomingAmount: usd('100'),
  })
  const { incomingPayments } = world.resources
  const paymentId = incomingPayments.idOf(payment.id) ?? ''
  const arrive = (transferId: string, value: string) =>
    incomingPayments.receive(paymentId, { transferId, amount: usd(value) })
  await arrive('first', '30')
  world.clock.advance(1_000)
  return { world, client, token, url: payment.id as string, paymentId, incomingPayments, arrive }
}

async function eventsOf({ resources }: ReturnType<typeof createWorld>) {
  const events: DeliveredEvent[] = []
  await resources.events.drain(async (event) => void events.push(event))
  return events
}

test('a payment that the host cancels has expired for its client, which does not learn the reason', async () => {
  const { world, client, token, url, paymentId, incomingPayments } = await setUp()
  const { body: before } = await client.getPayment(token, url)
  expect(before.methods).toHaveLength(1)
  const result = await incomingPayments.cancel(paymentId, { reason })
  const cancelledAt = world.clock.now()
  const view = { status: 'expired', expiresAt: cancelledAt, receivedAmount: usd('30') }
  expect(result).toMatchObject({ ok: true, changed: true, payment: view })
  expect(await incomingPayments.get(paymentId)).toMatchObject({ ...view, cancellation: { reason } })

  const expiresAt = new Date(cancelledAt).toISOString()
  const seen = { ...before, expiresAt, completed: false, methods: [] }
  const { body: after } = await client.getPayment(token, url)
  expect(after).toEqual(seen)
  const list = new URL(`${resourceServer}/incoming-payments`)
  list.searchParams.set('wallet-address', bob)
  const listed = await client.send({ method: 'GET', url: list.href, token })
  expect(listed.body.result).toEqual([{ ...seen, methods: undefined }])
  const completed = await client.post(`${url}/complete`, undefined, token)
  expect([completed.status, JSON.stringify([after, listed, completed])]).toEqual([
    409,
    expect.not.stringContaining(reason),
  ])
})

test('a cancelled payment has one final event, which says so without the reason', async () => {
  const { world, paymentId, incomingPayments } = await setUp()
  await incomingPayments.cancel(paymentId, { reason })
  expect(await incomingPayments.cancel(paymentId, { reason: 'another' })).toMatchObject({
    ok: true,
    changed: false,
    payment: { cancellation: { reason } },
  })
  world.clock.advance(90 * 86_400_000)
  await world.resources.sweep()
  const events = await eventsOf(world)
  expect(events.map(({ type }) => type)).toEqual([
    'incoming-payment.created',
    'incoming-payment.received',
    'incoming-payment.expired',
  ])
  expect(events[2]).toMatchObject({ cancelled: true, receivedAmount: usd('30') })
  expect(JSON.stringify(events)).not.toContain(reason)
})

test('what arrives after a cancellation is refused, and what was counted before stays counted', async () => {
  const { paymentId, incomingPayments, arrive } = await setUp()
  await incomingPayments.cancel(paymentId)
  expect(await arrive('second', '70')).toMatchObject({ ok: false, refusal: 'payment_expired' })
  expect(await arrive('first', '30')).toMatchObject({ ok: true, changed: false })
  const outcome = (transferId: string) => incomingPayments.close(transferId, { paymentId })
  expect(await outcome('first')).toMatchObject({ ok: true, counted: true, amount: usd('30') })
  expect(await outcome('second')).toMatchObject({ ok: true, counted: false, changed: true })
})

test('a transfer that arrives while the host cancels is counted before the end, or refused', async () => {
  const orders = [0, 1].map(async (order) => {
    const { paymentId, incomingPayments, arrive } = await setUp()
    const calls = [() => arrive('second', '70'), () => incomingPayments.cancel(paymentId)]
    const started = (order === 0 ? calls : calls.toReversed()).map((call) => call())
    const [one, other] = await Promise.all(started)
    const [arrived, cancelled] = order === 0 ? [one, other] : [other, one]
    const payment = await incomingPayments.get(paymentId)
    expect([arrived?.ok, cancelled?.ok].filter((ok) => ok)).toHaveLength(1)
    expect(payment).toMatchObject(
      arrived?.ok
        ? { status: 'completed', receivedAmount: usd('100') }
        : { status: 'expired', receivedAmount: usd('30') },
    )
    if (arrived?.ok) expect(cancelled).toMatchObject({ refusal: 'payment_completed' })
  })
  await Promise.all(orders)
})

test('an unknown payment cannot be cancelled', async () => {
  const { incomingPayments } = await setUp()
  expect(await incomingPayments.cancel('unknown')).toMatchObject({ refusal: 'payment_unknown' })
})
