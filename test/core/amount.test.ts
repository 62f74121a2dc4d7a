import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  type Amount,
  amountValueMax,
  parseValue,
  sameAmount,
  sameAsset,
  valueOr,
} from '../../src/core/amount.js'

/** Reads a decimal digit by digit, independently of `BigInt(text)`. */
function onPaper(text: string): bigint {
  let value = 0n
  for (const digit of text) value = value * 10n + BigInt(digit.charCodeAt(0) - 48)
  return value
}

const uint64 = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n })

const notTheOneSpelling: readonly (readonly [what: string, text: string])[] = [
  ['an empty string', ''],
  ['a single space', ' '],
  ['surrounding spaces', ' 5 '],
  ['a trailing newline', '5\n'],
  ['a leading newline', '\n5'],
  ['a trailing NUL', '5\u0000'],
  ['hexadecimal', '0x10'],
  ['octal', '0o17'],
  ['binary', '0b11'],
  ['a BigInt literal', '5n'],
  ['a numeric separator', '1_000'],
  ['a thousands separator', '1,000'],
  ['negative zero', '-0'],
  ['a negative number', '-1'],
  ['a plus sign', '+1'],
  ['a fraction', '1.0'],
  ['a trailing decimal point', '1.'],
  ['an exponent', '1e3'],
  ['leading zeros', '007'],
  ['two zeros', '00'],
  ['2^64', '18446744073709551616'],
  ['the largest of 20 digits', '99999999999999999999'],
  ['21 digits', '184467440737095516150'],
  ['one thousand digits', '9'.repeat(1000)],
  ['Arabic-Indic digits', '\u0661\u0662\u0663'],
  ['full-width digits', '\uff11\uff12'],
  ['a superscript', '5\u00b2'],
  ['a byte order mark', '\ufeff5'],
  ['a no-break space', '\u00a05'],
  ['infinity', 'Infinity'],
  ['not a number', 'NaN'],
  ['letters', 'abc'],
]

describe('parsing an amount value', () => {
  test.each(notTheOneSpelling)('rejects %s', (_, text) => {
    expect(parseValue(text)).toBeUndefined()
    expect([valueOr(0n, text), valueOr(7n, text)]).toEqual([0n, 7n])
  })

  test.each([
    ['0', 0n],
    ['1', 1n],
    ['9', 9n],
    ['10', 10n],
    // A double cannot distinguish this value from its neighbor.
    ['9007199254740993', 9_007_199_254_740_993n],
    ['10000000000000000000', 10n ** 19n],
    ['18446744073709551614', 2n ** 64n - 2n],
    ['18446744073709551615', 2n ** 64n - 1n],
  ])('reads %s exactly', (text, value) => {
    expect([parseValue(text), valueOr(7n, text)]).toEqual([value, value])
  })

  test('the largest value is the largest unsigned 64-bit integer', () => {
    expect(amountValueMax).toBe(2n ** 64n - 1n)
  })

  test('every uint64 has one spelling and survives a round trip', () => {
    fc.assert(
      fc.property(uint64, (value) => {
        const text = value.toString()
        expect(onPaper(text)).toBe(value)
        expect(parseValue(text)).toBe(value)
      }),
      { numRuns: 1000 },
    )
  })

  test('rejects every value above the uint64 range, however close', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 2n ** 64n, max: 2n ** 80n }), (value) => {
        expect(parseValue(value.toString())).toBeUndefined()
      }),
      { numRuns: 500 },
    )
  })

  test('writes every accepted text back unchanged', () => {
    const digitsMostly = fc.string({
      unit: fc.constantFrom(...'0123456789', '-', '+', '.', ' ', 'x', 'e', '\u0663'),
      maxLength: 22,
    })
    fc.assert(
      fc.property(digitsMostly, (text) => {
        const value = parseValue(text)
        const asciiNumber = text.length > 0 && [...text].every((c) => c >= '0' && c <= '9')
        const wanted =
          asciiNumber && (text === '0' || text[0] !== '0') && onPaper(text) < 2n ** 64n
            ? onPaper(text)
            : undefined
        expect(value).toBe(wanted)
        if (value !== undefined) expect(value.toString()).toBe(text)
      }),
      { numRuns: 3000 },
    )
  })
})

describe('comparing amounts', () => {
  const amount: Amount = { value: '2500', assetCode: 'USD', assetScale: 2 }

  test.each([
    ['an equal amount', amount, { asset: true, amount: true }],
    ['another value', { ...amount, value: '2501' }, { asset: true, amount: false }],
    ['another asset code', { ...amount, assetCode: 'EUR' }, { asset: false, amount: false }],
    ['a lower-case asset code', { ...amount, assetCode: 'usd' }, { asset: false, amount: false }],
    // Both are 25.00 dollars, but amounts are never converted between scales.
    [
      'another scale with an equal worth',
      { value: '250000', assetCode: 'USD', assetScale: 4 },
      { asset: false, amount: false },
    ],
    ['another scale', { ...amount, assetScale: 3 }, { asset: false, amount: false }],
  ])('compares %s', (_, other, same) => {
    expect(sameAsset(amount, other)).toBe(same.asset)
    expect(sameAsset(other, amount)).toBe(same.asset)
    expect(sameAmount(amount, other)).toBe(same.amount)
    expect(sameAmount(other, amount)).toBe(same.amount)
  })

  test('distinguishes values beyond the precision of a double', () => {
    const a = { ...amount, value: '9007199254740992' }
    const b = { ...amount, value: '9007199254740993' }
    expect(sameAmount(a, b)).toBe(false)
    expect((parseValue(b.value) ?? 0n) - (parseValue(a.value) ?? 0n)).toBe(1n)
  })
})
