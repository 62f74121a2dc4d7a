import { hostCall } from 'open-payments-test-support/host-call'
import { describe, expect, test, vi } from 'vitest'
import { type HoldCase, type HoldOptions, type HoldSubject, holdConformance } from '../src/index.js'
import { ledger, wrongLedgers } from './support/ledgers.js'

function casesOf(
  { open, reopen }: ReturnType<typeof ledger>,
  options: Pick<HoldOptions, 'wholePayments'> = {},
): readonly HoldCase[] {
  return holdConformance(open, { reopen, timeoutMs: 5_000, ...options })
}

async function problemOf({ run }: HoldCase): Promise<string | undefined> {
  try {
    await run()
    return undefined
  } catch (error) {
    return (error as Error).message
  }
}

describe.each([
  ['at the event of the end', ledger()],
  ['in its own settlement', ledger({}, 'settlement')],
])('a right ledger that debits %s', (_, right) => {
  test.each(casesOf(right).map((each) => [each.name, each] as const))(
    'passes: %s',
    async (_, { run }) => run(),
  )
})

describe('a right ledger that settles whole payments only', () => {
  const right = ledger({}, 'whole')
  const whole = casesOf(right, { wholePayments: true })
  test.each(whole.map((each) => [each.name, each] as const))('passes: %s', (_, { run }) => run())

  test('fails without the option exactly where a part is sent', async () => {
    const problems = casesOf(right).map(async (each) => [each.name, await problemOf(each)] as const)
    const failed = (await Promise.all(problems)).flatMap(([name, problem]) =>
      problem === undefined ? [] : [name],
    )
    expect(failed).toEqual([
      'a payment that completes is debited by what was sent, and the rest is free',
      'a payment that fails is debited by what was sent before, and the rest is free',
      'a payment is held until it ends',
      'a second delivery of completed changes nothing',
      'a second delivery of failed changes nothing',
      'two deliveries of an end at once count as one (search)',
    ])
  })
})

describe('a ledger that must pay whole and', () => {
  test.each([
    ['debits failed payments', (event: End) => BigInt(event.debitAmount.value)],
    ['debits what arrives', (event: End) => BigInt(event.receiveAmount.value)],
    ['debits nothing', () => 0n],
  ])('%s is found to be wrong', async (_, debitOf) => {
    const { open, reopen } = ledger({ debit: () => undefined })
    const wrong = (subject: HoldSubject): HoldSubject => {
      let debited = 0n
      return {
        ...subject,
        settle(event) {
          debited += debitOf(event)
        },
        balance: async () => (await subject.balance()) - debited,
      }
    }
    const subjects = {
      open: (balance: bigint) => wrong(open(balance)),
      reopen: (url: string) => wrong(reopen(url)),
    }
    const problems = casesOf(subjects, { wholePayments: true }).map(problemOf)
    expect((await Promise.all(problems)).some((problem) => problem !== undefined)).toBe(true)
  })
})

type End = Parameters<NonNullable<HoldSubject['settle']>>[0]

describe('a ledger whose owner confirms payments above 500', () => {
  const { open, reopen } = ledger()
  const confirmed = (subject: HoldSubject): HoldSubject => ({
    ...subject,
    mayPay(payment) {
      if (payment.isConfirmed || BigInt(payment.debitAmount.value) <= 500n) {
        return subject.mayPay(payment, hostCall)
      }
      const url = 'https://wallet.example/confirm/1'
      return { ok: false, refusal: 'confirmation_required', url, until: Date.now() + 60_000 }
    },
  })
  const right = {
    open: async (balance: bigint) => confirmed(await open(balance)),
    reopen: async (walletAddress: string) => confirmed(await reopen(walletAddress)),
  }
  const cases = holdConformance(right.open, { reopen: right.reopen, timeoutMs: 5_000 })
  test.each(cases.map((each) => [each.name, each] as const))('passes: %s', (_, { run }) => run())
})

describe.each(Object.entries(wrongLedgers))('a ledger with %s', (_, [create, ...found]) => {
  test.each(found)('fails: …%s…', async (part) => {
    const cases = casesOf(create()).filter(({ name }) => name.includes(part))
    expect(cases).toHaveLength(1)
    for (const each of cases) expect(await problemOf(each)).toBeDefined()
  })
})

