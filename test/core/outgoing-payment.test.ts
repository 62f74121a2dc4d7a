import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createOutgoingPayment } from '../../src/core/outgoing-payment/create.js'
import {
  hasEnded,
  hasFailed,
  heldBy,
  type OutgoingPayment,
  sentAmount,
} from '../../src/core/outgoing-payment/record.js'
import { repeated } from '../../src/core/outgoing-payment/reservation.js'
import {
  decideOutgoingPayment,
  type OutgoingPaymentCommand,
  type OutgoingPaymentRefusals,
} from '../../src/core/outgoing-payment.js'
import { startOfTests } from '../support/clock.js'
import { deepFreeze } from '../support/frozen.js'
import { runs } from '../support/runs.js'
import {
  authorities,
  budgetPolicy,
  created,
  creation,
  dollars,
  euros,
  item,
  lives,
  most,
  type OutgoingLife,
  outgoingLife,
  paymentPolicy,
  type Turn,
} from '../support/spending-life.js'

const start = startOfTests
const end = start + paymentPolicy.holdMs
const policy = { ...paymentPolicy, ...budgetPolicy }
const refusedWith = (refusal: string) => ({ ok: false, outcome: 'refused', refusal })
const changed = { ok: true, outcome: 'changed' }
const unchanged = { ok: true, outcome: 'unchanged' }

describe('creating an outgoing payment', () => {
  test('reserves its whole debit amount in the budget and waits for the host to begin it', () => {
    const { record, budget } = created({ quoteId: 'namespac-payment', metadata: { order: '17' } })
    const { candidates: _, namespace: __, ...asked } = creation()
    expect(record).toEqual({
      ...asked,
      quoteId: 'namespac-payment',
      metadata: { order: '17' },
      version: 1,
      itemId: '1',
      budgetId: 'namespacnamespac-grant.1.life',
      sent: '0',
      delivered: '0',
      state: 'created',
      createdAt: start,
      updatedAt: start,
      holdUntil: end,
      dueAt: end,
    })
    const spent = { debitAmount: dollars(100), receiveAmount: euros(50) }
    expect(budget).toMatchObject({ id: record.budgetId, spent, commandId: record.commandId })
    expect(sentAmount(record)).toEqual(dollars(0))
    expect(heldBy(record)).toEqual({ debitAmount: 100n, receiveAmount: 50n, payments: 1 })
  })

  test.each([
    ['the receive amount is limited', item({ receiveAmount: euros(50) })],
    ['nothing is limited', item()],
  ])('reserves both amounts also when %s', (_, granted) => {
    const { record, budget } = created({ candidates: [{ item: granted }] })
    expect(budget.spent).toEqual({ debitAmount: dollars(100), receiveAmount: euros(50) })
    expect(record.budgetId).toBe(budget.id)
  })

  test('emits one event without the metadata and the request', () => {
    const { events } = created({ metadata: { secret: 'of the shop' } })
    expect(events).toEqual([
      {
        type: 'outgoing-payment.created',
        at: start,
        outgoingPaymentId: 'namespac-payment',
        walletAddress: 'https://wallet.example/alice',
        client: 'https://shop.example',
        grantId: 'namespac-grant',
        receiver: 'https://bank.example/incoming-payments/1',
        debitAmount: dollars(100),
        receiveAmount: euros(50),
        sentAmount: dollars(0),
        deliveredAmount: euros(0),
      },
    ])
  })

  test('is refused when no item can cover it, and changes nothing', () => {
    const candidates = [{ item: item({ debitAmount: dollars(99) }) }]
    expect(createOutgoingPayment(creation({ candidates }), start, policy)).toMatchObject(
      refusedWith('limits_exceeded'),
    )
  })

  test('is recognized as a repetition only from the same client with the same request', () => {
    const { record } = created()
    const { client, requestHash } = record
    expect(repeated(record, { client, requestHash })).toEqual({ ok: true, value: record })
    expect(repeated(record, { client, requestHash: 'other' })).toMatchObject({
      refusal: 'request_differs',
    })
    expect(repeated(record, { client: 'other', requestHash })).toBeUndefined()
    expect(repeated(undefined, { client, requestHash })).toBeUndefined()
  })
})

