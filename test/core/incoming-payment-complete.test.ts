import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  decideIncomingPayment,
  type IncomingPayment,
  isOpen,
} from '../../src/core/incoming-payment.js'
import { startOfTests } from '../support/clock.js'
import { deepFreeze } from '../support/frozen.js'
import {
  newPayment,
  type PaymentLife,
  paymentLife,
  paymentPolicy,
  usd,
} from '../support/incoming-payments.js'
import { runs } from '../support/runs.js'

const start = startOfTests
const expiresAt = start + 1000

describe('completing an incoming payment', () => {
  test('emits one event with the received amount', () => {
    const life = paymentLife({ incomingAmount: usd('100'), expiresAt, metadata: { order: '17' } })
    life.receive(usd('30'))
    const before = life.payment()
    life.set(start + 5)
    const retainUntil = expiresAt + paymentPolicy.retentionMs
    expect(life.complete('the command')).toEqual({
      ok: true,
      outcome: 'changed',
      record: {
        ...before,
        version: 3,
        commandId: 'the command',
        completed: true,
        updatedAt: start + 5,
        dueAt: retainUntil,
        retainUntil,
      },
      events: [
        {
          type: 'incoming-payment.completed',
          at: start + 5,
          incomingPaymentId: before.id,
          walletAddress: before.walletAddress,
          client: before.client,
          receivedAmount: usd('30'),
          incomingAmount: usd('100'),
        },
      ],
    })
  })

  test.each<readonly [which: string, life: () => PaymentLife]>([
    ['that has received nothing', () => paymentLife({ incomingAmount: usd('100') })],
    ['that has no incoming amount', () => paymentLife()],
  ])('completes a payment %s, which accepts no further funds', (_, made) => {
    const life = made()
    expect(life.complete()).toMatchObject({
      ok: true,
      outcome: 'changed',
      record: { completed: true },
    })
    expect(isOpen(life.payment(), start)).toBe(false)
    expect(life.receive(usd('1'))).toMatchObject({ refusal: 'payment_completed' })
  })

  test('is possible although the payment has expired, whether or not the expiry has been recorded', () => {
    for (const recorded of [false, true]) {
      const life = paymentLife({ expiresAt })
      life.receive(usd('30'), 'in time')
      life.set(expiresAt + 1)
      if (recorded) expect(life.expire()).toMatchObject({ ok: true, outcome: 'changed' })
      expect(life.complete()).toMatchObject({
        ok: true,
        outcome: 'changed',
        record: { completed: true },
      })
      expect(life.expire()).toMatchObject({ ok: true, outcome: 'unchanged' })
      expect(life.payment().expiryRecorded).toBe(recorded ? true : undefined)
      expect(life.receive(usd('1'))).toMatchObject({ ok: false, outcome: 'refused' })
    }
  })

  test('keeps the response to a transfer that was counted', () => {
    const life = paymentLife()
    life.receive(usd('30'), 'first')
    life.complete()
    expect(life.receive(usd('30'), 'first')).toMatchObject({ ok: true, outcome: 'unchanged' })
    expect(life.receive(usd('31'), 'first')).toMatchObject({ refusal: 'transfer_mismatch' })
  })
})

