import { type Amount, type Asset, OptionError } from 'open-payments-server'

/** An incoming payment that can be paid, and its price. */
export interface SpendingReceiver {
  /** URL of the incoming payment. */
  readonly url: string
  readonly asset: Asset
  /**
   * The smallest units debited for one smallest unit that arrives: an integer, or a decimal or a fraction as text, such
   * as `1.37` or `137/100`. Default 1. What arrives is the exact quotient, rounded down to whole units.
   */
  readonly unitPrice?: bigint | string
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

/**
 * Returns the price of a receiver as a fraction of integers.
 *
 * @throws {OptionError} if it is not a positive number in one of the forms.
 */
export function priceOf({ unitPrice = 1n }: SpendingReceiver) {
  const text = typeof unitPrice === 'number' ? '' : `${unitPrice}`
  const [, whole = '0', decimals = '', divisor = '1'] =
    /^(\d+)(?:\.(\d+)|\/(\d+))?$/.exec(text) ?? []
  const debited = BigInt(whole + decimals)
  const received = BigInt(divisor) * 10n ** BigInt(decimals.length)
  if (debited > 0n && received > 0n) return { debited, received }
  const forms = 'an integer, or a decimal or fraction as text, such as 1.37 or 137/100'
  throw new OptionError('scene', `must have positive prices: ${forms}`)
}

/** Returns the value that arrives for a debit. */
export function receivedOf(debit: bigint, receiver: SpendingReceiver): bigint {
  const { debited, received } = priceOf(receiver)
  return (debit * received) / debited
}

/** Returns the smallest debit for which at least this value arrives. */
export function debitFor(value: bigint, receiver: SpendingReceiver): bigint {
  const { debited, received } = priceOf(receiver)
  return (value * debited + received - 1n) / received
}

export function amountOf(value: bigint, { assetCode, assetScale }: Asset): Amount {
  return { value: value.toString(), assetCode, assetScale }
}
