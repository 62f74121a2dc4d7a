import { describe, expect, test } from 'vitest'
import { closeAccount } from '../../examples/integration/close-account.js'
import type { MayPay, WalletAddress } from '../../src/index.js'
import { authorities, payerOf } from '../support/authorities.js'
import { createSpendingWorld, grantToPay, outgoingItem, usd } from '../support/spending.js'
import { alice, bob } from '../support/world.js'

const resourceOwner = 'alice'
const closed = { walletAddress: alice, resourceOwner }

/** A wallet in which Alice confirms payments above 50, with payments in each state, by an app and by her own order. */
async function used() {
  const account = { active: true }
  const find = async (url: string): Promise<WalletAddress | undefined> => {
    if (url !== alice && url !== bob) return undefined
    return { url, assetCode: 'USD', assetScale: 2, ...(url === alice && account) }
  }
  const mayPay: MayPay = async ({ outgoingPaymentId: id, debitAmount, isConfirmed }) => {
    if (BigInt(debitAmount.value) <= 50n || isConfirmed) return { ok: true }
    const url = `https://wallet.example/confirm/${id}`
    const until = world.clock.now() + 900_000
    return { ok: false, refusal: 'confirmation_required', url, until }
  }
  const world = createSpendingWorld({
    resources: { walletAddresses: { find }, policy: { mayPay } },
  })
  const { outgoingPayments, incomingPayments } = world.resources
  const order = { resourceOwner }
  const running: string[] = []
  const client = world.client()
  for (const authority of authorities) {
    const payer = await payerOf(world, authority, { order, client })
    await payer.pay(60) // waits for Alice
    await payer.pay(10) // is created
    for (const state of ['begun', 'in doubt', 'completed'] as const) {
      const id = outgoingPayments.idOf((await payer.pay(20)).body.id) ?? ''
      await outgoingPayments.begin(id)
      const inDoubt = { amount: usd(20), since: world.clock.now(), reason: 'no reply' }
      if (state === 'in doubt') await outgoingPayments.fail(id, { sentAmount: usd(20), inDoubt })
      if (state === 'completed') {
        const totals = { sentAmount: usd(20), deliveredAmount: usd(20) }
        await outgoingPayments.reportSent(id, totals)
      } else running.push(id)
    }
  }
  const opened = await incomingPayments.create({ walletAddress: alice, idempotencyKey: '1' })
  const others = await incomingPayments.create({ walletAddress: bob, idempotencyKey: '2' })
  if (!opened.ok || !others.ok) throw new Error('it was not created')
  account.active = false
  const waiting = async () =>
    (await outgoingPayments.listToConfirm({ walletAddress: alice })).result
  return { world, client, running, waiting, opened: opened.payment, others: others.payment }
}

describe('an account that is closed', () => {
  test('has nothing open but what is being sent or in doubt', async () => {
    const { world, running, waiting, opened, others } = await used()
    const { auth, resources } = world
    expect(await waiting()).toHaveLength(2)
    for (const _ of ['once', 'again']) {
      expect((await closeAccount(world, closed)).toSorted()).toEqual(running.toSorted())
    }
    expect(await waiting()).toEqual([])
    const { result } = await auth.grants.list({ resourceOwner })
    expect(result.map(({ status }) => status)).toEqual(['revoked'])
    const payments = await resources.outgoingPayments.list({ walletAddress: alice, last: 100 })
    expect(payments.result.map(({ status }) => status)).not.toContain('created')
    const { incomingPayments } = resources
    expect(await incomingPayments.get(opened.paymentId)).toMatchObject({ status: 'expired' })
    expect(await incomingPayments.get(others.paymentId)).toMatchObject({ status: 'open' })
    const late = { transferId: 'late', amount: usd(100) }
    const received = await incomingPayments.receive(opened.paymentId, late)
    expect(received).toMatchObject({ ok: false, refusal: 'payment_expired' })
  })

  test('is free once the payments that were being sent have ended', async () => {
    const { world } = await used()
    const { outgoingPayments } = world.resources
    for (const id of await closeAccount(world, closed)) {
      const ended = await outgoingPayments.fail(id)
      if (!ended.ok) await outgoingPayments.decideDoubt(id, { refunded: usd(20) })
    }
    expect(await closeAccount(world, closed)).toEqual([])
  })

  test('ends no grant of another account of its owner', async () => {
    const { world, client } = await used()
    const { grantId } = await grantToPay(world, client, [
      outgoingItem({ debitAmount: usd(100) }, bob),
    ])
    await closeAccount(world, closed)
    expect(await world.auth.grants.get(grantId)).toMatchObject({ status: 'approved' })
  })
})
