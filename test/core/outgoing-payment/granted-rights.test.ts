import { describe, expect, test } from 'vitest'
import type { Budget } from '../../../src/core/budget/record.js'
import type { Grant } from '../../../src/core/grant/record.js'
import type { SpendingLimit } from '../../../src/core/limits.js'
import { refuseByGrant, rightsOf } from '../../../src/core/outgoing-payment/granted-rights.js'
import { budget, item, reserved, usd } from '../../support/reserved-payment.js'

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
      [
        'is exceeded by the amount',
        limits,
        counting,
        { ...inLimit, spent: { ...budget.spent, debitAmount: usd(61) } },
      ],
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
