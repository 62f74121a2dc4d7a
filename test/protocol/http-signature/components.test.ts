import fc from 'fast-check'
import { type Item, isInnerList } from 'structured-headers'
import { describe, expect, test, vi } from 'vitest'
import {
  combinedValue,
  componentReader,
  coveredLengthMax,
  dictionaryReader,
  identityOf,
  type SignedMessage,
} from '../../../src/protocol/http-signature/components.js'
import { parseStrictDictionary } from '../../../src/protocol/http-signature/dictionary.js'
import { runs } from '../../support/runs.js'
import { componentIn } from '../../support/signed-message.js'
import { unicodeText } from '../../support/unicode-text.js'

const message: SignedMessage = {
  method: 'POST',
  origin: 'https://www.example.com',
  target: '/path?param=value',
  fields: new Map(),
  body: new Uint8Array(),
}

/** Returns a component identifier as `Signature-Input` contains it. */
function identifier(text: string): Item {
  const { value } = parseStrictDictionary(`sig1=(${text})`)?.get('sig1') ?? {}
  const [item] = value !== undefined && isInnerList(value) ? value[0] : []
  if (item === undefined) throw new Error(`${text} is not a component identifier`)
  return item
}

function valueFor(text: string, changes: Partial<SignedMessage> = {}): string | undefined {
  const result = componentIn({ ...message, ...changes }, identifier(text))
  if (!result.ok) {
    expect(result).toEqual({ ok: false, problem: expect.any(String) })
    return undefined
  }
  expect(result.value).toEqual(expect.any(String))
  return result.value
}

function withLines(name: string, ...lines: string[]): Partial<SignedMessage> {
  return { fields: new Map([[name, lines]]) }
}

describe('derived components', () => {
  // RFC 9421 sections 2.2.1 to 2.2.7, over https.
  test.each([
    ['"@method"', 'POST'],
    ['"@target-uri"', 'https://www.example.com/path?param=value'],
    ['"@authority"', 'www.example.com'],
    ['"@scheme"', 'https'],
    ['"@request-target"', '/path?param=value'],
    ['"@path"', '/path'],
    ['"@query"', '?param=value'],
  ])('the value of %s is %s', (text, expected) => {
    expect(valueFor(text)).toBe(expected)
  })

  test.each([
    ['"@method"', { method: 'post' }, 'post'],
    ['"@authority"', { origin: 'http://localhost:3000' }, 'localhost:3000'],
    ['"@authority"', { origin: 'http://[::1]:3000' }, '[::1]:3000'],
    ['"@scheme"', { origin: 'http://localhost:3000' }, 'http'],
    ['"@path"', { target: '/' }, '/'],
    ['"@path"', { target: '/?a=/b' }, '/'],
    ['"@path"', { target: '/caf%C3%A9%2f%2e%41' }, '/caf%C3%A9%2f%2e%41'],
    ['"@path"', { target: '/a//b/' }, '/a//b/'],
    ['"@query"', { target: '/path' }, '?'],
    ['"@query"', { target: '/path?' }, '?'],
    ['"@query"', { target: '/path?queryString' }, '?queryString'],
    [
      '"@query"',
      { target: '/p?param=value&foo=bar&baz=bat%2Dman' },
      '?param=value&foo=bar&baz=bat%2Dman',
    ],
    ['"@query"', { target: '/p?a=b?c=d' }, '?a=b?c=d'],
    ['"@target-uri"', { target: '/a%2fb?c=%41+d' }, 'https://www.example.com/a%2fb?c=%41+d'],
    ['"@request-target"', { target: '/' }, '/'],
  ])('%s of %j is %s, without decoding, case folding or reordering', (text, changes, expected) => {
    expect(valueFor(text, changes)).toBe(expected)
  })

  test.each([
    '"@status"',
    '"@signature-params"',
    '"@Method"',
    '"@METHOD"',
    '"@"',
    '"@unknown"',
    '"@query-params"',
    '"@request-response"',
    '"@method";x',
    '"@method";name="a"',
    '"@path";sf',
    '"@target-uri";req',
    '"@method";req',
    '"@query";bs',
    '"@authority";key="a"',
    '"@path";tr',
  ])('%s has no value', (text) => {
    expect(valueFor(text)).toBeUndefined()
  })

  test('never read a field whose name begins with @', () => {
    const fields = new Map([
      ['@method', ['DELETE']],
      ['@unknown', ['x']],
    ])
    expect(valueFor('"@method"', { fields })).toBe('POST')
    expect(valueFor('"@unknown"', { fields })).toBeUndefined()
  })

  test('ignore forwarding headers that claim another host or scheme', () => {
    const fields = new Map([
      ['host', ['evil.example']],
      ['forwarded', ['host=evil.example;proto=http']],
      ['x-forwarded-host', ['evil.example']],
      ['x-forwarded-proto', ['http']],
      ['x-http-method-override', ['DELETE']],
      ['x-original-url', ['/other']],
    ])
    expect(valueFor('"@method"', { fields })).toBe('POST')
    expect(valueFor('"@authority"', { fields })).toBe('www.example.com')
    expect(valueFor('"@scheme"', { fields })).toBe('https')
    expect(valueFor('"@target-uri"', { fields })).toBe('https://www.example.com/path?param=value')
  })
})

