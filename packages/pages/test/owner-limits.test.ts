import fc from 'fast-check'
import type { GrantView, SpendingLimit } from 'open-payments-server'
import { parseInterval, windowAt } from 'open-payments-server/core'
import { runs } from 'open-payments-test-support/runs'
import { describe, expect, test } from 'vitest'
import { formatAmount } from '../src/amounts.js'
import { localeFor } from '../src/locale.js'
import { debitedAsset, periods, withTypedLimit } from '../src/owner-limits.js'
import { isNarrowed } from './granted.js'

const locales = ['en', 'de', 'es', 'ar-EG'].map((language) =>
  localeFor({ headers: [] }, { language }),
)
const english = localeFor({ headers: [] })
const asset = { assetCode: 'USD', assetScale: 2 }
const usd = (value: number | bigint) => ({ value: `${value}`, ...asset })
const monthly = 'R/2026-12-01T00:00:00Z/P1M'

const interval = fc.constantFrom(...Object.values(periods), monthly)
const limit = interval.chain((each) =>
  fc
    .record(
      {
        debitAmount: fc.bigInt(1n, 2n ** 64n - 1n).map(usd),
        payments: fc.integer({ min: 1, max: 1e9 }),
      },
      { requiredKeys: [] },
    )
    .filter(({ debitAmount, payments }) => (debitAmount ?? payments) !== undefined)
    .map((most): SpendingLimit => (each === undefined ? most : { ...most, interval: each })),
)
const limits = fc.uniqueArray(limit, { maxLength: 3, selector: (each) => each.interval })
const typedText = fc.oneof(
  fc.constantFrom('', '0', '1', '12.50', '12,50', '1e3', '-1', '1.5', '\u0661', '9'.repeat(30)),
  fc.string({ maxLength: 6 }),
)
const typed = fc.record({
  interval: fc.oneof(
    interval.map((each) => each ?? ''),
    fc.constantFrom('R/2026-12-01T00:00:00Z/PT1S', 'x', '__proto__'),
  ),
  most: typedText,
  payments: typedText,
})

describe('the limits of an owner', () => {
  test('only become narrower, and stay at most three, whatever is typed', () => {
    fc.assert(
      fc.property(limits, typed, fc.constantFrom(...locales), (before, form, locale) => {
        for (const known of [asset, undefined]) {
          const result = withTypedLimit(before, form, known, locale)
          if (!result.ok) continue
          expect(isNarrowed(before, result.value)).toBe(true)
          expect(result.value.length).toBeLessThanOrEqual(3)
          const others = (all: readonly SpendingLimit[]) =>
            all.filter((each) => (each.interval ?? '') !== form.interval)
          expect(others(result.value)).toEqual(others(before))
        }
      }),
      { numRuns: runs(300) },
    )
  })

  test('become exactly what was typed, in the language of the owner, also if it is sent twice', () => {
    const most = fc.bigInt(1n, 2n ** 64n - 1n)
    const count = fc.integer({ min: 1, max: 1e9 })
    fc.assert(
      fc.property(
        interval,
        most,
        count,
        fc.constantFrom(...locales),
        (period, value, payments, locale) => {
          if (period === monthly) return
          const form = {
            interval: period ?? '',
            most: formatAmount(usd(value), locale),
            payments: new Intl.NumberFormat(locale.tag).format(payments),
          }
          const once = withTypedLimit([], form, asset, locale)
          const expected = {
            debitAmount: usd(value),
            payments,
            ...(period && { interval: period }),
          }
          expect(once).toEqual({ ok: true, value: [expected] })
          expect(once.ok && withTypedLimit(once.value, form, asset, locale)).toEqual(once)
        },
      ),
      { numRuns: runs(100) },
    )
  })

  const before: readonly SpendingLimit[] = [
    { debitAmount: usd(5_000), interval: monthly },
    { payments: 5 },
  ]
  test.each([
    ['nothing', '', '', '', { name: 'limitMissing', field: 'own-1-most' }],
    ['more payments', '', '', '6', { name: 'notNarrower', field: 'own-1-payments' }],
    ['a higher amount', monthly, '50.01', '', { name: 'notNarrower', field: 'own-0-most' }],
    ['an amount of zero', monthly, '0', '', { name: 'ownersLimitZero', field: 'own-0-most' }],
    [
      'no payments',
      periods.everyDay,
      '',
      '0',
      { name: 'ownersLimitZero', field: 'own-new-payments' },
    ],
    ['half a payment', '', '', '1.5', { name: 'countUnreadable', field: 'own-1-payments' }],
    [
      'too many',
      periods.everyDay,
      '',
      '1,000,000,001',
      { name: 'countUnreadable', field: 'own-new-payments' },
    ],
    ['no number', periods.everyDay, '1e3', '', { name: 'unreadable', field: 'own-new-most' }],
    ['an unknown period', 'R/2026-12-01T00:00:00Z/P1D', '1', '', 'unchanged'],
  ])('are refused for %s', (_, period, most, payments, problem) => {
    const form = { interval: period, most, payments }
    expect(withTypedLimit(before, form, asset, english)).toEqual({ ok: false, problem })
  })

  test('are not four', () => {
    const three = [...before, { payments: 1, interval: periods.everyDay }]
    const form = { interval: periods.everyWeek, most: '1', payments: '' }
    expect(withTypedLimit(three, form, asset, english)).toEqual({ ok: false, problem: 'unchanged' })
  })

  test('can be lowered in one member, and limit the other', () => {
    const form = { interval: monthly, most: '', payments: '3' }
    const lower = { debitAmount: usd(5_000), payments: 3, interval: monthly }
    expect(withTypedLimit(before, form, asset, english)).toEqual({
      ok: true,
      value: [lower, { payments: 5 }],
    })
  })

  test.each([
    ['everyDay', '2026-12-10', '2026-12-11'],
    ['everyWeek', '2026-12-07', '2026-12-14'],
    ['everyMonth', '2026-12-01', '2027-01-01'],
  ] as const)('apply %s of the calendar', (name, start, end) => {
    const parsed = parseInterval(periods[name])
    const window = parsed.ok && windowAt(parsed.value, Date.parse('2026-12-10T12:00:00Z'))
    expect(window).toEqual({ start: Date.parse(start), end: Date.parse(end) })
  })
})

describe('the asset in which an owner limits what an app debits', () => {
  const alice = { url: 'https://wallet.example/alice', ...asset }
  const euros = { url: 'https://wallet.example/euros', assetCode: 'EUR', assetScale: 2 }
  const pays = (identifier: string, limits = {}): GrantView['access'][number] => ({
    type: 'outgoing-payment',
    actions: ['create'],
    identifier,
    limits,
  })
  test.each([
    ['that of the account', [pays(alice.url)], asset],
    [
      'that of the limit of an unknown account',
      [pays('https://x.example', { debitAmount: usd(1) })],
      asset,
    ],
    [
      'not known for two accounts with different assets',
      [pays(alice.url), pays(euros.url)],
      undefined,
    ],
    ['not known for another account', [pays('https://x.example'), pays(alice.url)], undefined],
    ['not known without payments', [], undefined],
  ])('is %s', (_, access, expected) => {
    const found = debitedAsset({ access }, [alice, euros])
    expect(found && { assetCode: found.assetCode, assetScale: found.assetScale }).toEqual(expected)
  })
})
