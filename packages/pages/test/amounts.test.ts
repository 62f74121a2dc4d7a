import fc from 'fast-check'
import { runs } from 'open-payments-test-support/runs'
import { describe, expect, test } from 'vitest'
import { formatAmount, readAmount } from '../src/amounts.js'

const tags = ['en', 'en-IN', 'de', 'de-AT', 'de-CH', 'es', 'es-MX', 'fr', 'ar', 'ar-EG', 'ar-MA']
const languages = fc.constantFrom(...tags, 'ar-u-nu-latn', 'de-u-nu-arab', 'hi-u-nu-deva')
const valueMax = 2n ** 64n - 1n
const amounts = fc.record({
  value: fc.bigInt({ min: 0n, max: valueMax }).map(String),
  assetCode: fc.constantFrom('USD', 'KWD', 'JPY', 'A B', '1'),
  assetScale: fc.integer({ min: 0, max: 19 }),
})
const in3 = { assetCode: 'KWD', assetScale: 3 }

test.each([
  ['en', '-5', '-0.05 USD'],
  ['de', '-123456', '-1.234,56 USD'],
  ['ar-EG', '-100', '\u061c-١٫٠٠ USD'],
])('a negative amount has the sign of %s: %s', (tag, value, expected) => {
  const shown = formatAmount({ value, assetCode: 'USD', assetScale: 2 }, { tag })
  expect(shown.replace('\u00a0', ' ')).toBe(expected)
})

describe('an amount that an owner types', () => {
  test('is the amount that the pages write in the same language', () => {
    fc.assert(
      fc.property(amounts, languages, (amount, tag) => {
        const written = formatAmount(amount, { tag })
        const [number = ''] = written.split(`\u00a0${amount.assetCode}`)
        expect(readAmount(number, amount, { tag })).toBe(amount.value)
        if (amount.assetCode !== '1') {
          expect(readAmount(` ${written} `, amount, { tag })).toBe(amount.value)
        }
      }),
      { numRuns: runs(500) },
    )
  })

  test('is read as no other amount than the one that the language writes so', () => {
    const text = fc
      .array(fc.constantFrom(..."0123456789.,\u2019' \u00a0\u202f\u066b\u066c\u0661\u0660-"), {
        minLength: 1,
        maxLength: 12,
      })
      .map((characters) => characters.join(''))
    const asset = amounts.map(({ assetScale }) => ({ assetCode: 'KWD', assetScale }))
    /** Without the zeros at the end that may be missing, and with one form of each space and apostrophe. */
    const comparable = (text: string, mark: string) => {
      const plain = text.trim().replace(/\s/g, ' ').replaceAll('\u2019', "'")
      const [whole = '', fraction = ''] = plain.split(mark)
      return `${whole}|${fraction.replace(/[0\u0660]+$/, '')}`
    }
    fc.assert(
      fc.property(
        text,
        asset,
        fc.constantFrom(...tags),
        (typed, { assetCode, assetScale }, tag) => {
          const value = readAmount(typed, { assetCode, assetScale }, { tag })
          if (value === undefined) return
          const [, whole, fraction = ''] =
            /^ *(\d+)[.,](\d+) *$/.exec(typed.replace(/\s/g, ' ')) ?? []
          const isDecimal = whole !== undefined && fraction.length !== 3
          if (isDecimal && value === `${BigInt(whole + fraction.padEnd(assetScale, '0'))}`) return
          const system = /[\u0660-\u0669]/.test(typed) ? 'arab' : 'latn'
          const written = new Intl.Locale(tag, { numberingSystem: system }).toString()
          const parts = new Intl.NumberFormat(written).formatToParts(0.5)
          const mark = parts.find(({ type }) => type === 'decimal')?.value ?? ''
          const forms = (['auto', 'always', false] as const).map((useGrouping) => {
            const whole = new Intl.NumberFormat(written, {
              useGrouping,
            } as Intl.NumberFormatOptions)
            const digits = value.padStart(assetScale + 1, '0')
            const decimals = new Intl.NumberFormat(written, { useGrouping: false })
            const fraction = [...digits.slice(digits.length - assetScale)]
              .slice(0, assetScale)
              .map((digit) => decimals.format(Number(digit)))
            const units = BigInt(digits.slice(0, digits.length - assetScale))
            return comparable(`${whole.format(units)}${mark}${fraction.join('')}`, mark)
          })
          expect(forms).toContain(comparable(typed, mark))
        },
      ),
      { numRuns: runs(2_000) },
    )
  })

  test.each([
    ['de', '1.000', '1000000'],
    ['en', '1,000', '1000000'],
    ['de', '1,000', '1000'],
    ['en', '1.000', '1000'],
    ['de', '1000', '1000000'],
    ['de', '1.000,5', '1000500'],
    ['de-AT', '1 000,5', '1000500'],
    ['de-CH', "1'000.5", '1000500'],
    ['es', '1.000', '1000000'],
    ['ar', '1,000.5', '1000500'],
    ['ar-EG', '\u0661\u066c\u0660\u0660\u0660\u066b\u0665', '1000500'],
    ['ar', '\u0661\u0660\u066b\u0665', '10500'],
    ['en', ' 12.5 KWD ', '12500'],
    ['en', '12,5', '12500'],
    ['en', '12,50', '12500'],
    ['de', '12.5 KWD', '12500'],
    ['ar-EG', '12,5', '12500'],
  ])('in %s as %j is %s thousandths', (tag, text, value) => {
    expect(readAmount(text, in3, { tag })).toBe(value)
  })

  test.each([
    ['en', '12,5,0', 'two marks of another language'],
    ['en', '01,5', 'a zero at the beginning'],
    ['de', '1.0000', 'more decimals than the asset has, after another mark'],
    ['en', '1\u066c000', 'the mark of other digits'],
    ['en', '1\u0661', 'digits of two kinds'],
    ['en', '1,0000', 'a group that is too long'],
    ['en', '1,,000', 'an empty group'],
    ['en', '1.000,5', 'marks in another order'],
    ['en', '1.2.3', 'two decimal marks'],
    ['en', '1.2345', 'more decimals than the asset has'],
    ['en', '.5', 'no whole part'],
    ['en', '5.', 'no decimals after the mark'],
    ['en', '-1', 'a sign'],
    ['en', '1e3', 'an exponent'],
    ['en', '1 USD', 'another asset'],
    ['en', '18446744073709551.616', 'more than 64 bits'],
    ['en', '9'.repeat(1_000_000), 'a million digits'],
    ['en', '', 'nothing'],
  ])('in %s as %j is refused: %s', (tag, text) => {
    expect(readAmount(text, in3, { tag })).toBeUndefined()
  })
})
