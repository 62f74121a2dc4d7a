import { describe, expect, test } from 'vitest'
import type { GrantedItem } from '../../../src/core/access.js'
import type { Budget } from '../../../src/core/budget/record.js'
import type { Grant } from '../../../src/core/grant/record.js'
import type { SpendingLimit } from '../../../src/core/limits.js'
import { reserveOutgoingPayment } from '../../../src/core/outgoing-payment/create.js'
import {
  createReserved,
  decideRepeat,
  declinePayment,
  endAsk,
  refuseByGrant,
  reservedByOther,
  rightsOf,
} from '../../../src/core/outgoing-payment/reservation.js'

const alice = 'https://wallet.example/alice'
const usd = (value: number) => ({ value: String(value), assetCode: 'USD', assetScale: 2 })
const policy = {
  holdMs: 1_000,
  retentionMs: 10_000,
  decideMs: 30,
  lateMs: 200,
}

const item: GrantedItem = {
  itemId: '1',
  label: 'a',
  type: 'outgoing-payment',
  actions: ['create'],
  identifier: alice,
  limits: { debitAmount: usd(100) },
}

const request = {
  commandId: 'first',
  client: 'https://shop.example',
  requestHash: 'hash',
  grantId: 'grant',
}

const reserve = (more: object = {}) =>
  reserveOutgoingPayment(
    {
      ...request,
      id: 'payment',
      namespace: '',
      walletAddress: alice,
      receiver: 'https://shop.example/1',
      debitAmount: usd(60),
      receiveAmount: usd(60),
      candidates: [{ item }],
      askedAt: 1_000,
      ...more,
    },
    1_000,
    { reservations: policy, budgets: policy },
  )
const reservation = reserve()
if (!reservation.ok) throw new Error(reservation.reason)
const { record: reserved, budget } = reservation

const repeat = { ...request, commandId: 'second' }
const spentOf = (value: number) => ({ spent: { ...budget.spent, debitAmount: usd(value) } })

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
    const at = (now: number, payment = reserved) => decideRepeat(payment, repeat, now, policy)
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

describe('the current rights of a grant', () => {
  const grant = {
    id: 'grant',
    version: 2,
    commandId: 'amended',
    createdAt: 0,
    client: { kid: 'key', x: 'x', thumbprint: 'key' },
    requested: [],
    granted: [item],
    continuation: { path: 'c', tokenHash: 'c', waitMs: 0, acceptedAt: 0 },
    tokens: [{ label: 'a', hash: 'rotated', manage: 'm', issuedAt: 0, expiresAt: 9_999 }],
  } satisfies Grant
  const refused = (change: Partial<Grant>, counted: Budget | undefined = budget, now = 1_020) => {
    const rights = rightsOf({ ...grant, ...change }, now)
    return rights ? refuseByGrant(reserved, rights, '', () => counted, now)?.refusal : 'ended'
  }
  const limited = (value: number) => ({ ...item, limits: { debitAmount: usd(value) } })

  test.each<[string, Partial<Grant>, string | undefined]>([
    ['a rotated token', {}, undefined],
    ['a limit that the budget does not exceed', { granted: [limited(60)] }, undefined],
    ['a limit that the budget exceeds', { granted: [limited(59)] }, 'limits_exceeded'],
    [
      'an item without the action',
      { granted: [{ ...item, actions: ['read'] }] },
      'limits_exceeded',
    ],
    ['no such item', { granted: [{ ...item, itemId: '2' }] }, 'limits_exceeded'],
    ['a pause', { conditions: { pausedUntil: 1_021 } }, 'grant_paused'],
    ['a lower maximum', { conditions: { paymentMax: usd(59) } }, 'conditions_exceeded'],
    [
      'a revoked token',
      { tokens: grant.tokens.map((t) => ({ ...t, revokedAt: 1 })) },
      'limits_exceeded',
    ],
    [
      'a token that was revoked at the instant 0',
      { tokens: grant.tokens.map((t) => ({ ...t, revokedAt: 0 })) },
      'limits_exceeded',
    ],
    ['a revoked grant', { finalized: { reason: 'revoked', at: 1, by: 'host' } }, 'ended'],
    ['an expired grant', { expiresAt: 1_020 }, 'ended'],
  ])('with %s decide about it', (_, change, refusal) => {
    expect(refused(change)).toBe(refusal)
  })

  test('are none before its owner has decided', () => {
    const { granted: _granted, ...pending } = grant
    expect(rightsOf(pending, 1_020)).toBeUndefined()
  })

  describe('with limits of the owner', () => {
    const limits = [{ debitAmount: usd(60), payments: 1 }]
    const id = 'namespacgrant.owner.life'
    const counting = { ...reserved, limitBudgetIds: [id] }
    const inLimit = { ...budget, id, payments: 1 }
    const refusedUnder = (set: readonly SpendingLimit[], payment = counting, spent = inLimit) => {
      const rights = { access: [item], conditions: { limits: set } }
      const budgetOf = (wanted: string) => (wanted === id ? spent : budget)
      return refuseByGrant(payment, rights, 'namespac', budgetOf, 1_020)?.refusal
    }
    const closed = { payments: 1, interval: 'R1/2020-01-01T00:00:00Z/PT1H' }

    test('allow it while each of them counts it and is kept', () => {
      expect(refusedUnder(limits)).toBeUndefined()
      expect(refusedUnder([])).toBeUndefined()
    })

    test.each<[string, ...Parameters<typeof refusedUnder>]>([
      ['is exceeded by the amount', limits, counting, { ...inLimit, ...spentOf(61) }],
      ['is exceeded by the number of payments', limits, counting, { ...inLimit, payments: 2 }],
      ['has another budget than those that count it', limits, reserved as typeof counting],
      ['has no window at its creation', [...limits, closed]],
    ])('refuse it if one of them %s', (_, ...given) => {
      expect(refusedUnder(...given)).toBe('conditions_exceeded')
    })
  })

  test('count what other payments have spent', () => {
    const counted = { ...budget, spent: { ...budget.spent, debitAmount: usd(101) } }
    expect(refused({}, counted)).toBe('limits_exceeded')
  })
})
