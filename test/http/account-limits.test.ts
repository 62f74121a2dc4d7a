import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Commit } from '../../src/entry-adapter.js'
import {
  type AccountLimits,
  type MayPay,
  memoryStore,
  type ResourcePolicy,
  type SpendingLimit,
} from '../../src/index.js'
import { type Authority, authorities, payerOf } from '../support/authorities.js'
import { runs } from '../support/runs.js'
import { createSpendingWorld, usd } from '../support/spending.js'
import { spentUnder } from '../support/spending-client.js'
import { alice, bob } from '../support/world.js'

/** A wallet with several payers from one account, whose owner has set limits for all of them. */
async function limitedAccount(
  authority: Authority,
  accountLimits: AccountLimits,
  { isWaiting = () => false, ...more }: ResourcePolicy & { isWaiting?: () => boolean } = {},
) {
  const memory = memoryStore()
  const commits = { count: 0 }
  const store = {
    ...memory,
    async commit(commit: Commit) {
      if (commit.changes.some(({ kind }) => kind === 'outgoing-payment')) commits.count += 1
      while (commits.count > 0 && isWaiting()) await new Promise(setImmediate)
      return memory.commit(commit)
    },
  }
  const refusals: string[] = []
  const world = createSpendingWorld({
    store,
    resources: {
      policy: { accountLimits, ...more },
      onRefusal: ({ refusal }: { refusal: string }) => void refusals.push(refusal),
      onError: () => undefined,
    },
  })
  const options = { client: world.client(), limit: 1_000, order: { countsInAccountLimits: true } }
  const payer = (more: object = {}) => payerOf(world, authority, { ...options, ...more })
  const [first, second, third] = [await payer(), await payer(), await payer()] as const
  const ofBob = await payer({ walletAddress: bob })
  const { outgoingPayments } = world.resources
  const paid = async () =>
    (await outgoingPayments.list({ walletAddress: alice, first: 100 })).result
  return { world, payer, first, second, third, ofBob, commits, refusals, paid }
}

