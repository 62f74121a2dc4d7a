import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  type Budget,
  budgetId,
  budgetStatus,
  closedBudget,
  decideSpending,
  isWithinLimit,
  itemLimitStatus,
  itemStatus,
  keep,
  limitStatus,
  payingItems,
  release,
  totalSpent,
} from '../../src/core/budget.js'
import type { Amount } from '../../src/index.js'
import { startOfTests } from '../support/clock.js'
import { deepFreeze } from '../support/frozen.js'
import { runs } from '../support/runs.js'
import {
  budgetPolicy,
  dollars,
  euros,
  item,
  most,
  positive,
  receiver,
} from '../support/spending-life.js'

const now = startOfTests
const hour = 3_600_000
const charge = { commandId: 'command-1', namespace: 'namespac', grantId: 'grant' }
const hourly = 'R/2026-11-21T12:00:00Z/PT1H'

function paying(debit: bigint, receive = debit) {
  return { receiver, debitAmount: dollars(debit), receiveAmount: euros(receive) }
}

function spend(
  candidates: Parameters<typeof decideSpending>[0],
  debit: bigint,
  { at = now, commandId = 'command-1' }: { at?: number; commandId?: string } = {},
) {
  const decision = decideSpending(
    deepFreeze(candidates),
    paying(debit),
    { ...charge, commandId },
    at,
    budgetPolicy,
  )
  return deepFreeze(decision)
}

/** Applies a payment that must be accepted and returns the resulting budget. */
function taken(...args: Parameters<typeof spend>): Budget {
  const charged = spend(...args)
  if (!charged.ok) throw new Error('not charged')
  return charged.value.budget
}

const capped = (value: bigint, itemId = '1') => item({ debitAmount: dollars(value) }, itemId)
const perHour = item({ interval: hourly, debitAmount: dollars(100) })

describe('the first payment under an item', () => {
  test('creates a budget for the lifetime of the grant and charges it', () => {
    expect(taken([{ item: capped(100n) }], 40n)).toEqual({
      id: 'namespacgrant.1.life',
      version: 1,
      commandId: 'command-1',
      grantId: 'grant',
      itemId: '1',
      spent: { debitAmount: dollars(40), receiveAmount: euros(40) },
      dueAt: now + budgetPolicy.retentionMs,
    })
  })

  test('creates a budget per window when the item has an interval', () => {
    const retainUntil = now + hour + budgetPolicy.retentionMs
    expect(taken([{ item: perHour }], 40n, { at: now + 1 })).toEqual({
      id: `namespacgrant.1.${now}`,
      version: 1,
      commandId: 'command-1',
      grantId: 'grant',
      itemId: '1',
      windowStart: now,
      windowEnd: now + hour,
      spent: { debitAmount: dollars(40), receiveAmount: euros(40) },
      dueAt: retainUntil,
      retainUntil,
    })
  })

  test.each([
    ['an interval without an amount', item({ interval: hourly }), `namespacgrant.1.${now}`],
    ['no limit', item(), 'namespacgrant.1.life'],
  ])('creates a budget under %s to record what was spent', (_, free, id) => {
    expect(taken([{ item: free }], most)).toMatchObject({
      id,
      spent: { debitAmount: dollars(most), receiveAmount: euros(most) },
    })
  })

  test('has its own budget for each server, grant, item and window', () => {
    const allowance = { limitedAmount: { counts: 'debitAmount', maximum: dollars(1) } } as const
    const ids = [
      budgetId(charge, item({}, '1'), allowance),
      budgetId({ ...charge, namespace: 'another-' }, item({}, '1'), allowance),
      budgetId({ ...charge, grantId: 'other' }, item({}, '1'), allowance),
      budgetId(charge, item({}, '2'), allowance),
      budgetId(charge, item({}, '1'), { ...allowance, window: { start: now, end: now + 1 } }),
      budgetId(charge, item({}, '1'), { ...allowance, window: { start: now + 1, end: now + 2 } }),
      budgetId(charge, item({}, '1'), { ...allowance, window: { start: -now, end: now + 2 } }),
    ]
    expect(new Set(ids).size).toBe(ids.length)
    for (const id of ids) expect(id).toMatch(/^[A-Za-z0-9._-]{1,128}$/)
  })
})

