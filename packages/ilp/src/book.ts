/**
 * - `reserved`: recorded before anything happens. The packet may have been sent, or may be credited.
 * - `fulfilled`: it counts, and its fulfillment proves it.
 * - `unproven`: sent, and the receiver says that it arrived, without a fulfillment. It counts.
 * - `released`: it does not count, and never will.
 */
export type PacketState = 'reserved' | 'fulfilled' | 'unproven' | 'released'

/** Names a packet: the peer, whether it comes `in` from the peer or goes `out` to it, and its condition. */
export interface PacketKey {
  /** ILP address of the peer. */
  readonly peer: string
  readonly direction: 'in' | 'out'
  /** Execution condition, base64url. */
  readonly condition: string
}

/** A packet with money between this wallet and a peer, as one of both records it. */
export interface PacketRow extends PacketKey {
  /** In the asset in which the peers settle. */
  readonly amount: bigint
  readonly state: PacketState
  /** Milliseconds since 1970. */
  readonly expiresAt: number
  /** Milliseconds since 1970. */
  readonly reservedAt: number
  /** Id of the incoming payment that it pays, or of the outgoing payment that sends it. */
  readonly paymentId: string
  /** Base64url. Of an incoming packet, it is known from the beginning, and shown once the packet is fulfilled. */
  readonly fulfillment?: string
}

/** A packet to reserve. */
export type NewPacket = Omit<PacketRow, 'state'>

/** Whether a packet has its place in the book. */
export type Reservation =
  /** `row` is what the book has. With `isNew: false`, it was there before, perhaps decided, with other amounts. */
  | { readonly ok: true; readonly row: PacketRow; readonly isNew: boolean }
  /** The peer would owe more than `balanceMax`. Nothing is recorded. */
  | { readonly ok: false }

/** What a reserved packet can become. */
export type Decision = Exclude<PacketState, 'reserved'>

/**
 * The packets between this wallet and its peers, and what each peer owes. What a peer owes is the sum of the packets
 * that came from it, without those that went to it and without its settlements; released packets do not count.
 *
 * Any number of processes may use it at once. Calls reject if their outcome is unknown, and may then be repeated.
 *
 * @typeParam Transaction of a database with this book and the records of the library.
 */
export interface PacketBook<Transaction = unknown> {
  /**
   * Records a packet before it is sent or credited. A packet with the same key is returned as it is.
   *
   * @param balanceMax of what the peer owes with the packet.
   */
  reserve(packet: NewPacket, balanceMax?: bigint): Promise<Reservation>
  /**
   * Decides a packet that is reserved. A packet that was decided stays as it is, but a fulfillment that comes later
   * also proves an outgoing packet that is `unproven` or `released`, and an operator who knows decides it otherwise.
   *
   * @param proof `by`: an operator decides. `inside`: a transaction of the caller, for an incoming packet that is
   *   fulfilled: it takes effect with the transaction.
   * @returns the state after the call, or `undefined` if there is no such packet.
   */
  decide(
    key: PacketKey,
    decision: Decision,
    proof?: {
      readonly fulfillment?: string
      readonly by?: 'operator'
      readonly inside?: Transaction
    },
  ): Promise<PacketState | undefined>
  get(key: PacketKey): Promise<PacketRow | undefined>
  /**
   * Returns the packet. Without one, records it as released, so that it can never be reserved: until it can no longer
   * arrive, for five minutes.
   *
   * @param now milliseconds since 1970.
   */
  close(key: PacketKey, now: number): Promise<PacketRow>
  /**
   * Records what a peer has paid outside of Interledger, once for its id; negative for what this wallet has paid it.
   *
   * @returns whether the settlement with this id has this amount.
   */
  settle(peer: string, settlement: Settlement): Promise<boolean>
  /** Returns what the peer owes, negative if this wallet owes the peer. */
  balance(peer: string): Promise<bigint>
  /** Returns packets in the order of their keys. */
  list(query: PacketQuery): Promise<readonly PacketRow[]>
  /**
   * Removes packets that were decided and have expired before an instant. They stay in the balance. Do not call it for
   * packets that a peer may still contest: their fulfillments go with them. `sqlBook` keeps those of a payment that
   * has a record in `sqlSendingBook`, until the payment is over and nothing of it is listed.
   *
   * @param limit the most to remove in one call. Default: 1,000.
   */
  prune(
    expiredBefore: number,
    limit?: number,
  ): Promise<{ readonly removed: number; readonly more: boolean }>
}

/** A transfer between this wallet and a peer outside of Interledger, such as by a bank. */
export interface Settlement {
  /** Unique for the peer. */
  readonly id: string
  /** In the asset in which the peers settle. */
  readonly amount: bigint
}

/** Which packets to list. Without members, all. */
export interface PacketQuery {
  readonly peer?: string
  readonly direction?: PacketKey['direction']
  readonly state?: PacketState
  readonly paymentId?: string
  /** Only packets that expire at this instant or later. */
  readonly expiresFrom?: number
  /** Only packets that have expired before this instant. */
  readonly expiredBefore?: number
  /** Only packets after this one, in the order of their keys. */
  readonly after?: PacketKey
  /** Default: 1,000. */
  readonly limit?: number
}

export const listMax = 1_000
export const pruneMax = 1_000

/** Returns what a packet in a state adds to what the peer owes. */
export function owedFor({ direction, amount }: NewPacket, state: PacketState): bigint {
  if (state === 'released') return 0n
  return direction === 'in' ? amount : -amount
}

/** Returns whether a decision replaces a state. What came in, and what has a proof, stays. */
export function mayBecome(
  { state, direction }: PacketRow,
  decision: Decision,
  by: 'operator' | undefined,
): boolean {
  if (state === 'reserved') return true
  if (state === 'fulfilled' || direction === 'in') return false
  return decision === 'fulfilled' || (by === 'operator' && decision !== state)
}

/**
 * How long a packet may live. Wallets send and accept no packet that expires later, so that the mark of a packet that
 * was closed before it came can go after this time. Senders use 20 to 60 seconds; the rest is for clocks that differ.
 */
export const lifetimeMaxMs = 300_000

/** How long a packet that has expired stays reserved: other processes may have clocks that are behind. */
export const recoverAfterMs = 60_000

/** Returns the packet that `close` records for a key without one. */
export function closedPacket(key: PacketKey, now: number): PacketRow {
  const { peer, direction, condition } = key
  const none = { amount: 0n, state: 'released', paymentId: '' } as const
  return { peer, direction, condition, ...none, expiresAt: now + lifetimeMaxMs, reservedAt: now }
}

/** Orders packets by their keys. */
export function orderOf({ peer, direction, condition }: PacketKey): string {
  return `${peer} ${direction} ${condition}`
}
