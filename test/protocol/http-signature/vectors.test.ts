import { createPrivateKey, createPublicKey, type KeyObject, sign } from 'node:crypto'
import { createHeaders } from '@interledger/http-signature-utils'
import { isInnerList, serializeItem } from 'structured-headers'
import { describe, expect, test } from 'vitest'
import type { HttpRequest } from '../../../src/entry-adapter.js'
import { interactionHash } from '../../../src/protocol/finish.js'
import type { SignedMessage } from '../../../src/protocol/http-signature/components.js'
import { contentDigestProblem } from '../../../src/protocol/http-signature/content-digest.js'
import {
  byteSequence,
  memberText,
  parseStrictDictionary,
} from '../../../src/protocol/http-signature/dictionary.js'
import { verifierOf } from '../../../src/protocol/http-signature/ed25519.js'
import {
  inspectSignatures,
  verifyCandidates,
} from '../../../src/protocol/http-signature/inspect.js'
import { screenJwk, thumbprintOf } from '../../../src/protocol/http-signature/jwk.js'
import { testKey } from '../../support/keys.js'
import { contentDigest } from '../../support/sign.js'
import {
  componentIn,
  lineOf,
  messageOf,
  problemOf,
  profileFreshness,
  withFields,
} from '../../support/signed-message.js'

// RFC 9421 appendix B.1.4.
const kid = 'test-key-ed25519'
const x = 'JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs'
const pkcs8 = 'MC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF'
const spki = 'MCowBQYDK2VwAyEAJrQLj5P/89iXES9+vFgrIy29clF9CC/oPPsw3c5D0bs='
const privateKey = createPrivateKey({
  key: Buffer.from(pkcs8, 'base64'),
  format: 'der',
  type: 'pkcs8',
})
const created = 1618884473

function signed(base: string, key: KeyObject = privateKey): string {
  return sign(null, Buffer.from(base), key).toString('base64')
}

function verifies(base: string, signature: Uint8Array | undefined) {
  return verifierOf(x)?.(signature ?? new Uint8Array(64), base)
}

describe('RFC 9421, the Ed25519 key of appendix B.1.4', () => {
  test('is the same as PEM, as JWK and derived from its private key', () => {
    const jwk = createPublicKey(privateKey).export({ format: 'jwk' })
    expect(jwk.x).toBe(x)
    const der = createPublicKey({ key: Buffer.from(spki, 'base64'), format: 'der', type: 'spki' })
    expect(der.export({ format: 'jwk' })).toEqual(jwk)
    expect(screenJwk({ ...jwk, kid, alg: 'EdDSA' })).toEqual({ ok: true, value: { kid, x } })
  })

  test('has the thumbprint of RFC 7638', async () => {
    expect(await thumbprintOf({ x })).toBe('poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U')
  })
})

