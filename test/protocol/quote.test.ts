import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ok } from '../../src/core/decision.js'
import type { Json, Quote } from '../../src/entry-core.js'
import { quoteBody, readPriceAnswer, readQuoteRequest } from '../../src/protocol/quote.js'
import { noAmounts, usd } from '../support/amounts.js'
import { dollars, euros } from '../support/spending-life.js'

type JsonMembers = { readonly [name: string]: Json }

const alice = 'https://wallet.example/alice'
const receiver = 'https://bank.example/incoming-payments/1'

const asked = (members: JsonMembers = {}) => ({
  walletAddress: alice,
  receiver,
  method: 'ilp',
  ...members,
})

describe('a null member', () => {
  test('is read as absent where it is optional', () => {
    expect(readQuoteRequest(asked({ debitAmount: null, receiveAmount: usd }))).toStrictEqual(
      readQuoteRequest(asked({ receiveAmount: usd })),
    )
  })

  test('is refused where it is required', () => {
    expect(readQuoteRequest(asked({ receiver: null }))).toEqual({
      ok: false,
      path: 'receiver',
      problem: 'is missing',
    })
  })
})

describe('readQuoteRequest', () => {
  test.each<readonly [string, JsonMembers]>([
    ['no amount', {}],
    ['a fixed send amount', { debitAmount: usd }],
    ['a fixed receive amount', { receiveAmount: { ...usd, assetCode: 'EUR' } }],
  ])('reads each form in the OpenAPI: %s', (_, amounts) => {
    expect(readQuoteRequest(asked(amounts))).toStrictEqual({
      ok: true,
      value: { walletAddress: alice, receiver, ...amounts },
    })
  })

  test('canonicalizes URLs', () => {
    const body = asked({
      walletAddress: 'https://WALLET.example:443/alice/',
      receiver: 'https://Bank.example/incoming-payments/1/',
    })
    expect(readQuoteRequest(body)).toStrictEqual({
      ok: true,
      value: { walletAddress: alice, receiver },
    })
  })

  test.each<readonly [string, Json | undefined, string]>([
    ['no body', undefined, ''],
    ['a list', [asked()], ''],
    ['no wallet address', { receiver, method: 'ilp' }, 'walletAddress'],
    ['a payment pointer', asked({ walletAddress: '$wallet.example/alice' }), 'walletAddress'],
    ['no receiver', { walletAddress: alice, method: 'ilp' }, 'receiver'],
    ['a receiver that is not a URL', asked({ receiver: 'bob' }), 'receiver'],
    ['a receiver that is not an incoming payment', asked({ receiver: alice }), 'receiver'],
    ['a receiver without an id', asked({ receiver: `${alice}/incoming-payments` }), 'receiver'],
    ['a receiver over plain http', asked({ receiver: receiver.replace('s:', ':') }), 'receiver'],
    ['no method', { walletAddress: alice, receiver }, 'method'],
    ['another method', asked({ method: 'ILP' }), 'method'],
    ['both amounts', asked({ debitAmount: usd, receiveAmount: usd }), ''],
    ['metadata', asked({ metadata: {} }), 'metadata'],
    ['an unknown member', asked({ constructor: 1 }), 'constructor'],
  ])('rejects a malformed body and names the position: %s', (_, body, path) => {
    expect(readQuoteRequest(body)).toEqual({ ok: false, path, problem: expect.any(String) })
  })

  test.each(noAmounts)('rejects %s in either amount', (_, amount, within) => {
    for (const name of ['debitAmount', 'receiveAmount']) {
      expect(readQuoteRequest(asked({ [name]: amount }))).toEqual({
        ok: false,
        path: name + within,
        problem: expect.any(String),
      })
    }
  })
  test('returns a result for any JSON and quotes no value', () => {
    const names = ['walletAddress', 'receiver', 'method', 'debitAmount', 'receiveAmount']
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom(...names), (part, name) => {
        readQuoteRequest(part as Json)
        readQuoteRequest(asked({ [name]: part as Json }))
      }),
      { numRuns: 200 },
    )
    for (const name of names) {
      const read = readQuoteRequest(asked({ [name]: 'shibboleth' }))
      expect(JSON.stringify(read)).not.toContain('shibboleth')
    }
  })
})

