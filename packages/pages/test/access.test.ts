import fc from 'fast-check'
import type { AccessItem, Amount, Limits, SpendingTotal } from 'open-payments-server'
import {
  type AccessAction,
  type AccessType,
  parseInterval,
  windowAt,
} from 'open-payments-server/core'
import { describe, expect, test } from 'vitest'
import { describeItem, outlookOf } from '../src/access.js'
import { localeFor } from '../src/locale.js'
import { textOf } from './text.js'

const alice = 'https://wallet.example/alice'
const usd = (value: string): Amount => ({ value, assetCode: 'USD', assetScale: 2 })

function outgoing(limits?: Limits, actions: AccessAction[] = ['create']): AccessItem {
  const item = { type: 'outgoing-payment', actions, identifier: alice } as const
  return limits === undefined ? item : { ...item, limits }
}

const now = Date.UTC(2026, 10, 25)

/** What an item says in a language, with plain spaces in place of those at which no line breaks. */
function describeAccess(item: AccessItem, language = 'en', timeZone = 'UTC'): string[] {
  const locale = localeFor({ headers: [] }, { language, timeZone })
  return describeItem(item, { locale, now }).map(textOf)
}

function said(item: AccessItem, ...locale: string[]): string {
  return describeAccess(item, ...locale).join('\n')
}

/** Every action of Open Payments 1.3, by type. */
const actions: readonly (readonly [AccessType, AccessAction])[] = [
  ...(['create', 'complete', 'read', 'read-all', 'list', 'list-all'] as const).map(
    (action) => ['incoming-payment', action] as const,
  ),
  ...(['create', 'read', 'read-all', 'list', 'list-all'] as const).map(
    (action) => ['outgoing-payment', action] as const,
  ),
  ...(['create', 'read', 'read-all'] as const).map((action) => ['quote', action] as const),
]

describe('the description of access', () => {
  test.each(actions)('uses no protocol terms: %s %s', (type, action) => {
    const [line = ''] = describeAccess({ type, actions: [action] })
    expect(line).toMatch(/^[a-z ]{10,}$/)
    expect(line).not.toMatch(/read-all|list-all|incoming|outgoing/)
  })

  test('differs for every action', () => {
    const lines = actions.map(([type, action]) => describeAccess({ type, actions: [action] })[0])
    expect(new Set(lines).size).toBe(actions.length)
  })

  test('names the account and the receiver', () => {
    const receiver = 'https://wallet.example/incoming-payments/1'
    expect(said(outgoing({ receiver, debitAmount: usd('1') }))).toContain(alice)
    expect(said(outgoing({ receiver, debitAmount: usd('1') }))).toContain(receiver)
  })

  test('says whether it covers all payments or only those of the app', () => {
    const item = { type: 'incoming-payment', identifier: alice } as const
    expect(said({ ...item, actions: ['read-all'] })).toMatch(/\b(every|all)\b/)
    expect(said({ ...item, actions: ['read'] })).not.toMatch(/\b(every|all)\b/)
  })
})

describe('an amount', () => {
  test.each([
    ['0', 2, '0.00 USD'],
    ['5', 2, '0.05 USD'],
    ['50', 2, '0.50 USD'],
    ['2500', 2, '25.00 USD'],
    ['123456789', 2, '1,234,567.89 USD'],
    ['7', 0, '7 USD'],
    ['0', 0, '0 USD'],
    ['1', 9, '0.000000001 USD'],
    ['1234567890', 9, '1.234567890 USD'],
    ['18446744073709551615', 2, '184,467,440,737,095,516.15 USD'],
  ])('of %s at scale %i is %s', (value, assetScale, expected) => {
    const debitAmount = { value, assetCode: 'USD', assetScale }
    expect(said(outgoing({ debitAmount }))).toContain(`at most ${expected} is`)
  })

  test('is exact at every scale', () => {
    const amount = fc.record({
      value: fc.bigInt(0n, 2n ** 64n - 1n),
      assetScale: fc.integer({ min: 0, max: 255 }),
    })
    fc.assert(
      fc.property(amount, ({ value, assetScale }) => {
        const debitAmount = { value: `${value}`, assetCode: 'XTS', assetScale }
        const [, whole = '', fraction = ''] =
          /(?<!\S)(\d+)(?:\.(\d+))? XTS/.exec(
            said(outgoing({ debitAmount })).replaceAll(',', ''),
          ) ?? []
        expect(fraction).toHaveLength(assetScale)
        expect(whole).toMatch(/^(0|[1-9]\d*)$/)
        expect(BigInt(whole + fraction)).toBe(value)
      }),
      { numRuns: 500 },
    )
  })

  test('without an interval applies to all payments together', () => {
    expect(said(outgoing({ debitAmount: usd('2500') }))).toMatch(/\bin all\b/)
    const interval = 'R/2026-12-01T00:00:00Z/P1M'
    expect(said(outgoing({ debitAmount: usd('2500'), interval }))).not.toMatch(/\bin all\b/)
  })
})