describe('a further payment', () => {
  test('is charged to the same budget while the budget can cover it', () => {
    const limited = capped(100n)
    const first = taken([{ item: limited }], 40n)
    const second = taken([{ item: limited, budget: first }], 60n, { commandId: 'command-2' })
    expect(second).toMatchObject({
      id: first.id,
      version: 2,
      commandId: 'command-2',
      spent: { debitAmount: dollars(100), receiveAmount: euros(100) },
    })
    expect(spend([{ item: limited, budget: second }], 1n)).toMatchObject({
      refusal: 'limits_exceeded',
      reason: 'limits.debitAmount leaves less than this payment',
    })
    expect(spend([{ item: limited, budget: first }], 61n)).toHaveProperty('refusal')
  })

  test('extends the retention of the budget as far as the first payment would', () => {
    const first = taken([{ item: capped(100n) }], 1n)
    const later = taken([{ item: capped(100n), budget: first }], 1n, { at: now + hour })
    expect(later.dueAt).toBe(now + hour + budgetPolicy.retentionMs)
    expect(later).not.toHaveProperty('retainUntil')
  })

  test('is charged to the next item that covers it when the first item cannot', () => {
    const [small, large] = [capped(50n, '1'), capped(100n, '2')]
    const full = taken([{ item: small }], 50n)
    expect(spend([{ item: small }, { item: large }], 50n)).toMatchObject({
      value: { item: small },
    })
    expect(spend([{ item: small, budget: full }, { item: large }], 1n)).toMatchObject({
      value: {
        item: large,
        budget: { id: 'namespacgrant.2.life', spent: { debitAmount: dollars(1) } },
      },
    })
    expect(spend([{ item: small }, { item: large }], 51n)).toMatchObject({
      value: { item: large },
    })
    expect(spend([{ item: small }, { item: large }], 101n)).toHaveProperty('refusal')
  })

  test('is never split among items that cover it only together', () => {
    expect(spend([{ item: capped(50n, '1') }, { item: capped(50n, '2') }], 51n)).toMatchObject({
      refusal: 'limits_exceeded',
    })
  })

  test('is refused with the reason of the last item that was examined', () => {
    const full = taken([{ item: capped(50n) }], 50n)
    const elsewhere = item({ receiver: 'https://bank.example/incoming-payments/2' }, '2')
    expect(spend([{ item: capped(50n), budget: full }, { item: elsewhere }], 1n)).toMatchObject({
      reason: 'limits.receiver is another receiver',
    })
    expect(spend([], 1n)).toMatchObject({
      refusal: 'limits_exceeded',
      reason: 'no granted item allows payments from this wallet address',
    })
  })

  test('is refused when the budget’s total of the limited amount is unreadable', () => {
    const first = taken([{ item: capped(most) }], 1n)
    const unreadable = ['', '-1', '1.5', '18446744073709551616'].map((value) => ({
      ...dollars(1),
      value,
    }))
    for (const debitAmount of [...unreadable, euros(1), null]) {
      const broken = { ...first, spent: { ...first.spent, debitAmount } }
      expect(spend([{ item: capped(most), budget: broken }], 1n)).toHaveProperty('refusal')
    }
  })
})

describe('a payment that exceeds its budget', () => {
  // With one repetition, there are two windows; with one occurrence, one.
  const counted = (intervalCounting?: 'occurrences' | 'repetitions') => ({
    ...item({ interval: 'R1/2026-11-21T12:00:00Z/PT1H', debitAmount: dollars(100) }),
    ...(intervalCounting && { intervalCounting }),
  })

  test.each([
    [undefined, {}],
    ['occurrences', {}],
    ['repetitions', { nextWindowAt: '2026-11-21T13:00:00.000Z' }],
  ] as const)('learns the next window, as the windows are counted: %s', (counting, next) => {
    const limited = counted(counting)
    const budget = taken([{ item: limited }], 60n)
    const refusal = spend([{ item: limited, budget }], 41n)
    expect(refusal).toMatchObject({ refusal: 'limits_exceeded' })
    expect('details' in refusal && refusal.details).toMatchObject({
      left: dollars(40),
      ...next,
    })
    expect('details' in refusal && 'nextWindowAt' in (refusal.details ?? {})).toBe(
      'nextWindowAt' in next,
    )
  })
})

