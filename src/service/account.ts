import { type Refused, refused } from '../core/decision.js'
import type { WalletAddress, WalletAddresses } from '../ports/wallet-addresses.js'

export type AccountRefusal = 'wallet_address_unknown' | 'wallet_address_inactive'

/** The account at a wallet address, as long as it may be used for something new. */
export async function activeAccount(
  walletAddresses: WalletAddresses,
  url: string,
): Promise<{ readonly account: WalletAddress } | Refused<AccountRefusal>> {
  const account = await walletAddresses.find(url)
  if (account === undefined) {
    return refused('wallet_address_unknown', 'there is no such wallet address here')
  }
  return account.active === false
    ? refused('wallet_address_inactive', 'the wallet address is inactive')
    : { account }
}
