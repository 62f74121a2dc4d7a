import { ok, type Refused, type Result, refused } from '../core/decision.js'
import type { Bounded, WalletAddress, WalletAddresses } from '../ports/host.js'

/** Why an account cannot be used. Minor versions add members: give a `switch` a `default`. */
export type AccountRefusal = 'wallet_address_unknown' | 'wallet_address_inactive'

/** Resolves to the account of a wallet address, or refuses if it does not exist or is inactive. */
export async function activeAccount(
  walletAddresses: Bounded<WalletAddresses>,
  url: string,
): Promise<Result<WalletAddress, Refused<AccountRefusal>>> {
  const account = await walletAddresses.find(url)
  if (account === undefined) {
    return refused('wallet_address_unknown', 'the wallet address does not exist')
  }
  return account.active === false
    ? refused('wallet_address_inactive', 'the wallet address is inactive')
    : ok(account)
}
