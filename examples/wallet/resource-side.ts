import { createPublicKey } from 'node:crypto'
import {
  type Asset,
  createResourceServer,
  createWalletAddressServer,
  type GrantSource,
  guardedFetch,
  type ResourceServer,
  remoteGrants,
  type WalletAddressServer,
} from 'open-payments-server'
import { foreignReceivers } from './foreign-receivers.js'
import { ledger } from './ledger.js'
import { prices } from './prices.js'
import { createRail, type Rail, railPaymentMethods } from './rail.js'
import { noReceiver, type Receivers, receiversOf } from './receivers.js'
import { type Secrets, secretKey, signingKey } from './secrets.js'
import { type PaymentSender, paymentSender } from './sending.js'
import type { Side, Surroundings } from './side.js'

export interface ResourceSide extends Side {
  readonly resources: ResourceServer
  readonly sender: PaymentSender
}

/** The resource server, the wallet addresses, the ledger, and the rail to other wallets. */
export async function resourceSide(
  surroundings: Surroundings,
  grants: GrantSource,
): Promise<ResourceSide> {
  const { resourceServer, accounts, storage, watch, time, mayPay } = surroundings
  const paymentMethods = railPaymentMethods(
    surroundings.rail,
    assetsOf(accounts),
    // Payment details are derived from this key, so it must never change.
    await secretKey(storage.secrets, 'payment-details'),
  )
  const elsewhere = receiversElsewhere(surroundings)
  const receivers: Receivers = (url) =>
    receiversOf(resources.incomingPayments, reachable(elsewhere, rail), time.clock?.now)(url)
  const resources: ResourceServer = createResourceServer({
    ...watch,
    ...time,
    ...(mayPay && { policy: { mayPay } }),
    walletAddresses: accounts,
    baseUrl: resourceServer,
    store: storage.store,
    recordsEvents: true, // the log of the demo shows every event
    grants,
    paymentMethods,
    pricing: prices(receivers, surroundings.fee),
  })
  const { incomingPayments } = resources
  const rail = createRail({
    ...surroundings.rail,
    assets: assetsOf(accounts),
    paymentMethods,
    incomingPayments,
    balances: storage.balances,
    onError: watch.onError,
  })
  return {
    resources,
    mounts: [
      ...pathsOf(resources).map((path) => ({ path, handle: resources.handle })),
      { path: '/ilp', handle: rail.handle },
      { path: '/ledger', handle: ledger(resources, rail) },
      { path: '', handle: walletAddresses(surroundings).handle },
    ],
    events: resources.events,
    sender: paymentSender({ resources, receivers, rail, book: storage.sendings }),
    async sweep(options) {
      await storage.balances.prune()
      return resources.sweep(options)
    },
  }
}

/** The first segments of the routes, which are next to the wallet addresses. */
function pathsOf({ routes }: ResourceServer): readonly string[] {
  return [...new Set(routes.map(({ path }) => `/${path.split('/')[1]}`))]
}

function walletAddresses({ watch, accounts, ...urls }: Surroundings): WalletAddressServer {
  const { baseUrl, grantEndpoint, resourceServer } = urls
  return createWalletAddressServer({
    ...watch,
    walletAddresses: accounts.published,
    baseUrl,
    grantEndpoint,
    resourceServer,
  })
}

function assetsOf({ all }: Surroundings['accounts']): readonly Asset[] {
  const byCode = new Map(all.map(({ assetCode, assetScale }) => [assetCode, assetScale]))
  return [...byCode].map(([assetCode, assetScale]) => ({ assetCode, assetScale }))
}

/** Receivers in other wallets. If this wallet is on loopback, they may be too, for development. */
function receiversElsewhere({ baseUrl, accounts, time, openClient }: Surroundings): Receivers {
  const allowLoopback = isLoopback(baseUrl)
  // Another wallet on this machine may be slow: it has an embedded database, and the machine may be busy.
  const fetch = guardedFetch({ allowLoopback, timeoutMs: allowLoopback ? 60_000 : 2_000 })
  return foreignReceivers({
    baseUrl,
    fetch,
    ...(allowLoopback && { deadlineMs: 180_000 }),
    ...(time.clock && { now: time.clock.now }),
    openClient:
      openClient ??
      (async () => {
        const { guardedClient } = await import('./guarded-client.js')
        return guardedClient(accounts.operator, fetch)
      }),
  })
}

function isLoopback(baseUrl: string): boolean {
  return ['localhost', '127.0.0.1', '[::1]'].includes(new URL(baseUrl).hostname)
}

/** Only finds receivers that a peer has a route to: others cannot be paid, so they have no price. */
function reachable(receivers: Receivers, rail: Rail): Receivers {
  return async (url) => {
    const found = await receivers(url)
    const { ilp } = found.ok ? found.receiver : {}
    return ilp === undefined || rail.reaches(ilp.ilpAddress)
      ? found
      : noReceiver(`no peer has a route to ${ilp.ilpAddress}`)
  }
}

/** The grants of an authorization server in another process. */
export interface RemoteAuthorization {
  readonly grants: GrantSource
  /** The public half of its signing key, base64url. The private half never leaves the storage. */
  readonly resourceServerKey: string
}

export async function remoteAuthorization(
  { grantEndpoint, resourceServer }: Pick<Surroundings, 'grantEndpoint' | 'resourceServer'>,
  secrets: Secrets,
): Promise<RemoteAuthorization> {
  const key = await signingKey(secrets, 'resource-server')
  const { x: resourceServerKey = '' } = createPublicKey(key).export({ format: 'jwk' })
  const grants = remoteGrants({
    grantEndpoint,
    resourceServerId: resourceServer,
    key: { kid: resourceServerKey, privateKey: key.export({ format: 'jwk' }) },
    // Both processes are on this machine and slow because of their embedded databases. A real wallet omits
    // this option.
    allowLoopback: true,
    timeoutMs: 10_000,
  })
  return { grants, resourceServerKey }
}
