import type { Amount, Asset } from 'open-payments-server'
import { amountValueMax } from 'open-payments-server/core'
import type { Arbitrary, FastCheck } from './fast-check.js'
import { amountOf } from './scene.js'
import { amountText, readable } from './text.js'

/** Edge values for sums: 1, integers that a double cannot represent, and the 64-bit maximum. */
export function valueEdges(fc: FastCheck): Arbitrary<bigint> {
  const double = 2n ** 53n
  return fc.constantFrom(
    1n,
    2n,
    double - 1n,
    double,
    double + 1n,
    2n ** 63n - 1n,
    2n ** 63n,
    amountValueMax - 1n,
    amountValueMax,
  )
}

/** Positive values up to 2^64 - 1. */
export function anyValue(fc: FastCheck): Arbitrary<bigint> {
  return fc.oneof(
    { weight: 3, arbitrary: fc.bigInt({ min: 1n, max: 10_000n }) },
    { weight: 2, arbitrary: valueEdges(fc) },
    { weight: 1, arbitrary: fc.bigInt({ min: 1n, max: amountValueMax }) },
  )
}

export function anyAsset(fc: FastCheck): Arbitrary<Asset> {
  return fc.constantFrom<Asset[]>(
    { assetCode: 'USD', assetScale: 2 },
    { assetCode: 'EUR', assetScale: 2 },
    { assetCode: 'JPY', assetScale: 0 },
    { assetCode: 'XRP', assetScale: 9 },
    { assetCode: 'ETH', assetScale: 18 },
  )
}

/** Positive amounts, in any asset or in the given one. */
export function anyAmount(fc: FastCheck, asset?: Asset): Arbitrary<Amount> {
  const assets = asset === undefined ? anyAsset(fc) : fc.constant(asset)
  return fc.tuple(anyValue(fc), assets).map(([value, asset]) => {
    const amount = amountOf(value, asset)
    return readable(amount, () => amountText(amount))
  })
}