describe('what a budget counts', () => {
  const budget: Budget = { ...taken([{ item: capped(100n) }], 40n), payments: 2 }

  test('is within a limit up to its maximum and its number of payments', () => {
    const within = (value: number | undefined, payments?: number) =>
      isWithinLimit(budget, {
        ...(value !== undefined && {
          limitedAmount: { counts: 'debitAmount', maximum: dollars(value) },
        }),
        ...(payments !== undefined && { payments }),
      })
    expect([within(39), within(40), within(41)]).toEqual([false, true, true])
    const counts = [within(undefined, 1), within(undefined, 2), within(undefined, 3)]
    expect(counts).toEqual([false, true, true])
    expect([within(undefined), within(40, 1), within(39, 2)]).toEqual([true, false, false])
    expect(isWithinLimit(undefined, { payments: 0 })).toBe(true)
  })

  test('is beyond each number of payments if its own is unreadable', () => {
    for (const payments of [undefined, -1, Number.NaN]) {
      const unreadable = { ...budget, payments } as Budget
      expect(isWithinLimit(unreadable, { payments: 1e9 })).toBe(false)
    }
  })
})

describe('releasing a reservation', () => {
  test('makes the whole amount available again', () => {
    const full = taken([{ item: capped(most) }], most)
    const all = { debitAmount: most, receiveAmount: most, payments: 1 } as const
    const back = release(full, all, nothing, 'command-2')
    expect(back).toEqual({
      ...full,
      version: 2,
      commandId: 'command-2',
      spent: { debitAmount: dollars(0), receiveAmount: euros(0) },
    })
    expect(taken([{ item: capped(most), ...(back && { budget: back }) }], most)).toMatchObject({
      version: 3,
      spent: { debitAmount: dollars(most) },
    })
  })

  test('releases exactly the part of each amount that is no longer held', () => {
    const before = taken([{ item: capped(100n) }], 40n)
    const held = { debitAmount: 40n, receiveAmount: 40n, payments: 1 } as const
    const kept = { debitAmount: 30n, receiveAmount: 15n, payments: 1 } as const
    expect(release(before, held, kept, 'command-2')?.spent).toEqual({
      debitAmount: dollars(30),
      receiveAmount: euros(15),
    })
    expect(release(before, held, held, 'command-2')).toBeUndefined()
  })

  test('keeps the due and retention times of the budget', () => {
    const before = taken([{ item: perHour }], 40n)
    const { dueAt, retainUntil, windowStart } = before
    const held = { debitAmount: 40n, receiveAmount: 40n, payments: 1 } as const
    const back = release(before, held, nothing, 'later')
    expect(back).toMatchObject({ dueAt, retainUntil, windowStart })
  })
})

const nothing = { debitAmount: 0n, receiveAmount: 0n, payments: 0 } as const

describe('keeping the budget for the lifetime of a grant', () => {
  test('postpones its next retention check, and changes no amount', () => {
    const budget = taken([{ item: capped(100n) }], 40n)
    const later = now + budgetPolicy.retentionMs
    expect(keep(budget, 'sweep', later, budgetPolicy)).toEqual({
      ...budget,
      version: 2,
      commandId: 'sweep',
      dueAt: later + budgetPolicy.retentionMs,
    })
  })
})

