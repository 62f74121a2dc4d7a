import { createHmac } from 'node:crypto'
import { rateOf } from 'create-open-payments-server/wallet/exchange'
import type { Sql } from 'create-open-payments-server/wallet/sql'
import type { Wallet } from 'create-open-payments-server/wallet/wallet'
import { deserializeIlpPrepare, deserializeIlpReply, isFulfill } from 'ilp-packet'
import {
  closeOverHttp,
  createRail,
  type IlpHandler,
  type PacketBook,
  type Rail,
  type RateOf,
  sendOverHttp,
} from 'open-payments-ilp'
import type { Amount, Asset, IlpPaymentMethods } from 'open-payments-server'
import { arrive } from '../created-wallet/arrive.js'

/** Another wallet that sends and receives packets. */
export interface PeerWallet {
  /** Packets for this ILP address, and for those below it, go to this peer. */
  readonly ilpAddress: string
  /** The URL where it receives packets from this wallet. */
  readonly url: string
  /** Whether it can close packets, as the wallets of this example do. Default: false. */
  readonly closes?: boolean
}

export interface RailSettings {
  /** ILP address of this wallet. */
  readonly ilpAddress: string
  readonly peers: readonly PeerWallet[]
  /** A secret that this wallet shares with its peers. All bearer tokens are derived from it. */
  readonly token: string
  /** The maximum that a peer may owe, in billionths of a dollar. Default: 10,000 dollars. */
  readonly creditMax?: bigint
  /** Default: the rates of the prices. */
  readonly rateOf?: RateOf
  /** Called for each packet that a peer fulfilled. */
  readonly onPacket?: (packet: FulfilledPacket) => void
}

/** A packet sent to a peer. The amount is in the asset of the peer's balance. */
export interface FulfilledPacket extends Amount {
  readonly peer: string
}

/** All peers settle in dollars with nine decimal places: rounding errors are far below a cent. */
export const linkAsset: Asset = { assetCode: 'USD', assetScale: 9 }
const creditDefault = 10_000_000_000_000n

/** Returns the default ILP address of a wallet, which is derived from its URL. */
export function ilpAddressOf(baseUrl: string): string {
  return `test.${new URL(baseUrl).host.replace(/[^a-zA-Z0-9]+/g, '-')}`
}

/**
 * Returns the peer that a wallet of these examples with this URL and its default address is for the wallet
 * `ownAddress`.
 */
export function peerWallet(baseUrl: string, ownAddress: string): PeerWallet {
  const url = `${baseUrl}/ilp/${ownAddress}`
  return { ilpAddress: ilpAddressOf(baseUrl), url, closes: true }
}

export interface WalletRailOptions extends RailSettings {
  readonly assets: readonly Asset[]
  readonly paymentMethods: IlpPaymentMethods
  readonly wallet: () => Pick<Wallet, 'database' | 'ledger' | 'resources'>
  readonly book: PacketBook<Sql>
  readonly onError: (error: unknown) => void
}

/** Creates the rail of a wallet: what arrives is credited in the transaction in which the library records it. */
export function createWalletRail(options: WalletRailOptions): Rail {
  const { ilpAddress, peers, token, creditMax = creditDefault, book, onError } = options
  return createRail<Sql>({
    ilpAddress,
    assets: options.assets,
    rateOf: options.rateOf ?? rateOf,
    book,
    onError,
    paymentMethods: options.paymentMethods,
    incomingPayments: { get: (id) => options.wallet().resources.incomingPayments.get(id) },
    receive: (id, transfer, fulfill) => arrive(options.wallet(), id, transfer, fulfill),
    peers: peers.map(({ ilpAddress: peer, url, closes = false }) => {
      const access = { url, token: tokenFor(token, ilpAddress, peer) }
      return {
        ilpAddress: peer,
        asset: linkAsset,
        send: watched(sendOverHttp(access), peer, options.onPacket),
        ...(closes && { close: closeOverHttp(access) }),
        token: tokenFor(token, peer, ilpAddress),
        creditMax,
      }
    }),
  })
}

/** Tells of each packet with money that the peer has fulfilled. */
function watched(send: IlpHandler, peer: string, onPacket: RailSettings['onPacket']): IlpHandler {
  if (onPacket === undefined) return send
  return async (packet) => {
    const reply = await send(packet)
    const { amount: value } = deserializeIlpPrepare(Buffer.from(packet))
    const isFulfilled = isFulfill(deserializeIlpReply(Buffer.from(reply)))
    if (isFulfilled && value !== '0') onPacket({ peer, value, ...linkAsset })
    return reply
  }
}

/** Derives the bearer token for packets from one wallet to another: each direction has its own token. */
function tokenFor(secret: string, from: string, to: string): string {
  return createHmac('sha256', secret).update(`${from} to ${to}`).digest('base64url')
}