describe.each(authorities)('a payment that the %s requests:', (by) => {
  /** 100 dollars to 50 euros, limited by the debit amount unless stated otherwise. */
  function life(counted: 'debitAmount' | 'receiveAmount' = 'debitAmount') {
    const limits = counted === 'debitAmount' ? dollars(1000) : euros(1000)
    return outgoingLife({ candidates: [{ item: item({ [counted]: limits }) }] }, by)
  }

  function begun(counted?: Parameters<typeof life>[0]) {
    const one = life(counted)
    one.begin()
    return one
  }

  /** The debited and the reserved amount of the budget. */
  function spentOf(one: ReturnType<typeof life>) {
    return one.budget().spent.debitAmount?.value
  }

  describe('beginning', () => {
    test('claims the payment once, and from then on only the host can change it', () => {
      const one = life()
      expect(one.begin()).toMatchObject(changed)
      expect(one.payment()).toMatchObject({ state: 'begun', version: 2 })
      expect(one.payment()).not.toHaveProperty('dueAt')
      expect(one.begin()).toMatchObject(refusedWith('payment_begun'))
      one.set(end + 1)
      expect(one.lapse()).toMatchObject(refusedWith('payment_begun'))
      expect(one.cancel()).toMatchObject(refusedWith('payment_begun'))
      expect(hasFailed(one.payment(), one.now())).toBe(false)
      expect(spentOf(one)).toBe('100')
    })

    test.each([
      ['in the last millisecond of the hold', end - 1, changed],
      ['at the end of the hold', end, refusedWith('payment_lapsed')],
      ['long after the hold', end + 1e9, refusedWith('payment_lapsed')],
    ])('is possible until the end of the hold: %s', (_, at, outcome) => {
      const one = life()
      one.set(at)
      expect(one.begin()).toMatchObject(outcome)
    })

    test('is refused for an ended payment', () => {
      const one = begun()
      one.reportSent(dollars(100), euros(50))
      expect(one.begin()).toMatchObject(refusedWith('payment_over'))
    })
  })

  describe('settling', () => {
    test('requires a payment that has begun', () => {
      expect(life().reportSent(dollars(1), euros(1))).toMatchObject(
        refusedWith('payment_not_begun'),
      )
      expect(life().fail()).toMatchObject(refusedWith('payment_not_begun'))
    })

    test('adds up attempts and completes when everything is sent', () => {
      const one = begun()
      expect(one.reportSent(dollars(40), euros(20))).toMatchObject(changed)
      expect(one.payment()).toMatchObject({ state: 'begun', sent: '40', delivered: '20' })
      expect(spentOf(one)).toBe('100')
      expect(one.reportSent(dollars(100), euros(50))).toMatchObject(changed)
      expect(one.payment()).toMatchObject({
        state: 'completed',
        sent: '100',
        delivered: '50',
        endedAt: start,
        retainUntil: start + paymentPolicy.retentionMs,
        dueAt: start + paymentPolicy.retentionMs,
      })
      expect(one.events.map(({ type }) => type)).toEqual([
        'outgoing-payment.created',
        'outgoing-payment.begun',
        'outgoing-payment.sent',
        'outgoing-payment.completed',
      ])
      expect(one.events.at(-1)).toMatchObject({
        sentAmount: dollars(100),
        deliveredAmount: euros(50),
      })
    })

    test('completes when everything has arrived at a lower cost, and releases the rest', () => {
      const one = begun()
      one.reportSent(dollars(90), euros(50))
      expect(one.payment()).toMatchObject({ state: 'completed', sent: '90' })
      expect(spentOf(one)).toBe('90')
    })

    test('completes when everything is debited although less arrived, and releases the difference', () => {
      const one = begun('receiveAmount')
      one.reportSent(dollars(100), euros(45))
      expect(one.payment()).toMatchObject({ state: 'completed', delivered: '45' })
      expect(one.budget().spent).toEqual({ debitAmount: dollars(100), receiveAmount: euros(45) })
    })

    test('completes with less when the host reports a final amount, and releases the rest', () => {
      const one = begun()
      one.reportSent(dollars(40), euros(20))
      expect(one.reportSent(dollars(40), euros(20), true)).toMatchObject(changed)
      expect(one.payment()).toMatchObject({ state: 'completed', sent: '40' })
      expect(spentOf(one)).toBe('40')
    })

    test('may be reported again, whether or not it completed the payment', () => {
      const one = begun()
      one.reportSent(dollars(40), euros(20))
      expect(one.reportSent(dollars(40), euros(20))).toMatchObject(unchanged)
      one.reportSent(dollars(100), euros(50))
      expect(one.reportSent(dollars(100), euros(50))).toMatchObject(unchanged)
      expect(one.reportSent(dollars(100), euros(50), true)).toMatchObject(unchanged)
      expect(one.events).toHaveLength(4)
      expect(spentOf(one)).toBe('100')
    })

    test('counts a report in which only one of the totals rises', () => {
      const one = begun()
      one.reportSent(dollars(40), euros(20))
      expect(one.reportSent(dollars(41), euros(20))).toMatchObject(changed)
      expect(one.reportSent(dollars(41), euros(21))).toMatchObject(changed)
      expect(one.payment()).toMatchObject({ sent: '41', delivered: '21' })
    })

    test.each([
      ['sent', dollars(91), euros(45)],
      ['delivered', dollars(90), euros(46)],
    ])('refuses another total of what was %s after completion', (_, sent, delivered) => {
      const one = begun()
      one.reportSent(dollars(90), euros(45), true)
      expect(one.reportSent(sent, delivered)).toMatchObject(refusedWith('payment_over'))
      expect(one.payment()).toMatchObject({ sent: '90', delivered: '45' })
    })

    test.each([
      ['falls', dollars(39), euros(20), 'totals_receded'],
      ['has a lower delivered amount', dollars(40), euros(19), 'totals_receded'],
      ['sends more than the debit amount', dollars(101), euros(20), 'totals_exceeded'],
      ['delivers more than the receive amount', dollars(40), euros(51), 'totals_exceeded'],
      ['is in another asset', euros(40), euros(20), 'amount_invalid'],
      ['delivers another asset', dollars(40), dollars(20), 'amount_invalid'],
      ['has another scale', { ...dollars(40), assetScale: 3 }, euros(20), 'amount_invalid'],
      ['is not an amount', dollars(' 5 '), euros(20), 'amount_invalid'],
      ['is not a 64-bit amount', dollars(most + 1n), euros(20), 'amount_invalid'],
    ])('refuses a total that %s', (_, sent, delivered, refusal) => {
      const one = begun()
      one.reportSent(dollars(40), euros(20))
      expect(one.reportSent(sent, delivered, true)).toMatchObject(refusedWith(refusal))
      expect(one.fail({ sentAmount: sent, deliveredAmount: delivered })).toMatchObject(
        refusedWith(refusal),
      )
      expect(one.payment()).toMatchObject({ state: 'begun', sent: '40', delivered: '20' })
    })
  })

  describe('failing', () => {
    test('releases everything when nothing was sent', () => {
      const one = begun()
      expect(one.fail()).toMatchObject(changed)
      expect(one.payment()).toMatchObject({ state: 'failed', sent: '0', endedAt: start })
      expect(spentOf(one)).toBe('0')
      expect(hasFailed(one.payment(), start)).toBe(true)
    })

    test('keeps earlier and currently reported totals counted', () => {
      const one = begun()
      one.reportSent(dollars(40), euros(20))
      one.fail()
      expect(one.payment()).toMatchObject({ state: 'failed', sent: '40', delivered: '20' })
      expect(spentOf(one)).toBe('40')

      const other = begun('receiveAmount')
      other.reportSent(dollars(40), euros(20))
      other.fail({ deliveredAmount: euros(30) })
      expect(other.payment()).toMatchObject({ sent: '60', delivered: '30' })
      expect(other.budget().spent).toEqual({ debitAmount: dollars(60), receiveAmount: euros(30) })
    })

    test('counts a total that is not reported in proportion to the other, rounded up', () => {
      const amount = fc.bigInt({ min: 1n, max: most })
      fc.assert(
        fc.property(
          amount,
          amount,
          amount,
          amount,
          fc.boolean(),
          (debit, receive, first, last, sends) => {
            const whole = sends ? debit : receive
            const [early, total] = [first % whole, last % whole].toSorted((a, b) =>
              a < b ? -1 : 1,
            )
            const one = outgoingLife({
              debitAmount: dollars(debit),
              receiveAmount: euros(receive),
              candidates: [{ item: item() }],
            })
            one.begin()
            // Both totals are known up to here.
            const [sent, delivered] = sends
              ? [early ?? 0n, ((early ?? 0n) * receive) / debit]
              : [((early ?? 0n) * debit) / receive, early ?? 0n]
            one.reportSent(dollars(sent), euros(delivered))
            const before = one.payment()
            const told = sends
              ? { sentAmount: dollars(total ?? 0n) }
              : { deliveredAmount: euros(total ?? 0n) }
            if (one.fail(told).outcome !== 'changed') return
            const after = one.payment()
            const [a, b] = [BigInt(after.sent), BigInt(after.delivered)]
            // Neither amount is behind the other by a unit or more.
            if (sends) {
              expect(a).toBe(total)
              expect(b * debit).toBeGreaterThanOrEqual(a * receive)
            } else {
              expect(b).toBe(total)
              expect(a * receive).toBeGreaterThanOrEqual(b * debit)
            }
            expect(a >= BigInt(before.sent) && a <= debit).toBe(true)
            expect(b >= BigInt(before.delivered) && b <= receive).toBe(true)
            expect(one.budget().spent).toEqual({ debitAmount: dollars(a), receiveAmount: euros(b) })
            expect(one.fail(told)).toMatchObject(unchanged)
            expect(one.fail()).toMatchObject(unchanged)
          },
        ),
        { numRuns: runs(300) },
      )
    })

    test('keeps totals as they are if both or none are reported', () => {
      const both = begun()
      both.fail({ sentAmount: dollars(40), deliveredAmount: euros(0) })
      expect(both.payment()).toMatchObject({ sent: '40', delivered: '0' })
      const none = begun()
      none.reportSent(dollars(40), euros(0))
      none.fail()
      expect(none.payment()).toMatchObject({ sent: '40', delivered: '0' })
    })

    test('keeps an earlier total that is more than the proportion to the other', () => {
      const one = begun()
      one.reportSent(dollars(50), euros(40))
      one.fail({ sentAmount: dollars(60) })
      expect(one.payment()).toMatchObject({ state: 'failed', sent: '60', delivered: '40' })
    })

    test('counts nothing in proportion to an amount of zero', () => {
      const payment = { ...begun().payment(), receiveAmount: euros(0) }
      const report = { type: 'fail', commandId: 'zero', deliveredAmount: euros(0) } as const
      expect(decide(payment, report, start).outcome).toBe('refused')
    })

    test('is impossible after everything was sent', () => {
      const one = begun()
      expect(one.fail({ sentAmount: dollars(100) })).toMatchObject(refusedWith('payment_sent'))
      one.reportSent(dollars(100), euros(50))
      expect(one.fail()).toMatchObject(refusedWith('payment_over'))
    })

    test('may be reported again, and nothing can be sent after a failure', () => {
      const one = begun()
      one.fail({ sentAmount: dollars(40) })
      expect(one.fail()).toMatchObject(unchanged)
      expect(one.fail({ sentAmount: dollars(40) })).toMatchObject(unchanged)
      expect(one.fail({ sentAmount: dollars(41) })).toMatchObject(refusedWith('payment_over'))
      expect(one.fail({ deliveredAmount: euros(21) })).toMatchObject(refusedWith('payment_over'))
      expect(one.reportSent(dollars(41), euros(1))).toMatchObject(refusedWith('payment_over'))
      expect(spentOf(one)).toBe('40')
    })

    test('may not be reported again with another delivered total', () => {
      const one = begun()
      const totals = { sentAmount: dollars(40), deliveredAmount: euros(20) }
      one.fail(totals)
      expect(one.fail(totals)).toMatchObject(unchanged)
      const other = { ...totals, deliveredAmount: euros(21) }
      expect(one.fail(other)).toMatchObject(refusedWith('payment_over'))
    })

    test('stores the reason for the host and does not disclose it to clients', () => {
      const one = begun()
      const decision = one.decide<'fail'>({
        type: 'fail',
        commandId: 'why',
        reason: 'the ledger is down',
        publicReason: 'not possible today',
      })
      expect(one.payment().failure).toBe('the ledger is down')
      expect(one.payment().publicReason).toBe('not possible today')
      expect(JSON.stringify(decision.outcome === 'changed' && decision.events)).not.toContain(
        'ledger',
      )
    })
  })

  describe('a payment that failed, was cancelled or lapsed', () => {
    function lapsed() {
      const one = life()
      one.set(end)
      one.lapse()
      return one
    }
    function ended(how: 'fail' | 'cancel') {
      const one = how === 'fail' ? begun() : life()
      one[how]()
      return one
    }

    test.each([
      ['failed', () => ended('fail')],
      ['was cancelled', () => ended('cancel')],
      ['lapsed', lapsed],
    ])('tells the host with one event that it failed: it %s', (_, made) => {
      const failures = made().events.filter(({ type }) => type === 'outgoing-payment.failed')
      expect(failures).toHaveLength(1)
    })
  })

  describe('cancelling and lapsing', () => {
    test('releases everything once, and may be repeated', () => {
      const one = life()
      expect(one.cancel()).toMatchObject(changed)
      expect(one.payment()).toMatchObject({ state: 'failed', failure: 'cancelled' })
      expect(spentOf(one)).toBe('0')
      expect(one.cancel()).toMatchObject(unchanged)
      expect(one.begin()).toMatchObject(refusedWith('payment_over'))
      expect(one.lapse()).toMatchObject(refusedWith('payment_over'))
    })

    test('is impossible when something was sent', () => {
      const one = begun()
      one.fail({ sentAmount: dollars(1) })
      expect(one.cancel()).toMatchObject(refusedWith('payment_over'))
      const completed = begun()
      completed.reportSent(dollars(100), euros(50))
      expect(completed.cancel()).toMatchObject(refusedWith('payment_over'))
    })

    test('applies automatically to a payment that the host did not begin in time', () => {
      const one = life()
      one.set(end - 1)
      expect(one.lapse()).toMatchObject(refusedWith('payment_held'))
      expect(hasFailed(one.payment(), end - 1)).toBe(false)
      one.set(end)
      // The payment reads as failed, but its budget stays reserved until a sweep processes it.
      expect(hasFailed(one.payment(), end)).toBe(true)
      expect(heldBy(one.payment())).toEqual({ debitAmount: 100n, receiveAmount: 50n, payments: 1 })
      expect(one.lapse()).toMatchObject(changed)
      expect(one.payment()).toMatchObject({ state: 'failed', failure: 'not begun in time' })
      expect(spentOf(one)).toBe('0')
    })
  })
})

