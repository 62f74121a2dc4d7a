import { describe, expect, test } from 'vitest'
import {
  budgetIdsOf,
  heldBy,
  isCreated,
  type PaymentRecord,
} from '../../../src/core/outgoing-payment/record.js'
import { created, dollars, euros } from '../../support/spending-life.js'

const { record } = created()
const states = ['reserved', 'declined', 'created', 'begun', 'completed', 'failed'] as const
const inState = (state: PaymentRecord['state'], more: Partial<PaymentRecord> = {}) =>
  ({ ...record, state, ...more }) as PaymentRecord

describe('a record of a payment', () => {
  test('is a payment for clients and the host, unless it is reserved or declined', () => {
    expect(states.filter((state) => isCreated(inState(state)))).toEqual(states.slice(2))
  })

  test('counts as a payment until it ends, and then only if it has moved something', () => {
    const counts = (state: PaymentRecord['state'], sent: string, delivered: string) =>
      heldBy(inState(state, { sent, delivered })).payments
    for (const state of ['reserved', 'created', 'begun'] as const) {
      expect([state, counts(state, '0', '0')]).toEqual([state, 1])
    }
    for (const state of ['declined', 'completed', 'failed'] as const) {
      const moved = [counts(state, '1', '0'), counts(state, '0', '1'), counts(state, '1', '1')]
      expect([state, counts(state, '0', '0'), ...moved]).toEqual([state, 0, 1, 1, 1])
    }
  })

  test('holds its amounts until it ends, and then what it has moved', () => {
    const moved = { sent: '7', delivered: '3', debitAmount: dollars(9), receiveAmount: euros(5) }
    for (const state of states) {
      const { debitAmount, receiveAmount } = heldBy(inState(state, moved))
      const isOver = ['declined', 'completed', 'failed'].includes(state)
      expect([state, debitAmount, receiveAmount]).toEqual([
        state,
        ...(isOver ? [7n, 3n] : [9n, 5n]),
      ])
    }
  })

  test('names each budget that counts it', () => {
    expect(budgetIdsOf(record)).toEqual([record.budgetId])
    const limitBudgetIds = ['of-the-owner', 'of-the-account']
    expect(budgetIdsOf({ ...record, limitBudgetIds })).toEqual([record.budgetId, ...limitBudgetIds])
  })
})