describe('readPriceAnswer', () => {
  const amounts = { debitAmount: dollars(100), receiveAmount: euros(50) }
  const price = { ok: true, ...amounts }

  test('reads a price and omits additional members of the host’s answer', () => {
    const more = { fee: 5n, debitAmount: { ...dollars(100), margin: '3' }, at: new Date() }
    expect(readPriceAnswer({ ...price, ...more })).toStrictEqual(ok(ok(amounts)))
    expect(readPriceAnswer({ ...price, expiresAt: undefined })).toStrictEqual(ok(ok(amounts)))
    expect(readPriceAnswer({ ...price, expiresAt: 17 })).toStrictEqual(
      ok(ok({ ...amounts, expiresAt: 17 })),
    )
  })

  test('reads the reason for a refusal', () => {
    for (const refusal of ['receiver_invalid', 'amount_missing', 'amount_too_small']) {
      const answer = { ok: false, refusal }
      expect(readPriceAnswer(answer)).toStrictEqual(ok(answer))
    }
    const small = {
      ok: false,
      refusal: 'amount_too_small',
      reason: 'a fee of 10',
      minDebitAmount: dollars(11),
    }
    expect(readPriceAnswer({ ...small, more: 1 })).toStrictEqual(ok(small))
  })

  test.each<readonly [string, unknown]>([
    ['nothing', undefined],
    ['null', null],
    ['a number', 100],
    ['an empty object', {}],
    ['only one amount', { ok: true, debitAmount: dollars(100) }],
    ['a price without ok', amounts],
    ['a refusal without ok', { refusal: 'receiver_invalid' }],
    ['a price with another ok', { ...amounts, ok: 1 }],
    ['an amount that is a number', { ...price, debitAmount: { ...dollars(100), value: 100 } }],
    ['an amount that is a bigint', { ...price, debitAmount: { ...dollars(100), value: 100n } }],
    ['an amount without an asset', { ...price, receiveAmount: { value: '50' } }],
    ['a fractional scale', { ...price, receiveAmount: { ...euros(50), assetScale: 2.5 } }],
    ['a value above 64 bits', { ...price, receiveAmount: euros(2n ** 64n) }],
    ['an expiry that is a Date', { ...price, expiresAt: new Date() }],
    ['an expiry that is not a number', { ...price, expiresAt: Number.NaN }],
    ['a fractional expiry', { ...price, expiresAt: 1.5 }],
    ['an expiry that is a string', { ...price, expiresAt: '2026-11-21T12:00:00Z' }],
    ['an unknown refusal', { ok: false, refusal: 'token_unknown' }],
    ['an inherited property as the refusal', { ok: false, refusal: 'constructor' }],
    ['an empty refusal', { ok: false, refusal: undefined }],
    ['an invalid minimum amount', { ok: false, refusal: 'amount_too_small', minDebitAmount: '11' }],
    [
      'a reason that is not a string',
      { ok: false, refusal: 'receiver_invalid', reason: new Error('x') },
    ],
  ])('rejects an invalid answer: %s', (_, answer) => {
    expect(readPriceAnswer(answer)).toEqual({
      ok: false,
      path: expect.any(String),
      problem: expect.any(String),
    })
  })
})

describe('quoteBody', () => {
  const id = 'https://wallet.example/op/quotes/1'
  const createdAt = Date.UTC(2026, 10, 21, 12)
  const quote: Quote = {
    id: 'namespacQUOTE',
    version: 1,
    commandId: 'command',
    dueAt: 1,
    retainUntil: 2,
    walletAddress: alice,
    client: 'https://shop.example',
    receiver,
    method: 'ilp',
    debitAmount: dollars(100),
    receiveAmount: euros(50),
    createdAt,
    expiresAt: createdAt + 300_000,
  }

  test('contains the members in the OpenAPI and nothing else of the record', () => {
    expect(quoteBody(quote, id)).toStrictEqual({
      id,
      walletAddress: alice,
      receiver,
      debitAmount: dollars(100),
      receiveAmount: euros(50),
      method: 'ilp',
      createdAt: '2026-11-21T12:00:00.000Z',
      expiresAt: '2026-11-21T12:05:00.000Z',
    })
  })
})
