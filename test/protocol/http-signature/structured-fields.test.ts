import fc from 'fast-check'
import * as reference from 'structured-headers'
import { describe, expect, test } from 'vitest'
import {
  byteSequence,
  type Item,
  isInnerList,
  isText,
  OpaqueItem,
  parseDictionary,
  serializeDictionary,
  serializeMember,
} from '../../../src/protocol/http-signature/structured-fields.js'
import { runs } from '../../support/runs.js'
import {
  changed,
  dictionary,
  meaningOf,
  onlyMember,
  soup,
} from '../../support/structured-fields.js'

describe('a dictionary', () => {
  test('is parsed correctly, and a duplicate key is refused', () => {
    fc.assert(
      fc.property(dictionary, ({ text, meaning }) => {
        expect(meaningOf(parseDictionary(text))).toEqual(meaning)
      }),
      { numRuns: runs(4000) },
    )
  })

  test('may be empty and then has no members', () => {
    for (const text of ['', ' ', '   ']) expect(parseDictionary(text)?.size).toBe(0)
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
    'a=%"x";x;x',
    // A backslash is not an escape in a Display String.
    'a=%"\\";x;x',
    'a=%"\\", b=1, b=2',
    'sig1=("@method");note=%"\\";created=1;created=2',
  ])('is refused with a duplicate key: %s', (text) => {
    expect(parseDictionary(text)).toBeUndefined()
  })

  test.each([
    ['a=1;x, b=1;x', 2],
    ['a=("b";x "c";x);x', 1],
    ['a=("b";x);x', 1],
    ['a=();x, b=();x', 2],
    ['a=1;a', 1],
    ['a="a=1, a=2"', 1],
    ['a="\\", a=1"', 1],
    ['a=(";x;x");x', 1],
    ['a="(";x, b=")";x', 2],
    ['a=%"; x; x, a=1"', 1],
  ])('may contain the same key in different scopes: %s', (text, size) => {
    expect(parseDictionary(text)?.size).toBe(size)
  })

  test.each([
    'sig1=',
    'sig1=("a"',
    'sig1=("a"),',
    ',sig1=("a")',
    'sig1=("a"),,sig2=("b")',
    'sig1=("a")sig2=("b")',
    'sig1=("a""b")',
    'sig1=("a"\t"b")',
    'sig1=("a") ;x',
    'sig1=("a";\tx)',
    'sig1=("a',
    'sig1=("a\\b")',
    'sig1=("é")',
    "sig1=('a')",
    'sig1 =("a")',
    'sig1= ("a")',
    'Sig1=("a")',
    '1sig=("a")',
    '"sig1"=("a")',
    'sig1=("a");Created=1',
    'sig1=("a");created=',
    'sig1=("a");created= 1',
    'sig1=("a");created=1.',
    'sig1=("a");created=.5',
    'sig1=("a");created=1.0000',
    'sig1=("a");created=1000000000000000',
    'sig1=("a");created=+1',
    'sig1=("a");created=0x1',
    'sig1=("a");;created=1',
    'sig1=(("a"))',
    'sig1=:AAAA',
    'sig1=:AA*A:',
    'sig1=:AA A:',
    'sig1=:A:',
    'sig1=:AA-_:',
    'sig1=:=AAA:',
    'sig1=?2',
    '\tsig1=1',
    'sig1=1\n',
    'sig1=1\u0000',
    'sig1=1;x\u00a0',
  ])('is refused when it is malformed: %j', (text) => {
    expect(parseDictionary(text)).toBeUndefined()
  })
})

/** Parses with the reference, which allows duplicate keys. */
function referenceMembers(
  text: string,
): ReadonlyMap<string, reference.Item | reference.InnerList> | undefined {
  try {
    return reference.parseDictionary(text)
  } catch {
    return undefined
  }
}

/** The reference writes the Decimal 1.0 as the Integer 1. */
function wholeNumbers(text: string): string {
  return text.replace(/(\d)\.0(?!\d)/g, '$1')
}

describe('any text', () => {
  const texts = fc.oneof(
    soup,
    changed(dictionary.map(({ text }) => text)),
    fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes).toString('latin1')),
  )

  test('is parsed as the reference parses it, or refused', () => {
    fc.assert(
      fc.property(texts, (text) => {
        const parsed = parseDictionary(text)
        // The reference reads a date only at the end of the text, and writes `%0a` as `%a`.
        fc.pre(!/@|%0/.test(text))
        const members = referenceMembers(text)
        const words = text.match(/[a-z*][a-z0-9_\-.*]*/g) ?? []
        if (parsed === undefined) {
          const mayRepeatKeys = new Set(words).size < words.length
          if (!mayRepeatKeys) expect(members).toBeUndefined()
        } else {
          if (members === undefined) throw new Error('the reference refuses it')
          const written = reference.serializeDictionary(new Map(members))
          expect(wholeNumbers(serializeDictionary(parsed))).toBe(wholeNumbers(written))
        }
      }),
      { numRuns: runs(20_000) },
    )
  })
})

