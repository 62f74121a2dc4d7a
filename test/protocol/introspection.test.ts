import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { GrantedItem } from '../../src/core/access.js'
import type { Json } from '../../src/core/stored.js'
import type { ActiveToken } from '../../src/ports/host.js'
import {
  introspectionBody,
  introspectionRequestBody,
  readIntrospectionAnswer,
  readIntrospectionRequest,
  readResourceServer,
} from '../../src/protocol/introspection.js'
import { startOfTests } from '../support/clock.js'
import { accessItem } from '../support/grants.js'
import { jwkOf, testKey } from '../support/keys.js'

const issuer = 'https://wallet.example/auth'
const { kid, x, thumbprint } = testKey('shop')
const jwk = jwkOf({ kid, x })

const token: ActiveToken = {
  active: true,
  grantId: 'namespac-grant',
  access: [
    {
      type: 'outgoing-payment',
      actions: ['create', 'read'],
      identifier: 'https://wallet.example/alice',
      limits: {
        receiver: 'https://wallet.example/op/incoming-payments/1',
        interval: 'R3/2026-05-20T13:00:00Z/P1M',
        debitAmount: { value: '2500', assetCode: 'USD', assetScale: 2 },
      },
      itemId: '1',
      intervalCounting: 'repetitions',
    },
    { type: 'quote', actions: ['create'], itemId: '2' },
  ],
  key: { kid, x, thumbprint },
  walletAddress: 'https://shop.example',
  expiresAt: startOfTests + 999,
}

/** Returns a body as it is transmitted. */
function wired(body: object): Json {
  return JSON.parse(JSON.stringify(body))
}

const body = wired(introspectionBody(token, issuer)) as Record<string, Json>

function read(answer: Json | undefined) {
  return readIntrospectionAnswer(answer, issuer)
}

const grantedItem: fc.Arbitrary<GrantedItem> = fc
  .tuple(accessItem, fc.constantFrom(undefined, 'occurrences' as const, 'repetitions' as const))
  .map(([item, intervalCounting]) => ({
    ...item,
    itemId: '1',
    ...(intervalCounting === undefined ? {} : { intervalCounting }),
  }))

describe('the introspection of a token', () => {
  test('has the members of RFC 9767 and three extensions, and omits the token value', () => {
    const [paying, quoting] = token.access
    expect(body).toEqual({
      active: true,
      iss: issuer,
      exp: startOfTests / 1000,
      access: [paying, quoting],
      key: { proof: 'httpsig', jwk },
      grant: 'namespac-grant',
      client: { walletAddress: 'https://shop.example' },
    })
  })

  test('survives a round trip for any grant', () => {
    const arbitrary = fc.record(
      {
        grantId: fc.stringMatching(/^[A-Za-z0-9_-]{36}$/),
        access: fc
          .array(grantedItem, { minLength: 1, maxLength: 3 })
          .map((items) => items.map((item, index) => ({ ...item, itemId: `${index + 1}` }))),
        walletAddress: fc.constantFrom('https://shop.example', 'https://shop.example/a/b'),
        expiresAt: fc.integer({ min: 0, max: 253_402_300_799 }).map((seconds) => seconds * 1000),
      },
      { requiredKeys: ['grantId', 'access', 'expiresAt'] },
    )
    fc.assert(
      fc.property(arbitrary, (more) => {
        const { walletAddress: _, ...base } = token
        const answer = read(wired(introspectionBody({ ...base, ...more }, issuer)))
        expect(answer).toEqual({ ok: true, value: { active: true, key: { kid, x }, ...more } })
      }),
      { numRuns: 300 },
    )
  })

  test('never reports a longer lifetime than that of the token', () => {
    expect(read(body)).toMatchObject({ value: { expiresAt: startOfTests } })
  })

  test('may contain unknown members', () => {
    expect(read({ ...body, iat: 17, sub: 'x', instance_id: 'y' })).toEqual(read(body))
  })

  test('may name the key that was withdrawn', () => {
    const inactive = { active: false, withdrawnKey: { kid, x } } as const
    expect(read(wired(introspectionBody(inactive, issuer)))).toEqual({ ok: true, value: inactive })
  })

  test.each([{ active: false }, { active: false, access: [], reason: 'x' }])(
    'is inactive for %j',
    (answer) => {
      expect(read(answer)).toEqual({ ok: true, value: { active: false } })
    },
  )
})

