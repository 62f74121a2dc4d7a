import { createHash, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import * as native from '../../../src/protocol/http-signature/jwk.js'
import { jwkOf, keyFromSeed, testKey } from '../../support/keys.js'
import { importWithoutNode } from '../../support/portable.js'

const portable = await importWithoutNode(
  () => import('../../../src/protocol/http-signature/jwk.js'),
)

const runtimes = [
  ['with Node', native],
  ['with Web Crypto alone', portable],
] as const

const jwk = jwkOf(testKey('shop'))
const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

/** Returns the key with changed members; members set to `undefined` are removed. */
function jwkWith(changes: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const members = Object.entries({ ...jwk, ...changes })
  return Object.fromEntries(members.filter(([, value]) => value !== undefined))
}

/** Returns the other spellings of the bytes of `x`, which differ only in stray bits. */
function respelt(x: string): string[] {
  const last = alphabet.indexOf(x.at(-1) ?? '')
  return [1, 2, 3].map((bits) => x.slice(0, -1) + alphabet.charAt(last ^ bits))
}

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

describe('a pasted key', () => {
  const { readClientKey } = portable
  const pem = (key: KeyObject) => key.export({ format: 'pem', type: 'spki' }).toString()
  const pemOfX = (x: string) => pem(createPublicKey({ key: { ...jwk, x }, format: 'jwk' }))
  /** A PEM with any 32 bytes as its key. */
  const pemWith = (...bytes: readonly number[]) => {
    const key = Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), Buffer.from(bytes)])
    return `-----BEGIN PUBLIC KEY-----\n${key.toString('base64')}\n-----END PUBLIC KEY-----\n`
  }
  const { kid, x } = jwk
  const bare = { kty: 'OKP', crv: 'Ed25519', x }
  const text = (changes: Readonly<Record<string, unknown>>) => JSON.stringify(jwkWith(changes))
  const sound = fc
    .uint8Array({ minLength: 32, maxLength: 32 })
    .map((seed) => keyFromSeed(seed, 'kid').x)
  const secret = 'n4Ni-HpISpVObnQMW0wOhCKROaIKqKtW_2ZYb2p9KcU'
  const pair = generateKeyPairSync('ed25519')
  const pkcs8 = pair.privateKey.export({ format: 'pem', type: 'pkcs8' }).toString()

  test('is the same as JWK, as the only key of a JWKS, and as PEM, with white space around', () => {
    const space = fc.constantFrom('', ' ', '\n', '\r\n\t', '\ufeff')
    fc.assert(
      fc.property(sound, space, space, (x, before, after) => {
        const read = (given: string) => readClientKey(before + given + after)
        const members = { kty: 'OKP', crv: 'Ed25519', x }
        expect(read(JSON.stringify(members))).toEqual({ ok: true, key: { x } })
        const full = { ...members, alg: 'EdDSA', use: 'sig', kid: 'https://app.example/#1' }
        const named = { ok: true, key: { x, kid: full.kid } }
        expect(read(JSON.stringify(full, null, 2))).toEqual(named)
        expect(read(JSON.stringify({ keys: [full] }))).toEqual(named)
        expect(read(pemOfX(x))).toEqual({ ok: true, key: { x } })
        expect(read(pemOfX(x).replaceAll('\n', ' '))).toEqual({ ok: true, key: { x } })
      }),
      { numRuns: 50 },
    )
  })

  test.each<readonly [string, string, string]>([
    ['nothing', '', 'key_missing'],
    ['prose', 'my key', 'key_missing'],
    ['an SSH key', 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA== me', 'key_missing'],
    ['an empty object', '{}', 'key_missing'],
    ['an empty key set', '{"keys":[]}', 'key_missing'],
    ['a key set of two keys', JSON.stringify({ keys: [jwk, jwk] }), 'keys_several'],
    ['a private JWK', text({ d: secret }), 'key_private'],
    ['a private JWK in a key set', JSON.stringify({ keys: [jwk, { d: secret }] }), 'key_private'],
    ['a private part in a member', text({ ext: { d: secret } }), 'key_private'],
    ['a private part in a list', text({ ext: [[{ p: secret }]] }), 'key_private'],
    ['a private part in capital letters', text({ D: secret }), 'key_private'],
    ['a private part with another name', text({ privateKey: secret }), 'key_private'],
    [
      'a private part with an escaped name',
      text({}).replace('{', '{"\\u0064":"a",'),
      'key_private',
    ],
    [
      'a private part that a later member replaces',
      text({ ext: 1 }).replace('{', `{"ext":{"d":"${secret}"},`),
      'key_private',
    ],
    ['half of a private JWK', `{"d": "${secret}","x":`, 'key_private'],
    ['a symmetric key', JSON.stringify({ kty: 'oct', k: secret }), 'key_private'],
    ['a private PEM', pkcs8, 'key_private'],
    ['a private PEM that is cut off', pkcs8.slice(0, 60), 'key_private'],
    [
      'a private PEM that claims to be public',
      pkcs8.replaceAll('PRIVATE', 'PUBLIC'),
      'key_private',
    ],
    ['a private PEM after a public key', pem(pair.publicKey) + pkcs8, 'key_private'],
    ['an encrypted PEM', '-----BEGIN ENCRYPTED PRIVATE KEY-----', 'key_private'],
    ['a long private PEM', `-----BEGIN RSA PRIVATE KEY-----${'A'.repeat(5_000)}`, 'key_private'],
    ['4,097 characters', ' '.repeat(4_097), 'key_too_long'],
    ['a JWK on P-256', JSON.stringify(ec), 'key_unsupported'],
    ['a JWK on X25519', JSON.stringify(x25519), 'key_unsupported'],
    ['a JWK on Ed448', JSON.stringify(ed448), 'key_unsupported'],
    ['a JWK for another algorithm', text({ alg: 'ES256' }), 'key_unsupported'],
    ['a JWK for encryption', text({ use: 'enc' }), 'key_unsupported'],
    ['a certificate', '-----BEGIN CERTIFICATE-----\nMII=\n', 'key_unsupported'],
    ['a JWK that is cut off', text({}).slice(0, -5), 'key_damaged'],
    ['a JWK without x', text({ x: undefined }), 'key_damaged'],
    ['a JWK with a short x', text({ x: x.slice(1) }), 'key_damaged'],
    ['a JWK with padding', text({ x: `${x}=` }), 'key_damaged'],
    ['a PEM that is cut off', pemOfX(x).slice(0, -5), 'key_damaged'],
    ['a PEM with a key of 31 bytes', pemWith(...Array(31).fill(9)), 'key_damaged'],
    ['a PEM without content', '-----BEGIN PUBLIC KEY----------END PUBLIC KEY-----', 'key_damaged'],
    ['another spelling of x', text({ x: respelt(x)[0] }), 'key_unsound'],
    ['a PEM of small order', pemWith(1, ...Array(31).fill(0)), 'key_unsound'],
    ['a PEM that is not canonical', pemWith(...Array(31).fill(255), 127), 'key_unsound'],
    ['a PEM outside the curve', pemWith(2, ...Array(31).fill(0)), 'key_unsound'],
    ['an empty kid', text({ kid: '' }), 'kid_invalid'],
    ['a kid that no signature can name', text({ kid: 'schlüssel' }), 'kid_invalid'],
    ['a kid that is a number', text({ kid: 1 }), 'kid_invalid'],
    ['a kid of 257 characters', text({ kid: 'k'.repeat(257) }), 'kid_invalid'],
  ])('is refused with a sentence: %s', (_, given, refusal) => {
    const reason = expect.stringMatching(/^[A-Z].*\.$/)
    expect(readClientKey(given)).toEqual({ ok: false, refusal, reason })
  })

  test.each<readonly [string, KeyObject]>([
    ['P-256', generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey],
    ['P-521', generateKeyPairSync('ec', { namedCurve: 'P-521' }).publicKey],
    ['RSA', generateKeyPairSync('rsa', { modulusLength: 1_024 }).publicKey],
    ['X25519', generateKeyPairSync('x25519').publicKey],
    ['X448', generateKeyPairSync('x448').publicKey],
    ['Ed448', generateKeyPairSync('ed448').publicKey],
  ])('is refused as another kind of key if its PEM says %s', (_, key) => {
    expect(readClientKey(pem(key))).toMatchObject({ ok: false, refusal: 'key_unsupported' })
  })

  test('never fails, and its reason never quotes it, whatever the text', () => {
    const piece = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.json(),
      fc.constantFrom(
        '-----BEGIN PUBLIC KEY-----',
        '-----END PUBLIC KEY-----',
        '{"keys":[',
        '"d":',
      ),
      fc.constantFrom(
        JSON.stringify(bare),
        text({ d: secret }),
        pemOfX(x),
        pkcs8,
        '['.repeat(4_000),
      ),
    )
    const given = fc.oneof(
      piece,
      fc.array(piece, { maxLength: 4 }).map((pieces) => pieces.join('')),
    )
    const body = pkcs8.split('\n')[1] ?? ''
    fc.assert(
      fc.property(given, (text) => {
        const result = readClientKey(text)
        if (result.ok) expect(text).not.toMatch(new RegExp(`${secret}|PRIVATE`))
        else for (const part of [secret, x, body]) expect(result.reason).not.toContain(part)
      }),
      { numRuns: 300 },
    )
  })

  test('is the PEM of the key that is read, apart from white space, or is refused', () => {
    const flat = (text: string) => text.replace(/\s/g, '')
    const change = fc.record({
      at: fc.nat({ max: 120 }),
      removed: fc.nat({ max: 3 }),
      added: fc.oneof(
        fc.string({ maxLength: 3 }),
        fc.constantFrom('A', '=', '\n', '-', '+', 'w=='),
      ),
    })
    fc.assert(
      fc.property(sound, fc.array(change, { maxLength: 3 }), (x, changes) => {
        const mutated = changes.reduce(
          (text, { at, removed, added }) => text.slice(0, at) + added + text.slice(at + removed),
          pemOfX(x),
        )
        const read = readClientKey(mutated)
        if (read.ok) expect(flat(pemOfX(read.key.x))).toBe(flat(mutated))
        else expect(flat(mutated)).not.toBe(flat(pemOfX(x)))
      }),
      { numRuns: 500 },
    )
  })

  test('keeps its kid and every character of x as it is', () => {
    expect(readClientKey(text({ alg: undefined, use: undefined }))).toEqual({
      ok: true,
      key: { x, kid },
    })
    expect(() => readClientKey(undefined as never)).toThrow('text must be a string')
  })
})
