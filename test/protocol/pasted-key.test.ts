import { createHash, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { jwk, jwkWith, respelt } from '../support/jwk.js'
import { keyFromSeed } from '../support/keys.js'
import { importWithoutNode } from '../support/portable.js'
import { unicodeText } from '../support/unicode-text.js'

const { readClientKey } = await importWithoutNode(() => import('../../src/protocol/pasted-key.js'))

const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' })
const x25519 = generateKeyPairSync('x25519').publicKey.export({ format: 'jwk' })
const ed448 = generateKeyPairSync('ed448').publicKey.export({ format: 'jwk' })

describe('a pasted key', () => {
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

  const base64 = (text: string) => Buffer.from(text).toString('base64')
  const base64url = (text: string) => Buffer.from(text).toString('base64url')
  const der = pair.privateKey.export({ format: 'der', type: 'pkcs8' })
  const privateJwk = JSON.stringify(pair.privateKey.export({ format: 'jwk' }))

  test('is the same as JWK, in a JWKS, in base64 and as PEM, and each says what it is', () => {
    const space = fc.constantFrom('', ' ', '\n', '\r\n\t', '\ufeff')
    fc.assert(
      fc.property(sound, space, space, (x, before, after) => {
        const read = (given: string) => readClientKey(before + given + after)
        const members = { kty: 'OKP', crv: 'Ed25519', x }
        expect(read(JSON.stringify(members))).toEqual({ ok: true, form: 'jwk', key: { x } })
        const full = { ...members, alg: 'EdDSA', use: 'sig', kid: 'https://app.example/#1' }
        const key = { x, kid: full.kid }
        const jwks = JSON.stringify({ keys: [full] })
        expect(read(JSON.stringify(full, null, 2))).toEqual({ ok: true, form: 'jwk', key })
        expect(read(jwks)).toEqual({ ok: true, form: 'jwks', key })
        for (const encoded of [JSON.stringify(full), JSON.stringify(full, null, 2), jwks]) {
          const form = 'base64'
          for (const text of [base64(encoded), base64url(encoded)]) {
            expect(read(text)).toEqual({ ok: true, form, key })
            expect(read(text.replace(/=+$/, ''))).toEqual({ ok: true, form, key })
            expect(read(text.replace(/.{64}/g, '$&\n'))).toEqual({ ok: true, form, key })
          }
        }
        expect(read(pemOfX(x))).toEqual({ ok: true, form: 'pem', key: { x } })
        expect(read(pemOfX(x).replaceAll('\n', ' '))).toEqual({ ok: true, form: 'pem', key: { x } })
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
    ['a private JWK in base64', base64(privateJwk), 'key_private'],
    ['half of a private JWK in base64url', base64url(privateJwk).slice(0, -33), 'key_private'],
    ['a private JWK with white space in base64', base64(` \n${privateJwk}`), 'key_private'],
    ['a private PEM in base64', base64(pkcs8), 'key_private'],
    ['a private key in base64, without the lines of a PEM', der.toString('base64'), 'key_private'],
    ['a private key as its kid', text({ kid: der.toString('base64') }), 'key_private'],
    [
      'a private key as its kid, in base64url',
      text({ kid: der.toString('base64url') }),
      'key_private',
    ],
    ['a private PEM as its kid', text({ kid: base64(pkcs8) }), 'key_private'],
    ['a private JWK as its kid', text({ kid: base64(privateJwk) }), 'key_private'],
    [
      'a private JWK as its kid, in base64',
      base64(text({ kid: base64(privateJwk) })),
      'key_private',
    ],
    ['32 bytes, of which nobody can say whether they are private', x, 'key_missing'],
    ['32 bytes in base64', Buffer.from(x, 'base64url').toString('base64'), 'key_missing'],
    ['base64 of something else', base64('my key'), 'key_missing'],
    [
      'base64 of bytes that are no text',
      base64url('x'.repeat(9)).replace(/^../, '__'),
      'key_missing',
    ],
    ['a JWK in base64 that is cut off', base64(text({})).slice(0, -3), 'key_damaged'],
    ['base64 of two keys', base64(JSON.stringify({ keys: [jwk, jwk] })), 'keys_several'],
    ['base64 of a JWK on P-256', base64(JSON.stringify(ec)), 'key_unsupported'],
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
      unicodeText(),
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
      form: 'jwk',
      key: { x, kid },
    })
    expect(() => readClientKey(undefined as never)).toThrow('text must be a string')
  })

  test('may have its thumbprint as kid, but not its own private part, where the runtime can tell', async () => {
    const { readClientKey: onNode } = await import('../../src/protocol/pasted-key.js')
    const { d, ...own } = pair.privateKey.export({ format: 'jwk' })
    const thumbprint = createHash('sha256').update('any 32 bytes').digest('base64url')
    const withKid = (kid: unknown) => onNode(JSON.stringify({ ...own, kid }))
    expect(withKid(thumbprint)).toMatchObject({ ok: true, key: { kid: thumbprint } })
    for (const kid of [d, Buffer.from(d ?? '', 'base64url').toString('base64')]) {
      expect(withKid(kid)).toMatchObject({ ok: false, refusal: 'key_private' })
    }
  })
})