describe('the suite', () => {
  test('leaves out the cases with two processes if an account cannot be opened again', () => {
    const { open, reopen } = ledger()
    const all = holdConformance(open, { reopen }).map(({ name }) => name)
    const some = holdConformance(open).map(({ name }) => name)
    expect(all.filter((name) => !some.includes(name))).toEqual([
      'a payment that another process asks about again is held once',
      'a process holds nothing for a payment whose end another one has handled',
      'a process releases what another one has held',
      'of payments of two processes at once, as many are held as the balance covers (search)',
    ])
    expect(new Set(all).size).toBe(all.length)
  })

  const first = (
    replaced: (subject: HoldSubject) => Partial<HoldSubject>,
    { balance, ...options }: Pick<HoldOptions, 'timeoutMs'> & { readonly balance?: bigint } = {},
  ) => {
    const open = (most: bigint): HoldSubject => {
      const subject = ledger().open(balance ?? most)
      return { ...subject, ...replaced(subject) }
    }
    const [hold] = holdConformance(open, options)
    return hold === undefined ? undefined : problemOf(hold)
  }

  test.each<[string, ...Parameters<typeof first>]>([
    ['after open(1000n), balance is 5; expected 1000', () => ({}), { balance: 5n }],
    ['balance returned "1000"; expected a bigint', () => ({ balance: () => '1000' as never })],
    [
      'after a payment of 700, held is 1; expected 700',
      (subject) => ({ held: async () => ((await subject.held()) === 0n ? 0n : 1n) }),
    ],
    [
      'mayPay refused a payment of 700 of an account with 1000; expected ok',
      () => ({ mayPay: () => ({ ok: false, refusal: 'payment_not_allowed' }) }),
    ],
    [
      'mayPay returned true; expected an object with ok',
      () => ({ mayPay: async () => true as never }),
    ],
    [
      'mayPay rejected with: no connection',
      () => ({ mayPay: () => Promise.reject(new Error('no connection')) }),
    ],
    [
      'within 50 ms the case did not finish; calls that wait for each other must lock the account before its holds, and each needs a free connection',
      () => ({ mayPay: () => new Promise(() => undefined) }),
      // The only call that never ends: any other could take longer than this on a slow machine.
      { timeoutMs: 50 },
    ],
  ])('says: %s', async (message, ...how) => {
    expect(await first(...how)).toBe(message)
  })

  test('says that no time passes for a host that postpones an event', async () => {
    const { open } = ledger()
    const postponing = (balance: bigint) => ({ ...open(balance), onEvent: () => ({ retryAt: 1 }) })
    const problems = await Promise.all(holdConformance(postponing).map(problemOf))
    const message = /^onEvent postponed outgoing-payment\.\w+; expected it to handle the event$/
    expect(problems).toContainEqual(expect.stringMatching(message))
  })

  test('closes every account that it has opened, also after a failure', async () => {
    const close = vi.fn()
    const open = vi.fn((balance: bigint) => ({ ...ledger().open(balance), close }))
    for (const { run } of holdConformance(open)) await run()
    const right = open.mock.calls.length
    expect(close).toHaveBeenCalledTimes(right)
    const failing = (balance: bigint) => ({ ...open(balance), held: () => 1n })
    for (const each of holdConformance(failing)) expect(await problemOf(each)).toBeDefined()
    expect(open.mock.calls.length).toBeGreaterThan(right)
    expect(close).toHaveBeenCalledTimes(open.mock.calls.length)
  })

  test('runs a search as often as it is told', async () => {
    const open = vi.fn(ledger().open)
    const runs = async (searches: number) => {
      open.mockClear()
      const searched = holdConformance(open, { searches }).filter(({ search }) => search)
      for (const { run } of searched) await run()
      return open.mock.calls.length
    }
    expect(await runs(2)).toBe(2 * (await runs(1)))
  })

  test.each([
    ['no function', undefined, {}, 'open must be a function that opens an account'],
    [
      'an invalid reopen',
      ledger().open,
      { reopen: 1 },
      'reopen must be a function that opens an account',
    ],
    ['an invalid searches', ledger().open, { searches: 0 }, 'searches must be a positive integer'],
    [
      'an invalid timeoutMs',
      ledger().open,
      { timeoutMs: 0.5 },
      'timeoutMs must be a positive integer',
    ],
    [
      'an invalid wholePayments',
      ledger().open,
      { wholePayments: 'yes' },
      'wholePayments must be a boolean',
    ],
    ['an invalid processes', ledger().open, { processes: 2 }, 'processes is not known'],
  ])('refuses %s', (_, open, options, message) => {
    expect(() => holdConformance(open as never, options as never)).toThrow(message)
  })
})
