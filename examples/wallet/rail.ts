import { createHmac } from 'node:crypto'
import { isFulfill } from 'ilp-packet'
import {
  type Amount,
  type Asset,
  type Handler,
  type IlpPaymentMethods,
  type IncomingPaymentServices,
  ilpPaymentMethods,
} from 'open-payments-server'
import { createConnector, type Peer, type Settlement } from '../ilp/connector.js'
import { ilpOverHttp, sendOverHttp } from '../ilp/ilp-over-http.js'
import { type IlpHandler, isWithin, readPrepare, readReply } from '../ilp/packet.js'
import { createStreamReceiver } from '../ilp/receiver.js'
import { failure } from './json.js'
import { rateOf } from './rates.js'
import { sameAsset } from './receivers.js'

/** Another wallet that sends and receives packets. */
export interface PeerWallet {
  /** Packets for this ILP address, and for those below it, go to this peer. */
  readonly ilpAddress: string
  /** The URL where it receives packets from this wallet. */
  readonly url: string
}

export interface RailSettings {
  /** ILP address of this wallet. */
  readonly ilpAddress: string
  readonly peers: readonly PeerWallet[]
  /** A secret that this wallet shares with its peers. All bearer tokens are derived from it. */
  readonly token: string
  /** Called for each packet that a peer fulfilled. */
  readonly onPacket?: (packet: FulfilledPacket) => void
}

/** A packet sent to a peer. The amount is in the asset of the peer's balance. */
export interface FulfilledPacket extends Amount {
  readonly peer: string
}

/** What a peer owes this wallet since the start of this process. */
export interface PeerBalance extends Asset {
  /** In the smallest unit of the asset; negative if this wallet owes the peer. */
  readonly balance: bigint
}

/**
 * The wallet's part of Interledger: a receiver for each currency, and a connector between them and the peers.
 */
export interface Rail {
  /** Receives the packets of the peers, below `/ilp`. */
  readonly handle: Handler<string | Uint8Array>
  /** Returns a handler that sends packets from an account in this asset. */
  from(asset: Asset): IlpHandler
  /** Returns whether a peer has a route to an address. */
  reaches(ilpAddress: string): boolean
  balances(): Readonly<Record<string, PeerBalance>>
  /** Records what a peer has paid, negative for what this wallet has paid it. Returns whether the peer exists. */
  settle(peer: string, settlement: Settlement): boolean
}

/** All peers settle in dollars with nine decimal places: rounding errors are far below a cent. */
const linkAsset: Asset = { assetCode: 'USD', assetScale: 9 }
/** A packet carries at most 10.00, in the currency of the sending or receiving account. */
const accountPacketMax = 1_000n
/** A payment to another wallet is at most 10,000.00, in the currency of the sending account: 1,000 packets. */
export const railPaymentMax = 1_000_000n
const linkPacketMax = 20_000_000_000n
/** A peer may owe at most 10,000 dollars. */
const creditMax = 10_000_000_000_000n

/** Returns the default ILP address of a wallet, which is derived from its URL. */
export function ilpAddressOf(baseUrl: string): string {
  return `test.${new URL(baseUrl).host.replace(/[^a-zA-Z0-9]+/g, '-')}`
}

/**
 * Returns the peer that an example wallet with this URL and without `ILP_ADDRESS` is for the wallet
 * `ownAddress`.
 */
export function peerWallet(baseUrl: string, ownAddress: string): PeerWallet {
  return { ilpAddress: ilpAddressOf(baseUrl), url: `${baseUrl}/ilp/${ownAddress}` }
}

function addressFor(ilpAddress: string, { assetCode }: Asset): string {
  return `${ilpAddress}.${assetCode.toLowerCase()}`
}

/**
 * Returns payment methods whose ILP address includes the currency, because a connector needs it for the
 * exchange.
 *
 * @param assets all currencies of the wallet's accounts.
 */
export function railPaymentMethods(
  { ilpAddress }: Pick<RailSettings, 'ilpAddress'>,
  assets: readonly Asset[],
  secret: Uint8Array,
): IlpPaymentMethods {
  const methods = new Map(
    assets.map((asset) => {
      const addressPrefix = addressFor(ilpAddress, asset)
      return [asset.assetCode, ilpPaymentMethods({ addressPrefix, secret })] as const
    }),
  )
  const all = [...methods.values()]
  const methodsAt = (address: string) => all.find((each) => each.paymentIdOf(address) !== undefined)
  return {
    detailsOf: async (query) => (await methods.get(query.asset.assetCode)?.detailsOf(query)) ?? [],
    paymentIdOf: (address) => methodsAt(address)?.paymentIdOf(address),
    credentialsOf: async (address) => methodsAt(address)?.credentialsOf(address),
  }
}

export interface RailOptions extends RailSettings {
  readonly assets: readonly Asset[]
  readonly paymentMethods: IlpPaymentMethods
  readonly incomingPayments: Pick<IncomingPaymentServices, 'get' | 'receive'>
  readonly onError: (error: unknown) => void
}

export function createRail(options: RailOptions): Rail {
  const { ilpAddress, peers, token, assets } = options
  const accounts: readonly Peer[] = assets.map((asset) => ({
    ilpAddress: addressFor(ilpAddress, asset),
    asset,
    send: receiverIn(asset, options),
    packetAmountMax: accountPacketMax,
  }))
  const links: readonly Peer[] = peers.map((peer) => ({
    ilpAddress: peer.ilpAddress,
    asset: linkAsset,
    send: linkTo(peer, options),
    packetAmountMax: linkPacketMax,
    creditMax,
  }))
  const connector = createConnector({ ilpAddress, peers: [...accounts, ...links], rateOf })
  const entrances = new Map(
    peers.map((peer) => [
      `/ilp/${peer.ilpAddress}`,
      ilpOverHttp({
        token: tokenFor(token, peer.ilpAddress, ilpAddress),
        handle: connector.from(peer.ilpAddress),
      }),
    ]),
  )

  return {
    async handle(request) {
      const entrance = entrances.get(request.url.split('?', 1)[0] ?? '')
      return entrance === undefined ? failure(404, 'not_found') : entrance(request)
    },
    from: (asset) => connector.from(addressFor(ilpAddress, asset)),
    reaches: (address) => peers.some((peer) => isWithin(address, peer.ilpAddress)),
    balances: () =>
      Object.fromEntries(
        links.map(({ ilpAddress: peer, asset }) => [
          peer,
          { balance: connector.balanceOf(peer), ...asset },
        ]),
      ),
    settle(peer, settlement) {
      const isKnown = links.some(({ ilpAddress }) => ilpAddress === peer)
      if (isKnown) connector.settle(peer, settlement)
      return isKnown
    },
  }
}

/**
 * Rejects payments in another currency, because the packet's amount would count as if it were in this one.
 */
function receiverIn(
  asset: Asset,
  { paymentMethods, incomingPayments, ilpAddress, onError }: RailOptions,
): IlpHandler {
  return createStreamReceiver({
    ilpAddress: addressFor(ilpAddress, asset),
    paymentMethods,
    incomingPayments: {
      receive: incomingPayments.receive,
      async get(id) {
        const payment = await incomingPayments.get(id)
        return payment !== undefined && sameAsset(payment.asset, asset) ? payment : undefined
      },
    },
    onError,
  })
}

function linkTo(
  { ilpAddress: peer, url }: PeerWallet,
  { ilpAddress, token, onPacket }: RailOptions,
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