describe('a total in several assets', () => {
  const free = item()
  const dollarsFor = (receiveAmount: Amount) => ({
    receiver,
    debitAmount: dollars(10),
    receiveAmount,
  })

  function budgetAfter(...receiveAmounts: readonly Amount[]): Budget {
    let budget: Budget | undefined
    for (const amount of receiveAmounts) {
      const candidates = [budget === undefined ? { item: free } : { item: free, budget }]
      const charged = decideSpending(candidates, dollarsFor(amount), charge, now, budgetPolicy)
      if (!charged.ok) throw new Error(charged.reason)
      budget = charged.value.budget
    }
    if (budget === undefined) throw new Error('nothing was paid')
    return budget
  }

  test('stays null while the total of the other amount is known', () => {
    expect(budgetAfter(euros(1), dollars(1)).spent).toEqual({
      debitAmount: dollars(20),
      receiveAmount: null,
    })
    expect(budgetAfter(euros(1), dollars(1), euros(1)).spent.receiveAmount).toBeNull()
  })

  test('is null above 64 bits', () => {
    expect(budgetAfter(euros(most), euros(1)).spent.receiveAmount).toBeNull()
    expect(budgetAfter(euros(most - 1n), euros(1)).spent.receiveAmount).toEqual(euros(most))
  })

  test('starts in another asset after everything was released', () => {
    const first = budgetAfter(euros(1))
    const held = { debitAmount: 10n, receiveAmount: 1n, payments: 1 } as const
    const budget = release(first, held, nothing, 'command-2')
    const charged = decideSpending(
      [{ item: free, ...(budget && { budget }) }],
      dollarsFor(dollars(7)),
      charge,
      now,
      budgetPolicy,
    )
    expect(charged).toMatchObject({ value: { budget: { spent: { receiveAmount: dollars(7) } } } })
  })

  test('sums items with the same asset and is null otherwise', () => {
    const part = (debit: Amount, receive: Amount | null) => ({
      debitAmount: debit,
      receiveAmount: receive,
    })
    expect(totalSpent([])).toEqual({ debitAmount: null, receiveAmount: null })
    expect(totalSpent([{ debitAmount: dollars(0) }])).toEqual({
      debitAmount: dollars(0),
      receiveAmount: null,
    })
    expect(totalSpent([part(dollars(1), euros(2)), part(dollars(3), euros(4)), {}])).toEqual(
      part(dollars(4), euros(6)),
    )
    expect(totalSpent([part(dollars(1), euros(2)), part(euros(0), dollars(4))])).toEqual(
      part(dollars(1), null),
    )
    const one = part(dollars(1), euros(1))
    const unknown = part(dollars(1), null)
    expect(totalSpent([unknown, one])).toEqual(part(dollars(2), null))
    expect(totalSpent([one, unknown])).toEqual(part(dollars(2), null))
  })
})

/** Values of which some fit together and some do not. */
const pressing = fc
  .tuple(positive, fc.array(fc.tuple(positive, fc.boolean()), { maxLength: 20 }))
  .map(([limit, moves]) => ({
    limit,
    moves: moves.map(([value, back]) => ({ value: (value % limit) + (back ? 0n : 1n), back })),
  }))

const assets = fc.constantFrom(dollars, euros)

/** Whether amounts are in one asset. */
const isSummable = (amounts: readonly Amount[]) =>
  new Set(amounts.map(({ assetCode }) => assetCode)).size <= 1