describe('a right to pay without a limit', () => {
  test.each<[string, Limits | undefined]>([
    ['no limits', undefined],
    ['empty limits', {}],
    ['a receiver only', { receiver: 'https://wallet.example/incoming-payments/1' }],
    ['an interval only', { interval: 'R/2026-12-01T00:00:00Z/P1M' }],
  ])('is described as such: %s', (_, limits) => {
    expect(said(outgoing(limits))).toMatch(/without any limit/)
  })

  test('is not mentioned with a limit, or without a right to pay', () => {
    expect(said(outgoing({ debitAmount: usd('1') }))).not.toMatch(/without any limit/)
    expect(said({ type: 'quote', actions: ['create'] })).not.toMatch(/limit/)
    expect(said({ type: 'incoming-payment', actions: ['create'] })).not.toMatch(/limit/)
  })
})

describe('an interval', () => {
  const every = (interval: string) => said(outgoing({ debitAmount: usd('2500'), interval }))

  test.each<[string, RegExp[]]>([
    [
      'R12/2026-12-01T00:00:00Z/P1M',
      [/every month/, /12 times/, /from Tue, December 1, 2026, 00:00/],
    ],
    ['R/2026-12-01T00:00:00Z/P1D', [/every day/, /from Tue, December 1, 2026/]],
    ['R-1/2026-12-01T00:00:00Z/P2W', [/every 2 weeks/]],
    ['R3/2026-12-01T00:00:00Z/P1Y', [/every year/, /3 times/]],
    ['R/2026-12-01T00:00:00Z/PT1H', [/every hour/]],
    ['R/2026-12-01T00:00:00Z/PT30M', [/every 30 minutes/]],
    ['R/2026-12-01T00:00:00Z/PT90M', [/every 90 minutes/]],
    ['R/2026-12-01T00:00:00Z/PT1S', [/every second/]],
    ['R/2026-12-01T00:00:00Z/2026-12-08T00:00:00Z', [/every week/]],
    ['R/2026-12-01T00:00:00Z/2026-12-15T00:00:00Z', [/every 2 weeks/]],
    ['R/2026-12-01T00:00:00Z/2026-12-01T01:30:00Z', [/every 1 hour and 30 minutes/]],
    ['R/2026-12-01T00:00:00Z/2026-12-01T00:01:00.5Z', [/every 1 minute and 0.5 seconds/]],
    ['R/2026-12-01T00:00:00Z/P1M10D', [/every 1 month and 10 days/]],
    ['R/2026-12-01T13:30:00+02:00/P1M', [/11:30/]],
    ['R4/P1M/2027-04-01T00:00:00Z', [/every month/, /4 times/, /until Thu, April 1, 2027, 00:00/]],
  ])('of %s is described in words', (interval, expected) => {
    for (const pattern of expected) expect(every(interval)).toMatch(pattern)
  })

  test.each([
    [
      'R12/2026-01-31T00:00:00Z/P1M',
      'every month, 12 times, the first time from Sat, January 31, 2026, 00:00 UTC until Sat, February 28, 2026, 00:00 UTC',
    ],
    [
      'R/2026-12-01T13:30:00+02:00/P1W',
      'every week, the first time from Tue, December 1, 2026, 11:30 UTC until Tue, December 8, 2026, 11:30 UTC',
    ],
    [
      'R4/P1M/2027-03-31T00:00:00Z',
      'every month, 4 times, the last time from Sun, February 28, 2027, 00:00 UTC until Wed, March 31, 2027, 00:00 UTC',
    ],
    [
      'R3/2026-12-01T00:00:00Z/2026-12-02T12:00:00Z',
      'every 1 day and 12 hours, 3 times, the first time from Tue, December 1, 2026, 00:00 UTC until Wed, December 2, 2026, 12:00 UTC',
    ],
    [
      'R1/2026-12-01T00:00:00Z/P1D',
      'every day, once, from Tue, December 1, 2026, 00:00 UTC until Wed, December 2, 2026, 00:00 UTC',
    ],
    ['R/P1M/1970-01-01T00:00:00Z', 'every month, which never happens'],
  ])('of %s has one window that determines the others', (interval, expected) => {
    const line = `at most 25.00 USD is debited from your account ${expected}`
    expect(every(interval).split('\n').at(-1)).toBe(line)
  })

  test('without an amount is described too', () => {
    const interval = 'R2/2026-12-01T00:00:00Z/P1M'
    expect(said(outgoing({ interval }))).toMatch(/every month, 2 times/)
  })
})

