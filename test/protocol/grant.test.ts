import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Json } from '../../src/entry-core.js'
import {
  readClient,
  readContinuation,
  readGrantRequest as readRequest,
} from '../../src/protocol/grant.js'
import { parseJson } from '../../src/protocol/json.js'
import { jwkOf, testKey } from '../support/keys.js'

type JsonMembers = { readonly [name: string]: Json }

const jwk = jwkOf(testKey('shop'))
const alice = 'https://wallet.example/alice'
const bob = 'https://wallet.example/bob'
const usd = { value: '2500', assetCode: 'USD', assetScale: 2 }

const incoming: JsonMembers = { type: 'incoming-payment', actions: ['create', 'read'] }
const outgoing: JsonMembers = {
  type: 'outgoing-payment',
  actions: ['create'],
  identifier: alice,
}
const quote: JsonMembers = { type: 'quote', actions: ['create'] }
const finish: JsonMembers = { method: 'redirect', uri: 'https://shop.example/back', nonce: 'nonce' }

function requestFor(...access: readonly Json[]): JsonMembers {
  return { access_token: { access } }
}

function labelledToken(label: Json | undefined, ...access: readonly Json[]): JsonMembers {
  const named = label === undefined ? {} : { label }
  return { ...named, access: access.length === 0 ? [incoming] : access }
}

function tokensOf(...labels: readonly (Json | undefined)[]): JsonMembers {
  return { access_token: labels.map((label) => labelledToken(label)) }
}

function interacting(interact: Json): JsonMembers {
  return { ...requestFor(incoming), interact }
}

function limited(limits: Json): JsonMembers {
  return requestFor({ ...outgoing, limits })
}

function naming(subject: Json): JsonMembers {
  return { subject, interact: { start: ['redirect'] } }
}

function namingBy(subId: Json): JsonMembers {
  return naming({ sub_ids: [subId] })
}

function finishing(changes: JsonMembers): JsonMembers {
  return interacting({ start: ['redirect'], finish: { ...finish, ...changes } })
}

/** Returns the object without one member. */
function without(object: JsonMembers, name: string): JsonMembers {
  return Object.fromEntries(Object.entries(object).filter(([each]) => each !== name))
}

function readGrantRequest(body: Json) {
  return readRequest(body, 60_000)
}

/** The access items that `readGrantRequest` returns. */
function accessOf(body: Json) {
  const read = readGrantRequest(body)
  return read.ok ? read.value.access : read
}

