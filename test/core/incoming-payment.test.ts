import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Amount } from '../../src/core/amount.js'
import {
  closeTransfer,
  isCounted,
  retainTransferUntil,
  type Transfer,
  type TransferRecord,
  transferOf,
} from '../../src/core/incoming-payment/transfer.js'
import {
  acceptsFunds,
  createIncomingPayment,
  decideIncomingPayment,
  type IncomingPayment,
  type IncomingPaymentCommand,
  receivedAmount,
} from '../../src/core/incoming-payment.js'
import type { Instant } from '../../src/core/instant.js'
import { startOfTests } from '../support/clock.js'
import { deepFreeze } from '../support/frozen.js'
import {
  creation,
  newPayment,
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
  return {
    type: 'receive',
    commandId,
    recordId: 'transfer',
    transferId: 'rail-1',
    amount,
  } as const
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

  test('tells the client which member is wrong', () => {
    const { expiryMaxMs } = paymentPolicy
    for (const [wrong, path, problem] of [
      [{ incomingAmount: usd('0') }, 'incomingAmount', 'must be positive'],
      [
        { incomingAmount: { ...usd('1'), assetCode: 'EUR' } },
        'incomingAmount',
        'must be in the asset of the wallet address',
      ],
      [{ expiresAt: start }, 'expiresAt', 'must be in the future'],
      [{ expiresAt: start + expiryMaxMs + 1 }, 'expiresAt', 'must be earlier'],
    ] as const) {
      expect(create(wrong)).toMatchObject({ details: { path, problem } })
    }
  })

  test('expires after the time from policy if the client names none', () => {
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
  test.each<
    readonly [how: string, amount: string, arrivals: string[], received: string, completed: boolean]
  >([
    ['less than the amount', '100', ['99'], '99', false],
    ['less than the amount, as a number', '10', ['9'], '9', false],
    ['the amount', '100', ['100'], '100', true],
    ['more than the amount, accepted in full', '100', ['1000000'], '1000000', true],
    ['the amount in parts', '100', ['40', '60'], '100', true],
    ['parts of which the last exceeds the amount', '100', ['99', '99'], '198', true],
    [
      'less by 1, beyond doubles',
      '9007199254740993',
      ['9007199254740992'],
      '9007199254740992',
      false,
    ],
  ])('counts %s', (_, amount, arrivals, received, completed) => {
    const life = paymentLife({ incomingAmount: usd(amount) })
    for (const value of arrivals) expect(life.receive(usd(value))).toMatchObject(changed)
    expect(life.payment()).toMatchObject({ received, completed })
  })

  test('emits one event per transfer and one for the completion, each with the new total', () => {
    const life = paymentLife({ incomingAmount: usd('100'), metadata: { secret: 'of the shop' } })
    life.receive(usd('40'), 'first')
    life.set(start + 1)
    life.receive(usd('70'), 'second')
    const common = {
      incomingPaymentId: 'namespac-payment',
      walletAddress: 'https://wallet.example/bob',
      client: 'https://shop.example',
      incomingAmount: usd('100'),
    }
    const received = { type: 'incoming-payment.received', ...common }
    expect(life.events).toEqual([
      {
        ...received,
        at: start,
        transferId: 'first',
        amount: usd('40'),
        receivedAmount: usd('40'),
      },
      {
        ...received,
        at: start + 1,
        transferId: 'second',
        amount: usd('70'),
        receivedAmount: usd('110'),
      },
      {
        ...received,
        type: 'incoming-payment.completed',
        at: start + 1,
        receivedAmount: usd('110'),
      },
    ])
  })

  test('keeps the payment as one that was paid, and changes nothing else', () => {
    const life = paymentLife({ incomingAmount: usd('100'), metadata: { order: '17' } })
    const before = life.payment()
    life.set(start + 1)
    life.receive(usd('40'))
    expect(life.payment()).toEqual({
      ...before,
      version: 2,
      commandId: 'command-1',
      received: '40',
      updatedAt: start + 1,
      retainUntil: start + paymentPolicy.expiryDefaultMs + paymentPolicy.retentionMs,
    })
  })
})

describe('recording an expiry', () => {
  const expiresAt = start + 1000
  const expire = { type: 'expire', commandId: 'sweep-1' } as const

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
})

describe('a repeated transfer report', () => {
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
    const command = { ...receiving('command-1', usd('40')), recorded: elsewhere }
    const decision = decideIncomingPayment<'receive'>(newPayment(), command, start)
    expect(decision).toMatchObject(refusedWith('transfer_mismatch'))
  })
})

