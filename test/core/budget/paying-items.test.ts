import { describe, expect, test } from 'vitest'
import { budgetId, payingItems } from '../../../src/core/budget/paying-items.js'
import { closedBudget, itemStatus } from '../../../src/core/budget/status.js'
import { charge, perHour } from '../../support/charges.js'
import { startOfTests } from '../../support/clock.js'
import { dollars, item } from '../../support/spending-life.js'

const now = startOfTests

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
