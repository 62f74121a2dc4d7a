import type {
  ClientKeys,
  Clock,
  Interactions,
  MayPay,
  RefusalReport,
  ServerEvents,
} from 'open-payments-server'
import type { ReceiverClient } from '../ilp/foreign-receivers.js'
import { ilpAddressOf, type RailSettings } from '../ilp/rail.js'
import type { PaymentSender } from '../ilp/sending.js'
import { type Account, type Accounts, demoAccounts, requireFreePaths } from './accounts.js'
import { authorizationSide } from './authorization-side.js'
import { health } from './health.js'
import { atHosts } from './own-hosts.js'
import { ownerPages } from './owner-pages.js'
import { type Fee, noFee } from './prices.js'
import { remoteAuthorization, resourceSide } from './resource-side.js'
import type { Mount, Side, Surroundings } from './side.js'
import { startPage, withStartPage } from './start-page.js'
import type { WalletStorage } from './storage.js'

/** The side of the wallet that a process serves, and what it needs to know about the other side. */
export type Role =
  | {
      readonly name: 'auth'
      /** The origin of the authorization server, without a trailing slash. */
      readonly authUrl: string
      /** The public key with which the resource server signs introspection requests, base64url. */
      readonly resourceServerKey: string
    }
  | { readonly name: 'resource'; readonly authUrl: string }

export interface WalletOptions {
  /**
   * The origin that the wallet publishes and verifies, without a trailing slash. With two processes, both use
   * the origin of the wallet addresses and the resource server.
   */
  readonly baseUrl: string
  readonly storage: Omit<WalletStorage, 'description' | 'close'>
  /** The ILP peers of this wallet. Default: none, under an ILP address derived from `baseUrl`. */
  readonly rail?: RailSettings
  /** What a payment costs its sender. Default: nothing. */
  readonly fee?: Fee
  /** Default: both sides in one process. */
  readonly role?: Role
  readonly onRefusal?: (report: RefusalReport) => void
  /** Default: `console.error`. */
  readonly onError?: (error: unknown) => void
  /** Default: those of the demo. */
  readonly accounts?: Accounts
  /** The source of the time by which everything expires but signatures. Default: the real time. */
  readonly clock?: Clock
  /** Decides about outgoing payments. Default: all may be created. */
  readonly mayPay?: MayPay
  /** Default: keys of accounts, and those that other clients publish. */
  readonly clientKeys?: ClientKeys
  /** Opens the client that reads receivers in other wallets. Default: the published one, as the operator. */
  readonly openClient?: () => Promise<ReceiverClient>
  /** More names under which browsers reach the pages and the ledger, besides those in URLs and of this machine. */
  readonly hostNames?: readonly string[]
  /**
   * The time limit for a request to another server, in milliseconds; a receiver in another wallet, which takes several
   * requests, has four times as long. Default 2,000, because clients give up after 5 s to 10 s.
   */
  readonly outboundTimeoutMs?: number
}

/** A wallet: accounts, pages for their owners and a ledger, with this library for everything else. */
export interface Wallet {
  readonly accounts: readonly Account[]
  /** The handlers by path; the last entry, if its path is empty, serves all other paths. */
  readonly mounts: readonly Pick<Mount, 'path' | 'handle'>[]
  /** What owners decide, in a process that serves the authorization server. */
  readonly interactions?: Interactions
  /** Events that have not been delivered. */
  readonly events: readonly ServerEvents[]
  /** Sends outgoing payments, in a process that serves them. */
  readonly sender?: PaymentSender
  /** In the role `resource`: the public key for the settings of the other process. */
  readonly resourceServerKey?: string
  /** Expires payments, fails those that were never begun, and removes records that are no longer needed. */
  sweep(signal: AbortSignal): Promise<void>
}

/** Processes with the same storage, `baseUrl` and `role` serve the same wallet, or the same side of it. */
export async function createWallet(options: WalletOptions): Promise<Wallet> {
  const { baseUrl, storage, role, clock, mayPay, clientKeys, openClient } = options
  const { onRefusal, onError = console.error } = options
  const authUrl = role?.authUrl ?? baseUrl
  const accounts = options.accounts ?? (await demoAccounts(baseUrl, storage.secrets, storage.keys))
  const surroundings: Surroundings = {
    baseUrl,
    grantEndpoint: `${authUrl}/auth`,
    resourceServerUrl: baseUrl,
    accounts,
    storage,
    fee: options.fee ?? noFee,
    rail: options.rail ?? { ilpAddress: ilpAddressOf(baseUrl), peers: [], token: '' },
    watch: { ...(onRefusal && { onRefusal }), onError },
    // Clients know only the real time.
    time: clock === undefined ? {} : { clock, signatures: { clock: Date } },
    ...(mayPay && { mayPay }),
    ...(clientKeys && { clientKeys }),
    ...(openClient && { openClient }),
    outboundTimeoutMs: options.outboundTimeoutMs ?? 2_000,
  }

  const { hostNames = [] } = options
  const names = [...[baseUrl, authUrl].map((url) => new URL(url).hostname), ...hostNames]

  function assembled(pages: readonly Mount[], ...sides: readonly Side[]): Wallet {
    const all: readonly Mount[] = [
      { path: '/healthz', handle: health(storage.store), servesAnyHost: true },
      ...pages,
      ...sides.flatMap(({ mounts }) => mounts),
    ]
    const mounts = all.map(({ path, handle, servesAnyHost = false }) => ({
      path,
      handle: servesAnyHost ? handle : atHosts(names, handle),
    }))
    return {
      accounts: accounts.all,
      mounts,
      events: sides.map(({ events }) => events),
      async sweep(signal) {
        for (const { sweep } of sides) while ((await sweep({ signal })).more);
      },
    }
  }

  if (role?.name === 'auth') {
    const side = authorizationSide(surroundings, role)
    return assembled(await ownerPages(surroundings, side.auth), side)
  }
  if (role?.name === 'resource') {
    const remote = await remoteAuthorization(surroundings)
    const side = await resourceSide(surroundings, remote.grants)
    const { resourceServerKey } = remote
    const wallet = assembled([], side)
    requireFreePaths(accounts.all, side.addresses, wallet.mounts)
    return { ...wallet, sender: side.sender, resourceServerKey }
  }
  const authorization = authorizationSide(surroundings, { authUrl })
  const { auth } = authorization
  const resource = await resourceSide(surroundings, auth)
  const pages = await ownerPages(surroundings, auth, resource.resources)
  const { interactions } = auth
  const wallet = assembled(pages, authorization, resource)
  requireFreePaths(accounts.all, resource.addresses, wallet.mounts)
  const { grantEndpoint } = surroundings
  const start = atHosts(names, startPage({ baseUrl, grantEndpoint, accounts: accounts.all }))
  const mounts = wallet.mounts.map(({ path, handle }) =>
    path === '' ? { path, handle: withStartPage(start, handle) } : { path, handle },
  )
  return { ...wallet, mounts, interactions, sender: resource.sender }
}
