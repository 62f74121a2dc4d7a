import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type GrantedItem, permits } from '../../src/core/access.js'
import { payingItems } from '../../src/core/budget/paying-items.js'
import type { Budget } from '../../src/core/budget/record.js'
import type { AmendGrant, ConditionChanges } from '../../src/core/grant/amendment.js'
import type { Grant } from '../../src/core/grant/record.js'
import { grantStatus } from '../../src/core/grant/status.js'
import type { Instant } from '../../src/core/instant.js'
import type { Spending } from '../../src/core/limits.js'
import { createOutgoingPayment } from '../../src/core/outgoing-payment/create.js'
import { ownerLimits } from '../../src/core/spending-limits.js'
import { startOfTests } from '../support/clock.js'
import { alice, bob, conditionChanges, grantLife, labelled, savings } from '../support/grants.js'
import { runs } from '../support/runs.js'
import {
  budgetPolicy,
  creation,
  dollars,
  euros,
  paymentPolicy,
  receiver,
} from '../support/spending-life.js'

const namespace = 'namespac'
const windows = 'R/2026-11-21T00:00:00Z/P1D'
const policy = { ...paymentPolicy, ...budgetPolicy }

/** Decides a payment under a grant as the service does. Returns the item and budget that count it. */
function pay(grant: Grant, budgets: ReadonlyMap<string, Budget>, spending: Spending, now: Instant) {
  const { granted = [], conditions } = grant
  const candidates = payingItems(granted, { namespace, grantId: grant.id }, now)
    .filter(({ item }) => permits([item], 'outgoing-payment', 'create', alice))
    .map(({ item, open }) => {
      const budget = open && budgets.get(open.budgetId)
      return budget === undefined ? { item } : { item, budget }
    })
  const limits = ownerLimits(conditions?.limits, { namespace, grantId: grant.id }, now).map(
    (limit) => {
      const budget = limit.open && budgets.get(limit.open.budgetId)
      return budget === undefined ? limit : { ...limit, budget }
    },
  )
  const more = { ...spending, walletAddress: alice, grantId: grant.id, candidates, limits }
  const command = creation({ ...more, ...(conditions && { conditions }) })
  const decision = createOutgoingPayment(command, now, policy)
  if (!decision.ok) return { ok: false, refusal: decision.refusal } as const
  const item = granted.find(({ itemId }) => itemId === decision.record.itemId)
  const { budget, limitBudgets } = decision
  return { ok: true, item, budget, limitBudgets } as const
}

const spending = fc.record({
  value: fc.integer({ min: 1, max: 60 }),
  in: fc.constantFrom(dollars, dollars, dollars, euros),
  to: fc.constantFrom(alice, bob, undefined),
})

interface Paid {
  readonly value: number
  readonly in: typeof dollars
  readonly to: string | undefined
}

const spendingOf = ({ value, in: of, to }: Paid): Spending => ({
  receiver,
  ...(to && { receiverWalletAddress: to }),
  debitAmount: of(value),
  receiveAmount: dollars(value),
})

/** What an owner makes of one item, or a faulty page does. */
const itemChange = fc.constantFrom<(item: GrantedItem) => readonly object[]>(
  (item) => [item],
  (item) => [item],
  () => [],
  (item) => [{ ...item, actions: ['read'] }],
  (item) => [{ ...item, limits: { ...item.limits, debitAmount: dollars(50) } }],
  (item) => [{ ...item, limits: { ...item.limits, debitAmount: dollars(20) } }],
  (item) => [{ ...item, limits: { ...item.limits, debitAmount: dollars(1000) } }],
  (item) => [{ ...item, limits: { ...item.limits, interval: windows } }],
  (item) => [{ ...item, limits: { ...item.limits, interval: 'R/2026-11-21T00:00:00Z/PT1H' } }],
  (item) => [{ ...item, itemId: item.itemId === '1' ? '2' : '1' }],
)

const limitChanges = fc.constantFrom(
  [{ payments: 6 }],
  [{ payments: 5 }],
  [{ payments: 5 }, { interval: windows, debitAmount: dollars(70) }],
)

