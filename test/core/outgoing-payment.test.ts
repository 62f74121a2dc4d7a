import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createOutgoingPayment, repeated } from '../../src/core/outgoing-payment/create.js'
import {
  hasFailed,
  heldBy,
  isOver,
  type OutgoingPayment,
  sentAmount,
} from '../../src/core/outgoing-payment/record.js'
import {
  decideOutgoingPayment,
  type OutgoingPaymentCommand,
  type OutgoingPaymentRefusals,
} from '../../src/core/outgoing-payment.js'
import { startOfTests } from '../support/clock.js'
import { deepFreeze } from '../support/frozen.js'
import {
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

/** 100 dollars to 50 euros, counted by what is debited unless told otherwise. */
function life(counted: 'debitAmount' | 'receiveAmount' = 'debitAmount') {
  const limits = counted === 'debitAmount' ? dollars(1000) : euros(1000)
  return outgoingLife({ candidates: [{ item: item({ [counted]: limits }) }] })
}

function begun(counted?: Parameters<typeof life>[0]) {
  const one = life(counted)
  one.begin()
  return one
}

/** What has been debited and reserved of the budget. */
function spentOf(one: ReturnType<typeof life>) {
  return one.budget().spent.debitAmount?.value
}

describe('creating an outgoing payment', () => {
  test('takes all that it may debit from the budget, and waits to be begun', () => {
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
      holdUntil: end,
      dueAt: end,
    })
    const spent = { debitAmount: dollars(100), receiveAmount: euros(50) }
    expect(budget).toMatchObject({ id: record.budgetId, spent, by: record.by })
    expect(sentAmount(record)).toEqual(dollars(0))
    expect(heldBy(record)).toEqual({ debitAmount: 100n, receiveAmount: 50n })
  })

  test.each([
    ['what arrives is limited', item({ receiveAmount: euros(50) })],
    ['nothing is limited', item()],
  ])('reserves both amounts also where %s', (_, granted) => {
    const { record, budget } = created({ candidates: [{ item: granted }] })
    expect(budget.spent).toEqual({ debitAmount: dollars(100), receiveAmount: euros(50) })
    expect(record.budgetId).toBe(budget.id)
  })

  test('is told by one event, without metadata and request', () => {
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

  test('is refused where no item has room, and changes nothing then', () => {
    const candidates = [{ item: item({ debitAmount: dollars(99) }) }]
    expect(createOutgoingPayment(creation({ candidates }), start, policy)).toMatchObject(
      refusedWith('limits_exceeded'),
    )
  })

  test('is a repeat for the same client instance that asks for the same, and for nobody else', () => {
    const { record } = created()
    const { client, requestHash } = record
    expect(repeated(record, { client, requestHash })).toBe(record)
    expect(repeated(record, { client, requestHash: 'other' })).toMatchObject({
      refusal: 'request_differs',
    })
    expect(repeated(record, { client: 'other', requestHash })).toBeUndefined()
    expect(repeated(undefined, { client, requestHash })).toBeUndefined()
  })
})

describe('beginning', () => {
  test('claims the payment once, and from then on it waits for the host alone', () => {
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
    ['when the hold is over', end, refusedWith('payment_lapsed')],
    ['long after', end + 1e9, refusedWith('payment_lapsed')],
  ])('is possible until the hold is over: %s', (_, at, outcome) => {
    const one = life()
    one.set(at)
    expect(one.begin()).toMatchObject(outcome)
  })

  test('is over for what has ended', () => {
    const one = begun()
    one.settle(dollars(100), euros(50))
    expect(one.begin()).toMatchObject(refusedWith('payment_over'))
  })
})

describe('settling', () => {
  test('needs a payment that was begun', () => {
    expect(life().settle(dollars(1), euros(1))).toMatchObject(refusedWith('payment_not_begun'))
    expect(life().fail()).toMatchObject(refusedWith('payment_not_begun'))
  })

  test('adds up attempt by attempt, and completes when everything is sent', () => {
    const one = begun()
    expect(one.settle(dollars(40), euros(20))).toMatchObject(changed)
    expect(one.payment()).toMatchObject({ state: 'begun', sent: '40', delivered: '20' })
    expect(spentOf(one)).toBe('100')
    expect(one.settle(dollars(100), euros(50))).toMatchObject(changed)
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
      'outgoing-payment.settled',
      'outgoing-payment.completed',
    ])
    expect(one.events.at(-1)).toMatchObject({
      sentAmount: dollars(100),
      deliveredAmount: euros(50),
    })
  })

  test('completes when everything has arrived for less, and gives back what was not needed', () => {
    const one = begun()
    one.settle(dollars(90), euros(50))
    expect(one.payment()).toMatchObject({ state: 'completed', sent: '90' })
    expect(spentOf(one)).toBe('90')
  })

  test('completes when all is debited though less arrived, and gives back what did not', () => {
    const one = begun('receiveAmount')
    one.settle(dollars(100), euros(45))
    expect(one.payment()).toMatchObject({ state: 'completed', delivered: '45' })
    expect(one.budget().spent).toEqual({ debitAmount: dollars(100), receiveAmount: euros(45) })
  })

  test('completes with less when nothing more will be sent, and gives back the rest', () => {
    const one = begun()
    one.settle(dollars(40), euros(20))
    expect(one.settle(dollars(40), euros(20), true)).toMatchObject(changed)
    expect(one.payment()).toMatchObject({ state: 'completed', sent: '40' })
    expect(spentOf(one)).toBe('40')
  })

  test('may be reported again, whether it had completed the payment or not', () => {
    const one = begun()
    one.settle(dollars(40), euros(20))
    expect(one.settle(dollars(40), euros(20))).toMatchObject(unchanged)
    one.settle(dollars(100), euros(50))
    expect(one.settle(dollars(100), euros(50))).toMatchObject(unchanged)
    expect(one.settle(dollars(100), euros(50), true)).toMatchObject(unchanged)
    expect(one.events).toHaveLength(4)
    expect(spentOf(one)).toBe('100')
  })

  test.each([
    ['falls', dollars(39), euros(20), 'totals_receded'],
    ['falls where it arrives', dollars(40), euros(19), 'totals_receded'],
    ['is more than may be debited', dollars(101), euros(20), 'totals_exceeded'],
    ['is more than should arrive', dollars(40), euros(51), 'totals_exceeded'],
    ['is in another asset', euros(40), euros(20), 'invalid_amount'],
    ['arrives in another asset', dollars(40), dollars(20), 'invalid_amount'],
    ['is in another scale', { ...dollars(40), assetScale: 3 }, euros(20), 'invalid_amount'],
    ['is no amount', dollars(' 5 '), euros(20), 'invalid_amount'],
    ['is no amount of 64 bits', dollars(most + 1n), euros(20), 'invalid_amount'],
  ])('refuses a total that %s', (_, sent, delivered, refusal) => {
    const one = begun()
    one.settle(dollars(40), euros(20))
    expect(one.settle(sent, delivered, true)).toMatchObject(refusedWith(refusal))
    expect(one.fail({ sentAmount: sent, deliveredAmount: delivered })).toMatchObject(
      refusedWith(refusal),
    )
    expect(one.payment()).toMatchObject({ state: 'begun', sent: '40', delivered: '20' })
  })
})

