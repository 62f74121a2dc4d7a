import { type IlpPrepare, serializeIlpFulfill, serializeIlpPrepare } from 'ilp-packet'
import type {
  Asset,
  Handler,
  IlpPaymentMethods,
  IncomingPaymentServices,
  ReceivedFunds,
} from 'open-payments-server'
import { accountAddress, sameAsset } from './address.js'
import {
  lifetimeMaxMs,
  type PacketBook,
  type PacketKey,
  type PacketRow,
  recoverAfterMs,
  type Settlement,
} from './book.js'
import { type Closed, ilpOverHttp } from './over-http.js'
import {
  type IlpHandler,
  isWithin,
  packetAmountMax,
  pair,
  readPrepare,
  rejectsOf,
} from './packet.js'
import { convertedDown, type Rate } from './rates.js'
import { type Claim, PacketReleasedError, type Received, streamReceiver } from './receiver.js'

/** The units of `to` that one unit of `from` buys, or `undefined` if the wallet does not exchange them. */
export type RateOf = (from: Asset, to: Asset) => Rate | undefined

/** A neighboring node: another wallet, or a connector that forwards packets to other wallets. */
export interface Peer {
  /** Packets for this ILP address and those below it go to this peer. At most 255 characters. */
  readonly ilpAddress: string
  /** The asset in which this wallet and the peer settle, with at least the precision of all accounts. */
  readonly asset: Asset
  /** Sends a packet to the peer, such as `sendOverHttp` does. */
  readonly send: IlpHandler
  /** Closes a packet at the peer, as `closeOverHttp` does. Default: the peer cannot close packets. */
  readonly close?: (condition: string) => Promise<Closed | undefined>
  /** Bearer tokens of the peer's packets: several while one replaces another. */
  readonly token: string | readonly string[]
  /** The maximum amount of a packet from or to the peer. Default: ten units of the currency, such as 10.00. */
  readonly packetAmountMax?: bigint
  /** The maximum that the peer may owe before it settles, including packets that are reserved. Default: no limit. */
  readonly creditMax?: bigint
  /**
   * The maximum that the peer, by closing packets, and receivers behind it may deny, for all payments together, in the
   * asset of the peer: packets that do not count here by their word alone, although the peer may claim them. Beyond it,
   * the peer gets nothing until an operator, or its statement, has decided them. What is under way can add to it.
   * Default: no limit.
   */
  readonly deniedMax?: bigint
}

/** The peers of the wallet, its currencies, and where the packets are recorded. */
export interface RailOptions<Transaction> {
  /** ILP address of this wallet. That of an account has the currency below it. */
  readonly ilpAddress: string
  readonly peers: readonly Peer[]
  /** The currencies of the accounts. */
  readonly assets: readonly Asset[]
  readonly rateOf: RateOf
  readonly book: PacketBook<Transaction>
  readonly paymentMethods: IlpPaymentMethods
  readonly incomingPayments: Pick<IncomingPaymentServices, 'get'>
  /**
   * Counts funds: `incomingPayments.receive`, the credit of your ledger, and, if both succeed, `fulfill`, in one
   * transaction.
   *
   * @param fulfill records the claim on the peer in the transaction. It rejects if the packet must not count any more:
   *   let the transaction fail.
   */
  readonly receive: (
    paymentId: string,
    funds: ReceivedFunds,
    fulfill: (inside: Transaction) => Promise<void>,
  ) => Promise<Received>
  /** Milliseconds since 1970. Default `Date.now`. */
  readonly now?: () => number
  readonly onError?: (error: unknown) => void
}

/**
 * The wallet's part of Interledger: packets between its own accounts and its direct peers. It forwards no packets.
 */
export interface Rail {
  /** Serves the peers. The last segment of the path is the ILP address of the peer that sends. */
  readonly handle: Handler<string | Uint8Array>
  /** Returns the peer to which packets for an address go, or `undefined` without one. */
  peerFor(ilpAddress: string): Peer | undefined
  /** What each peer owes this wallet, in the asset of the peer, negative if this wallet owes the peer. */
  balances(): Promise<Readonly<Record<string, bigint>>>
  /** Records a settlement, once for its id, so that the peer may send packets on credit again. */
  settle(
    peer: string,
    settlement: Settlement,
  ): Promise<'settled' | 'peer_unknown' | 'transfer_mismatch'>
  /**
   * Releases packets of peers that were reserved and have expired: their process ended before it had credited them. A
   * packet that is credited at the same time counts, or its credit fails. Call it every few minutes.
   */
  recover(): Promise<void>
}

