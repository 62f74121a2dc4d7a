import { fitsAccount, type TokenItem } from '../access.js'
import { type Asset, sameAsset } from '../amount.js'
import { type Refused, refused } from '../decision.js'
import { type GrantConditions, hasOtherAsset } from '../limits.js'

/** A wallet address with its asset, as the host stated it when its owner consented. */
export type GrantedAccount = Asset & { readonly url: string }

/** Returns the accounts from which items allow payments, of those whose asset is known. */
export function payingAccounts(
  access: readonly TokenItem[],
  accounts: readonly GrantedAccount[],
): readonly GrantedAccount[] {
  const paying = access.filter(({ type }) => type === 'outgoing-payment')
  return accounts
    .filter(({ url }) => paying.some(({ identifier }) => identifier === url))
    .map(({ url, assetCode, assetScale }) => ({ url, assetCode, assetScale }))
}

/**
 * Refuses limits and conditions in another asset than that of an account that pays, because they would refuse every
 * payment from it.
 */
export function refuseAssets(
  access: readonly TokenItem[],
  { limits = [], paymentMax }: GrantConditions,
  accounts: readonly GrantedAccount[],
): Refused<'asset_mismatch'> | undefined {
  for (const item of access) {
    const known = accounts.find(({ url }) => url === item.identifier)
    if (known === undefined) continue
    const limit = item.limits?.debitAmount
    if (!fitsAccount(item, known)) {
      return refused(
        'asset_mismatch',
        `debitAmount is in ${limit && told(limit)}, but ${known.url} is in ${told(known)}`,
      )
    }
    if (item.type !== 'outgoing-payment') continue
    const isOther = paymentMax !== undefined && !sameAsset(paymentMax, known)
    if (isOther || hasOtherAsset(limits, known)) {
      const what = isOther ? 'paymentMax' : 'a limit of the conditions'
      return refused(
        'asset_mismatch',
        `${what} is not in ${told(known)}, the asset of ${known.url}`,
      )
    }
  }
  return undefined
}

function told({ assetCode, assetScale }: Asset): string {
  return `${assetCode} with scale ${assetScale}`
}