describe('RFC 9421, the signature of appendix B.2.6', () => {
  const input =
    '("date" "@method" "@path" "@authority" "content-type" "content-length");created=1618884473;keyid="test-key-ed25519"'
  const request: HttpRequest = {
    method: 'POST',
    url: '/foo?param=Value&Pet=dog',
    headers: [
      ['Host', 'example.com'],
      ['Date', 'Tue, 20 Apr 2021 02:07:55 GMT'],
      ['Content-Type', 'application/json'],
      [
        'Content-Digest',
        'sha-512=:WZDPaVn/7XgHaAy8pmojAkGWoRx2UFChF41A2svX+TaPm+AbwAgBWnrIiYllu7BNNyealdVLvRwEmTHWXvJwew==:',
      ],
      ['Content-Length', '18'],
      ['Signature-Input', `sig-b26=${input}`],
      [
        'Signature',
        'sig-b26=:wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw==:',
      ],
    ],
    body: Buffer.from('{"hello": "world"}'),
  }
  const message = messageOf(request, 'https://example.com')
  const expectedBase = [
    '"date": Tue, 20 Apr 2021 02:07:55 GMT',
    '"@method": POST',
    '"@path": /foo',
    '"@authority": example.com',
    '"content-type": application/json',
    '"content-length": 18',
    `"@signature-params": ${input}`,
  ].join('\n')

  /** Returns the signature base of the covered components, without the requirements of a profile. */
  function baseOf(message: SignedMessage): string {
    const [member] = parseStrictDictionary(lineOf(message, 'signature-input'))?.values() ?? []
    if (member === undefined || !isInnerList(member.value)) throw new Error('no list')
    const lines = member.value[0].map((component) => {
      const result = componentIn(message, component)
      if (!result.ok) throw new Error(result.problem)
      return `${serializeItem(component)}: ${result.value}`
    })
    return [...lines, `"@signature-params": ${memberText(member)}`].join('\n')
  }

  function signatureOf(message: SignedMessage): Uint8Array | undefined {
    const [member] = parseStrictDictionary(lineOf(message, 'signature'))?.values() ?? []
    return byteSequence(member)
  }

  function withInput(text: string): SignedMessage {
    return withFields(message, { 'signature-input': [`sig-b26=${text}`] })
  }

  test('verifies, and its signature base is reproduced byte for byte', async () => {
    expect(baseOf(message)).toBe(expectedBase)
    expect(await verifies(baseOf(message), signatureOf(message))).toBe(true)
  })

  test('is reproduced by signing again', () => {
    expect(`sig-b26=:${signed(expectedBase)}:`).toBe(lineOf(message, 'signature'))
  })

  test.each([
    [
      'the parameters in another order',
      withInput(
        '("date" "@method" "@path" "@authority" "content-type" "content-length");keyid="test-key-ed25519";created=1618884473',
      ),
    ],
    [
      'the components in another order',
      withInput(
        '("@method" "date" "@path" "@authority" "content-type" "content-length");created=1618884473;keyid="test-key-ed25519"',
      ),
    ],
    [
      'a component removed',
      withInput(
        '("date" "@method" "@path" "@authority" "content-type");created=1618884473;keyid="test-key-ed25519"',
      ),
    ],
    ['another creation time', withInput(input.replace('1618884473', '1618884474'))],
    ['another Date field', withFields(message, { date: ['Tue, 20 Apr 2021 02:07:56 GMT'] })],
    ['another method', { ...message, method: 'PUT' }],
    ['another path', { ...message, target: '/foo/?param=Value&Pet=dog' }],
    ['another host', { ...message, origin: 'https://example.org' }],
    ['another Content-Length', withFields(message, { 'content-length': ['19'] })],
  ])('does not verify with %s', async (_, changed) => {
    expect(await verifies(baseOf(changed), signatureOf(message))).toBe(false)
  })

  test('verifies with another query, which it does not cover', async () => {
    const changed = { ...message, target: '/foo?param=Value&Pet=cat' }
    expect(await verifies(baseOf(changed), signatureOf(message))).toBe(true)
  })

  test('has a digest that matches the body', async () => {
    const digest = lineOf(message, 'content-digest')
    expect(await contentDigestProblem(parseStrictDictionary(digest), message.body)).toBeUndefined()
  })

  test('is refused by the profile because it covers neither the target nor a digest', async () => {
    const inspection = await inspectSignatures(message, created * 1000, profileFreshness)
    expect(problemOf(inspection)).toBe('@target-uri is not covered')
  })
})