describe('readClient', () => {
  test.each([
    ['a wallet address', alice, { walletAddress: alice }],
    ['a wallet address in an object', { walletAddress: alice }, { walletAddress: alice }],
    [
      'a wallet address in a non-canonical spelling',
      'https://WALLET.example:443/alice/',
      { walletAddress: alice },
    ],
    ['a key', { jwk }, { jwk: { kid: jwk.kid, x: jwk.x } }],
    [
      'a wallet address beside a key that is null',
      { walletAddress: alice, jwk: null },
      { walletAddress: alice },
    ],
  ] as const)('reads %s', (_, client, expected) => {
    expect(readClient({ client, access_token: 'not looked at yet' })).toEqual({
      ok: true,
      value: expected,
    })
  })

  test.each<readonly [string, Json]>([
    ['no body', null],
    ['an array', [{ client: alice }]],
    ['text', alice],
    ['no client', { access_token: {} }],
    ['null', { client: null }],
    ['a number', { client: 1 }],
    ['a boolean', { client: true }],
    ['an array of clients', { client: [alice] }],
    ['an empty object', { client: {} }],
    ['a wallet address that is not a string', { client: { walletAddress: 1 } }],
    ['a wallet address that is null', { client: { walletAddress: null } }],
    ['a key that is null', { client: { jwk: null } }],
    ['a wallet address and a key', { client: { walletAddress: alice, jwk } }],
    ['a key and a certificate', { client: { jwk, cert: 'MIIB' } }],
    ['a wallet address and an unknown member', { client: { walletAddress: alice, x: 1 } }],
    ['a key by reference', { client: { key: 'key-1' } }],
    ['a key in the form of RFC 9635', { client: { key: { proof: 'httpsig', jwk } } }],
    ['an instance id', { client: { instance_id: '1' } }],
  ])('rejects a malformed client: %s', (_, body) => {
    expect(readClient(body)).toMatchObject({
      ok: false,
      refusal: 'body_invalid',
      reason: expect.any(String),
    })
  })

  test.each<readonly [string, Json]>([
    ['a string that is not a URL', 'alice'],
    ['nothing', ''],
    ['plain http', 'http://wallet.example/alice'],
    ['a query', `${alice}?a=b`],
    ['user information', 'https://a@wallet.example/'],
    ['a percent-escaped letter', 'https://wallet.example/%61lice'],
    ['a string that is not a URL, in an object', { walletAddress: 'alice' }],
    ['a key that is not an object', { jwk: 'key' }],
    ['a private key', { jwk: { ...jwk, d: 'n4Ni-HpISpVObnQMW0wOhCKROaIKqKtW_2ZYb2p9KcU' } }],
    ['a symmetric key', { jwk: { kty: 'oct', k: 'c2VjcmV0', alg: 'HS256', kid: '1' } }],
    ['a key without kid', { jwk: without(jwk, 'kid') }],
    ['a key set', { jwk: { keys: [jwk] } }],
  ])('rejects an invalid client: %s', (_, client) => {
    const read = readClient({ client })
    expect(read).toMatchObject({ ok: false, refusal: 'client_invalid', reason: expect.any(String) })
  })

  test('the reason never quotes the client', () => {
    const marked = fc.oneof(
      fc.string().map((text) => `shibboleth${text}`),
      fc.constantFrom(
        { walletAddress: 'shibboleth' },
        { shibboleth: 'shibboleth' },
        { jwk: { ...jwk, kid: 'shibboleth', d: 'shibboleth' } },
        { jwk: { ...jwk, alg: 'shibboleth' } },
        { jwk: { ...jwk, x: 'shibboleth' } },
        { jwk: { ...jwk, shibboleth: 1, kty: 'RSA' } },
      ),
    )
    fc.assert(
      fc.property(marked, (client) => {
        expect(JSON.stringify(readClient({ client }))).not.toContain('shibboleth')
      }),
      { numRuns: 200 },
    )
  })
})

