import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Amount } from '../../src/core/amount.js'
import {
  createIncomingPayment,
  decideIncomingPayment,
  type IncomingPayment,
  isOpen,
  receivedAmount,
  retainTransferUntil,
  type Transfer,
  transferOf,
} from '../../src/core/incoming-payment.js'
import type { Instant } from '../../src/core/instant.js'
import { startOfTests } from '../support/clock.js'
import { deepFreeze } from '../support/frozen.js'
import {
  creation,
  newPayment,
  type PaymentLife,
  paymentLife,
  paymentPolicy,
  usd,
} from '../support/incoming-payments.js'
import { runs } from '../support/runs.js'

const start = startOfTests
const most = 2n ** 64n - 1n

const changed = { ok: true, outcome: 'changed' }
const unchanged = { ok: true, outcome: 'unchanged' }
const refusedWith = (refusal: string) => ({ ok: false, outcome: 'refused', refusal })

function receiving(commandId: string, amount: Amount) {
  return { type: 'receive', commandId, transferId: 'transfer', amount } as const
}

function create(more: Parameters<typeof creation>[0] = {}) {
  return createIncomingPayment(deepFreeze(creation(more)), start, paymentPolicy)
}

describe('creating an incoming payment', () => {
  test('without an incoming amount: starts with nothing received and not completed', () => {
    const decision = create({ metadata: { order: '17' } })
    expect(decision).toMatchObject({
      ok: true,
      outcome: 'changed',
      record: {
        id: 'namespac-payment',
        version: 1,
        commandId: 'command-0',
        walletAddress: 'https://wallet.example/bob',
        client: 'https://shop.example',
        received: '0',
        completed: false,
        createdAt: start,
        updatedAt: start,
        metadata: { order: '17' },
        lists: [{ list: 'namespac https://wallet.example/bob', at: start }],
      },
    })
    expect(newPayment()).not.toHaveProperty('incomingAmount')
    expect(newPayment()).not.toHaveProperty('metadata')
    expect(receivedAmount(newPayment())).toEqual(usd('0'))
  })

  test('emits one event with the amount but without the metadata', () => {
    const decision = create({ incomingAmount: usd('100'), metadata: { secret: 'of the shop' } })
    const events = decision.outcome === 'changed' ? decision.events : []
    expect(events).toEqual([
      {
        type: 'incoming-payment.created',
        at: start,
        incomingPaymentId: 'namespac-payment',
        walletAddress: 'https://wallet.example/bob',
        client: 'https://shop.example',
        receivedAmount: usd('0'),
        incomingAmount: usd('100'),
      },
    ])
  })

  test('by the host has no client', () => {
    const { client: _client, ...ofHost } = creation()
    const decision = createIncomingPayment(deepFreeze(ofHost), start, paymentPolicy)
    if (decision.outcome !== 'changed') throw new Error(decision.reason)
    expect(decision.record).not.toHaveProperty('client')
    expect(decision.record.lists).toEqual(creation().lists)
    for (const event of decision.events) expect(event).not.toHaveProperty('client')
  })

  test.each(['1', '2500', '18446744073709551615'])('accepts an amount of %s', (value) => {
    expect(create({ incomingAmount: usd(value) })).toMatchObject({
      ok: true,
      outcome: 'changed',
      record: { incomingAmount: usd(value), received: '0', completed: false },
    })
  })

  test.each<readonly [what: string, amount: Amount]>([
    ['zero', usd('0')],
    ['another asset', { ...usd('1'), assetCode: 'EUR' }],
    ['another scale', { ...usd('1'), assetScale: 3 }],
    ['a lower-case asset code', { ...usd('1'), assetCode: 'usd' }],
    ['a negative number', usd('-5')],
    ['2^64', usd('18446744073709551616')],
    ['text', usd('abc')],
    ['nothing', usd('')],
    ['a number with surrounding spaces', usd(' 5 ')],
    ['hexadecimal', usd('0x10')],
    ['a number with leading zeros', usd('007')],
    ['a fraction', usd('1.5')],
  ])('rejects an amount of %s', (_, incomingAmount) => {
    expect(create({ incomingAmount })).toMatchObject(refusedWith('amount_invalid'))
  })

  test('expires after the time from policy if the client instance names none', () => {
    expect(newPayment().expiresAt).toBe(start + paymentPolicy.expiryDefaultMs)
  })

  test.each<readonly [when: string, expiresAt: Instant, outcome: object]>([
    ['a day before the creation', start - 86_400_000, refusedWith('expiry_invalid')],
    ['at the instant of the creation', start, refusedWith('expiry_invalid')],
    ['not a number', Number.NaN, refusedWith('expiry_invalid')],
    ['within a millisecond', start + 1.5, refusedWith('expiry_invalid')],
    ['a millisecond after the creation', start + 1, changed],
    ['at the latest time that policy allows', start + paymentPolicy.expiryMaxMs, changed],
    [
      'a millisecond after the latest time',
      start + paymentPolicy.expiryMaxMs + 1,
      refusedWith('expiry_invalid'),
    ],
  ])('checks a requested expiry: %s', (_, expiresAt, outcome) => {
    const decision = create({ expiresAt })
    expect(decision).toMatchObject(outcome)
    if (decision.outcome === 'changed') expect(decision.record.expiresAt).toBe(expiresAt)
  })

  test('emits and stores plain JSON without undefined', () => {
    const decision = create()
    const events = decision.outcome === 'changed' ? decision.events : []
    expect(events).toHaveLength(1)
    expect(JSON.parse(JSON.stringify(events))).toStrictEqual(events)
    for (const payment of [newPayment(), newPayment({ incomingAmount: usd('1'), metadata: {} })]) {
      expect(JSON.parse(JSON.stringify(payment))).toStrictEqual(payment)
    }
  })

  test('never throws for any amount and time', () => {
    const value = fc.oneof(fc.string(), fc.bigInt().map(String))
    const time = fc.oneof(fc.integer(), fc.double())
    fc.assert(
      fc.property(value, time, time, (value, expiresAt, now) => {
        const command = creation({ incomingAmount: usd(value), expiresAt })
        createIncomingPayment(command, now, paymentPolicy)
      }),
      { numRuns: runs(500) },
    )
  })
})

