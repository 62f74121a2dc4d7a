import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Budget } from '../../../src/core/budget/record.js'
import { createOutgoingPayment } from '../../../src/core/outgoing-payment/create.js'
import { decideDoubt } from '../../../src/core/outgoing-payment/doubt.js'
import {
  asCreated,
  heldBy,
  type OutgoingPayment,
  releasedBudgets,
} from '../../../src/core/outgoing-payment/record.js'
import { decideOutgoingPayment } from '../../../src/core/outgoing-payment.js'
import { startOfTests } from '../../support/clock.js'
import { deepFreeze } from '../../support/frozen.js'
import { runs, some } from '../../support/runs.js'
import {
  authorities,
  budgetPolicy,
  creation,
  dollars,
  euros,
  item,
  outgoingLife,
  paymentPolicy,
} from '../../support/spending-life.js'
import { underGrant } from '../../support/under-grant.js'

const start = startOfTests
const refusedWith = (refusal: string) => ({ ok: false, outcome: 'refused', refusal })
const changed = { ok: true, outcome: 'changed' }
const unchanged = { ok: true, outcome: 'unchanged' }
const doubt = (value: number) => ({ amount: dollars(value), since: start, reason: 'peer 1' })

describe.each(authorities)('a payment that the %s requests:', (by) => {
  /** A payment of 100 dollars to 50 euros that was begun. */
  function begun() {
    const life = outgoingLife({}, by)
    life.begin()
    return life
  }

  type Life = ReturnType<typeof begun>

  /** Reports totals at the price, and a doubt. */
  function report(life: Life, sent: number, inDoubt?: number, final = false) {
    const totals = { sentAmount: dollars(sent), deliveredAmount: euros(Math.ceil(sent / 2)) }
    const command = { type: 'report-sent', commandId: life.commandId(), ...totals, final } as const
    const more = inDoubt === undefined ? {} : { inDoubt: doubt(inDoubt) }
    return life.decide<'report-sent'>({ ...command, ...more })
  }

  function fail(life: Life, sent: number, inDoubt?: number) {
    const totals = { sentAmount: dollars(sent), deliveredAmount: euros(Math.ceil(sent / 2)) }
    const more = inDoubt === undefined ? {} : { inDoubt: doubt(inDoubt) }
    return life.decide<'fail'>({ type: 'fail', commandId: life.commandId(), ...totals, ...more })
  }

  function decide(payment: OutgoingPayment, refunded: number, commandId = 'decision') {
    return decideDoubt(
      payment,
      { commandId, refunded: dollars(refunded) },
      start + 1,
      paymentPolicy,
    )
  }

  describe('the doubt of a payment that runs', () => {
    test('is not a part of what was sent, reserves nothing more, and has no event of its own', () => {
      const life = begun()
      report(life, 15)
      const events = life.events.length
      expect(report(life, 15, 10)).toMatchObject(changed)
      expect(life.payment()).toMatchObject({
        state: 'begun',
        sent: '15',
        inDoubt: { amount: '10', since: start, reason: 'peer 1' },
      })
      expect(life.events).toHaveLength(events)
      expect(heldBy(life.payment()).debitAmount).toBe(100n)
      expect(report(life, 15, 10)).toMatchObject(unchanged)
      expect(report(life, 25)).toMatchObject(changed)
      expect(life.payment()).not.toHaveProperty('inDoubt')
      expect(life.events).toHaveLength(events + 1)
    })

    test.each<readonly [what: string, sent: number, inDoubt: number, outcome: object]>([
      ['all that is left', 15, 85, changed],
      ['more than is left', 15, 86, refusedWith('totals_exceeded')],
      ['zero', 15, 0, refusedWith('amount_invalid')],
    ])('can be %s', (_, sent, inDoubt, outcome) => {
      expect(report(begun(), sent, inDoubt)).toMatchObject(outcome)
    })

    test('must be in the asset of the debit amount', () => {
      const life = begun()
      const totals = { sentAmount: dollars(0), deliveredAmount: euros(0) }
      const inDoubt = { ...doubt(1), amount: euros(1) }
      const command = { type: 'report-sent', commandId: 'report', ...totals, inDoubt } as const
      expect(life.decide<'report-sent'>(command)).toMatchObject(refusedWith('amount_invalid'))
    })

    test('is decided by reports', () => {
      const life = begun()
      report(life, 15, 10)
      expect(decide(life.payment(), 10)).toMatchObject(refusedWith('payment_not_ended'))
    })
  })

  describe('the doubt of a payment that has ended', () => {
    test('is a part of what was sent, stays charged, and keeps the payment', () => {
      const life = begun()
      report(life, 15, 10)
      expect(fail(life, 25, 10)).toMatchObject(changed)
      const payment = life.payment()
      expect(payment).toMatchObject({ state: 'failed', sent: '25', inDoubt: { amount: '10' } })
      expect(payment).not.toHaveProperty('dueAt')
      expect(payment).not.toHaveProperty('retainUntil')
      expect(life.budget().spent.debitAmount).toEqual(dollars(25))
    })

    test.each<readonly [what: string, sent: number, inDoubt: number, outcome: object]>([
      ['all that was sent', 25, 25, changed],
      ['more than was sent', 25, 26, refusedWith('totals_exceeded')],
      ['a part of a payment that was sent in full', 100, 10, changed],
    ])('can be %s', (_, sent, inDoubt, outcome) => {
      expect(fail(begun(), sent, inDoubt)).toMatchObject(outcome)
      expect(report(begun(), sent, inDoubt, true)).toMatchObject(outcome)
    })

    test('lets the report be repeated, and not with another doubt', () => {
      for (const end of [
        fail,
        (...[life, sent, more]: Parameters<typeof fail>) => report(life, sent, more, true),
      ]) {
        const life = begun()
        end(life, 25, 10)
        expect(end(life, 25, 10)).toMatchObject(unchanged)
        expect(end(life, 25, 9)).toMatchObject(refusedWith('payment_over'))
        expect(end(life, 25)).toMatchObject(refusedWith('payment_over'))
      }
    })

    test('is not in the payment that a repeat of its request gets', () => {
      const life = begun()
      const first = life.payment()
      fail(life, 25, 10)
      expect(asCreated(life.payment())).not.toHaveProperty('inDoubt')
      const decided = decide(life.payment(), 10)
      if (decided.outcome !== 'changed') throw new Error(decided.outcome)
      const { state: _state, version: _version, commandId: _commandId, ...created } = first
      expect(asCreated(decided.record)).toMatchObject({ ...created, updatedAt: start })
      expect(asCreated(decided.record)).not.toHaveProperty('decided')
    })
  })

  describe('deciding a doubt', () => {
    function ended() {
      const life = begun()
      fail(life, 25, 10)
      return life
    }

    test.each([
      ['nothing arrived', 10, '15', '8', '5'],
      ['a part arrived', 4, '21', '11', '2'],
      ['all of it arrived', 0, '25', '13', '0'],
    ])('%s: the payment has sent as much less, and is kept from then on', (_, back, ...totals) => {
      const [sent, delivered, undelivered] = totals
      const decision = decide(ended().payment(), back)
      const retainUntil = start + 1 + paymentPolicy.retentionMs
      expect(decision).toMatchObject({
        ...changed,
        events: [],
        record: {
          state: 'failed',
          sent,
          delivered,
          decided: { amount: '10', refunded: `${back}`, undelivered },
          dueAt: retainUntil,
          retainUntil,
          updatedAt: start + 1,
        },
      })
      expect(decision.ok && decision.record).not.toHaveProperty('inDoubt')
    })

    test('leaves delivered what the price says, rounded up, or what the host knows', () => {
      const payment = ended().payment()
      expect(decide(payment, 10)).toMatchObject({ record: { sent: '15', delivered: '8' } })
      const command = { commandId: 'decision', refunded: dollars(10), deliveredAmount: euros(9) }
      const exact = decideDoubt(payment, command, start, paymentPolicy)
      expect(exact).toMatchObject({ record: { delivered: '9', decided: { undelivered: '4' } } })
      for (const [deliveredAmount, refusal] of [
        [euros(14), 'totals_exceeded'],
        [dollars(9), 'amount_invalid'],
      ] as const) {
        const wrong = decideDoubt(payment, { ...command, deliveredAmount }, start, paymentPolicy)
        expect(wrong).toMatchObject(refusedWith(refusal))
      }
    })

    test.each([
      ['nothing', 0, '20'],
      ['a part', 4, '18'],
      ['all in doubt', 10, '15'],
    ])('takes back no more than the price of what was refunded: %s', (_, back, delivered) => {
      const life = begun()
      const totals = { sentAmount: dollars(25), deliveredAmount: euros(20), inDoubt: doubt(10) }
      life.decide<'fail'>({ type: 'fail', commandId: life.commandId(), ...totals })
      expect(decide(life.payment(), back)).toMatchObject({ record: { delivered } })
    })

    test('happens once: a repeat changes nothing, and another decision is refused', () => {
      const decided = decide(ended().payment(), 4)
      if (decided.outcome !== 'changed') throw new Error(decided.outcome)
      for (const commandId of ['decision', 'another']) {
        expect(decide(decided.record, 4, commandId)).toEqual({
          ...unchanged,
          record: decided.record,
        })
      }
      expect(decide(decided.record, 5, 'another')).toMatchObject(refusedWith('doubt_decided'))
      const life = begun()
      fail(life, 25)
      expect(decide(life.payment(), 0)).toMatchObject(refusedWith('doubt_decided'))
    })

    test.each([
      ['of a driver is refused to the host', 'attempts', undefined],
      ['of the host is refused to a driver', undefined, 'attempts'],
    ] as const)('%s', (_, owner, decidedBy) => {
      const life = begun()
      const inDoubt = { ...doubt(10), ...(owner && { decidedBy: owner }) }
      const totals = { sentAmount: dollars(25), inDoubt }
      life.decide<'fail'>({ type: 'fail', commandId: life.commandId(), ...totals })
      const command = {
        commandId: 'decision',
        refunded: dollars(10),
        ...(decidedBy && { decidedBy }),
      }
      const decision = decideDoubt(life.payment(), command, start, paymentPolicy)
      expect(decision).toMatchObject(refusedWith('decided_by_attempts'))
    })

    test.each([
      ['more than is in doubt', dollars(11), 'totals_exceeded'],
      ['another asset', euros(1), 'amount_invalid'],
      ['text', dollars('abc'), 'amount_invalid'],
    ])('refuses a refund of %s', (_, refunded, refusal) => {
      const command = { commandId: 'decision', refunded }
      const decision = decideDoubt(ended().payment(), command, start, paymentPolicy)
      expect(decision).toMatchObject(refusedWith(refusal))
    })

    test('leaves a late repeat of the report harmless', () => {
      const life = ended()
      const decided = decide(life.payment(), 10)
      if (decided.outcome !== 'changed') throw new Error(decided.outcome)
      const totals = { sentAmount: dollars(25), deliveredAmount: euros(13) }
      const again = (more: object) => {
        const command = { type: 'fail', commandId: 'again', ...totals, ...more } as const
        return decideOutgoingPayment<'fail'>(decided.record, command, start, paymentPolicy)
      }
      expect(again({ inDoubt: doubt(10) })).toMatchObject(unchanged)
      expect(again({})).toMatchObject(refusedWith('payment_over'))
    })
  })
})

