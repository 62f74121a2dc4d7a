import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Commit, storeBounds } from '../../src/entry-adapter.js'
import { type MayPay, memoryStore, type Pricing, type Store } from '../../src/index.js'
import { commitSizeOf } from '../support/bounded-store.js'
import { hostCall } from '../support/host-call.js'
import { runs } from '../support/runs.js'
import {
  createSpendingWorld,
  grantToPay,
  outgoingItem,
  pay,
  priceList,
  usd,
} from '../support/spending.js'
import { spentUnder } from '../support/spending-client.js'
import { type Answer, alice, type WorldOptions } from '../support/world.js'

/** A client that may spend so much under each of the items of a grant. */
async function payingClient(limits: readonly number[], options: WorldOptions = {}) {
  const world = createSpendingWorld(options)
  const client = world.client()
  const items = limits.map((limit) => outgoingItem({ debitAmount: usd(limit) }))
  return { world, client, ...(await grantToPay(world, client, items)) }
}

const allowed = { ok: true } as const

/** Returns the total that the response to a payment states. */
const spentIn = ({ body }: Answer) => Number(body.grantSpentDebitAmount?.value)

const paymentsIn = ({ changes }: Commit) =>
  changes.filter(({ kind }) => kind === 'outgoing-payment').length

describe('concurrent payments under one grant', () => {
  test('share commits, and each has the total that includes it', async () => {
    const count = 25
    let arrived = 0
    const commits: Commit[] = []
    const memory = memoryStore()
    const store: Store = {
      ...memory,
      async commit(commit) {
        if (paymentsIn(commit) > 0) commits.push(commit)
        // The others arrive during the first commit.
        while (commits.length > 0 && arrived < count) await new Promise(setImmediate)
        return memory.commit(commit)
      },
    }
    const pricing: Pricing = {
      price(request) {
        arrived += 1
        return priceList.price(request, hostCall)
      },
    }
    const { client, token } = await payingClient([1_000], { store, resources: { pricing } })
    const paying = Array.from({ length: count }, () => pay(client, token, 10))
    const spent = (await Promise.all(paying)).map(spentIn)
    const steps = paying.map((_, index) => 10 * (index + 1))
    expect(spent.toSorted((a, b) => a - b)).toEqual(steps)
    // A payment, in three lists, its event, the nonce, and once the budget and the guard on the grant.
    const inOne = Math.floor((storeBounds.commitSize - 2) / 6)
    expect(commits.map(paymentsIn)).toEqual([1, inOne, count - 1 - inOne])
    for (const commit of commits) {
      expect(commitSizeOf(commit)).toBeLessThanOrEqual(storeBounds.commitSize)
    }
  })

  test('end with the grant, whichever of them were decided before', async () => {
    const { world, client, token, grantId } = await payingClient([1_000])
    const paying = Array.from({ length: 30 }, () => pay(client, token, 10))
    const revoked = world.auth.grants.revoke(grantId)
    const answers = await Promise.all(paying)
    await revoked
    const made = answers.filter(({ status }) => status === 201)
    const others = answers.filter(({ status }) => status !== 201)
    expect(new Set(others.map(({ status }) => status))).toEqual(new Set([401]))
    const { outgoingPayments } = world.resources
    const { result } = await outgoingPayments.list({ walletAddress: alice, first: 100 })
    expect(result).toHaveLength(made.length)
    expect((await pay(client, token, 10)).status).toBe(401)
  })

  test('do not wait for the host to allow another one', async () => {
    let release = () => {}
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    const mayPay: MayPay = async ({ debitAmount }) => {
      if (debitAmount.value === '1') await held
      return debitAmount.value === '2' ? { ok: false, refusal: 'payment_not_allowed' } : allowed
    }
    const { client, token } = await payingClient([1_000], { resources: { policy: { mayPay } } })
    const slow = pay(client, token, 1)
    const others = await Promise.all([2, 3, 4, 5].map((value) => pay(client, token, value)))
    expect(others.map(({ status }) => status)).toEqual([403, 201, 201, 201])
    release()
    expect((await slow).status).toBe(201)
  })

  test('are refused only if they exceed what is left, under two items', async () => {
    const met = { made: 0, refused: 0 }
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 2, maxLength: 12 }),
        async (values) => {
          const { world, client, token, grantId } = await payingClient([25, 40])
          const answers = await Promise.all(values.map((value) => pay(client, token, value)))
          const made = values.filter((_, index) => answers[index]?.status === 201)
          const total = made.reduce((sum, value) => sum + value, 0)
          const { spentDebitAmount } = await spentUnder(client, token)
          expect(Number(spentDebitAmount?.value ?? 0)).toBe(total)
          const budgets = await world.resources.outgoingPayments.budgetsOf(grantId)
          const left = budgets.map(({ left }) => Number(left.debitAmount?.value))
          for (const [index, { status, body }] of answers.entries()) {
            if (status === 201) continue
            expect(body.error.code).toBe('insufficient_grant')
            expect(Math.max(...left)).toBeLessThan(values[index] ?? 0)
          }
          met.made += made.length
          met.refused += values.length - made.length
          // Each total includes its own payment, and those that were decided before.
          const totals = answers.filter(({ status }) => status === 201).map(spentIn)
          const before = totals.toSorted((a, b) => a - b)
          const steps = before.map((value, index) => value - (before[index - 1] ?? 0))
          expect(steps.toSorted()).toEqual(made.toSorted())
        },
      ),
      { numRuns: runs(100) },
    )
    expect(Math.min(met.made, met.refused)).toBeGreaterThan(runs(100))
  })
})
