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
import { foreignReceivers } from '../ilp/foreign-receivers.js'
import { createRail, type Rail, railPaymentMethods } from '../ilp/rail.js'
import { noReceiver, type Receivers, receiversOf } from '../ilp/receivers.js'
import { type PaymentSender, paymentSender } from '../ilp/sending.js'
import { ledger } from './ledger.js'
import { loopbackNames } from './own-hosts.js'
import { prices } from './prices.js'
import { secretKey, signingKey } from './secrets.js'
import type { Side, Surroundings } from './side.js'

export interface ResourceSide extends Side {
  readonly resources: ResourceServer
  readonly addresses: WalletAddressServer
  readonly sender: PaymentSender
}

/** The resource server, the wallet addresses, the ledger, and the rail to other wallets. */
export async function resourceSide(
  surroundings: Surroundings,
  grants: GrantSource,
): Promise<ResourceSide> {
  const { resourceServerUrl, accounts, storage, watch, time, mayPay } = surroundings
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
    baseUrl: resourceServerUrl,
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
  const addresses = walletAddresses(surroundings)
  return {
    resources,
    addresses,
    mounts: [
      ...pathsOf(resources).map((path) => ({
        path,
        handle: resources.handle,
        servesAnyHost: true as const,
      })),
      { path: '/ilp', handle: rail.handle, servesAnyHost: true },
      { path: '/ledger', handle: ledger(resources, rail) },
      { path: '', handle: addresses.handle, servesAnyHost: true },
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
  const { baseUrl, grantEndpoint, resourceServerUrl } = urls
  return createWalletAddressServer({
    ...watch,
    walletAddresses: accounts.published,
    baseUrl,
    grantEndpoint,
    resourceServerUrl,
  })
}

function assetsOf({ all }: Surroundings['accounts']): readonly Asset[] {
  const byCode = new Map(all.map(({ assetCode, assetScale }) => [assetCode, assetScale]))
  return [...byCode].map(([assetCode, assetScale]) => ({ assetCode, assetScale }))
}

/** Receivers in other wallets. If this wallet is on loopback, they may be too, for development. */
function receiversElsewhere({ baseUrl, accounts, time, ...rest }: Surroundings): Receivers {
  const { openClient, outboundTimeoutMs: timeoutMs } = rest
  const fetch = guardedFetch({ allowLoopback: isLoopback(baseUrl), timeoutMs })
  return foreignReceivers({
    baseUrl,
    fetch,
    deadlineMs: 4 * timeoutMs,
    ...(time.clock && { now: time.clock.now }),
    openClient:
      openClient ??
      (async () => {
        const { guardedClient } = await import('../ilp/guarded-client.js')
        return guardedClient(accounts.operator, fetch)
      }),
  })
}

function isLoopback(baseUrl: string): boolean {
  return loopbackNames.includes(new URL(baseUrl).hostname)
}

/** Only finds receivers that a peer has a route to: others cannot be paid, so they have no price. */
function reachable(receivers: Receivers, rail: Rail): Receivers {
  return async (url) => {
    const found = await receivers(url)
    const { ilp } = found.ok ? found.receiver : {}
    return ilp === undefined || rail.reaches(ilp.ilpAddress)
      ? found
      : noReceiver('this wallet has no route to it', `no peer has a route to ${ilp.ilpAddress}`)
  }
}

/** The grants of an authorization server in another process. */
export interface RemoteAuthorization {
  readonly grants: GrantSource
  /** The public half of its signing key, base64url. The private half never leaves the storage. */
  readonly resourceServerKey: string
}

export async function remoteAuthorization({
  grantEndpoint,
  resourceServerUrl,
  storage,
  outboundTimeoutMs: timeoutMs,
}: Surroundings): Promise<RemoteAuthorization> {
  const key = await signingKey(storage.secrets, 'resource-server')
  const { x: resourceServerKey = '' } = createPublicKey(key).export({ format: 'jwk' })
  const grants = remoteGrants({
    grantEndpoint,
    resourceServerId: resourceServerUrl,
    key: { kid: resourceServerKey, privateKey: key.export({ format: 'jwk' }) },
    allowLoopback: true, // both processes are on this machine: a real wallet omits this option
    timeoutMs,
  })
  return { grants, resourceServerKey }
}
