import fc from 'fast-check'
import {
  isInnerList,
  parseDictionary,
  serializeDictionary,
  serializeInnerList,
  serializeItem,
} from 'structured-headers'
import { describe, expect, test } from 'vitest'
import {
  byteSequence,
  dictionaryText,
  memberText,
  parseStrictDictionary,
} from '../../../src/protocol/http-signature/dictionary.js'
import { runs } from '../../support/runs.js'
import { changed, dictionary, soup } from '../../support/structured-fields.js'

/** Returns what a text means, as the parser and the serializer of structured-headers write it. */
function meaningOf(text: string): string {
  return serializeDictionary(parseDictionary(text))
}

function textOf(dictionary: string): string | undefined {
  const [member] = parseStrictDictionary(dictionary)?.values() ?? []
  return member && memberText(member)
}

describe('a dictionary', () => {
  test('is parsed correctly, and a duplicate key is refused', () => {
    fc.assert(
      fc.property(dictionary, ({ text, repeats }) => {
        const members = parseStrictDictionary(text)
        if (repeats) expect(members).toBeUndefined()
        else {
          const values = Array.from(members ?? [], ([key, { value }]) => [key, value] as const)
          expect(serializeDictionary(new Map(values))).toBe(meaningOf(text))
        }
      }),
      { numRuns: runs(4000) },
    )
  })

  test('may be empty and then has no members', () => {
    for (const text of ['', ' ', '   ']) expect(parseStrictDictionary(text)?.size).toBe(0)
  })

  test('of more than 2048 characters is refused', () => {
    const text = (length: number) => `a="${'x'.repeat(length - 4)}"`
    expect(parseStrictDictionary(text(2048))).toBeDefined()
    expect(parseStrictDictionary(text(2049))).toBeUndefined()
  })

  test.each([
    'sig1=("a"),sig1=("b")',
    'sig1=("a"), sig1',
    'sig1;x, sig1;y',
    'a=1,\tb=2 ,a=3',
    'a=(1 2);x=1;x=1',
    'a=(1 2);x=1;  x=2',
    'a=1;x;x',
    'a;x;x',
    'a=("b";key="c";key="c")',
    'a=("b";sf ;sf)',
    'a=("b";sf "c";sf;sf)',
    'a=("b" "c";bs;bs=?0)',
    'a=(), b=();x=1;y;x',
    'a="\\"";x;x',
    'a="\\\\";x;x',
    'a=":";x;x',
    'a=:AAAA:;x;x',
    'a=t/*;x;x',
    'a=t%;x="b";x="b"',
    'a=%"x";x;x',
    // A backslash is not an escape in a Display String.
    'a=%"\\";x;x',
    'a=%"\\", b=1, b=2',
    'sig1=("@method");note=%"\\";created=1;created=2',
  ])('is refused with a duplicate key: %s', (text) => {
    expect(parseStrictDictionary(text)).toBeUndefined()
  })

  test.each([
    ['a=1;x, b=1;x', 2],
    ['a=("b";x "c";x);x', 1],
    ['a=();x, b=();x', 2],
    ['a=1;a', 1],
    ['a="a=1, a=2"', 1],
    ['a="\\", a=1"', 1],
    ['a=(";x;x");x', 1],
    ['a="%";x, b="%"', 2],
    ['a=%"; x; x, a=1"', 1],
  ])('may contain the same key in different scopes: %s', (text, size) => {
    expect(parseStrictDictionary(text)?.size).toBe(size)
  })

  test.each(['sig1=("a"),', 'sig1=("a"', 'sig1=("a")sig2=("b")', 'a="é"', 'a=%"Ł"', 'a=@1;b'])(
    'is refused if it is malformed or has a Date before its end: %s',
    (text) => {
      expect(parseStrictDictionary(text)).toBeUndefined()
    },
  )

  test('never throws, whatever its text', () => {
    const bytes = fc.uint8Array({ maxLength: 40 }).map((all) => Buffer.from(all).toString('latin1'))
    fc.assert(
      fc.property(fc.oneof(soup, changed(dictionary.map(({ text }) => text)), bytes), (text) => {
        const parsed = parseStrictDictionary(text)
        if (parsed !== undefined) expect(dictionaryText(parsed)).toBeTypeOf('string')
      }),
      { numRuns: runs(6000) },
    )
  })
})

