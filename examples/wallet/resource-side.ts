import { createPublicKey } from 'node:crypto'
import {
  createResourceServer,
  createWalletAddressServer,
  type Introspect,
  ilpPaymentMethods,
  type ResourceServer,
  remoteIntrospection,
} from '../../src/index.js'
import { ledger } from './ledger.js'
import { prices } from './prices.js'
import { type Secrets, secretKey, signingKey } from './secrets.js'
import type { Side, Surroundings } from './side.js'

/** The resource server, the wallet addresses, and the ledger. */
export async function resourceSide(
  { baseUrl, grantEndpoint, resourceServer, accounts, storage, watch }: Surroundings,
  introspect: Introspect,
): Promise<Side> {
  const urls = { grantEndpoint, walletAddresses: accounts }
  const resources: ResourceServer = createResourceServer({
    ...watch,
    ...urls,
    baseUrl: resourceServer,
    store: storage.store,
    introspect,
    paymentMethods: ilpPaymentMethods({
      addressPrefix: 'test.example-wallet',
      // Payment details are derived from this key, and have to stay what they were.
      secret: await secretKey(storage.secrets, 'payment-details'),
    }),
    quotes: prices(() => resources.incomingPayments),
  })
  const walletAddresses = createWalletAddressServer({ ...watch, ...urls, baseUrl, resourceServer })

  return {
    mounts: [
      { path: '/op', handle: resources.handle },
      { path: '/ledger', handle: ledger(resources) },
      { path: '', handle: walletAddresses.handle },
    ],
    events: resources.events,
    chores: [
      resources.incomingPayments.expireDue,
      resources.outgoingPayments.lapseDue,
      resources.purge,
    ],
  }
}

/** How the resource server asks about tokens when the authorization server is in another process. */
export interface RemoteAuthorization {
  readonly introspect: Introspect
  /** The public half of the key that it asks with, base64url. The private half never leaves the storage. */
  readonly resourceServerKey: string
}

export async function remoteAuthorization(
  { grantEndpoint, resourceServer }: Pick<Surroundings, 'grantEndpoint' | 'resourceServer'>,
  secrets: Secrets,
): Promise<RemoteAuthorization> {
  const key = await signingKey(secrets, 'resource-server')
  const { x: resourceServerKey = '' } = createPublicKey(key).export({ format: 'jwk' })
  const introspect = remoteIntrospection({
    grantEndpoint,
    resourceServer,
    key: { kid: resourceServerKey, privateKey: key.export({ format: 'jwk' }) },
    // Both are on this very machine, and busy with an embedded database each. A real wallet leaves this out.
    allowLoopback: true,
    timeoutMs: 10_000,
  })
  return { introspect, resourceServerKey }
}
