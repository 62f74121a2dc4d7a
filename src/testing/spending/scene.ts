import type { Amount, Asset } from 'open-payments-server'

/** An incoming payment that can be paid, and its price. */
export interface SpendingReceiver {
  /** URL of the incoming payment. */
  readonly url: string
  readonly asset: Asset
  /**
   * Units debited for one unit that arrives. Default 1. The remainder of a debit divided by it is lost in the
   * conversion.
   */
  readonly unitPrice?: bigint
}

/** Who pays whom in the histories. */
export interface SpendingScene {
  /** The account that pays. */
  readonly walletAddress: string
  /**
   * Another account of the same resource owner, with the same asset. If present, grants also have items for it, and
   * clients also try to pay from it: the limits of one account must not apply to the other.
   */
  readonly otherWalletAddress?: string
  readonly asset: Asset
  /** At least one receiver. */
  readonly receivers: readonly [SpendingReceiver, ...SpendingReceiver[]]
}

const usd: Asset = { assetCode: 'USD', assetScale: 2 }

/** Alice's accounts are in dollars. A payment arrives as dollars, or as half as many euros. */
export const defaultScene: SpendingScene = {
  walletAddress: 'https://wallet.example/alice',
  otherWalletAddress: 'https://wallet.example/alice-savings',
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

/** Returns the wallet addresses of the scene that pay. */
export function accountsOf({
  walletAddress,
  otherWalletAddress,
}: SpendingScene): readonly string[] {
  return [walletAddress, ...(otherWalletAddress === undefined ? [] : [otherWalletAddress])]
}

/** Returns the amount that arrives for a debit. */
export function receivedOf(debit: bigint, { unitPrice = 1n }: SpendingReceiver): bigint {
  return debit / unitPrice
}

export function amountOf(value: bigint, { assetCode, assetScale }: Asset): Amount {
  return { value: value.toString(), assetCode, assetScale }
}