describe('a GNAP request signed by that key', () => {
  // RFC 9635 contains no Ed25519 example. Ed25519 is deterministic, so this value is fixed.
  const body = '{"interact_ref":"4IFWWIKYB2PQ6U56NL1"}'
  const input =
    '("@method" "@target-uri" "authorization" "content-digest" "content-length" "content-type");created=1618884473;keyid="test-key-ed25519";nonce="NAOEL39sDgYzWFBrFY5e";tag="gnap"'
  const signature =
    '3pd1YihvVYY4tHPBx/XakTh+QHOVVYDvzF1e7gd3ZQH9hMUpY4QaQxoVqM0sP7E+M4iT3dVuPBdEm8/SdDIKCQ=='
  const request: HttpRequest = {
    method: 'POST',
    url: '/auth/continue/grant1.aB3-dE6_gH9jK2mN5pQ8sT',
    headers: [
      ['Host', 'internal:3000'],
      ['Authorization', 'GNAP opc_grant1.0123456789abcdefghijklmnopqrstuvwxyzABCDEFG'],
      ['Content-Type', 'application/json'],
      ['Content-Length', '38'],
      ['Content-Digest', 'sha-256=:YGZ9acGLuCMyReiKikBYDGy8VLltoyBH1yg9zsX+4is=:'],
      ['Signature-Input', `sig1=${input}`],
      ['Signature', `sig1=:${signature}:`],
    ],
    body: Buffer.from(body),
  }
  const base = [
    '"@method": POST',
    '"@target-uri": https://wallet.example/auth/continue/grant1.aB3-dE6_gH9jK2mN5pQ8sT',
    '"authorization": GNAP opc_grant1.0123456789abcdefghijklmnopqrstuvwxyzABCDEFG',
    '"content-digest": sha-256=:YGZ9acGLuCMyReiKikBYDGy8VLltoyBH1yg9zsX+4is=:',
    '"content-length": 38',
    '"content-type": application/json',
    `"@signature-params": ${input}`,
  ].join('\n')

  test('is accepted with exactly this signature base', async () => {
    const message = messageOf(request)
    const inspection = await inspectSignatures(message, created * 1000, profileFreshness)
    const candidates = inspection.ok ? inspection.value : []
    expect(candidates).toEqual([
      {
        keyid: kid,
        createdAt: created * 1000,
        nonce: 'NAOEL39sDgYzWFBrFY5e',
        signature: new Uint8Array(Buffer.from(signature, 'base64')),
        bases: expect.any(Function),
      },
    ])
    expect(candidates[0]?.bases()).toEqual([base])
    expect(await verifyCandidates(candidates, { kid, x })).toBe(candidates[0])
  })

  test('is reproduced by signing again', () => {
    expect(signed(base)).toBe(signature)
  })
})

describe('RFC 9635, the interaction hash of section 4.2.3', () => {
  const input = {
    clientNonce: 'VJLO6A4CATR0KRO',
    serverNonce: 'MBDOFXG4Y5CVJCX821LH',
    interactRef: '4IFWWIKYB2PQ6U56NL1',
    grantEndpoint: 'https://server.example.com/tx',
  }

  test.each([
    ['sha-256', 'base64url', 'x-gguKWTj8rQf7d7i3w3UhzvuJ5bpOlKyAlVpLxBffY'],
    ['sha-256', 'base64', 'x+gguKWTj8rQf7d7i3w3UhzvuJ5bpOlKyAlVpLxBffY='],
    [
      'sha-512',
      'base64url',
      '454VR2f6OAHg3PDng-iAbfPEeBCI70VP0KcpleQZBC5TfJRbNOgz0RGVWI_gLaQXwRFst3CyzWPS_IPRDZ39fw',
    ],
    [
      'sha-512',
      'base64',
      '454VR2f6OAHg3PDng+iAbfPEeBCI70VP0KcpleQZBC5TfJRbNOgz0RGVWI/gLaQXwRFst3CyzWPS/IPRDZ39fw==',
    ],
  ] as const)('with %s in %s', async (method, encoding, expected) => {
    expect(await interactionHash(input, method, encoding)).toBe(expected)
  })

  test('differs for an endpoint with a trailing slash', async () => {
    const grantEndpoint = 'https://server.example.com/tx/'
    expect(await interactionHash({ ...input, grantEndpoint }, 'sha-256', 'base64url')).toBe(
      'fRiB2386XGibHeyH5oKb5FxpZcsgfSL4obQVzB0aHCo',
    )
  })
})