describe('closing a transfer', () => {
  test('writes a mark once, which is kept a day longer than the payment can be', () => {
    const life = paymentLife()
    const retainUntil = life.payment().paidRetainUntil + 86_400_000
    const mark = {
      id: 'first',
      version: 1,
      commandId: 'command-1',
      dueAt: retainUntil,
      retainUntil,
      paymentId: 'namespac-payment',
      closed: true,
    }
    expect(life.close('first')).toEqual({ ...changed, record: mark, events: [] })
    expect(life.close('first')).toEqual({ ...unchanged, record: mark })
    expect(life.receive(usd('40'), 'first')).toMatchObject(refusedWith('transfer_closed'))
    expect(life.receive(usd('40'), 'second')).toMatchObject(changed)
  })

  test('finds a transfer that was counted, also after the payment has ended', () => {
    const life = paymentLife({ expiresAt: start + 1000 })
    life.receive(usd('40'), 'first')
    life.set(start + 1001)
    expect(life.close('first')).toMatchObject({ ...unchanged, record: { amount: usd('40') } })
  })

  test('is possible until the retention of the payment ends, when its transfers may be gone', () => {
    const payment = newPayment()
    const command = { commandId: 'command-1', recordId: 'first' }
    const { paidRetainUntil } = payment
    expect(closeTransfer(payment, command, paidRetainUntil - 1)).toMatchObject(changed)
    const late = closeTransfer(payment, command, paidRetainUntil)
    expect(late).toMatchObject(refusedWith('payment_unknown'))
    expect(closeTransfer(undefined, command, start)).toMatchObject(refusedWith('payment_unknown'))
    const recorded = transferOf(payment, receiving('command-0', usd('40')))
    const found = closeTransfer(undefined, { ...command, recorded }, paidRetainUntil)
    expect(found).toEqual({ ...unchanged, record: recorded })
  })
})

describe('a transfer that must not be counted late', () => {
  test.each([
    ['at its last instant is counted', start, changed],
    ['a millisecond later is refused', start + 1, refusedWith('transfer_closed')],
  ])('%s', (_, decidedAt, outcome) => {
    const life = paymentLife()
    const late = life.receive(usd('40'), 'first', { notAfter: start, decidedAt })
    expect(late).toMatchObject(outcome)
  })

  test('is never counted once it was refused, even without the limit', () => {
    const life = paymentLife()
    life.receive(usd('40'), 'first', { notAfter: start - 1 })
    expect(life.receive(usd('40'), 'first')).toMatchObject(refusedWith('transfer_closed'))
    expect(life.close('first')).toMatchObject({ ...unchanged, record: { closed: true } })
  })

  test('that was counted in time is found at any time', () => {
    const life = paymentLife()
    life.receive(usd('40'), 'first', { notAfter: start })
    life.set(start + 1)
    expect(life.receive(usd('40'), 'first', { notAfter: start })).toMatchObject(unchanged)
  })
})