const some = { numRuns: runs(250) }

function ofTurns(what: (turn: Turn, life: OutgoingLife) => void) {
  return fc.property(lives, (life) => {
    for (const turn of life.turns) what(turn, life)
  })
}

function decide(payment: OutgoingPayment, command: OutgoingPaymentCommand, now: number) {
  return decideOutgoingPayment<keyof OutgoingPaymentRefusals>(payment, command, now, paymentPolicy)
}

describe('the generated histories', () => {
  test('reach every accepted and every refused outcome of each command', () => {
    const met = new Map<string, number>()
    for (const { turns } of fc.sample(lives, { numRuns: 2_000, seed: 1 })) {
      for (const { command, decision } of turns) {
        const as = decision.outcome === 'refused' ? decision.refusal : decision.outcome
        met.set(`${command.type}: ${as}`, (met.get(`${command.type}: ${as}`) ?? 0) + 1)
      }
    }
    const everywhere = Object.entries({
      begin: ['changed', 'payment_begun', 'payment_lapsed', 'payment_over'],
      'report-sent': ['changed', 'unchanged', 'payment_not_begun', 'payment_over'],
      fail: ['changed', 'unchanged', 'payment_not_begun', 'payment_over', 'payment_sent'],
      cancel: ['changed', 'unchanged', 'payment_begun', 'payment_over'],
      lapse: ['changed', 'payment_begun', 'payment_held', 'payment_over'],
    }).flatMap(([type, outcomes]) => outcomes.map((outcome) => `${type}: ${outcome}`))
    const totals = ['amount_invalid', 'totals_receded', 'totals_exceeded']
    for (const type of ['report-sent', 'fail'])
      everywhere.push(...totals.map((as) => `${type}: ${as}`))
    expect([...met.keys()].sort()).toEqual(everywhere.sort())
    for (const name of everywhere) expect(met.get(name), name).toBeGreaterThan(5)
  })
})

