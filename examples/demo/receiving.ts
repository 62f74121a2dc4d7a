import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Wallet } from 'create-open-payments-server/wallet/wallet'
import { arrive } from '../created-wallet/arrive.js'
import { accessTo, dollars, refused, type Scene } from './app.js'
import { step, tell } from './story.js'

/**
 * Creates an incoming payment that expires in about a second: later if the machine is too slow to create it by then.
 */
async function shortPayment({ client }: Scene, bobs: Access, walletAddress: string) {
  for (let lifetimeMs = 1_000; ; lifetimeMs *= 2) {
    const expiresAt = new Date(Date.now() + lifetimeMs).toISOString()
    try {
      return await client.incomingPayment.create(bobs, { walletAddress, expiresAt })
    } catch (error) {
      if (Date.now() < Date.parse(expiresAt)) throw error
    }
  }
}

type Access = Awaited<ReturnType<typeof accessTo>>

/** Bob receives funds from outside: an incoming payment accepts funds until it is complete or expired. */
export async function getPaid(scene: Scene, wallet: Wallet): Promise<void> {
  const { client, baseUrl } = scene
  async function fundsArrive(url: string, value: string) {
    const transfer = { transferId: randomUUID(), amount: dollars(value) }
    const id = wallet.resources.incomingPayments.idOf(url) ?? ''
    const received = await arrive(wallet, id, transfer)
    return received.ok ? 'accepted' : received.refusal
  }
  const bob = `${baseUrl}/bob`
  step('The app creates an incoming payment for Bob')
  const bobs = await accessTo(scene, [
    { type: 'incoming-payment', actions: ['create', 'read'], identifier: bob },
  ])
  const { accessToken } = bobs
  const payment = await client.incomingPayment.create(bobs, {
    walletAddress: bob,
    incomingAmount: dollars('2500'),
    metadata: { invoice: 'INV-2026-17' },
  })
  tell('incoming payment', payment.id)
  tell('pay to', payment.methods[0]?.ilpAddress ?? '')

  step('Funds arrive')
  assert.equal(await fundsArrive(payment.id, '1500'), 'accepted')
  tell('USD 15.00', 'accepted')
  assert.equal(await fundsArrive(payment.id, '1000'), 'accepted')
  const complete = await client.incomingPayment.get({ url: payment.id, accessToken })
  assert.equal(complete.completed, true)
  assert.equal(complete.receivedAmount?.value, '2500')
  tell('USD 10.00', 'accepted, and the payment is complete')
  assert.equal(await fundsArrive(payment.id, '100'), 'payment_completed')
  tell('USD 1.00', 'refused: the payment is complete')

  step('Another payment expires')
  const short = await shortPayment(scene, bobs, bob)
  while (Date.now() <= Date.parse(short.expiresAt ?? '')) await sleep(50)
  assert.equal(await fundsArrive(short.id, '100'), 'payment_expired')
  tell('USD 1.00', 'refused: the payment has expired')

  step('The token does not allow payments to others')
  const foreign = client.incomingPayment.create(bobs, { walletAddress: `${baseUrl}/carol` })
  await refused(foreign, 403, 'insufficient_access')
  tell('for Carol', 'refused: the token is for Bob')
}