describe('receiving funds', () => {
  test('adds up transfers while the payment has no incoming amount', () => {
    const life = paymentLife()
    expect(life.receive(usd('100'))).toMatchObject(changed)
    expect(life.receive(usd('1'))).toMatchObject(changed)
    expect(life.payment()).toMatchObject({ received: '101', completed: false, version: 3 })
    expect(receivedAmount(life.payment())).toEqual(usd('101'))
  })

  test.each<readonly [how: string, arrivals: string[], received: string, completed: boolean]>([
    ['less than the amount', ['99'], '99', false],
    ['the amount', ['100'], '100', true],
    ['more than the amount, accepted in full', ['101'], '101', true],
    ['far more than the amount, accepted in full', ['1000000'], '1000000', true],
    ['the amount in parts', ['40', '60'], '100', true],
    ['parts below the amount', ['40', '59'], '99', false],
    ['parts of which the last exceeds the amount', ['99', '99'], '198', true],
  ])('counts %s', (_, arrivals, received, completed) => {
    const life = paymentLife({ incomingAmount: usd('100') })
    for (const value of arrivals) expect(life.receive(usd(value))).toMatchObject(changed)
    expect(life.payment()).toMatchObject({ received, completed })
  })

  test('compares amounts as numbers: 99 is less than 100, and 9 is less than 10', () => {
    const life = paymentLife({ incomingAmount: usd('10') })
    life.receive(usd('9'))
    expect(life.payment().completed).toBe(false)
  })

  test('compares amounts exactly beyond the precision of a double', () => {
    const life = paymentLife({ incomingAmount: usd('9007199254740993') })
    life.receive(usd('9007199254740992'))
    expect(life.payment()).toMatchObject({ completed: false, received: '9007199254740992' })
    life.receive(usd('1'))
    expect(life.payment()).toMatchObject({ completed: true, received: '9007199254740993' })
  })

  test('emits one event per transfer and one for the completion, each with the new total', () => {
    const life = paymentLife({ incomingAmount: usd('100'), metadata: { secret: 'of the shop' } })
    life.receive(usd('40'))
    life.set(start + 1)
    life.receive(usd('70'))
    const common = {
      incomingPaymentId: 'namespac-payment',
      walletAddress: 'https://wallet.example/bob',
      client: 'https://shop.example',
      incomingAmount: usd('100'),
    }
    const received = { type: 'incoming-payment.received', ...common }
    expect(life.events).toEqual([
      { ...received, at: start, receivedAmount: usd('40') },
      { ...received, at: start + 1, receivedAmount: usd('110') },
      {
        ...received,
        type: 'incoming-payment.completed',
        at: start + 1,
        receivedAmount: usd('110'),
      },
    ])
  })

  test('changes nothing else on the payment', () => {
    const life = paymentLife({ incomingAmount: usd('100'), metadata: { order: '17' } })
    const before = life.payment()
    life.set(start + 1)
    life.receive(usd('40'))
    const changed = { version: 2, commandId: 'command-1', received: '40', updatedAt: start + 1 }
    expect(life.payment()).toEqual({ ...before, ...changed })
  })
})

