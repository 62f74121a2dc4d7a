import type { Asset } from '../core/amount.js'
import type { PublicJwk } from './client-keys.js'

/** An account of the host that can send and receive payments. */
export interface WalletAddress extends Asset {
  /** The wallet address itself: an absolute URL, canonical, without a trailing slash. */
  readonly url: string
  /** The name that the account's owner chose to show to counterparties. */
  readonly publicName?: string
  /** When false, new payments and quotes are refused with `inactive_wallet_address`. Default true. */
  readonly active?: boolean
  /** Ed25519 public keys of the account as a client instance, published at `{url}/jwks.json`. */
  readonly keys?: readonly PublicJwk[]
}

/** Looks up the host's accounts. */
export interface WalletAddresses {
  /**
   * Resolves to the account of a canonical wallet address, or to `undefined` or `null` if it does not exist. An account
   * with another `url`, such as one that a table without case finds, does not exist either. A rejection results in 503,
   * and an account with members that this interface does not allow in 500.
   */
  find(url: string): Promise<WalletAddress | undefined>
}