describe('decisions are total and pure', () => {
  test('the same command on the same payment at the same time has the same outcome', () => {
    fc.assert(
      ofTurns(({ before, command, at, decision }) => {
        expect(decide(structuredClone(before), structuredClone(command), at)).toEqual(decision)
      }),
      some,
    )
  })

  test('no command throws on a malformed record', () => {
    const text = fc.oneof(fc.string(), fc.constantFrom('0', '1', String(most), '-1'))
    const amount = fc.record({ value: text, assetCode: text, assetScale: fc.double() })
    const payments = fc
      .record({
        commandId: fc.constantFrom('command-0', 'another'),
        state: fc.constantFrom<OutgoingPayment['state']>('created', 'begun', 'completed', 'failed'),
        sent: text,
        delivered: text,
        debitAmount: amount,
        receiveAmount: amount,
        holdUntil: fc.double(),
        version: fc.double(),
      })
      .map((more) => ({ ...created().record, ...more }))
    const commands = fc.record({
      commandId: fc.constantFrom('command-0', 'command-1'),
      type: fc.constantFrom<OutgoingPaymentCommand['type']>(
        ...(['begin', 'report-sent', 'fail', 'cancel', 'lapse'] as const),
      ),
      sentAmount: amount,
      deliveredAmount: amount,
      final: fc.boolean(),
    }) as fc.Arbitrary<OutgoingPaymentCommand>
    fc.assert(
      fc.property(payments, commands, fc.double(), (payment, command, now) => {
        const decision = decide(deepFreeze(payment), deepFreeze(command), now)
        expect(decide(payment, command, now)).toEqual(decision)
        for (const value of Object.values(heldBy(payment))) {
          expect(value).toBeGreaterThanOrEqual(0n)
        }
      }),
      { numRuns: runs(2_000) },
    )
  })

  test('records and events are plain JSON without undefined', () => {
    fc.assert(
      fc.property(lives, ({ turns, events }) => {
        for (const value of [...turns.map(({ after }) => after), ...events]) {
          expect(JSON.parse(JSON.stringify(value))).toStrictEqual(value)
        }
      }),
      { numRuns: runs(300) },
    )
  })
})

