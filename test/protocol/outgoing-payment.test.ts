import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ok } from '../../src/core/result.js'
import type { Quote } from '../../src/entry-core.js'
import type { Json, OutgoingPayment } from '../../src/index.js'
import {
  outgoingPaymentBody,
  quoteBody,
  readOutgoingPaymentRequest,
  readPriceAnswer,
  readQuoteRequest,
} from '../../src/protocol/outgoing-payment.js'
import { dollars, euros } from '../support/spending-life.js'

type JsonMembers = { readonly [name: string]: Json }

const alice = 'https://wallet.example/alice'
const receiver = 'https://bank.example/incoming-payments/1'
const quoteId = 'https://wallet.example/op/quotes/1'
const usd = { value: '2500', assetCode: 'USD', assetScale: 2 }

const asked = (members: JsonMembers = {}) => ({
  walletAddress: alice,
  receiver,
  method: 'ilp',
  ...members,
})
const byQuote = (members: JsonMembers = {}) => ({ walletAddress: alice, quoteId, ...members })
const direct = (members: JsonMembers = {}) => ({
  walletAddress: alice,
  incomingPayment: receiver,
  debitAmount: usd,
  ...members,
})

/** Invalid amount values, with a fault in any member. */
const noValues = ['', ' 5 ', '0x10', '-0', '1.0', '18446744073709551616', '+5', '007', '1e3', '٢٥']

const noAmounts: readonly [string, Json, string][] = [
  ...noValues.map((value): [string, Json, string] => [
    `a value of "${value}"`,
    { ...usd, value },
    '.value',
  ]),
  ['a numeric value', { ...usd, value: 2500 }, '.value'],
  ['a scale of 256', { ...usd, assetScale: 256 }, '.assetScale'],
  ['a scale of -1', { ...usd, assetScale: -1 }, '.assetScale'],
  ['a scale that is a string', { ...usd, assetScale: '2' }, '.assetScale'],
  ['an asset code with a space', { ...usd, assetCode: 'US D' }, '.assetCode'],
  ['no asset code', { value: '1', assetScale: 2 }, '.assetCode'],
  ['text', '25', ''],
  ['a list', [usd], ''],
]

