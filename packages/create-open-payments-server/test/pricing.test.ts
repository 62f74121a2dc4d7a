import fc from 'fast-check'
import type { Amount, IncomingPaymentView } from 'open-payments-server'
import { amountValueMax } from 'open-payments-server/core'
import { hostCall } from 'open-payments-test-support/host-call'
import { describe, expect, test } from 'vitest'
import { exchangeFor, type Fee } from '../templates/wallet/src/exchange.js'
import { ownReceivers, pricingOf, type Receivers } from '../templates/wallet/src/pricing.js'

const noFee: Fee = { basisPoints: 0n, fixed: 0n }

const onePercent: Fee = { ...noFee, basisPoints: 100n }
const walletAddress = { url: 'https://wallet.example/alice', assetCode: 'USD', assetScale: 2 }
const expiresAt = Date.now() + 3_600_000

const amount = (value: bigint | number | string, assetCode = 'USD'): Amount => ({
  value: `${value}`,
  assetCode,
  assetScale: 2,
})

/** Returns the price of a payment from an account in dollars, or in `from`, to one in `to`. */
function priceOf(
  asked: { readonly debitAmount?: Amount; readonly receiveAmount?: Amount } = {},
  {
    from = 'USD',
    to = 'USD',
    fee = onePercent,
    ...more
  }: Partial<IncomingPaymentView> & { from?: string; to?: string; fee?: Fee },
) {
  const payment = {
    paymentId: 'p',
    walletAddress: 'https://wallet.example/bob',
    status: 'open',
    receivedAmount: amount(0, to),
    createdAt: 0,
    expiresAt,
    ...more,
  } as const
  const payments = {
    idOf: (url: string) => (url.startsWith('https://wallet.example/') ? 'p' : undefined),
    get: async (id: string) => (id === 'p' && more.paymentId !== 'none' ? payment : undefined),
  }
  const request = {
    account: { ...walletAddress, assetCode: from },
    receiver: 'https://wallet.example/incoming-payments/p',
    client: 'https://shop.example',
    method: 'ilp',
    ...asked,
  } as const
  return pricingOf(ownReceivers(payments), exchangeFor(fee)).price(request, hostCall)
}

interface Pair {
  readonly from: string
  readonly to: string
  readonly fee?: Fee
}

async function debitOf(received: bigint, assets: Pair): Promise<bigint> {
  const price = await priceOf({ receiveAmount: amount(received, assets.to) }, assets)
  if (!price.ok) throw new Error(price.refusal)
  expect(price.receiveAmount).toEqual(amount(received, assets.to))
  return BigInt(price.debitAmount.value)
}

/** Returns 0 if the amount is too small. */
async function arrivalOf(debited: bigint, assets: Pair): Promise<bigint> {
  const price = await priceOf({ debitAmount: amount(debited, assets.from) }, assets)
  if (!price.ok) {
    expect(price.refusal).toBe('amount_too_small')
    return 0n
  }
  expect(price.debitAmount).toEqual(amount(debited, assets.from))
  return BigInt(price.receiveAmount.value)
}

const currency = fc.constantFrom('USD', 'EUR')
const fee: fc.Arbitrary<Fee> = fc.oneof(
  fc.constant(noFee),
  fc.record({ basisPoints: fc.bigInt(1n, 9_999n), fixed: fc.bigInt(0n, 50n) }),
  fc.record({ basisPoints: fc.constant(0n), fixed: fc.bigInt(1n, 50n) }),
)
const assets = fc.record({ from: currency, to: currency, fee })
const value = fc.bigInt({ min: 1n, max: 10n ** 17n })
/** Very small amounts, where a cent matters. */
const small = fc.bigInt({ min: 1n, max: 300n })