const hour = 3_600_000
const hourly = 'R/2026-01-01T00:00:00Z/PT1H'
const limit = 200n

/** The decisions, of which a planted mistake replaces some. */
const decisions = { releasedBudgets, decideDoubt, decideOutgoingPayment }

type Move =
  | { readonly do: 'pass'; readonly ms: number }
  | { readonly do: 'pay'; readonly value: number }
  | {
      readonly do: 'report' | 'end'
      readonly of: number
      readonly sent: number
      readonly inDoubt: number
    }
  | { readonly do: 'decide'; readonly of: number; readonly refunded: number }

const percent = fc.constantFrom(0, 1, 25, 50, 99, 100)
const of = fc.nat({ max: 5 })
const move: fc.Arbitrary<Move> = fc.oneof(
  fc.record({ do: fc.constant('pass' as const), ms: fc.constantFrom(1, hour / 2, hour) }),
  fc.record({ do: fc.constant('pay' as const), value: fc.integer({ min: 1, max: 90 }) }),
  fc.record({
    do: fc.constantFrom('report' as const, 'end', 'end'),
    of,
    sent: percent,
    inDoubt: percent,
  }),
  fc.record({ do: fc.constant('decide' as const), of, refunded: percent }),
)

/** A payment as a bank would account for it, apart from the library. */
interface Entry {
  payment: OutgoingPayment
  readonly window: number
  debited: bigint
  refunded: bigint
  hasEnded: boolean
}

