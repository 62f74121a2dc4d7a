import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import * as native from '../../../src/protocol/http-signature/content-digest.js'
import { parseStrictDictionary } from '../../../src/protocol/http-signature/dictionary.js'
import { importWithoutNode } from '../../support/portable.js'
import { runs } from '../../support/runs.js'
import { unicodeText } from '../../support/unicode-text.js'

const portable = await importWithoutNode(
  () => import('../../../src/protocol/http-signature/content-digest.js'),
)

const body = Buffer.from('{"hello": "world"}')
const other = Buffer.from('{"hello": "mars!"}')

function base64(algorithm: string, bytes: Uint8Array): string {
  return createHash(algorithm).update(bytes).digest('base64')
}
const sha256 = `sha-256=:${base64('sha256', body)}:`
const sha512 = `sha-512=:${base64('sha512', body)}:`
const wrong256 = `sha-256=:${base64('sha256', other)}:`
const wrong512 = `sha-512=:${base64('sha512', other)}:`

describe.each([
  ['with Node', native],
  ['with Web Crypto only', portable],
])('content digests %s', (_, { contentDigestProblem }) => {
  function problemWith(value: string, body: Uint8Array): Promise<string | undefined> {
    return contentDigestProblem(parseStrictDictionary(value), body)
  }

  test.each([
    ['sha-256', sha256],
    ['sha-512', sha512],
    ['both', `${sha256}, ${sha512}`],
    ['both in reverse order', `${sha512},${sha256}`],
    ['one beside an unknown algorithm', `sha3-256=:AA==:, ${sha256}`],
    ['one beside a deprecated algorithm, right or wrong', `md5=:AA==:, ${sha512}, sha=:AA==:`],
    ['one beside an unknown algorithm of another type', `id=1, ${sha256}, x`],
    ['one with a parameter', `${sha256};x=1`],
    ['one without its padding', sha256.replaceAll('=:', ':').replace('256:', '256=:')],
    ['one with surrounding whitespace', ` ${sha256} `],
  ])('accepts %s', async (_, value) => {
    expect(await problemWith(value, body)).toBeUndefined()
  })

  test.each([
    ['a digest of another body', wrong256],
    ['a digest of another body by the longer algorithm', wrong512],
    ['a correct digest before a wrong one', `${sha256}, ${wrong512}`],
    ['a correct digest after a wrong one', `${wrong512}, ${sha256}`],
    ['a wrong digest of the weaker algorithm', `${sha512}, ${wrong256}`],
    ['the sha-256 digest with the name sha-512', `sha-512=:${base64('sha256', body)}:`],
    ['the sha-512 digest with the name sha-256', `sha-256=:${base64('sha512', body)}:`],
    ['a truncated digest', `sha-256=:${base64('sha256', body).slice(0, 40)}:`],
    [
      'a digest with an additional byte',
      `sha-256=:${Buffer.from([...createHash('sha256').update(body).digest(), 0]).toString('base64')}:`,
    ],
    ['an empty byte sequence', 'sha-256=::'],
    ['a string instead of bytes', `sha-256="${base64('sha256', body)}"`],
    ['a token instead of bytes', 'sha-256=abc'],
    ['a flag', 'sha-256'],
    ['a list of byte sequences', `sha-256=(:${base64('sha256', body)}:)`],
    ['a number beside a correct digest', `sha-256=1, ${sha512}`],
    ['the same algorithm twice, both correct', `${sha256}, ${sha256}`],
    ['the same algorithm twice, only the last one correct', `${wrong256}, ${sha256}`],
    ['nothing', ''],
    ['a field with only unknown algorithms', 'sha3-512=:AA==:, x=1'],
    ['an upper-case algorithm', sha256.replace('sha', 'SHA')],
    ['a trailing comma', `${sha256},`],
    ['the obsolete form of RFC 3230', `SHA-256=${base64('sha256', body)}`],
  ])('refuses %s', async (_, value) => {
    expect(await problemWith(value, body)).toEqual(expect.any(String))
  })

  // RFC 9530 section 5; the values are correct.
  test.each([
    ['md5', `md5=:${base64('md5', body)}:`],
    ['sha', `sha=:${base64('sha1', body)}:`],
    ['unixsum', 'unixsum=:AA==:'],
    ['unixcksum', 'unixcksum=:AA==:'],
    ['adler', 'adler=:AA==:'],
    ['crc32c', 'crc32c=:AA==:'],
  ])('refuses a field with only the deprecated %s', async (_, value) => {
    expect(await problemWith(value, body)).toEqual(expect.any(String))
  })

  test('accepts only the digest of zero bytes for an empty body', async () => {
    const empty = new Uint8Array()
    const ofNothing = 'sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:'
    expect(await problemWith(ofNothing, empty)).toBeUndefined()
    expect(await problemWith(ofNothing, body)).toEqual(expect.any(String))
    expect(await problemWith(sha256, empty)).toEqual(expect.any(String))
  })

  test('covers the bytes of the body, not the JSON value', async () => {
    for (const text of ['{"a":1}', '{ "a": 1 }', '{"\\u0061":1}', '{"a":1}\n', '\ufeff{"a":1}']) {
      const bytes = Buffer.from(text)
      const value = `sha-256=:${base64('sha256', bytes)}:`
      expect(await problemWith(value, bytes)).toBeUndefined()
      const compact = Buffer.from('{"a":1}')
      const same = Buffer.compare(bytes, compact) === 0
      expect((await problemWith(value, compact)) === undefined).toBe(same)
    }
  })

  test('detects any added, removed or changed byte', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.uint8Array({ maxLength: 60 }),
        fc.nat(),
        fc.integer({ min: 1, max: 255 }),
        fc.constantFrom('change', 'add', 'drop'),
        fc.constantFrom(['sha-256', 'sha256'], ['sha-512', 'sha512']),
        async (bytes, at, difference, how, [name, algorithm]) => {
          const value = `${name}=:${base64(algorithm ?? '', bytes)}:`
          const index = at % (bytes.length + 1)
          const tampered = [...bytes]
          if (how === 'add') tampered.splice(index, 0, difference)
          if (how === 'drop') tampered.splice(index, 1)
          if (how === 'change') tampered[index] = (tampered[index] ?? 0) ^ difference
          const same = Buffer.compare(bytes, Buffer.from(tampered)) === 0
          expect(await problemWith(value, bytes)).toBeUndefined()
          const problem = await problemWith(value, Uint8Array.from(tampered))
          expect(problem === undefined).toBe(same)
        },
      ),
      { numRuns: runs(200) },
    )
  })

  test('returns a result for any text and does not quote it', async () => {
    await fc.assert(
      fc.asyncProperty(unicodeText(), async (text) => {
        const problem = await problemWith(`shibboleth=${text}`, body)
        expect(problem ?? 'shibboleth').not.toContain('shibboleth')
      }),
      { numRuns: runs(300) },
    )
  })
})