const step = fc.oneof(
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('amend' as const),
      items: fc.constant([0, 1, 2].map(() => (item: GrantedItem) => [item])),
      conditions: limitChanges.map((limits) => ({ limits })),
    }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('pay' as const), spending }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('amend' as const),
      items: fc.array(itemChange, { minLength: 3, maxLength: 3 }),
      conditions: conditionChanges,
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('pass' as const),
      ms: fc.constantFrom(1, 59_999, 3_600_000, 86_400_000),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('rotate' as const, 'poll' as const) }) },
)

const item = { type: 'outgoing-payment', actions: ['create', 'read'], identifier: alice } as const
const limitsOfItem = fc.constantFrom(
  { debitAmount: dollars(100) },
  { debitAmount: dollars(40) },
  { debitAmount: dollars(100), interval: windows },
  { debitAmount: dollars(100), interval: 'R2/2026-11-21T00:00:00Z/P1D' },
  {},
)

/** Every payment that anybody could want to make. */
const probes = [1, 10, 20, 21, 50, 51, 100, 101].flatMap((value) =>
  [alice, bob, undefined].flatMap((to) =>
    [dollars, euros].map((of) => spendingOf({ value, in: of, to })),
  ),
)

describe('whatever an owner amends and a client pays, in any order', () => {
  const histories = fc.record({
    limits: fc.array(limitsOfItem, { minLength: 1, maxLength: 3 }),
    labels: fc.constantFrom<readonly string[]>(['a'], ['a', 'b']),
    steps: fc.array(step, { maxLength: 25, size: '+1' }),
  })

  test('nothing is permitted that was not before, no budget moves, and every limit in force holds', () => {
    const met = new Set<string>()
    fc.assert(
      fc.property(histories, ({ limits, labels, steps }) => {
        const asked = limits.map((each) => ({ ...item, limits: each }))
        const life = grantLife({ kind: 'poll', access: labelled(asked, labels) })
        life.approve()
        const budgets = new Map<string, Budget>()
        for (const each of steps) {
          if (each.do === 'pass') life.advance(each.ms)
          if (each.do === 'poll') life.poll()
          if (each.do === 'rotate' && life.grant().issuedAt !== undefined) {
            life.rotate(life.token(life.grant().tokens?.[0]?.label))
          }
          const grant = life.grant()
          const { granted = [], conditions = {} } = grant
          if (each.do === 'amend') {
            const access = granted.flatMap((one, index) => each.items[index]?.(one) ?? [])
            const changes = { access, conditions: each.conditions } as Pick<AmendGrant, 'access'>
            const decision = life.amend(changes)
            met.add(`amend: ${decision.ok ? decision.outcome : decision.refusal}`)
            expect(JSON.parse(JSON.stringify(life.grant()))).toStrictEqual(life.grant())
            if (grantStatus(grant, life.now()) === 'approved') {
              expect(grantStatus(life.grant(), life.now())).toBe('approved')
            }
            expect(life.amend(changes).outcome).toBe(decision.ok ? 'unchanged' : 'refused')
            const { pausedUntil: _until, ...lasting } = conditions
            for (const probe of probes) {
              if (!pay(life.grant(), budgets, probe, life.now()).ok) continue
              expect(pay({ ...grant, conditions: lasting }, budgets, probe, life.now()).ok).toBe(
                true,
              )
            }
          }
          if (each.do !== 'pay') continue
          const wanted = spendingOf(each.spending)
          const paid = pay(grant, budgets, wanted, life.now())
          met.add(`pay: ${paid.ok ? 'ok' : paid.refusal}`)
          if (!paid.ok) continue
          const { paymentMax, receivers, pausedUntil = 0 } = conditions
          const { value, assetCode } = wanted.debitAmount
          expect(life.now()).toBeGreaterThanOrEqual(pausedUntil)
          expect(BigInt(value) <= BigInt(paymentMax?.value ?? value)).toBe(true)
          expect(assetCode).toBe(paymentMax?.assetCode ?? assetCode)
          if (receivers) expect(receivers).toContain(wanted.receiverWalletAddress)
          // The budget that counts a payment does not depend on what was amended.
          const window = Math.floor((life.now() - startOfDay) / 86_400_000) * 86_400_000
          const at = paid.item?.limits?.interval ? String(startOfDay + window) : 'life'
          expect(paid.budget.id).toBe(`${namespace}${grant.id}.${paid.item?.itemId}.${at}`)
          const limit = paid.item?.limits?.debitAmount
          const total = paid.budget.spent.debitAmount
          if (limit) expect(BigInt(total?.value ?? '-1') <= BigInt(limit.value)).toBe(true)
          const before = budgets.get(paid.budget.id)?.spent.debitAmount
          if (before && total) {
            expect(BigInt(total.value)).toBe(BigInt(before.value) + BigInt(value))
          }
          for (const budget of [paid.budget, ...paid.limitBudgets]) budgets.set(budget.id, budget)
        }
      }),
      { numRuns: runs(1000, 300) },
    )
    expect([...met].sort()).toEqual([
      'amend: access_widened',
      'amend: changed',
      'amend: conditions_widened',
      'amend: grant_over',
      'amend: limits_contradicted',
      'amend: nothing_granted',
      'amend: unchanged',
      'pay: conditions_exceeded',
      'pay: grant_paused',
      'pay: limits_exceeded',
      'pay: ok',
    ])
  })
})