describe('a completed payment', () => {
  test.each<readonly [what: string, value: string]>([
    ['one unit', '1'],
    ['the same amount again', '100'],
  ])('accepts no further funds: %s', (_, value) => {
    const life = complete()
    const before = life.payment()
    expect(life.receive(usd(value))).toMatchObject(refusedWith('payment_completed'))
    expect(life.payment()).toBe(before)
  })

  test('stays completed after its expiry', () => {
    const life = complete()
    life.set(life.payment().expiresAt + 1)
    expect(life.receive(usd('1'))).toMatchObject({ ok: false, outcome: 'refused' })
    expect(life.payment().completed).toBe(true)
  })
})

function complete(): PaymentLife {
  const life = paymentLife({ incomingAmount: usd('100') })
  life.receive(usd('100'))
  return life
}

describe('the expiry of an incoming payment', () => {
  test('accepts funds at the exact instant, and refuses them a millisecond later', () => {
    const life = paymentLife({ expiresAt: start + 1000 })
    life.set(start + 1000)
    expect(life.receive(usd('1'))).toMatchObject(changed)
    life.set(start + 1001)
    expect(life.receive(usd('1'))).toMatchObject(refusedWith('payment_expired'))
    expect(life.payment()).toMatchObject({ received: '1', completed: false })
  })

  test('does not complete the payment', () => {
    const life = paymentLife({ incomingAmount: usd('100'), expiresAt: start + 1000 })
    life.receive(usd('99'))
    life.set(start + 1001)
    expect(life.receive(usd('1'))).toMatchObject(refusedWith('payment_expired'))
    expect(life.payment().completed).toBe(false)
  })

  test('applies when the client instance names no time', () => {
    const life = paymentLife()
    life.set(start + paymentPolicy.expiryDefaultMs)
    expect(life.receive(usd('1'))).toMatchObject(changed)
    life.set(start + paymentPolicy.expiryDefaultMs + 1)
    expect(life.receive(usd('1'))).toMatchObject(refusedWith('payment_expired'))
  })

  test.each<readonly [when: string, life: () => PaymentLife, at: Instant, open: boolean]>([
    ['new', () => paymentLife({ expiresAt: start + 1000 }), start, true],
    ['at its expiry', () => paymentLife({ expiresAt: start + 1000 }), start + 1000, true],
    ['past its expiry', () => paymentLife({ expiresAt: start + 1000 }), start + 1001, false],
    ['complete', () => complete(), start, false],
  ])('decides whether a payment accepts funds: %s', (_, made, at, open) => {
    const life = made()
    expect(isOpen(life.payment(), at)).toBe(open)
    life.set(at)
    expect(life.receive(usd('1')).outcome).toBe(open ? 'changed' : 'refused')
  })
})

