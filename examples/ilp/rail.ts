import { createHmac } from 'node:crypto'
import { rateOf } from 'create-open-payments-server/wallet/exchange'
import { type IlpPrepare, isFulfill } from 'ilp-packet'
import {
  type Amount,
  type Asset,
  type Handler,
  type IlpPaymentMethods,
  type IncomingPaymentServices,
  ilpPaymentMethods,
} from 'open-payments-server'
import { type ConnectorOptions, createConnector, type Peer, routeTo } from './connector.js'
import { ilpOverHttp, sendOverHttp } from './ilp-over-http.js'
import { type IlpHandler, isFulfillable, readPrepare, readReply } from './packet.js'
import type { PeerBalances } from './peer-balances.js'
import { createStreamReceiver } from './receiver.js'
import { sameAsset } from './receivers.js'

/** Another wallet that sends and receives packets. */
export interface PeerWallet {
  /** Packets for this ILP address, and for those below it, go to this peer. */
  readonly ilpAddress: string
  /** The URL where it receives packets from this wallet. */
  readonly url: string
  /**
   * Whether the peer, and every node behind it, counts a packet once that it gets twice, as the wallets of this example
   * do. Default `false`: a packet without a reply is not repeated, and counts as sent.
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
  readonly rateOf?: ConnectorOptions['rateOf']
  /** Default: the receiver of this library's examples. */
  readonly receivers?: StreamReceivers
  /** Called for each packet that a peer fulfilled. */
  readonly onPacket?: (packet: FulfilledPacket) => void
}

/** Creates the payment methods of an ILP address, and the receiver of the packets for it. */
export interface StreamReceivers {
  readonly paymentMethods: typeof ilpPaymentMethods
  readonly receiver: typeof createStreamReceiver
}

/** A packet sent to a peer. The amount is in the asset of the peer's balance. */
export interface FulfilledPacket extends Amount {
  readonly peer: string
}

/** A transfer between this wallet and a peer outside of Interledger, such as by a bank. */
export interface Settlement {
  /** Unique for the peer. */
  readonly id: string
  /** What the peer has paid, in the asset of its balance; negative for what this wallet has paid it. */
  readonly amount: bigint
}

/**
 * The wallet's part of Interledger: a receiver for each currency, and a connector between them and the peers.
 */
export interface Rail {
  /** Receives the packets of the peers, below `/ilp`. */
  readonly handle: Handler<string | Uint8Array>
  /** Returns a handler that sends packets from an account in this asset. */
  from(asset: Asset): IlpHandler
  /** The same for packets that nobody can fulfill. */
  probesFrom(asset: Asset): IlpHandler
  /** Whether the peer with a route to an address counts a packet once that it gets twice. */
  countsRepeats(ilpAddress: string): boolean
  /** The rate at which this wallet exchanges. */
  readonly rateOf: ConnectorOptions['rateOf']
  /** Returns whether a peer has a route to an address. */
  reaches(ilpAddress: string): boolean
  /** What each peer owes this wallet, negative if this wallet owes the peer. */
  balances(): Promise<Readonly<Record<string, Amount>>>
  /** Records a settlement, once for its id, so that the peer may send packets on credit again. */
  settle(
    peer: string,
    settlement: Settlement,
  ): Promise<'settled' | 'peer_unknown' | 'transfer_mismatch'>
}

/** All peers settle in dollars with nine decimal places: rounding errors are far below a cent. */
const linkAsset: Asset = { assetCode: 'USD', assetScale: 9 }
/** A packet carries at most 10.00, in the currency of the sending or receiving account. */
const accountPacketMax = 1_000n
const linkPacketMax = 20_000_000_000n
const creditDefault = 10_000_000_000_000n

const ownReceivers: StreamReceivers = {
  paymentMethods: ilpPaymentMethods,
  receiver: createStreamReceiver,
}

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
  { ilpAddress, receivers = ownReceivers }: Pick<RailSettings, 'ilpAddress' | 'receivers'>,
  assets: readonly Asset[],
  secret: Uint8Array,
): IlpPaymentMethods {
  const methods = new Map(
    assets.map((asset) => {
      const addressPrefix = addressFor(ilpAddress, asset)
      return [asset.assetCode, receivers.paymentMethods({ addressPrefix, secret })] as const
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
  readonly balances: PeerBalances
  readonly onError: (error: unknown) => void
}

export function createRail(options: RailOptions): Rail {
  const { ilpAddress, peers, token, assets, balances, creditMax = creditDefault, onError } = options
  const accounts: readonly Peer[] = assets.map((asset) => ({
    ilpAddress: addressFor(ilpAddress, asset),
    asset,
    send: receiverIn(asset, options),
    countsRepeats: true, // `receive` counts a transfer id once
    canFulfill: fulfillableBy(options),
    packetAmountMax: accountPacketMax,
  }))
  const links = peers.map((peer) => ({
    ilpAddress: peer.ilpAddress,
    asset: linkAsset,
    balance: balances.of(peer.ilpAddress),
    send: linkTo(peer, options),
    countsRepeats: peer.countsRepeats ?? false,
    packetAmountMax: linkPacketMax,
    creditMax,
  }))
  const rates = options.rateOf ?? rateOf
  const connector = createConnector({
    ilpAddress,
    peers: [...accounts, ...links],
    rateOf: rates,
    onError,
  })
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
      return entrance === undefined ? { status: 404, headers: {} } : entrance(request)
    },
    from: (asset) => connector.from(addressFor(ilpAddress, asset)),
    probesFrom: (asset) => connector.probesFrom(addressFor(ilpAddress, asset)),
    reaches: (address) => routeTo(peers, address) !== undefined,
    countsRepeats: (address) => routeTo(peers, address)?.countsRepeats ?? false,
    rateOf: rates,
    async balances() {
      const entries = links.map(
        async ({ ilpAddress: peer, asset, balance }) =>
          [peer, { value: `${await balance.value()}`, ...asset }] as const,
      )
      return Object.fromEntries(await Promise.all(entries))
    },
    async settle(peer, { id, amount }) {
      const link = links.find((each) => each.ilpAddress === peer)
      if (link === undefined) return 'peer_unknown'
      const entry = await link.balance.add(`settlement ${id}`, -amount)
      return entry?.amount === -amount ? 'settled' : 'transfer_mismatch'
    },
  }
}

/**
 * Rejects payments in another currency, because the packet's amount would count as if it were in this one.
 */
function receiverIn(
  asset: Asset,
  { paymentMethods, incomingPayments, ilpAddress, onError, receivers = ownReceivers }: RailOptions,
): IlpHandler {
  return receivers.receiver({
    ilpAddress: addressFor(ilpAddress, asset),
    paymentMethods,
    incomingPayments: {
      receive: incomingPayments.receive,
      async get(id) {
        const payment = await incomingPayments.get(id)
        return payment !== undefined && sameAsset(payment.receivedAmount, asset)
          ? payment
          : undefined
      },
    },
    onError,
  })
}

/** Another receiver than that of this library's examples has secrets of its own: all its packets count. */
function fulfillableBy({ paymentMethods, receivers = ownReceivers }: RailOptions) {
  return async (packet: IlpPrepare): Promise<boolean> => {
    if (receivers !== ownReceivers) return true
    const credentials = await paymentMethods.credentialsOf(packet.destination)
    return credentials !== undefined && isFulfillable(packet, credentials.sharedSecret)
  }
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
