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