describe('failing', () => {
  test('gives everything back where nothing was sent', () => {
    const one = begun()
    expect(one.fail()).toMatchObject(changed)
    expect(one.payment()).toMatchObject({ state: 'failed', sent: '0', endedAt: start })
    expect(spentOf(one)).toBe('0')
    expect(hasFailed(one.payment(), start)).toBe(true)
  })

  test('keeps what was sent before counted, and what is reported now', () => {
    const one = begun()
    one.settle(dollars(40), euros(20))
    one.fail()
    expect(one.payment()).toMatchObject({ state: 'failed', sent: '40', delivered: '20' })
    expect(spentOf(one)).toBe('40')

    const other = begun('receiveAmount')
    other.settle(dollars(40), euros(20))
    other.fail({ deliveredAmount: euros(30) })
    expect(other.payment()).toMatchObject({ sent: '40', delivered: '30' })
    expect(other.budget().spent).toEqual({ debitAmount: dollars(40), receiveAmount: euros(30) })
  })

  test('is impossible once everything was sent', () => {
    const one = begun()
    expect(one.fail({ sentAmount: dollars(100) })).toMatchObject(refusedWith('payment_sent'))
    one.settle(dollars(100), euros(50))
    expect(one.fail()).toMatchObject(refusedWith('payment_over'))
  })

  test('may be reported again, and what has failed is never settled', () => {
    const one = begun()
    one.fail({ sentAmount: dollars(40) })
    expect(one.fail()).toMatchObject(unchanged)
    expect(one.fail({ sentAmount: dollars(40) })).toMatchObject(unchanged)
    expect(one.fail({ sentAmount: dollars(41) })).toMatchObject(refusedWith('payment_over'))
    expect(one.settle(dollars(41), euros(1))).toMatchObject(refusedWith('payment_over'))
    expect(spentOf(one)).toBe('40')
  })

  test('keeps the reason for the host, and tells nobody', () => {
    const one = begun()
    const decision = one.decide<'fail'>({ type: 'fail', by: 'why', reason: 'the ledger is down' })
    expect(one.payment().failure).toBe('the ledger is down')
    expect(JSON.stringify(decision.outcome === 'changed' && decision.events)).not.toContain(
      'ledger',
    )
  })
})

