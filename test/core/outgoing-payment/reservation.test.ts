import { describe, expect, test } from 'vitest'
import type { ReservedPayment } from '../../../src/core/outgoing-payment/record.js'
import {
  createReserved,
  decideRepeat,
  declinePayment,
  endAsk,
  reservedByOther,
} from '../../../src/core/outgoing-payment/reservation.js'
import {
  policy,
  request,
  reservation,
  reserve,
  reserved,
  usd,
} from '../../support/reserved-payment.js'

const repeat = { ...request, commandId: 'second' }

describe('a reserved payment', () => {
  test('is in no list, counts in its budget, and is due when no hold of its call can follow', () => {
    expect(reserved).toMatchObject({ state: 'reserved', askUntil: 1_030, dueAt: 1_230, version: 1 })
    expect(reserved).not.toHaveProperty('lists')
    expect(reservation).toMatchObject({ events: [], budget: { spent: { debitAmount: usd(60) } } })
  })

  test('is not reserved above its limit', () => {
    const more = { debitAmount: usd(101), receiveAmount: usd(101) }
    expect(reserve(more)).toMatchObject({ ok: false, refusal: 'limits_exceeded' })
  })

  test('is continued by a repeat only when its call is over, and before it is due', () => {
    const at = (now: number, payment: ReservedPayment = reserved) =>
      decideRepeat(payment, repeat, now, policy)
    expect(at(1_029)).toMatchObject({ outcome: 'unchanged', record: reserved })
    expect(at(1_030)).toMatchObject({
      outcome: 'changed',
      record: { commandId: 'second', askUntil: 1_060, dueAt: 1_260, lateHoldsUntil: 1_230 },
    })
    expect(at(1_230)).toMatchObject({ outcome: 'unchanged' })
    expect(at(1_010, endAsk(reserved, 'end', 1_010))).toMatchObject({ outcome: 'changed' })
  })

  test('is continued only under its grant, by its client, with an equal request', () => {
    const by = (change: Partial<typeof repeat>) =>
      decideRepeat(reserved, { ...repeat, ...change }, 1_100, policy)
    expect(by({ grantId: 'another' })).toMatchObject({ outcome: 'unchanged' })
    expect(by({ client: 'another' })).toBeUndefined()
    expect(by({ requestHash: 'another' })).toMatchObject({ refusal: 'request_differs' })
  })

  test('is returned as it is to its own request, and to any once it is created', () => {
    expect(decideRepeat(reserved, request, 1_100, policy)).toMatchObject({ outcome: 'unchanged' })
    const { record } = createReserved(reserved, { commandId: 'other', lists: [] }, 1_020, policy)
    const again = decideRepeat({ ...reserved, ...record }, repeat, 1_100, policy)
    expect(again).toEqual({ ok: true, outcome: 'unchanged', record: { ...reserved, ...record } })
  })

  test('belongs to another request only until it is created or declined', () => {
    expect(reservedByOther(reserved, 'second')).toBe(reserved)
    expect(reservedByOther(reserved, 'first')).toBeUndefined()
    for (const state of ['created', 'declined'] as const) {
      expect(reservedByOther({ ...reserved, state } as typeof reserved, 'second')).toBeUndefined()
    }
  })

  test('has the next version with each change, and an event when it is created', () => {
    const again = decideRepeat(reserved, repeat, 1_100, policy)
    const made = createReserved(reserved, { commandId: 'confirm', lists: [] }, 1_020, policy)
    const refusal = { refusal: 'grant_ended', reason: 'it has ended' } as const
    const { record: declined } = declinePayment(reserved, refusal, 'end', 1_110, policy)
    expect(again).toMatchObject({ record: { version: 2 } })
    const nexts = [made.record, declined, endAsk(reserved, 'end', 1_010)]
    expect(nexts.map(({ version }) => version)).toEqual([2, 2, 2])
    expect(made.events).toMatchObject([{ type: 'outgoing-payment.created', at: 1_020 }])
  })

  test('remembers its refusal for repeats, and that a hold may be late until its end', () => {
    const again = decideRepeat(reserved, repeat, 1_100, policy)
    if (again?.outcome !== 'changed') throw new Error('the call is over')
    const details = { problem: 'the balance is too low' }
    const refusal = { refusal: 'funds_insufficient', reason: 'balance 12', details } as const
    const { record, events } = declinePayment(again.record, refusal, 'end', 1_110, policy)
    expect(record).toMatchObject({ state: 'declined', retainUntil: 11_110, lateHoldsUntil: 1_230 })
    expect(events).toMatchObject([{ type: 'outgoing-payment.declined', sentAmount: usd(0) }])
    expect(decideRepeat(record, repeat, 9_999, policy)).toMatchObject(refusal)
  })

  test('is held from the moment when it is created', () => {
    const lists = [{ list: 'all', at: 1_020 }]
    const { record } = createReserved(reserved, { commandId: 'confirm', lists }, 1_020, policy)
    expect(record).toMatchObject({ state: 'created', createdAt: 1_000, holdUntil: 2_020, lists })
    for (const name of ['askUntil', 'lateHoldsUntil']) expect(record).not.toHaveProperty(name)
  })
})
