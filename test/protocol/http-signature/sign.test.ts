import * as nodeCrypto from 'node:crypto'
import { verify } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import * as native from '../../../src/protocol/http-signature/ed25519.js'
import {
  inspectSignatures,
  verifyCandidates,
} from '../../../src/protocol/http-signature/inspect.js'
import type { SigningKey, UnsignedRequest } from '../../../src/protocol/http-signature/sign.js'
import * as nativeSign from '../../../src/protocol/http-signature/sign.js'
import { startOfTests } from '../../support/clock.js'
import { privateJwkOf } from '../../support/introspection.js'
import { keyFromSeed, testKey } from '../../support/keys.js'
import { importWithBuiltins, importWithoutNode } from '../../support/portable.js'
import { contentDigest } from '../../support/sign.js'
import { messageOf, messageOrigin, profileFreshness } from '../../support/signed-message.js'

const [portable, portableSign] = await importWithoutNode(() =>
  Promise.all([
    import('../../../src/protocol/http-signature/ed25519.js'),
    import('../../../src/protocol/http-signature/sign.js'),
  ]),
)

/** Like Node 26, whose imports check that a private key matches its `x`. */
const strictCrypto = {
  ...nodeCrypto,
  createPrivateKey(input: nodeCrypto.JsonWebKeyInput) {
    const key = nodeCrypto.createPrivateKey(input)
    const { x } = nodeCrypto.createPublicKey(key).export({ format: 'jwk' })
    if (x === input.key.x) return key
    throw Object.assign(new TypeError('Invalid JWK OKP key'), { code: 'ERR_CRYPTO_INVALID_JWK' })
  },
}
const strict = await importWithBuiltins(
  (id) => (id === 'node:crypto' ? strictCrypto : undefined),
  () => import('../../../src/protocol/http-signature/sign.js'),
)

const runtimes = [
  ['with Node', native.signerOf, nativeSign],
  ['with Web Crypto alone', portable.signerOf, portableSign],
] as const

// RFC 8032 section 7.1.
const vectors = [
  {
    name: 'TEST 1',
    secret: '9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60',
    message: '',
    signature:
      'e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b',
  },
  {
    name: 'TEST 2',
    secret: '4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb',
    message: 'r',
    signature:
      '92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00',
  },
] as const

const key = testKey('bank')
const jwk = privateJwkOf(key)
const url = `${messageOrigin}/auth/introspect`
const request: UnsignedRequest = {
  method: 'POST',
  url,
  body: Buffer.from('{"a":1}'),
  createdAt: startOfTests + 999,
  nonce: 'once',
}