describe('the version', () => {
  test('increases by one with each change, which records the command id and emits one event', () => {
    fc.assert(
      ofTurns(({ before, command, decision, after, at }) => {
        if (decision.outcome !== 'changed') return
        const { state, sent, delivered, failure, endedAt, dueAt, retainUntil, ...same } = after
        const { version, commandId, updatedAt, ...kept } = same
        expect({ version, commandId, updatedAt }).toEqual({
          version: before.version + 1,
          commandId: command.commandId,
          updatedAt: at,
        })
        expect(before).toMatchObject(kept)
        expect(decision.events).toHaveLength(1)
        expect(decision.events[0]).toMatchObject({ at, outgoingPaymentId: before.id })
        expect(endedAt).toBe(hasEnded(after) ? at : undefined)
        expect(retainUntil).toBe(hasEnded(after) ? at + paymentPolicy.retentionMs : undefined)
        expect(dueAt).toBe(retainUntil)
      }),
      some,
    )
  })

  test('stays the same when a command is unchanged or refused', () => {
    const outcomes = new Set<string>()
    fc.assert(
      ofTurns(({ before, decision, after }) => {
        outcomes.add(decision.outcome)
        if (decision.outcome !== 'changed') expect(after).toBe(before)
        if (decision.outcome === 'unchanged') expect(decision.record).toBe(before)
      }),
      some,
    )
    expect(outcomes).toEqual(new Set(['changed', 'unchanged', 'refused']))
  })
})

