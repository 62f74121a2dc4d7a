import { describe, expect, test } from 'vitest'
import { keep } from '../../../src/core/budget/record.js'
import { capped, taken } from '../../support/charges.js'
import { startOfTests } from '../../support/clock.js'
import { budgetPolicy } from '../../support/spending-life.js'

const now = startOfTests

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
