import type { Asset } from 'open-payments-server'

/** Returns the ILP address of the accounts of a wallet in a currency: packets for it are in this currency. */
export function accountAddress(ilpAddress: string, { assetCode }: Asset): string {
  return `${ilpAddress}.${assetCode.toLowerCase()}`
}

export function sameAsset(one: Asset, other: Asset): boolean {
  return one.assetCode === other.assetCode && one.assetScale === other.assetScale
}
