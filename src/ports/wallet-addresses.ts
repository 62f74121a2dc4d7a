import type { Asset } from '../core/amount.js'
import type { PublicJwk } from './client-keys.js'

/** An account that can be paid, as the host describes it. */
export interface WalletAddress extends Asset {
  /** The wallet address itself: an absolute URL, canonical, without a trailing slash. */
  readonly url: string
  /** A name that the account's owner chose for counterparties to see. */
  readonly publicName?: string
  /** False refuses new incoming payments with `inactive_wallet_address`. Default true. */
  readonly active?: boolean
  /** Public keys that the account's owner signs with when acting as a client instance. */
  readonly keys?: readonly PublicJwk[]
}

/** Looks up the host's accounts. */
export interface WalletAddresses {
  /** Answers the account behind a canonical wallet address, or `undefined` if there is none here. */
  find(url: string): Promise<WalletAddress | undefined>
}
