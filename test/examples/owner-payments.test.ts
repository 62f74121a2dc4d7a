import type { Client } from 'open-payments-client'
import { expect, test } from 'vitest'
import { type IncomingPaymentView, memoryStore } from '../../src/index.js'
import { createSpendingWorld, shopReceiver, usd } from '../support/spending.js'
import { alice, bob } from '../support/world.js'

const world = () => createSpendingWorld({ store: memoryStore() })
type Resources = ReturnType<typeof world>['resources']

/** The wallet and its client of the test that runs. */
const wallet: { resources: Resources; client: Pick<Client, 'createReceiver'> } = {
  resources: world().resources,
  client: otherWallet(),
}

// #region terminal
/** Pays what a merchant's terminal shows, with the card that was held to it. */
async function payTerminal(
  walletAddress: string,
  tap: { id: string; incomingPayment: string; card: { last4: string } },
) {
  return wallet.resources.outgoingPayments.create({
    walletAddress,
    receiver: tap.incomingPayment, // which has an amount
    idempotencyKey: `terminal ${tap.id}`,
    data: { card: tap.card },
  })
}
// #endregion terminal

// #region refund
/** Pays back what an incoming payment has received, to who paid it. */
async function refund(received: IncomingPaymentView, payer: string) {
  const { paymentId, walletAddress, receivedAmount } = received
  const created = await wallet.client.createReceiver({
    walletAddress: payer,
    incomingAmount: receivedAmount,
    expiresAt: Date.now() + 3_600_000,
    metadata: { refundOf: paymentId },
  })
  if (!created.ok) return created
  return wallet.resources.outgoingPayments.create({
    walletAddress,
    receiver: created.url,
    idempotencyKey: `refund ${paymentId}`,
  })
}
// #endregion refund

/** Creates receivers at another wallet: each time another one. */
function otherWallet() {
  const asked: unknown[] = []
  const createReceiver: Client['createReceiver'] = async (request) => {
    asked.push(request)
    return { ok: true, url: shopReceiver, receiver: {} as never }
  }
  return { asked, createReceiver }
}

test('a terminal is paid once, with the data of the card', async () => {
  const { resources } = world()
  wallet.resources = resources
  const tap = { id: '17', incomingPayment: shopReceiver, card: { last4: '4711' } }
  const paid = await payTerminal(alice, tap)
  expect(paid).toMatchObject({ ok: true, changed: true, payment: { data: { card: tap.card } } })
  expect(await payTerminal(alice, tap)).toMatchObject({ ok: true, changed: false })
})

test('what was received is paid back once', async () => {
  const { resources } = world()
  const { asked, createReceiver } = otherWallet()
  Object.assign(wallet, { resources, client: { createReceiver } })
  const invoice = { walletAddress: bob, idempotencyKey: 'invoice' }
  const created = await resources.incomingPayments.create(invoice)
  if (!created.ok) throw new Error(created.reason)
  const { paymentId } = created.payment
  await resources.incomingPayments.receive(paymentId, { transferId: 't', amount: usd(700) })
  const received = await resources.incomingPayments.get(paymentId)
  if (received === undefined) throw new Error('there is no payment')
  const back = await refund(received, 'https://other.example/carol')
  expect(back).toMatchObject({ ok: true, changed: true })
  expect(asked).toMatchObject([{ incomingAmount: usd(700), metadata: { refundOf: paymentId } }])
  expect(await refund(received, 'https://other.example/carol')).toMatchObject({ changed: false })
})

test('a repeat with another receiver is refused, and pays nothing', async () => {
  const { resources } = world()
  const order = { walletAddress: bob, idempotencyKey: 'refund 1', debitAmount: usd(1) }
  const first = await resources.outgoingPayments.create({ ...order, receiver: shopReceiver })
  expect(first).toMatchObject({ changed: true })
  const other = `${shopReceiver}-again`
  expect(await resources.outgoingPayments.create({ ...order, receiver: other })).toMatchObject({
    refusal: 'request_differs',
  })
})
