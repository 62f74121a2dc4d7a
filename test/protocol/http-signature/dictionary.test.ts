import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  byteSequence,
  type InnerList,
  parseDictionary,
  parseStrictDictionary,
  serializeDictionary,
  serializeMember,
} from '../../../src/protocol/http-signature/structured-fields.js'
import { runs } from '../../support/runs.js'
import {
  canonicalBytes,
  canonicalList,
  changed,
  dictionary,
  keptText,
  meaningOf,
  onlyMember,
  soup,
} from '../../support/structured-fields.js'

describe('a dictionary', () => {
  test('of more than 2048 characters is refused', () => {
    const text = (length: number) => `a="${'x'.repeat(length - 4)}"`
    expect(parseStrictDictionary(text(2048))).toBeDefined()
    expect(parseStrictDictionary(text(2049))).toBeUndefined()
  })
})

describe('the fast paths', () => {
  test('parse a canonical list like the general parser and keep its text', () => {
    fc.assert(
      fc.property(canonicalList, ({ label, list }) => {
        const text = `${label}=${list}`
        const fast = parseStrictDictionary(text)
        const general = parseDictionary(text)
        expect(meaningOf(fast)).toEqual(meaningOf(general))
        expect(keptText(fast)).toBe(list)
        for (const parsed of [fast, general]) {
          const [items, parameters] = onlyMember(parsed) as InnerList
          expect(serializeMember([items, parameters])).toBe(list)
        }
      }),
      { numRuns: runs(1500) },
    )
  })

  test('parse a single byte sequence like the general parser', () => {
    fc.assert(
      fc.property(canonicalBytes, ({ label, value, base64 }) => {
        const text = `${label}=:${base64}:`
        const fast = parseStrictDictionary(text)
        expect(meaningOf(fast)).toEqual(meaningOf(parseDictionary(text)))
        expect([...(byteSequence(onlyMember(fast)) ?? [])]).toEqual([...value])
        expect(serializeDictionary(new Map(fast))).toBe(text)
      }),
      { numRuns: runs(500) },
    )
  })

  test('give the same result for almost canonical text', () => {
    const almost = fc.oneof(
      changed(canonicalList.map(({ label, list }) => `${label}=${list}`)),
      changed(canonicalBytes.map(({ label, base64 }) => `${label}=:${base64}:`)),
    )
    fc.assert(
      fc.property(almost, (text) => {
        const fast = parseStrictDictionary(text)
        expect(meaningOf(fast)).toEqual(meaningOf(parseDictionary(text)))
        const kept = keptText(fast)
        if (kept === undefined) return
        const [items, parameters] = onlyMember(fast) as InnerList
        expect(serializeMember([items, parameters])).toBe(kept)
      }),
      { numRuns: runs(6000) },
    )
  })

  test('never throw and give the same result for any text', () => {
    fc.assert(
      fc.property(fc.oneof(soup, changed(dictionary.map(({ text }) => text))), (text) => {
        expect(meaningOf(parseStrictDictionary(text))).toEqual(meaningOf(parseDictionary(text)))
      }),
      { numRuns: runs(6000) },
    )
  })

  test('never throw and give the same result for any bytes read as Latin-1', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => {
        const text = Buffer.from(bytes).toString('latin1')
        expect(meaningOf(parseStrictDictionary(text))).toEqual(meaningOf(parseDictionary(text)))
      }),
      { numRuns: runs(2000) },
    )
  })

  test.each([
    ['a duplicate parameter', 'sig1=("a");created=1;created=1'],
    ['a number with a leading zero', 'sig1=("a");created=01'],
    ['a decimal', 'sig1=("a");created=1.0'],
    ['a negative number', 'sig1=("a");created=-1'],
    ['a token', 'sig1=("a");alg=ed25519'],
    ['a flag', 'sig1=("a");flag'],
    ['an escape in a parameter', 'sig1=("a");nonce="\\""'],
    ['an escape in a component', 'sig1=("a\\\\")'],
    ['a component with a parameter', 'sig1=("a";sf)'],
    ['two spaces', 'sig1=("a"  "b")'],
    ['a space before a parameter', 'sig1=("a"); created=1'],
    ['a leading space', ' sig1=("a")'],
    ['a trailing space', 'sig1=("a") '],
    ['an empty list', 'sig1=()'],
    ['two members', 'sig1=("a"), sig2=("b")'],
    ['an integer of 16 digits', 'sig1=("a");created=1000000000000000'],
  ])('pass %s to the general parser', (_, text) => {
    expect(keptText(parseStrictDictionary(text))).toBeUndefined()
  })
})
