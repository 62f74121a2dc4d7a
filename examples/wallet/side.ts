import type {
  AuthorizationServer,
  ClientKeys,
  Clock,
  Handler,
  MayPay,
  RefusalReport,
  ServerEvents,
} from 'open-payments-server'
import type { ReceiverClient } from '../ilp/foreign-receivers.js'
import type { RailSettings } from '../ilp/rail.js'
import type { Accounts } from './accounts.js'
import type { Fee } from './prices.js'
import type { WalletStorage } from './storage.js'

/** What both sides of the wallet share, in one process or in two. */
export interface Surroundings {
  /** The origin of the wallet addresses and of the resource server. */
  readonly baseUrl: string
  readonly grantEndpoint: string
  readonly resourceServerUrl: string
  readonly accounts: Accounts
  readonly storage: Omit<WalletStorage, 'description' | 'close'>
  readonly fee: Fee
  readonly rail: RailSettings
  /** The options of both servers for the time; none for the real one. */
  readonly time: {
    readonly clock?: Clock
    readonly signatures?: { readonly clock: Clock }
  }
  readonly mayPay?: MayPay
  readonly clientKeys?: ClientKeys
  readonly openClient?: () => Promise<ReceiverClient>
  /** The time limit for a request to another server, in milliseconds. */
  readonly outboundTimeoutMs: number
  readonly watch: {
    readonly onRefusal?: (report: RefusalReport) => void
    readonly onError: (error: unknown) => void
  }
}

/** A handler, and the path that it serves. */
export interface Mount {
  readonly path: string
  readonly handle: Handler<string | Uint8Array>
  /** Whether it serves what is public, signed, or has a token. Default: only the hosts of the wallet are served. */
  readonly servesAnyHost?: true
}

/** One side of the wallet: its authorization server or its resource server. */
export interface Side {
  readonly mounts: readonly Mount[]
  readonly events: ServerEvents
  readonly sweep: AuthorizationServer['sweep']
}