describe.each(runtimes)('a private key %s', (_, signerOf, { readSigningKey, signatureHeaders }) => {
  function signingKey(kid = key.kid, from = jwk): SigningKey {
    const read = readSigningKey(kid, from)
    if (!read.ok) throw new Error(read.problem)
    return read.value
  }

  test.each(vectors)('signs RFC 8032, $name', async ({ secret, message, signature }) => {
    const seed = Buffer.from(secret, 'hex')
    const { x } = keyFromSeed(seed, 'kid')
    const sign = signerOf({ x, d: seed.toString('base64url') })
    expect(Buffer.from((await sign?.(message)) ?? []).toString('hex')).toBe(signature)
  })

  test.each([
    ['without kty', { kty: undefined }],
    ['with another kty', { kty: 'EC' }],
    ['with another crv', { crv: 'X25519' }],
    ['without x', { x: undefined }],
    ['without d', { d: undefined }],
    ['with padding in x', { x: `${jwk.x}=` }],
    ['with padding in d', { d: `${jwk.d}=` }],
    ['with a short d', { d: jwk.d?.slice(0, 40) }],
    ['with an x of small order', { x: `AQ${'A'.repeat(41)}` }],
  ])('is refused %s and not quoted', (_name, change) => {
    const read = readSigningKey('kid', { ...jwk, ...change })
    expect(read).toEqual({ ok: false, problem: expect.any(String) })
    expect(JSON.stringify(read)).not.toContain(jwk.d?.slice(0, 20))
  })

  test.each([undefined, '', 17, 'é', 'a\nb', 'x'.repeat(257)])('is refused with kid %j', (kid) => {
    expect(readSigningKey(kid, jwk)).toHaveProperty('ok', false)
  })

  test('creates signatures that the verifier accepts for any request', async () => {
    const text = fc.string({ unit: fc.constantFrom(...'aZ09-_."\\;=:()'), minLength: 1 })
    const segment = fc.string({ unit: fc.constantFrom(...'aZ09-_.~%?&=;:@') })
    await fc.assert(
      fc.asyncProperty(
        fc.record({
          kid: text,
          nonce: fc.option(text, { nil: undefined }),
          method: fc.constantFrom('POST', 'GET', 'DELETE'),
          path: segment,
          body: fc.uint8Array({ maxLength: 50 }),
          lateMs: fc.integer({ min: 0, max: 300_000 }),
        }),
        async ({ kid, nonce, method, path, body, lateMs }) => {
          const unsigned = {
            method,
            url: `${messageOrigin}/${path}`,
            body,
            createdAt: startOfTests,
          }
          const headers = await signatureHeaders(
            nonce === undefined ? unsigned : { ...unsigned, nonce },
            signingKey(kid),
          )
          const withType = { ...headers, 'content-type': 'application/json' }
          const sent = { method, url: `/${path}`, headers: Object.entries(withType), body }
          const inspection = await inspectSignatures(
            messageOf(sent),
            startOfTests + lateMs,
            profileFreshness,
          )
          if (!inspection.ok) throw new Error(inspection.problem)
          const found = await verifyCandidates(inspection.value, { kid, x: key.x })
          expect(found).toMatchObject({ keyid: kid, createdAt: startOfTests })
          expect(found?.nonce).toBe(nonce)
        },
      ),
      { numRuns: 100 },
    )
  })

  test('covers the method, target and digest, with the gnap tag and no alg', async () => {
    const headers = await signatureHeaders(request, signingKey())
    const input = `("@method" "@target-uri" "content-digest");created=${startOfTests / 1000};keyid="bank-key";nonce="once";tag="gnap"`
    const digest = contentDigest(request.body, 'sha-256')
    expect(headers).toEqual({
      'content-digest': digest,
      'signature-input': `sig1=${input}`,
      signature: expect.stringMatching(/^sig1=:[A-Za-z0-9+/]{86}==:$/),
    })
    const base = `"@method": POST\n"@target-uri": ${url}\n"content-digest": ${digest}\n"@signature-params": ${input}`
    const signature = Buffer.from(headers['signature']?.slice(6, -1) ?? '', 'base64')
    expect(verify(null, Buffer.from(base), key.privateKey, signature)).toBe(true)
  })

  test('sends no digest without a body', async () => {
    const headers = await signatureHeaders({ ...request, body: new Uint8Array() }, signingKey())
    expect(headers).not.toHaveProperty('content-digest')
    expect(headers['signature-input']).toContain('("@method" "@target-uri");')
  })
})

describe('a private key that does not match its x', () => {
  const foreign = { ...jwk, x: testKey('mallory').x }

  test('is refused immediately on Node', () => {
    expect(nativeSign.readSigningKey('kid', foreign)).toHaveProperty('ok', false)
  })

  test('is refused on a Node version that rejects the mismatch on import', () => {
    expect(strict.readSigningKey('kid', foreign)).toEqual(nativeSign.readSigningKey('kid', foreign))
    expect(strict.readSigningKey('kid', jwk)).toHaveProperty('ok', true)
  })

  test('never signs with Web Crypto', async () => {
    const read = portableSign.readSigningKey('kid', foreign)
    if (!read.ok) throw new Error(read.problem)
    await expect(read.value.sign('text')).rejects.toThrow('does not match x')
    await expect(read.value.sign('text')).rejects.toThrow('does not match x')
  })
})
