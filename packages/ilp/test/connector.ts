import { type IlpPrepare, isFulfill, serializeIlpPrepare } from 'ilp-packet'
import type { IlpHandler, Rate } from 'open-payments-ilp'
import type { Asset } from 'open-payments-server'
import {
  fulfills,
  isUnknown,
  packetAmountMax,
  pair,
  readPrepare,
  readReply,
  rejectsOf,
} from '../src/packet.js'
import { routeTo } from '../src/rail.js'
import { convertedDown, inverseOf, least } from '../src/rates.js'

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
  /** The maximum that this peer may owe before it settles, including packets without a reply. Default: no limit. */
  readonly creditMax?: bigint
  /**
   * Whether the peer, and every node behind it, counts a packet once that it gets twice. Interledger does not require
   * that, so the default is `false`: no packet is sent to the peer twice.
   */
  readonly countsRepeats?: boolean
  /** Whether the receiver behind this peer can fulfill a packet. Others make no entry. Default: it can. */
  readonly canFulfill?: (packet: IlpPrepare) => Promise<boolean>
}

/** What a peer owes, in its asset; negative if the connector owes the peer. */
export interface PeerBalance {
  /**
   * Adds an entry, unless one with this id exists.
   *
   * @param id of a packet or of a settlement outside of Interledger.
   * @param max of the balance with the entry.
   * @returns the entry with this id, or `undefined` if the balance would exceed `max`.
   */
  add(id: string, amount: bigint, max?: bigint): Promise<BalanceEntry | undefined>
  /** Removes an entry, unless `add` was called for it more than once: the other packet may be fulfilled. */
  release(id: string): Promise<void>
  value(): Promise<bigint>
}

export interface BalanceEntry {
  readonly amount: bigint
  /** Whether this call has added it. */
  readonly isNew: boolean
}

/** A balance in the memory of this process. */
export function memoryBalance(): PeerBalance {
  const entries = new Map<string, { readonly amount: bigint; isRepeated: boolean }>()
  let sum = 0n
  return {
    async add(id, amount, max) {
      const known = entries.get(id)
      if (known !== undefined) {
        known.isRepeated = true
        return { amount: known.amount, isNew: false }
      }
      if (max !== undefined && sum + amount > max) return undefined
      entries.set(id, { amount, isRepeated: false })
      sum += amount
      return { amount, isNew: true }
    },
    async release(id) {
      const known = entries.get(id)
      if (known === undefined || known.isRepeated) return
      entries.delete(id)
      sum -= known.amount
    },
    value: async () => sum,
  }
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
  /** Called if a balance cannot be written. The packet is then rejected with R00. */
  readonly onError?: (error: unknown) => void
}

export interface Connector {
  /**
   * Handles the packets that a peer sends.
   *
   * @throws `Error` if no peer has this address.
   */
  from(ilpAddress: string): IlpHandler
  /** The same for packets that their sender, an account of the connector's owner, knows that nobody can fulfill. */
  probesFrom(ilpAddress: string): IlpHandler
}

type Checked =
  | { readonly ok: true; readonly to: Peer; readonly outgoing: IlpPrepare }
  | { readonly ok: false; readonly reason: RejectReason }

type RejectReason = Parameters<ReturnType<typeof rejectsOf>>

/** A packet in the balances of the peers between which it is forwarded. */
type Reserved =
  | { readonly ok: true; readonly outgoing: IlpPrepare; release(): Promise<void> }
  | { readonly ok: false; readonly reason: RejectReason }

/** How much earlier a packet expires at the next node, so that a late Fulfill still returns in time. */
const marginMs = 1_000
/** The maximum time to hold a packet, regardless of its expiry. */
const holdMaxMs = 30_000

/**
 * Routes ILP packets between peers with any assets. A packet counts once in the balances of both peers: from before it
 * is sent on, until its reject says that nobody fulfilled it. Without a reply, it stays: the receiver may have it.
 *
 * @see Interledger RFC 0027
 */
