import * as nodeCrypto from 'node:crypto'
import { createHash, createHmac } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import * as native from '../../src/util/hash.js'
import { importWithBuiltins, importWithoutNode } from '../support/portable.js'

const portable = await importWithoutNode(() => import('../../src/util/hash.js'))
const early = await importWithBuiltins(
  () => ({ ...nodeCrypto, hash: undefined }),
  () => import('../../src/util/hash.js'),
)

const utf8 = (text: string) => new TextEncoder().encode(text)
const hex = async (digest: native.Digest) => Buffer.from(await digest).toString('hex')

describe('the hash implementation', () => {
  test('is synchronous on Node', () => {
    expect(native.sha256('abc')).toBeInstanceOf(Uint8Array)
    expect(native.sha512('abc')).toBeInstanceOf(Uint8Array)
    expect(native.hmacSha256(utf8('key'), utf8('data'))).toBeInstanceOf(Uint8Array)
  })

  test('is asynchronous with Web Crypto', () => {
    expect(portable.sha256('abc')).toBeInstanceOf(Promise)
    expect(portable.sha512('abc')).toBeInstanceOf(Promise)
    expect(portable.hmacSha256(utf8('key'), utf8('data'))).toBeInstanceOf(Promise)
  })
})

describe.each([
  ['with Node', native],
  ['with Node versions without crypto.hash', early],
  ['with Web Crypto only', portable],
])('hashing %s', (_, { sha256, sha512, hmacSha256, hashText }) => {
  // FIPS 180-4, examples of the Secure Hash Standard.
  test.each([
    ['', 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'],
    ['abc', 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'],
    [
      'abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq',
      '248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1',
    ],
  ])('returns the SHA-256 hash of %j', async (text, expected) => {
    expect(await hex(sha256(text))).toBe(expected)
    expect(await hex(sha256(utf8(text)))).toBe(expected)
  })

  test('returns the SHA-512 hash of "abc"', async () => {
    const expected =
      'ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a' +
      '2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f'
    expect(await hex(sha512('abc'))).toBe(expected)
    expect(await hex(sha512(utf8('abc')))).toBe(expected)
  })

  // RFC 4231, test cases 1, 2, 3 and 6.
  test.each([
    [
      '0b'.repeat(20),
      'Hi There',
      'b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7',
    ],
    [
      Buffer.from('Jefe').toString('hex'),
      'what do ya want for nothing?',
      '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843',
    ],
    [
      'aa'.repeat(20),
      Buffer.alloc(50, 0xdd).toString('latin1'),
      '773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe',
    ],
    [
      'aa'.repeat(131),
      'Test Using Larger Than Block-Size Key - Hash Key First',
      '60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54',
    ],
  ])('returns the HMAC-SHA-256 for the key %s', async (key, data, expected) => {
    const mac = hmacSha256(Buffer.from(key, 'hex'), Buffer.from(data, 'latin1'))
    expect(await hex(mac)).toBe(expected)
  })

  test('matches the platform for any bytes and any view of a larger buffer', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.uint8Array({ minLength: 1, maxLength: 200 }),
        fc.uint8Array({ minLength: 3, maxLength: 300 }),
        async (key, bytes) => {
          const view = bytes.subarray(1, bytes.length - 1)
          expect(await hex(sha256(view))).toBe(createHash('sha256').update(view).digest('hex'))
          expect(await hex(sha512(view))).toBe(createHash('sha512').update(view).digest('hex'))
          const mac = createHmac('sha256', key).update(view).digest('hex')
          expect(await hex(hmacSha256(key, view))).toBe(mac)
        },
      ),
      { numRuns: 100 },
    )
  })

  test('hashes text as UTF-8', async () => {
    const text = 'Grüße 💸'
    expect(await hex(sha256(text))).toBe(createHash('sha256').update(text, 'utf8').digest('hex'))
    expect(await hex(sha512(text))).toBe(createHash('sha512').update(text, 'utf8').digest('hex'))
    const inBase64url = createHash('sha256').update(text, 'utf8').digest('base64url')
    expect(await hashText(text)).toBe(inBase64url)
  })
})