describe('@query-param', () => {
  // RFC 9421 section 2.2.8.
  const plain = '/path?param=value&foo=bar&baz=batman&qux='
  const encoded =
    '/parameters?var=this%20is%20a%20big%0Amultiline%20value&bar=with+plus+whitespace&fa%C3%A7ade%22%3A%20=something'

  test.each([
    [plain, 'baz', 'batman'],
    [plain, 'qux', ''],
    [plain, 'param', 'value'],
    [encoded, 'var', 'this%20is%20a%20big%0Amultiline%20value'],
    [encoded, 'bar', 'with%20plus%20whitespace'],
    [encoded, 'fa%C3%A7ade%22%3A%20', 'something'],
    ['/?a', 'a', ''],
    ['/?a=b=c', 'a', 'b%3Dc'],
    ['/?=x', '', 'x'],
    ['/?a=%7e~', 'a', '%7E%7E'],
    ['/?a=*-._', 'a', '*-._'],
    ["/?a=!'()", 'a', '%21%27%28%29'],
    ['/?a=%2b', 'a', '%2B'],
    ['/?%61=1', 'a', '1'],
    ['/?a=%', 'a', '%25'],
    ['/?a=%ff', 'a', '%EF%BF%BD'],
    ['/?a=1?b=2', 'a', '1%3Fb%3D2'],
    ['/?+=1', '%20', '1'],
  ])('of %s with the name %j is %j', (target, name, expected) => {
    expect(valueFor(`"@query-param";name="${name}"`, { target })).toBe(expected)
  })

  test.each([
    ['a name that is not in the query', '/?a=1', '"@query-param";name="b"'],
    ['a name that occurs twice', '/?a=1&a=2', '"@query-param";name="a"'],
    ['a name that occurs twice in two spellings', '/?a=1&%61=1', '"@query-param";name="a"'],
    ['a name in another case', '/?a=1', '"@query-param";name="A"'],
    ['a name that is not encoded', '/?a%20b=1', '"@query-param";name="a b"'],
    ['a name with a space encoded as plus', '/?a%20b=1', '"@query-param";name="a+b"'],
    ['a name encoded in lower case', '/?%C3%A7=1', '"@query-param";name="%c3%a7"'],
    ['a name that is encoded unnecessarily', '/?a=1', '"@query-param";name="%61"'],
    ['a missing query', '/a', '"@query-param";name="a"'],
    ['a missing name parameter', '/?a=1', '"@query-param"'],
    ['a name that is a token', '/?a=1', '"@query-param";name=a'],
    ['a name that is a flag', '/?a=1', '"@query-param";name'],
    ['an additional parameter', '/?a=1', '"@query-param";name="a";sf'],
    ['a name with the req parameter', '/?a=1', '"@query-param";name="a";req'],
  ])('is an error for %s', (_, target, text) => {
    expect(valueFor(text, { target })).toBeUndefined()
  })

  test('is encoded again, whatever its original encoding', () => {
    // The application/x-www-form-urlencoded percent-encode set, byte by byte, with %20 for a space.
    const encode = (text: string) =>
      [...Buffer.from(text)]
        .map((byte) => {
          const character = String.fromCharCode(byte)
          if (/[A-Za-z0-9*\-._]/.test(character)) return character
          return `%${byte.toString(16).toUpperCase().padStart(2, '0')}`
        })
        .join('')
    const words = fc.string({ unit: 'grapheme', maxLength: 8 })
    fc.assert(
      fc.property(words, words, (name, value) => {
        const target = `/?${new URLSearchParams([
          ['other', 'x'],
          [`n${name}`, value],
        ])}`
        const text = `"@query-param";name="${encode(`n${name}`)}"`
        expect(valueFor(text, { target })).toBe(encode(value))
      }),
      { numRuns: runs(300) },
    )
  })
})

