import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Arrival, decideArrivals } from '../../src/core/arrivals.js'
import {
  createIncomingPayment,
  decideIncomingPayment,
  type IncomingPayment,
  type Transfer,
} from '../../src/core/incoming-payment.js'
import { startOfTests } from '../support/clock.js'
import { deepFreeze } from '../support/frozen.js'
import { usd } from '../support/incoming-payments.js'
import { runs } from '../support/runs.js'

const lifetimeMs = 1_000
const policy = {
  expiryDefaultMs: lifetimeMs,
  expiryMaxMs: lifetimeMs,
  retentionMs: 5,
  unpaidRetentionMs: 3,
}

function newPayment(incomingAmount?: string): IncomingPayment {
  const created = createIncomingPayment(
    {
      commandId: 'created',
      id: 'payment',
      walletAddress: 'https://wallet.example/bob',
      asset: { assetCode: 'USD', assetScale: 2 },
      client: 'https://shop.example',
      ...(incomingAmount === undefined ? {} : { incomingAmount: usd(incomingAmount) }),
      lists: [],
      openList: 'open',
    },
    startOfTests,
    policy,
  )
  if (!created.ok) throw new Error(created.reason)
  return created.record
}

/** Transfer ids repeat, with the same amount or another one; some amounts are invalid. */
const arrivals: fc.Arbitrary<readonly Arrival[]> = fc
  .array(
    fc.record({
      transferId: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'),
      amount: fc.oneof(
        { weight: 6, arbitrary: fc.constantFrom('1', '2', '3').map(usd) },
        fc.constantFrom(usd('0'), usd(`${2n ** 64n - 1n}`), { ...usd('1'), assetCode: 'EUR' }),
      ),
      at: fc.constantFrom(0, 1, lifetimeMs, lifetimeMs + 1).map((ms) => startOfTests + ms),
    }),
    { minLength: 1, maxLength: 12 },
  )
  .map((list) => list.map((each, index) => ({ ...each, commandId: `command ${index}` })))

const target = fc.option(fc.constantFrom('3', '6', '12'), { nil: undefined })

/** Decides the arrivals as commits one after another. */
function oneByOne(payment: IncomingPayment, list: readonly Arrival[]) {
  const transfers = new Map<string, Transfer['amount']>()
  let current = payment
  const decisions = list.map((arrival) => {
    const { transferId, amount, commandId, at } = arrival
    const known = transfers.get(transferId)
    const transfer = known && ({ paymentId: payment.id, amount: known } as Transfer)
    const command = { type: 'receive', commandId, amount } as const
    const decision = decideIncomingPayment(current, transfer, command, at)
    if (decision.outcome !== 'changed') return decision
    current = decision.record
    transfers.set(transferId, amount)
    return decision
  })
  return { decisions, current, transfers }
}

/** What a payment is, apart from the number of commits and the id of the last one. */
function stateOf({ version: _, commandId: __, ...state }: IncomingPayment) {
  return state
}

describe('arrivals that are decided together', () => {
  test('have the outcomes of as many commits one after another, and one new version', () => {
    const met = new Set<string>()
    fc.assert(
      fc.property(target, arrivals, (incomingAmount, list) => {
        const payment = deepFreeze(newPayment(incomingAmount))
        const transfers = list.map(() => undefined)
        const together = decideArrivals({ payment, transfers }, list, 'combined')
        const apart = oneByOne(payment, list)
        for (const [index, decision] of together.decisions.entries()) {
          const expected = apart.decisions[index]
          met.add(decision.ok ? decision.outcome : decision.refusal)
          if (!decision.ok || !expected?.ok) expect(decision).toEqual(expected)
          else {
            expect(decision.outcome).toBe(expected.outcome)
            expect(stateOf(decision.record)).toEqual(stateOf(expected.record))
          }
        }
        const isChanged = apart.current !== payment
        expect(together.next && stateOf(together.next)).toEqual(
          isChanged ? stateOf(apart.current) : undefined,
        )
        if (isChanged) expect(together.next).toMatchObject({ version: 2, commandId: 'combined' })
        expect(together.events).toEqual(
          apart.decisions.flatMap((each) => (each.outcome === 'changed' ? each.events : [])),
        )
        const counted = together.counted.map(({ id, amount }) => [id, amount])
        expect(counted).toEqual([...apart.transfers])
      }),
      { numRuns: runs(1000) },
    )
    expect([...met].sort()).toEqual(
      ['amount_invalid', 'changed', 'payment_completed', 'payment_expired']
        .concat('transfer_mismatch', 'unchanged')
        .sort(),
    )
  })

  test('of which one is already counted return the payment that includes it, and count the others', () => {
    const payment = newPayment('5')
    const [a, b] = [usd('2'), usd('3')]
    const list = [
      { transferId: 'a', amount: a, at: startOfTests, commandId: 'again' },
      { transferId: 'b', amount: b, at: startOfTests, commandId: 'first' },
    ]
    const stored = { id: 'a', paymentId: payment.id, amount: a, commandId: 'x', version: 1 }
    const including = { ...payment, received: '2', version: 2 }
    const { decisions, next, counted } = decideArrivals(
      { payment, transfers: [stored, undefined], including },
      list,
      'combined',
    )
    expect(decisions[0]).toEqual({ ok: true, outcome: 'unchanged', record: including })
    expect(decisions[1]).toMatchObject({ outcome: 'changed', record: { received: '3' } })
    // The commit is of the version loaded first, and is lost if the payment has changed since.
    expect(next?.version).toBe(payment.version + 1)
    expect(counted.map(({ id }) => id)).toEqual(['b'])
  })
})
