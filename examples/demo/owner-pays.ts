import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { createClient } from 'open-payments-client'
import type { ResourceServer } from 'open-payments-server'
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

/** Alice pays Carol from her own wallet's app: no client and no grant takes part. */
export async function payAsOwner({ resources, from, to, timeoutMs }: OwnerPaying): Promise<void> {
  const { quotes, outgoingPayments } = resources
  step('Alice enters Carol’s wallet address in the app of her own wallet, and EUR 5.00')
  // A key alone suffices to create a receiver. A wallet has an address for its own, as in examples/ilp.
  const { privateKey } = generateKeyPairSync('ed25519')
  const limitMs = 5 * timeoutMs
  const client = createClient({ keyId: 'wallet', privateKey, limitMs, allowLoopback: true })
  const found = await client.addressOf(to)
  assert(found.ok, JSON.stringify(found))
  tell('found', `${found.address.publicName}, whose account is in ${found.address.asset.assetCode}`)
  const asked = await client.createReceiver({
    walletAddress: found.address,
    incomingAmount: euros('500'),
    expiresAt: Date.now() + 60 * 60 * 1_000,
    metadata: { description: 'Tea' },
  })
  assert(asked.ok, JSON.stringify(asked))
  tell('incoming payment', asked.url)

  step('Her wallet tells the price, and she agrees: no app asks, and no grant is needed')
  const quoted = await quotes.create({ walletAddress: from, receiver: asked.url })
  assert(quoted.ok, JSON.stringify(quoted))
  const { quoteId, debitAmount, receiveAmount } = quoted.quote
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
  const closed = await client.receiverOf(asked.url)
  assert(!closed.ok && closed.refusal === 'receiver_closed', JSON.stringify(closed))
  assert.deepEqual(closed.receivedAmount, euros('500'))
  tell('Carol', `${money(closed.receivedAmount)} has arrived`)
}