describe('completing an incoming payment', () => {
  test('emits one event with the received amount', () => {
    const expiresAt = start + 1000
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
        lists: before.lists?.slice(0, 1),
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
})

describe('cancelling an incoming payment', () => {
  test('ends its time, and emits one event of its expiry with the received amount', () => {
    const expiresAt = start + 1000
    const life = paymentLife({ incomingAmount: usd('100'), expiresAt })
    life.receive(usd('30'), 'first')
    const before = life.payment()
    life.set(start + 5)
    const retainUntil = expiresAt + paymentPolicy.retentionMs
    expect(life.cancel('the order was withdrawn')).toEqual({
      ok: true,
      outcome: 'changed',
      record: {
        ...before,
        version: 3,
        commandId: 'command-2',
        updatedAt: start + 5,
        expiresAt: start + 5,
        expiryRecorded: true,
        cancellation: { reason: 'the order was withdrawn' },
        dueAt: retainUntil,
        retainUntil,
      },
      events: [
        {
          type: 'incoming-payment.expired',
          cancelled: true,
          at: start + 5,
          incomingPaymentId: before.id,
          walletAddress: before.walletAddress,
          client: before.client,
          receivedAmount: usd('30'),
          incomingAmount: usd('100'),
        },
      ],
    })
    expect(life.cancel('another reason')).toEqual({ ...unchanged, record: life.payment() })
  })

  test('stops what arrives from the same instant on, and finds what arrived before', () => {
    const life = paymentLife({ expiresAt: start + 1000 })
    life.receive(usd('30'), 'first')
    life.cancel()
    expect(life.receive(usd('30'), 'second')).toMatchObject(refusedWith('payment_expired'))
    expect(life.receive(usd('30'), 'first')).toMatchObject(unchanged)
    expect(life.close('first')).toMatchObject({ ...unchanged, record: { amount: usd('30') } })
    expect(life.close('second')).toMatchObject({ ...changed, record: { closed: true } })
    expect(life.complete()).toMatchObject(refusedWith('payment_expired'))
  })
})

describe('an incoming payment that has expired', () => {
  test.each([
    ['by the clock', (life: ReturnType<typeof paymentLife>) => life.set(start + 1001)],
    [
      'by its event, on a server whose clock is before its expiry',
      (life: ReturnType<typeof paymentLife>) => {
        life.set(start + 1001)
        life.expire()
        life.set(start + 1000)
      },
    ],
  ])('can be neither completed nor cancelled: %s', (_, pass) => {
    const life = paymentLife({ expiresAt: start + 1000 })
    life.receive(usd('30'))
    pass(life)
    expect(life.complete()).toMatchObject(refusedWith('payment_expired'))
    expect(life.cancel()).toMatchObject(refusedWith('payment_expired'))
  })
})

const lifetimeMs = 1000

type Step =
  | { readonly do: 'pass'; readonly ms: number }
  | {
      readonly do: 'receive'
      readonly id: string
      readonly amount: Amount
      readonly refuseExcess?: boolean
      /** How long before the end of the payment its time ends. */
      readonly endsEarlyMs?: number | undefined
    }
  | { readonly do: 'close'; readonly id: string }
  | { readonly do: 'complete' }
  | { readonly do: 'expire' }
  | { readonly do: 'cancel' }

const someAmount = fc.oneof(
  { weight: 2, arbitrary: fc.constantFrom(1n, 10n, 40n, 60n, 100n).map(usd) },
  fc.constantFrom(usd(0n), usd(most), usd(most - 1n), { ...usd(10n), assetCode: 'EUR' }),
  fc.bigInt({ min: 1n, max: most }).map(usd),
)

// Few ids, so that transfers repeat, often with the same amount.
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('receive' as const),
      id: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g'),
      amount: someAmount,
      refuseExcess: fc.boolean(),
      endsEarlyMs: fc.option(fc.constantFrom(0, 1, lifetimeMs / 2, lifetimeMs), {
        nil: undefined,
        freq: 1,
      }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('close' as const),
      id: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g'),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.constantFrom('a', 'b', 'c').map((id) => ({
      do: 'receive' as const,
      id,
      amount: usd(10n),
    })),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('complete' as const, 'expire') }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('cancel' as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('pass' as const),
      ms: fc.constantFrom(0, 1, 10, lifetimeMs / 2, lifetimeMs, lifetimeMs, lifetimeMs + 1),
    }),
  },
)

const wantedAmount = fc.option(
  fc.oneof(fc.constantFrom(1n, 50n, 100n, most), fc.bigInt({ min: 1n, max: 200n })),
  { nil: undefined },
)

