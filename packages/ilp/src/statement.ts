import { listMax, type PacketBook, type PacketKey, type PacketRow, recoverAfterMs } from './book.js'
import { isFulfillmentOf } from './packet.js'

/** What a wallet says of its packets with a peer. It is plain JSON, and equal books give equal statements. */
export interface Statement {
  /** Packets that expire at `from` or later, and before `to`: milliseconds since 1970. */
  readonly from: number
  readonly to: number
  /** Those that count, in the order of direction and condition. What is not among them does not count. */
  readonly packets: readonly StatedPacket[]
}

/** A packet that counts in the book of the wallet that states it. */
export interface StatedPacket extends Pick<PacketRow, 'direction' | 'condition' | 'expiresAt'> {
  /** In the asset in which the peers settle. */
  readonly amount: string
  /** `by_word`: sent, and it arrived by the receiver's word. `in_doubt`: it may have arrived, or been credited. */
  readonly state: 'fulfilled' | 'by_word' | 'in_doubt'
  /** Base64url, with `fulfilled`. */
  readonly fulfillment?: string
}

/** A packet that two statements do not state alike. */
export interface StatementDifference extends Pick<PacketKey, 'direction' | 'condition'> {
  /** Absent if it does not count here. */
  readonly here?: StatedPacket
  /** Absent if it does not count there. */
  readonly there?: StatedPacket
  /**
   * What the peer owes for the packet by the book of this wallet, less what it owes by its own. 0 if the packet counts
   * alike, and only one of the two has a proof.
   */
  readonly amount: bigint
}

const stateOf = { fulfilled: 'fulfilled', unproven: 'by_word', reserved: 'in_doubt' } as const

/**
 * Returns the statement about a peer. State a period before `prune` removes its packets.
 *
 * @param period of the expiry of the packets, which both peers record alike. It ends a minute ago at the latest: what
 *   has expired before does not change any more, unless it is in doubt.
 * @param now milliseconds since 1970.
 *
 * @example
 * ```ts
 * import { memoryBook, statementOf } from 'open-payments-ilp'
 *
 * const now = Date.now()
 * const lastDay = { from: now - 86_400_000, to: now }
 * const statement = await statementOf(memoryBook(), 'g.peer', lastDay, now)
 * console.log(JSON.stringify(statement)) // for the peer
 * ```
 */
export async function statementOf(
  book: Pick<PacketBook, 'list'>,
  peer: string,
  period: Pick<Statement, 'from' | 'to'>,
  now: number,
): Promise<Statement> {
  const { from } = period
  const to = Math.min(period.to, now - recoverAfterMs)
  const packets: StatedPacket[] = []
  let rows: readonly PacketRow[] = []
  do {
    const after = rows.at(-1)
    const page = { peer, expiresFrom: from, expiredBefore: to, limit: listMax }
    rows = await book.list(after === undefined ? page : { ...page, after })
    for (const row of rows) {
      const { direction, condition, expiresAt, amount, state, fulfillment } = row
      if (state === 'released') continue
      const proof = state === 'fulfilled' && fulfillment !== undefined ? { fulfillment } : undefined
      const of = { direction, condition, expiresAt, amount: `${amount}`, state: stateOf[state] }
      packets.push({ ...of, ...proof })
    }
  } while (rows.length === listMax)
  // Databases order text in several ways.
  return { from, to, packets: packets.sort((one, other) => (keyOf(one) < keyOf(other) ? -1 : 1)) }
}

/**
 * Compares the statements of two peers about each other, for the period that both state. A packet that is stated as
 * fulfilled without its fulfillment is taken for one in doubt.
 *
 * @returns what they do not state alike. The sum of its amounts is what the books differ by in the period.
 *
 * @example
 * ```ts
 * import { compareStatements, type Statement } from 'open-payments-ilp'
 *
 * function report(here: Statement, there: Statement): void {
 *   for (const { condition, amount } of compareStatements(here, there)) console.log(condition, amount)
 * }
 * ```
 */
export function compareStatements(
  here: Statement,
  there: Statement,
): readonly StatementDifference[] {
  const isInBoth = ({ expiresAt }: StatedPacket) =>
    [here, there].every(({ from, to }) => expiresAt >= from && expiresAt < to)
  const ours = byKey(here.packets.filter(isInBoth))
  const theirs = byKey(there.packets.filter(isInBoth).map(mirrored))
  const keys = [...new Set([...ours.keys(), ...theirs.keys()])].sort()
  return keys.flatMap((key) => {
    const [one, other] = [ours.get(key), theirs.get(key)]
    const [direction, condition = ''] = key.split(' ')
    const sign = direction === 'in' ? 1n : -1n
    const amount = sign * (BigInt(one?.amount ?? 0) - BigInt(other?.amount ?? 0))
    if (amount === 0n && isProven(one) === isProven(other)) return []
    return [
      {
        direction: direction as PacketKey['direction'],
        condition,
        ...(one !== undefined && { here: one }),
        ...(other !== undefined && { there: other }),
        amount,
      },
    ]
  })
}

/** Returns a packet as the peer's statement has it, if it counts there. */
export function statedFor(
  { packets }: Statement,
  { direction, condition }: Pick<PacketKey, 'direction' | 'condition'>,
): StatedPacket | undefined {
  const found = packets.find((each) => each.condition === condition && each.direction !== direction)
  return found && proved(found)
}

/** A packet of the peer as this wallet sees it: what one of both sends, comes in at the other. */
function mirrored({ direction, ...packet }: StatedPacket): StatedPacket {
  return { ...packet, direction: direction === 'in' ? 'out' : 'in' }
}

const keyOf = ({ direction, condition }: StatedPacket) => `${direction} ${condition}`

const byKey = (packets: readonly StatedPacket[]) =>
  new Map(packets.map((each) => [keyOf(each), proved(each)]))

const isProven = (packet: StatedPacket | undefined) => packet?.state === 'fulfilled'

/** A claim without its fulfillment proves nothing, nor does a fulfillment without the claim. */
function proved({ fulfillment = '', ...packet }: StatedPacket): StatedPacket {
  if (packet.state !== 'fulfilled') return packet
  const isProof = isFulfillmentOf(fulfillment, packet.condition)
  return isProof ? { ...packet, fulfillment } : { ...packet, state: 'in_doubt' }
}
