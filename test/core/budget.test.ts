import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  type Budget,
  budgetId,
  decideSpending,
  release,
  spentAmount,
} from '../../src/core/budget.js'
import { startOfTests } from '../support/clock.js'
import { deepFreeze } from '../support/frozen.js'
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
const charge = { by: 'command-1', namespace: 'namespac', grantId: 'grant' }
const hourly = 'R/2026-11-21T12:00:00Z/PT1H'

function paying(debit: bigint, receive = debit) {
  return { receiver, debitAmount: dollars(debit), receiveAmount: euros(receive) }
}

function spend(
  candidates: Parameters<typeof decideSpending>[0],
  debit: bigint,
  { at = now, by = 'command-1' }: { at?: number; by?: string } = {},
) {
  const decision = decideSpending(
    deepFreeze(candidates),
    paying(debit),
    { ...charge, by },
    at,
    budgetPolicy,
  )
  return deepFreeze(decision)
}

/** The budget after a payment that has to be accepted. */
function taken(...args: Parameters<typeof spend>): Budget {
  const charged = spend(...args)
  if (charged.outcome === 'refused' || charged.taken === undefined) throw new Error('not charged')
  return charged.taken.budget
}

const capped = (value: bigint, itemId = '1') => item({ debitAmount: dollars(value) }, itemId)
const perHour = item({ interval: hourly, debitAmount: dollars(100) })

