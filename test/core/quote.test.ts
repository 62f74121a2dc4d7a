import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  type CreateQuote,
  createQuote,
  type PriceQuery,
  priceProblem,
  type Quote,
  usableQuote,
} from '../../src/core/quote.js'
import { startOfTests } from '../support/clock.js'
import { deepFreeze } from '../support/frozen.js'
import { dollars, euros, most, receiver } from '../support/spending-life.js'

const now = startOfTests
const policy = { lifetimeMs: 300_000, retentionMs: 86_400_000 }
const alice = 'https://wallet.example/alice'
const shop = 'https://shop.example'

function asked(more: Partial<CreateQuote> = {}): CreateQuote {
  return {
    commandId: 'command-0',
    id: 'namespac-quote',
    walletAddress: alice,
    client: shop,
    receiver,
    debitAmount: dollars(100),
    receiveAmount: euros(50),
    ...more,
  }
}

function create(more: Partial<CreateQuote> = {}) {
  return createQuote(deepFreeze(asked(more)), now, policy)
}

function quote(more: Partial<CreateQuote> = {}): Quote {
  const decision = create(more)
  if (decision.outcome === 'refused') throw new Error(decision.reason)
  return deepFreeze(decision.record)
}

describe('a quote', () => {
  test('holds a price for the requesting client for a limited time', () => {
    expect(quote()).toEqual({
      ...asked(),
      version: 1,
      method: 'ilp',
      createdAt: now,
      expiresAt: now + policy.lifetimeMs,
      dueAt: now + policy.lifetimeMs + policy.retentionMs,
      retainUntil: now + policy.lifetimeMs + policy.retentionMs,
    })
  })

  test('emits one event', () => {
    expect(create()).toMatchObject({
      ok: true,
      outcome: 'changed',
      events: [
        {
          type: 'quote.created',
          at: now,
          quoteId: 'namespac-quote',
          walletAddress: alice,
          client: shop,
          receiver,
          debitAmount: dollars(100),
          receiveAmount: euros(50),
        },
      ],
    })
  })

  test.each([
    ['before the end of the lifetime from policy', now + 1, now + 1],
    ['at the end of the lifetime from policy', now + policy.lifetimeMs, now + policy.lifetimeMs],
    [
      'after the end of the lifetime from policy',
      now + policy.lifetimeMs + 1,
      now + policy.lifetimeMs,
    ],
  ])(
    'expires no later than policy allows when its price expires %s',
    (_, priceEndsAt, expiresAt) => {
      expect(quote({ expiresAt: priceEndsAt })).toMatchObject({
        expiresAt,
        retainUntil: expiresAt + policy.retentionMs,
      })
    },
  )

  test.each([now, now - 1, 0, Number.NaN])(
    'is not created from an expired price: %d',
    (expiresAt) => {
      expect(create({ expiresAt })).toMatchObject({ refusal: 'quote_expired' })
    },
  )

  test('is plain JSON without undefined', () => {
    for (const each of [quote(), quote({ expiresAt: now + 5 })]) {
      expect(JSON.parse(JSON.stringify(each))).toStrictEqual(each)
    }
  })
})

describe('validating a price', () => {
  const price = { debitAmount: dollars(100), receiveAmount: euros(50) }
  const asset = { assetCode: 'USD', assetScale: 2 }

  test.each<readonly [string, Partial<PriceQuery>]>([
    ['no amount', {}],
    ['the debit amount', { debitAmount: dollars(100) }],
    ['the receive amount', { receiveAmount: euros(50) }],
  ])('accepts the price when the query contains %s', (_, named) => {
    expect(priceProblem(price, { receiver, ...named }, asset)).toBeUndefined()
  })

  test.each<readonly [string, object, Partial<PriceQuery>]>([
    ['debitAmount is not the amount in the query', {}, { debitAmount: dollars(99) }],
    [
      'debitAmount is not the amount in the query',
      { debitAmount: { ...dollars(100), assetScale: 3 } },
      { debitAmount: dollars(100) },
    ],
    ['receiveAmount is not the amount in the query', {}, { receiveAmount: dollars(50) }],
    ['debitAmount is not a positive amount', { debitAmount: dollars(0) }, {}],
    ['receiveAmount is not a positive amount', { receiveAmount: euros(0) }, {}],
    ['debitAmount is not a positive amount', { debitAmount: dollars(-1) }, {}],
    ['receiveAmount is not a positive amount', { receiveAmount: euros('1.5') }, {}],
    ['receiveAmount is not a positive amount', { receiveAmount: euros(most + 1n) }, {}],
    ['debitAmount is not in the asset of the wallet address', { debitAmount: euros(100) }, {}],
  ])('reports the problem: %s', (problem, changes, named) => {
    expect(priceProblem({ ...price, ...changes }, { receiver, ...named }, asset)).toBe(problem)
  })
})

describe('using a quote', () => {
  const use = { walletAddress: alice, client: shop }

  test('is possible for the requesting client, from the same wallet address, until it expires', () => {
    const good = quote()
    expect(usableQuote(good, use, now)).toEqual({ ok: true, value: good })
    expect(usableQuote(good, use, good.expiresAt - 1)).toEqual({ ok: true, value: good })
    expect(usableQuote(good, use, good.expiresAt)).toMatchObject({
      refusal: 'quote_expired',
      details: { path: 'quoteId' },
    })
  })

  test('is refused for another client without disclosing that the quote exists', () => {
    const other = { ...use, client: 'https://other.example' }
    const absent = usableQuote(undefined, use, now)
    expect(absent).toMatchObject({ refusal: 'quote_unknown' })
    for (const at of [now, now + policy.lifetimeMs]) {
      expect(usableQuote(quote(), other, at)).toEqual(absent)
      expect(usableQuote(quote(), { ...other, walletAddress: 'x' }, at)).toEqual(absent)
    }
  })

  test('is refused for another wallet address, expired or not', () => {
    const elsewhere = { ...use, walletAddress: 'https://wallet.example/bob' }
    for (const at of [now, now + policy.lifetimeMs]) {
      expect(usableQuote(quote(), elsewhere, at)).toMatchObject({
        refusal: 'quote_mismatch',
        details: { path: 'walletAddress' },
      })
    }
  })

  test('depends only on these three conditions', () => {
    const name = fc.constantFrom(alice, shop, 'https://wallet.example/bob')
    const instants = fc.integer({ min: -2, max: 2 }).map((ms) => now + policy.lifetimeMs + ms)
    fc.assert(
      fc.property(
        name,
        name,
        name,
        name,
        instants,
        (walletAddress, client, from, commandId, at) => {
          const made = quote({ walletAddress, client })
          const answer = usableQuote(made, { walletAddress: from, client: commandId }, at)
          const usable = walletAddress === from && client === commandId && at < made.expiresAt
          expect(answer.ok).toBe(usable)
          expect(answer.ok && answer.value).toBe(usable && made)
        },
      ),
      { numRuns: 300 },
    )
  })
})
