import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  decodeUtf8,
  encodeUtf8,
  fromBase64,
  fromBase64url,
  sameBytes,
  toBase64,
  toBase64url,
} from '../../src/util/bytes.js'
import { runs } from '../support/runs.js'
import { unicodeText } from '../support/unicode-text.js'

const urlAlphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
const standardAlphabet = `${urlAlphabet.slice(0, 62)}+/`

/** Text that resembles base64: mostly digits of either alphabet, mixed with padding and noise. */
const nearBase64 = fc
  .array(
    fc.oneof(
      { weight: 20, arbitrary: fc.constantFrom(...standardAlphabet, '-', '_') },
      {
        weight: 2,
        arbitrary: fc.constantFrom('=', '==', '*', ' ', '\n', 'é', '\u0100', '\u{1f4b8}'),
      },
    ),
    { maxLength: 24 },
  )
  .map((parts) => parts.join(''))

describe('base64', () => {
  test('both alphabets match the output of the platform', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 70 }), (bytes) => {
        expect(toBase64url(bytes)).toBe(Buffer.from(bytes).toString('base64url'))
        expect(toBase64(bytes)).toBe(Buffer.from(bytes).toString('base64'))
      }),
      { numRuns: runs(500) },
    )
  })

  test('encoding and decoding any view of a buffer returns the same bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 3, maxLength: 70 }), (bytes) => {
        const view = bytes.subarray(2)
        expect([...(fromBase64url(toBase64url(view)) ?? [])]).toEqual([...view])
        expect([...(fromBase64(toBase64(view)) ?? [])]).toEqual([...view])
      }),
      { numRuns: runs(300) },
    )
  })

  test('empty bytes encode to an empty string, and decode back', () => {
    expect(toBase64(new Uint8Array())).toBe('')
    expect(toBase64url(new Uint8Array())).toBe('')
    expect(fromBase64('')).toEqual(new Uint8Array())
    expect(fromBase64url('')).toEqual(new Uint8Array())
  })

  test('only the canonical spelling is decoded', () => {
    fc.assert(
      fc.property(nearBase64, (text) => {
        const url = Buffer.from(text, 'base64url')
        const standard = Buffer.from(text, 'base64')
        const isUrl = url.toString('base64url') === text
        const isStandard = standard.toString('base64') === text
        expect(fromBase64url(text)).toEqual(isUrl ? new Uint8Array(url) : undefined)
        expect(fromBase64(text)).toEqual(isStandard ? new Uint8Array(standard) : undefined)
      }),
      { numRuns: runs(3000) },
    )
  })

  test.each([
    [1, 'A'],
    [2, 'AA'],
  ])('a last character with stray bits is refused after %i valid ones', (others, text) => {
    // With 1 character before the last, 4 bits remain; with 2 characters, 2 bits remain.
    const strayBits = others === 1 ? 4 : 2
    for (const [value, digit] of [...urlAlphabet].entries()) {
      const canonical = value % 2 ** strayBits === 0
      expect(fromBase64url(text + digit) !== undefined, text + digit).toBe(canonical)
    }
  })

  test.each([
    'AAA',
    'AA',
    'A',
    'AA=',
    'A===',
    '====',
    '==',
    'A=AA',
    'AA=A',
    'AAAA====',
    'AB==',
    'AAB=',
    'AA-_',
    ' AAA',
    'AA==\n',
    'AB*CD===',
  ])('%j is not base64 with padding', (text) => {
    expect(fromBase64(text)).toBeUndefined()
  })

  test.each(['A', 'AAAAA', 'AA==', 'AAA=', 'AA+/', 'AB', 'AAB', ' AA', 'AA\n', 'ÀA'])(
    '%j is not base64url without padding',
    (text) => {
      expect(fromBase64url(text)).toBeUndefined()
    },
  )
})

describe('UTF-8', () => {
  test('text without lone surrogates survives a round trip', () => {
    fc.assert(
      fc.property(unicodeText(), (text) => {
        expect(decodeUtf8(encodeUtf8(text))).toBe(text)
        expect([...encodeUtf8(text)]).toEqual([...Buffer.from(text)])
      }),
      { numRuns: runs(300) },
    )
  })

  test('a byte order mark is kept', () => {
    expect(decodeUtf8(Uint8Array.of(0xef, 0xbb, 0xbf, 0x61))).toBe('\ufeffa')
  })

  test.each([
    ['a lone continuation byte', '80'],
    ['a truncated sequence', 'e282'],
    ['an overlong slash', 'c0af'],
    ['an overlong U+0000', 'c080'],
    ['a surrogate', 'eda080'],
    ['a code point above U+10FFFF', 'f4908080'],
    ['Latin-1', '6de972'],
    ['UTF-16', 'fffe6100'],
  ])('refuses %s', (_, hex) => {
    expect(decodeUtf8(Buffer.from(hex, 'hex'))).toBeUndefined()
  })
})

describe('sameBytes', () => {
  test('compares bytes correctly wherever they differ', () => {
    const pair = fc.oneof(
      fc.tuple(fc.uint8Array({ maxLength: 8 }), fc.uint8Array({ maxLength: 8 })),
      fc.uint8Array({ maxLength: 8 }).map((bytes) => [bytes, bytes.slice()] as const),
      fc
        .tuple(
          fc.uint8Array({ minLength: 1, maxLength: 40 }),
          fc.nat(39),
          fc.integer({ min: 1, max: 255 }),
        )
        .map(([bytes, at, difference]) => {
          const other = bytes.slice()
          const index = at % bytes.length
          other[index] = (other[index] ?? 0) ^ difference
          return [bytes, other] as const
        }),
    )
    fc.assert(
      fc.property(pair, ([a, b]) => {
        expect(sameBytes(a, b)).toBe(Buffer.compare(a, b) === 0)
      }),
      { numRuns: runs(1000) },
    )
  })

  test('distinguishes a prefix from the whole', () => {
    expect(sameBytes(Uint8Array.of(1, 2), Uint8Array.of(1, 2, 0))).toBe(false)
    expect(sameBytes(Uint8Array.of(), Uint8Array.of(0))).toBe(false)
  })
})