describe('the size of a dictionary', () => {
  test.each([
    ['members', (count: number) => Array.from({ length: count }, (_, i) => `a${i}`).join(',')],
    ['items', (count: number) => `a=(${'1 '.repeat(count - 1)})`],
    [
      'parameters',
      (count: number) => `a${Array.from({ length: count - 1 }, (_, i) => `;a${i}`).join('')}`,
    ],
    [
      'parameters of items',
      (count: number) => `a=(1${Array.from({ length: count - 2 }, (_, i) => `;a${i}`).join('')})`,
    ],
  ])('is limited to 128 %s', (_, text) => {
    expect(parseDictionary(text(128))).toBeDefined()
    expect(parseDictionary(text(129))).toBeUndefined()
  })
})

describe('a date', () => {
  test.each([
    ['a=@0', '@0'],
    ['a=@-1;x', '@-1'],
    ['a=@1, b', '@1'],
    ['a=@8640000000000;x=1', '@8640000000000'],
    ['a=@-999999999999999', '@-999999999999999'],
  ])('is read anywhere: %s', (text, date) => {
    const [member] = parseDictionary(text)?.values() ?? []
    expect(member?.[0]).toEqual(new OpaqueItem(date))
  })

  test.each(['a=@', 'a=@1.0', 'a=@x', 'a=@1000000000000000'])(
    'is refused when it is malformed: %s',
    (text) => {
      expect(parseDictionary(text)).toBeUndefined()
    },
  )
})

describe('a Display String', () => {
  test.each([
    'a=%"%C3%A9"',
    'a=%"%4A"',
    'a=%"%c3"',
    'a=%"%ed%a0%80"',
    'a=%"é"',
    'a=%x',
    'a=%"%4"',
    'a=%"x',
  ])('is refused unless it is UTF-8 with lower-case escapes: %s', (text) => {
    expect(parseDictionary(text)).toBeUndefined()
  })
})

describe('an empty list', () => {
  test.each(['sig1=()', 'sig1=( )', 'sig1=();created=1'])('has no items: %s', (text) => {
    const member = onlyMember(parseDictionary(text))
    expect(isInnerList(member) && member[0]).toEqual([])
  })
})

describe('whitespace', () => {
  test.each([
    ['sig1=( "a" "b" );created=1', '("a" "b");created=1'],
    ['sig1=("a"   "b");   created=1', '("a" "b");created=1'],
    ['  sig1=("a" "b");created=1', '("a" "b");created=1'],
    ['sig1=("a" "b";  key="c");created=1\t', '("a" "b";key="c");created=1'],
  ])('outside the canonical form is read but not written: %j', (text, list) => {
    const member = onlyMember(parseDictionary(text))
    expect(serializeMember(member)).toBe(list)
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
    expect([...(byteSequence(onlyMember(parseDictionary(text))) ?? ['none'])]).toEqual(expected)
  })

  test.each(['a', 'a=1', 'a="AQID"', 'a=AQID', 'a=(:AQID:)', 'a=?1', 'a=@1', 'a=%"AQID"'])(
    'returns undefined for %s',
    (text) => {
      expect(byteSequence(onlyMember(parseDictionary(text)))).toBeUndefined()
    },
  )

  test('returns undefined without a member', () => {
    expect(byteSequence(undefined)).toBeUndefined()
  })
})

describe('isText', () => {
  test('accepts a String but not a Token with the same text', () => {
    const texts = ['a="x"', 'a=x', 'a=%"x"', 'a=1', 'a=:eA==:', 'a']
    const values = texts.map((text) => onlyMember(parseDictionary(text))[0] as Item[0])
    expect(values.map((value) => isText(value))).toEqual([true, false, false, false, false, false])
  })
})

describe('serialization', () => {
  test('writes what has the same meaning, and is written unchanged', () => {
    fc.assert(
      fc.property(dictionary, ({ text, meaning }) => {
        fc.pre(meaning !== undefined)
        const written = serializeDictionary(parseDictionary(text) ?? new Map())
        const again = parseDictionary(written)
        expect(meaningOf(again)).toEqual(meaning)
        expect(serializeDictionary(again ?? new Map())).toBe(written)
      }),
      { numRuns: runs(4000) },
    )
  })

  test.each([
    ['"a"', 'd="a"'],
    ['"a";sf;key="b"', 'd="a";sf=?1;key="b"'],
    ['"a\\"\\\\";x=?0', 'd="a\\"\\\\";x=?0'],
    ['1.5;x=:AQ==:', 'd=1.500;x=:AQ:'],
    ['1.0;x=-1.05;y=0.0', 'd=01.000;x=-1.050;y=-0.0'],
    ['tok;x=-1', 'd=tok;x=-01'],
    ['@1;x=@0;y=@-1', 'd=@01;x=@-0;y=@-1'],
    ['%"a%0a%c3%a9%25";x=0', 'd=%"%61%0a%c3%a9%25";x=-0'],
  ])('writes an item as %s', (expected, text) => {
    expect(serializeMember(onlyMember(parseDictionary(text)))).toBe(expected)
  })

  test('writes members with the value true without it', () => {
    const text = 'a, b=?0, c=?1;x, d=("e" f;g);h=1, i=()'
    expect(serializeDictionary(parseDictionary(text) ?? new Map())).toBe(
      'a, b=?0, c;x, d=("e" f;g);h=1, i=()',
    )
  })
})
