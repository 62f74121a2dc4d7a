import type { Budget } from '../../src/core/budget/record.js'
import { decideSpending } from '../../src/core/budget.js'
import { startOfTests } from './clock.js'
import { deepFreeze } from './frozen.js'
import { budgetPolicy, dollars, euros, item, receiver } from './spending-life.js'

/** The grant and command to which tests charge payments. */
export const charge = { commandId: 'command-1', namespace: 'namespac', grantId: 'grant' }

export const hour = 3_600_000
/** An interval of windows of an hour, the first at the start of the tests. */
export const hourly = 'R/2026-11-21T12:00:00Z/PT1H'

/** Returns a granted item with a maximum of dollars. */
export const capped = (value: bigint, itemId = '1') => item({ debitAmount: dollars(value) }, itemId)

export const perHour = item({ interval: hourly, debitAmount: dollars(100) })

/** What a payment holds that has ended and sent nothing. */
export const nothing = { debitAmount: 0n, receiveAmount: 0n, payments: 0 } as const

/** Charges a payment of dollars to a candidate, now unless stated otherwise. */
export function spend(
  candidates: Parameters<typeof decideSpending>[0],
  debit: bigint,
  { at = startOfTests, commandId = 'command-1' }: { at?: number; commandId?: string } = {},
) {
  const decision = decideSpending(
    deepFreeze(candidates),
    { receiver, debitAmount: dollars(debit), receiveAmount: euros(debit) },
    { ...charge, commandId },
    at,
    budgetPolicy,
  )
  return deepFreeze(decision)
}

/** Applies a payment that must be accepted and returns the resulting budget. */
export function taken(...args: Parameters<typeof spend>): Budget {
  const charged = spend(...args)
  if (!charged.ok) throw new Error('not charged')
  return charged.value.budget
}