describe('RFC 9530, content digests', () => {
  const hello = Buffer.from('{"hello": "world"}')
  const helloLine = Buffer.from('{"hello": "world"}\n')
  const brotli = Buffer.from('0b09807b2268656c6c6f223a2022776f726c64227d0a03', 'hex')

  const sha256 = {
    hello: 'X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=',
    helloLine: 'RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=',
    brotli: 'd435Qo+nKZ+gLcUHn7GQtQ72hiBVAgqoLsZnZPiTGPk=',
  }
  const sha512 = {
    hello:
      'WZDPaVn/7XgHaAy8pmojAkGWoRx2UFChF41A2svX+TaPm+AbwAgBWnrIiYllu7BNNyealdVLvRwEmTHWXvJwew==',
    helloLine:
      'YMAam51Jz/jOATT6/zvHrLVgOYTGFy1d6GJiOHTohq4yP+pgk4vf2aCsyRZOtw8MjkM7iw7yZ/WkppmM44T3qg==',
    brotli:
      'db7fdBbgZMgX1Wb2MjA8zZj+rSNgfmDCEEXM8qLWfpfoNY0sCpHAzZbj09X1/7HAb7Od5Qfto4QpuBsFbUO3dQ==',
  }

  test.each([
    ['appendix D', `sha-256=:${sha256.hello}:`, hello],
    ['appendix D', `sha-512=:${sha512.hello}:`, hello],
    ['appendix D, both', `sha-256=:${sha256.hello}:,sha-512=:${sha512.hello}:`, hello],
    ['appendix B.1', `sha-256=:${sha256.helloLine}:`, helloLine],
    ['section 2', `sha-512=:${sha512.helloLine}:`, helloLine],
    ['appendix B.2', 'sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:', Buffer.alloc(0)],
    [
      'appendix B.3',
      'sha-256=:jjcgBDWNAtbYUXI37CVG3gRuGOAjaaDRGpIUFsdyepQ=:',
      Buffer.from('"world"}\n'),
    ],
    ['appendix B.4', `sha-256=:${sha256.brotli}:`, brotli],
    ['appendix B.6', `sha-256=:${sha256.brotli}:, sha-512=:${sha512.brotli}:`, brotli],
    [
      'appendix B.7',
      'sha-256=:mEkdbO7Srd9LIOegftO0aBX+VPTVz7/CSHes2Z27gc4=:',
      Buffer.from('{"title": "New Title"}\n'),
    ],
  ])('accepts %s: %s', async (_, value, body) => {
    expect(await contentDigestProblem(parseStrictDictionary(value), body)).toBeUndefined()
  })

  test.each([
    [
      'two digests of different content',
      `sha-256=:${sha256.brotli}:, sha-512=:${sha512.hello}:`,
      hello,
    ],
    [
      'the digest of the content before its coding was applied',
      `sha-256=:${sha256.helloLine}:`,
      brotli,
    ],
    ['the content without its line feed', `sha-256=:${sha256.helloLine}:`, hello],
    ['a sha-256 value with the name sha-512', `sha-512=:${sha256.hello}:`, hello],
    ['the deprecated md5', 'md5=:Sd/dVLAcvNLSq16eXua5uQ==:', hello],
    ['the deprecated sha', 'sha=:07CavjDP4u3/TungoUHJO/Wzr4c=:', hello],
  ])('refuses %s', async (_, value, body) => {
    expect(await contentDigestProblem(parseStrictDictionary(value), body)).toEqual(
      expect.any(String),
    )
  })
})