describe('withdrawing and lapsing', () => {
  test('gives everything back once, and may be asked for again', () => {
    const one = life()
    expect(one.cancel()).toMatchObject(changed)
    expect(one.payment()).toMatchObject({ state: 'failed', failure: 'cancelled' })
    expect(spentOf(one)).toBe('0')
    expect(one.cancel()).toMatchObject(unchanged)
    expect(one.begin()).toMatchObject(refusedWith('payment_over'))
    expect(one.lapse()).toMatchObject(refusedWith('payment_over'))
  })

  test('is impossible where something was sent', () => {
    const one = begun()
    one.fail({ sentAmount: dollars(1) })
    expect(one.cancel()).toMatchObject(refusedWith('payment_over'))
    const completed = begun()
    completed.settle(dollars(100), euros(50))
    expect(completed.cancel()).toMatchObject(refusedWith('payment_over'))
  })

  test('happens by itself to what nobody began in time', () => {
    const one = life()
    one.set(end - 1)
    expect(one.lapse()).toMatchObject(refusedWith('payment_held'))
    expect(hasFailed(one.payment(), end - 1)).toBe(false)
    one.set(end)
    // It has failed for everybody who looks, but holds its budget until a sweep has met it.
    expect(hasFailed(one.payment(), end)).toBe(true)
    expect(heldBy(one.payment())).toEqual({ debitAmount: 100n, receiveAmount: 50n })
    expect(one.lapse()).toMatchObject(changed)
    expect(one.payment()).toMatchObject({ state: 'failed', failure: 'not begun in time' })
    expect(spentOf(one)).toBe('0')
  })
})

const runs = { numRuns: 250 }

function ofTurns(what: (turn: Turn, life: OutgoingLife) => void) {
  return fc.property(lives, (life) => {
    for (const turn of life.turns) what(turn, life)
  })
}

function decide(payment: OutgoingPayment, command: OutgoingPaymentCommand, now: number) {
  return decideOutgoingPayment<keyof OutgoingPaymentRefusals>(payment, command, now, paymentPolicy)
}

describe('the histories that the laws are tried on', () => {
  test('get everywhere: each command is accepted and refused in every way there is', () => {
    const met = new Map<string, number>()
    for (const { turns } of fc.sample(lives, { numRuns: 2_000, seed: 1 })) {
      for (const { command, decision } of turns) {
        const as = decision.outcome === 'refused' ? decision.refusal : decision.outcome
        met.set(`${command.type}: ${as}`, (met.get(`${command.type}: ${as}`) ?? 0) + 1)
      }
    }
    const everywhere = Object.entries({
      begin: ['changed', 'payment_begun', 'payment_lapsed', 'payment_over'],
      settle: ['changed', 'unchanged', 'payment_not_begun', 'payment_over'],
      fail: ['changed', 'unchanged', 'payment_not_begun', 'payment_over', 'payment_sent'],
      cancel: ['changed', 'unchanged', 'payment_begun', 'payment_over'],
      lapse: ['changed', 'payment_begun', 'payment_held', 'payment_over'],
    }).flatMap(([type, outcomes]) => outcomes.map((outcome) => `${type}: ${outcome}`))
    const totals = ['invalid_amount', 'totals_receded', 'totals_exceeded']
    for (const type of ['settle', 'fail']) everywhere.push(...totals.map((as) => `${type}: ${as}`))
    expect([...met.keys()].sort()).toEqual(everywhere.sort())
    for (const name of everywhere) expect(met.get(name), name).toBeGreaterThan(5)
  })
})

