import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { IncomingPayment, Json } from '../../src/entry-core.js'
import {
  incomingPaymentBody,
  incomingPaymentWithMethods,
  readIncomingPaymentRequest,
} from '../../src/protocol/incoming-payment.js'
import { parseJson } from '../../src/protocol/json.js'

type JsonMembers = { readonly [name: string]: Json }

const bob = 'https://wallet.example/bob'
const usd = { value: '2500', assetCode: 'USD', assetScale: 2 }

function requestWith(members: JsonMembers): JsonMembers {
  return { walletAddress: bob, ...members }
}

/** Returns the value as it is transmitted. */
function received(text: string): Json | undefined {
  return parseJson(new TextEncoder().encode(text))
}

function metadataOf(body: Json | undefined): unknown {
  const read = readIncomingPaymentRequest(body)
  return read.ok ? read.value.metadata : read
}

/** Returns an object with the given number of levels. */
function nested(levels: number): JsonMembers {
  let value: JsonMembers = { leaf: 1 }
  for (let level = 1; level < levels; level++) value = { level: value }
  return value
}

describe('readIncomingPaymentRequest', () => {
  test('requires only a wallet address', () => {
    expect(readIncomingPaymentRequest({ walletAddress: bob })).toStrictEqual({
      ok: true,
      value: { walletAddress: bob },
    })
  })

  test('reads null optional members as absent', () => {
    const body = { walletAddress: bob, incomingAmount: null, expiresAt: null, metadata: null }
    expect(readIncomingPaymentRequest(body)).toStrictEqual({
      ok: true,
      value: { walletAddress: bob },
    })
  })

  test('keeps null in metadata', () => {
    const metadata = { note: null, list: [null, { deep: null }] }
    expect(metadataOf({ walletAddress: bob, metadata })).toStrictEqual(metadata)
  })

  test('reads the request in the OpenAPI', () => {
    const body = {
      walletAddress: 'https://openpayments.guide/alice/',
      incomingAmount: { value: '2500', assetCode: 'USD', assetScale: 2 },
      expiresAt: '2026-12-01T10:00:00.5+01:00',
      metadata: { externalRef: 'INV2022-02-0137' },
    }
    expect(readIncomingPaymentRequest(body)).toStrictEqual({
      ok: true,
      value: {
        walletAddress: 'https://openpayments.guide/alice',
        incomingAmount: body.incomingAmount,
        expiresAt: Date.UTC(2026, 11, 1, 9, 0, 0, 500),
        metadata: body.metadata,
      },
    })
  })

  test.each<readonly [string, Json | undefined, string]>([
    ['no body', undefined, ''],
    ['null', null, ''],
    ['text', bob, ''],
    ['no wallet address', { metadata: {} }, 'walletAddress'],
    ['a null wallet address', requestWith({ walletAddress: null }), 'walletAddress'],
    ['a wallet address that is an object', requestWith({ walletAddress: {} }), 'walletAddress'],
    ['a wallet address that is not a URL', requestWith({ walletAddress: 'bob' }), 'walletAddress'],
    ['a wallet address with a query', requestWith({ walletAddress: `${bob}?a` }), 'walletAddress'],
    ['a payment pointer', requestWith({ walletAddress: '$wallet.example/bob' }), 'walletAddress'],
    ['an unknown member', requestWith({ description: 'x' }), 'description'],
    ['a member that only responses contain', requestWith({ completed: true }), 'completed'],
    ['a misspelt member', requestWith({ incomingamount: usd }), 'incomingamount'],
    ['a member that every object inherits', requestWith({ toString: 1 }), 'toString'],
    ['another inherited member', requestWith({ constructor: 1 }), 'constructor'],
    ['an amount that is a string', requestWith({ incomingAmount: '25' }), 'incomingAmount'],
    [
      'an amount without a value',
      requestWith({ incomingAmount: { assetCode: 'USD', assetScale: 2 } }),
      'incomingAmount.value',
    ],
    [
      'a value above 64 bits',
      requestWith({ incomingAmount: { ...usd, value: '18446744073709551616' } }),
      'incomingAmount.value',
    ],
    [
      'a numeric value',
      requestWith({ incomingAmount: { ...usd, value: 2500 } }),
      'incomingAmount.value',
    ],
    [
      'a negative value',
      requestWith({ incomingAmount: { ...usd, value: '-0' } }),
      'incomingAmount.value',
    ],
    [
      'a value in non-ASCII digits',
      requestWith({ incomingAmount: { ...usd, value: '٢٥' } }),
      'incomingAmount.value',
    ],
    [
      'a value with a line break',
      requestWith({ incomingAmount: { ...usd, value: '25\n' } }),
      'incomingAmount.value',
    ],
    [
      'a scale that is a string',
      requestWith({ incomingAmount: { ...usd, assetScale: '2' } }),
      'incomingAmount.assetScale',
    ],
    [
      'a scale of 256',
      requestWith({ incomingAmount: { ...usd, assetScale: 256 } }),
      'incomingAmount.assetScale',
    ],
    ['an invalid date', requestWith({ expiresAt: 'tomorrow' }), 'expiresAt'],
    ['a date without a time', requestWith({ expiresAt: '2026-12-01' }), 'expiresAt'],
    ['a time without an offset', requestWith({ expiresAt: '2026-12-01T10:00:00' }), 'expiresAt'],
    ['30 February', requestWith({ expiresAt: '2027-02-30T10:00:00Z' }), 'expiresAt'],
    ['hour 24', requestWith({ expiresAt: '2026-12-01T24:00:00Z' }), 'expiresAt'],
    ['a leap second', requestWith({ expiresAt: '2026-12-31T23:59:60Z' }), 'expiresAt'],
    ['milliseconds since 1970', requestWith({ expiresAt: 1_800_000_000_000 }), 'expiresAt'],
    ['a null wallet address', requestWith({ walletAddress: null }), 'walletAddress'],
    [
      'an amount without a value',
      requestWith({ incomingAmount: { value: null, assetCode: 'USD', assetScale: 2 } }),
      'incomingAmount.value',
    ],
    ['metadata that is an array', requestWith({ metadata: [] }), 'metadata'],
    ['metadata that is a string', requestWith({ metadata: 'x' }), 'metadata'],
    ['metadata that is a number', requestWith({ metadata: 0 }), 'metadata'],
    ['metadata that is false', requestWith({ metadata: false }), 'metadata'],
  ])('rejects a malformed body and names the position: %s', (_, body, path) => {
    expect(readIncomingPaymentRequest(body)).toEqual({
      ok: false,
      path,
      problem: expect.any(String),
    })
  })

  test('rejects an array', () => {
    expect(readIncomingPaymentRequest([])).toHaveProperty('ok', false)
    expect(readIncomingPaymentRequest([bob])).toHaveProperty('ok', false)
  })

  test('the problem never quotes a value', () => {
    const values = ['shibboleth', { shibboleth: 'shibboleth' }, ['shibboleth']]
    const names = ['walletAddress', 'incomingAmount', 'expiresAt']
    for (const name of names) {
      for (const value of values) {
        const read = readIncomingPaymentRequest(requestWith({ [name]: value }))
        expect(read).toHaveProperty('ok', false)
        expect(JSON.stringify(read)).not.toContain('shibboleth')
      }
    }
  })

  test('the name of an unknown member is escaped and truncated in the problem', () => {
    for (const name of ['a\r\n2026-11-21 forged line', '\u001b[2J', 'x'.repeat(60_000)]) {
      const read = readIncomingPaymentRequest(requestWith({ [name]: 1 }))
      const { path, problem } = !read.ok ? read : { path: '', problem: '' }
      expect(path + problem).toMatch(/^[\x20-\x7e]{1,512}$/)
    }
  })

  test('returns a result for any JSON', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (whole, part) => {
        const names = ['walletAddress', 'incomingAmount', 'expiresAt', 'metadata']
        expect(() => readIncomingPaymentRequest(whole as Json)).not.toThrow()
        for (const name of names) {
          const body = requestWith({ [name]: part as Json })
          expect(() => readIncomingPaymentRequest(body)).not.toThrow()
        }
      }),
      { numRuns: 200 },
    )
  })
})