describe('any order of charges and releases', () => {
  test('the budget is the exact sum, never exceeds its limit, and refuses only what it cannot cover', () => {
    fc.assert(
      fc.property(pressing, ({ limit, moves }) => {
        const limited = capped(limit)
        const values: bigint[] = []
        let budget: Budget | undefined
        for (const [index, { value, back }] of moves.entries()) {
          const commandId = `command-${index}`
          const last = values.at(-1)
          if (back && budget !== undefined && last !== undefined) {
            const kept = value % (last + 1n)
            const held = { debitAmount: last, receiveAmount: last, payments: 1 } as const
            const holds = { debitAmount: kept, receiveAmount: kept, payments: 1 } as const
            budget = deepFreeze(release(budget, held, holds, commandId) ?? budget)
            values[values.length - 1] = kept
          } else {
            const candidate = budget === undefined ? { item: limited } : { item: limited, budget }
            const decision = spend([candidate], value, { commandId })
            const room = values.reduce((sum, each) => sum + each, 0n) + value <= limit
            expect(decision.ok).toBe(room)
            if (!decision.ok) continue
            const before: number = budget?.version ?? 0
            budget = decision.value.budget
            values.push(value)
            expect(budget).toMatchObject({ version: before + 1, commandId })
          }
          const total = values.reduce((sum, each) => sum + each, 0n)
          if (budget !== undefined) {
            const spent = { debitAmount: dollars(total), receiveAmount: euros(total) }
            expect(budget.spent).toEqual(spent)
          }
          expect(total).toBeLessThanOrEqual(limit)
          expect(JSON.parse(JSON.stringify(budget))).toStrictEqual(budget)
        }
      }),
      { numRuns: runs(1_500) },
    )
  })

  test('under limits that come and change, a payment is refused only for what is held', () => {
    const move = fc.record({
      value: fc.bigInt({ min: 1n, max: 30n }),
      in: assets,
      limit: fc.option(fc.record({ value: fc.bigInt({ min: 1n, max: 60n }), in: assets })),
      release: fc.boolean(),
    })
    const met = new Set<string>()
    fc.assert(
      fc.property(fc.array(move, { maxLength: 12 }), (moves) => {
        let held: Amount[] = []
        let isMixed = false
        let budget: Budget | undefined
        for (const { value, in: of, limit, release: releases } of moves) {
          const limited = item(limit ? { debitAmount: limit.in(limit.value) } : {})
          const candidate = budget === undefined ? { item: limited } : { item: limited, budget }
          const spending = { receiver, debitAmount: of(value), receiveAmount: euros(1) }
          const charged = decideSpending([candidate], spending, charge, now, budgetPolicy)
          const total = held.reduce((sum, each) => sum + BigInt(each.value), 0n)
          const fits = !isMixed && isSummable([...held, limit?.in(0) ?? of(0), of(value)])
          expect(charged.ok).toBe(!limit || (fits && total + value <= limit.value))
          met.add(`${limit ? 'limited' : 'free'}: ${charged.ok}`)
          if (charged.ok) {
            budget = charged.value.budget
            held.push(of(value))
            isMixed ||= !isSummable(held)
          }
          if (!releases || budget === undefined) continue
          const sum = held.reduce((before, each) => before + BigInt(each.value), 0n)
          const all = { debitAmount: sum, receiveAmount: BigInt(held.length), payments: 1 } as const
          budget = deepFreeze(release(budget, all, nothing, 'command-2') ?? budget)
          held = []
        }
      }),
      { numRuns: runs(1_000) },
    )
    expect([...met].sort()).toEqual(['free: true', 'limited: false', 'limited: true'])
  })

  test('a candidate whose limit is known is decided like one whose limit is not', () => {
    const value = fc.bigInt({ min: 0n, max: 9n })
    const limits = fc.record(
      {
        debitAmount: value.map(dollars),
        receiveAmount: value.map(euros),
        interval: fc.constantFrom(
          hourly,
          'R1/2020-01-01T00:00:00Z/PT1H',
          'R/2090-01-01T00:00:00Z/P1D',
        ),
        receiver: fc.constantFrom(receiver, 'https://bank.example/other'),
      },
      { requiredKeys: [] },
    )
    const items = fc
      .array(limits, { maxLength: 3 })
      .map((each) => each.map((some, index) => item(some, String(index))))
    const instant = fc.oneof(
      fc.integer({ min: -hour, max: hour }).map((ms) => now + ms),
      fc.double(),
    )
    const property = fc.property(items, value, value, instant, (access, debited, received, at) => {
      const debitAmount = dollars(debited)
      const spending = { receiver, debitAmount, receiveAmount: euros(received) }
      const decided = (candidates: Parameters<typeof decideSpending>[0]) =>
        decideSpending(candidates, spending, charge, at, budgetPolicy)
      const known = payingItems(access, charge, at)
      expect(decided(known)).toStrictEqual(decided(known.map(({ item }) => ({ item }))))
    })
    fc.assert(property, { numRuns: runs(2_000) })
  })

  test('the same input gives the same result, and no record makes it throw', () => {
    const text = fc.oneof(fc.string(), fc.constantFrom('0', '1', String(most), '-1'))
    const amount = text.map(dollars)
    const budgets = fc.option(
      fc
        .record({
          debitAmount: fc.option(text.map(dollars)),
          receiveAmount: fc.option(text.map(euros)),
        })
        .map((spent) => ({ ...taken([{ item: capped(1n) }], 1n), spent })),
    )
    fc.assert(
      fc.property(amount, amount, budgets, fc.double(), (limit, debitAmount, budget, at) => {
        const limited = item({ debitAmount: limit, interval: hourly })
        const candidates = [budget === null ? { item: limited } : { item: limited, budget }]
        const spending = { receiver, debitAmount, receiveAmount: euros(1) }
        const ask = () => decideSpending(candidates, spending, charge, at, budgetPolicy)
        expect(ask()).toStrictEqual(structuredClone(ask()))
        const held = { debitAmount: 1n, receiveAmount: 1n, payments: 1 } as const
        if (budget !== null) release(budget, held, nothing, 'command')
      }),
      { numRuns: runs(1_000) },
    )
  })
})

