import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { GrantedItem, Limits } from '../../src/core/access.js'
import type { Amount } from '../../src/core/amount.js'
import {
  allow,
  allowanceAt,
  contradictsLimits,
  hasOtherAsset,
  refuseByConditions,
  type Spending,
} from '../../src/core/limits.js'
import { deepFreeze } from '../support/frozen.js'
import { runs } from '../support/runs.js'
import { dollars, euros, item, most, receiver } from '../support/spending-life.js'

const spending: Spending = {
  receiver,
  debitAmount: dollars(100),
  receiveAmount: euros(50),
}

const at = (text: string) => Date.parse(text)
const now = at('2026-11-21T12:00:00Z')
const refusedBecause = (reason: string) => ({ refusal: 'limits_exceeded', reason })
const elsewhere = 'https://bank.example/incoming-payments/2'

describe('checking a payment against the limits of one granted item', () => {
  test('allows it without a limit when the item has no limits', () => {
    expect(allow(item(), spending, now)).toStrictEqual({ ok: true, value: {} })
    expect(allow(item({}), spending, now)).toStrictEqual({ ok: true, value: {} })
  })

  test('allows only the granted receiver', () => {
    expect(allow(item({ receiver }), spending, now)).toEqual({ ok: true, value: {} })
    expect(allow(item({ receiver: elsewhere }), spending, now)).toMatchObject(
      refusedBecause('limits.receiver is another receiver'),
    )
  })

  test.each<readonly [limited: keyof Limits, amount: (value: bigint) => Amount, value: bigint]>([
    ['debitAmount', dollars, 100n],
    ['receiveAmount', euros, 50n],
  ])('compares its %s and allows exactly the limit but no unit more', (counts, of, value) => {
    const exactly = { [counts]: of(value) }
    expect(allow(item(exactly), spending, now)).toEqual({
      ok: true,
      value: { limitedAmount: { counts, maximum: of(value) } },
    })
    expect(allow(item({ [counts]: of(value - 1n) }), spending, now)).toMatchObject(
      refusedBecause(`limits.${counts} is less than this payment`),
    )
  })

  test.each<readonly [Limits, string]>([
    [{ debitAmount: euros(100) }, 'limits.debitAmount is in another asset'],
    [{ debitAmount: { ...dollars(100), assetScale: 0 } }, 'limits.debitAmount is in another asset'],
    [{ receiveAmount: dollars(100) }, 'limits.receiveAmount is in another asset'],
  ])('refuses another asset than that of the limit: %o', (limits, reason) => {
    expect(allow(item(limits), spending, now)).toMatchObject({
      refusal: 'limits_exceeded',
      reason: expect.stringContaining(reason),
    })
  })

  test('compares exactly over the whole 64-bit range', () => {
    const paying = (value: bigint) => ({ ...spending, debitAmount: dollars(value) })
    expect(allow(item({ debitAmount: dollars(most) }), paying(most), now).ok).toBe(true)
    expect(allow(item({ debitAmount: dollars(most - 1n) }), paying(most), now)).toHaveProperty(
      'refusal',
    )
    expect(allow(item({ debitAmount: dollars(0) }), paying(1n), now)).toHaveProperty('refusal')
  })

  test.each(['', ' 5 ', '0x10', '-0', '1.0', '18446744073709551616'])(
    'refuses an invalid amount of the payment or the limit: "%s"',
    (value) => {
      const limited = item({ debitAmount: dollars(1000) })
      expect(allow(limited, { ...spending, debitAmount: dollars(value) }, now)).toMatchObject(
        refusedBecause('limits.debitAmount is less than this payment'),
      )
      expect(allow(item({ debitAmount: dollars(value) }), spending, now)).toMatchObject(
        refusedBecause('limits.debitAmount is less than this payment'),
      )
    },
  )
})

