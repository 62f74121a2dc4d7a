import {
  createAuthorizationServer,
  createResourceServer,
  createWalletAddressServer,
  type EventSource,
  type Handler,
  ilpPaymentMethods,
  type RefusalReport,
  type ResourceServer,
  remoteClientKeys,
} from '../../src/index.js'
import { type Account, demoAccounts } from './accounts.js'
import { consentPage } from './consent-page.js'
import { ledger } from './ledger.js'
import { prices } from './prices.js'
import { secretKey } from './secrets.js'
import type { WalletStorage } from './storage.js'

export interface WalletOptions {
  /** The origin that the wallet publishes and verifies, without a trailing slash. */
  readonly baseUrl: string
  readonly storage: Pick<WalletStorage, 'store' | 'secrets'>
  readonly onRefusal?: (report: RefusalReport) => void
}

/** A wallet: accounts, a consent page and a ledger of its own, and this library for everything else. */
export interface Wallet {
  readonly accounts: readonly Account[]
  /** What is served where; the last entry takes every other path. */
  readonly mounts: readonly { readonly path: string; readonly handle: Handler }[]
  /** What has happened and is still to be told. */
  readonly events: readonly EventSource[]
  /** Records which payments have expired or were never begun, and removes what nobody needs any more. */
  sweep(signal: AbortSignal): Promise<void>
}

/** Every process that has the same storage and the same `baseUrl` is the same wallet. */
export async function createWallet(options: WalletOptions): Promise<Wallet> {
  const { baseUrl, storage, onRefusal } = options
  const { store, secrets } = storage
  const grantEndpoint = `${baseUrl}/auth`
  const resourceServer = `${baseUrl}/op`
  const accounts = await demoAccounts(baseUrl, secrets)
  const watch = { ...(onRefusal && { onRefusal }), onError: console.error }

  const auth = createAuthorizationServer({
    ...watch,
    grantEndpoint,
    store,
    consentUrl: `${baseUrl}/consent`,
    // Clients of a demo publish their keys on this very machine. A real wallet leaves this out.
    clientKeys: remoteClientKeys({ allowLoopback: true }),
  })
  const resources: ResourceServer = createResourceServer({
    ...watch,
    baseUrl: resourceServer,
    grantEndpoint,
    store,
    introspect: auth.introspect,
    walletAddresses: accounts,
    paymentMethods: ilpPaymentMethods({
      addressPrefix: 'test.example-wallet',
      // Payment details are derived from this key, and have to stay what they were.
      secret: await secretKey(secrets, 'payment-details'),
    }),
    quotes: prices(() => resources.incomingPayments),
  })
  const walletAddresses = createWalletAddressServer({
    ...watch,
    baseUrl,
    grantEndpoint,
    resourceServer,
    walletAddresses: accounts,
  })

  const sessionKey = await secretKey(secrets, 'session')

  return {
    accounts: accounts.all,
    mounts: [
      { path: '/auth', handle: auth.handle },
      { path: '/op', handle: resources.handle },
      { path: '/consent', handle: consentPage(auth.interactions, accounts, sessionKey) },
      { path: '/ledger', handle: ledger(resources) },
      { path: '', handle: walletAddresses.handle },
    ],
    events: [auth.events, resources.events],
    async sweep(signal) {
      await allOf(resources.incomingPayments.expireDue, signal)
      await allOf(resources.outgoingPayments.lapseDue, signal)
      await allOf(resources.purge, signal)
      await allOf(auth.purge, signal)
    },
  }
}

/** Goes on in batches for as long as they are full. */
async function allOf(batch: (limit: number) => Promise<number>, signal: AbortSignal) {
  const limit = 100
  while (!signal.aborted && (await batch(limit)) >= limit);
}
