import { type IlpPrepare, isFulfill, serializeIlpPrepare } from 'ilp-packet'
import type { Asset } from 'open-payments-server'
import {
  fulfills,
  type IlpHandler,
  isWithin,
  packetAmountMax,
  readPrepare,
  readReply,
  rejectsOf,
} from './packet.js'

/** A neighboring node that sends and receives packets. */
export interface Peer {
  /** Packets for this ILP address and those below it go to this peer. */
  readonly ilpAddress: string
  /** The asset that the amounts of this peer's packets are in. */
  readonly asset: Asset
  readonly send: IlpHandler
  /** The maximum amount of a packet from this peer. */
  readonly packetAmountMax?: bigint
  /** The maximum that this peer may owe before it settles. Default: no limit. */
  readonly creditMax?: bigint
}

/** Units of one asset for each unit of another: `numerator / denominator`. */
export interface Rate {
  readonly numerator: bigint
  readonly denominator: bigint
}

export interface ConnectorOptions {
  /** ILP address of the connector, which identifies it in its rejects. */
  readonly ilpAddress: string
  readonly peers: readonly Peer[]
  /**
   * The units of `to` that one unit of `from` buys, or `undefined` if the connector does not exchange them.
   */
  readonly rateOf: (from: Asset, to: Asset) => Rate | undefined
  /** Milliseconds since the epoch. Default `Date.now`. */
  readonly now?: () => number
}

export interface Connector {
  /**
   * Handles the packets that a peer sends.
   *
   * @throws `Error` if no peer has this address.
   */
  from(ilpAddress: string): IlpHandler
  /** What a peer owes in its asset, including packets in flight; negative if the connector owes the peer. */
  balanceOf(ilpAddress: string): bigint
  /**
   * Records what a peer has paid outside of the connector, such as by a bank transfer, so that it may send packets on
   * credit again. Negative: what the connector's owner has paid to the peer. A settlement with a known id counts
   * nothing.
   *
   * @throws `Error` if no peer has this address.
   */
  settle(ilpAddress: string, settlement: Settlement): void
}

export interface Settlement {
  /** The id of the transfer, unique for the peer. */
  readonly id: string
  /** In the smallest unit of the peer's asset. */
  readonly amount: bigint
}

type Checked =
  | { readonly ok: true; readonly to: Peer; readonly outgoing: IlpPrepare }
  | { readonly ok: false; readonly reason: RejectReason }

type RejectReason = Parameters<ReturnType<typeof rejectsOf>>

/** How much earlier a packet expires at the next node, so that a late Fulfill still returns in time. */
const marginMs = 1_000
/** The maximum time to hold a packet, regardless of its expiry. */
const holdMaxMs = 30_000

/**
 * Routes ILP packets between peers with any assets. The balances are in memory: a production connector keeps
 * them in a database and settles them.
 *
 * @see Interledger RFC 0027
 */