describe('an item with an interval', () => {
  const windows = {
    interval: 'R2/2026-11-21T12:00:00Z/P1M',
    debitAmount: dollars(1000),
  }
  const first = { start: at('2026-11-21T12:00:00Z'), end: at('2026-12-21T12:00:00Z') }
  const second = { start: at('2026-12-21T12:00:00Z'), end: at('2027-01-21T12:00:00Z') }
  const third = { start: at('2027-01-21T12:00:00Z'), end: at('2027-02-21T12:00:00Z') }

  test.each([
    ['before its first window', first.start - 1, undefined],
    ['at the start of its first window', first.start, first],
    ['in the last millisecond of the first window', first.end - 1, first],
    ['at the start of the next window', second.start, second],
    ['in the last millisecond of the last window', second.end - 1, second],
    ['at the end of the last window', second.end, undefined],
  ])('applies its limit to the current window: %s', (_, instant, window) => {
    const allowance = allowanceAt(item(windows), instant)
    const limitedAmount = { counts: 'debitAmount', maximum: windows.debitAmount }
    const closed = refusedBecause('limits.interval has no window at this time')
    if (window === undefined) expect(allowance).toMatchObject(closed)
    else expect(allowance).toEqual({ ok: true, value: { limitedAmount, window } })
    expect(allow(item(windows), spending, instant)).toMatchObject(
      window ? { ok: true, value: { window } } : closed,
    )
  })

  test('uses the interval counting that was granted, whatever the policy of others', () => {
    const repeated: GrantedItem = { ...item(windows), intervalCounting: 'repetitions' }
    expect(allowanceAt(repeated, third.start)).toMatchObject({ value: { window: third } })
    expect(allowanceAt(repeated, third.end).ok).toBe(false)
    const occurrences: GrantedItem = { ...repeated, intervalCounting: 'occurrences' }
    expect(allowanceAt(occurrences, third.start).ok).toBe(false)
  })

  test('says outside its windows when the next one begins, as they are counted', () => {
    const backwards = { ...windows, interval: 'R1/P1M/2026-12-21T12:00:00Z' }
    const next = (counted: Partial<GrantedItem>) =>
      allowanceAt({ ...item(backwards), ...counted }, at('2026-09-01T00:00:00Z'))
    const details = (month: number) => ({
      details: { nextWindowAt: `2026-${month}-21T12:00:00.000Z` },
    })
    expect(next({})).toMatchObject(details(11))
    expect(next({ intervalCounting: 'occurrences' })).toMatchObject(details(11))
    expect(next({ intervalCounting: 'repetitions' })).toMatchObject(details(10))
  })

  test('without an amount allows any amount while a window is open', () => {
    const { interval } = windows
    const open = { ok: true, value: { window: first } }
    expect(allowanceAt(item({ interval }), first.start)).toEqual(open)
    expect(allow(item({ interval }), spending, first.start)).toEqual(open)
    expect(allowanceAt(item({ interval }), second.end).ok).toBe(false)
    expect(allow(item({ interval }), spending, second.end)).toHaveProperty('refusal')
  })

  test('that is unreadable allows no payment at any time', () => {
    for (const interval of [
      '',
      'R/2026-01-01T00:00:00Z/PT0S',
      'P1M',
      'R/2020-02-30T00:00:00Z/P1D',
    ]) {
      expect(allowanceAt(item({ ...windows, interval }), first.start).ok).toBe(false)
      expect(allow(item({ interval }), spending, first.start)).toHaveProperty('refusal')
    }
  })
})

const value = fc.oneof(
  fc.constantFrom('0', '1', '99', '100', String(most), '-1', '', '007', '18446744073709551616'),
  fc.bigInt({ min: 0n, max: most }).map(String),
)
const amount = fc.record({
  value,
  assetCode: fc.constantFrom('USD', 'EUR'),
  assetScale: fc.constantFrom(0, 2),
})
const interval = fc.constantFrom(
  'R/2026-11-21T12:00:00Z/PT1H',
  'R3/2026-11-21T12:00:00Z/P1M',
  'R1/2027-01-01T00:00:00Z/P1D',
  'R/P1D/2026-11-22T00:00:00Z',
  'nonsense',
)
const limits = fc
  .record(
    {
      receiver: fc.constantFrom(receiver, elsewhere),
      interval,
      debitAmount: amount,
      receiveAmount: amount,
    },
    { requiredKeys: [] },
  )
  .filter(({ debitAmount, receiveAmount }) => !(debitAmount && receiveAmount))
const spendings = fc.record({
  receiver: fc.constantFrom(receiver, elsewhere),
  debitAmount: amount,
  receiveAmount: amount,
})
const instants = fc.oneof(
  fc.integer({ min: now - 3_600_000, max: now + 3_600_000 }),
  fc.constantFrom(now, Number.NaN, -1, Number.POSITIVE_INFINITY, 0),
)

