import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { budgetId, payingItems } from '../../src/core/budget/paying-items.js'
import type { Budget } from '../../src/core/budget/record.js'
import { release } from '../../src/core/budget/release.js'
import { decideSpending } from '../../src/core/budget.js'
import type { Amount } from '../../src/index.js'
import { capped, charge, hour, hourly, nothing, perHour, spend, taken } from '../support/charges.js'
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
        let budget: Budget | undefined
        for (const { value, in: of, limit, release: releases } of moves) {
          const limited = item(limit ? { debitAmount: limit.in(limit.value) } : {})
          const candidate = budget === undefined ? { item: limited } : { item: limited, budget }
          const spending = { receiver, debitAmount: of(value), receiveAmount: euros(1) }
          const charged = decideSpending([candidate], spending, charge, now, budgetPolicy)
          const total = held.reduce((sum, each) => sum + BigInt(each.value), 0n)
          const fits = isSummable([...held, limit?.in(0) ?? of(0), of(value)])
          expect(charged.ok).toBe(!limit || (fits && total + value <= limit.value))
          met.add(`${limit ? 'limited' : 'free'}: ${charged.ok}`)
          if (charged.ok) {
            budget = charged.value.budget
            held.push(of(value))
          }
          if (!releases) continue
          for (const each of held) {
            if (budget === undefined) continue
            const one = { debitAmount: BigInt(each.value), receiveAmount: 1n, payments: 1 } as const
            const next = release(budget, one, nothing, 'command-2', { debitAmount: each })
            budget = deepFreeze(next ?? budget)
          }
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