describe('total and pure', () => {
  test('the same command on the same payment at the same time has the same outcome', () => {
    fc.assert(
      ofTurns(({ before, command, at, decision }) => {
        expect(decide(structuredClone(before), structuredClone(command), at)).toEqual(decision)
      }),
      runs,
    )
  })

  test('no command throws on any record, however senseless', () => {
    const text = fc.oneof(fc.string(), fc.constantFrom('0', '1', String(most), '-1'))
    const amount = fc.record({ value: text, assetCode: text, assetScale: fc.double() })
    const payments = fc
      .record({
        by: fc.constantFrom('command-0', 'another'),
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
      by: fc.constantFrom('command-0', 'command-1'),
      type: fc.constantFrom<OutgoingPaymentCommand['type']>(
        ...(['begin', 'settle', 'fail', 'cancel', 'lapse'] as const),
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
      { numRuns: 2_000 },
    )
  })

  test('what is stored and told is plain JSON, without undefined', () => {
    fc.assert(
      fc.property(lives, ({ turns, events }) => {
        for (const value of [...turns.map(({ after }) => after), ...events]) {
          expect(JSON.parse(JSON.stringify(value))).toStrictEqual(value)
        }
      }),
      { numRuns: 300 },
    )
  })
})

describe('version', () => {
  test('changed means one version more, by this command, of the same payment, and one event', () => {
    fc.assert(
      ofTurns(({ before, command, decision, after, at }) => {
        if (decision.outcome !== 'changed') return
        const { state, sent, delivered, failure, endedAt, dueAt, retainUntil, ...same } = after
        const { version, by, ...kept } = same
        expect({ version, by }).toEqual({ version: before.version + 1, by: command.by })
        expect(before).toMatchObject(kept)
        expect(decision.events).toHaveLength(1)
        expect(decision.events[0]).toMatchObject({ at, outgoingPaymentId: before.id })
        expect(endedAt).toBe(isOver(after) ? at : undefined)
        expect(retainUntil).toBe(isOver(after) ? at + paymentPolicy.retentionMs : undefined)
        expect(dueAt).toBe(retainUntil)
      }),
      runs,
    )
  })

  test('unchanged means the record as it was, and a refusal touches nothing', () => {
    fc.assert(
      ofTurns(({ before, decision, after }) => {
        if (decision.outcome !== 'changed') expect(after).toBe(before)
        if (decision.outcome === 'unchanged') expect(decision.record).toBe(before)
      }),
      runs,
    )
  })
})

describe('idempotent', () => {
  test('the same command on its own outcome is unchanged, at once and at any later time', () => {
    fc.assert(
      ofTurns(({ command, decision, after, at }) => {
        if (decision.outcome !== 'changed') return
        for (const later of [0, 1, paymentPolicy.holdMs, 1e12]) {
          expect(decide(after, command, at + later)).toEqual({ ...unchanged, record: after })
        }
      }),
      runs,
    )
  })

  test('the same report by another command, which knows nothing of the first, counts once', () => {
    fc.assert(
      ofTurns(({ command, decision, after, at }) => {
        if (decision.outcome !== 'changed' || command.type === 'begin') return
        const again = decide(after, { ...command, by: 'another command' }, at)
        // What lapsed is over for every other sweep too; the rest is known already.
        expect(again.outcome).toBe(command.type === 'lapse' ? 'refused' : 'unchanged')
      }),
      runs,
    )
  })
})

describe('terminal', () => {
  test('a payment that has completed or failed never changes again', () => {
    fc.assert(
      ofTurns(({ before, decision }) => {
        if (isOver(before)) expect(decision.outcome).not.toBe('changed')
      }),
      runs,
    )
  })

  test('a payment goes from created to begun to its end, and never back or round it', () => {
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
      runs,
    )
  })

  test('what was not begun in time was never begun, and has sent nothing', () => {
    fc.assert(
      ofTurns(({ after, at }) => {
        if (after.state !== 'created' || at < after.holdUntil) return
        expect(after).toMatchObject({ sent: '0', delivered: '0' })
        expect(decide(after, { type: 'begin', by: 'late' }, at)).toHaveProperty('refusal')
      }),
      runs,
    )
  })
})

describe('conservation', () => {
  const sentOf = ({ sent, delivered }: OutgoingPayment) => ({
    debitAmount: BigInt(sent),
    receiveAmount: BigInt(delivered),
  })

  test('totals never fall, and never pass what the payment was created with', () => {
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
      runs,
    )
  })

  test('never less is held than has been sent, and never more than was taken', () => {
    fc.assert(
      ofTurns(({ after }, { first }) => {
        for (const name of ['debitAmount', 'receiveAmount'] as const) {
          expect(heldBy(after)[name]).toBeGreaterThanOrEqual(sentOf(after)[name])
          expect(heldBy(after)[name]).toBeLessThanOrEqual(heldBy(first.record)[name])
        }
      }),
      runs,
    )
  })

  test('what was not sent is given back exactly once, at the end', () => {
    fc.assert(
      fc.property(lives, ({ first, turns, payment, budget }) => {
        const releases = turns.filter(
          ({ before, after }) => !isDeepStrictEqual(heldBy(before), heldBy(after)),
        )
        expect(releases.length).toBeLessThanOrEqual(1)
        for (const { before, after } of releases) {
          expect([isOver(before), isOver(after)]).toEqual([false, true])
        }
        const last = payment()
        expect(heldBy(last)).toEqual(isOver(last) ? sentOf(last) : heldBy(first.record))
        const { debitAmount, receiveAmount } = heldBy(last)
        expect(budget().spent).toEqual({
          debitAmount: dollars(debitAmount),
          receiveAmount: euros(receiveAmount),
        })
      }),
      runs,
    )
  })
})