describe('for any combination of limits', () => {
  test('a payment is allowed exactly when each limit allows it alone', () => {
    fc.assert(
      fc.property(limits, spendings, instants, (limits, spending, now) => {
        const answer = allow(deepFreeze(item(limits)), deepFreeze(spending), now)
        const open = allowanceAt(item(limits), now).ok
        const toThem = limits.receiver === undefined || limits.receiver === spending.receiver
        const within = (['debitAmount', 'receiveAmount'] as const).every((name) => {
          const [limit, { value, ...asset }] = [limits[name], spending[name]]
          if (limit === undefined) return true
          const numbers = [limit.value, value].every((text) => /^(0|[1-9]\d*)$/.test(text))
          if (!numbers || BigInt(value) > most || BigInt(limit.value) > most) return false
          const same = limit.assetCode === asset.assetCode && limit.assetScale === asset.assetScale
          return same && BigInt(value) <= BigInt(limit.value)
        })
        expect(answer.ok).toBe(open && toThem && within)
      }),
      { numRuns: runs(2_000) },
    )
  })

  test('the result holds the limit itself and the window that contains the instant', () => {
    fc.assert(
      fc.property(limits, instants, (limits, now) => {
        const found = allowanceAt(deepFreeze(item(limits)), now)
        expect(allowanceAt(structuredClone(item(limits)), now)).toEqual(found)
        if (!found.ok) return
        const { limitedAmount, window } = found.value
        const limited = limits.debitAmount ?? limits.receiveAmount
        expect(limitedAmount?.maximum).toEqual(limited)
        if (limitedAmount !== undefined) expect(limits[limitedAmount.counts]).toEqual(limited)
        expect(window === undefined).toBe(limits.interval === undefined)
        if (window === undefined) return
        expect(window.start).toBeLessThanOrEqual(now)
        expect(window.end).toBeGreaterThan(now)
      }),
      { numRuns: runs(1_000) },
    )
  })
})

describe('amounts in different assets', () => {
  const capped = (of: typeof dollars) => ({ debitAmount: of(1) })

  test('contradict each other in the conditions of a grant, and its limits', () => {
    const access = [item(), item({ receiveAmount: euros(1) }), item(capped(dollars))]
    const [asked, none] = [(of: typeof dollars) => [item(capped(of))], [item()]]
    expect(contradictsLimits({}, access)).toBe(false)
    expect(contradictsLimits({ paymentMax: dollars(1) }, access)).toBe(false)
    expect(contradictsLimits({ paymentMax: euros(1) }, access)).toBe(true)
    expect(contradictsLimits({ limits: [{ payments: 1 }] }, asked(euros))).toBe(false)
    expect(contradictsLimits({ limits: [capped(dollars)] }, asked(dollars))).toBe(false)
    expect(contradictsLimits({ limits: [capped(dollars)] }, asked(euros))).toBe(true)
    const limits = [capped(dollars), { payments: 1 }]
    expect(contradictsLimits({ paymentMax: dollars(1), limits }, none)).toBe(false)
    expect(contradictsLimits({ paymentMax: euros(1), limits }, none)).toBe(true)
    expect(contradictsLimits({ limits: [...limits, capped(euros)] }, none)).toBe(true)
  })

  test('are found in the limits of an account', () => {
    const limits = [capped(dollars), { payments: 1 }]
    expect(hasOtherAsset([], dollars(0))).toBe(false)
    expect(hasOtherAsset(limits, dollars(0))).toBe(false)
    expect(hasOtherAsset(limits, euros(0))).toBe(true)
    expect(hasOtherAsset([...limits, capped(euros)], dollars(0))).toBe(true)
  })
})

describe("checking a payment against the owner's condition on receivers", () => {
  const receivers = ['https://wallet.example/bob']
  const paid = (receiverWalletAddress?: string) =>
    refuseByConditions(
      { receivers },
      { ...spending, ...(receiverWalletAddress && { receiverWalletAddress }) },
      now,
    )

  test('allows the wallet addresses that the owner named', () => {
    expect(paid('https://wallet.example/bob')).toBeUndefined()
  })

  test('refuses another wallet address, and a price that names none', () => {
    expect(paid('https://wallet.example/carol')).toMatchObject({
      refusal: 'conditions_exceeded',
      reason: 'the grant does not allow payments to this wallet address',
    })
    expect(paid()).toMatchObject({
      refusal: 'conditions_exceeded',
      reason: 'the price does not name the wallet address of the receiver',
    })
  })
})