describe('the first payment under an item', () => {
  test('makes a budget for the life of the grant, with all of it taken', () => {
    expect(taken([{ item: capped(100n) }], 40n)).toEqual({
      id: 'namespacgrant.1.life',
      version: 1,
      by: 'command-1',
      grantId: 'grant',
      itemId: '1',
      counts: 'debitAmount',
      spent: '40',
      dueAt: now + budgetPolicy.retentionMs,
    })
  })

  test('makes a budget for the window alone where there are windows', () => {
    const retainUntil = now + hour + budgetPolicy.retentionMs
    expect(taken([{ item: perHour }], 40n, { at: now + 1 })).toEqual({
      id: `namespacgrant.1.${now}`,
      version: 1,
      by: 'command-1',
      grantId: 'grant',
      itemId: '1',
      counts: 'debitAmount',
      windowStart: now,
      spent: '40',
      dueAt: retainUntil,
      retainUntil,
    })
  })

  test('counts what arrives where that is limited', () => {
    const limited = item({ receiveAmount: euros(100) })
    const decision = decideSpending(
      [{ item: limited }],
      paying(500n, 60n),
      charge,
      now,
      budgetPolicy,
    )
    expect(decision).toMatchObject({
      outcome: 'charged',
      item: limited,
      taken: { budget: { counts: 'receiveAmount', spent: '60' } },
    })
  })

  test('makes no budget where no amount is limited', () => {
    const free = item({ interval: hourly })
    expect(spend([{ item: free }], most)).toEqual({ outcome: 'charged', item: free })
  })

  test('has a budget of its own for each server, grant, item and window', () => {
    const allowance = { counts: 'debitAmount', limit: dollars(1) } as const
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
  test('is taken from the same budget, as far as there is room', () => {
    const limited = capped(100n)
    const first = taken([{ item: limited }], 40n)
    const second = taken([{ item: limited, budget: first }], 60n, { by: 'command-2' })
    expect(second).toMatchObject({ id: first.id, version: 2, by: 'command-2', spent: '100' })
    expect(spend([{ item: limited, budget: second }], 1n)).toMatchObject({
      refusal: 'limits_exceeded',
      reason: 'the budget of the window is spent',
    })
    expect(spend([{ item: limited, budget: first }], 61n)).toHaveProperty('refusal')
  })

  test('keeps the budget for as long after it as the first one would have', () => {
    const first = taken([{ item: capped(100n) }], 1n)
    const later = taken([{ item: capped(100n), budget: first }], 1n, { at: now + hour })
    expect(later.dueAt).toBe(now + hour + budgetPolicy.retentionMs)
    expect(later).not.toHaveProperty('retainUntil')
  })

  test('is charged to the next item that covers it, when the first has no room', () => {
    const [small, large] = [capped(50n, '1'), capped(100n, '2')]
    const full = taken([{ item: small }], 50n)
    expect(spend([{ item: small }, { item: large }], 50n)).toMatchObject({ item: small })
    expect(spend([{ item: small, budget: full }, { item: large }], 1n)).toMatchObject({
      item: large,
      taken: { budget: { id: 'namespacgrant.2.life', spent: '1' } },
    })
    expect(spend([{ item: small }, { item: large }], 51n)).toMatchObject({ item: large })
    expect(spend([{ item: small }, { item: large }], 101n)).toHaveProperty('refusal')
  })

  test('is never split among items that have room for it only together', () => {
    expect(spend([{ item: capped(50n, '1') }, { item: capped(50n, '2') }], 51n)).toMatchObject({
      refusal: 'limits_exceeded',
    })
  })

  test('says of the item that was looked at last why there is no room', () => {
    const full = taken([{ item: capped(50n) }], 50n)
    const elsewhere = item({ receiver: 'https://bank.example/incoming-payments/2' }, '2')
    expect(spend([{ item: capped(50n), budget: full }, { item: elsewhere }], 1n)).toMatchObject({
      reason: 'the receiver is not the one that was granted',
    })
    expect(spend([], 1n)).toMatchObject({
      refusal: 'limits_exceeded',
      reason: 'no granted item allows payments from there',
    })
  })

  test('finds nothing left in a budget that nobody can read', () => {
    const first = taken([{ item: capped(most) }], 1n)
    for (const spent of ['', '-1', '1.5', '18446744073709551616']) {
      const broken = { ...first, spent }
      expect(spend([{ item: capped(most), budget: broken }], 1n)).toHaveProperty('refusal')
    }
  })
})

describe('what is given back', () => {
  test('can be taken again, to the last unit', () => {
    const full = taken([{ item: capped(most) }], most)
    const back = release(full, most, 'command-2')
    expect(back).toEqual({ ...full, version: 2, by: 'command-2', spent: '0' })
    expect(taken([{ item: capped(most), budget: back }], most)).toMatchObject({
      version: 3,
      spent: String(most),
    })
  })

  test('leaves a budget due and kept as it was', () => {
    const before = taken([{ item: perHour }], 40n)
    const { dueAt, retainUntil, windowStart } = before
    expect(release(before, 40n, 'later')).toMatchObject({ dueAt, retainUntil, windowStart })
  })

  test('is told in the asset of the limit, and is nothing where nothing was spent', () => {
    const allowance = { counts: 'receiveAmount', limit: euros(100) } as const
    expect(spentAmount(undefined, allowance)).toEqual(euros(0))
    const budget = taken([{ item: capped(100n) }], 7n)
    expect(spentAmount(budget, allowance)).toEqual(euros(7))
  })
})

/** Values such that some fit together and some do not. */
const pressing = fc
  .tuple(positive, fc.array(fc.tuple(positive, fc.boolean()), { maxLength: 20 }))
  .map(([limit, moves]) => ({
    limit,
    moves: moves.map(([value, back]) => ({ value: (value % limit) + (back ? 0n : 1n), back })),
  }))

describe('whatever is taken and given back, in whichever order', () => {
  test('the budget is the exact sum, never passes its limit, and refuses only what has no room', () => {
    fc.assert(
      fc.property(pressing, ({ limit, moves }) => {
        const limited = capped(limit)
        const held: bigint[] = []
        let budget: Budget | undefined
        for (const [index, { value, back }] of moves.entries()) {
          const by = `command-${index}`
          const last = held.at(-1)
          if (back && budget !== undefined && last !== undefined) {
            const kept = value % (last + 1n)
            budget = deepFreeze(release(budget, last - kept, by))
            held[held.length - 1] = kept
          } else {
            const candidate = budget === undefined ? { item: limited } : { item: limited, budget }
            const decision = spend([candidate], value, { by })
            const room = held.reduce((sum, each) => sum + each, 0n) + value <= limit
            expect(decision.outcome).toBe(room ? 'charged' : 'refused')
            if (decision.outcome === 'refused') continue
            const before: number = budget?.version ?? 0
            budget = decision.taken?.budget
            held.push(value)
            expect(budget).toMatchObject({ version: before + 1, by })
          }
          const total = held.reduce((sum, each) => sum + each, 0n)
          expect(budget?.spent).toBe(total.toString())
          expect(total).toBeLessThanOrEqual(limit)
          expect(JSON.parse(JSON.stringify(budget))).toStrictEqual(budget)
        }
      }),
      { numRuns: 1_500 },
    )
  })

  test('the same question has the same answer, and no record makes it throw', () => {
    const text = fc.oneof(fc.string(), fc.constantFrom('0', '1', String(most), '-1'))
    const amount = text.map(dollars)
    const budgets = fc.option(
      text.map((spent) => ({ ...taken([{ item: capped(1n) }], 1n), spent })),
    )
    fc.assert(
      fc.property(amount, amount, budgets, fc.double(), (limit, debitAmount, budget, at) => {
        const limited = item({ debitAmount: limit, interval: hourly })
        const candidates = [budget === null ? { item: limited } : { item: limited, budget }]
        const spending = { receiver, debitAmount, receiveAmount: euros(1) }
        const ask = () => decideSpending(candidates, spending, charge, at, budgetPolicy)
        expect(ask()).toStrictEqual(structuredClone(ask()))
        if (budget !== null) release(budget, 1n, 'command')
      }),
      { numRuns: 1_000 },
    )
  })
})