describe('fields', () => {
  // RFC 9421 section 2.1, for lines without surrounding whitespace.
  test.each([
    ['one line', ['Tue, 20 Apr 2021 02:07:56 GMT'], 'Tue, 20 Apr 2021 02:07:56 GMT'],
    ['two lines', ['max-age=60', 'must-revalidate'], 'max-age=60, must-revalidate'],
    ['two equal lines', ['a', 'a', 'a'], 'a, a, a'],
    ['an empty line', [''], ''],
    ['an empty line between others', ['a', '', 'b'], 'a, , b'],
    ['two empty lines', ['', ''], ', '],
    ['inner whitespace', ['a=1,    b=2;x=1;\ty=2'], 'a=1,    b=2;x=1;\ty=2'],
    [
      'every printable character',
      [' !"#$%&\'()*+,-./:;<=>?@[\\]^_`{|}~'],
      ' !"#$%&\'()*+,-./:;<=>?@[\\]^_`{|}~',
    ],
  ])('reads %s', (_, lines, expected) => {
    expect(combinedValue(lines)).toBe(expected)
    expect(valueFor('"x-note"', withLines('x-note', ...lines))).toBe(expected)
  })

  test('a value of at most 8 KiB can be covered', () => {
    const longest = 'a'.repeat(coveredLengthMax)
    expect(valueFor('"x-note"', withLines('x-note', longest))).toBe(longest)
    expect(valueFor('"x-note"', withLines('x-note', `${longest}a`))).toBeUndefined()
  })

  test('the parameter req is refused by name, because only responses may use it', () => {
    const result = componentIn(
      { ...message, ...withLines('x-note', 'a') },
      identifier('"x-note";req'),
    )
    expect(result).toEqual({ ok: false, problem: expect.stringContaining('only responses') })
  })

  test('an absent field is an error, not an empty value', () => {
    expect(valueFor('"x-note"')).toBeUndefined()
    expect(valueFor('"x-note"', withLines('x-notes', 'a'))).toBeUndefined()
  })

  test.each([
    '"X-Note"',
    '"x note"',
    '" x-note"',
    '"x-note "',
    '"x-note:"',
    '""',
    '"x/note"',
    '"x;note"',
    '"x\\"note"',
    'x-note',
    '1',
    ':AA==:',
    '?1',
    '%"x-note"',
  ])('%s does not name a field', (text) => {
    const [name] = identifier(text)
    const fields = new Map([
      ['x-note', ['a']],
      [String(name), ['a']],
    ])
    expect(valueFor(text, { fields })).toBeUndefined()
  })

  test('a lower-case field name may contain any token character', () => {
    const name = "a!#$%&'*+-.^_`|~9"
    expect(valueFor(`"${name}"`, withLines(name, 'x'))).toBe('x')
  })

  test('every code point except printable ASCII and tab is an error', () => {
    for (let code = 0; code <= 0x180; code++) {
      const line = `a${String.fromCharCode(code)}b`
      const expected = code === 9 || (code >= 0x20 && code <= 0x7e) ? line : undefined
      expect(valueFor('"x-note"', withLines('x-note', line)), `U+${code.toString(16)}`).toBe(
        expected,
      )
    }
  })

  test.each(['a\n', '\na', 'a\r\n b', '\u2028', '\ud83d'])('a line %j is an error', (line) => {
    expect(valueFor('"x-note"', withLines('x-note', line))).toBeUndefined()
    expect(valueFor('"x-note"', withLines('x-note', 'a', line))).toBeUndefined()
  })

  test.each([
    '"x-note";req',
    '"x-note";req=?0',
    '"x-note";tr',
    '"x-note";x',
    '"x-note";sf="a"',
    '"x-note";bs=1',
    '"x-note";key=a',
    '"x-note";key',
    '"x-note";name="a"',
    '"content-digest";tr',
    '"content-digest";sf;tr',
    '"content-digest";key="sha-256";x',
    '"content-digest";sf=?0',
    '"content-digest";key=a',
    '"content-digest";key',
  ])('an unknown or unsupported parameter is an error: %s', (text) => {
    const fields = new Map([
      ['x-note', ['a=1']],
      ['content-digest', ['sha-256=:AA==:']],
    ])
    expect(valueFor(text, { fields })).toBeUndefined()
  })
})

