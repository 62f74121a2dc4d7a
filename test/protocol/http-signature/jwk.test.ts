import { createHash, generateKeyPairSync } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import * as native from '../../../src/protocol/http-signature/jwk.js'
import { jwk, jwkWith, respelt } from '../../support/jwk.js'
import { jwkOf, keyFromSeed, testKey } from '../../support/keys.js'
import { importWithoutNode } from '../../support/portable.js'

const portable = await importWithoutNode(
  () => import('../../../src/protocol/http-signature/jwk.js'),
)

const runtimes = [
  ['with Node', native],
  ['with Web Crypto alone', portable],
] as const

const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' })
const x25519 = generateKeyPairSync('x25519').publicKey.export({ format: 'jwk' })
const ed448 = generateKeyPairSync('ed448').publicKey.export({ format: 'jwk' })

describe.each(runtimes)('screening keys %s', (_, { screenJwk, thumbprintOf }) => {
  test('accepts a public Ed25519 key and keeps only its relevant members', () => {
    expect(screenJwk(jwk)).toEqual({ ok: true, value: { kid: jwk.kid, x: jwk.x } })
  })

  test.each([
    ['without a use', { use: undefined }],
    ['with the newer name of the algorithm', { alg: 'Ed25519' }],
    ['with unrelated members', { x5t: 'abc', note: 1, key_ops: ['verify'] }],
    ['with a kid of one character', { kid: '1' }],
    ['with a kid of 256 characters', { kid: 'k'.repeat(256) }],
    ['with a kid that is a URL', { kid: 'https://shop.example/keys#1' }],
  ])('accepts a key %s', (_, changes) => {
    const { kid, x } = jwkWith(changes)
    expect(screenJwk(jwkWith(changes))).toEqual({ ok: true, value: { kid, x } })
  })

  test.each<readonly [string, unknown]>([
    ['undefined', undefined],
    ['null', null],
    ['text', JSON.stringify(jwk)],
    ['a number', 1],
    ['an array', [jwk]],
    ['an empty object', {}],
    ['a private key', jwkWith({ d: 'n4Ni-HpISpVObnQMW0wOhCKROaIKqKtW_2ZYb2p9KcU' })],
    ['a private key with an empty d', jwkWith({ d: '' })],
    ['a private key with a null d', jwkWith({ d: null })],
    ['a symmetric key', { kty: 'oct', k: 'c2VjcmV0', alg: 'HS256', kid: '1' }],
    ['a symmetric key with the members of an Ed25519 key', jwkWith({ kty: 'oct', k: 'c2VjcmV0' })],
    ['an RSA key', { kty: 'RSA', n: 'AQAB', e: 'AQAB', alg: 'PS512', kid: '1' }],
    ['a key on P-256', { ...ec, alg: 'ES256', kid: '1' }],
    ['a key on P-256 that claims EdDSA', { ...ec, alg: 'EdDSA', kid: '1' }],
    ['a key on X25519', { ...x25519, alg: 'EdDSA', kid: '1' }],
    ['a key on Ed448', { ...ed448, alg: 'EdDSA', kid: '1' }],
    ['no kty', jwkWith({ kty: undefined })],
    ['a lower-case kty', jwkWith({ kty: 'okp' })],
    ['no crv', jwkWith({ crv: undefined })],
    ['a lower-case crv', jwkWith({ crv: 'ed25519' })],
    ['no alg', jwkWith({ alg: undefined })],
    ['alg none', jwkWith({ alg: 'none' })],
    ['alg HS256', jwkWith({ alg: 'HS256' })],
    ['alg RS256', jwkWith({ alg: 'RS256' })],
    ['alg eddsa', jwkWith({ alg: 'eddsa' })],
    ['alg ed25519, which is its name in RFC 9421', jwkWith({ alg: 'ed25519' })],
    ['several alg values', jwkWith({ alg: ['EdDSA'] })],
    ['a key for encryption', jwkWith({ use: 'enc' })],
    ['a null use', jwkWith({ use: null })],
    ['no kid', jwkWith({ kid: undefined })],
    ['an empty kid', jwkWith({ kid: '' })],
    ['a kid that is a number', jwkWith({ kid: 1 })],
    ['a kid of 257 characters', jwkWith({ kid: 'k'.repeat(257) })],
    ['no x', jwkWith({ x: undefined })],
    ['an x that is a number', jwkWith({ x: 1 })],
    ['an x in an array', jwkWith({ x: [jwk.x] })],
    ['an x with padding', jwkWith({ x: `${jwk.x}=` })],
    ['an x of 31 bytes', jwkWith({ x: jwk.x.slice(0, 42) })],
    [
      'a point of small order',
      jwkWith({ x: Buffer.from([1, ...Array(31).fill(0)]).toString('base64url') }),
    ],
    [
      'a point outside the curve',
      jwkWith({ x: Buffer.from([2, ...Array(31).fill(0)]).toString('base64url') }),
    ],
    ['a key set', { keys: [jwk] }],
  ])('refuses an invalid key: %s', (_, value) => {
    expect(screenJwk(value)).toEqual({ ok: false, problem: expect.any(String) })
  })

  test('refuses another spelling of the same key, so that each key has one thumbprint', () => {
    for (const name of ['a', 'b', 'c', 'd']) {
      const key = jwkOf(testKey(name))
      expect(screenJwk(key)).toHaveProperty('ok', true)
      for (const x of respelt(key.x)) expect(screenJwk({ ...key, x })).toHaveProperty('ok', false)
    }
  })

  test('the problem never quotes the key', () => {
    const marked = fc.dictionary(
      fc.constantFrom('kty', 'crv', 'alg', 'use', 'kid', 'x', 'd', 'k'),
      fc.constantFrom('shibboleth', ['shibboleth'], { shibboleth: 1 }, 'OKP', 'Ed25519', 'EdDSA'),
    )
    fc.assert(
      fc.property(marked, (changes) => {
        const screened = screenJwk({ ...jwk, ...changes })
        if (!screened.ok) expect(screened.problem).not.toContain('shibboleth')
      }),
      { numRuns: 200 },
    )
  })

  test.each([
    [
      'RFC 8037 A.3',
      '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo',
      'kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k',
    ],
    [
      'the key of RFC 9421 B.1.4',
      'JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs',
      'poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U',
    ],
  ])('computes the thumbprint of %s', async (_, x, thumbprint) => {
    expect(await thumbprintOf({ x })).toBe(thumbprint)
  })

  test('computes the thumbprint of RFC 7638 from the required members only', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ minLength: 32, maxLength: 32 }), async (seed) => {
        const { x } = keyFromSeed(seed, 'kid')
        const required = JSON.stringify({ crv: 'Ed25519', kty: 'OKP', x })
        const expected = createHash('sha256').update(required).digest('base64url')
        expect(await thumbprintOf({ x, ...{ kid: 'other' } })).toBe(expected)
      }),
      { numRuns: 30 },
    )
  })
})

describe('publishedJwk', () => {
  test('returns a key that passes screening unchanged', () => {
    const { kid, x } = jwk
    const published = native.publishedJwk({ kid, x })
    expect(published).toEqual({ kid, x, kty: 'OKP', crv: 'Ed25519', alg: 'EdDSA', use: 'sig' })
    expect(native.screenJwk(JSON.parse(JSON.stringify(published)))).toEqual({
      ok: true,
      value: { kid, x },
    })
  })

  test('omits the private members', () => {
    const { privateKey, thumbprint, ...rest } = testKey('shop')
    const careless = { ...rest, d: 'secret', privateKey, thumbprint }
    expect(Object.keys(native.publishedJwk(careless)).sort()).toEqual([
      'alg',
      'crv',
      'kid',
      'kty',
      'use',
      'x',
    ])
  })
})

test('an x of another length than 43 characters is refused before its point is computed', () => {
  const { x, kid } = jwk
  expect(native.readPublicJwk(jwk)).toEqual({ ok: true, value: { kid, x } })
  for (const other of [x.slice(1), `${x}A`]) {
    expect(native.readPublicJwk({ ...jwk, x: other })).toMatchObject({ ok: false })
  }
})