export function createConnector(options: ConnectorOptions): Connector {
  const { peers, now = Date.now } = options
  const reject = rejectsOf(options.ilpAddress)
  const balances = new Map<string, bigint>()
  const settlements = new Set<string>()

  const balanceOf = (ilpAddress: string) => balances.get(ilpAddress) ?? 0n

  function add({ ilpAddress }: Peer, amount: bigint): void {
    balances.set(ilpAddress, balanceOf(ilpAddress) + amount)
  }

  function peerAt(ilpAddress: string): Peer {
    const found = peers.find((peer) => peer.ilpAddress === ilpAddress)
    if (found === undefined) throw new Error(`no peer has the address ${ilpAddress}`)
    return found
  }

  async function forward(from: Peer, packet: Uint8Array): Promise<Uint8Array> {
    const incoming = readPrepare(packet)
    if (incoming === undefined) return reject('F01', 'The packet is not an ILP Prepare')
    const checked = check(options, from, balanceOf(from.ilpAddress), incoming)
    if (!checked.ok) return reject(...checked.reason)
    const { to, outgoing } = checked

    add(from, BigInt(incoming.amount))
    const timeLeft = outgoing.expiresAt.getTime() - now()
    const bytes = await inTime(to.send(serializeIlpPrepare(outgoing)), timeLeft)
    const reply = bytes && readReply(bytes)
    if (bytes !== undefined && fulfills(reply, incoming) && incoming.expiresAt.getTime() > now()) {
      add(to, -BigInt(outgoing.amount))
      return bytes
    }
    add(from, -BigInt(incoming.amount))
    if (bytes === undefined) return reject('R00', 'The next node did not reply in time')
    if (reply === undefined) return reject('T00', 'The reply of the next node is not an ILP packet')
    if (!isFulfill(reply)) return bytes
    return fulfills(reply, incoming)
      ? reject('R00', 'The packet expired before it was fulfilled')
      : reject('F05', 'The fulfillment does not hash to the condition')
  }

  return {
    from(ilpAddress) {
      const from = peerAt(ilpAddress)
      return (packet) => forward(from, packet)
    },
    balanceOf,
    settle(ilpAddress, { id, amount }) {
      const peer = peerAt(ilpAddress)
      const key = `${ilpAddress} ${id}`
      if (settlements.has(key)) return
      settlements.add(key)
      add(peer, -amount)
    },
  }
}

/** Checks a packet from a peer that owes `owed`, and returns the packet for the next node. */
function check(
  { peers, rateOf, now = Date.now }: ConnectorOptions,
  from: Peer,
  owed: bigint,
  incoming: IlpPrepare,
): Checked {
  const refused = (...reason: RejectReason): Checked => ({ ok: false, reason })
  const timeLeft = incoming.expiresAt.getTime() - now()
  if (timeLeft <= 0) return refused('R00', 'The packet has expired')
  if (timeLeft <= marginMs) return refused('R02', 'Too little time is left')
  const to = routeTo(peers, incoming.destination)
  if (to === undefined || to === from) return refused('F02', 'There is no route to the address')
  const rate = rateOf(from.asset, to.asset)
  if (rate === undefined) return refused('F02', 'The assets are not exchanged')

  const amount = BigInt(incoming.amount)
  // The maximum incoming amount must also stay below the maximum of a packet after conversion.
  const convertible = (packetAmountMax * rate.denominator) / rate.numerator
  const amountMax = least(from.packetAmountMax ?? packetAmountMax, convertible)
  if (amount > amountMax) return refused('F08', 'The amount is too large', pair(amount, amountMax))
  const converted = (amount * rate.numerator) / rate.denominator
  if (amount > 0n && converted === 0n) return refused('R01', 'The amount is too small')
  if (from.creditMax !== undefined && owed + amount > from.creditMax) {
    return refused('T04', 'The peer owes too much to send this amount')
  }
  const expiresAt = new Date(now() + Math.min(timeLeft - marginMs, holdMaxMs))
  return { ok: true, to, outgoing: { ...incoming, amount: converted.toString(), expiresAt } }
}

/** Resolves to the reply, or to `undefined` once the time is over. */
async function inTime(reply: Promise<Uint8Array>, timeLeft: number) {
  let timer: NodeJS.Timeout | undefined
  const expired = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), timeLeft)
  })
  const answered = await Promise.race([reply, expired])
  clearTimeout(timer)
  return answered
}

function routeTo(peers: readonly Peer[], destination: string): Peer | undefined {
  return peers
    .filter(({ ilpAddress }) => isWithin(destination, ilpAddress))
    .sort((one, other) => other.ilpAddress.length - one.ilpAddress.length)[0]
}

/** Returns the data of an F08 reject: the received amount and the maximum. */
function pair(received: bigint, maximum: bigint): Buffer {
  const data = Buffer.alloc(16)
  data.writeBigUInt64BE(received, 0)
  data.writeBigUInt64BE(maximum, 8)
  return data
}

function least(one: bigint, other: bigint): bigint {
  return one < other ? one : other
}
