import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Client, createClient } from 'open-payments-client'
import type { Amount, ResourceServer } from 'open-payments-server'
import { money } from './money.js'
import { step, tell } from './story.js'

/** The servers of the paying wallet, and the wallet addresses of both sides. */
interface OwnerPaying {
  readonly resources: Pick<ResourceServer, 'quotes' | 'outgoingPayments'>
  readonly from: string
  readonly to: string
  readonly timeoutMs: number
}

const euros = (value: string) => ({ value, assetCode: 'EUR', assetScale: 2 })

// #region another-wallet
interface Sending {
  readonly from: string
  /** A wallet address or payment pointer, as the owner has typed it. */
  readonly to: string
  /** What is to arrive, in the asset of `to`. */
  readonly amount: Amount
}

/** Asks the other wallet for an incoming payment, and this one for its price. */
async function quoteSending(
  client: Client,
  { quotes }: Pick<ResourceServer, 'quotes'>,
  { from, to, amount }: Sending,
) {
  const created = await client.createReceiver({
    walletAddress: to,
    incomingAmount: amount,
    // The owner's time to agree, and your rail's to deliver.
    expiresAt: Date.now() + 60 * 60_000,
  })
  if (!created.ok) return created
  return quotes.create({ walletAddress: from, receiver: created.url })
}
// #endregion another-wallet

/** Alice pays Carol from her own wallet's app: no client and no grant takes part. */
export async function payAsOwner({ resources, from, to, timeoutMs }: OwnerPaying): Promise<void> {
  const { outgoingPayments } = resources
  step('Alice enters Carol’s wallet address in the app of her own wallet, and EUR 5.00')
  // A key alone suffices to create a receiver. A wallet has an address for its own, as in examples/ilp.
  const { privateKey } = generateKeyPairSync('ed25519')
  const limitMs = 5 * timeoutMs
  const client = createClient({ keyId: 'wallet', privateKey, limitMs, allowLoopback: true })
  const found = await client.addressOf(to)
  assert(found.ok, JSON.stringify(found))
  tell('found', `${found.address.publicName}, whose account is in ${found.address.asset.assetCode}`)

  step('Her wallet tells the price, and she agrees: no app asks, and no grant is needed')
  const quoted = await quoteSending(client, resources, { from, to, amount: euros('500') })
  assert(quoted.ok, JSON.stringify(quoted))
  const { quoteId, receiver, debitAmount, receiveAmount } = quoted.quote
  tell('incoming payment', receiver)
  tell('quote', `${money(receiveAmount)} arrives, ${money(debitAmount)} is debited`)
  const order = { walletAddress: from, quoteId }
  const [first, again] = [
    await outgoingPayments.create(order),
    await outgoingPayments.create(order),
  ]
  assert(first.ok && again.ok, JSON.stringify([first, again]))
  const { paymentId, client: app } = first.payment
  assert.deepEqual([app, first.changed], [undefined, true])
  assert.deepEqual([again.payment.paymentId, again.changed], [paymentId, false])
  tell('outgoing payment', `${paymentId}; a second click gets the same one`)

  step('Her wallet sends it, and Carol’s wallet has completed it')
  for (;;) {
    const payment = await outgoingPayments.get(paymentId)
    assert(payment?.status !== 'failed', 'the payment must not fail')
    if (payment?.status === 'completed') break
    await sleep(100)
  }
  const closed = await client.receiverOf(receiver)
  assert(!closed.ok && closed.refusal === 'receiver_closed', JSON.stringify(closed))
  assert.deepEqual(closed.receivedAmount, euros('500'))
  tell('Carol', `${money(closed.receivedAmount)} has arrived`)
}