describe('the price of a payment', () => {
  test('for a receive amount is the minimum with which that amount arrives', async () => {
    const property = fc.asyncProperty(fc.oneof(value, small), assets, async (received, pair) => {
      const debited = await debitOf(received, pair)
      expect(await arrivalOf(debited, pair)).toBeGreaterThanOrEqual(received)
      expect(await arrivalOf(debited - 1n, pair)).toBeLessThan(received)
    })
    await fc.assert(property, { numRuns: 300 })
  })

  test('never improves by splitting the payment', async () => {
    const property = fc.asyncProperty(small, small, assets, async (one, two, pair) => {
      const whole = await debitOf(one + two, pair)
      const pieces = (await debitOf(one, pair)) + (await debitOf(two, pair))
      expect(pieces).toBeGreaterThanOrEqual(whole)
      const arriving = (await arrivalOf(one, pair)) + (await arrivalOf(two, pair))
      expect(arriving).toBeLessThanOrEqual(await arrivalOf(one + two, pair))
    })
    await fc.assert(property, { numRuns: 300 })
  })

  test('never gains by a round trip, and loses money if there is a fee', async () => {
    const property = fc.asyncProperty(fc.oneof(value, small), assets, async (debited, pair) => {
      const arrived = await arrivalOf(debited, pair)
      const back = { ...pair, from: pair.to, to: pair.from }
      if (arrived === 0n) return
      const returned = await arrivalOf(arrived, back)
      const most = pair.fee === noFee ? debited : debited - 1n
      expect(returned).toBeLessThanOrEqual(most)
    })
    await fc.assert(property, { numRuns: 300 })
  })

  test.each([
    ['1000', 'USD', 'USD', '990'],
    ['1010', 'USD', 'USD', '1000'],
    ['1010', 'USD', 'EUR', '925'],
    ['1010', 'EUR', 'USD', '1080'],
    ['2', 'USD', 'USD', '1'],
  ])('of %s in %s to %s delivers %s', async (debited, from, to, expected) => {
    const price = await priceOf({ debitAmount: amount(debited, from) }, { from, to })
    expect(price).toEqual({
      ok: true,
      debitAmount: amount(debited, from),
      receiveAmount: amount(expected, to),
      receiverWalletAddress: 'https://wallet.example/bob',
      expiresAt,
    })
  })

  test.each<[string, Fee, string, string, string]>([
    ['nothing', noFee, 'USD', '1000', '1000'],
    ['nothing', noFee, 'EUR', '1080', '1000'],
    ['30 cents', { ...noFee, fixed: 30n }, 'USD', '1030', '1000'],
    ['a quarter of a percent', { ...noFee, basisPoints: 25n }, 'USD', '1003', '1000'],
  ])('with a fee of %s is the same in both directions', async (_, fee, to, debit, arriving) => {
    const pair = { from: 'USD', to, fee }
    expect(await debitOf(BigInt(arriving), pair)).toBe(BigInt(debit))
    expect(await arrivalOf(BigInt(debit), pair)).toBe(BigInt(arriving))
  })

  test.each([
    ['USD', 'USD', '2'],
    ['USD', 'EUR', '3'],
    ['EUR', 'USD', '2'],
  ])('of 1 in %s to %s is too small, with a minimum of %s', async (from, to, least) => {
    expect(await priceOf({ debitAmount: amount(1, from) }, { from, to })).toEqual({
      ok: false,
      refusal: 'amount_too_small',
      minDebitAmount: amount(least, from),
    })
    expect(await arrivalOf(BigInt(least), { from, to })).toBe(1n)
  })

  test('without an amount is the price of the amount that the receiver still needs', async () => {
    const more = {
      incomingAmount: amount(2500, 'EUR'),
      receivedAmount: amount(500, 'EUR'),
      to: 'EUR',
    }
    expect(await priceOf({}, more)).toMatchObject({
      receiveAmount: amount(2000, 'EUR'),
      debitAmount: amount(2182),
    })
    expect(await priceOf({}, {})).toEqual({ ok: false, refusal: 'amount_missing' })
  })
})

/** Returns the price of paying a dollar from an account in dollars to a receiver in another wallet. */
function priceElsewhere(
  found: Awaited<ReturnType<Receivers>>,
  debitAmount: Amount | undefined = amount(1010),
) {
  const payments = { idOf: () => undefined, get: () => Promise.reject(new Error('asked')) }
  const receiver = 'https://bank.example/incoming-payments/1'
  const client = 'https://shop.example'
  const request = { account: walletAddress, client, receiver, method: 'ilp' as const, debitAmount }
  const receivers = ownReceivers(payments, async () => found)
  return pricingOf(receivers, exchangeFor(onePercent)).price(request, hostCall)
}