describe('metadata', () => {
  test('is kept key for key, with any keys', () => {
    const name = fc.oneof(
      fc.constantFrom('constructor', 'toString', 'valueOf', 'hasOwnProperty', 'prototype', ''),
      fc.constantFrom('__defineGetter__', 'length', '0', '10', 'a.b', '\u0000', '\ud800'),
      fc.string(),
    )
    const leaf = fc.oneof(
      fc.constantFrom('\u0000', '\udfff', '', null, true),
      fc.integer(),
      fc.string(),
    )
    const list = fc.array(leaf, { maxLength: 3 })
    const metadata = fc.dictionary(
      name,
      fc.oneof(leaf, list, fc.dictionary(name, fc.oneof(leaf, list), { maxKeys: 3 })),
      { maxKeys: 5 },
    )
    fc.assert(
      fc.property(metadata, (metadata) => {
        const text = JSON.stringify({ walletAddress: bob, metadata })
        fc.pre(!text.includes('__proto__'))
        const read = metadataOf(received(text))
        expect(JSON.stringify(read)).toBe(JSON.stringify(metadata))
      }),
      { numRuns: 500 },
    )
  })

  test.each(['constructor', 'toString', 'hasOwnProperty', 'prototype', '__defineGetter__'])(
    'may have an ordinary member named %s',
    (name) => {
      const metadata = { [name]: 'kept', inner: { [name]: [{ [name]: 1 }] } }
      const read = metadataOf(received(JSON.stringify(requestWith({ metadata }))))
      // Avoids deep equality, which would treat the constructor specially.
      expect(JSON.stringify(read)).toBe(JSON.stringify(metadata))
    },
  )

  test('is refused with a member that could set the prototype', () => {
    const body = received(`{"walletAddress":"${bob}","metadata":{"a":{"__proto__":{}}}}`)
    expect(readIncomingPaymentRequest(body)).toHaveProperty('ok', false)
  })

  test('may be empty', () => {
    expect(metadataOf(requestWith({ metadata: {} }))).toStrictEqual({})
  })

  test('may have eight levels but not nine', () => {
    expect(metadataOf(requestWith({ metadata: nested(8) }))).toStrictEqual(nested(8))
    expect(readIncomingPaymentRequest(requestWith({ metadata: nested(9) }))).toEqual({
      ok: false,
      path: 'metadata',
      problem: expect.any(String),
    })
  })

  test('counts arrays as levels', () => {
    const inArrays = (levels: number): Json => (levels === 0 ? 'leaf' : [inArrays(levels - 1)])
    expect(metadataOf(requestWith({ metadata: { a: inArrays(7) } }))).toBeDefined()
    expect(
      readIncomingPaymentRequest(requestWith({ metadata: { a: inArrays(8) } })),
    ).toHaveProperty('ok', false)
  })

  test.each([
    ['ASCII', 'x'],
    ['two-byte letters', 'é'],
    ['four-byte characters', '💸'],
  ])('may have 8192 bytes of JSON and no more: %s', (_, unit) => {
    const frame = Buffer.byteLength('{"note":""}')
    const room = 8192 - frame
    const size = Buffer.byteLength(unit)
    const note = unit.repeat(Math.floor(room / size)) + 'x'.repeat(room % size)
    expect(Buffer.byteLength(JSON.stringify({ note }))).toBe(8192)
    expect(metadataOf(requestWith({ metadata: { note } }))).toStrictEqual({ note })
    expect(readIncomingPaymentRequest(requestWith({ metadata: { note: `${note}x` } }))).toEqual({
      ok: false,
      path: 'metadata',
      problem: expect.any(String),
    })
  })

  test('is measured without the whitespace between its members', () => {
    const padding = ' '.repeat(20_000)
    const body = received(`{"walletAddress":"${bob}","metadata":{${padding}"a":1}}`)
    expect(metadataOf(body)).toStrictEqual({ a: 1 })
  })
})

