import type { Amount, Asset } from 'open-payments-server'

/** An incoming payment that can be paid, and what that costs. */
export interface SpendingReceiver {
  /** URL of the incoming payment. */
  readonly url: string
  readonly asset: Asset
  /**
   * How many units are debited for one unit that arrives. Default 1: what is debited arrives. What is left when
   * a debit is divided by it is lost on the way.
   */
  readonly unitPrice?: bigint
}

/** Who pays whom in the histories that are played. */
export interface SpendingScene {
  /** The account that pays. */
  readonly walletAddress: string
  readonly asset: Asset
  /** One at least. */
  readonly receivers: readonly [SpendingReceiver, ...SpendingReceiver[]]
}

const usd: Asset = { assetCode: 'USD', assetScale: 2 }

/** Alice has dollars. They arrive as dollars, or as half as many euros. */
export const defaultScene: SpendingScene = {
  walletAddress: 'https://wallet.example/alice',
  asset: usd,
  receivers: [
    { url: 'https://bank.example/incoming-payments/usd-1', asset: usd },
    { url: 'https://bank.example/incoming-payments/usd-2', asset: usd },
    {
      url: 'https://bank.example/incoming-payments/eur-1',
      asset: { assetCode: 'EUR', assetScale: 2 },
      unitPrice: 2n,
    },
  ],
}

/** What arrives of a debit. */
export function receivedOf(debit: bigint, { unitPrice = 1n }: SpendingReceiver): bigint {
  return debit / unitPrice
}

export function amountOf(value: bigint, { assetCode, assetScale }: Asset): Amount {
  return { value: value.toString(), assetCode, assetScale }
}
