import fc from 'fast-check'
import { runs } from 'open-payments-test-support/runs'
import { describe, expect, test } from 'vitest'
import { formatAmount } from '../src/amounts.js'
import { limitField, limitOf, lowered } from '../src/limits.js'
import { localeFor } from '../src/locale.js'
import { textOf } from './text.js'

const locales = ['en', 'de', 'es', 'ar-EG'].map((language) =>
  localeFor({ headers: [] }, { language }),
)
const asset = { assetCode: 'USD', assetScale: 2 }
const item = { type: 'outgoing-payment', actions: ['create', 'read'] } as const
const value = fc.bigInt(0n, 2n ** 64n - 1n)
const key = fc.constantFrom('debitAmount', 'receiveAmount')

describe('the limit of an item', () => {
  const amount = { value: '1', ...asset }
  test.each([
    ['a payment', { ...item, limits: { debitAmount: amount } }, amount],
    ['what arrives', { ...item, limits: { receiveAmount: amount } }, amount],
    ['no amount', { ...item, limits: { receiver: 'https://b.example' } }, undefined],
    ['no limits', item, undefined],
    ['no right to pay', { ...item, actions: ['read'] as const }, undefined],
  ])('can be lowered if it is of %s', (_, access, expected) => {
    expect(limitOf(access)).toEqual(expected)
  })

  test('becomes exactly what the owner typed if that is lower and not zero, and nothing else', () => {
    fc.assert(
      fc.property(
        value,
        value,
        key,
        fc.constantFrom(...locales),
        (limited, typed, counted, locale) => {
          const limit = { value: `${limited}`, ...asset }
          const access = { ...item, limits: { [counted]: limit, receiver: 'https://b.example' } }
          const text = formatAmount({ value: `${typed}`, ...asset }, locale)
          const problem = typed === 0n ? 'limitZero' : typed >= limited && 'notNarrower'
          const lower = { ...limit, value: `${typed}` }
          const expected = { ...access, limits: { ...access.limits, [counted]: lower } }
          expect(lowered(access, limit, text, locale)).toEqual(problem || expected)
        },
      ),
      { numRuns: runs(200) },
    )
  })

  test('never becomes higher, whatever is typed', () => {
    const typed = fc.oneof(
      fc.string(),
      fc
        .array(fc.constantFrom(...'0159.,-+e \u0661\u066b'), { maxLength: 8 })
        .map((all) => all.join('')),
    )
    fc.assert(
      fc.property(value, typed, fc.constantFrom(...locales), (limited, text, locale) => {
        const limit = { value: `${limited}`, ...asset }
        const lower = lowered({ ...item, limits: { debitAmount: limit } }, limit, text, locale)
        if (typeof lower === 'string') return
        const { value: left = '' } = lower.limits?.debitAmount ?? {}
        expect(BigInt(left) > 0n && BigInt(left) < limited).toBe(true)
      }),
      { numRuns: runs(300) },
    )
  })
})

test('a field repeats what was typed, escaped, and says what is wrong with it', () => {
  const [locale] = locales
  if (locale === undefined) return expect.fail()
  const problem = { name: 'unreadable', field: 'most' } as const
  const base = { field: 'most', limit: { value: '2500', ...asset } }
  const shown = `${limitField({ ...base, typed: '"<b>\u202e', problem }, locale)}`
  expect(shown).toContain('value="&#34;&#60;b&#62;\ufffd"')
  expect(shown).toMatch(/<input id="most"[^>]* aria-invalid="true" aria-describedby="most-problem"/)
  expect(shown).toContain('id="most-problem"')
  expect(textOf(shown)).toContain('Your limit, lower than 25.00 USD Please write')
  const other = `${limitField({ ...base, problem: { ...problem, field: 'other' } }, locale)}`
  expect(other).not.toMatch(/problem|aria-invalid/)
})
