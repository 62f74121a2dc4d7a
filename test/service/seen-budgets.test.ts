import { describe, expect, test } from 'vitest'
import type { RecordKey } from '../../src/entry-adapter.js'
import { createSeenBudgets } from '../../src/service/seen-budgets.js'

describe('the budgets that a process has seen', () => {
  const keys = (count: number): readonly RecordKey[] =>
    Array.from({ length: count }, (_, i) => ({ kind: 'budget', id: String(i) }))

  test('are those that were seen last', () => {
    const budgets = createSeenBudgets()
    expect(budgets.guess('grant')).toBeUndefined()
    budgets.see('grant', keys(2))
    budgets.see('grant', keys(1))
    expect(budgets.guess('grant')).toEqual(keys(1))
  })

  test('are forgotten when a grant has more than 8, and after 10,000 others', () => {
    const budgets = createSeenBudgets()
    budgets.see('large', keys(8))
    expect(budgets.guess('large')).toHaveLength(8)
    budgets.see('large', keys(9))
    expect(budgets.guess('large')).toBeUndefined()
    for (let i = 0; i <= 10_000; i++) budgets.see(String(i), keys(1))
    expect(budgets.guess('0')).toBeUndefined()
    expect(budgets.guess('5001')).toEqual(keys(1))
  })
})