describe('sf', () => {
  test.each([
    ['content-digest', ['sha-256=:AA==:,  sha-512=:AQ==:'], 'sha-256=:AA==:, sha-512=:AQ==:'],
    ['content-digest', ['sha-256=:AA==:', 'sha-512=:AQ==:'], 'sha-256=:AA==:, sha-512=:AQ==:'],
    ['content-digest', ['sha-256=:AA:'], 'sha-256=:AA==:'],
    ['signature-input', ['sig1=( "a"   "b" );  created=1'], 'sig1=("a" "b");created=1'],
    ['signature', ['sig1=:AA==: ,sig2=:AQ==:;x'], 'sig1=:AA==:, sig2=:AQ==:;x'],
    ['content-digest', ['a=?1, b=?0, c;x=?1'], 'a, b=?0, c;x'],
    ['content-digest', [''], ''],
  ])('serializes %s %j as %s', (name, lines, expected) => {
    expect(valueFor(`"${name}";sf`, withLines(name, ...lines))).toBe(expected)
    expect(valueFor(`"${name}";sf=?1`, withLines(name, ...lines))).toBe(expected)
  })

  test.each([
    ['a field of unknown type', 'x-note', 'a=1'],
    ['a list field that the verifier does not know', 'accept', 'text/html'],
    ['a malformed field', 'content-digest', 'sha-256=:A A:'],
    ['a field with a duplicate key', 'content-digest', 'a=:AA==:, a=:AQ==:'],
  ])('is an error for %s', (_, name, line) => {
    expect(valueFor(`"${name}";sf`, withLines(name, line))).toBeUndefined()
  })
})

describe('key', () => {
  const inputs = ['sig1=("@method"  "date");created=1, sig2=();x', 'sig3=("a")']
  const digests = ['sha-256=:AA==:;x=1,sha-512=:AQ:', 'id, n=1']

  test.each([
    ['signature-input', 'sig1', inputs, '("@method" "date");created=1'],
    ['signature-input', 'sig2', inputs, '();x'],
    ['signature-input', 'sig3', inputs, '("a")'],
    ['content-digest', 'sha-256', digests, ':AA==:;x=1'],
    ['content-digest', 'sha-512', digests, ':AQ==:'],
    ['content-digest', 'id', digests, '?1'],
    ['content-digest', 'n', digests, '1'],
  ])('reads from %s the member %s', (name, key, lines, expected) => {
    expect(valueFor(`"${name}";key="${key}"`, withLines(name, ...lines))).toBe(expected)
    expect(valueFor(`"${name}";sf;key="${key}"`, withLines(name, ...lines))).toBe(expected)
  })

  test.each([
    ['a missing member', '"content-digest";key="md5"', 'content-digest', 'sha-256=:AA==:'],
    [
      'an upper-case member name',
      '"content-digest";key="SHA-256"',
      'content-digest',
      'sha-256=:AA==:',
    ],
    ['a duplicate member', '"content-digest";key="a"', 'content-digest', 'a=1, a=2'],
    ['a field of unknown type', '"x-note";key="a"', 'x-note', 'a=1'],
    ['a malformed field', '"signature";key="a"', 'signature', 'a=1,'],
    ['an inherited name', '"signature";key="constructor"', 'signature', 'a=1'],
  ])('is an error for %s', (_, text, name, line) => {
    expect(valueFor(text, withLines(name, line))).toBeUndefined()
  })
})

describe('bs', () => {
  // RFC 9421 section 2.1.3.
  test('distinguishes two lines from one line with a comma', () => {
    const two = withLines('example-header', 'value, with, lots', 'of, commas')
    const one = withLines('example-header', 'value, with, lots, of, commas')
    expect(valueFor('"example-header";bs', two)).toBe(
      ':dmFsdWUsIHdpdGgsIGxvdHM=:, :b2YsIGNvbW1hcw==:',
    )
    expect(valueFor('"example-header";bs', one)).toBe(':dmFsdWUsIHdpdGgsIGxvdHMsIG9mLCBjb21tYXM=:')
  })

  test('encodes an empty line as an empty byte sequence', () => {
    expect(valueFor('"x-note";bs', withLines('x-note', ''))).toBe('::')
  })

  test.each([
    '"x-note";bs;sf',
    '"x-note";sf;bs',
    '"x-note";bs;key="a"',
    '"content-digest";bs;key="a"',
  ])('is an error with sf or key: %s', (text) => {
    const fields = new Map([
      ['x-note', ['a=1']],
      ['content-digest', ['a=1']],
    ])
    expect(valueFor(text, { fields })).toBeUndefined()
  })

  test('is an error when the runtime has joined the lines', () => {
    const merged = { ...withLines('x-note', 'a, b'), fieldsMerged: true }
    expect(valueFor('"x-note";bs', merged)).toBeUndefined()
    expect(valueFor('"x-note"', merged)).toBe('a, b')
  })

  test('is an error for an absent field', () => {
    expect(valueFor('"x-note";bs')).toBeUndefined()
  })
})