describe('requests of the Open Payments SDKs', () => {
  const key = testKey('sdk')
  const url = 'https://wallet.example/op/incoming-payments'
  const body = '{"walletAddress":"https://wallet.example/bob"}'

  async function requestBySdk(
    method: string,
    { body, token }: { readonly body?: string; readonly token?: string },
  ): Promise<HttpRequest> {
    const own: Record<string, string> =
      token === undefined ? {} : { Authorization: `GNAP ${token}` }
    const content = body === undefined ? {} : { body }
    const request = { method, url, headers: own, ...content }
    const added = await createHeaders({ request, privateKey: key.privateKey, keyId: key.kid })
    const headers = Object.entries({ ...own, ...added })
    return { method, url: '/op/incoming-payments', headers, body: Buffer.from(body ?? '') }
  }

  /** The SDK uses the real clock, so the verifier uses the time that the SDK wrote. */
  async function accepted(message: SignedMessage): Promise<boolean> {
    const [, seconds] = /created=(\d+)/.exec(lineOf(message, 'signature-input')) ?? []
    const now = Number(seconds) * 1000
    const inspection = await inspectSignatures(message, now, profileFreshness)
    if (!inspection.ok) return false
    return (await verifyCandidates(inspection.value, key)) !== undefined
  }

  test.each([
    ['a grant request', 'POST', { body }],
    ['a call with a token and a body', 'POST', { body, token: 'opa_1.2' }],
    ['a call with only a token', 'GET', { token: 'opa_1.2' }],
    ['a call with neither', 'DELETE', {}],
  ])('from TypeScript are accepted: %s', async (_, method, content) => {
    expect(await accepted(messageOf(await requestBySdk(method, content)))).toBe(true)
  })

  /** Signs a literal signature base and adds the two fields. */
  function requestOf(base: readonly string[], input: string, wrap: (base64: string) => string) {
    const bytes = Buffer.from(base.join('\n'))
    const signature = wrap(sign(null, bytes, key.privateKey).toString('base64'))
    const headers = [
      ['Authorization', 'GNAP opa_1.2'],
      ['Content-Type', 'application/json'],
      ['Content-Length', String(body.length)],
      ['Content-Digest', contentDigest(Buffer.from(body), 'sha-512')],
      ['Signature-Input', input],
      ['Signature', signature],
    ] as const
    return { method: 'POST', url: '/op/incoming-payments', headers, body: Buffer.from(body) }
  }

  const values = [
    '"@method": POST',
    '"@target-uri": https://wallet.example/op/incoming-payments',
    '"authorization": GNAP opa_1.2',
    `"content-digest": ${contentDigest(Buffer.from(body), 'sha-512')}`,
    `"content-length": ${body.length}`,
    '"content-type": application/json',
  ]

  test('from PHP are accepted without colons around the signature', async () => {
    const list =
      '("@method" "@target-uri" "authorization" "content-digest" "content-length" "content-type")'
    const parameters = ';keyid="sdk-key";created=1795262400'
    const base = [...values, `"@signature-params": ${list}${parameters}`]
    const wrap = (base64: string) => `sig1=${base64}`
    const message = messageOf(requestOf(base, `sig1=${list}${parameters}`, wrap))
    expect(await accepted(message)).toBe(true)
  })

  test('from Rust are accepted with unquoted components and an unlabelled signature', async () => {
    const list = '(@method @target-uri content-type authorization content-digest content-length)'
    const parameters = ';created=1795262400;keyid="sdk-key"'
    const [method = '', target = '', authorization = '', digest = '', length = '', type = ''] =
      values
    const base = [
      ...[method, target, type, authorization, digest, length],
      `"@signature-params": ${list}${parameters}`,
    ]
    const message = messageOf(requestOf(base, `sig1=${list}${parameters}`, (base64) => base64))
    expect(await accepted(message)).toBe(true)
  })

  test.each([
    ['with a quoted list in the signature base', true, false],
    ['with a quoted list in the field and the signature base', true, true],
    ['with unquoted names in the lines of the signature base', false, false],
  ])('from Rust are refused %s', async (_, quotedBase, quotedInput) => {
    const names = ['@method', '@target-uri', 'authorization', 'content-digest']
    const bare = `(${names.join(' ')});created=1795262400;keyid="sdk-key"`
    const quoted = `("${names.join('" "')}");created=1795262400;keyid="sdk-key"`
    const lines = values.slice(0, 4)
    const base = [
      ...(quotedBase ? lines : lines.map((line) => line.replaceAll(/^"([^"]*)"/g, '$1'))),
      `"@signature-params": ${quotedBase ? quoted : bare}`,
    ]
    const input = `sig1=${quotedInput ? quoted : bare}`
    const message = messageOf(requestOf(base, input, (base64) => base64))
    expect(await accepted(message)).toBe(false)
  })
})