const startOfDay = Date.parse('2026-11-21T00:00:00Z')

describe('an amendment', () => {
  const limited = { ...item, limits: { debitAmount: dollars(100) } }
  const approved = (access = labelled([limited, limited], ['a', 'b'])) => {
    const life = grantLife({ kind: 'poll', access })
    life.approve()
    life.poll()
    return life
  }

  test('below what has been spent leaves nothing to spend', () => {
    const life = approved([limited])
    const [granted] = life.grant().granted ?? []
    const budgets = new Map<string, Budget>()
    const paid = pay(
      life.grant(),
      budgets,
      spendingOf({ value: 60, in: dollars, to: bob }),
      startOfTests,
    )
    if (!paid.ok || granted === undefined) throw new Error('the first payment is within the limit')
    budgets.set(paid.budget.id, paid.budget)
    const access = [{ ...granted, limits: { debitAmount: dollars(50) } }]
    expect(life.amend({ access })).toMatchObject({ outcome: 'changed' })
    const more = spendingOf({ value: 1, in: dollars, to: bob })
    expect(pay(life.grant(), budgets, more, startOfTests)).toMatchObject({
      refusal: 'limits_exceeded',
    })
  })

  test('revokes a token with its last item, and is no way to revoke the last token', () => {
    const life = approved()
    const [first, second] = life.grant().granted ?? []
    if (first === undefined || second === undefined) throw new Error('two items are granted')
    expect(life.amend({ access: [second] })).toMatchObject({ outcome: 'changed' })
    expect(life.rotate(life.token('a'))).toMatchObject({ refusal: 'token_revoked' })
    expect(life.rotate(life.token('b'))).toMatchObject({ outcome: 'changed' })
    expect(life.amend({ access: [] })).toMatchObject({ refusal: 'nothing_granted' })
  })

  test('needs an approved grant, of the owner who is named', () => {
    const pending = grantLife()
    expect(pending.amend({})).toMatchObject({ refusal: 'grant_pending' })
    const life = approved()
    expect(life.amend({ resourceOwner: 'mallory' })).toMatchObject({ refusal: 'not_the_owner' })
    expect(life.amend({ resourceOwner: 'alice' })).toMatchObject({ outcome: 'unchanged' })
    life.revoke()
    expect(life.amend({})).toMatchObject({ refusal: 'grant_over' })
  })

  test('does not let a grant that ends outlive its windows as a grant of quotes', () => {
    const interval = 'R1/2026-11-21T00:00:00Z/P1D'
    const quote = { type: 'quote', actions: ['create'] } as const
    const life = approved([{ ...item, limits: { ...limited.limits, interval } }, quote])
    const quotes = life.grant().granted?.filter(({ type }) => type === 'quote') ?? []
    expect(life.amend({ access: quotes })).toMatchObject({ refusal: 'nothing_granted' })
  })

  test('is no way to end a grant by leaving only items whose windows are over', () => {
    const interval = 'R1/2026-11-21T00:00:00Z/P1D'
    const passing = { ...item, limits: { ...limited.limits, interval } }
    const life = approved([passing, limited])
    const [first, second] = life.grant().granted ?? []
    if (first === undefined || second === undefined) throw new Error('two items are granted')
    life.advance(86_400_000)
    expect(life.amend({ access: [first] })).toMatchObject({ refusal: 'nothing_granted' })
    expect(life.amend({ access: [second] })).toMatchObject({ outcome: 'changed' })
  })

  test('ends a pause, and without one of its own an approval sets conditions', () => {
    const life = grantLife({ kind: 'poll', access: [limited] })
    life.approve({ conditions: { pausedUntil: startOfTests + 1, paymentMax: dollars(5) } })
    const five = spendingOf({ value: 5, in: dollars, to: bob })
    expect(pay(life.grant(), new Map(), five, startOfTests)).toMatchObject({
      refusal: 'grant_paused',
    })
    expect(pay(life.grant(), new Map(), five, Number.NaN)).toMatchObject({
      refusal: 'grant_paused',
    })
    expect(pay(life.grant(), new Map(), five, startOfTests + 1)).toMatchObject({ ok: true })
    life.amend({ conditions: { pausedUntil: null } })
    expect(life.grant().conditions).toEqual({ paymentMax: dollars(5) })
    const other = grantLife({ kind: 'poll', access: [limited] })
    expect(other.approve({ conditions: { paymentMax: euros(5) } })).toMatchObject({
      refusal: 'limits_contradicted',
    })
    life.approve({ conditions: { paymentMax: dollars(5) } })
    expect(life.approve({ conditions: { paymentMax: dollars(6) } })).toMatchObject({
      refusal: 'decided_otherwise',
    })
  })

  test('keeps the items, their order and what the client may repeat', () => {
    const life = approved()
    const [first, second] = life.grant().granted ?? []
    if (first === undefined || second === undefined) throw new Error('two items are granted')
    const lower = { debitAmount: dollars(50) }
    const access = [
      { ...second, limits: lower },
      { ...first, limits: lower },
    ]
    expect(life.amend({ access })).toMatchObject({ outcome: 'changed' })
    expect(life.grant().granted).toEqual([
      { ...first, limits: lower },
      { ...second, limits: lower },
    ])
    expect(life.grant()).not.toHaveProperty('conditions')
    expect(life.poll()).toMatchObject({ outcome: 'unchanged' })
  })

  test('does not move an item to another label or wallet address, and does not repeat one', () => {
    const quote = { type: 'quote', actions: ['create'] } as const
    const life = approved(labelled([limited, quote], ['a', 'b']))
    const [first, second] = life.grant().granted ?? []
    if (first === undefined || second === undefined) throw new Error('two items are granted')
    for (const access of [
      [{ ...first, label: 'b' }, second],
      [first, { ...second, label: 'a' }],
      [first, { ...second, identifier: alice }],
      [first, first],
    ]) {
      expect(life.amend({ access })).toMatchObject({ refusal: 'access_widened' })
    }
    expect(life.amend({ access: [first, second] })).toMatchObject({ outcome: 'unchanged' })
  })

  test('leaves a token that the client revoked as it is, and never only such tokens', () => {
    const life = approved()
    const [first, second] = life.grant().granted ?? []
    if (first === undefined || second === undefined) throw new Error('two items are granted')
    life.revokeToken(life.token('a'))
    life.advance(1)
    expect(life.amend({ access: [first] })).toMatchObject({ refusal: 'nothing_granted' })
    expect(life.amend({ access: [second] })).toMatchObject({ outcome: 'changed' })
    expect(life.grant().tokens?.[0]).toMatchObject({ revokedAt: startOfTests })
  })

  test('cannot take everything from a grant whose tokens have not been issued', () => {
    const life = grantLife({ kind: 'poll', access: [{ type: 'quote', actions: ['create'] }] })
    life.approve()
    expect(life.amend({ access: [] })).toMatchObject({ refusal: 'nothing_granted' })
  })

  test('of a grant that needed no consent names no owner', () => {
    const life = grantLife({ kind: 'at once' })
    expect(life.amend({ resourceOwner: 'alice' })).toMatchObject({ refusal: 'not_the_owner' })
    expect(life.amend({})).toMatchObject({ outcome: 'unchanged' })
  })

  test('narrows the receivers, and replaces or removes the conditions of the host', () => {
    const life = approved([limited])
    const amended = (conditions: ConditionChanges) => {
      expect(life.amend({ conditions })).toMatchObject({ outcome: 'changed' })
      return life.grant().conditions
    }
    expect(amended({ receivers: [alice, bob] })).toEqual({ receivers: [alice, bob] })
    expect(life.amend({ conditions: { receivers: [bob, savings] } })).toMatchObject({
      refusal: 'conditions_widened',
    })
    expect(amended({ data: { note: 1 } })).toEqual({ receivers: [alice, bob], data: { note: 1 } })
    expect(amended({ receivers: [bob] })).toEqual({ receivers: [bob], data: { note: 1 } })
    expect(amended({ data: { note: 2 } })).toEqual({ receivers: [bob], data: { note: 2 } })
    expect(amended({ data: null })).toStrictEqual({ receivers: [bob] })
  })

  const daily = (value: number) => ({ interval: windows, debitAmount: dollars(value) })

  test.each([
    ['sets one', undefined, [{ payments: 3 }], [{ payments: 3 }]],
    ['lowers a count', [{ payments: 3 }], [{ payments: 2 }], [{ payments: 2 }]],
    ['lowers an amount', [daily(50)], [daily(20)], [daily(20)]],
    [
      'adds one, and keeps the order',
      [daily(50)],
      [{ payments: 3 }, daily(50)],
      [daily(50), { payments: 3 }],
    ],
    ['adds a count', [daily(50)], [{ ...daily(50), payments: 3 }], [{ ...daily(50), payments: 3 }]],
    ['widens a count', [{ payments: 3 }], [{ payments: 4 }], 'conditions_widened'],
    ['widens an amount', [daily(50)], [daily(51)], 'conditions_widened'],
    [
      'changes the asset',
      [daily(50)],
      [{ ...daily(0), debitAmount: euros(1) }],
      'conditions_widened',
    ],
    ['removes one', [daily(50), { payments: 3 }], [daily(50)], 'conditions_widened'],
    ['removes a count', [{ ...daily(50), payments: 3 }], [daily(50)], 'conditions_widened'],
    [
      'starts its windows later',
      [daily(50)],
      [{ ...daily(50), interval: 'R/2026-11-22T00:00:00Z/P1D' }],
      'conditions_widened',
    ],
    [
      'makes its windows longer',
      [daily(50)],
      [{ ...daily(50), interval: 'R/2026-11-21T00:00:00Z/P1W' }],
      'conditions_widened',
    ],
    [
      'is in another asset than the access',
      undefined,
      [{ debitAmount: euros(1) }],
      'limits_contradicted',
    ],
  ])('of limits %s', (_, before, after, outcome) => {
    const life = approved([limited])
    if (before) life.amend({ conditions: { limits: before } })
    const decision = life.amend({ conditions: { limits: after } })
    if (typeof outcome === 'string') {
      expect(decision).toMatchObject({ refusal: outcome })
      expect(life.grant().conditions?.limits).toEqual(before)
    } else {
      expect(decision).toMatchObject({ outcome: 'changed' })
      expect(life.grant().conditions?.limits).toStrictEqual(outcome)
    }
  })

  test('that says nothing of the limits leaves them as they are', () => {
    const life = approved([limited])
    life.amend({ conditions: { limits: [daily(50)] } })
    life.amend({ conditions: { receivers: [bob] } })
    expect(life.grant().conditions).toStrictEqual({ receivers: [bob], limits: [daily(50)] })
  })

  test('that ends the only condition leaves none', () => {
    const life = approved([limited])
    life.amend({ conditions: { pausedUntil: startOfTests + 60_000 } })
    expect(life.amend({ conditions: { pausedUntil: null } })).toMatchObject({ outcome: 'changed' })
    expect(life.grant()).not.toHaveProperty('conditions')
  })
})