describe('the price of a payment to another wallet', () => {
  const asset = { assetCode: 'EUR', assetScale: 4 }

  test('is in its asset at any scale, and expires with it', async () => {
    const debitAmount = amount(1010)
    const receiveAmount = { value: '92592', ...asset }
    const price = { ok: true, debitAmount, receiveAmount }
    expect(await priceElsewhere({ ok: true, receiver: { asset } })).toEqual(price)
    expect(await priceElsewhere({ ok: true, receiver: { asset, expiresAt } })).toEqual({
      ...price,
      expiresAt,
    })
    const walletAddress = 'https://bank.example/bob'
    expect(await priceElsewhere({ ok: true, receiver: { asset, walletAddress } })).toEqual({
      ...price,
      receiverWalletAddress: walletAddress,
    })
  })
})

describe('there is no price', () => {
  const asked = { debitAmount: amount(100) }

  test('for a receiver in another wallet, unless the wallet has a rail to it', async () => {
    const payments = { idOf: () => undefined, get: async () => undefined }
    expect(await ownReceivers(payments)('https://bank.example/incoming-payments/1')).toEqual({
      ok: false,
      publicReason: 'the receiver is in another wallet',
    })
  })

  test.each<[string, Parameters<typeof priceOf>[1]]>([
    ['the incoming payment accepts no further funds', { status: 'completed' }],
    ['the incoming payment accepts no further funds', { status: 'expired' }],
    ['the incoming payment does not exist', { paymentId: 'none' }],
    ['there is no exchange rate for its currency', { to: 'XTS' }],
  ])('if %s, and the app learns it', async (publicReason, more) => {
    const refusal = 'receiver_invalid'
    expect(await priceOf(asked, more)).toMatchObject({ refusal, publicReason })
  })

  test('for a receiver in another wallet that cannot be read', async () => {
    const temporary = { ok: false, reason: 'it did not respond', isTemporary: true } as const
    const unknown = { reason: 'status 404', publicReason: 'it is unknown' }
    const refusal = { ok: false, refusal: 'receiver_invalid' }
    expect(await priceElsewhere({ ok: false, ...unknown })).toEqual({ ...refusal, ...unknown })
    expect(await priceElsewhere(temporary)).toEqual({ ...refusal, reason: 'it did not respond' })
  })

  test.each([amount(100, 'EUR'), { ...amount(100), assetScale: 3 }])(
    'for an asset that differs from that of the receiver: %j',
    async (receiveAmount) => {
      const price = await priceOf({ receiveAmount }, {})
      expect(price).toMatchObject({ refusal: 'amount_invalid' })
    },
  )

  test('for an amount that exceeds 64 bits', async () => {
    const dear = await priceOf({ receiveAmount: amount(amountValueMax) }, {})
    expect(dear).toMatchObject({ refusal: 'amount_invalid' })
    const much = { debitAmount: amount(amountValueMax, 'EUR') }
    expect(await priceOf(much, { from: 'EUR' })).toMatchObject({ refusal: 'amount_invalid' })
    expect(await priceOf({ debitAmount: amount(amountValueMax) }, {})).toHaveProperty('debitAmount')
  })
})

describe('a receiver that has an amount', () => {
  const asked = { incomingAmount: amount(1_000), receivedAmount: amount(400) }

  test.each([
    ['of what is missing', { receiveAmount: amount(600) }, true],
    ['of a part of it', { receiveAmount: amount(1) }, true],
    ['of more than is missing', { receiveAmount: amount(601) }, false],
    ['that debits more than is missing', { debitAmount: amount(601) }, false],
  ])('gets a quote %s: %j, %s', async (_what, request, ok) => {
    const price = await priceOf(request, { ...asked, fee: noFee })
    expect(price).toMatchObject(ok ? { ok } : { ok, refusal: 'amount_invalid' })
  })
})
