import { type Client, createClient } from 'open-payments-client'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Amount, IncomingPaymentView } from '../../src/index.js'
import { startIlpPair } from '../support/ilp-pair.js'
import { testKey } from '../support/keys.js'
import { usd } from '../support/spending.js'

type Pair = Awaited<ReturnType<typeof startIlpPair>>

let pair: Pair
/** The resource server of the wallet that refunds, and its client of other wallets. */
let resources: Pair['one']['wallet']['resources']
let client: Pick<Client, 'createReceiver'>
beforeAll(async () => {
  pair = await startIlpPair()
  const [walletAddress, key] = [`${pair.two.baseUrl}/bob`, testKey('bob')]
  await pair.two.publish(walletAddress, key)
  const { kid: keyId, privateKey } = key
  const limits = { allowLoopback: true, limitMs: 60_000 }
  client = createClient({ walletAddress, keyId, privateKey, ...limits })
  resources = pair.two.wallet.resources
})
afterAll(() => pair?.stop())

// #region refund
/** The receivers of refunds, by the id of the incoming payment: a table of yours. */
const receivers = new Map<string, string>()

/** Pays back all that an incoming payment has received, or a part, to who paid it. */
async function refund(
  { paymentId, walletAddress, receivedAmount: incomingAmount }: IncomingPaymentView,
  payer: string,
  { id, ...amount }: { id: string; receiveAmount?: Amount } = { id: 'all' },
) {
  if (!receivers.has(paymentId)) {
    const created = await client.createReceiver({
      ...{ walletAddress: payer, incomingAmount, metadata: { refundOf: paymentId } },
      expiresAt: Date.now() + 7 * 86_400_000,
    })
    if (!created.ok) return created
    // The first one stays: the protocol has no key by which to ask for it again.
    if (!receivers.has(paymentId)) receivers.set(paymentId, created.url)
  }
  const receiver = receivers.get(paymentId) ?? ''
  const idempotencyKey = `refund ${paymentId} ${id}`
  const order = { walletAddress, receiver, ...amount, idempotencyKey }
  return resources.outgoingPayments.create(order)
}
// #endregion refund

const alice = () => `${pair.one.baseUrl}/alice`

/** Alice pays Bob, who has an account in the other wallet, and his incoming payment is complete. */
async function paidByAlice(value: number): Promise<IncomingPaymentView> {
  const [one, two] = [pair.one.wallet.resources, pair.two.wallet.resources]
  const idempotencyKey = crypto.randomUUID()
  const invoice = await two.incomingPayments.create({
    ...{ walletAddress: `${pair.two.baseUrl}/bob`, idempotencyKey, incomingAmount: usd(value) },
  })
  if (!invoice.ok) throw new Error(invoice.reason)
  const order = { walletAddress: alice(), receiver: invoice.url, idempotencyKey }
  await completed(pair.one, await one.outgoingPayments.create(order))
  const received = await two.incomingPayments.get(invoice.payment.paymentId)
  if (received?.status !== 'completed') throw new Error('the invoice is not paid')
  return received
}

type Ordered = Awaited<ReturnType<typeof refund>>

/** Waits until an ordered payment has ended, and returns what it has debited. */
async function completed({ wallet }: Pair['one'], ordered: Ordered): Promise<bigint> {
  if (!ordered.ok) throw new Error(ordered.reason)
  const { paymentId } = ordered.payment
  const read = async () => wallet.resources.outgoingPayments.get(paymentId)
  await expect.poll(async () => (await read())?.status).toBe('completed')
  return BigInt((await read())?.sentAmount.value ?? 0)
}

/** What stands in the books of both wallets: an account of each, what is held, and what the other wallet owes. */
async function books() {
  const bookOf = async ({ wallet }: Pair['one'], url: string) => {
    const held = 'SELECT COALESCE(SUM(amount), 0) AS held FROM holds WHERE wallet_address = ?'
    return {
      balance: (await wallet.ledger.find(url))?.balance ?? -1n,
      held: Number((await wallet.database.sql(held, url))[0]?.['held']),
      owed: Object.values(await wallet.rail.balances())[0] ?? 0n,
    }
  }
  return {
    payer: await bookOf(pair.one, alice()),
    payee: await bookOf(pair.two, `${pair.two.baseUrl}/bob`),
  }
}

test('a whole refund leaves both books as before the payment, but for the fees, and is paid once', async () => {
  const before = await books()
  const received = await paidByAlice(700)
  const first = await refund(received, alice())
  expect(first).toMatchObject({ ok: true, changed: true, payment: { receiveAmount: usd(700) } })
  // Each wallet charges its own payer 1 %.
  expect(await completed(pair.two, first)).toBe(707n)
  const after = await books()
  expect(after).toEqual({
    payer: { ...before.payer, balance: before.payer.balance - 707n + 700n },
    payee: { ...before.payee, balance: before.payee.balance + 700n - 707n },
  })
  expect([after.payer.held, after.payee.held, after.payer.owed + after.payee.owed]).toEqual([
    0,
    0,
    0n,
  ])

  const again = await refund(received, alice())
  expect(again).toMatchObject({ ok: true, changed: false, url: first.ok && first.url })
  const receiver = receivers.get(received.paymentId)
  receivers.delete(received.paymentId)
  // A host that has lost the URL of the receiver gets another one, and pays nothing to it.
  expect(await refund(received, alice())).toMatchObject({ refusal: 'request_differs' })
  expect(receivers.get(received.paymentId)).not.toBe(receiver)
  expect(await books()).toEqual(after)
})

test('refunds in parts, one after the other, bring what was received, and not a cent more', async () => {
  const received = await paidByAlice(500)
  const part = (id: string, value: number) =>
    refund(received, alice(), { id, receiveAmount: usd(value) })
  const before = await books()
  await completed(pair.two, await part('1', 200))
  expect(await part('1', 200)).toMatchObject({ changed: false })
  expect(await part('1', 201)).toMatchObject({ refusal: 'request_differs' })
  expect(await part('2', 301)).toMatchObject({ refusal: 'amount_invalid' })
  await completed(pair.two, await part('3', 300))
  expect(await part('4', 1)).toMatchObject({ refusal: 'receiver_invalid' })
  const after = await books()
  expect(after.payer.balance - before.payer.balance).toBe(500n)
  expect([after.payer.held, after.payee.held]).toEqual([0, 0])
  expect(receivers.has(received.paymentId)).toBe(true)
})