/** Compares a payment with a list of its credits after each step, and returns the outcomes. */
function outcomesOf(wanted: bigint | undefined, steps: readonly Step[]): readonly string[] {
  const expiresAt = start + lifetimeMs
  const life = paymentLife({ ...(wanted && { incomingAmount: usd(wanted) }), expiresAt })
  let cancelledAt: Instant | undefined
  const credits = new Map<string, bigint>()
  const marks = new Set<string>()
  let isEndedByHand = false
  let isNoted = false
  const total = () => [...credits.values()].reduce((sum, value) => sum + value, 0n)
  const isClosed = () => isEndedByHand || (wanted !== undefined && total() >= wanted)
  const isLate = () => cancelledAt !== undefined || life.now() > expiresAt
  const notAfterOf = ({ endsEarlyMs }: { readonly endsEarlyMs?: number | undefined }) =>
    endsEarlyMs === undefined ? {} : { notAfter: expiresAt - endsEarlyMs }

  /** The correct outcomes. When several refusals apply, the order is not specified. */
  function expected(step: Exclude<Step, { readonly do: 'pass' }>): readonly string[] {
    if (step.do === 'complete') {
      if (isClosed()) return ['unchanged']
      return [isLate() ? 'payment_expired' : 'changed']
    }
    if (step.do === 'cancel') {
      if (cancelledAt !== undefined) return ['unchanged']
      return [isClosed() ? 'payment_completed' : isLate() ? 'payment_expired' : 'changed']
    }
    if (step.do === 'expire') {
      if (isClosed() || isNoted) return ['unchanged']
      return [isLate() ? 'changed' : 'payment_open']
    }
    const counted = credits.get(step.id)
    const isMarked = marks.has(step.id)
    if (step.do === 'close') return [counted !== undefined || isMarked ? 'unchanged' : 'changed']
    if (isMarked) return ['transfer_closed']
    const { value, assetCode } = step.amount
    if (counted !== undefined) {
      const isSame = counted === BigInt(value) && assetCode === 'USD'
      return [isSame ? 'unchanged' : 'transfer_mismatch']
    }
    const refusals = [
      ...(assetCode !== 'USD' || value === '0' ? ['amount_invalid'] : []),
      ...(isClosed() ? ['payment_completed'] : []),
      ...(isLate() ? ['payment_expired'] : []),
      ...(total() + BigInt(value) > most ? ['amount_invalid'] : []),
      ...(step.refuseExcess && wanted !== undefined && total() + BigInt(value) > wanted
        ? ['incoming_amount_exceeded']
        : []),
    ]
    const { notAfter = life.now() } = notAfterOf(step)
    if (refusals.length === 0 && life.now() > notAfter) return ['transfer_closed']
    return refusals.length > 0 ? refusals : ['changed']
  }

  return steps.flatMap((step) => {
    if (step.do === 'pass') {
      life.set(life.now() + step.ms)
      return []
    }
    const outcomes = expected(step)
    const [before, late] = [life.payment(), isLate() ? ', late' : '']
    const decision =
      step.do === 'receive'
        ? life.receive(step.amount, step.id, {
            refuseExcess: step.refuseExcess ?? false,
            ...notAfterOf(step),
          })
        : step.do === 'close'
          ? life.close(step.id)
          : life[step.do]()
    const outcome = decision.outcome === 'refused' ? decision.refusal : decision.outcome
    expect(outcomes).toContain(outcome)
    if (step.do === 'close') {
      const isCredited = credits.has(step.id)
      expect(decision.ok && isCounted(decision.record as TransferRecord)).toBe(isCredited)
      if (!isCredited) marks.add(step.id)
      expect(life.payment()).toBe(before)
      return [`close: ${outcome}`]
    }
    if (outcome === 'transfer_closed' && step.do === 'receive') marks.add(step.id)
    if (outcome === 'changed') {
      if (step.do === 'receive') credits.set(step.id, BigInt(step.amount.value))
      isEndedByHand ||= step.do === 'complete'
      isNoted ||= step.do === 'expire' || step.do === 'cancel'
      if (step.do === 'cancel') cancelledAt = life.now()
      expect(life.payment().commandId).not.toBe(before.commandId)
    } else expect(life.payment()).toBe(before)

    const payment = life.payment()
    const told = (what: string) =>
      life.events.filter(({ type }) => type === `incoming-payment.${what}`).length
    const { retentionMs, unpaidRetentionMs } = paymentPolicy
    const retainUntil = expiresAt + (credits.size > 0 ? retentionMs : unpaidRetentionMs)
    const isOver = isClosed() || isNoted
    expect({ ...payment, told: [told('received'), told('completed'), told('expired')] }).toEqual({
      ...newPayment({ ...(wanted && { incomingAmount: usd(wanted) }), expiresAt }),
      received: total().toString(),
      completed: isClosed(),
      ...(isNoted && { expiryRecorded: true }),
      ...(cancelledAt !== undefined && { expiresAt: cancelledAt, cancellation: {} }),
      version: 1 + credits.size + Number(isEndedByHand) + Number(isNoted),
      commandId: payment.commandId,
      updatedAt: payment.updatedAt,
      lists: isOver ? newPayment().lists?.slice(0, 1) : payment.lists,
      dueAt: isOver ? retainUntil : expiresAt + 1,
      retainUntil,
      told: [credits.size, Number(isClosed()), Number(isNoted)],
    })
    if (isClosed()) expect(life.events.at(-1)?.type).toMatch('completed')
    expect(isClosed() && isNoted).toBe(false)
    const isTold = life.events.some((event) => 'cancelled' in event)
    expect(isTold).toBe(cancelledAt !== undefined)
    expect(acceptsFunds(payment, life.now())).toBe(!isClosed() && !isLate())
    expect(JSON.parse(JSON.stringify(payment))).toStrictEqual(payment)
    expect(retainTransferUntil(payment)).toBeGreaterThan(retainUntil)
    return [`${step.do}: ${outcome}${late}`]
  })
}

