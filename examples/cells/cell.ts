import {
  createWallet,
  type PaymentMethods,
  type Store,
  type Wallet,
  type WalletAddresses,
} from 'open-payments-server'

/** What each cell has of its own. */
export interface CellOptions {
  /** The path of its servers, which no account may have as its name. */
  readonly name: string
  /** Its database. */
  readonly store: Store
  /** Its accounts alone: each other account is a 404, so that no two cells serve one. */
  readonly walletAddresses: WalletAddresses
  readonly paymentMethods: PaymentMethods
}

// #region cell
/** Creates a wallet with addresses on the common domain, and servers below a path. */
export function createCell({ name, ...own }: CellOptions): Wallet {
  return createWallet({
    ...own,
    baseUrl: 'https://wallet.example',
    grantEndpoint: `https://wallet.example/${name}/auth`,
    resourceServerUrl: `https://wallet.example/${name}/op`,
    consentUrl: 'https://wallet.example/consent',
  })
}
// #endregion cell