describe('the status of a budget', () => {
  const window = { start: now, end: now + hour }
  const limitedAmount = { counts: 'debitAmount', maximum: dollars(100n) } as const

  test('before the first payment is nothing spent and all left', () => {
    expect(budgetStatus({ window, limitedAmount }, undefined)).toEqual({
      isOpen: true,
      window,
      spent: { debitAmount: dollars(0n) },
      left: { debitAmount: dollars(100n) },
    })
    expect(budgetStatus({}, undefined)).toEqual({ isOpen: true, spent: {}, left: {} })
  })

  test('contains both totals that were spent, and what is left of the limited amount', () => {
    const spent = { debitAmount: dollars(60n), receiveAmount: euros(50n) }
    const budget = { ...taken([{ item: item({ debitAmount: dollars(100n) }) }], 1n), spent }
    expect(budgetStatus({ limitedAmount }, budget)).toEqual({
      isOpen: true,
      spent,
      left: { debitAmount: dollars(40n) },
    })
    expect(budgetStatus({}, budget)).toEqual({ isOpen: true, spent, left: {} })
  })

  test('is in the asset of the limit while nothing is spent', () => {
    const first = taken([{ item: item() }], 7n)
    const all = { debitAmount: 7n, receiveAmount: 7n, payments: 1 } as const
    const released = release(first, all, nothing, 'command-2')
    const other = { counts: 'debitAmount', maximum: euros(100n) } as const
    expect(budgetStatus({ limitedAmount: other }, released)).toMatchObject({
      spent: { debitAmount: euros(0n), receiveAmount: euros(0n) },
      left: { debitAmount: euros(100n) },
    })
    expect(budgetStatus({ limitedAmount: other }, first)).toMatchObject({
      spent: { debitAmount: dollars(7n) },
      left: { debitAmount: euros(0n) },
    })
  })

  test('leaves nothing, and not less, if more was spent than the limit or the total is unreadable', () => {
    const budget = taken([{ item: item({ debitAmount: dollars(100n) }) }], 1n)
    const left = (debitAmount: Amount | null) =>
      budgetStatus({ limitedAmount }, { ...budget, spent: { debitAmount, receiveAmount: null } })
        .left
    for (const total of [dollars(100n), dollars(101n), euros(1n), null]) {
      expect(left(total)).toEqual({ debitAmount: dollars(0n) })
    }
  })

  test('leaves nothing if the limit is unreadable', () => {
    const unreadable = { counts: 'debitAmount', maximum: { ...dollars(1n), value: '1.5' } } as const
    for (const budget of [undefined, taken([{ item: item({ debitAmount: dollars(100n) }) }], 1n)]) {
      expect(budgetStatus({ limitedAmount: unreadable }, budget).left).toEqual({
        debitAmount: dollars(0n),
      })
    }
  })

  test('outside all windows is closed, with nothing left of each limit', () => {
    const closed = { isOpen: false, spent: {} }
    expect(closedBudget(item({}))).toEqual({ ...closed, left: {} })
    expect(closedBudget(item({ debitAmount: dollars(100n) }))).toEqual({
      ...closed,
      left: { debitAmount: dollars(0n) },
    })
    expect(closedBudget(item({ receiveAmount: euros(100n) }))).toEqual({
      ...closed,
      left: { receiveAmount: euros(0n) },
    })
  })
})