describe('in other languages', () => {
  const item = outgoing({
    debitAmount: usd('123456789'),
    interval: 'R12/2026-12-01T00:00:00Z/P1M',
  })

  test.each([
    ['en-GB', 'UTC', '1,234,567.89 USD', 'from Tue, 1 December 2026, 00:00 UTC'],
    ['de', 'Europe/Berlin', '1.234.567,89 USD', 'von Di., 1. Dezember 2026, 01:00 MEZ'],
    ['es', 'UTC', '1.234.567,89 USD', 'desde mar, 1 de diciembre de 2026, 00:00 UTC'],
    ['ar-EG', 'UTC', '١٬٢٣٤٬٥٦٧٫٨٩ USD', '١ ديسمبر ٢٠٢٦'],
  ])('%s formats the amount, and the date in %s', (language, timeZone, amount, date) => {
    const text = said(item, language, timeZone)
    expect(text).toContain(amount)
    expect(text).toContain(date)
  })

  test.each([
    ['de', 'P1M', /jeden Monat, 12-mal, zum ersten Mal von/],
    ['de', 'P2W', /je Zeitraum \(2 Wochen\)/],
    ['es', 'P1M', /cada mes, 12 veces, la primera vez desde/],
    ['es', 'P2W', /cada 2 semanas/],
    ['ar', 'P1M', /كل شهر، 12 مرة، المرة الأولى من/],
    ['ar', 'P2W', /في كل فترة/],
    ['de', '2026-12-08T00:00:00Z', /jede Woche/],
    ['es', '2026-12-08T00:00:00Z', /cada semana/],
    ['ar', '2026-12-08T00:00:00Z', /كل أسبوع/],
    ['de', '2026-12-15T00:00:00Z', /je Zeitraum \(2 Wochen\)/],
    ['es', '2026-12-15T00:00:00Z', /cada 2 semanas/],
    ['ar', '2026-12-15T00:00:00Z', /في كل فترة \(.?أسبوعان.?\)/],
  ])('%s says how often: %s', (language, duration, expected) => {
    const interval = `R12/2026-12-01T00:00:00Z/${duration}`
    expect(said(outgoing({ debitAmount: usd('1'), interval }), language)).toMatch(expected)
  })

  test.each(['de', 'es', 'ar'])('%s has words of its own for every action', (language) => {
    const lines = actions.map(([type, action]) => said({ type, actions: [action] }, language))
    const inEnglish = actions.map(([type, action]) => said({ type, actions: [action] }))
    expect(new Set([...lines, ...inEnglish]).size).toBe(2 * actions.length)
  })

  test.each(['en', 'ar'])('%s isolates text of the other direction', (language) => {
    const locale = localeFor({ headers: [] }, { language })
    expect(describeItem(item, { locale, now }).join('')).toContain(`<bdi>${alice}</bdi>`)
  })

  test('an asset that is not a currency keeps its code', () => {
    const debitAmount = { value: '1234567', assetCode: 'POINTS', assetScale: 3 }
    expect(said(outgoing({ debitAmount }), 'de')).toContain('1.234,567 POINTS')
  })
})