describe.each(authorities)('the limits of an account for payments by %s', (authority) => {
  const isOrder = authority === 'the owner of the account'

  test('count the payments of all its grants, and of no other account', async () => {
    const asked: string[] = []
    const limits = (walletAddress: string) => {
      asked.push(walletAddress)
      return [{ debitAmount: usd(100), payments: 3 }]
    }
    const { first, second, third, ofBob, refusals } = await limitedAccount(authority, limits)
    expect((await first.pay(40)).status).toBe(201)
    expect((await second.pay(40)).status).toBe(201)
    const over = await third.pay(21)
    expect([over.status, over.body.error]).toEqual([
      403,
      {
        code: 'not_permitted_now',
        description: 'The account owner does not permit this payment now',
      },
    ])
    if (!isOrder) expect(refusals).toContain('account_limit_exceeded')
    expect((await third.pay(1)).status).toBe(201)
    expect((await first.pay(1)).status).toBe(403)
    const other = await ofBob.pay(90, { walletAddress: bob })
    expect(other.status).toBe(201)
    expect(asked).toEqual([alice, alice, alice, alice, alice, bob])
    if (first.granted === undefined) return
    const { client, token } = first.granted
    expect(await spentUnder(client, token)).toMatchObject({ spentDebitAmount: usd(40) })
  })

  test('apply at once when they are lower, and leave what is reserved', async () => {
    let cap = 100
    const { world, first, second, paid } = await limitedAccount(authority, async () => [
      { debitAmount: usd(cap) },
    ])
    const { outgoingPayments } = world.resources
    const id = outgoingPayments.idOf((await first.pay(60)).body.id) ?? ''
    cap = 50
    expect((await second.pay(1)).status).toBe(403)
    expect(await paid()).toMatchObject([{ status: 'created', debitAmount: usd(60) }])
    await outgoingPayments.cancel(id)
    expect((await second.pay(50)).status).toBe(201)
    expect((await first.pay(1)).status).toBe(403)
  })

  test('that become lower while the host decides do not undo the payment', async () => {
    let cap = 100
    const mayPay: MayPay = async () => {
      cap = 1
      return { ok: true }
    }
    const { first, paid } = await limitedAccount(authority, () => [{ debitAmount: usd(cap) }], {
      mayPay,
    })
    expect((await first.pay(60)).status).toBe(201)
    expect(await paid()).toHaveLength(1)
    expect((await first.pay(1)).status).toBe(403)
  })

  test('get back totals above 64 bits, which were never paid', async () => {
    let limits: readonly SpendingLimit[] = [{ payments: 9 }]
    const most = 2n ** 64n - 1n
    const asked: (() => void)[] = []
    const mayPay: MayPay = async ({ debitAmount }) => {
      if (debitAmount.value !== String(most)) return { ok: true }
      await new Promise<void>((resolve) => {
        asked.push(resolve)
        if (asked.length === 2) for (const answer of asked) answer()
      })
      return { ok: false, refusal: 'funds_insufficient' }
    }
    const { payer } = await limitedAccount(authority, () => limits, { mayPay })
    const unlimited = await payer({ limit: null })
    const both = await Promise.all([unlimited.pay(most), unlimited.pay(most)])
    expect(both.map(({ status }) => status)).toEqual([403, 403])
    limits = [{ debitAmount: usd(1_000) }]
    expect((await unlimited.pay(1_000)).status).toBe(201)
    expect((await unlimited.pay(1)).status).toBe(403)
  })

  test('get back what the host does not allow', async () => {
    let isAllowed = false
    const mayPay: MayPay = () =>
      isAllowed ? { ok: true } : { ok: false, refusal: 'payment_not_allowed' }
    const { first, second } = await limitedAccount(authority, () => [{ payments: 1 }], { mayPay })
    expect((await first.pay(60)).status).toBe(403)
    isAllowed = true
    expect((await second.pay(60)).status).toBe(201)
    expect((await first.pay(1)).status).toBe(403)
  })

  test.each<[string, AccountLimits, number]>([
    [
      'throws',
      () => {
        throw new Error('the settings are down')
      },
      503,
    ],
    ['rejects', () => Promise.reject(new Error('the settings are down')), 503],
    ['answers nothing', () => undefined as never, 500],
    ['answers four limits', () => [1, 2, 3, 4].map((each) => ({ payments: each })), 500],
    ['answers a count of 0', () => [{ payments: 0 }], 500],
    [
      'answers another asset',
      () => [{ debitAmount: { value: '100', assetCode: 'EUR', assetScale: 2 } }],
      500,
    ],
  ])('refuse the payment as an error of the server if the host %s', async (_, limits, status) => {
    let isFailing = true
    const { first, commits, paid } = await limitedAccount(authority, (...asked) =>
      isFailing ? limits(...asked) : [],
    )
    expect((await first.pay(1)).status).toBe(status)
    expect([commits.count, await paid()]).toEqual([0, []])
    isFailing = false
    expect((await first.pay(1)).status).toBe(201)
  })

  test('are not asked for by a repeat', async () => {
    let asked = 0
    const { first } = await limitedAccount(authority, () => {
      asked += 1
      return [{ payments: 1 }]
    })
    const one = await first.pay(1, {}, 'once')
    const again = await first.pay(1, {}, 'once')
    expect([one.status, again.status, again.body.id]).toEqual([201, 201, one.body.id])
    expect(asked).toBe(1)
  })

  test('hold for concurrent payments of all grants, which share commits', async () => {
    const count = 30
    let asked = 0
    const limits = async () => {
      asked += 1
      return [{ debitAmount: usd(100) }]
    }
    // The others arrive during the first commit.
    const isWaiting = () => asked < count
    const { first, second, third, paid, commits } = await limitedAccount(authority, limits, {
      isWaiting,
    })
    const payers = [first, second, third] as const
    const paying = Array.from({ length: count }, (_, index) => (payers[index % 3] ?? first).pay(10))
    const answers = await Promise.all(paying)
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(10)
    expect(answers.filter(({ status }) => status === 403)).toHaveLength(20)
    expect(await paid()).toHaveLength(10)
    expect(commits.count).toBeLessThan(5)
  })

  test('hold whatever is paid, ended and limited, in any order', async () => {
    const limit = fc
      .record(
        {
          debitAmount: fc.integer({ min: 1, max: 90 }).map(usd),
          payments: fc.integer({ min: 1, max: 5 }),
        },
        { requiredKeys: [] },
      )
      .filter((each) => Object.keys(each).length > 0)
    const step = fc.oneof(
      {
        weight: 4,
        arbitrary: fc.record({
          do: fc.constant('pay' as const),
          by: fc.nat(2),
          values: fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 1, maxLength: 3 }),
        }),
      },
      {
        weight: 2,
        arbitrary: fc.record({
          do: fc.constant('end' as const),
          which: fc.nat(9),
          sends: fc.boolean(),
        }),
      },
      { weight: 1, arbitrary: fc.record({ do: fc.constant('cap' as const), limit }) },
    )
    await fc.assert(
      fc.asyncProperty(limit, fc.array(step, { maxLength: 10 }), async (initial, steps) => {
        let cap: SpendingLimit = initial
        const { world, first, second, third, paid } = await limitedAccount(authority, () => [cap])
        const { outgoingPayments } = world.resources
        for (const each of steps) {
          if (each.do === 'cap') cap = each.limit
          if (each.do === 'pay') {
            const by = [first, second, third][each.by] ?? first
            const before = await held()
            const answers = await Promise.all(each.values.map((value) => by.pay(value)))
            if (!answers.some(({ status }) => status === 201)) continue
            const after = await held()
            expect(after.count).toBeGreaterThan(before.count)
            expect(after.debit <= BigInt(cap.debitAmount?.value ?? after.debit)).toBe(true)
            expect(after.count).toBeLessThanOrEqual(cap.payments ?? after.count)
          }
          if (each.do === 'end') {
            const { paymentId } = (await paid())[each.which] ?? {}
            if (paymentId === undefined) continue
            await outgoingPayments.begin(paymentId)
            await outgoingPayments.fail(paymentId, each.sends ? { sentAmount: usd(1) } : {})
          }
        }

        async function held() {
          const all = await paid()
          const counting = all.filter(
            ({ status, sentAmount }) => status !== 'failed' || sentAmount.value !== '0',
          )
          const debit = counting.reduce(
            (sum, { status, sentAmount, debitAmount }) =>
              sum + BigInt((status === 'failed' ? sentAmount : debitAmount).value),
            0n,
          )
          return { count: counting.length, debit }
        }
      }),
      { numRuns: runs(60, 8) },
    )
  })
})
