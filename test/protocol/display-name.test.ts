import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { displayName } from '../../src/protocol/display-name.js'
import { anyText, expectShowable } from '../support/names.js'

describe('a name that a stranger chose', () => {
  test('can be shown after it was cleaned, whatever it was, and does not change again', () => {
    fc.assert(
      fc.property(fc.oneof(anyText, fc.anything()), (given) => {
        const name = displayName(given)
        if (name !== undefined) expectShowable(name)
      }),
    )
  })

  test('keeps the letters, digits, punctuation and symbols that a short one consists of', () => {
    const visible = fc.constantFrom(...'aZ09 .,&@-_’“”éßøЖשَكहि漢字かな한글€✓🚲')
    fc.assert(
      fc.property(fc.array(visible, { maxLength: 60 }), (characters) => {
        const given = `x${characters.join('')}x`.normalize('NFC').replace(/ +/g, ' ')
        expect(displayName(given)).toBe(given)
      }),
    )
  })

  test.each<[string, string, string | undefined]>([
    ['empty', '', undefined],
    ['of control characters only', '\0\x1b\x7f\x85\u009f'.repeat(10_000), undefined],
    [
      'of invisible letters and symbols only',
      '\u3164\u2800\ufeff \u200b\u{e0041}\ufe0f',
      undefined,
    ],
    ['of marks only, which would be put on the text before it', ' \u0301 \u0301', undefined],
    ['of lone surrogates', '\ud800\udc00\ud800'.slice(1), undefined],
    ['of several lines', ' A\r\n\tshop\u2028\u2029of\u00a0 \u3000mine\x85', 'A shop of mine'],
    ['that reverses the text after it', '\u202eshop\u2066\u200f', 'shop'],
    ['that is not composed', 'Cafe\u0301', 'Caf\u00e9'],
    ['that composes once invisible characters are removed', 'Cafe\u200b\u0301', 'Caf\u00e9'],
    ['that covers its surroundings', `x${'\u0335'.repeat(500)}y`, 'x\u0335\u0335\u0335\u0335y'],
    ['of 64 KiB', 'a'.repeat(65_536), `${'a'.repeat(63)}…`],
    ['of 64 code points', '🚲'.repeat(64), '🚲'.repeat(64)],
    ['of 65 code points', '🚲'.repeat(65), `${'🚲'.repeat(63)}…`],
    [
      'whose 63rd and 64th code point are one character',
      `${'a'.repeat(62)}q\u0323xyz`,
      `${'a'.repeat(62)}…`,
    ],
    [
      'whose cut is after a space',
      `${'a'.repeat(60)}   b${'c'.repeat(10)}`,
      `${'a'.repeat(60)} bc…`,
    ],
    [
      'whose first character is longer than a name',
      '\u1100'.repeat(100),
      `${'\u1100'.repeat(63)}…`,
    ],
  ])('%s', (_, given, name) => {
    expect(displayName(given)).toBe(name)
  })
})
