/**
 * An amount of money on the wire and in records. `value` is an unsigned 64-bit integer as a decimal
 * string, in units of 10^-assetScale of `assetCode`: `{ value: '2500', assetCode: 'USD', assetScale: 2 }`
 * is 25 dollars.
 *
 * @see Open Payments OpenAPI, schema `amount`
 */
export interface Amount {
  readonly value: string
  readonly assetCode: string
  readonly assetScale: number
}

/** The asset of an amount. */
export type Asset = Pick<Amount, 'assetCode' | 'assetScale'>

/**
 * The largest value of an unsigned 64-bit integer, which is the format of `value`.
 *
 * @example
 * ```ts
 * import { amountValueMax, parseValue } from 'open-payments-server/core'
 *
 * parseValue(`${amountValueMax}`) // 18446744073709551615n
 * parseValue(`${amountValueMax + 1n}`) // undefined
 * ```
 */
export const amountValueMax = 18_446_744_073_709_551_615n

const canonical = /^(?:0|[1-9][0-9]{0,19})$/

/**
 * Parses the `value` of an amount. Returns `undefined` for text that is not the canonical decimal form of an
 * unsigned 64-bit integer. `BigInt` alone would accept `""`, `" 5 "` and `"0x10"`.
 *
 * @example
 * ```ts
 * import { parseValue } from 'open-payments-server/core'
 *
 * parseValue('2500') // 2500n
 * parseValue('02500') // undefined
 * ```
 */
export function parseValue(text: string): bigint | undefined {
  if (!canonical.test(text)) return undefined
  const value = BigInt(text)
  return value <= amountValueMax ? value : undefined
}

/**
 * Parses the `value` of an amount that was valid when it was stored. Returns `unreadable` for any other text: pass the
 * value that refuses a payment.
 */
export function valueOr(unreadable: bigint, text: string): bigint {
  return parseValue(text) ?? unreadable
}

export function sameAsset(a: Asset, b: Asset): boolean {
  return a.assetCode === b.assetCode && a.assetScale === b.assetScale
}

/** Whether an amount is in the asset of a maximum and not more. */
export function isWithin(amount: Amount, maximum: Amount): boolean {
  if (!sameAsset(amount, maximum)) return false
  const [most, asked] = [parseValue(maximum.value), parseValue(amount.value)]
  return most !== undefined && asked !== undefined && asked <= most
}

export function sameAmount(a: Amount, b: Amount): boolean {
  return sameAsset(a, b) && a.value === b.value
}