describe('recording an expiry', () => {
  const expiresAt = start + 1000
  const expire = { type: 'expire', commandId: 'sweep-1' } as const

  test('is due a millisecond after the last instant at which funds are accepted', () => {
    const payment = newPayment({ expiresAt })
    expect(payment.dueAt).toBe(expiresAt + 1)
    expect(decideIncomingPayment<'expire'>(payment, expire, expiresAt)).toMatchObject(
      refusedWith('payment_open'),
    )
    expect(decideIncomingPayment<'expire'>(payment, expire, expiresAt + 1)).toMatchObject(changed)
  })

  test('emits one event with the received amount, and removes the payment from the open ones', () => {
    const life = paymentLife({ incomingAmount: usd('100'), expiresAt })
    life.receive(usd('30'))
    const payment = life.payment()
    const decision = decideIncomingPayment<'expire'>(payment, expire, expiresAt + 500)
    const retainUntil = expiresAt + paymentPolicy.retentionMs
    expect(decision).toEqual({
      ok: true,
      outcome: 'changed',
      record: {
        ...payment,
        version: 3,
        commandId: 'sweep-1',
        updatedAt: expiresAt + 500,
        expiryRecorded: true,
        lists: payment.lists?.slice(0, 1),
        dueAt: retainUntil,
        retainUntil,
      },
      events: [
        {
          type: 'incoming-payment.expired',
          at: expiresAt + 500,
          incomingPaymentId: payment.id,
          walletAddress: payment.walletAddress,
          client: payment.client,
          receivedAmount: usd('30'),
          incomingAmount: usd('100'),
        },
      ],
    })
  })

  test('is skipped for a completed payment, which is due when it may be removed', () => {
    const life = paymentLife({ incomingAmount: usd('100'), expiresAt })
    life.receive(usd('100'))
    const payment = life.payment()
    expect(payment.dueAt).toBe(expiresAt + paymentPolicy.retentionMs)
    expect(decideIncomingPayment<'expire'>(payment, expire, expiresAt + 1)).toEqual({
      ...unchanged,
      record: payment,
    })
  })
})

describe('an unacceptable amount', () => {
  test.each<readonly [what: string, amount: Amount]>([
    ['zero', usd('0')],
    ['a negative number', usd('-1')],
    ['negative zero', usd('-0')],
    ['2^64', usd('18446744073709551616')],
    ['text', usd('abc')],
    ['nothing', usd('')],
    ['a number with surrounding spaces', usd(' 5 ')],
    ['leading zeros', usd('007')],
    ['a fraction', usd('1.0')],
    ['another asset', { ...usd('1'), assetCode: 'EUR' }],
    ['another scale', { ...usd('1'), assetScale: 3 }],
  ])('is refused and changes nothing: %s', (_, amount) => {
    const life = paymentLife({ incomingAmount: usd('100') })
    const before = life.payment()
    expect(life.receive(amount)).toMatchObject(refusedWith('amount_invalid'))
    expect(life.payment()).toBe(before)
    expect(life.receive(usd('1'))).toMatchObject(changed)
  })

  test('is refused if it would raise the total above 64 bits', () => {
    const life = paymentLife()
    life.receive(usd(most - 1n))
    expect(life.receive(usd('2'))).toMatchObject(refusedWith('amount_invalid'))
    expect(life.receive(usd(most))).toMatchObject(refusedWith('amount_invalid'))
    expect(life.payment().received).toBe((most - 1n).toString())
    expect(life.receive(usd('1'))).toMatchObject(changed)
    expect(life.payment().received).toBe('18446744073709551615')
    expect(life.receive(usd('1'))).toMatchObject(refusedWith('amount_invalid'))
  })

  test('is refused if it would raise the total above 64 bits, even if it completes the payment', () => {
    const life = paymentLife({ incomingAmount: usd(most) })
    life.receive(usd('2'))
    expect(life.receive(usd(most - 1n))).toMatchObject(refusedWith('amount_invalid'))
    expect(life.payment().completed).toBe(false)
    expect(life.receive(usd(most - 2n))).toMatchObject(changed)
    expect(life.payment()).toMatchObject({ received: most.toString(), completed: true })
  })
})

