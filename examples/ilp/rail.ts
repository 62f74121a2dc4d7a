import { createHmac } from 'node:crypto'
import { rateOf } from 'create-open-payments-server/wallet/exchange'
import type { Sql } from 'create-open-payments-server/wallet/sql'
import type { Wallet } from 'create-open-payments-server/wallet/wallet'
import { isFulfill } from 'ilp-packet'
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
import { createConnector, type Peer, routeTo } from './connector.js'
import { readPrepare, readReply } from './packet.js'
import { balanceOf } from './peer-balances.js'

/** Another wallet that sends and receives packets. */
export interface PeerWallet {
  /** Packets for this ILP address, and for those below it, go to this peer. */
  readonly ilpAddress: string
  /** The URL where it receives packets from this wallet. */
  readonly url: string
  /**
   * Whether the peer counts a packet once that it gets twice, as the wallets of this example do. Default `false`: a
   * packet without a reply is not repeated, and counts as sent.
   */
  readonly countsRepeats?: boolean
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
/** A packet carries at most 10.00, in the currency of the sending account. */
const accountPacketMax = 1_000n
const linkPacketMax = 20_000_000_000n
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
  return { ilpAddress: ilpAddressOf(baseUrl), url, countsRepeats: true }
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
    peers: peers.map(({ ilpAddress: peer, url }) => {
      const access = { url, token: tokenFor(token, ilpAddress, peer) }
      return {
        ilpAddress: peer,
        asset: linkAsset,
        send: sendOverHttp(access),
        close: closeOverHttp(access),
        token: tokenFor(token, peer, ilpAddress),
        packetAmountMax: linkPacketMax,
        creditMax,
      }
    }),
  })
}

/** Sends packets from the accounts to the peers. */
export interface Sending {
  /** Returns a handler that sends packets from an account in this asset. */
  from(asset: Asset): IlpHandler
  /** The same for packets that nobody can fulfill. */
  probesFrom(asset: Asset): IlpHandler
  /** Whether the peer with a route to an address counts a packet once that it gets twice. */
  countsRepeats(ilpAddress: string): boolean
  /** The rate at which this wallet exchanges. */
  readonly rateOf: RateOf
}

export function createSending(options: WalletRailOptions): Sending {
  const { ilpAddress, peers, assets, book, onError } = options
  const nothing: IlpHandler = () => Promise.reject(new Error('the rail receives the packets'))
  const accounts: readonly Peer[] = assets.map((asset) => ({
    ilpAddress: addressFor(ilpAddress, asset),
    asset,
    send: nothing,
    packetAmountMax: accountPacketMax,
  }))
  const links = peers.map((peer) => ({
    ilpAddress: peer.ilpAddress,
    asset: linkAsset,
    balance: balanceOf(book, peer.ilpAddress),
    send: linkTo(peer, options),
    countsRepeats: peer.countsRepeats ?? false,
  }))
  const rates = options.rateOf ?? rateOf
  const connector = createConnector({
    ilpAddress,
    peers: [...accounts, ...links],
    rateOf: rates,
    onError,
  })
  return {
    from: (asset) => connector.from(addressFor(ilpAddress, asset)),
    probesFrom: (asset) => connector.probesFrom(addressFor(ilpAddress, asset)),
    countsRepeats: (address) => routeTo(peers, address)?.countsRepeats ?? false,
    rateOf: rates,
  }
}

function addressFor(ilpAddress: string, { assetCode }: Asset): string {
  return `${ilpAddress}.${assetCode.toLowerCase()}`
}

function linkTo(
  { ilpAddress: peer, url }: PeerWallet,
  { ilpAddress, token, onPacket }: WalletRailOptions,
): IlpHandler {
  const send = sendOverHttp({ url, token: tokenFor(token, ilpAddress, peer) })
  if (onPacket === undefined) return send
  return async (packet) => {
    const reply = await send(packet)
    const { amount: value = '0' } = readPrepare(packet) ?? {}
    if (isFulfill(readReply(reply)) && value !== '0') onPacket({ peer, value, ...linkAsset })
    return reply
  }
}

/** Derives the bearer token for packets from one wallet to another: each direction has its own token. */
function tokenFor(secret: string, from: string, to: string): string {
  return createHmac('sha256', secret).update(`${from} to ${to}`).digest('base64url')
}