/**
 * Creates the rail of a process. Any number of processes may share its book.
 *
 * @see Interledger RFC 0027
 *
 * @example
 * ```ts
 * import { createRail, memoryBook } from 'open-payments-ilp'
 *
 * const { incomingPayments } = wallet.resources
 * const rail = createRail({
 *   ilpAddress: 'g.wallet',
 *   peers: [],
 *   assets: [{ assetCode: 'USD', assetScale: 2 }],
 *   rateOf: () => ({ numerator: 1n, denominator: 10_000_000n }),
 *   book: memoryBook(),
 *   paymentMethods,
 *   incomingPayments,
 *   async receive(paymentId, funds, fulfill) {
 *     const received = await incomingPayments.receive(paymentId, funds)
 *     if (received.ok) await fulfill(undefined)
 *     return received
 *   },
 * })
 * ```
 */
export function createRail<Transaction>(options: RailOptions<Transaction>): Rail {
  const { ilpAddress, peers, book, now: clock = () => Date.now() } = options
  // Databases take whole milliseconds.
  const now = () => Math.floor(clock())
  const reject = rejectsOf(ilpAddress)
  const accounts = options.assets.map((asset) => {
    const address = accountAddress(ilpAddress, asset)
    return { address, asset, receive: receiverIn(address, asset, options) }
  })

  /** Handles the packets of a peer: for an account of this wallet, or for nobody. */
  const from =
    (peer: Peer): IlpHandler =>
    async (bytes) => {
      const packet = readPrepare(bytes)
      if (packet === undefined) return reject('F01', 'The packet is not an ILP Prepare')
      // Its mark might be gone when it comes after it was closed.
      if (packet.expiresAt.getTime() > now() + lifetimeMaxMs) {
        return refuseForGood(
          peer,
          packet,
          'F00',
          'The packet expires more than five minutes from now',
        )
      }
      const account = accounts.find(({ address }) => isWithin(packet.destination, address))
      if (account === undefined) {
        return reject('F02', 'This wallet has no such account, and forwards no packets')
      }
      const amount = BigInt(packet.amount)
      const amountMax = largestOf(peer)
      if (amount > amountMax) {
        return reject('F08', 'The amount is too large', pair(amount, amountMax))
      }
      const rate = options.rateOf(peer.asset, account.asset)
      const converted = rate && convertedDown(amount, rate)
      if (converted === undefined) return refuseForGood(peer, packet, 'F02', 'There is no rate')
      if (converted > packetAmountMax) {
        return refuseForGood(peer, packet, 'F08', 'The amount is too large')
      }
      if (amount > 0n && converted === 0n) {
        return refuseForGood(peer, packet, 'R01', 'The amount is too small')
      }
      const incoming = serializeIlpPrepare({ ...packet, amount: `${converted}` })
      return account.receive(incoming, claimOn(peer, packet))
    }

  function claimOn(peer: Peer, packet: IlpPrepare): Claim {
    const key = keyOf(peer, packet)
    const amount = BigInt(packet.amount)
    return {
      transferId: `${peer.ilpAddress} ${key.condition}`,
      async reserve(paymentId, fulfillment) {
        const reserved = await book.reserve(
          {
            ...key,
            amount,
            paymentId,
            fulfillment: fulfillment.toString('base64url'),
            expiresAt: packet.expiresAt.getTime(),
            reservedAt: now(),
          },
          peer.creditMax,
        )
        if (!reserved.ok) {
          // Its repeat must not count once the peer owes less: after T04, senders send the money in another packet.
          const state = await this.release()
          return state === 'released'
            ? ['T04', 'The peer owes too much to send this amount']
            : state
        }
        const { state, amount: known } = reserved.row
        return state === 'released' || known === amount ? state : otherAmount
      },
      receive: (paymentId, funds) =>
        options.receive(paymentId, funds, async (inside) => {
          if ((await book.decide(key, 'fulfilled', { inside })) === 'fulfilled') return
          throw new PacketReleasedError('the packet was released while it was credited')
        }),
      async release() {
        const known = await fulfilled(key)
        if (known === undefined) return 'released'
        return known.amount === amount ? 'fulfilled' : otherAmount
      },
    }
  }

  /** Refuses a packet whose repeat might pass, such as at another rate: unless it was credited, it never counts. */
  async function refuseForGood(
    peer: Peer,
    packet: IlpPrepare,
    ...refusal: Parameters<typeof reject>
  ): Promise<Uint8Array> {
    try {
      const known = packet.amount === '0' ? undefined : await fulfilled(keyOf(peer, packet))
      if (known === undefined) return reject(...refusal)
      if (known.amount !== BigInt(packet.amount)) return reject(...otherAmount)
      const fulfillment = Buffer.from(known.fulfillment ?? '', 'base64url')
      return serializeIlpFulfill({ fulfillment, data: Buffer.alloc(0) })
    } catch (error) {
      options.onError?.(error)
      return reject('R00', 'The outcome could not be recorded')
    }
  }

  /** Returns a packet that was credited. Otherwise it never will be. */
  async function fulfilled(key: PacketKey): Promise<PacketRow | undefined> {
    const known = await book.close(key, now())
    const state = known.state === 'reserved' ? await book.decide(key, 'released') : known.state
    return state === 'fulfilled' ? known : undefined
  }

  async function close(peer: Peer, condition: string): Promise<Closed> {
    const known = await fulfilled({ peer: peer.ilpAddress, direction: 'in', condition })
    if (known === undefined) return { outcome: 'never' }
    return { outcome: 'fulfilled', fulfillment: known.fulfillment ?? '' }
  }

  const entrances = new Map(
    peers.map((peer) => {
      const { token } = peer
      const closing = (condition: string) => close(peer, condition)
      return [peer.ilpAddress, ilpOverHttp({ token, handle: from(peer), close: closing })] as const
    }),
  )

  return {
    async handle(request) {
      const [path = ''] = request.url.split('?', 1)
      const entrance = entrances.get(path.slice(path.lastIndexOf('/') + 1))
      return entrance === undefined ? { status: 404, headers: {} } : entrance(request)
    },
    peerFor: (address) => routeTo(peers, address),
    async balances() {
      const entries = peers.map(
        async (peer) => [peer.ilpAddress, await book.balance(peer.ilpAddress)] as const,
      )
      return Object.fromEntries(await Promise.all(entries))
    },
    async settle(peer, settlement) {
      if (!peers.some((each) => each.ilpAddress === peer)) return 'peer_unknown'
      return (await book.settle(peer, settlement)) ? 'settled' : 'transfer_mismatch'
    },
    async recover() {
      const expiredBefore = now() - recoverAfterMs
      const left = await book.list({ direction: 'in', state: 'reserved', expiredBefore })
      for (const row of left) await book.decide(row, 'released')
    },
  }
}