describe('a repeated transfer report', () => {
  test('counts once', () => {
    const life = paymentLife()
    life.receive(usd('40'), 'first')
    const before = life.payment()
    for (let times = 0; times < 3; times++) {
      expect(life.receive(usd('40'), 'first')).toEqual({
        ok: true,
        outcome: 'unchanged',
        record: before,
      })
    }
    expect(life.payment()).toBe(before)
  })

  test('counts once although other transfers arrived in between', () => {
    const life = paymentLife()
    life.receive(usd('40'), 'first')
    life.receive(usd('40'), 'second')
    expect(life.receive(usd('40'), 'first')).toMatchObject(unchanged)
    expect(life.payment().received).toBe('80')
  })

  test('has its earlier result after completion and after expiry', () => {
    const life = paymentLife({ incomingAmount: usd('100'), expiresAt: start + 1000 })
    life.receive(usd('40'), 'first')
    life.receive(usd('60'), 'second')
    expect(life.receive(usd('40'), 'first')).toMatchObject(unchanged)
    expect(life.receive(usd('60'), 'second')).toMatchObject(unchanged)
    life.set(start + 1001)
    expect(life.receive(usd('40'), 'first')).toMatchObject(unchanged)
    expect(life.receive(usd('60'), 'second')).toMatchObject(unchanged)
  })

  test.each<readonly [what: string, amount: Amount]>([
    ['another value', usd('41')],
    ['another asset', { ...usd('40'), assetCode: 'EUR' }],
    ['another scale', { ...usd('40'), assetScale: 4 }],
    ['zero', usd('0')],
    ['text', usd('abc')],
    ['the same value with another spelling', usd('040')],
  ])('is a mismatch with %s, in every state of the payment', (_, amount) => {
    for (const incomingAmount of [{}, { incomingAmount: usd('40') }]) {
      const life = paymentLife({ ...incomingAmount, expiresAt: start + 1000 })
      life.receive(usd('40'), 'first')
      const before = life.payment()
      expect(life.receive(amount, 'first')).toMatchObject(refusedWith('transfer_mismatch'))
      life.set(start + 1001)
      expect(life.receive(amount, 'first')).toMatchObject(refusedWith('transfer_mismatch'))
      expect(life.payment()).toBe(before)
    }
  })

  test('is a mismatch when the transfer belongs to another payment', () => {
    const elsewhere: Transfer = {
      id: 'first',
      version: 1,
      commandId: 'another command',
      paymentId: 'namespac-another',
      amount: usd('40'),
    }
    const command = { ...receiving('command-1', usd('40')), counted: elsewhere }
    const decision = decideIncomingPayment<'receive'>(newPayment(), command, start)
    expect(decision).toMatchObject(refusedWith('transfer_mismatch'))
  })

  test('may use the same transfer id after a refusal, which counted nothing', () => {
    const life = paymentLife()
    expect(life.receive(usd('0'), 'first')).toMatchObject({ ok: false, outcome: 'refused' })
    expect(life.receive(usd('40'), 'first')).toMatchObject(changed)
  })
})