describe('commands are idempotent', () => {
  test('repeating a command on its own outcome is unchanged, immediately and at any later time', () => {
    fc.assert(
      ofTurns(({ command, decision, after, at }) => {
        if (decision.outcome !== 'changed') return
        for (const later of [0, 1, paymentPolicy.holdMs, 1e12]) {
          expect(decide(after, command, at + later)).toEqual({ ...unchanged, record: after })
        }
      }),
      some,
    )
  })

  test('the same report with another command id counts once', () => {
    fc.assert(
      ofTurns(({ command, decision, after, at }) => {
        if (decision.outcome !== 'changed' || command.type === 'begin') return
        const again = decide(after, { ...command, commandId: 'another command' }, at)
        // A lapsed payment is over for any other sweep; the other outcomes are recognized as repetitions.
        expect(again.outcome).toBe(command.type === 'lapse' ? 'refused' : 'unchanged')
      }),
      some,
    )
  })
})

describe('ended payments are terminal', () => {
  test('a payment moves from created to begun to its end, and never backwards or past begun', () => {
    const next: Record<OutgoingPayment['state'], readonly OutgoingPayment['state'][]> = {
      created: ['begun', 'failed'],
      begun: ['begun', 'completed', 'failed'],
      completed: [],
      failed: [],
    }
    fc.assert(
      ofTurns(({ before, decision, after }) => {
        if (decision.outcome === 'changed') expect(next[before.state]).toContain(after.state)
      }),
      some,
    )
  })

  test('a payment whose hold is over cannot begin and has sent nothing', () => {
    fc.assert(
      ofTurns(({ after, at }) => {
        if (after.state !== 'created' || at < after.holdUntil) return
        expect(after).toMatchObject({ sent: '0', delivered: '0' })
        expect(decide(after, { type: 'begin', commandId: 'late' }, at)).toHaveProperty('refusal')
      }),
      some,
    )
  })
})

