import { setImmediate } from 'node:timers/promises'
import fc from 'fast-check'
import { expect } from 'vitest'
import type { Outcome } from '../../examples/host-transaction/settle-outgoing.js'
import type { Amount, MayPay, ResourceServer } from '../../src/index.js'
import type { Resources } from './bank.js'
import { hostCall } from './host-call.js'
import { createSpendingWorld, grantToPay, outgoingItem, pay, usd, withKey } from './spending.js'
import { alice, bob, type WorldOptions } from './world.js'

/** The code of a host that holds funds, over accounts of Alice and Bob. */
export interface HoldingHost {
  readonly mayPay: MayPay
  /** Removes all holds and debits, and gives each account this balance. */
  reset(balance: bigint): Promise<void>
}

type Options = Pick<WorldOptions, 'store'>

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
    const answer = await mayPay(payment, hostCall)
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

/** A host with a ledger, which settles payments and releases holds. */
export interface LedgerHost extends HoldingHost {
  settle(resources: Resources, paymentId: string, outcome: Outcome): Promise<unknown>
  /** Handles the events that are due. */
  release(resources: ResourceServer): Promise<unknown>
  /** The sum of the entries of an account. */
  balanceOf(account: string): Promise<bigint>
  holds(): Promise<
    readonly { readonly paymentId: string; readonly account: string; readonly amount: bigint }[]
  >
}

const end = fc.record({ index: fc.nat(), sent: fc.constantFrom(0, 0.5, 1), arrived: fc.boolean() })
const steps = fc.oneof(
  { weight: 4, arbitrary: request.map((pays) => ({ pays })) },
  { weight: 3, arbitrary: end.map((ends) => ({ ends })) },
  { weight: 1, arbitrary: fc.nat().map((cancels) => ({ cancels })) },
  { weight: 1, arbitrary: fc.constant({ releases: true }) },
)
type Step = typeof steps extends fc.Arbitrary<infer Value> ? Value : never
const lives = fc.array(fc.array(steps, { minLength: 1, maxLength: 5 }), {
  minLength: 1,
  maxLength: 4,
})

/**
 * However concurrent payments, settlements, failures, cancellations and releases interleave, no account owes anything
 * after its holds; and once all events are handled, the holds of payments remain that have not ended, and no other.
 */
export function ledgerProperty(host: LedgerHost, options: Options = {}) {
  const { mayPay } = host
  const world = createSpendingWorld({ ...options, resources: { policy: { mayPay } } })
  const client = world.client()
  const { outgoingPayments } = world.resources
  const limits = { debitAmount: usd(limit) }
  const access = [alice, bob].map((account) => outgoingItem(limits, account))

  return fc.asyncProperty(lives, async (life) => {
    await host.reset(balance)
    const run = ++runs
    const grants = [
      await grantToPay(world, client, access),
      await grantToPay(world, client, access),
    ]
    const created: string[] = []
    const at = (index: number) => created[index % created.length]

    async function take(step: Step) {
      if ('pays' in step) {
        const { key, account, value, grant } = step.pays
        const { token = '' } = grants[grant] ?? {}
        const sign = withKey(`${run}-${key}`)
        const { status, body } = await pay(client, token, value, { walletAddress: account }, sign)
        expect([201, 403, 422]).toContain(status)
        const id = status === 201 ? outgoingPayments.idOf(body.id) : undefined
        if (id !== undefined && !created.includes(id)) created.push(id)
      } else if ('ends' in step) {
        const id = at(step.ends.index)
        const begun = id === undefined ? undefined : await outgoingPayments.begin(id)
        if (id === undefined || !begun?.ok) return
        const { debitAmount, receiveAmount } = begun.payment
        const part = ({ value, ...asset }: Amount) => ({
          ...asset,
          value: String(Math.floor(Number(value) * step.ends.sent)),
        })
        const totals = { sentAmount: part(debitAmount), deliveredAmount: part(receiveAmount) }
        await host.settle(world.resources, id, { ...totals, arrived: step.ends.arrived })
      } else if ('cancels' in step) {
        const id = at(step.cancels)
        if (id !== undefined) await outgoingPayments.cancel(id)
      } else await host.release(world.resources)
    }

    for (const atOnce of life) {
      await Promise.all(atOnce.map(take))
      const held = await host.holds()
      for (const account of [alice, bob]) {
        const own = held.filter((hold) => hold.account === account)
        const available = own.reduce(
          (left, { amount }) => left - amount,
          await host.balanceOf(account),
        )
        expect(available).toBeGreaterThanOrEqual(0n)
      }
    }
    await host.release(world.resources)
    const payments = await Promise.all(created.map((id) => outgoingPayments.get(id)))
    const open = payments.filter((payment) => payment?.endedAt === undefined)
    const remaining = new Set((await host.holds()).map(({ paymentId }) => paymentId))
    expect([...remaining].sort()).toEqual(open.map((payment) => payment?.paymentId).sort())
    for (const account of [alice, bob]) {
      const own = payments.filter((payment) => payment?.walletAddress === account)
      const sent = own.reduce((sum, payment) => sum + BigInt(payment?.sentAmount.value ?? 0), 0n)
      expect(await host.balanceOf(account)).toBe(balance - sent)
    }
  })
}