describe('the laws of an incoming payment', () => {
  const someAmount = fc.oneof(
    fc.constantFrom(usd('0'), usd('1'), usd(most), { ...usd('1'), assetCode: 'EUR' }),
    fc.bigInt({ min: 1n, max: 200n }).map(usd),
    fc.bigInt({ min: 1n, max: most }).map(usd),
  )
  const arrival = fc.record({
    afterMs: fc.constantFrom(0, 0, 0, 1, 400, 1000),
    transferId: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'),
    amount: someAmount,
  })
  const arrivals = fc.array(arrival, { maxLength: 20, size: '+1' })
  const incomingAmount = fc.option(
    fc.oneof(fc.bigInt({ min: 1n, max: 500n }), fc.bigInt({ min: 1n, max: most })).map(usd),
    { nil: undefined },
  )

  function lives(
    what: (
      before: IncomingPayment,
      after: IncomingPayment,
      received: ReturnType<PaymentLife['receive']>,
      now: Instant,
      amount: Amount,
    ) => void,
  ) {
    fc.assert(
      fc.property(incomingAmount, arrivals, (incomingAmount, arrivals) => {
        const wanted = incomingAmount === undefined ? {} : { incomingAmount }
        const life = paymentLife({ ...wanted, expiresAt: start + 1000 })
        for (const { afterMs, transferId, amount } of arrivals) {
          life.set(life.now() + afterMs)
          const before = life.payment()
          const decision = life.receive(amount, transferId)
          what(before, life.payment(), decision, life.now(), amount)
        }
      }),
      { numRuns: runs(500) },
    )
  }

  test('conservation: the received amount never falls, and rises by exactly what was accepted', () => {
    lives((before, after, decision, _, amount) => {
      const gained = BigInt(after.received) - BigInt(before.received)
      expect(gained).toBe(decision.outcome === 'changed' ? BigInt(amount.value) : 0n)
      expect(gained).toBeGreaterThanOrEqual(0n)
      expect(BigInt(after.received)).toBeLessThanOrEqual(most)
    })
  })

  test('terminal: a completed payment never changes again', () => {
    lives((before, after, decision) => {
      if (!before.completed) return
      expect(after).toBe(before)
      expect(decision.outcome).not.toBe('changed')
    })
  })

  test('completion: a payment with an amount completes exactly when the total reaches the amount', () => {
    lives((_, after) => {
      const { incomingAmount } = after
      expect(after.completed).toBe(
        incomingAmount !== undefined && BigInt(after.received) >= BigInt(incomingAmount.value),
      )
    })
  })

  test('expiry: no funds are accepted after it', () => {
    lives((before, _, decision, now) => {
      if (now > before.expiresAt) expect(decision.outcome).not.toBe('changed')
    })
  })

  test('version: each change increases the version by one and records the command', () => {
    lives((before, after, decision) => {
      if (decision.outcome !== 'changed') {
        expect(after).toBe(before)
        return
      }
      expect(after.version).toBe(before.version + 1)
      expect(after.commandId).not.toBe(before.commandId)
      expect(after.id).toBe(before.id)
      expect(JSON.parse(JSON.stringify(after))).toStrictEqual(after)
    })
  })

  test('idempotent: repeating a command on its own outcome is unchanged, whether or not the transfer is known', () => {
    fc.assert(
      fc.property(incomingAmount, someAmount, (incomingAmount, amount) => {
        const payment = newPayment(incomingAmount === undefined ? {} : { incomingAmount })
        const command = receiving('command-1', amount)
        const decision = decideIncomingPayment<'receive'>(payment, command, start)
        if (decision.outcome !== 'changed') return
        const { record } = decision
        for (const counted of [undefined, transferOf(payment, command)]) {
          for (const now of [start, record.expiresAt + 1]) {
            const again = { ...command, counted }
            expect(decideIncomingPayment<'receive'>(record, again, now)).toEqual({
              ok: true,
              outcome: 'unchanged',
              record,
            })
          }
        }
      }),
      { numRuns: runs(300) },
    )
  })

  /** Payments of arbitrary history, each with an instant for a sweep. */
  function swept(what: (payment: IncomingPayment, now: Instant) => void) {
    const nearExpiry = fc.oneof(
      fc.constantFrom(0, 999, 1000, 1001, 5000),
      fc.integer({ min: 0, max: 2000 }),
    )
    fc.assert(
      fc.property(incomingAmount, arrivals, nearExpiry, (incomingAmount, arrivals, ms) => {
        const wanted = incomingAmount === undefined ? {} : { incomingAmount }
        const life = paymentLife({ ...wanted, expiresAt: start + 1000 })
        for (const { afterMs, transferId, amount } of arrivals) {
          life.set(life.now() + afterMs)
          life.receive(amount, transferId)
        }
        what(life.payment(), start + ms)
      }),
      { numRuns: runs(500) },
    )
  }

  test('version: recording an expiry increases the version by one and records the command', () => {
    let recorded = 0
    swept((payment, now) => {
      const decision = decideIncomingPayment<'expire'>(
        payment,
        { type: 'expire', commandId: 'sweep' },
        now,
      )
      const isDue = !payment.completed && now > payment.expiresAt
      expect(decision.outcome === 'changed').toBe(isDue)
      if (decision.outcome !== 'changed') return
      recorded += 1
      const { record } = decision
      expect(record).toMatchObject({
        id: payment.id,
        version: payment.version + 1,
        commandId: 'sweep',
        updatedAt: now,
      })
      expect(record.received).toBe(payment.received)
      expect(record.completed).toBe(false)
      expect(JSON.parse(JSON.stringify(record))).toStrictEqual(record)
    })
    expect(recorded).toBeGreaterThan(runs(50, 0))
  })

  test('idempotent: an expiry is recorded once, whichever sweep repeats it at any time', () => {
    swept((payment, now) => {
      const first = decideIncomingPayment<'expire'>(
        payment,
        { type: 'expire', commandId: 'sweep-1' },
        now,
      )
      if (first.outcome !== 'changed') return
      for (const commandId of ['sweep-1', 'sweep-2']) {
        for (const later of [now, now + 1, start, Number.MAX_SAFE_INTEGER]) {
          const again = decideIncomingPayment<'expire'>(
            first.record,
            { type: 'expire', commandId },
            later,
          )
          expect(again).toEqual({ ok: true, outcome: 'unchanged', record: first.record })
        }
      }
    })
  })

  test('terminal: a payment accepts no funds once its expiry is recorded, whatever the clock shows', () => {
    swept((payment, now) => {
      const expired = decideIncomingPayment<'expire'>(
        payment,
        { type: 'expire', commandId: 'sweep' },
        now,
      )
      if (expired.outcome !== 'changed') return
      for (const at of [start, payment.expiresAt, payment.expiresAt + 1, now]) {
        const command = receiving('late', usd('1'))
        const after = decideIncomingPayment<'receive'>(expired.record, command, at)
        expect(after).toMatchObject(refusedWith('payment_expired'))
      }
    })
  })

  test('retention: a payment is retained past its expiry, and its transfers longer than the payment', () => {
    lives((_before, after) => {
      expect(after.retainUntil).toBe(after.expiresAt + paymentPolicy.retentionMs)
      expect(after.dueAt).toBe(after.completed ? after.retainUntil : after.expiresAt + 1)
      expect(retainTransferUntil(after)).toBeGreaterThan(after.retainUntil ?? 0)
      expect(retainTransferUntil(after)).toBeGreaterThan(after.expiresAt)
    })
  })

  test('total: no payment makes the recording of its expiry throw', () => {
    fc.assert(
      fc.property(senseless(text), number, (payment, now) => {
        decideIncomingPayment<'expire'>(
          deepFreeze(payment),
          { type: 'expire', commandId: 'sweep' },
          now,
        )
      }),
      { numRuns: runs(500) },
    )
  })

  const text = fc.string({ maxLength: 4 })
  const number = fc.oneof(fc.integer(), fc.double())
  const uint64 = fc.bigInt({ min: 0n, max: most }).map(String)
  const anyAmount = (value: fc.Arbitrary<string>): fc.Arbitrary<Amount> =>
    fc.record({ value, assetCode: fc.constant('USD'), assetScale: fc.constant(2) })

  /** Records that no history produces, with numbers in this format. */
  function senseless(value: fc.Arbitrary<string>): fc.Arbitrary<IncomingPayment> {
    return fc
      .record({
        id: text,
        version: number,
        commandId: text,
        walletAddress: text,
        client: text,
        incomingAmount: fc.option(anyAmount(value), { nil: undefined }),
        received: value,
        completed: fc.boolean(),
        createdAt: number,
        updatedAt: number,
        expiresAt: number,
        paidRetainUntil: number,
      })
      .map(({ incomingAmount, ...rest }) => ({
        ...rest,
        asset: { assetCode: 'USD', assetScale: 2 },
        ...(incomingAmount === undefined ? {} : { incomingAmount }),
      }))
  }

  const anyCommand = fc.record({
    type: fc.constant('receive' as const),
    commandId: text,
    transferId: text,
    amount: anyAmount(fc.oneof(text, uint64)),
  })

  test('total and pure: no command throws, and the same command has the same outcome', () => {
    const transfer = fc.option(
      fc.record({
        id: text,
        version: number,
        commandId: text,
        paymentId: text,
        amount: anyAmount(fc.oneof(text, uint64)),
      }),
      { nil: undefined },
    )
    fc.assert(
      fc.property(senseless(uint64), transfer, anyCommand, number, (...input) => {
        const [payment, counted, receive, now] = deepFreeze(input)
        const command = { ...receive, counted }
        const decision = decideIncomingPayment<'receive'>(payment, command, now)
        const again = structuredClone({ payment, command })
        expect(decideIncomingPayment<'receive'>(again.payment, again.command, now)).toEqual(
          decision,
        )
      }),
      { numRuns: runs(2000) },
    )
  })

  test('total: no record throws, even with invalid amounts', () => {
    fc.assert(
      fc.property(senseless(text), uint64, (payment, value) => {
        const command = receiving('command-1', usd(value))
        decideIncomingPayment<'receive'>(payment, command, payment.expiresAt)
      }),
      { numRuns: runs(500) },
    )
  })
})
