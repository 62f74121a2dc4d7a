import { describe, expect, test } from 'vitest'
import type { GrantedItem } from '../../../src/core/access.js'
import {
  type CreationRecords,
  decideCreation,
  type RequestPayment,
} from '../../../src/core/outgoing-payment/create.js'
import type { Quote } from '../../../src/core/quote.js'

const alice = 'https://wallet.example/alice'
const client = 'https://shop.example'
const usd = (value: number) => ({ value: String(value), assetCode: 'USD', assetScale: 2 })
const now = 1_000
const policy = {
  payments: { holdMs: 1_000, retentionMs: 10_000 },
  reservations: { decideMs: 30, lateMs: 200 },
  budgets: { retentionMs: 20_000 },
}
const dueAt = now + policy.budgets.retentionMs

const price = {
  receiver: 'https://shop.example/1',
  receiverWalletAddress: 'https://shop.example/shop',
  debitAmount: usd(60),
  receiveAmount: usd(55),
}

const quote: Quote = {
  ...{ id: 'payment', version: 1, commandId: 'quoting', walletAddress: alice, client },
  ...{ method: 'ilp', ...price, createdAt: 0, expiresAt: now + 1 },
}

const item: GrantedItem = {
  ...{ itemId: '1', type: 'outgoing-payment', actions: ['create'], identifier: alice },
  limits: { debitAmount: usd(100) },
}

const byQuote: RequestPayment = {
  ...{ commandId: 'me', id: 'payment', client, requestHash: 'hash', grantId: 'grant' },
  ...{ namespace: '', walletAddress: alice, lists: [{ list: 'all', at: now }] },
  terms: { type: 'quote', quoteId: 'payment' },
}
const atPrice: RequestPayment = { ...byQuote, terms: { type: 'price', price } }

/** Decides a request on these records. Its quote is valid, and nothing is spent, unless stated otherwise. */
function decide(request: RequestPayment, records: Partial<CreationRecords> = {}) {
  return decideCreation(
    request,
    { quote, candidates: [{ item }], limits: [], ...records },
    now,
    policy,
  )
}

const refusedWith = (refusal: string) => ({ ok: false, outcome: 'refused', refusal })

describe('a requested payment', () => {
  test.each([
    ['by a quote', byQuote, { quoteId: 'payment' }],
    ['at a price', atPrice, {}],
  ])('is created %s, and counted in full', (_, request, own) => {
    const decision = decide(request)
    expect(decision).toMatchObject({
      outcome: 'changed',
      record: { state: 'created', client, ...own, ...price, lists: [{ list: 'all', at: now }] },
      events: [{ type: 'outgoing-payment.created', outgoingPaymentId: 'payment' }],
      budget: { spent: { debitAmount: usd(60), receiveAmount: usd(55) }, dueAt },
    })
    expect(decision.ok && 'quoteId' in decision.record).toBe('quoteId' in own)
  })

  test('is only reserved, in no list and without an event, if the host decides about it', () => {
    const decision = decide({ ...byQuote, askedAt: now + 7 })
    expect(decision).toMatchObject({
      record: {
        state: 'reserved',
        quoteId: 'payment',
        ...price,
        createdAt: now,
        askUntil: now + 7 + policy.reservations.decideMs,
      },
      events: [],
      budget: { spent: { debitAmount: usd(60) }, dueAt },
    })
    expect(decision.ok && decision.record.lists).toBeUndefined()
  })

  test('needs a usable quote, if its terms are those of a quote', () => {
    expect(decide(byQuote, { quote: undefined })).toMatchObject(refusedWith('quote_unknown'))
    const other = { ...quote, client: 'https://other.example' }
    expect(decide(byQuote, { quote: other })).toMatchObject(refusedWith('quote_unknown'))
    const expired = { ...quote, expiresAt: now }
    expect(decide(byQuote, { quote: expired })).toMatchObject(refusedWith('quote_expired'))
    expect(decide(atPrice, { quote: undefined })).toMatchObject({ ok: true })
  })

  test('is refused for its terms before it is refused for its grant', () => {
    const records = { quote: { ...quote, expiresAt: now }, candidates: [] }
    expect(decide(byQuote, records)).toMatchObject(refusedWith('quote_expired'))
    expect(decide(byQuote, { candidates: [] })).toMatchObject(refusedWith('limits_exceeded'))
  })

  test('is refused if it exceeds the conditions or what is left', () => {
    const capped = { ...atPrice, conditions: { paymentMax: usd(59) } }
    expect(decide(capped)).toMatchObject(refusedWith('conditions_exceeded'))
    const first = decide(atPrice)
    if (!first.ok || first.budget === undefined) throw new Error('the first is not created')
    const spent = { candidates: [{ item, budget: first.budget }] }
    expect(decide({ ...atPrice, id: 'second' }, spent)).toMatchObject(
      refusedWith('limits_exceeded'),
    )
  })
})
