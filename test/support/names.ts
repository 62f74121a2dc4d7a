import fc from 'fast-check'
import { expect } from 'vitest'
import { displayName } from '../../src/protocol/display-name.js'
import { unicodeText } from './unicode-text.js'

const codePoint = (from: number, to: number) =>
  fc.integer({ min: from, max: to }).map((point) => String.fromCodePoint(point))

/** Texts with more than their share of what may not be in a name, and with lone surrogates. */
export const anyText = fc
  .array(
    fc.oneof(
      unicodeText(),
      fc.string({ unit: 'grapheme' }),
      codePoint(0, 0xa0),
      codePoint(0x300, 0x36f),
      codePoint(0x2000, 0x206f),
      codePoint(0xd800, 0xdfff),
      codePoint(0xe0000, 0xe01ef),
      fc.constantFrom(
        '\u3164',
        '\u115f',
        '\u2800',
        '\ufeff',
        'e\u0301',
        '\u1100',
        '\u1161',
        '👩‍👩‍👧',
        '🇨🇭',
      ),
    ),
    { maxLength: 100 },
  )
  .map((parts) => parts.join(''))

/** What every name on a page is. */
export function expectShowable(name: string): void {
  const length = [...name].length
  expect(length).toBeGreaterThan(0)
  expect(length).toBeLessThanOrEqual(64)
  expect(name).not.toMatch(/[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u)
  expect(name).not.toMatch(/^[\s\p{M}]|\s$|\s\s|[^\S ]|\p{M}{5}/u)
  expect(name).toBe(name.normalize('NFC'))
  expect(displayName(name)).toBe(name)
}
