import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  type Commit,
  type MayPay,
  memoryStore,
  type Store,
  type Stored,
  storeBounds,
} from '../../src/index.js'
import { commitSizeOf } from '../../src/testing/conformance/trial.js'
import { type Fate, lyingStore } from '../support/proxy-store.js'
import { runs } from '../support/runs.js'
import {
  createSpendingWorld,
  grantToPay,
  outgoingItem,
  pay,
  shopReceiver,
  usd,
  withKey,
} from '../support/spending.js'
import { spendingServices } from '../support/spending-services.js'
import { alice, type WorldOptions } from '../support/world.js'

/** A client that may spend so much under a grant. */
async function payingClient(limit: number, options: WorldOptions = {}) {
  const world = createSpendingWorld(options)
  const client = world.client()
  const { token, grantId } = await grantToPay(world, client, [
    outgoingItem({ debitAmount: usd(limit) }),
  ])
  const paid = () => {
    const { outgoingPayments } = world.resources
    return outgoingPayments.list({ walletAddress: alice, first: 100 })
  }
  return { world, client, token, grantId, paid }
}

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
    const services = spendingServices({ store, combines: true })
    const { run } = services.context
    Object.assign(services.context, {
      run(write: Parameters<typeof run>[0]) {
        if (write.together !== undefined) arrived += 1
        return run(write)
      },
    })
    const payer = await services.payer([outgoingItem({ debitAmount: usd(1_000) })])
    const debitAmount = usd(10)
    const input = { walletAddress: alice, incomingPayment: shopReceiver, debitAmount }
    const paying = Array.from({ length: count }, () => services.pay(payer, input))
    const spent = (await Promise.all(paying)).map((answer) => {
      return 'spent' in answer ? Number(answer.spent?.debitAmount?.value) : undefined
    })
    const steps = paying.map((_, index) => 10 * (index + 1))
    expect(spent.toSorted((a = 0, b = 0) => a - b)).toEqual(steps)
    // A payment, in three lists, its event, in one, and once the budget and the guard on the grant.
    const inOne = Math.floor((storeBounds.commitSize - 2) / 6)
    expect(commits.map(paymentsIn)).toEqual([1, inOne, count - 1 - inOne])
    for (const commit of commits) {
      expect(commitSizeOf(commit)).toBeLessThanOrEqual(storeBounds.commitSize)
    }
  })

  test('do not affect each other if one is refused, repeated or replayed', async () => {
    const { client, token, paid } = await payingClient(100)
    const answers = await Promise.all([
      pay(client, token, 10),
      pay(client, token, 10, {}, withKey('same')),
      pay(client, token, 10, {}, withKey('same')),
      pay(client, token, 10, {}, { nonce: 'once' }),
      pay(client, token, 10, {}, { nonce: 'once' }),
      pay(client, token, 101),
      pay(client, token, 70),
    ])
    const statuses = answers.map(({ status }) => status)
    expect([statuses[0], statuses[1], statuses[2]]).toEqual([201, 201, 201])
    expect(answers[1]?.body.id).toBe(answers[2]?.body.id)
    expect(statuses.slice(3, 5).toSorted()).toEqual([201, 401])
    expect([statuses[5], statuses[6]]).toEqual([403, 201])
    expect((await paid()).result).toHaveLength(4)
  })

  test('end with the grant, whichever of them were decided before', async () => {
    const { world, client, token, grantId, paid } = await payingClient(1_000)
    const paying = Array.from({ length: 30 }, () => pay(client, token, 10))
    const revoked = world.auth.grants.revoke(grantId)
    const answers = await Promise.all(paying)
    await revoked
    const made = answers.filter(({ status }) => status === 201)
    const others = answers.filter(({ status }) => status !== 201)
    expect(new Set(others.map(({ status }) => status))).toEqual(new Set([401]))
    expect((await paid()).result).toHaveLength(made.length)
    expect((await pay(client, token, 10)).status).toBe(401)
  })

  test.each<Fate>(['fails', 'lands-and-fails', 'lands-and-denies'])(
    'are created once each if a commit of several %s',
    async (fate) => {
      let commits = 0
      const { store } = lyingStore(memoryStore(), (method) => {
        // The second commit of payments is the first that several share.
        return method === 'commit' && isArmed && ++commits === 2 ? fate : 'works'
      })
      let isArmed = false
      const { client, token, paid } = await payingClient(1_000, { store })
      isArmed = true
      const answers = await Promise.all(Array.from({ length: 8 }, () => pay(client, token, 10)))
      expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 201))
      const ids = new Set(answers.map(({ body }) => body.id))
      expect(ids.size).toBe(8)
      expect((await paid()).result).toHaveLength(8)
      const { body } = await pay(client, token, 10)
      expect(body.grantSpentDebitAmount).toEqual(usd(90))
    },
  )

  test('do not wait for the host to allow another one', async () => {
    let release = () => {}
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    const mayPay: MayPay = async ({ debitAmount }) => {
      if (debitAmount.value === '1') await held
      return debitAmount.value === '2'
        ? { ok: false, refusal: 'payment_not_allowed' }
        : { ok: true }
    }
    const { client, token } = await payingClient(1_000, { resources: { policy: { mayPay } } })
    const slow = pay(client, token, 1)
    const others = await Promise.all([2, 3, 4, 5].map((value) => pay(client, token, value)))
    expect(others.map(({ status }) => status)).toEqual([403, 201, 201, 201])
    release()
    expect((await slow).status).toBe(201)
  })

  test('are refused only if they exceed what is left, under two items', async () => {
    const met = { made: 0, refused: 0 }
    const limits = [25, 40]
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 2, maxLength: 12 }),
        async (values) => {
          const services = spendingServices({ combines: true })
          const payer = await services.payer(
            limits.map((limit) => outgoingItem({ debitAmount: usd(limit) })),
          )
          const answers = await Promise.all(
            values.map((value) => {
              const debitAmount = usd(value)
              return services.pay(payer, {
                ...{ walletAddress: alice, incomingPayment: shopReceiver, debitAmount },
              })
            }),
          )
          const made = values.filter((_, index) => answers[index]?.ok)
          const total = made.reduce((sum, value) => sum + value, 0)
          const token = await services.tokenOf(payer)
          if (!token.ok) throw new Error(token.reason)
          const budgets = await services.payments.budgetsUnder(token.value, services.clock.now())
          const left = budgets.map(({ left }) => Number(left.debitAmount?.value))
          expect(left.reduce((sum, value) => sum + value, 0)).toBe(65 - total)
          const totals: number[] = []
          for (const [index, answer] of answers.entries()) {
            if (answer.ok) totals.push(Number(answer.spent.debitAmount?.value))
            else {
              expect(answer.refusal).toBe('limits_exceeded')
              expect(Math.max(...left)).toBeLessThan(values[index] ?? 0)
            }
          }
          met.made += made.length
          met.refused += values.length - made.length
          // Each total includes its own payment, and those that were decided before.
          const before = totals.toSorted((a, b) => a - b)
          const steps = before.map((value, index) => value - (before[index - 1] ?? 0))
          expect(steps.toSorted()).toEqual(made.toSorted())
        },
      ),
      { numRuns: runs(100) },
    )
    expect(Math.min(met.made, met.refused)).toBeGreaterThan(runs(100))
  })

  test('know a repeat that spent the budget while they read it', async () => {
    const store = memoryStore()
    const sound = spendingServices({ store })
    const payer = await sound.payer([outgoingItem({ debitAmount: usd(10) })])
    const input = { walletAddress: alice, incomingPayment: shopReceiver, debitAmount: usd(10) }
    const key = { idempotencyKey: 'same' }
    let earlier: unknown
    const torn: Store = {
      ...store,
      async loadAll(keys) {
        const found: (Stored | undefined)[] = []
        for (const { kind, id } of keys) {
          found.push(await store.load(kind, id))
          if (kind === 'outgoing-payment') earlier ??= await sound.pay(payer, input, key)
        }
        return found
      },
    }
    const answer = await spendingServices({ store: torn, seed: 'torn' }).pay(payer, input, key)
    expect(earlier).toMatchObject({ ok: true })
    expect(answer).toEqual(earlier)
  })
})