export function createConnector(options: ConnectorOptions): Connector {
  const { peers, now = () => Date.now(), onError } = options
  const reject = rejectsOf(options.ilpAddress)

  async function forward(from: Peer, packet: Uint8Array, isProbe: boolean): Promise<Uint8Array> {
    const incoming = readPrepare(packet)
    if (incoming === undefined) return reject('F01', 'The packet is not an ILP Prepare')
    const checked = check(options, from, incoming)
    if (!checked.ok) return reject(...checked.reason)
    const { to } = checked
    try {
      const reserved = await reserve(from, incoming, to, checked.outgoing, isProbe)
      if (!reserved.ok) return reject(...reserved.reason)
      return await exchange(incoming, to, reserved.outgoing, reserved.release)
    } catch (error) {
      return failed(error)
    }
  }

  function failed(error: unknown): Uint8Array {
    onError?.(error)
    return reject('R00', 'The outcome could not be recorded')
  }

  async function exchange(
    incoming: IlpPrepare,
    to: Peer,
    outgoing: IlpPrepare,
    release: () => Promise<void>,
  ): Promise<Uint8Array> {
    const timeLeft = outgoing.expiresAt.getTime() - now()
    if (timeLeft <= 0) {
      await release()
      return reject('R02', 'Too little time is left')
    }
    // A reply that comes too late for the peer still decides whether the packet counts.
    const settled = to
      .send(serializeIlpPrepare(outgoing))
      .then((bytes) => settle(incoming, bytes, release))
      .catch(failed)
    return (await inTime(settled, timeLeft)) ?? reject('R00', 'The next node did not reply in time')
  }

  async function settle(
    incoming: IlpPrepare,
    bytes: Uint8Array,
    release: () => Promise<void>,
  ): Promise<Uint8Array> {
    const reply = readReply(bytes)
    if (reply === undefined) return reject('T00', 'The reply of the next node is not an ILP packet')
    if (fulfills(reply, incoming) || isUnknown(reply)) return bytes
    await release()
    return isFulfill(reply)
      ? reject('F05', 'The fulfillment does not hash to the condition')
      : bytes
  }

  return {
    from(ilpAddress) {
      const from = peerAt(peers, ilpAddress)
      return (packet) => forward(from, packet, false)
    },
    probesFrom(ilpAddress) {
      const from = peerAt(peers, ilpAddress)
      return (packet) => forward(from, packet, true)
    },
  }
}

function peerAt(peers: readonly Peer[], ilpAddress: string): Peer {
  const found = peers.find((peer) => peer.ilpAddress === ilpAddress)
  if (found === undefined) throw new Error(`no peer has the address ${ilpAddress}`)
  return found
}

/** Enters a packet in the balances of both peers. Nothing is left behind if it must not be sent. */
async function reserve(
  from: Peer,
  incoming: IlpPrepare,
  to: Peer,
  outgoing: IlpPrepare,
  isProbe: boolean,
): Promise<Reserved> {
  const isMoney = !isProbe && incoming.amount !== '0' && ((await to.canFulfill?.(incoming)) ?? true)
  if (!isMoney) return { ok: true, outgoing, release: async () => {} }
  const refused = (...reason: RejectReason): Reserved => ({ ok: false, reason })
  const condition = incoming.executionCondition.toString('base64url')
  // With the other peer in the id, a condition that is sent twice, to different peers, counts for each of them.
  const ids = {
    owed: `${condition} to ${to.ilpAddress}`,
    owing: `${condition} from ${from.ilpAddress}`,
  }

  const amount = BigInt(incoming.amount)
  const owed = await from.balance?.add(ids.owed, amount, from.creditMax)
  if (from.balance !== undefined && owed === undefined) {
    return refused('T04', 'The peer owes too much to send this amount')
  }
  if (owed !== undefined && owed.amount !== amount) {
    return refused('F05', 'The condition was sent with another amount')
  }
  const owing = await to.balance?.add(ids.owing, -BigInt(outgoing.amount))
  const release = async () => {
    // In this order, the peer never owes less than the connector.
    if (owing?.isNew) await to.balance?.release(ids.owing)
    if (owed?.isNew) await from.balance?.release(ids.owed)
  }
  const isRepeated = (owing ?? owed)?.isNew === false
  if (isRepeated && !to.countsRepeats) {
    await release()
    return refused('R00', 'The packet was sent before, and its outcome is unknown')
  }
  // A packet that is sent again has the amount that it had, although the rate may have changed.
  const again = owing === undefined ? {} : { amount: `${-owing.amount}` }
  return { ok: true, outgoing: { ...outgoing, ...again }, release }
}

/** Checks a packet from a peer, and returns the packet for the next node. */
function check(
  { peers, rateOf, now = () => Date.now() }: ConnectorOptions,
  from: Peer,
  incoming: IlpPrepare,
): Checked {
  const refused = (...reason: RejectReason): Checked => ({ ok: false, reason })
  const timeLeft = incoming.expiresAt.getTime() - now()
  if (timeLeft <= 0) return refused('R02', 'The packet has expired')
  if (timeLeft <= marginMs) return refused('R02', 'Too little time is left')
  const to = routeTo(peers, incoming.destination)
  if (to === undefined || to === from) return refused('F02', 'There is no route to the address')
  const rate = rateOf(from.asset, to.asset)
  if (rate === undefined) return refused('F02', 'The assets are not exchanged')

  const amount = BigInt(incoming.amount)
  // The maximum incoming amount must also stay below the maximum of a packet after conversion.
  const convertible = convertedDown(packetAmountMax, inverseOf(rate))
  const amountMax = least(from.packetAmountMax ?? packetAmountMax, convertible)
  if (amount > amountMax) return refused('F08', 'The amount is too large', pair(amount, amountMax))
  const converted = convertedDown(amount, rate)
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