describe('conservation of amounts', () => {
  const sentOf = ({ sent, delivered }: OutgoingPayment) => ({
    debitAmount: BigInt(sent),
    receiveAmount: BigInt(delivered),
  })

  test('totals never fall and never exceed the amounts of the payment', () => {
    fc.assert(
      ofTurns(({ before, after }) => {
        for (const [total, whole] of [
          ['sent', 'debitAmount'],
          ['delivered', 'receiveAmount'],
        ] as const) {
          expect(BigInt(after[total])).toBeGreaterThanOrEqual(BigInt(before[total]))
          expect(BigInt(after[total])).toBeLessThanOrEqual(BigInt(after[whole].value))
        }
      }),
      some,
    )
  })

  test('the unsent amount is released exactly once, at the end', () => {
    fc.assert(
      fc.property(lives, ({ first, turns, payment, budget }) => {
        const releases = turns.filter(
          ({ before, after }) => !isDeepStrictEqual(heldBy(before), heldBy(after)),
        )
        expect(releases.length).toBeLessThanOrEqual(1)
        for (const { before, after } of releases) {
          expect([hasEnded(before), hasEnded(after)]).toEqual([false, true])
        }
        const last = payment()
        expect(heldBy(last)).toMatchObject(hasEnded(last) ? sentOf(last) : heldBy(first.record))
        const { debitAmount, receiveAmount } = heldBy(last)
        expect(budget().spent).toEqual({
          debitAmount: dollars(debitAmount),
          receiveAmount: euros(receiveAmount),
        })
      }),
      some,
    )
  })
})
