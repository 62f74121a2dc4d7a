import { describe, expect, test } from 'vitest'
import { payingItems } from '../../../src/core/budget/paying-items.js'
import type { Budget } from '../../../src/core/budget/record.js'
import { release } from '../../../src/core/budget/release.js'
import {
  budgetStatus,
  closedBudget,
  itemLimitStatus,
  limitStatus,
} from '../../../src/core/budget/status.js'
import type { Amount } from '../../../src/index.js'
import { capped, charge, hour, nothing, perHour, taken } from '../../support/charges.js'
import { startOfTests } from '../../support/clock.js'
import { dollars, euros, item } from '../../support/spending-life.js'

const now = startOfTests

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