describe('a null member', () => {
  test('is read as absent where it is optional', () => {
    expect(readQuoteRequest(asked({ debitAmount: null, receiveAmount: usd }))).toStrictEqual(
      readQuoteRequest(asked({ receiveAmount: usd })),
    )
    const byQuoteWithNulls = byQuote({ metadata: null, incomingPayment: null, debitAmount: null })
    expect(readOutgoingPaymentRequest(byQuoteWithNulls)).toStrictEqual(
      readOutgoingPaymentRequest(byQuote()),
    )
    const directWithNulls = direct({ metadata: null, quoteId: null })
    expect(readOutgoingPaymentRequest(directWithNulls)).toStrictEqual(
      readOutgoingPaymentRequest(direct()),
    )
  })

  test.each<readonly [what: string, read: unknown, path: string]>([
    ['the receiver of a quote', readQuoteRequest(asked({ receiver: null })), 'receiver'],
    [
      'the wallet address',
      readOutgoingPaymentRequest(byQuote({ walletAddress: null })),
      'walletAddress',
    ],
    ['the quote', readOutgoingPaymentRequest(byQuote({ quoteId: null })), 'quoteId'],
    [
      'the amount of a direct payment',
      readOutgoingPaymentRequest(direct({ debitAmount: null })),
      'debitAmount',
    ],
  ])('is refused where it is required: %s', (_, read, path) => {
    expect(read).toEqual({ ok: false, path, problem: 'is missing' })
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
})

describe('readOutgoingPaymentRequest', () => {
  test('reads a payment by quote', () => {
    expect(readOutgoingPaymentRequest(byQuote())).toStrictEqual({
      ok: true,
      value: { walletAddress: alice, quoteId },
    })
  })

  test('reads a payment directly to an incoming payment', () => {
    expect(readOutgoingPaymentRequest(direct())).toStrictEqual({ ok: true, value: direct() })
  })

  test('keeps metadata unchanged in both forms', () => {
    const metadata = { constructor: 'kept', '0': [null], note: '\u0000' }
    for (const body of [byQuote({ metadata }), direct({ metadata })]) {
      const read = readOutgoingPaymentRequest(body)
      expect(JSON.stringify(read.ok && read.value.metadata)).toBe(JSON.stringify(metadata))
    }
  })

  test.each<readonly [string, Json | undefined, string]>([
    ['no body', undefined, ''],
    ['text', 'pay', ''],
    ['a list', [byQuote()], ''],
    ['nothing', {}, 'walletAddress'],
    ['neither a quote nor a receiver', { walletAddress: alice }, 'quoteId'],
    ['a quote that is not a URL', byQuote({ quoteId: '1' }), 'quoteId'],
    ['a quote and an amount', byQuote({ debitAmount: usd }), 'debitAmount'],
    ['a quote and a receiver', byQuote({ incomingPayment: receiver, debitAmount: usd }), 'quoteId'],
    [
      'a receiver without an amount',
      { walletAddress: alice, incomingPayment: receiver },
      'debitAmount',
    ],
    ['a receive amount', direct({ receiveAmount: usd }), 'receiveAmount'],
    [
      'a receiver that is not an incoming payment',
      direct({ incomingPayment: alice }),
      'incomingPayment',
    ],
    ['no wallet address', { quoteId }, 'walletAddress'],
    ['metadata that is a list', byQuote({ metadata: [] }), 'metadata'],
    ['metadata that is a string', direct({ metadata: 'x' }), 'metadata'],
    ['oversized metadata', byQuote({ metadata: { note: 'x'.repeat(8192) } }), 'metadata'],
    ['an unknown member', byQuote({ method: 'ilp' }), 'method'],
  ])('rejects a malformed body and names the position: %s', (_, body, path) => {
    expect(readOutgoingPaymentRequest(body)).toEqual({
      ok: false,
      path,
      problem: expect.any(String),
    })
  })

  test.each(noAmounts)('rejects %s', (_, amount, within) => {
    expect(readOutgoingPaymentRequest(direct({ debitAmount: amount }))).toEqual({
      ok: false,
      path: `debitAmount${within}`,
      problem: expect.any(String),
    })
  })

  test('returns a result for any JSON and quotes no value', () => {
    const names = ['walletAddress', 'quoteId', 'incomingPayment', 'debitAmount', 'metadata']
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom(...names), (part, name) => {
        for (const body of [
          part as Json,
          byQuote({ [name]: part as Json }),
          direct({ [name]: part as Json }),
        ]) {
          readOutgoingPaymentRequest(body)
          readQuoteRequest(body)
        }
      }),
      { numRuns: 200 },
    )
    for (const name of names) {
      const read = readOutgoingPaymentRequest(direct({ [name]: 'shibboleth' }))
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

const createdAt = Date.UTC(2026, 10, 21, 12)

describe('quoteBody', () => {
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
    expect(quoteBody(quote, quoteId)).toStrictEqual({
      id: quoteId,
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

describe('outgoingPaymentBody', () => {
  const payment: OutgoingPayment = {
    id: 'namespacPAYMENT',
    version: 2,
    commandId: 'command',
    lists: [{ list: 'list', at: createdAt }],
    walletAddress: alice,
    client: 'https://shop.example',
    grantId: 'grant',
    itemId: '1',
    budgetId: 'budget',
    requestHash: 'hash',
    receiver,
    debitAmount: dollars(100),
    receiveAmount: euros(50),
    sent: '40',
    delivered: '20',
    state: 'begun',
    failure: 'why',
    createdAt,
    updatedAt: createdAt + 1,
    holdUntil: createdAt + 1_000,
  }
  const id = 'https://wallet.example/op/outgoing-payments/namespacPAYMENT'

  test('contains the members in the OpenAPI and nothing else of the record', () => {
    const body = outgoingPaymentBody(payment, { id }, createdAt)
    expect(body).toStrictEqual({
      id,
      walletAddress: alice,
      failed: false,
      receiver,
      debitAmount: dollars(100),
      receiveAmount: euros(50),
      sentAmount: dollars(40),
      createdAt: '2026-11-21T12:00:00.000Z',
    })
    expect(JSON.parse(JSON.stringify(body))).toStrictEqual(body)
  })

  test('contains the quote and the metadata of the payment', () => {
    const metadata = { constructor: 'kept' }
    expect(outgoingPaymentBody({ ...payment, metadata }, { id, quoteId }, createdAt)).toMatchObject(
      {
        quoteId,
        metadata,
      },
    )
  })

  test.each<readonly [OutgoingPayment['state'], number, boolean]>([
    ['created', 999, false],
    ['created', 1_000, true],
    ['begun', 1_000, false],
    ['completed', 1_000, false],
    ['failed', 0, true],
  ])(
    'reports a failure as soon as the payment can no longer be sent: %s after %d ms',
    (state, ms, failed) => {
      expect(outgoingPaymentBody({ ...payment, state }, { id }, createdAt + ms).failed).toBe(failed)
    },
  )
})
