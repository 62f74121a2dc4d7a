import { setImmediate } from 'node:timers/promises'
import fc from 'fast-check'
import { expect } from 'vitest'
import type { MayPay } from '../../src/index.js'
import { createSpendingWorld, grantToPay, outgoingItem, pay, usd, withKey } from './spending.js'
import { payingClient } from './spending-client.js'
import { alice, bob, type WorldOptions } from './world.js'

/** The code of a host that holds funds, over accounts of Alice and Bob. */
export interface HoldingHost {
  readonly mayPay: MayPay
  /** Removes all holds and debits, and gives each account this balance. */
  reset(balance: bigint): Promise<void>
}

type Options = Pick<WorldOptions, 'store'>

/** A grant is limited to less than the account has, so that a payment can be held and then exceed its grant. */
const limit = 1_000n
const balance = 1_500n
const request = fc.record({
  key: fc.nat({ max: 2 }),
  account: fc.constantFrom(alice, bob),
  value: fc.constantFrom(1n, 400n, 600n, 1_000n),
  grant: fc.nat({ max: 1 }),
})
const histories = fc.array(fc.array(request, { minLength: 1, maxLength: 4 }), {
  minLength: 1,
  maxLength: 4,
})

let runs = 0

/** The payments that are created never exceed the balance, whatever keys, amounts, accounts and grants are repeated. */
export function balanceProperty({ mayPay, reset }: HoldingHost, options: Options = {}) {
  let waits: readonly number[] = []
  let calls = 0
  /** Answers in any order, so that any of the requests with one key may create the payment. */
  const inAnyOrder: MayPay = async (payment) => {
    const answer = await mayPay(payment)
    for (let left = waits[calls++ % waits.length] ?? 0; left > 0; left--) await setImmediate()
    return answer
  }
  const world = createSpendingWorld({ ...options, resources: { policy: { mayPay: inAnyOrder } } })
  const client = world.client()
  const limits = { debitAmount: usd(limit) }
  const access = [alice, bob].map((account) => outgoingItem(limits, account))

  const orders = fc.array(fc.nat({ max: 9 }), { minLength: 1, maxLength: 8 })

  return fc.asyncProperty(histories, orders, async (history, order) => {
    waits = order
    calls = 0
    await reset(balance)
    const run = ++runs
    const grants = [
      await grantToPay(world, client, access),
      await grantToPay(world, client, access),
    ]
    const created = new Map<string, { readonly account: string; readonly value: bigint }>()
    for (const atOnce of history) {
      const sent = atOnce.map(async ({ key, account, value, grant }) => {
        const { token = '' } = grants[grant] ?? {}
        const sign = withKey(`${run}-${key}`)
        const { status, body } = await pay(client, token, value, { walletAddress: account }, sign)
        expect([201, 403, 422]).toContain(status)
        if (status === 201) created.set(body.id, { account, value })
      })
      await Promise.all(sent)
    }
    for (const account of [alice, bob]) {
      const own = [...created.values()].filter((payment) => payment.account === account)
      expect(own.reduce((sum, { value }) => sum + value, 0n)).toBeLessThanOrEqual(balance)
    }
  })
}

/**
 * Repeats the key of a payment of 1, which its grant refused after the host held the amount, with 50,000 under another
 * grant. Resolves to the responses, and to what `mayPay` was asked.
 */
export async function repeatWithMore({ mayPay, reset }: HoldingHost, options: Options = {}) {
  await reset(balance + 1n)
  const asked: Parameters<MayPay>[0][] = []
  const run = ++runs
  const send = (grant: string, value: number, key: string) =>
    pay(client, grant, value, {}, withKey(`${run}-${key}`))
  const racing: MayPay = async (payment) => {
    asked.push(payment)
    const answer = await mayPay(payment)
    if (asked.length === 1) expect((await send(token, 1_000, 'A')).status).toBe(201)
    return answer
  }
  const { world, client } = await payingClient({
    ...options,
    resources: { policy: { mayPay: racing } },
  })
  const limits = { debitAmount: usd(limit) }
  const { token } = await grantToPay(world, client, [outgoingItem(limits)])
  const { token: another } = await grantToPay(world, client, [outgoingItem()])
  const refused = await send(token, 1, 'B')
  const repeated = await send(another, 50_000, 'B')
  return {
    refused,
    repeated,
    asked: asked.filter(({ debitAmount }) => debitAmount.value !== '1000'),
  }
}
