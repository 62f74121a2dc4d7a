import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isObject, isStorable, parseJson } from '../../src/protocol/json.js'
import { runs } from '../support/runs.js'

const utf8 = (text: string) => new TextEncoder().encode(text)
const parseText = (text: string) => parseJson(utf8(text))

/** Returns arrays or objects nested to `levels` levels. */
function nested(levels: number, kind: 'array' | 'object' | 'both'): string {
  let text = ''
  let end = ''
  for (let level = 0; level < levels; level++) {
    const object = kind === 'object' || (kind === 'both' && level % 2 === 0)
    const innermost = level === levels - 1
    text += object ? `{${innermost ? '' : '"a":'}` : '['
    end = (object ? '}' : ']') + end
  }
  return text + end
}

/** Counts levels by the brackets of the serialized form, without recursion and objects. */
function levelsOf(text: string): number {
  let open = 0
  let deepest = 0
  for (const character of text.replace(/"(?:[^"\\]|\\.)*"/g, '')) {
    if (character === '[' || character === '{') deepest = Math.max(deepest, ++open)
    if (character === ']' || character === '}') open -= 1
  }
  return deepest
}

describe('parsing JSON', () => {
  test('returns any JSON value unchanged', () => {
    const json = fc.json({ maxDepth: 6, noUnicodeString: false, stringUnit: 'binary' })
    fc.assert(
      fc.property(json, (text) => {
        fc.pre(!text.includes('__proto__'))
        expect(parseText(text)).toStrictEqual(JSON.parse(text))
      }),
      { numRuns: runs(300) },
    )
  })

  test.each(['null', 'true', '0', '-1.5e3', '""', '[]', '{}', ' \n\t{ "a" : 1 }\r '])(
    'accepts %j',
    (text) => {
      expect(parseText(text)).toStrictEqual(JSON.parse(text))
    },
  )

  test('distinguishes null from no value', () => {
    expect(parseText('null')).toBeNull()
  })

  test('keeps lone surrogates and U+0000 in values and names', () => {
    const text = '{"\\ud800":"\\udfff\\u0000x","\\u0000":["\\u0000","a\\ud83d"]}'
    const value = parseText(text)
    expect(value).toStrictEqual({ '\ud800': '\udfff\u0000x', '\u0000': ['\u0000', 'a\ud83d'] })
  })

  test('reads inherited names as ordinary members', () => {
    const text = '{"constructor":1,"toString":2,"hasOwnProperty":3,"valueOf":4,"prototype":5}'
    const value = parseText(text)
    expect(isObject(value) && Object.keys(value)).toEqual([
      'constructor',
      'toString',
      'hasOwnProperty',
      'valueOf',
      'prototype',
    ])
  })

  test('uses the last of duplicate members, as other parsers do', () => {
    expect(parseText('{"a":1,"a":2}')).toStrictEqual({ a: 2 })
  })
})