/**
 * Carries out moves, and after each of them compares every window with the payments that were created in it: their
 * sums of what is reserved, or debited minus refunded.
 */
function checkWindows(moves: readonly Move[], used: typeof decisions, met: Set<string>): void {
  const budgets = new Map<string, Budget>()
  const entries: Entry[] = []
  let now = Date.UTC(2026, 10, 22, 10)
  let commands = 0
  const windowAt = (at: number) => Math.floor(at / hour) * hour
  const share = (value: bigint, part: number) => (value * BigInt(part)) / 100n

  function keep(entry: Entry, next: OutgoingPayment): void {
    const released = used.releasedBudgets(entry.payment, next, (id) => budgets.get(id))
    for (const budget of released) budgets.set(budget.id, deepFreeze(budget))
    entry.payment = deepFreeze(next)
  }

  function pay(value: number): void {
    const commandId = `command-${++commands}`
    const limited = item({ debitAmount: dollars(limit), interval: hourly })
    const budget = budgets.get(`namespacnamespac-grant.1.${windowAt(now)}`)
    const command = creation({
      commandId,
      id: `namespac-payment-${commands}`,
      debitAmount: dollars(value),
      receiveAmount: euros(value),
      candidates: [{ item: limited, ...(budget && { budget }) }],
    })
    const policy = { ...paymentPolicy, ...budgetPolicy }
    const made = createOutgoingPayment(command, now, policy)
    if (!made.ok) return
    budgets.set(made.budget.id, made.budget)
    const entry = { window: windowAt(now), debited: 0n, refunded: 0n, hasEnded: false }
    const begun = decideOutgoingPayment<'begin'>(
      made.record,
      { type: 'begin', commandId: `${commandId}-begin` },
      now,
      paymentPolicy,
    )
    if (!begun.ok) throw new Error(begun.reason)
    entries.push({ ...entry, payment: begun.record })
  }

  function settle(entry: Entry, step: Extract<Move, { readonly do: 'report' | 'end' }>): void {
    const { payment } = entry
    const value = BigInt(payment.debitAmount.value)
    const sent = share(value, step.sent)
    const ends = step.do === 'end'
    const part = share(ends ? sent : value - sent, step.inDoubt)
    const command = {
      type: 'report-sent',
      commandId: `command-${++commands}`,
      sentAmount: dollars(sent),
      deliveredAmount: euros(sent),
      ...(ends && { final: true }),
      ...(part > 0n && {
        inDoubt: { amount: dollars(part), since: now, reason: 'peer 1' },
      }),
    } as const
    const decision = used.decideOutgoingPayment<'report-sent'>(payment, command, now, paymentPolicy)
    if (decision.outcome !== 'changed') return
    entry.debited = sent
    entry.hasEnded = decision.record.state !== 'begun'
    if (part > 0n) met.add(entry.hasEnded ? 'ended in doubt' : 'in doubt')
    keep(entry, decision.record)
  }

  function decide(entry: Entry, part: number): void {
    const { payment } = entry
    const most = BigInt(payment.inDoubt?.amount ?? payment.decided?.amount ?? 0)
    const refunded = dollars(share(most, part))
    const command = { commandId: `command-${++commands}`, refunded }
    const decision = used.decideDoubt(payment, command, now, paymentPolicy)
    if (decision.outcome !== 'changed') return
    entry.refunded += BigInt(refunded.value)
    if (refunded.value !== '0') {
      met.add(windowAt(now) > entry.window ? 'refunded after its window' : 'refunded in its window')
    }
    keep(entry, decision.record)
  }

  for (const step of moves) {
    const entry = 'of' in step ? entries[step.of] : undefined
    if (step.do === 'pass') now += step.ms
    else if (step.do === 'pay') pay(step.value)
    else if (entry !== undefined && step.do === 'decide') decide(entry, step.refunded)
    else if (entry !== undefined && step.do !== 'decide') settle(entry, step)
    for (const budget of budgets.values()) {
      const counted = entries
        .filter(({ window }) => window === budget.windowStart)
        .map(({ payment, debited, refunded, hasEnded }) =>
          hasEnded ? debited - refunded : BigInt(payment.debitAmount.value),
        )
      const sum = counted.reduce((total, each) => total + each, 0n)
      expect(budget.spent.debitAmount).toEqual(dollars(sum))
      expect(budget.spent.receiveAmount).toEqual(euros(sum))
      expect(sum).toBeLessThanOrEqual(limit)
    }
  }
}