describe('the laws of completion', () => {
  const amount = fc.oneof(
    fc.constantFrom(usd('0'), usd(2n ** 64n - 1n), { ...usd('1'), assetCode: 'EUR' }),
    fc.bigInt({ min: 1n, max: 200n }).map(usd),
  )
  type Outcome = ReturnType<PaymentLife['receive' | 'complete' | 'expire']>
  interface Step {
    readonly name: string
    readonly take: (life: PaymentLife) => Outcome
  }
  const receive = fc
    .tuple(fc.constantFrom('a', 'b', 'c', 'd', 'e'), amount)
    .map(([id, amount]) => ({
      name: `receive ${amount.value} ${amount.assetCode} as ${id}`,
      take: (life: PaymentLife) => life.receive(amount, id),
    }))
  const complete = { name: 'complete', take: (life: PaymentLife) => life.complete() }
  const expire = { name: 'expire', take: (life: PaymentLife) => life.expire() }
  const step: fc.Arbitrary<Step> = fc.oneof(
    { arbitrary: receive, weight: 4 },
    { arbitrary: fc.constant(complete), weight: 1 },
    { arbitrary: fc.constant(expire), weight: 1 },
  )
  const steps = fc.array(fc.record({ afterMs: fc.constantFrom(0, 0, 0, 1, 400, 1000), step }), {
    maxLength: 20,
    size: '+1',
  })
  const wanted = fc.option(fc.bigInt({ min: 1n, max: 500n }).map(usd), { nil: undefined })

  function histories(
    what: (before: IncomingPayment, outcome: Outcome, life: PaymentLife, step: Step) => void,
  ) {
    fc.assert(
      fc.property(wanted, steps, (wanted, steps) => {
        const incomingAmount = wanted === undefined ? {} : { incomingAmount: wanted }
        const life = paymentLife({ ...incomingAmount, expiresAt })
        for (const { afterMs, step } of steps) {
          life.set(life.now() + afterMs)
          what(life.payment(), step.take(life), life, step)
        }
      }),
      { numRuns: runs(500) },
    )
  }

  test('terminal: a completed payment never changes again', () => {
    let met = 0
    histories((before, decision, life) => {
      if (!before.completed) return
      met += 1
      expect(decision.outcome).not.toBe('changed')
      expect(life.payment()).toBe(before)
    })
    expect(met).toBeGreaterThan(runs(500))
  })

  test('idempotent: completing it again with any command at any time changes nothing', () => {
    histories((before, _decision, life) => {
      const first = decideIncomingPayment<'complete'>(
        before,
        { type: 'complete', commandId: 'one' },
        life.now(),
      )
      expect(first.outcome).toBe(before.completed ? 'unchanged' : 'changed')
      for (const commandId of ['one', 'another']) {
        for (const at of [life.now(), start, Number.MAX_SAFE_INTEGER]) {
          const again = decideIncomingPayment<'complete'>(
            first.record,
            { type: 'complete', commandId },
            at,
          )
          expect(again).toEqual({ ok: true, outcome: 'unchanged', record: first.record })
        }
      }
    })
  })

  test('version: completion increases the version by one, records the command, and keeps the total', () => {
    let met = 0
    histories((before, decision, life, step) => {
      if (step !== complete || decision.outcome !== 'changed') return
      met += 1
      const after = life.payment()
      expect(after.version).toBe(before.version + 1)
      expect(after.commandId).not.toBe(before.commandId)
      expect(after.id).toBe(before.id)
      expect(after.lists).toEqual(before.lists?.filter(({ list }) => !list.endsWith(' open')))
      expect(after.received).toBe(before.received)
      expect(JSON.parse(JSON.stringify(after))).toStrictEqual(after)
    })
    expect(met).toBeGreaterThan(runs(25, 1))
  })

  test('a payment emits a completion event, as its last event, if and only if it completes', () => {
    histories((_before, _decision, { events, payment }) => {
      const told = events.filter(({ type }) => type === 'incoming-payment.completed')
      expect(told).toHaveLength(payment().completed ? 1 : 0)
      if (payment().completed) expect(events.at(-1)).toBe(told[0])
    })
  })

  test('retention: a completed payment is due when it may be removed', () => {
    histories((_before, _decision, { payment }) => {
      const { completed, dueAt, retainUntil } = payment()
      expect(retainUntil).toBe(expiresAt + paymentPolicy.retentionMs)
      if (completed) expect(dueAt).toBe(retainUntil)
    })
  })

  test('total and pure: no record and no time makes it throw', () => {
    const text = fc.string({ maxLength: 4 })
    const number = fc.oneof(fc.integer(), fc.double())
    const record = fc.record(
      { received: text, completed: fc.boolean(), expiresAt: number, retainUntil: number },
      { requiredKeys: ['received', 'completed', 'expiresAt'] },
    )
    fc.assert(
      fc.property(record, text, number, (changes, commandId, now) => {
        const payment = deepFreeze({ ...newPayment(), ...changes })
        const command = deepFreeze({ type: 'complete' as const, commandId })
        const decision = decideIncomingPayment<'complete'>(payment, command, now)
        expect(decideIncomingPayment<'complete'>(structuredClone(payment), command, now)).toEqual(
          decision,
        )
      }),
      { numRuns: runs(500) },
    )
  })
})