const [item] = body['access'] as Record<string, Json>[]

function withItem(change: Record<string, Json | undefined>): Json {
  return wired({ ...body, access: [{ ...item, ...change }] })
}

function withLimits(change: object): Json {
  return withItem({ limits: { ...(item?.['limits'] as object), ...change } as Json })
}

const malformed: [string, Json | undefined][] = [
  ['nothing', undefined],
  ['null', null],
  ['a list', [body]],
  ['a string', 'active'],
  ['an empty object', {}],
  ...[undefined, null, 'true', 'false', 0, 1, {}].map((active): [string, Json] => [
    `active: ${JSON.stringify(active)}`,
    wired({ ...body, active }),
  ]),
  ...['iss', 'exp', 'access', 'key', 'grant'].flatMap((name): [string, Json][] => [
    [`no ${name}`, wired({ ...body, [name]: undefined })],
    ...[null, true, [], {}, 'x y'].flatMap((value): [string, Json][] =>
      name === 'access' && Array.isArray(value)
        ? []
        : [[`${name}: ${JSON.stringify(value)}`, { ...body, [name]: value }]],
    ),
  ]),
  ['a withdrawn key without a key', { active: false, withdrawnKey: { proof: 'httpsig' } }],
  ['a null withdrawn key', { active: false, withdrawnKey: null }],
  [
    'a withdrawn key with another proof method',
    { active: false, withdrawnKey: { proof: 'mtls', jwk } },
  ],
  ['another issuer', { ...body, iss: `${issuer}/` }],
  ['a time that is a string', { ...body, exp: '1795262400' }],
  ['a fractional time', { ...body, exp: 17.5 }],
  ['a negative time', { ...body, exp: -1 }],
  ['a time in milliseconds', { ...body, exp: startOfTests }],
  ['an overlong grant id', { ...body, grant: 'x'.repeat(65) }],
  ['a key without proof', { ...body, key: { jwk } }],
  ['a key with another proof method', { ...body, key: { proof: 'mtls', jwk } }],
  ['a private key', { ...body, key: { proof: 'httpsig', jwk: { ...jwk, d: x } } }],
  [
    'a key of small order',
    { ...body, key: { proof: 'httpsig', jwk: { ...jwk, x: `${'A'.repeat(43)}` } } },
  ],
  ['a client without an address', { ...body, client: {} }],
  ['a client that is a string', { ...body, client: 'https://shop.example' }],
  ['a client whose address is not a URL', { ...body, client: { walletAddress: 'shop' } }],
  ['a null client', { ...body, client: null }],
  ['an audience', { ...body, aud: 'https://other.example' }],
  ['a not-before time', { ...body, nbf: 0 }],
  ['flags', { ...body, flags: ['bearer'] }],
  ['access by reference', { ...body, access: ['read-everything'] }],
  ['access of an unknown type', withItem({ type: 'account' })],
  ['access without actions', withItem({ actions: [] })],
  ['access with an action of another type', withItem({ actions: ['complete'] })],
  ['access with an unknown member', withItem({ until: 'tomorrow' })],
  ['access with a null identifier', withItem({ identifier: null })],
  ['access without itemId', withItem({ itemId: undefined })],
  ['access with a numeric itemId', withItem({ itemId: 1 })],
  ['access with a malformed itemId', withItem({ itemId: '1.2026' })],
  ['access with an unknown interval counting', withItem({ intervalCounting: 'both' })],
  ['access with a duplicate itemId', { ...body, access: [item ?? {}, item ?? {}] }],
  ['unknown limits', withLimits({ perDay: '5' })],
  [
    'limits with a numeric value',
    withLimits({ debitAmount: { value: 2500, assetCode: 'USD', assetScale: 2 } }),
  ],
  [
    'limits with a negative value',
    withLimits({ debitAmount: { value: '-1', assetCode: 'USD', assetScale: 2 } }),
  ],
  [
    'limits with two amounts',
    withLimits({ receiveAmount: { value: '1', assetCode: 'USD', assetScale: 2 } }),
  ],
  ['limits on incoming payments', withItem({ type: 'incoming-payment', actions: ['read'] })],
]