describe('windows with doubt', () => {
  const moves = fc.array(move, { maxLength: 40, size: '+1' })

  test('each counts what its payments reserve, or have debited minus refunded, whenever it is decided', () => {
    const met = new Set<string>()
    fc.assert(
      fc.property(moves, (steps) => checkWindows(steps, decisions, met)),
      { numRuns: runs(2_000, 200) },
    )
    expect([...met].toSorted()).toEqual([
      'ended in doubt',
      'in doubt',
      'refunded after its window',
      'refunded in its window',
    ])
  })

  const mistakes: readonly (readonly [string, Partial<typeof decisions>])[] = [
    [
      'a refund counts in no window',
      {
        releasedBudgets: (before, after, budgetOf) =>
          after.decided === undefined ? releasedBudgets(before, after, budgetOf) : [],
      },
    ],
    [
      'a refund counts in the window of its decision',
      {
        releasedBudgets(before, after, budgetOf) {
          if (after.decided === undefined) return releasedBudgets(before, after, budgetOf)
          const open = `namespacnamespac-grant.1.${Math.floor(after.updatedAt / hour) * hour}`
          return releasedBudgets({ ...underGrant(before), budgetId: open }, after, budgetOf)
        },
      },
    ],
    [
      'the doubt is released when the payment ends',
      {
        releasedBudgets: (before, after, budgetOf) => {
          const sent = BigInt(after.sent) - BigInt(after.inDoubt?.amount ?? 0)
          const free = { ...after, sent: `${sent}`, delivered: `${sent}` }
          return releasedBudgets(before, after.state === 'begun' ? after : free, budgetOf)
        },
      },
    ],
    [
      'a repeated decision counts again',
      {
        decideDoubt(payment, command, now, policy) {
          const { decided, ...rest } = payment
          const again = decided && { amount: decided.amount, since: now, reason: 'peer 1' }
          return decideDoubt(again ? { ...rest, inDoubt: again } : payment, command, now, policy)
        },
      },
    ],
  ]

  test.each(some(mistakes))('the search finds: %s', (_, mistake) => {
    const found = fc.check(
      fc.property(moves, (steps) => checkWindows(steps, { ...decisions, ...mistake }, new Set())),
      { numRuns: 500 },
    )
    expect(found.failed).toBe(true)
  })
})