describe('the readers of a message', () => {
  const fields = new Map([
    ['x-note', ['a']],
    ['content-digest', ['sha-256=:AAAA:, x=1']],
  ])
  const covered = { ...message, fields }

  test('parse each field once', () => {
    const get = vi.spyOn(fields, 'get')
    const dictionaryOf = dictionaryReader(covered)
    const dictionary = dictionaryOf('content-digest')
    expect(dictionary?.size).toBe(2)
    expect(dictionaryOf('content-digest')).toBe(dictionary)
    expect(dictionaryOf('x-note')).toBe(dictionaryOf('x-note'))
    expect(get).toHaveBeenCalledTimes(2)
  })

  test('read an absent field as an empty dictionary', () => {
    expect(dictionaryReader(covered)('signature')?.size).toBe(0)
  })

  test('read each component with parameters once', () => {
    const dictionaryOf = vi.fn(dictionaryReader(covered))
    const read = componentReader(covered, dictionaryOf)
    const components = ['"content-digest";key="x"', '"content-digest";sf'].map(identifier)
    for (const component of [...components, ...components, ...components]) {
      expect(read(component, identityOf(component)).ok).toBe(true)
    }
    expect(dictionaryOf).toHaveBeenCalledTimes(2)
  })

  test('do not confuse a name with another name and its parameters', () => {
    const withParameter = identifier('"x-note";bs')
    const named = identifier('"\\"x-note\\";bs"')
    expect(named[0]).toBe('"x-note";bs')
    const read = componentReader(covered, dictionaryReader(covered))
    for (const component of [withParameter, named, withParameter, named]) {
      expect(read(component, '"x-note";bs').ok).toBe(component === withParameter)
    }
  })
})

describe('the identity of a component', () => {
  const identityFor = (text: string) => identityOf(identifier(text))

  test('is its name if it has no parameters', () => {
    expect(identityFor('"x-note"')).toBe('x-note')
  })

  test.each([
    ['"x-note";sf;key="a"', '"x-note";key="a";sf'],
    ['"x-note";c;b;a', '"x-note";b;a;c'],
  ])('is the same for %s and %s: the order of parameters does not matter', (one, other) => {
    expect(identityFor(one)).toBe(identityFor(other))
  })

  test.each([
    ['"x-note";sf;key="a"', '"x-note";sf;key="b"'],
    ['"x-note";sf', '"x-note";bs'],
    ['"x-note";sf;bs', '"x-other";sf;bs'],
    ['"x-note";a;b', '"x-note";a;c'],
    ['"@query-param";name="a"', '"@query-param";name="b"'],
  ])('differs for %s and %s', (one, other) => {
    expect(identityFor(one)).not.toBe(identityFor(other))
  })
})

describe('any component identifier', () => {
  test('has either a single-line value or a problem', () => {
    const names = fc.constantFrom('@method', '@query-param', 'x-note', 'signature', 'é', '@x', '')
    const text = unicodeText({ maxLength: 8 })
    const parameter = fc.tuple(
      fc.constantFrom('sf', 'key', 'bs', 'tr', 'req', 'name', 'x'),
      fc.oneof(fc.boolean(), fc.constantFrom('a', 'sig1'), text),
    )
    fc.assert(
      fc.property(
        fc.oneof(names, text),
        fc.array(parameter, { maxLength: 3 }),
        fc.array(text, { minLength: 1, maxLength: 3 }),
        (name, parameters, lines) => {
          const fields = new Map([
            ['x-note', lines],
            ['signature', lines],
          ])
          const result = componentIn({ ...message, fields }, [name, new Map(parameters)])
          if (result.ok) expect(result.value).toMatch(/^[\x20-\x7e\t]*$/)
          else expect(result.problem).toEqual(expect.any(String))
        },
      ),
      { numRuns: runs(1000) },
    )
  })
})
