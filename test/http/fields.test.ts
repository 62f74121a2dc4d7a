import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { HttpRequest } from '../../src/entry-adapter.js'
import { readFields, readMessage } from '../../src/http/fields.js'

type Line = readonly [string, string]

function read(headers: readonly Line[], more: Partial<HttpRequest> = {}) {
  return readFields({ method: 'POST', url: '/auth', headers, body: new Uint8Array(), ...more })
}

function fieldsOf(headers: readonly Line[], more: Partial<HttpRequest> = {}) {
  const result = read(headers, more)
  if (!result.ok) throw new Error(result.reason)
  return Object.fromEntries(result.value)
}

function refusalOf(headers: readonly Line[], more: Partial<HttpRequest> = {}): string | undefined {
  const result = read(headers, more)
  return result.ok ? undefined : result.refusal
}

const merged = { headersMerged: true }
const json = { body: Buffer.from('{}') }

describe('header lines', () => {
  test('are grouped by name, ignoring case, in the order of arrival', () => {
    expect(
      fieldsOf([
        ['Signature', 'a'],
        ['X-Other', '1'],
        ['signature', 'b'],
        ['SIGNATURE', 'c'],
      ]),
    ).toEqual({ signature: ['a', 'b', 'c'], 'x-other': ['1'] })
  })

  test('keep their value, without the white space around it', () => {
    expect(
      fieldsOf([
        ['a', ' \t x \t y \t'],
        ['b', ''],
        ['c', '  '],
        ['d', '\u00a0x\u00a0'],
      ]),
    ).toEqual({ a: ['x \t y'], b: [''], c: [''], d: ['\u00a0x\u00a0'] })
  })

  test('with the name of an object method are ordinary fields', () => {
    expect(fieldsOf([['constructor', '1']])).toEqual({ constructor: ['1'] })
    const result = read([['__proto__', '1']])
    expect(result.ok && result.value.get('__proto__')).toEqual(['1'])
  })

  test('that are HTTP/2 pseudo-headers are ignored', () => {
    expect(
      fieldsOf([
        [':authority', 'evil.example'],
        [':path', '/'],
        ['a', '1'],
      ]),
    ).toEqual({ a: ['1'] })
  })

  test.each(['\n', '\r', '\r\n', '\0'])('are refused if they contain %j', (character) => {
    expect(refusalOf([['a', `x${character}y`]])).toBe('headers_invalid')
    expect(refusalOf([['a', `${character}`]])).toBe('headers_invalid')
    expect(refusalOf([['a', ` x${character} `]])).toBe('headers_invalid')
  })

  test('keep every other character of their value', () => {
    const visible = fc.string({
      unit: fc.constantFrom(...'aZ09 \t,;:="\\é\u00a0\u007f'),
      maxLength: 40,
    })
    fc.assert(
      fc.property(fc.array(visible, { minLength: 1, maxLength: 5 }), (values) => {
        const lines = values.map((value): Line => ['X', value])
        const expected = values.map((value) => value.replace(/^[ \t]+/, '').replace(/[ \t]+$/, ''))
        expect(fieldsOf(lines)).toEqual({ x: expected })
      }),
      { numRuns: 300 },
    )
  })
})

describe('the size of a header', () => {
  test('is limited to 128 lines', () => {
    const lines = (count: number) => Array.from({ length: count }, (_, i): Line => [`x${i}`, 'y'])
    expect(refusalOf(lines(128))).toBeUndefined()
    expect(refusalOf(lines(129))).toBe('headers_invalid')
    expect(refusalOf(Array.from({ length: 129 }, (): Line => ['same', 'y']))).toBe(
      'headers_invalid',
    )
  })

  test('is limited to 8 KiB for each value', () => {
    expect(refusalOf([['a', 'x'.repeat(8_192)]])).toBeUndefined()
    expect(refusalOf([['a', 'x'.repeat(8_193)]])).toBe('headers_invalid')
    expect(refusalOf([['a', `x${' '.repeat(8_192)}`]])).toBe('headers_invalid')
  })

  test('is checked before anything else', () => {
    const twice: Line[] = [
      ['authorization', 'GNAP a'],
      ['authorization', 'GNAP b'],
    ]
    const many = Array.from({ length: 100_000 }, (): Line => ['x', '\n'])
    expect(refusalOf([...twice, ...many])).toBe('headers_invalid')
  })
})

const singletons: readonly (readonly [string, string])[] = [
  ['Authorization', 'GNAP token'],
  ['Content-Type', 'application/json'],
  ['Content-Length', '2'],
  ['Content-Encoding', 'identity'],
  ['Content-Digest', 'sha-256=:AAAA:'],
  ['Host', 'wallet.example'],
]

