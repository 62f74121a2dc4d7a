import type { EventOutbox, Handler, RefusalReport } from 'open-payments-server'
import { type Account, demoAccounts } from './accounts.js'
import { authorizationSide } from './authorization-side.js'
import { health } from './health.js'
import { ilpAddressOf, type RailSettings } from './rail.js'
import { remoteAuthorization, resourceSide } from './resource-side.js'
import type { PaymentSender } from './sending.js'
import type { Side, Surroundings } from './side.js'
import type { WalletStorage } from './storage.js'

/** Which side of the wallet a process serves, and what it has to know of the other. */
export type Role =
  | {
      readonly name: 'auth'
      /** The origin of the authorization server, without a trailing slash. */
      readonly authUrl: string
      /** The public key that the resource server asks about tokens with, base64url. */
      readonly resourceServerKey: string
    }
  | { readonly name: 'resource'; readonly authUrl: string }

export interface WalletOptions {
  /**
   * The origin that the wallet publishes and verifies, without a trailing slash: with two processes that of
   * the wallet addresses and the resource server, in both.
   */
  readonly baseUrl: string
  readonly storage: Pick<WalletStorage, 'store' | 'secrets' | 'sendings'>
  /** The wallets that this one exchanges packets with. Default: none, under an address that follows from `baseUrl`. */
  readonly rail?: RailSettings
  /** Default: both sides in one process. */
  readonly role?: Role
  readonly onRefusal?: (report: RefusalReport) => void
}

/** A wallet: accounts, pages for their owners and a ledger, and this library for everything else. */
export interface Wallet {
  readonly accounts: readonly Account[]
  /** What is served where; the last entry takes every other path, if its own is empty. */
  readonly mounts: readonly {
    readonly path: string
    readonly handle: Handler<string | Uint8Array>
  }[]
  /** What has happened and is still to be told. */
  readonly events: readonly EventOutbox[]
  /** Sends outgoing payments, in a process that serves them. */
  readonly sender?: PaymentSender
  /** In the role `resource`: the public key that the other process has to be given. */
  readonly resourceServerKey?: string
  /** Records which payments have expired or were never begun, and removes what nobody needs any more. */
  sweep(signal: AbortSignal): Promise<void>
}

/** Every process that has the same storage, `baseUrl` and `role` is the same wallet, or side of it. */
export async function createWallet(options: WalletOptions): Promise<Wallet> {
  const { baseUrl, storage, role, onRefusal } = options
  const authUrl = role?.authUrl ?? baseUrl
  const accounts = await demoAccounts(baseUrl, storage.secrets)
  const surroundings: Surroundings = {
    baseUrl,
    grantEndpoint: `${authUrl}/auth`,
    resourceServer: `${baseUrl}/op`,
    accounts,
    storage,
    rail: options.rail ?? { ilpAddress: ilpAddressOf(baseUrl), peers: [], token: '' },
    watch: { ...(onRefusal && { onRefusal }), onError: console.error },
  }

  function assembled(...sides: readonly Side[]): Wallet {
    const chores = sides.flatMap((side) => side.chores)
    return {
      accounts: accounts.all,
      mounts: [
        { path: '/healthz', handle: health(storage.store) },
        ...sides.flatMap(({ mounts }) => mounts),
      ],
      events: sides.map(({ events }) => events),
      async sweep(signal) {
        for (const chore of chores) await allOf(chore, signal)
      },
    }
  }

  if (role?.name === 'auth') return assembled(await authorizationSide(surroundings, role))
  if (role?.name === 'resource') {
    const remote = await remoteAuthorization(surroundings, storage.secrets)
    const side = await resourceSide(surroundings, remote.introspect)
    const { resourceServerKey } = remote
    return { ...assembled(side), sender: side.sender, resourceServerKey }
  }
  const authorization = await authorizationSide(surroundings, { authUrl })
  const resource = await resourceSide(surroundings, authorization.introspect)
  return { ...assembled(authorization, resource), sender: resource.sender }
}

/** Goes on in batches for as long as they are full. */
async function allOf(batch: (limit: number) => Promise<number>, signal: AbortSignal) {
  const limit = 100
  while (!signal.aborted && (await batch(limit)) >= limit);
}