describe('readGrantRequest', () => {
  test('reads the request in the OpenAPI and omits unknown members', () => {
    const body = {
      client: 'https://webmonize.com/.well-known/pay',
      access_token: {
        access: [
          {
            type: 'outgoing-payment',
            actions: ['create', 'read'],
            identifier: 'https://ilp.interledger-test.dev/alice',
            limits: {
              receiver:
                'https://ilp.interledger-test.dev/incoming-payments/45a0d0ee-26dc-4c66-89e0-01fbf93156f7',
              interval: 'R12/2019-08-24T14:15:22Z/P1M',
              debitAmount: { value: '500', assetCode: 'USD', assetScale: 2 },
            },
          },
        ],
      },
      interact: {
        start: ['redirect'],
        finish: {
          method: 'redirect',
          uri: 'https://webmonize.com/return/876FGRD8VC',
          nonce: '4edb2194-dbdf-46bb-9397-d5fd57b7c8a7',
        },
      },
    }
    expect(readGrantRequest(body)).toStrictEqual({
      ok: true,
      value: {
        access: body.access_token.access,
        interact: {
          finish: {
            uri: 'https://webmonize.com/return/876FGRD8VC',
            nonce: '4edb2194-dbdf-46bb-9397-d5fd57b7c8a7',
            hashMethod: 'sha-256',
          },
        },
      },
    })
  })

  test('reads one item of each type in the given order', () => {
    expect(accessOf(requestFor(quote, outgoing, incoming))).toStrictEqual([
      quote,
      outgoing,
      incoming,
    ])
  })

  test('canonicalizes URLs', () => {
    const receiver = 'https://wallet.example/incoming-payments/1'
    const item = {
      ...outgoing,
      identifier: 'https://WALLET.example:443/alice/',
      limits: { receiver: `${receiver}/` },
    }
    expect(accessOf(requestFor(item))).toStrictEqual([
      { ...outgoing, identifier: alice, limits: { receiver } },
    ])
  })

  test.each<readonly [string, JsonMembers]>([
    ['no limits', {}],
    ['only a receiver', { receiver: 'https://wallet.example/op/incoming-payments/1' }],
    ['a debit amount', { debitAmount: usd }],
    ['a receive amount', { receiveAmount: usd }],
    ['an amount per interval', { debitAmount: usd, interval: 'R/2026-01-01T00:00:00Z/P1M' }],
    ['only an interval', { interval: 'R3/2025-05-20T13:00:00Z/P1M' }],
    ['the largest amount', { debitAmount: { ...usd, value: '18446744073709551615' } }],
    ['the smallest and the largest scale', { receiveAmount: { ...usd, assetScale: 255 } }],
    ['an amount of zero', { receiveAmount: { ...usd, value: '0', assetScale: 0 } }],
  ])('reads limits: %s', (_, limits) => {
    expect(accessOf(limited(limits))).toStrictEqual([{ ...outgoing, limits }])
  })

  test.each([
    ['nothing', requestFor(incoming), undefined],
    ['a start without a finish', interacting({ start: ['redirect'] }), {}],
    ['modes beside redirect', interacting({ start: [{ mode: 'x' }, 'app', 'redirect'] }), {}],
    [
      'a finish with a hash method',
      finishing({ hash_method: 'sha-512' }),
      {
        finish: { uri: 'https://shop.example/back', nonce: 'nonce', hashMethod: 'sha-512' },
      },
    ],
    ['unknown members', interacting({ start: ['redirect'], hints: { ui_locales: ['de'] } }), {}],
  ])('reads the interaction: %s', (_, body, expected) => {
    const read = readGrantRequest(body)
    expect(read.ok && read.value.interact).toStrictEqual(expected)
  })

  test('reads several tokens as items with the labels of their tokens', () => {
    const tokens = [labelledToken('a', incoming, quote), labelledToken('b', incoming)]
    expect(readGrantRequest({ access_token: tokens })).toEqual({
      ok: true,
      value: {
        access: [
          { label: 'a', ...incoming },
          { label: 'a', ...quote },
          { label: 'b', ...incoming },
        ],
      },
    })
  })

  test('reads a single token as items without a label, and one token in an array with it', () => {
    expect(readGrantRequest(requestFor(incoming))).toEqual({
      ok: true,
      value: { access: [incoming] },
    })
    expect(readGrantRequest(tokensOf('a'))).toEqual({
      ok: true,
      value: { access: [{ label: 'a', ...incoming }] },
    })
  })

  test.each<readonly [what: string, withNull: Json, without: Json]>([
    [
      'access_token beside a subject',
      { access_token: null, ...naming({ sub_ids: [{ id: alice, format: 'uri' }] }) },
      naming({ sub_ids: [{ id: alice, format: 'uri' }] }),
    ],
    ['subject', { ...requestFor(incoming), subject: null }, requestFor(incoming)],
    ['interact', interacting(null), requestFor(incoming)],
    [
      'finish',
      interacting({ start: ['redirect'], finish: null }),
      interacting({ start: ['redirect'] }),
    ],
    ['hash_method', finishing({ hash_method: null }), finishing({})],
    [
      'label and flags',
      { access_token: { access: [incoming], label: null, flags: null } },
      requestFor(incoming),
    ],
    ['identifier', requestFor({ ...incoming, identifier: null }), requestFor(incoming)],
    [
      'identifier of outgoing payments',
      requestFor({ ...outgoing, identifier: null }),
      requestFor(without(outgoing, 'identifier')),
    ],
    [
      'identifier and limits of a quote',
      requestFor({ ...quote, identifier: null, limits: null }),
      requestFor(quote),
    ],
    ['limits', limited(null), requestFor(outgoing)],
    [
      'each limit',
      limited({ receiver: null, interval: null, debitAmount: usd, receiveAmount: null }),
      limited({ debitAmount: usd }),
    ],
    [
      'flags of one of several tokens',
      { access_token: [{ ...labelledToken('a'), flags: null }] },
      tokensOf('a'),
    ],
  ])('reads a null %s as absent', (_, withNull, without) => {
    expect(readGrantRequest(withNull)).toStrictEqual(readGrantRequest(without))
    expect(readGrantRequest(withNull)).toHaveProperty('ok', true)
  })

  test.each<readonly [what: string, body: Json, path: string]>([
    ['access_token', { access_token: null }, 'access_token'],
    ['access', { access_token: { access: null } }, 'access_token.access'],
    ['type', requestFor({ ...incoming, type: null }), 'access_token.access.0.type'],
    ['actions', requestFor({ ...incoming, actions: null }), 'access_token.access.0.actions'],
    [
      'the value of an amount',
      limited({ debitAmount: { ...usd, value: null } }),
      'access_token.access.0.limits.debitAmount.value',
    ],
    ['start', interacting({ start: null }), 'interact.start'],
    ['the URI of a finish', finishing({ uri: null }), 'interact.finish.uri'],
  ])('requires %s and rejects null', (_, body, path) => {
    expect(readGrantRequest(body)).toEqual({ ok: false, path, problem: expect.any(String) })
  })

  test('ignores unknown members that do not change the response, at the top level and beside access', () => {
    const body = {
      access_token: { access: [incoming], note: 1 },
      user: { assertions: [] },
      other: [{}],
    }
    expect(accessOf(body)).toStrictEqual([incoming])
  })

  test.each([
    ['alone', naming({ sub_ids: [{ id: alice, format: 'uri' }] }), []],
    [
      'beside access',
      { ...requestFor(incoming), ...namingBy({ id: alice, format: 'uri' }) },
      [incoming],
    ],
    [
      'and additional members',
      naming({ sub_ids: [{ id: alice, format: 'uri', note: 1 }], assertion_formats: ['id_token'] }),
      [],
    ],
  ])('reads a subject %s', (_, body, access) => {
    const subject = { id: alice, format: 'uri' }
    expect(readGrantRequest(body)).toStrictEqual({
      ok: true,
      value: { access, subject, interact: {} },
    })
  })

  test.each([
    'https://WALLET.example/alice/',
    'did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK',
    'urn:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6',
    'acct:alice@wallet.example',
    `${alice}/`.padEnd(2048, 'a'),
  ])('keeps any absolute URI unchanged as the identifier of a subject: %s', (id) => {
    const read = readGrantRequest(namingBy({ id, format: 'uri' }))
    expect(read).toMatchObject({ value: { subject: { id, format: 'uri' } } })
  })

  const malformed: readonly (readonly [string, Json, string])[] = [
    ['a body that is not an object', 'text', ''],
    ['null', null, ''],
    ['no access_token', {}, 'access_token'],
    ['a null access_token', { access_token: null }, 'access_token'],
    ['an access_token that is a string', { access_token: 'x' }, 'access_token'],
    ['no access', { access_token: {} }, 'access_token.access'],
    ['access that is an object', { access_token: { access: incoming } }, 'access_token.access'],
    ['empty access', requestFor(), 'access_token.access'],
    [
      'four items',
      requestFor(incoming, outgoing, quote, { ...quote, actions: ['read'] }),
      'access_token.access',
    ],
    ['a duplicate item', requestFor(incoming, incoming), 'access_token.access'],
    [
      'a duplicate item with its members in another order',
      requestFor(incoming, { actions: ['create', 'read'], type: 'incoming-payment' }),
      'access_token.access',
    ],
    [
      'a duplicate item with its actions in another order',
      requestFor(
        { ...outgoing, actions: ['create', 'read'], limits: { debitAmount: usd } },
        { ...outgoing, actions: ['read', 'create'], limits: { debitAmount: usd } },
      ),
      'access_token.access',
    ],
    [
      'a duplicate item with an action that another action includes',
      requestFor(
        { ...outgoing, actions: ['create', 'read-all'] },
        { ...outgoing, actions: ['read', 'read-all', 'create'] },
      ),
      'access_token.access',
    ],
    [
      'a duplicate item with another spelling of its URLs',
      requestFor(
        { ...outgoing, limits: { receiver: 'https://bank.example/incoming-payments/1' } },
        {
          ...outgoing,
          identifier: `${alice}/`,
          limits: { receiver: 'https://BANK.example:443/incoming-payments/1/' },
        },
      ),
      'access_token.access',
    ],
    [
      'a duplicate item, if the owner chooses the account that the other one names',
      requestFor(outgoing, without(outgoing, 'identifier')),
      'access_token.access',
    ],
    [
      'a duplicate item with empty limits',
      requestFor(outgoing, incoming, { ...outgoing, limits: {} }),
      'access_token.access',
    ],
    ['no tokens', { access_token: [] }, 'access_token'],
    ['more than four tokens', tokensOf('a', 'b', 'c', 'd', 'e'), 'access_token'],
    ['tokens with the same label', tokensOf('a', 'b', 'a'), 'access_token'],
    ['a token of several without a label', tokensOf('a', undefined), 'access_token.1.label'],
    ['a token of several whose label is null', tokensOf(null), 'access_token.0.label'],
    ['an empty label', tokensOf(''), 'access_token.0.label'],
    ['a label of 65 characters', tokensOf('x'.repeat(65)), 'access_token.0.label'],
    ['a label with a space', tokensOf('my token'), 'access_token.0.label'],
    ['a label that is not ASCII', tokensOf('\u202egnp'), 'access_token.0.label'],
    ['a label that is not text', tokensOf(1), 'access_token.0.label'],
    ['a token of several that is text', { access_token: ['a'] }, 'access_token.0'],
    [
      'a token of several without access',
      { access_token: [{ label: 'a', access: [] }] },
      'access_token.0.access',
    ],
    [
      'a token of several with duplicate items',
      { access_token: [labelledToken('a'), labelledToken('b', incoming, incoming)] },
      'access_token.1.access',
    ],
    [
      'a bearer token among several',
      { access_token: [{ ...labelledToken('a'), flags: ['bearer'] }] },
      'access_token.0.flags',
    ],
    ['a label', { access_token: { access: [incoming], label: 'a' } }, 'access_token.label'],
    ['flags', { access_token: { access: [incoming], flags: ['bearer'] } }, 'access_token.flags'],
    ['a subject that is a string', naming(alice), 'subject'],
    ['a subject without identifiers', naming({}), 'subject.sub_ids'],
    ['a subject with only formats', naming({ sub_id_formats: ['uri'] }), 'subject.sub_ids'],
    ['identifiers that are an object', naming({ sub_ids: { id: alice } }), 'subject.sub_ids'],
    ['no identifiers', naming({ sub_ids: [] }), 'subject.sub_ids'],
    [
      'two identifiers',
      naming({ sub_ids: [alice, bob].map((id) => ({ id, format: 'uri' })) }),
      'subject.sub_ids',
    ],
    ['an identifier that is a string', namingBy(alice), 'subject.sub_ids.0'],
    ['an identifier without its format', namingBy({ id: alice }), 'subject.sub_ids.0.format'],
    ['an identifier with only a format', namingBy({ format: 'uri' }), 'subject.sub_ids.0.id'],
    [
      'an identifier in the form of RFC 9493',
      namingBy({ format: 'uri', uri: alice }),
      'subject.sub_ids.0.id',
    ],
    [
      'an identifier of another format',
      namingBy({ id: 'mailto:a@b.example', format: 'email' }),
      'subject.sub_ids.0.format',
    ],
    ['a relative identifier', namingBy({ id: '/alice', format: 'uri' }), 'subject.sub_ids.0.id'],
    ['an empty identifier', namingBy({ id: '', format: 'uri' }), 'subject.sub_ids.0.id'],
    [
      'an identifier with a line feed',
      namingBy({ id: `${alice}\n`, format: 'uri' }),
      'subject.sub_ids.0.id',
    ],
    [
      'an identifier of 2049 characters',
      namingBy({ id: `${alice}/`.padEnd(2049, 'a'), format: 'uri' }),
      'subject.sub_ids.0.id',
    ],
    ['an item by reference', requestFor('incoming'), 'access_token.access.0'],
    ['an item that is null', requestFor(incoming, null), 'access_token.access.1'],
    ['no type', requestFor(without(incoming, 'type')), 'access_token.access.0.type'],
    ['an unknown type', requestFor({ ...incoming, type: 'card' }), 'access_token.access.0.type'],
    [
      'an upper-case type',
      requestFor({ ...incoming, type: 'Incoming-Payment' }),
      'access_token.access.0.type',
    ],
    ['no actions', requestFor(without(incoming, 'actions')), 'access_token.access.0.actions'],
    [
      'actions that are a string',
      requestFor({ ...incoming, actions: 'read' }),
      'access_token.access.0.actions',
    ],
    ['empty actions', requestFor({ ...incoming, actions: [] }), 'access_token.access.0.actions'],
    [
      'an unknown action',
      requestFor({ ...incoming, actions: ['pay'] }),
      'access_token.access.0.actions.0',
    ],
    [
      'an action of another type',
      requestFor({ ...quote, actions: ['read', 'complete'] }),
      'access_token.access.0.actions.1',
    ],
    [
      'a duplicate action',
      requestFor({ ...incoming, actions: ['read', 'read'] }),
      'access_token.access.0.actions',
    ],
    [
      'an upper-case action',
      requestFor({ ...incoming, actions: ['Read'] }),
      'access_token.access.0.actions.0',
    ],
    [
      'limits on incoming payments',
      requestFor({ ...incoming, limits: {} }),
      'access_token.access.0.limits',
    ],
    [
      'an identifier on quotes',
      requestFor({ ...quote, identifier: alice }),
      'access_token.access.0.identifier',
    ],
    [
      'an identifier that is not a URL',
      requestFor({ ...incoming, identifier: 'alice' }),
      'access_token.access.0.identifier',
    ],
    [
      'an identifier with a query',
      requestFor({ ...incoming, identifier: `${alice}?a` }),
      'access_token.access.0.identifier',
    ],
    [
      'an unknown member of an item',
      requestFor({ ...incoming, locations: [] }),
      'access_token.access.0.locations',
    ],
    [
      'an unknown member that every object inherits',
      requestFor({ ...incoming, toString: 1 }),
      'access_token.access.0.toString',
    ],
    ['limits that are a string', limited('25'), 'access_token.access.0.limits'],
    ['an unknown limit', limited({ maxAmount: usd }), 'access_token.access.0.limits.maxAmount'],
    [
      'both amounts',
      limited({ debitAmount: usd, receiveAmount: usd }),
      'access_token.access.0.limits',
    ],
    [
      'a receiver that is not an incoming payment',
      limited({ receiver: alice }),
      'access_token.access.0.limits.receiver',
    ],
    [
      'a receiver without an id',
      limited({ receiver: `${alice}/incoming-payments/` }),
      'access_token.access.0.limits.receiver',
    ],
    [
      'a receiver with a fragment',
      limited({ receiver: `${alice}/incoming-payments/1#` }),
      'access_token.access.0.limits.receiver',
    ],
    [
      'an interval with a zero duration',
      limited({ interval: 'R/2026-01-01T00:00:00Z/PT0S' }),
      'access_token.access.0.limits.interval',
    ],
    [
      'an interval with a window shorter than the minimum',
      limited({ interval: 'R/2026-01-01T00:00:00Z/PT59S' }),
      'access_token.access.0.limits.interval',
    ],
    [
      'an interval that is a number',
      limited({ interval: 1 }),
      'access_token.access.0.limits.interval',
    ],
    [
      'an interval without an anchor',
      limited({ interval: 'P1M' }),
      'access_token.access.0.limits.interval',
    ],
    [
      'an amount that is a string',
      limited({ debitAmount: '25' }),
      'access_token.access.0.limits.debitAmount',
    ],
    [
      'a value that is a number',
      limited({ debitAmount: { ...usd, value: 25 } }),
      'access_token.access.0.limits.debitAmount.value',
    ],
    [
      'a negative value',
      limited({ debitAmount: { ...usd, value: '-1' } }),
      'access_token.access.0.limits.debitAmount.value',
    ],
    [
      'a value above 64 bits',
      limited({ debitAmount: { ...usd, value: '18446744073709551616' } }),
      'access_token.access.0.limits.debitAmount.value',
    ],
    [
      'a value with a leading zero',
      limited({ debitAmount: { ...usd, value: '01' } }),
      'access_token.access.0.limits.debitAmount.value',
    ],
    [
      'an empty value',
      limited({ debitAmount: { ...usd, value: '' } }),
      'access_token.access.0.limits.debitAmount.value',
    ],
    [
      'a hexadecimal value',
      limited({ debitAmount: { ...usd, value: '0x10' } }),
      'access_token.access.0.limits.debitAmount.value',
    ],
    [
      'a value with surrounding spaces',
      limited({ debitAmount: { ...usd, value: ' 5 ' } }),
      'access_token.access.0.limits.debitAmount.value',
    ],
    [
      'a fractional value',
      limited({ debitAmount: { ...usd, value: '2.5' } }),
      'access_token.access.0.limits.debitAmount.value',
    ],
    [
      'no asset code',
      limited({ debitAmount: without(usd, 'assetCode') }),
      'access_token.access.0.limits.debitAmount.assetCode',
    ],
    [
      'an empty asset code',
      limited({ debitAmount: { ...usd, assetCode: '' } }),
      'access_token.access.0.limits.debitAmount.assetCode',
    ],
    [
      'a non-ASCII asset code',
      limited({ debitAmount: { ...usd, assetCode: 'ÜSD' } }),
      'access_token.access.0.limits.debitAmount.assetCode',
    ],
    [
      'an overlong asset code',
      limited({ debitAmount: { ...usd, assetCode: 'X'.repeat(65) } }),
      'access_token.access.0.limits.debitAmount.assetCode',
    ],
    [
      'a scale that is a string',
      limited({ debitAmount: { ...usd, assetScale: '2' } }),
      'access_token.access.0.limits.debitAmount.assetScale',
    ],
    [
      'a negative scale',
      limited({ debitAmount: { ...usd, assetScale: -1 } }),
      'access_token.access.0.limits.debitAmount.assetScale',
    ],
    [
      'a scale above 255',
      limited({ debitAmount: { ...usd, assetScale: 256 } }),
      'access_token.access.0.limits.debitAmount.assetScale',
    ],
    [
      'a fractional scale',
      limited({ debitAmount: { ...usd, assetScale: 1.5 } }),
      'access_token.access.0.limits.debitAmount.assetScale',
    ],
    ['interact that is a string', interacting('redirect'), 'interact'],
    ['no start', interacting({}), 'interact.start'],
    ['a start that is a string', interacting({ start: 'redirect' }), 'interact.start'],
    ['a start without redirect', interacting({ start: ['app', { mode: 'x' }] }), 'interact.start'],
    ['an empty start', interacting({ start: [] }), 'interact.start'],
    [
      'a start mode that is not a string',
      interacting({ start: ['redirect', 1] }),
      'interact.start.1',
    ],
    [
      'a start object without its mode',
      interacting({ start: ['redirect', {}] }),
      'interact.start.1',
    ],
    [
      'a finish that is a string',
      interacting({ start: ['redirect'], finish: 'redirect' }),
      'interact.finish',
    ],
    ['a finish with the push method', finishing({ method: 'push' }), 'interact.finish.method'],
    [
      'a finish with a javascript URI',
      finishing({ uri: 'javascript:alert(1)' }),
      'interact.finish.uri',
    ],
    [
      'a finish with a fragment',
      finishing({ uri: 'https://shop.example/#a' }),
      'interact.finish.uri',
    ],
    [
      'a finish with an unknown hash',
      finishing({ uri: 'https://shop.example/?hash=1' }),
      'interact.finish.uri',
    ],
    ['a finish URI that is an object', finishing({ uri: {} }), 'interact.finish.uri'],
    ['an empty nonce', finishing({ nonce: '' }), 'interact.finish.nonce'],
    ['a nonce with a line feed', finishing({ nonce: 'a\nb' }), 'interact.finish.nonce'],
    ['a nonce with a trailing line feed', finishing({ nonce: 'a\n' }), 'interact.finish.nonce'],
    ['a non-ASCII nonce', finishing({ nonce: 'é' }), 'interact.finish.nonce'],
    ['a nonce of 257 characters', finishing({ nonce: 'n'.repeat(257) }), 'interact.finish.nonce'],
    ['a nonce that is a number', finishing({ nonce: 1 }), 'interact.finish.nonce'],
    [
      'an unknown hash method',
      finishing({ hash_method: 'sha3-512' }),
      'interact.finish.hash_method',
    ],
  ]

  test.each(malformed)(
    'rejects a malformed request and names the position: %s',
    (_, body, path) => {
      const read = readGrantRequest(body)
      expect(read).toEqual({ ok: false, path: expect.any(String), problem: expect.any(String) })
      expect(!read.ok && read.path).toBe(path)
    },
  )

  test.each<readonly [string, Json, string]>([
    ['several tokens', { access_token: [{ access: [incoming] }] }, 'access_token'],
    ['an item', requestFor([incoming]), 'access_token.access.0'],
    ['limits', limited([]), 'access_token.access.0.limits'],
    ['an amount', limited({ debitAmount: [] }), 'access_token.access.0.limits.debitAmount'],
    ['interact', interacting([]), 'interact'],
    ['a finish', interacting({ start: ['redirect'], finish: [] }), 'interact.finish'],
    ['a mode', interacting({ start: ['redirect', []] }), 'interact.start.1'],
    ['a subject', naming([]), 'subject'],
    ['an identifier', namingBy([]), 'subject.sub_ids.0'],
  ])('rejects an array in place of an object: %s', (_, body, place) => {
    const read = readGrantRequest(body)
    expect(read).toEqual({
      ok: false,
      path: expect.stringContaining(place),
      problem: expect.any(String),
    })
  })

  test('accepts a nonce of 256 characters', () => {
    expect(readGrantRequest(finishing({ nonce: 'n'.repeat(256) }))).toHaveProperty('ok', true)
  })

  test.each(['method', 'uri', 'nonce'])('rejects a finish without its %s', (name) => {
    const body = interacting({ start: ['redirect'], finish: without(finish, name) })
    expect(readGrantRequest(body)).toEqual({
      ok: false,
      path: `interact.finish.${name}`,
      problem: 'is missing',
    })
  })

  test('returns a result for any JSON, and the request covers what was read', () => {
    const noise = fc.jsonValue({ maxDepth: 2 }) as fc.Arbitrary<Json>
    const item = fc.oneof(
      fc.constantFrom(incoming, outgoing, quote),
      fc.record({
        type: fc.constantFrom('incoming-payment', 'quote'),
        actions: noise,
        limits: noise,
      }),
      noise,
    )
    const body = fc.record(
      {
        access_token: fc.oneof(fc.record({ access: fc.array(item, { maxLength: 4 }) }), noise),
        interact: fc.oneof(fc.record({ start: noise, finish: noise }), noise),
      },
      { requiredKeys: ['access_token'] },
    ) as fc.Arbitrary<JsonMembers>
    fc.assert(
      fc.property(body, (body) => {
        const read = readGrantRequest(body)
        if (!read.ok) return
        const token = body['access_token'] as { access: readonly JsonMembers[] }
        expect(read.value.access).toMatchObject(token.access)
      }),
      { numRuns: 500 },
    )
  })

  test('neither the path nor the problem quotes a value', () => {
    const marker = 'shibboleth'
    for (const [, body] of malformed) {
      const marked = JSON.parse(JSON.stringify(body), (_, value) =>
        typeof value === 'string' ? value + marker : value,
      ) as Json
      const read = readGrantRequest(marked)
      expect(JSON.stringify(read.ok ? {} : read)).not.toContain(marker)
    }
  })

  test('the name of an unknown member is escaped and truncated in the problem', () => {
    for (const name of ['a\r\n2026-11-21 forged line', '\u001b[2J', 'x'.repeat(60_000)]) {
      const read = readGrantRequest(requestFor({ ...incoming, [name]: 1 }))
      const { path, problem } = !read.ok ? read : { path: '', problem: '' }
      expect(path + problem).toMatch(/^[\x20-\x7e]{1,512}$/)
    }
  })
})