const otherAmount = ['R00', 'The condition was sent with another amount'] as const

/** Returns the key of a packet that comes from a peer. */
function keyOf(peer: Peer, { executionCondition }: IlpPrepare): PacketKey {
  const condition = executionCondition.toString('base64url')
  return { peer: peer.ilpAddress, direction: 'in', condition }
}

/** Returns the largest packet between this wallet and a peer. */
export function largestOf({ packetAmountMax: most, asset }: Peer): bigint {
  return most ?? 10n ** BigInt(asset.assetScale + 1)
}

/** Returns the peer with the longest ILP address that is a prefix of the destination. */
function routeTo(peers: readonly Peer[], destination: string): Peer | undefined {
  return peers
    .filter(({ ilpAddress }) => isWithin(destination, ilpAddress))
    .sort((one, other) => other.ilpAddress.length - one.ilpAddress.length)[0]
}

/** Rejects payments in another currency, because the packet's amount would count as if it were in this one. */
function receiverIn<Transaction>(
  ilpAddress: string,
  asset: Asset,
  { paymentMethods, incomingPayments, now = () => Date.now(), onError }: RailOptions<Transaction>,
) {
  return streamReceiver({
    ilpAddress,
    paymentMethods,
    incomingPayments: {
      async get(id) {
        const payment = await incomingPayments.get(id)
        return payment !== undefined && sameAsset(payment.receivedAmount, asset)
          ? payment
          : undefined
      },
    },
    now,
    ...(onError !== undefined && { onError }),
  })
}
