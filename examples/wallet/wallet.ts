import { randomBytes } from 'node:crypto'
import {
  createAuthorizationServer,
  createResourceServer,
  createWalletAddressServer,
  type Handler,
  ilpPaymentMethods,
  memoryStore,
  type RefusalReport,
  remoteClientKeys,
  type Store,
} from '../../src/index.js'
import { type Account, demoAccounts } from './accounts.js'
import { consentPage } from './consent-page.js'
import { ledger } from './ledger.js'

export interface WalletOptions {
  /** The origin that the wallet publishes and verifies, without a trailing slash. */
  readonly baseUrl: string
  readonly store?: Store
  readonly onRefusal?: (report: RefusalReport) => void
}

/** A wallet: accounts, a consent page and a ledger of its own, and this library for everything else. */
export interface Wallet {
  readonly accounts: readonly Account[]
  /** What is served where; the last entry takes every other path. */
  readonly mounts: readonly { readonly path: string; readonly handle: Handler }[]
}

export function createWallet({ baseUrl, store = memoryStore(), onRefusal }: WalletOptions): Wallet {
  const grantEndpoint = `${baseUrl}/auth`
  const resourceServer = `${baseUrl}/op`
  const accounts = demoAccounts(baseUrl)
  const watch = { ...(onRefusal && { onRefusal }), onError: console.error }

  const auth = createAuthorizationServer({
    ...watch,
    grantEndpoint,
    store,
    consentUrl: `${baseUrl}/consent`,
    // Clients of a demo publish their keys on this very machine. A real wallet leaves this out.
    clientKeys: remoteClientKeys({ allowLoopback: true }),
  })
  const resources = createResourceServer({
    ...watch,
    baseUrl: resourceServer,
    grantEndpoint,
    store,
    introspect: auth.introspect,
    walletAddresses: accounts,
    paymentMethods: ilpPaymentMethods({
      addressPrefix: 'test.example-wallet',
      // A real wallet keeps this key: payment details are derived from it and must stay the same.
      secret: randomBytes(32),
    }),
  })
  const walletAddresses = createWalletAddressServer({
    ...watch,
    baseUrl,
    grantEndpoint,
    resourceServer,
    walletAddresses: accounts,
  })

  return {
    accounts: accounts.all,
    mounts: [
      { path: '/auth', handle: auth.handle },
      { path: '/op', handle: resources.handle },
      { path: '/consent', handle: consentPage(auth.interactions, accounts) },
      { path: '/ledger', handle: ledger(resources.incomingPayments) },
      { path: '', handle: walletAddresses.handle },
    ],
  }
}