const createdAt = Date.UTC(2026, 10, 21, 12)
const payment: IncomingPayment = {
  id: 'namespacPAYMENT',
  version: 3,
  commandId: 'command',
  dueAt: createdAt + 1,
  retainUntil: createdAt + 2,
  paidRetainUntil: createdAt + 2,
  lists: [{ list: 'list', at: createdAt }],
  walletAddress: bob,
  client: 'https://shop.example',
  asset: { assetCode: 'USD', assetScale: 2 },
  received: '17',
  completed: false,
  createdAt,
  updatedAt: createdAt + 1,
  expiresAt: Date.UTC(2026, 11, 21, 12, 30, 0, 250),
}
const url = 'https://wallet.example/op/incoming-payments/namespacPAYMENT'

describe('incomingPaymentBody', () => {
  test('contains the members in the OpenAPI and nothing else of the record', () => {
    expect(incomingPaymentBody(payment, url)).toStrictEqual({
      id: url,
      walletAddress: bob,
      completed: false,
      receivedAmount: { value: '17', assetCode: 'USD', assetScale: 2 },
      expiresAt: '2026-12-21T12:30:00.250Z',
      createdAt: '2026-11-21T12:00:00.000Z',
    })
  })

  test('contains the requested amount and metadata', () => {
    const metadata = { constructor: 'kept', '0': [null] }
    const body = incomingPaymentBody({ ...payment, incomingAmount: usd, metadata }, url)
    expect(body.incomingAmount).toStrictEqual(usd)
    expect(body.metadata).toStrictEqual(metadata)
  })

  test('writes the largest amount exactly', () => {
    const received = '18446744073709551615'
    expect(incomingPaymentBody({ ...payment, received }, url).receivedAmount.value).toBe(received)
  })

  test('contains no member with an undefined value, which JSON would omit', () => {
    const body = incomingPaymentBody(payment, url)
    expect(JSON.parse(JSON.stringify(body))).toStrictEqual(body)
  })
})

describe('incomingPaymentWithMethods', () => {
  test('adds the methods, even when there are none', () => {
    const methods = [{ type: 'ilp', ilpAddress: 'test.wallet.p', sharedSecret: 's' }] as const
    const body = incomingPaymentBody(payment, url)
    expect(incomingPaymentWithMethods(payment, url, methods)).toStrictEqual({ ...body, methods })
    expect(incomingPaymentWithMethods(payment, url, []).methods).toStrictEqual([])
  })
})