describe('the outlook of a total', () => {
  const outlook = (interval: string | undefined, intervalCounting?: 'repetitions') => {
    const limits = { debitAmount: usd('2500'), ...(interval && { interval }) }
    const total: SpendingTotal = { identifier: alice, items: 1, ...limits }
    const locale = localeFor({ headers: [] })
    return outlookOf(total, [outgoing(limits)], { locale, now, intervalCounting })
  }

  test.each<[string | undefined, number | undefined, string | undefined]>([
    [undefined, undefined, '2500'],
    ['R12/2026-12-01T00:00:00Z/P1M', 12, '30000'],
    ['R12/2026-09-01T00:00:00Z/P1M', 10, '25000'],
    ['R1/2026-11-01T00:00:00Z/P1M', 1, '2500'],
    ['R3/2026-01-01T00:00:00Z/P1M', 0, '0'],
    ['R/2026-12-01T00:00:00Z/P1M', undefined, undefined],
    ['R/P1M/2027-02-01T00:00:00Z', 3, '7500'],
    ['R2/P1M/2027-02-01T00:00:00Z', 2, '5000'],
    ['R/P1M/1970-01-01T00:00:00Z', 0, '0'],
    ['R999999/2026-12-01T00:00:00Z/PT1S', 999_999, '2499997500'],
    ['R/PT1S/2027-02-01T00:00:00Z', undefined, undefined],
    ['nonsense', undefined, undefined],
  ])('of the interval %s has %s windows and adds up to %s', (interval, windows, total) => {
    const found = outlook(interval)
    expect([found.windows, found.total?.value]).toEqual([windows, total])
  })

  test('counts a window more, where the server counts repetitions', () => {
    expect(outlook('R12/2026-12-01T00:00:00Z/P1M', 'repetitions').total?.value).toBe('32500')
  })

  test('is never less than what any sequence of payments can spend', () => {
    const interval = fc.tuple(
      fc.integer({ min: 1, max: 30 }),
      fc.integer({ min: -40, max: 40 }),
      fc.constantFrom('P1D', 'P1W', 'P1M', 'PT36H'),
      fc.boolean(),
    )
    fc.assert(
      fc.property(interval, ([count, days, duration, isBackwards]) => {
        const at = new Date(now + days * 86_400_000).toISOString()
        const text = `R${count}/${isBackwards ? `${duration}/${at}` : `${at}/${duration}`}`
        const parsed = parseInterval(text)
        if (!parsed.ok) throw new Error(parsed.problem)
        // One payment of the whole limit in each window in which there is an hour to pay.
        const starts = new Set<number>()
        for (let time = now; time < now + 3 * 365 * 86_400_000; time += 3_600_000) {
          const window = windowAt(parsed.value, time)
          if (window !== undefined) starts.add(window.start)
        }
        expect(outlook(text).total?.value).toBe(String(2500 * starts.size))
      }),
      { numRuns: 10 },
    )
  })

  test('names the receivers only if every item has one', () => {
    const one = outgoing({ receiver: 'https://b.example/1', debitAmount: usd('1') })
    const other = outgoing({ debitAmount: usd('2') })
    const total = { identifier: alice, items: 1, debitAmount: usd('1') }
    const describing = { locale: localeFor({ headers: [] }), now }
    expect(outlookOf(total, [one], describing).receivers).toEqual(['https://b.example/1'])
    expect(outlookOf(total, [one, other], describing).receivers).toEqual([])
  })
})