describe('a malformed introspection response', () => {
  test.each(malformed)('is rejected: %s', (_, answer) => {
    expect(read(answer)).toEqual({
      ok: false,
      path: expect.any(String),
      problem: expect.any(String),
    })
  })

  test('is rejected for any other JSON', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (answer) => {
        expect(read(answer as Json)).toHaveProperty('ok', false)
      }),
      { numRuns: 300 },
    )
  })
})

describe('an introspection request', () => {
  const question = wired(introspectionRequestBody({ accessToken: 'token' }, 'bank')) as Record<
    string,
    Json
  >

  test('names the token, the proof method of its key, and the resource server', () => {
    expect(question).toEqual({ access_token: 'token', proof: 'httpsig', resource_server: 'bank' })
    expect(readResourceServer(question)).toEqual({ ok: true, value: { id: 'bank' } })
    expect(readIntrospectionRequest(question)).toEqual({
      ok: true,
      value: { accessToken: 'token', answerable: true, needed: [] },
    })
  })

  test('may ask about the keyid of a signature', () => {
    const query = { accessToken: 'token', keyid: 'key-1' }
    expect(readIntrospectionRequest(wired(introspectionRequestBody(query, 'bank')))).toEqual({
      ok: true,
      value: { ...query, answerable: true, needed: [] },
    })
  })

  test('may identify the resource server by its key', () => {
    const asking = { ...question, resource_server: { key: { proof: 'httpsig', jwk } } }
    expect(readResourceServer(asking)).toEqual({ ok: true, value: { jwk: { kid, x } } })
  })

  test.each([
    ['no body', null, 'body_invalid'],
    ['no resource_server', {}, 'body_invalid'],
    ['a number', { resource_server: 7 }, 'body_invalid'],
    ['an object without a key', { resource_server: {} }, 'body_invalid'],
    ['a key without proof', { resource_server: { key: { jwk } } }, 'body_invalid'],
    [
      'a key with another proof method',
      { resource_server: { key: { proof: 'mtls', jwk } } },
      'body_invalid',
    ],
    ['no jwk', { resource_server: { key: { proof: 'httpsig' } } }, 'resource_server_invalid'],
    [
      'a private key',
      { resource_server: { key: { proof: 'httpsig', jwk: { ...jwk, d: x } } } },
      'resource_server_invalid',
    ],
  ] as const)('without an identified resource server is refused: %s', (_, asking, refusal) => {
    expect(readResourceServer(asking && wired(asking))).toMatchObject({ ok: false, refusal })
  })

  test.each([
    ['no access_token', { access_token: undefined }],
    ['an access_token that is not a string', { access_token: 17 }],
    ['a proof that is not a string', { proof: {} }],
    ['a keyid that is not a string', { keyid: 1 }],
    ['access that is not a list', { access: {} }],
  ])('is malformed with %s', (_, change) => {
    expect(readIntrospectionRequest(wired({ ...question, ...change }))).toHaveProperty('ok', false)
  })

  test('may name the required access', () => {
    const access = [
      { type: 'incoming-payment', actions: ['read'], identifier: 'https://WALLET.example/bob/' },
    ]
    expect(readIntrospectionRequest({ ...question, access })).toMatchObject({
      value: {
        answerable: true,
        needed: [
          {
            type: 'incoming-payment',
            actions: ['read'],
            identifier: 'https://wallet.example/bob',
          },
        ],
      },
    })
  })

  test.each([
    ['by reference', ['read-everything']],
    ['of an unknown type', [{ type: 'account', actions: ['read'] }]],
    ['with an unknown action', [{ type: 'quote', actions: ['delete'] }]],
    ['with limits', [{ type: 'outgoing-payment', actions: ['create'], limits: {} }]],
    ['with an invalid identifier', [{ type: 'quote', actions: ['read'], identifier: 'bob' }]],
    ['without actions', [{ type: 'quote' }]],
    ['of an unknown type beside a known one', [{ type: 'quote', actions: ['read'] }, 7]],
  ])('yields an inactive response for required access %s', (_, access) => {
    expect(readIntrospectionRequest(wired({ ...question, access }))).toMatchObject({
      value: { answerable: false },
    })
  })

  test('yields an inactive response for a key with another proof method', () => {
    const answer = readIntrospectionRequest({ ...question, proof: 'mtls' })
    expect(answer).toMatchObject({ value: { answerable: false } })
  })
})
