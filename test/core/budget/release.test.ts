import { describe, expect, test } from 'vitest'
import { release } from '../../../src/core/budget/release.js'
import { capped, nothing, perHour, taken } from '../../support/charges.js'
import { dollars, euros, most } from '../../support/spending-life.js'

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
