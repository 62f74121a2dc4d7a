import type { Asset } from 'open-payments-server'

/** The two sides of a payment, in units such as cents, as functions of each other. */
export interface Exchange {
  /** Returns the smallest debit with which this amount arrives. */
  costOf(received: bigint): bigint
  /** Returns the amount that arrives. */
  arrivingOf(debited: bigint): bigint
}

/** Returns the exchange between two assets, or `undefined` if the wallet does not trade one of them. */
export type Exchanges = (debited: Asset, received: Asset) => Exchange | undefined

/** Units of one asset for units of another. */
export interface Rate {
  readonly numerator: bigint
  readonly denominator: bigint
}

/** What a payment costs its sender, added to the amount that is sent. */
export interface Fee {
  /** A part of that amount, in ten thousandths. */
  readonly basisPoints: bigint
  /** In units of the debited asset. */
  readonly fixed: bigint
}

/** A stub: the value of each currency in ten-thousandths of a dollar. Connect your own rates. */
const worth: Readonly<Record<string, bigint>> = { USD: 10_000n, EUR: 10_800n, JPY: 67n }

/** Returns units of `to` for units of `from`, without a fee. */
export function rateOf(from: Asset, to: Asset): Rate | undefined {
  const [given, taken] = [worth[from.assetCode], worth[to.assetCode]]
  if (given === undefined || taken === undefined) return undefined
  return {
    numerator: given * 10n ** BigInt(to.assetScale),
    denominator: taken * 10n ** BigInt(from.assetScale),
  }
}

/**
 * Exchanges at these rates, for a fee. Each step is rounded against the payer, by less than a unit, so that splitting a
 * payment gains nothing.
 */
export function exchangeFor({ basisPoints, fixed }: Fee): Exchanges {
  return (debitedAsset, receivedAsset) => {
    const rate = rateOf(debitedAsset, receivedAsset)
    if (rate === undefined) return undefined
    const { numerator, denominator } = rate
    return {
      costOf(received) {
        const sent = dividedUp(received * denominator, numerator)
        return sent + dividedUp(sent * basisPoints, 10_000n) + fixed
      },
      arrivingOf(debited) {
        if (debited <= fixed) return 0n
        const sent = ((debited - fixed) * 10_000n) / (10_000n + basisPoints)
        return (sent * numerator) / denominator
      },
    }
  }
}

/** Divides and rounds up. */
function dividedUp(dividend: bigint, divisor: bigint): bigint {
  return (dividend + divisor - 1n) / divisor
}
