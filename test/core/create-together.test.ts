import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Budget, budgetId } from '../../src/core/budget.js'
import { allowanceAt } from '../../src/core/limits.js'
import {
  type CreateOutgoingPayment,
  createOutgoingPayment,
} from '../../src/core/outgoing-payment/create.js'
import {
  createTogether,
  type TimedCreation,
} from '../../src/core/outgoing-payment/create-together.js'
import { startOfTests } from '../support/clock.js'
import { deepFreeze } from '../support/frozen.js'
import { runs } from '../support/runs.js'
import { dollars, item, receiver } from '../support/spending-life.js'

const hour = 3_600_000
const policy = { holdMs: hour, retentionMs: 2 * hour }
const charge = { namespace: 'namespac', grantId: 'grant' }

/** Two windows and the life of the grant, each with its own maximum. */
const items = [
  item({ interval: 'R/2026-11-21T12:00:00Z/PT1H', debitAmount: dollars(100n) }, '1'),
  item({ debitAmount: dollars(150n) }, '2'),
]

interface Wish {
  readonly value: number
  readonly atMs: number
}

function creation({ value, atMs }: Wish, index: number, stored: ReadonlyMap<string, Budget>) {
  const now = startOfTests + atMs
  const candidates = items.map((each) => {
    const allowance = allowanceAt(each, now)
    const budget = allowance.ok && stored.get(budgetId(charge, each, allowance.value))
    return budget ? { item: each, budget } : { item: each }
  })
  const amount = dollars(BigInt(value))
  const command: CreateOutgoingPayment = {
    ...charge,
    ...{ commandId: `command-${index}`, id: `payment-${index}`, walletAddress: '', client: '' },
    ...{ requestHash: '', receiver, debitAmount: amount, receiveAmount: amount, lists: [] },
    candidates,
  }
  return deepFreeze<TimedCreation>({ command, now })
}

/** Decides the payments in one commit each. */
function oneByOne(wishes: readonly Wish[], first: ReadonlyMap<string, Budget>) {
  const budgets = new Map(first)
  const decisions = wishes.map((wish, index) => {
    const { command, now } = creation(wish, index, budgets)
    const decision = createOutgoingPayment(command, now, policy)
    if (decision.ok) budgets.set(decision.budget.id, decision.budget)
    return decision
  })
  return { decisions, budgets }
}

const wish = fc.record({
  value: fc.integer({ min: 1, max: 60 }),
  // In two windows.
  atMs: fc.constantFrom(0, 1, hour, hour + 1),
})

describe('payments that one commit creates', () => {
  test('are decided as by one commit each, and change the version of each budget once', () => {
    fc.assert(
      fc.property(
        fc.array(wish, { maxLength: 6 }),
        fc.array(wish, { minLength: 1, maxLength: 12 }),
        (earlier, wishes) => {
          const stored = oneByOne(earlier, new Map()).budgets
          const expected = oneByOne(wishes, stored)
          const all = wishes.map((each, index) => creation(each, index, stored))
          const { decisions, budgets } = createTogether(all, policy)
          const told = (each: (typeof decisions)[number]) =>
            each.ok ? { ...each, budget: each.budget.spent } : each
          expect(decisions.map(told)).toEqual(expected.decisions.map(told))
          for (const [id, { version, ...budget }] of budgets) {
            expect(version).toBe((stored.get(id)?.version ?? 0) + 1)
            expect(expected.budgets.get(id)).toMatchObject(budget)
          }
          const charged = expected.decisions.flatMap((each) => (each.ok ? each.budget.id : []))
          expect(new Set(budgets.keys())).toEqual(new Set(charged))
        },
      ),
      { numRuns: runs(1_000) },
    )
  })
})
