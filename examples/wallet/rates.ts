import type { Asset } from 'open-payments-server'

/** The value of each currency in ten-thousandths of a dollar. A real wallet uses market rates. */
const worth: Readonly<Record<string, bigint>> = { USD: 10_000n, EUR: 10_800n, JPY: 67n }

/** Units of one asset for units of another. */
export interface Rate {
  readonly numerator: bigint
  readonly denominator: bigint
}

/**
 * Returns units of `to` for units of `from`, without a fee; `undefined` if the wallet does not trade one of
 * them.
 */
export function rateOf(from: Asset, to: Asset): Rate | undefined {
  const [given, taken] = [worth[from.assetCode], worth[to.assetCode]]
  if (given === undefined || taken === undefined) return undefined
  return {
    numerator: given * 10n ** BigInt(to.assetScale),
    denominator: taken * 10n ** BigInt(from.assetScale),
  }
}