describe('readContinuation', () => {
  test('reads a null reference as absent, which makes the call a poll', () => {
    expect(readContinuation({ interact_ref: null })).toStrictEqual({ ok: true, value: {} })
  })

  test.each([
    ['no body', undefined, {}],
    ['an empty object', {}, {}],
    [
      'a reference',
      { interact_ref: '4IFWWIKYB2PQ6U56NL1' },
      { interactRef: '4IFWWIKYB2PQ6U56NL1' },
    ],
    ['a reference and an unknown member', { interact_ref: 'a', more: 1 }, { interactRef: 'a' }],
    [
      'a reference of 256 characters',
      { interact_ref: 'r'.repeat(256) },
      { interactRef: 'r'.repeat(256) },
    ],
  ])('reads %s', (_, body, value) => {
    expect(readContinuation(body)).toStrictEqual({ ok: true, value })
  })

  test.each<readonly [string, Json, string]>([
    ['null', null, ''],
    ['text', 'ref', ''],
    ['a number', 1, ''],
    ['an empty array', [], ''],
    ['an array', ['ref'], ''],
    ['only an unknown member', { hash: 'x' }, 'interact_ref'],
    ['a reference that is a number', { interact_ref: 1 }, 'interact_ref'],
    ['a reference in an array', { interact_ref: ['ref'] }, 'interact_ref'],
    ['a reference of 257 characters', { interact_ref: 'r'.repeat(257) }, 'interact_ref'],
  ])('rejects a malformed body: %s', (_, body, path) => {
    expect(readContinuation(body)).toEqual({ ok: false, path, problem: expect.any(String) })
  })

  test('the problem never quotes the reference', () => {
    const body = { interact_ref: 'shibboleth'.repeat(30) }
    expect(JSON.stringify(readContinuation(body))).not.toContain('shibboleth')
  })

  test('ignores an inherited reference', () => {
    const body = parseJson(new TextEncoder().encode('{"constructor":"ref","toString":"ref"}'))
    expect(readContinuation(body)).toMatchObject({ path: 'interact_ref' })
  })
})
