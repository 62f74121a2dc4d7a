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
  /** What this peer owes. Without it, nothing is counted, as for an account of the connector's owner. */
  readonly balance?: PeerBalance
  /**
   * The maximum that this peer may owe before it settles, including packets in flight in this process. Default: no
   * limit.
   */
  readonly creditMax?: bigint
}

/** What a peer owes, in its asset; negative if the connector owes the peer. */
export interface PeerBalance {
  /**
   * Adds an amount, once for each id. Resolves to whether the entry with this id has this amount.
   *
   * @param id of a packet or of a settlement outside of Interledger.
   */
  add(id: string, amount: bigint): Promise<boolean>
  value(): Promise<bigint>
}

/** A balance in the memory of this process. */
export function memoryBalance(): PeerBalance {
  const entries = new Map<string, bigint>()
  let sum = 0n
  return {
    async add(id, amount) {
      const known = entries.get(id)
      if (known !== undefined) return known === amount
      entries.set(id, amount)
      sum += amount
      return true
    },
    value: async () => sum,
  }
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
  /** Called if a balance cannot be read or written. The packet is then rejected. */
  readonly onError?: (error: unknown) => void
}

export interface Connector {
  /**
   * Handles the packets that a peer sends.
   *
   * @throws `Error` if no peer has this address.
   */
  from(ilpAddress: string): IlpHandler
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
 * Routes ILP packets between peers with any assets. A packet counts once in the balances of both peers, when it is
 * fulfilled: a peer that does not know the outcome of a packet sends it again, and gets the same fulfillment.
 *
 * @see Interledger RFC 0027
 */
export function createConnector(options: ConnectorOptions): Connector {
  const { peers, now = Date.now, onError } = options
  const reject = rejectsOf(options.ilpAddress)
  /** The sums of the packets of each peer that have no reply yet. */
  const inFlight = new Map<Peer, bigint>()
  const inFlightOf = (peer: Peer) => inFlight.get(peer) ?? 0n

  async function forward(from: Peer, packet: Uint8Array): Promise<Uint8Array> {
    const incoming = readPrepare(packet)
    if (incoming === undefined) return reject('F01', 'The packet is not an ILP Prepare')
    const checked = check(options, from, incoming)
    if (!checked.ok) return reject(...checked.reason)
    const amount = BigInt(incoming.amount)
    const ahead = inFlightOf(from)
    inFlight.set(from, ahead + amount)
    try {
      if (!(await hasCredit(from, ahead + amount))) {
        return reject('T04', 'The peer owes too much to send this amount')
      }
      return await exchange(from, incoming, checked.to, checked.outgoing)
    } catch (error) {
      onError?.(error)
      // The packet may have been fulfilled. The peer repeats it.
      return reject('R00', 'The outcome could not be recorded')
    } finally {
      inFlight.set(from, inFlightOf(from) - amount)
    }
  }

  async function exchange(
    from: Peer,
    incoming: IlpPrepare,
    to: Peer,
    outgoing: IlpPrepare,
  ): Promise<Uint8Array> {
    const timeLeft = outgoing.expiresAt.getTime() - now()
    const bytes = await inTime(to.send(serializeIlpPrepare(outgoing)), timeLeft)
    if (bytes === undefined) return reject('R00', 'The next node did not reply in time')
    const reply = readReply(bytes)
    if (reply === undefined) return reject('T00', 'The reply of the next node is not an ILP packet')
    if (!isFulfill(reply)) return bytes
    if (!fulfills(reply, incoming)) {
      return reject('F05', 'The fulfillment does not hash to the condition')
    }
    if (incoming.expiresAt.getTime() <= now()) {
      return reject('R00', 'The packet expired before it was fulfilled')
    }
    // With the other peer in the id, a condition that is sent twice, to different peers, counts for each of them.
    const id = incoming.executionCondition.toString('base64url')
    await to.balance?.add(`${id} from ${from.ilpAddress}`, -BigInt(outgoing.amount))
    await from.balance?.add(`${id} to ${to.ilpAddress}`, BigInt(incoming.amount))
    return bytes
  }

  return {
    from(ilpAddress) {
      const from = peers.find((peer) => peer.ilpAddress === ilpAddress)
      if (from === undefined) throw new Error(`no peer has the address ${ilpAddress}`)
      return (packet) => forward(from, packet)
    },
  }
}

/** Returns whether a peer may owe this amount in addition to its balance. */
async function hasCredit({ balance, creditMax }: Peer, more: bigint): Promise<boolean> {
  if (balance === undefined || creditMax === undefined || more === 0n) return true
  return (await balance.value()) + more <= creditMax
}

/** Checks a packet from a peer, and returns the packet for the next node. */
function check(
  { peers, rateOf, now = Date.now }: ConnectorOptions,
  from: Peer,
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