describe('the text in a signature base', () => {
  test('has the same meaning as the received text, and is unchanged if it is received', () => {
    fc.assert(
      fc.property(dictionary, ({ text, repeats }) => {
        fc.pre(!repeats)
        const written = dictionaryText(parseStrictDictionary(text) ?? new Map())
        const again = parseStrictDictionary(written)
        expect(meaningOf(written)).toBe(meaningOf(text))
        expect(dictionaryText(again ?? new Map())).toBe(written)
      }),
      { numRuns: runs(4000) },
    )
  })

  test('is the serialized member, unless that contains a Decimal, Date or Display String', () => {
    const written = dictionary.map(({ text }) => text)
    const texts = fc.oneof(written, changed(written))
    fc.assert(
      fc.property(texts, (text) => {
        for (const member of parseStrictDictionary(text)?.values() ?? []) {
          const { value, decimals } = member
          if (decimals !== undefined) continue
          const serialized = isInnerList(value) ? serializeInnerList(value) : serializeItem(value)
          expect(memberText(member)).toBe(serialized)
        }
      }),
      { numRuns: runs(8000) },
    )
  })

  test.each([
    'tok;x=1.0',
    '1.500',
    '(1.0 "a";x=-0.0);y="1.0, b=2.0"',
    '@1700000000',
    '("a");x=@999999999999999',
    '%"%0a%ef%bb%bf"',
    '?1;x=1.0',
  ])('is the text of the client for %s', (text) => {
    const [first, second] = parseStrictDictionary(`a=1,  b=${text}`)?.values() ?? []
    expect(first && memberText(first)).toBe('1')
    expect(second && memberText(second)).toBe(text)
  })

  test.each([
    ['a, b=?0, c=?1;x, d=("e" f;g);h=1, i=()', 'a, b=?0, c;x, d=("e" f;g);h=1, i=()'],
    ['a;x=1.0 ,b=?1;x=1.0,\tc;x=01', 'a;x=1.0, b;x=1.0, c;x=1'],
  ])('of a whole dictionary has members with the value true without it: %s', (text, expected) => {
    expect(dictionaryText(parseStrictDictionary(text) ?? new Map())).toBe(expected)
  })

  test.each([
    ['  sig1=( "a"   "b" );  created=1\t', '("a" "b");created=1'],
    ['a=("b"  "c")', '("b" "c")'],
    ['a=( "b")', '("b")'],
    ['a=("b" )', '("b")'],
    ['a=1; x', '1;x'],
    ['a="a\\"\\\\";x=?0', '"a\\"\\\\";x=?0'],
    ['a=-01;x=-0;y=00', '-1;x=0;y=0'],
    ['a=:AR:', ':AQ==:'],
    ['a;x', '?1;x'],
  ])('of %j is %s', (text, expected) => {
    expect(textOf(text)).toBe(expected)
  })
})

describe('the Decimals among the parameters', () => {
  test.each([
    ['a=("b");created=1.0;x=2', ['created']],
    ['a=("b"); created=-1.5;x.expires=1.0', ['created', 'x.expires']],
    ['a=%"\\";created=1.0', ['created']],
    ['a=%";created=1.0"', []],
    ['a=1.0;x="; created=1.0"', []],
    ['a="";x="; created=1.0";y=1.0', ['y']],
    ['a=("b");created=10.5', ['created']],
    ['a=("b");created=1', undefined],
  ])('are found outside of strings: %s', (text, names) => {
    expect(parseStrictDictionary(text)?.get('a')?.decimals).toEqual(names)
  })
})

describe('byteSequence', () => {
  test.each([
    ['a=:AQID:', [1, 2, 3]],
    ['a=:AQID:;x=1', [1, 2, 3]],
    ['a=::', []],
    ['a=:AQ:', [1]],
    ['a=:AR==:', [1]],
  ])('returns the bytes of %s', (text, expected) => {
    expect([...(byteSequence(parseStrictDictionary(text)?.get('a')) ?? ['none'])]).toEqual(expected)
  })

  test.each([
    'a',
    'a=1',
    'a="AQID"',
    'a=AQID',
    'a=(:AQID:)',
    'a=?1',
    'a=@1',
    'a=%"AQID"',
    'b=:AA==:',
  ])('returns undefined for %s', (text) => {
    expect(byteSequence(parseStrictDictionary(text)?.get('a'))).toBeUndefined()
  })
})