describe('a header that must not repeat', () => {
  test.each(singletons)('is accepted once: %s', (name, value) => {
    expect(refusalOf([[name, value]])).toBeUndefined()
  })

  test.each(singletons)('is refused twice, even with the same value: %s', (name, value) => {
    const twice: Line[] = [
      [name, value],
      [name.toLowerCase(), value],
    ]
    expect(refusalOf(twice)).toBe('headers_invalid')
    expect(refusalOf(twice, merged)).toBe('headers_invalid')
    expect(refusalOf([...twice, [name.toUpperCase(), 'other']])).toBe('headers_invalid')
  })

  test.each(singletons)('is refused twice, even if one is empty: %s', (name, value) => {
    expect(
      refusalOf([
        [name, value],
        [name, ''],
      ]),
    ).toBe('headers_invalid')
  })

  test.each(
    // A digest contains commas itself, so that two merged lines look like one.
    singletons.filter(([name]) => name !== 'Content-Digest'),
  )('is refused with a comma if lines may have been merged: %s', (name, value) => {
    expect(refusalOf([[name, `${value}, ${value}`]], merged)).toBe('headers_invalid')
    expect(refusalOf([[name, `${value},`]], merged)).toBe('headers_invalid')
  })

  test('is accepted with several digests in one line, merged or not', () => {
    const line: Line = ['Content-Digest', 'sha-256=:AAAA:, sha-512=:BBBB:']
    expect(refusalOf([line])).toBeUndefined()
    expect(refusalOf([line], merged)).toBeUndefined()
  })

  test('is not Signature, Signature-Input or Accept', () => {
    const lines: Line[] = [
      ['Signature', 'a=:AA==:'],
      ['Signature', 'b=:AA==:'],
      ['Signature-Input', 'a=()'],
      ['Signature-Input', 'b=()'],
      ['Accept', 'a'],
      ['Accept', 'b'],
    ]
    expect(refusalOf(lines)).toBeUndefined()
    expect(refusalOf([['signature', 'a=:AA==:, b=:AA==:']], merged)).toBeUndefined()
  })
})

describe('the content coding of a body', () => {
  test.each(['identity', 'Identity', ' identity '])('may be %j', (coding) => {
    expect(refusalOf([['content-encoding', coding]])).toBeUndefined()
  })

  test.each(['gzip', 'br', 'deflate', 'x-gzip', '', 'identity;q=1', 'gzip, identity'])(
    'must not be %j, because the digest covers the coded bytes',
    (coding) => {
      expect(refusalOf([['content-encoding', coding]], json)).toBe('media_type_unsupported')
    },
  )
})

describe('the media type of a body', () => {
  test.each([
    'application/json',
    'application/json; charset=utf-8',
    'application/json;charset=utf-8',
    'application/json ;charset=utf-8',
    'application/json\t; charset=utf-8',
    'Application/JSON',
    ' application/json ',
    'application/json;',
  ])('may be %j', (type) => {
    expect(refusalOf([['content-type', type]], json)).toBeUndefined()
  })

  test.each([
    'text/plain',
    'application/jsonp',
    'application/json-patch+json',
    'application/ld+json',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'text/plain; application/json',
    'text/plain, application/json',
    'application/json, text/plain',
    'application /json',
    '*/*',
    'json',
    '',
  ])('must not be %j', (type) => {
    expect(refusalOf([['content-type', type]], json)).toBe('media_type_unsupported')
  })

  test('is required', () => {
    expect(refusalOf([], json)).toBe('media_type_unsupported')
  })

  test('is ignored if there is no body', () => {
    expect(refusalOf([['content-type', 'text/plain']])).toBeUndefined()
    expect(refusalOf([])).toBeUndefined()
  })

  test('is checked after ambiguous headers', () => {
    const lines: Line[] = [
      ['content-type', 'text/plain'],
      ['content-type', 'application/json'],
    ]
    expect(refusalOf(lines, json)).toBe('headers_invalid')
  })
})

describe('the message to verify', () => {
  const request: HttpRequest = {
    method: 'post',
    url: '/stripped?x=1',
    headers: [['Host', 'evil.example']],
    body: new Uint8Array(),
  }

  test('has the configured origin and target, and the method as sent', () => {
    const result = readMessage(request, 'https://wallet.example', '/api/stripped?x=1')
    expect(result.ok && result.value).toMatchObject({
      method: 'post',
      origin: 'https://wallet.example',
      target: '/api/stripped?x=1',
      fieldsMerged: false,
    })
  })

  test('has the exact bytes of the body', () => {
    const body = Buffer.from('{"a":\r\n1}\ufeff')
    const headers: Line[] = [['content-type', 'application/json']]
    const result = readMessage({ ...request, headers, body }, 'https://w.example', '/')
    expect(result.ok && Buffer.from(result.value.body)).toEqual(body)
  })

  test('is not created if the headers are refused', () => {
    const headers: Line[] = [
      ['Host', 'a'],
      ['Host', 'b'],
    ]
    const result = readMessage({ ...request, headers }, 'https://w.example', '/')
    expect(result).toMatchObject({ refusal: 'headers_invalid' })
  })
})
