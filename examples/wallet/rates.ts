import type { Asset } from 'open-payments-server'

/** What money is worth, in hundredths of a dollar. A real wallet asks a market. */
const worth: Readonly<Record<string, bigint>> = { USD: 100n, EUR: 108n }

/** So many units of one asset for so many of another. */
export interface Rate {
  readonly numerator: bigint
  readonly denominator: bigint
}

/** Units of `to` for units of `from`, without a fee; `undefined` when the wallet does not trade one of them. */
export function rateOf(from: Asset, to: Asset): Rate | undefined {
  const [given, taken] = [worth[from.assetCode], worth[to.assetCode]]
  if (given === undefined || taken === undefined) return undefined
  return {
    numerator: given * 10n ** BigInt(to.assetScale),
    denominator: taken * 10n ** BigInt(from.assetScale),
  }
}
