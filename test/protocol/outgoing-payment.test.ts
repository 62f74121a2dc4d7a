import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Json, OutgoingPayment } from '../../src/entry-core.js'
import {
  outgoingPaymentBody,
  readOutgoingPaymentRequest,
} from '../../src/protocol/outgoing-payment.js'
import { noAmounts, usd } from '../support/amounts.js'
import { dollars, euros } from '../support/spending-life.js'

type JsonMembers = { readonly [name: string]: Json }

const alice = 'https://wallet.example/alice'
const receiver = 'https://bank.example/incoming-payments/1'
const quoteId = 'https://wallet.example/op/quotes/1'

const byQuote = (members: JsonMembers = {}) => ({ walletAddress: alice, quoteId, ...members })
const direct = (members: JsonMembers = {}) => ({
  walletAddress: alice,
  incomingPayment: receiver,
  debitAmount: usd,
  ...members,
})

describe('a null member', () => {
  test('is read as absent where it is optional', () => {
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

const createdAt = Date.UTC(2026, 10, 21, 12)

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