describe('the status of a limit', () => {
  const window = { start: now, end: now + hour }
  const open = { source: 'owner', scope: { grantId: 'grant' }, budgetId: 'budget' } as const
  const budget: Budget = { ...taken([{ item: capped(100n) }], 40n), payments: 2 }
  const limitedAmount = { counts: 'debitAmount', maximum: dollars(100) } as const
  const both = { debitAmount: dollars(100), payments: 3 }
  const source = 'account'

  test('is what the payments in its open window leave', () => {
    const all = { ...open, limitedAmount, payments: 3, window }
    const left = { debitAmount: dollars(60), payments: 1 }
    const status = limitStatus({ source, limit: both, open: all, budget })
    expect(status).toEqual({ source, isOpen: true, window, left })
    const unpaid = limitStatus({ source, limit: both, open: all })
    expect(unpaid).toEqual({ source, isOpen: true, window, left: both })
  })

  test('contains only what is limited, and never less than nothing', () => {
    const few = { ...open, payments: 1 }
    expect(limitStatus({ source, limit: { payments: 1 }, open: few, budget })).toEqual({
      ...{ source, isOpen: true, left: { payments: 0 } },
    })
    const { debitAmount } = both
    const amount = limitStatus({ source, limit: { debitAmount }, open: { ...open, limitedAmount } })
    expect(amount).toStrictEqual({ source, isOpen: true, left: { debitAmount } })
  })

  test('outside all windows leaves nothing of what is limited', () => {
    const closed = { source, isOpen: false }
    const left = { debitAmount: dollars(0), payments: 0 }
    expect(limitStatus({ source, limit: both })).toStrictEqual({ ...closed, left })
    expect(limitStatus({ source, limit: { payments: 3 } })).toStrictEqual({
      ...{ ...closed, left: { payments: 0 } },
    })
    expect(limitStatus({ source, limit: { debitAmount: dollars(1) } })).toStrictEqual({
      ...{ ...closed, left: { debitAmount: dollars(0) } },
    })
  })

  test('of the client is that of its item', () => {
    const closed = item(
      { interval: 'R1/2020-01-01T00:00:00Z/PT1H', debitAmount: dollars(100) },
      '2',
    )
    const [first, second, third] = payingItems([perHour, closed, capped(9n, '3')], charge, now)
    const of = (paying = first, spent?: Budget) => paying && itemLimitStatus(paying, spent)
    const left = (value: number) => ({ debitAmount: dollars(value) })
    const common = { source: 'client', itemId: '1', isOpen: true }
    expect(of(first, budget)).toStrictEqual({ ...common, window, left: left(60) })
    expect(of(second)).toStrictEqual({ ...common, itemId: '2', isOpen: false, left: left(0) })
    expect(of(third)).toStrictEqual({ ...common, itemId: '3', left: left(9) })
  })
})

describe('the paying items of a token', () => {
  const closed = item({ interval: 'R1/2020-01-01T00:00:00Z/PT1H', debitAmount: dollars(100n) })
  const reading = { type: 'quote', actions: ['read'], itemId: '3' } as const

  test('are its outgoing items in their order, open with a budget or closed', () => {
    const [first, second, ...others] = payingItems([perHour, reading, closed], charge, now)
    const open = first?.open
    expect([first?.item, open?.limitedAmount?.maximum]).toEqual([perHour, dollars(100n)])
    expect(open && budgetId(charge, perHour, open)).toBe(open?.budgetId)
    expect(second).toEqual({ item: closed })
    expect(others).toEqual([])
  })

  test('have the status of their budget, or a closed one', () => {
    const [open = { item: perHour }, over = { item: closed }] = payingItems(
      [perHour, closed],
      charge,
      now,
    )
    const left = { debitAmount: dollars(100n) }
    expect(itemStatus(open, undefined)).toMatchObject({ isOpen: true, left })
    expect(itemStatus(over, undefined)).toEqual(closedBudget(closed))
  })
})
