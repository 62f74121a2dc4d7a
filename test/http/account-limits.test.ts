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
import { runs } from '../support/runs.js'
import { createSpendingWorld, grantToPay, outgoingItem, pay, usd } from '../support/spending.js'
import { spentUnder } from '../support/spending-client.js'
import { alice, bob } from '../support/world.js'

/** A wallet with several grants to pay from one account, whose owner has set limits for all of them. */
async function limitedAccount(
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
  const client = world.client()
  const tokens: string[] = []
  for (let index = 0; index < 4; index++) {
    const item = outgoingItem({ debitAmount: usd(1_000) }, index === 3 ? bob : alice)
    tokens.push((await grantToPay(world, client, [item])).token)
  }
  const [first = '', second = '', third = '', ofBob = ''] = tokens
  const { outgoingPayments } = world.resources
  const paid = async () =>
    (await outgoingPayments.list({ walletAddress: alice, first: 100 })).result
  return { world, client, first, second, third, ofBob, commits, refusals, paid }
}

describe('the limits of an account', () => {
  test('count the payments of all its grants, and of no other account', async () => {
    const asked: string[] = []
    const limits = (walletAddress: string) => {
      asked.push(walletAddress)
      return [{ debitAmount: usd(100), payments: 3 }]
    }
    const { client, first, second, third, ofBob, refusals } = await limitedAccount(limits)
    expect((await pay(client, first, 40)).status).toBe(201)
    expect((await pay(client, second, 40)).status).toBe(201)
    const over = await pay(client, third, 21)
    expect([over.status, over.body.error]).toEqual([
      403,
      {
        code: 'not_permitted_now',
        description: 'The account owner does not permit this payment now',
      },
    ])
    expect(refusals).toContain('account_limit_exceeded')
    expect((await pay(client, third, 1)).status).toBe(201)
    expect((await pay(client, first, 1)).status).toBe(403)
    const other = await pay(client, ofBob, 90, { walletAddress: bob })
    expect(other.status).toBe(201)
    expect(asked).toEqual([alice, alice, alice, alice, alice, bob])
    expect(await spentUnder(client, first)).toMatchObject({ spentDebitAmount: usd(40) })
  })

  test('apply at once when they are lower, and leave what is reserved', async () => {
    let cap = 100
    const { world, client, first, second, paid } = await limitedAccount(async () => [
      { debitAmount: usd(cap) },
    ])
    const { outgoingPayments } = world.resources
    const id = outgoingPayments.idOf((await pay(client, first, 60)).body.id) ?? ''
    cap = 50
    expect((await pay(client, second, 1)).status).toBe(403)
    expect(await paid()).toMatchObject([{ status: 'created', debitAmount: usd(60) }])
    await outgoingPayments.cancel(id)
    expect((await pay(client, second, 50)).status).toBe(201)
    expect((await pay(client, first, 1)).status).toBe(403)
  })

  test('that become lower while the host decides do not undo the payment', async () => {
    let cap = 100
    const mayPay: MayPay = async () => {
      cap = 1
      return { ok: true }
    }
    const { client, first, paid } = await limitedAccount(() => [{ debitAmount: usd(cap) }], {
      mayPay,
    })
    expect((await pay(client, first, 60)).status).toBe(201)
    expect(await paid()).toHaveLength(1)
    expect((await pay(client, first, 1)).status).toBe(403)
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
    const { world, client } = await limitedAccount(() => limits, { mayPay })
    const { token } = await grantToPay(world, client, [outgoingItem()])
    const both = await Promise.all([pay(client, token, most), pay(client, token, most)])
    expect(both.map(({ status }) => status)).toEqual([403, 403])
    limits = [{ debitAmount: usd(1_000) }]
    expect((await pay(client, token, 1_000)).status).toBe(201)
    expect((await pay(client, token, 1)).status).toBe(403)
  })

  test('get back what the host does not allow', async () => {
    let isAllowed = false
    const mayPay: MayPay = () =>
      isAllowed ? { ok: true } : { ok: false, refusal: 'payment_not_allowed' }
    const { client, first, second } = await limitedAccount(() => [{ payments: 1 }], { mayPay })
    expect((await pay(client, first, 60)).status).toBe(403)
    isAllowed = true
    expect((await pay(client, second, 60)).status).toBe(201)
    expect((await pay(client, first, 1)).status).toBe(403)
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
    const { client, first, commits, paid } = await limitedAccount((...asked) =>
      isFailing ? limits(...asked) : [],
    )
    expect((await pay(client, first, 1)).status).toBe(status)
    expect([commits.count, await paid()]).toEqual([0, []])
    isFailing = false
    expect((await pay(client, first, 1)).status).toBe(201)
  })

  test('are not asked for by a repeat', async () => {
    let asked = 0
    const { client, first } = await limitedAccount(() => {
      asked += 1
      return [{ payments: 1 }]
    })
    const headers = [['idempotency-key', 'once']] as const
    const one = await pay(client, first, 1, {}, { headers })
    const again = await pay(client, first, 1, {}, { headers })
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
    const { client, first, second, third, paid, commits } = await limitedAccount(limits, {
      isWaiting,
    })
    const tokens = [first, second, third]
    const paying = Array.from({ length: count }, (_, index) =>
      pay(client, tokens[index % 3] ?? '', 10),
    )
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
        const { world, client, first, second, third, paid } = await limitedAccount(() => [cap])
        const { outgoingPayments } = world.resources
        for (const each of steps) {
          if (each.do === 'cap') cap = each.limit
          if (each.do === 'pay') {
            const token = [first, second, third][each.by] ?? ''
            const before = await held()
            const answers = await Promise.all(each.values.map((value) => pay(client, token, value)))
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
