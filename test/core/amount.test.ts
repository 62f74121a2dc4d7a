import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  type Amount,
  amountValueMax,
  parseValue,
  sameAmount,
  sameAsset,
} from '../../src/core/amount.js'

/** Reads a decimal digit by digit, as on paper: nothing in common with `BigInt(text)`. */
function onPaper(text: string): bigint {
  let value = 0n
  for (const digit of text) value = value * 10n + BigInt(digit.charCodeAt(0) - 48)
  return value
}

const uint64 = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n })

const notTheOneSpelling: readonly (readonly [what: string, text: string])[] = [
  ['nothing at all', ''],
  ['a space alone', ' '],
  ['spaces around', ' 5 '],
  ['a trailing newline', '5\n'],
  ['a leading newline', '\n5'],
  ['a trailing NUL', '5\u0000'],
  ['hexadecimal', '0x10'],
  ['octal', '0o17'],
  ['binary', '0b11'],
  ['a BigInt literal', '5n'],
  ['a digit separator', '1_000'],
  ['a thousands separator', '1,000'],
  ['minus zero', '-0'],
  ['a negative number', '-1'],
  ['a plus sign', '+1'],
  ['a fraction', '1.0'],
  ['a trailing point', '1.'],
  ['an exponent', '1e3'],
  ['leading zeros', '007'],
  ['two zeros', '00'],
  ['2^64', '18446744073709551616'],
  ['the largest of 20 digits', '99999999999999999999'],
  ['21 digits', '184467440737095516150'],
  ['a thousand digits', '9'.repeat(1000)],
  ['Arabic-Indic digits', '\u0661\u0662\u0663'],
  ['full-width digits', '\uff11\uff12'],
  ['a superscript', '5\u00b2'],
  ['a byte order mark', '\ufeff5'],
  ['a no-break space', '\u00a05'],
  ['infinity', 'Infinity'],
  ['not a number', 'NaN'],
  ['letters', 'abc'],
]

describe('reading the value of an amount', () => {
  test.each(notTheOneSpelling)('%s is refused', (_, text) => {
    expect(parseValue(text)).toBeUndefined()
  })

  test.each([
    ['0', 0n],
    ['1', 1n],
    ['9', 9n],
    ['10', 10n],
    // One more than what a double can tell from its neighbour.
    ['9007199254740993', 9_007_199_254_740_993n],
    ['10000000000000000000', 10n ** 19n],
    ['18446744073709551614', 2n ** 64n - 2n],
    ['18446744073709551615', 2n ** 64n - 1n],
  ])('%s is accepted to the last unit', (text, value) => {
    expect(parseValue(text)).toBe(value)
  })

  test('the largest value is that of an unsigned 64-bit integer', () => {
    expect(amountValueMax).toBe(2n ** 64n - 1n)
  })

  test('every uint64 is written in one way and read back as it was', () => {
    fc.assert(
      fc.property(uint64, (value) => {
        const text = value.toString()
        expect(onPaper(text)).toBe(value)
        expect(parseValue(text)).toBe(value)
      }),
      { numRuns: 1000 },
    )
  })

  test('nothing above a uint64 is read, however close', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 2n ** 64n, max: 2n ** 80n }), (value) => {
        expect(parseValue(value.toString())).toBeUndefined()
      }),
      { numRuns: 500 },
    )
  })

  test('whatever is read is written again exactly as it came', () => {
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
    ['the same', amount, { asset: true, amount: true }],
    ['another value', { ...amount, value: '2501' }, { asset: true, amount: false }],
    ['another asset code', { ...amount, assetCode: 'EUR' }, { asset: false, amount: false }],
    ['the code in lower case', { ...amount, assetCode: 'usd' }, { asset: false, amount: false }],
    // 25.00 dollars either way: an amount is a claim in one unit, and is never converted.
    [
      'another scale, worth as much',
      { value: '250000', assetCode: 'USD', assetScale: 4 },
      { asset: false, amount: false },
    ],
    ['another scale', { ...amount, assetScale: 3 }, { asset: false, amount: false }],
  ])('%s', (_, other, same) => {
    expect(sameAsset(amount, other)).toBe(same.asset)
    expect(sameAsset(other, amount)).toBe(same.asset)
    expect(sameAmount(amount, other)).toBe(same.amount)
    expect(sameAmount(other, amount)).toBe(same.amount)
  })

  test('values beyond the precision of a double are told apart', () => {
    const a = { ...amount, value: '9007199254740992' }
    const b = { ...amount, value: '9007199254740993' }
    expect(sameAmount(a, b)).toBe(false)
    expect((parseValue(b.value) ?? 0n) - (parseValue(a.value) ?? 0n)).toBe(1n)
  })
})