describe('refusing JSON', () => {
  test.each([
    ['an empty body', ''],
    ['only whitespace', '  '],
    ['a byte order mark', '\ufeff{}'],
    ['text after the value', '{} x'],
    ['two values', '{}{}'],
    ['a trailing comma', '[1,]'],
    ['a comment', '/**/{}'],
    ['single quotes', "{'a':1}"],
    ['an unquoted name', '{a:1}'],
    ['NaN', 'NaN'],
    ['Infinity', '[Infinity]'],
    ['undefined', 'undefined'],
    ['a leading zero', '[01]'],
    ['a leading plus sign', '[+1]'],
    ['hexadecimal', '[0x10]'],
    ['a raw line break in a string', '"a\nb"'],
    ['a raw U+0000 in a string', '"a\u0000b"'],
    ['an open object', '{"a":1'],
    ['a no-break space around the value', '\u00a0{}'],
  ])('refuses %s', (_, text) => {
    expect(parseText(text)).toBeUndefined()
  })

  test.each([
    ['a surrogate as UTF-8', [0x22, 0xed, 0xa0, 0x80, 0x22]],
    ['an overlong quotation mark', [0xc0, 0xa2, 0x61, 0x22]],
    ['Latin-1', [0x22, 0xe9, 0x22]],
    ['a truncated sequence', [0x22, 0xe2, 0x82, 0x22]],
    ['UTF-16', [0xff, 0xfe, 0x7b, 0x00, 0x7d, 0x00]],
  ])('refuses bytes that are not UTF-8: %s', (_, bytes) => {
    expect(parseJson(Uint8Array.from(bytes))).toBeUndefined()
  })

  test.each([
    '{"__proto__":1}',
    '{"__proto__":null}',
    '{"__proto__":{"admin":true}}',
    '{"a":{"__proto__":{}}}',
    '[[{"b":[{"__proto__":1}]}]]',
    '{"\\u005f_proto__":1}',
    '{"__pro\\u0074o__":[]}',
    '{"a":1,"__proto__":1,"b":2}',
  ])('refuses a member that could set the prototype: %s', (text) => {
    expect(parseText(text)).toBeUndefined()
  })

  test('accepts __proto__ as a value', () => {
    expect(parseText('["__proto__",{"a":"__proto__","proto":1,"__proto":2}]')).toStrictEqual([
      '__proto__',
      { a: '__proto__', proto: 1, __proto: 2 },
    ])
  })

  test.each(['1e999', '-1e999', '[1e309]', '{"a":{"b":[0,-1e400]}}', `1${'0'.repeat(400)}`])(
    'refuses a number outside the range of a double: %s',
    (text) => {
      expect(parseText(text)).toBeUndefined()
    },
  )

  test('accepts the largest double', () => {
    expect(parseText('[1.7976931348623157e308]')).toStrictEqual([Number.MAX_VALUE])
  })

  test.each(['array', 'object', 'both'] as const)(
    'refuses more than 32 levels of nesting (%s)',
    (kind) => {
      expect(parseText(nested(32, kind))).toBeDefined()
      expect(parseText(nested(33, kind))).toBeUndefined()
    },
  )

  test('refuses nesting as deep as the largest body without exhausting the stack', () => {
    expect(parseText('['.repeat(32_768) + ']'.repeat(32_768))).toBeUndefined()
    expect(parseText('['.repeat(65_536))).toBeUndefined()
  })

  test.each([
    ['[],', 2],
    ['{},', 2],
    ['[[[[]]]],', 5],
    ['{"a":[1]},', 3],
    ['1,', 1],
    ['"[{,",', 1],
    ['"\\",[{",', 1],
    ['"\\\\",', 1],
  ])('refuses more than 512 brackets and commas outside of strings: %s', (piece, count) => {
    const list = (times: number) => parseText(`[${piece.repeat(times)}0]`)
    const most = Math.floor(511 / count)
    expect(list(most)).toHaveLength(most + 1)
    expect(list(most + 1)).toBeUndefined()
  })

  test('returns a result for any bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
        expect(() => parseJson(bytes)).not.toThrow()
      }),
      { numRuns: runs(500) },
    )
  })
})

describe('a value that can be stored', () => {
  test('has no more than the given levels, and a scalar has none', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 7 }), (value) => {
        fc.pre(!JSON.stringify(value).includes('__proto__'))
        // fast-check generates -0, which JSON cannot represent, but no other unusual number.
        const json = JSON.parse(JSON.stringify(value))
        const levels = levelsOf(JSON.stringify(json))
        expect(isStorable(json, levels)).toBe(true)
        expect(isStorable(json, levels - 1)).toBe(levels === 0)
      }),
      { numRuns: runs(300) },
    )
  })

  test('is measured by its deepest branch, wherever it is', () => {
    expect(isStorable([1, [2, [3]], [], 'x'], 3)).toBe(true)
    expect(isStorable([1, [2, [3]], [], 'x'], 2)).toBe(false)
    expect(isStorable({ a: {}, b: { c: [] }, d: 0 }, 3)).toBe(true)
    expect(isStorable({ a: {}, b: { c: [] }, d: 0 }, 2)).toBe(false)
  })

  test.each([Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY])(
    'contains no number that JSON cannot represent: %d',
    (value) => {
      expect(isStorable(value, 5)).toBe(false)
      expect(isStorable({ a: [value] }, 5)).toBe(false)
    },
  )
})

describe('isObject', () => {
  test.each([{}, { a: 1 }, JSON.parse('{"length":0}')])('accepts %j', (value) => {
    expect(isObject(value)).toBe(true)
  })

  test.each([null, undefined, [], 'x', 0, true])('rejects %j', (value) => {
    expect(isObject(value)).toBe(false)
  })
})
