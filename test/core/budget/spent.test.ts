import { describe, expect, test } from 'vitest'
import type { Budget } from '../../../src/core/budget/record.js'
import { release } from '../../../src/core/budget/release.js'
import { isWithinLimit, totalSpent } from '../../../src/core/budget/spent.js'
import { decideSpending } from '../../../src/core/budget.js'
import type { Amount } from '../../../src/index.js'
import { capped, charge, nothing, taken } from '../../support/charges.js'
import { startOfTests } from '../../support/clock.js'
import { budgetPolicy, dollars, euros, item, most, receiver } from '../../support/spending-life.js'

const now = startOfTests

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

  test('is exact again once what made it null is released', () => {
    const held = (receiveAmount: bigint) =>
      ({ debitAmount: 10n, receiveAmount, payments: 1 }) as const
    const back = (budget: Budget, receiveAmount: Amount) =>
      release(budget, held(BigInt(receiveAmount.value)), nothing, 'command-2', {
        ...{ debitAmount: dollars(10), receiveAmount },
      })
    const mixed = budgetAfter(euros(20), dollars(5))
    expect(mixed.exact).toEqual({ receiveAmount: [euros(20), dollars(5)] })
    expect(back(mixed, dollars(5))).toMatchObject({ spent: { receiveAmount: euros(20) } })
    expect(back(mixed, dollars(5))).not.toHaveProperty('exact')
    expect(back(mixed, euros(20))).toMatchObject({ spent: { receiveAmount: dollars(5) } })
    const large = budgetAfter(euros(most), euros(most), euros(most))
    expect(large.exact).toEqual({ receiveAmount: [euros(3n * most)] })
    const less = back(large, euros(most))
    expect(less?.exact).toEqual({ receiveAmount: [euros(2n * most)] })
    expect(less && back(less, euros(most))).toMatchObject({ spent: { receiveAmount: euros(most) } })
  })

  test('leaves nothing of a later limit while another asset is spent, and the rest once it is released', () => {
    const budget = budgetAfter(euros(20), dollars(5))
    const limited = item({ receiveAmount: euros(100) })
    const charged = (value: number, of = budget) =>
      decideSpending(
        [{ item: limited, budget: of }],
        dollarsFor(euros(value)),
        charge,
        now,
        budgetPolicy,
      )
    expect(charged(1)).toMatchObject({ ok: false, details: { left: euros(0) } })
    const held = { debitAmount: 10n, receiveAmount: 5n, payments: 1 } as const
    const released = release(budget, held, nothing, 'command-2', { receiveAmount: dollars(5) })
    expect(charged(80, released)).toMatchObject({ ok: true })
    expect(charged(81, released)).toMatchObject({ ok: false, details: { left: euros(80) } })
  })

  test('is kept for 32 assets, and a payment in one more is refused in words', () => {
    const inAsset = (index: number): Amount => ({
      value: '1',
      assetCode: `A${index}`,
      assetScale: 2,
    })
    const budget = budgetAfter(...Array.from({ length: 32 }, (_, index) => inAsset(index)))
    expect(budget.exact?.receiveAmount).toHaveLength(32)
    const charged = (index: number) =>
      decideSpending(
        [{ item: free, budget }],
        dollarsFor(inAsset(index)),
        charge,
        now,
        budgetPolicy,
      )
    expect(charged(31)).toMatchObject({ ok: true })
    expect(charged(32)).toMatchObject({
      ok: false,
      refusal: 'limits_exceeded',
      details: { path: 'limits', problem: 'has paid in 32 assets already' },
    })
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
