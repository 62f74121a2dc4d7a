import { describe, expect, test } from 'vitest'
import { memoryStore } from '../../src/index.js'
import { manualClock } from '../support/clock.js'
import {
  createSpendingWorld,
  grantToPay,
  outgoingItem,
  pay,
  shopReceiver,
  usd,
} from '../support/spending.js'
import { alice, bob, grantEndpoint, origin, resourceServer } from '../support/world.js'

const moved = { grantEndpoint: `${grantEndpoint}/new`, baseUrl: `${resourceServer}/new` }

/** A wallet and its successor at other URLs, on one store. */
function successors() {
  const shared = { store: memoryStore(), clock: manualClock() }
  const old = createSpendingWorld(shared)
  const next = createSpendingWorld({
    ...shared,
    auth: { grantEndpoint: moved.grantEndpoint },
    resources: { baseUrl: moved.baseUrl },
  })
  return { ...shared, old, next }
}

const invoice = { walletAddress: bob, idempotencyKey: 'invoice 17' }

describe('a server that is created with another URL', () => {
  test('knows no payment of the old URL, which still receives its funds and its events', async () => {
    const { old, next } = successors()
    const created = await old.resources.incomingPayments.create(invoice)
    if (!created.ok) throw new Error(created.reason)
    const { paymentId: id } = created.payment
    expect(await next.resources.incomingPayments.get(id)).toBeUndefined()
    expect(next.resources.incomingPayments.idOf(created.url)).toBeUndefined()
    const funds = { transferId: 'transfer 1', amount: usd(5) }
    expect(await next.resources.incomingPayments.receive(id, funds)).toMatchObject({ ok: false })
    expect(await old.resources.incomingPayments.receive(id, funds)).toMatchObject({ ok: true })
    const heard = (world: typeof old) => world.resources.events.drain(() => {})
    expect(await heard(next)).toMatchObject({ delivered: 0 })
    expect(await heard(old)).toMatchObject({ delivered: 2 })
  })

  test('does not recognize the idempotency keys of the old URL', async () => {
    const { old, next } = successors()
    await old.resources.incomingPayments.create(invoice)
    const again = await next.resources.incomingPayments.create(invoice)
    expect(again).toMatchObject({ ok: true, changed: true })
  })
})

describe('a resource server that moves alone', () => {
  test('serves the tokens of its authorization server, within the same limits at both URLs', async () => {
    const shared = { store: memoryStore(), clock: manualClock() }
    const old = createSpendingWorld(shared)
    const next = createSpendingWorld({
      ...shared,
      resources: { baseUrl: moved.baseUrl, grants: old.auth, store: old.store },
    })
    const [client, movedClient] = [old.client(), next.client()]
    const { token, grantId } = await grantToPay(old, client, [
      outgoingItem({ debitAmount: usd(100) }),
    ])
    const payAtNext = (amount: number) =>
      movedClient.post(
        `${moved.baseUrl}/outgoing-payments`,
        { walletAddress: alice, incomingPayment: shopReceiver, debitAmount: usd(amount) },
        token,
      )
    expect((await pay(client, token, 60)).status).toBe(201)
    expect((await payAtNext(50)).status).toBe(403)
    expect((await payAtNext(40)).status).toBe(201)
    expect((await pay(client, token, 1)).status).toBe(403)
    const listed = await next.resources.outgoingPayments.list({ grantId })
    expect(listed.result).toMatchObject([{ debitAmount: usd(40) }])
    const spent = await movedClient.send({
      method: 'GET',
      url: `${moved.baseUrl}/outgoing-payment-grant`,
      token,
    })
    expect(spent.body).toMatchObject({ spentDebitAmount: usd(100) })
  })
})

test('a URL that only has another spelling is the same server', async () => {
  const { store, old } = successors()
  const created = await old.resources.incomingPayments.create(invoice)
  if (!created.ok) throw new Error(created.reason)
  const spelling = `${origin.toUpperCase()}/op/`
  const same = createSpendingWorld({ store, resources: { baseUrl: spelling } })
  expect(await same.resources.incomingPayments.get(created.payment.paymentId)).toEqual(
    created.payment,
  )
})