describe('the laws of an incoming payment', () => {
  test('it agrees with a list of its credits after any reports, completions and sweeps', () => {
    const met: string[] = []
    fc.assert(
      fc.property(wantedAmount, fc.array(step, { maxLength: 30, size: '+1' }), (wanted, steps) => {
        met.push(...outcomesOf(wanted, steps))
      }),
      { numRuns: runs(3000, 250) },
    )
    const receives = [
      ...['changed', 'unchanged', 'unchanged, late', 'transfer_mismatch', 'payment_completed'],
      ...['payment_expired, late', 'amount_invalid', 'incoming_amount_exceeded'],
      ...['transfer_closed'],
    ]
    for (const outcome of [
      ...receives.map((each) => `receive: ${each}`),
      ...['complete: changed', 'complete: payment_expired, late', 'complete: unchanged'],
      ...['expire: changed, late', 'expire: unchanged', 'expire: payment_open'],
      ...['close: changed', 'close: unchanged'],
      ...['cancel: changed', 'cancel: unchanged, late', 'cancel: payment_completed'],
      ...['cancel: payment_expired, late'],
    ]) {
      expect(met.filter((each) => each === outcome).length, outcome).toBeGreaterThan(2)
    }
  })

  test('repeating a command on its own outcome changes nothing, at any time', () => {
    const commands = [
      receiving('command-1', usd('40')),
      { type: 'complete', commandId: 'command-1' },
      { type: 'expire', commandId: 'command-1' },
      { type: 'cancel', commandId: 'command-1', reason: 'withdrawn' },
    ] as const
    for (const command of commands) {
      const payment = newPayment({ incomingAmount: usd('40'), expiresAt: start + lifetimeMs })
      const now = command.type === 'expire' ? payment.expiresAt + 1 : start
      const decision = decide(payment, command, now)
      if (decision.outcome !== 'changed') throw new Error(decision.outcome)
      const { record } = decision
      const repeats =
        command.type === 'receive'
          ? [command, { ...command, recorded: transferOf(payment, command) }]
          : [command, { ...command, commandId: 'another' }]
      for (const again of repeats) {
        for (const at of [start, now, record.expiresAt + 1, Number.MAX_SAFE_INTEGER]) {
          expect(decide(record, again, at)).toEqual({ ...unchanged, record })
        }
      }
    }
  })

  test('no record, command or time makes a decision throw, and equal ones have equal outcomes', () => {
    const text = fc.string({ maxLength: 4 })
    const number = fc.oneof(fc.integer(), fc.double())
    const uint64 = fc.bigInt({ min: 0n, max: most }).map(String)
    const anyAmount = (value: fc.Arbitrary<string>): fc.Arbitrary<Amount> =>
      fc.record({ value, assetCode: fc.constant('USD'), assetScale: fc.constant(2) })
    const record = fc.oneof(text, uint64).chain((received) =>
      fc.record(
        {
          received: fc.constant(received),
          incomingAmount: anyAmount(fc.oneof(text, uint64)),
          completed: fc.boolean(),
          expiresAt: number,
          paidRetainUntil: number,
          retainUntil: number,
        },
        { requiredKeys: ['received', 'completed', 'expiresAt', 'paidRetainUntil'] },
      ),
    )
    const transfer = { id: text, version: number, commandId: text, paymentId: text }
    const amount = anyAmount(fc.oneof(text, uint64))
    const command = fc.oneof(
      fc.record({
        type: fc.constantFrom('complete' as const, 'expire', 'cancel'),
        commandId: text,
      }),
      fc.record(
        {
          type: fc.constant('receive' as const),
          commandId: text,
          recordId: text,
          transferId: text,
          amount,
          notAfter: number,
          decidedAt: number,
          recorded: fc.oneof(
            fc.record({ ...transfer, amount }),
            fc.record({ ...transfer, closed: fc.constant(true as const) }),
          ),
        },
        { requiredKeys: ['type', 'commandId', 'recordId', 'transferId', 'amount'] },
      ),
    )
    fc.assert(
      fc.property(record, command, number, (changes, command, now) => {
        const input = deepFreeze({ payment: { ...newPayment(), ...changes }, command })
        const decision = decide(input.payment, input.command, now)
        const again = structuredClone(input)
        expect(decide(again.payment, again.command, now)).toEqual(decision)
      }),
      { numRuns: runs(3000) },
    )
  })
})

/** Decides any command, whatever its type. */
const decide = decideIncomingPayment as (
  payment: IncomingPayment,
  command: IncomingPaymentCommand,
  now: Instant,
) => ReturnType<typeof decideIncomingPayment<'receive' | 'complete' | 'expire'>>
