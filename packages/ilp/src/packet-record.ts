import { type IlpPrepare, type IlpReject, isFulfill, serializeIlpPrepare } from 'ilp-packet'
import {
  type Conclusion,
  concludeFrom,
  decideAttempt,
  type Evidence,
  forgetProven,
  type Reply,
  recordReply,
  reserveAttempt,
  type Settlement,
  totalsOf,
} from 'open-payments-server/attempts'
import {
  lifetimeMaxMs,
  type PacketBook,
  type PacketKey,
  type PacketRow,
  type Reservation,
} from './book.js'
import {
  fulfills,
  type IlpHandler,
  isFulfillable,
  isUnknown,
  pair,
  readPrepare,
  readReply,
  readStream,
  rejectsOf,
} from './packet.js'
import { largestOf, type Peer } from './rail.js'
import { convertedDown, convertedUp, greatest, inverseOf, least, type Rate } from './rates.js'
import type { Route, Sending, SendingBook } from './sending-book.js'
import { isListed, takenOver } from './sending-end.js'

export interface PacketRecordOptions {
  readonly book: PacketBook
  readonly sendings: SendingBook
  readonly paymentId: string
  readonly writer: string
  readonly sending: Sending
  readonly route: Route
  readonly peer: Peer
  /** Units of the receiver's asset for units of the peer's. */
  readonly rate: Rate
  /** Whether the two are in different currencies. */
  readonly isExchanged: boolean
  /** What the receiver may deny before nothing more is sent to it, in its asset. */
  readonly trustMax: bigint
  readonly now: () => number
}

/** The packets of one payment. Each is recorded before it is sent. */
export type PacketRecord = ReturnType<typeof packetRecord>

/**
 * How long after its expiry a packet may still arrive: the difference of the clocks, and the time in which the receiver
 * commits what it has accepted before the expiry.
 */
const marginMs = 10_000

/** The most packets without a proof in the record of a payment, which then stays below 64 KiB, as MariaDB demands. */
const recordedMax = 100

type Reserved =
  | { readonly ok: true; readonly amount: bigint }
  | { readonly ok: false; readonly refusal: readonly ['F00' | 'T03', string] }

/** After another process has taken over the payment, it sends nothing new: the amount might arrive twice. */
export function packetRecord(options: PacketRecordOptions) {
  const { book, sendings, paymentId, writer, peer, rate, isExchanged, trustMax, now } = options
  const reject = rejectsOf('')
  const secret = Buffer.from(options.route.sharedSecret, 'base64url')
  let { sending } = options
  let stopped = false
  let hasEnded = false
  let writing: Promise<unknown> = Promise.resolve()

  /** Writes the latest state, one write at a time. Resolves to false if the payment has another writer. */
  function write(): Promise<boolean> {
    const written = writing.then(() =>
      // Who ends the payment writes the record from then on.
      hasEnded ? true : sendings.write(paymentId, writer, sending, isListed(sending)),
    )
    writing = written.catch(() => undefined)
    return written
  }

  async function writeAll(): Promise<void> {
    if (!(await write())) throw takenOver(paymentId)
  }

  /** Replaces the settlement. What is proven or refused leaves the record, and what was sent of it stays as a sum. */
  function replace(settlement: Settlement): void {
    const next = forgetProven(settlement)
    const left = new Set(next.attempts.map(({ reference }) => reference))
    const proven = settlement.attempts.filter(({ outcome }) => outcome.state === 'proven')
    const gone = proven.filter(({ reference }) => !left.has(reference))
    const sent = gone.reduce(
      (sum, { reference }) => sum + BigInt(sending.packets[reference] ?? 0),
      BigInt(sending.sent),
    )
    const kept = Object.entries(sending.packets).filter(([reference]) => left.has(reference))
    sending = {
      ...sending,
      settlement: next,
      packets: Object.fromEntries(kept),
      sent: `${sent}`,
    }
  }

  function record(reference: string, reply: Reply): void {
    const recorded = recordReply(sending.settlement, reference, reply, now())
    if (recorded.ok) replace(recorded.record)
  }

  const keyOf = (condition: string): PacketKey => ({
    peer: peer.ilpAddress,
    direction: 'out',
    condition,
  })

  /** Records a packet before it is sent. Resolves to the amount to send, or to why it must not be sent. */
  async function reserve(reference: string, prepare: IlpPrepare): Promise<Reserved> {
    const notAfter = prepare.expiresAt.getTime()
    const asked = await amountIn(secret, prepare.data)
    const { attempts } = sending.settlement
    if (attempts.length >= recordedMax) return stop('too many packets of the payment have no proof')
    // A larger one would bring more than the payment delivers. The part of a unit is for a peer with a lower rate.
    const enough = convertedUp(totalsOf(sending.settlement).free + 1n, inverseOf(rate)) - 1n
    const amount = least(BigInt(prepare.amount), enough)
    // At the rate of this wallet, more may arrive than the packet asks for.
    const order = { reference, amount: greatest(asked, convertedDown(amount, rate)), notAfter }
    const reserved = reserveAttempt(sending.settlement, order, trustMax, now())
    if (!reserved.ok) {
      // What is in flight may bring less than it may.
      const isInFlight = attempts.some(({ outcome }) => outcome.state === 'reserved')
      const mayWait = isInFlight && reserved.refusal === 'amount_not_free'
      return mayWait ? { ok: false, refusal: ['T03', reserved.reason] } : stop(reserved.reason)
    }
    const packets = { ...sending.packets, [reference]: `${amount}` }
    sending = { ...sending, settlement: reserved.record, packets }
    return (await recorded(reference, amount, notAfter)) ?? { ok: true, amount }
  }

  function stop(reason: string): Reserved {
    stopped = true
    return { ok: false, refusal: ['F00', reason] }
  }

  /** Writes a packet that is reserved. Resolves to why it must not be sent. */
  async function recorded(
    reference: string,
    amount: bigint,
    expiresAt: number,
  ): Promise<Reserved | undefined> {
    const row = { ...keyOf(reference), amount, expiresAt, reservedAt: now(), paymentId }
    let mayBeInBook = false
    try {
      mayBeInBook = await write()
      if (mayBeInBook && isReserved(await book.reserve(row))) return undefined
    } catch {
      // It is not sent, so it cannot arrive. Once that is decided, the book releases what it may have recorded.
      if (mayBeInBook) return stop('the packet may have been recorded')
    }
    record(reference, { outcome: 'refused', reason: 'not sent', retryAt: now() })
    return stop('the packet could not be recorded')
  }

  async function settle(reference: string, prepare: IlpPrepare, bytes: Uint8Array): Promise<void> {
    const reply = readReply(bytes)
    if (reply !== undefined && isFulfill(reply) && fulfills(reply, prepare)) {
      const delivered = deliveredBy(
        await amountIn(secret, prepare.data),
        await amountIn(secret, reply.data),
        mostOf(reference),
      )
      const proof = reply.fulfillment.toString('base64url')
      await book.decide(keyOf(reference), 'fulfilled', { fulfillment: proof })
      record(reference, { outcome: 'proven', ...delivered, proof })
    } else if (reply === undefined || isUnknown(reply) || isFulfill(reply)) {
      record(reference, { outcome: 'unknown', reason: reasonOf(reply as IlpReject | undefined) })
    } else {
      await book.decide(keyOf(reference), 'released')
      const reason = reasonOf(reply)
      record(reference, { outcome: 'refused', reason, retryAt: now() })
    }
    // If this cannot be written, the outcome is unknown to the next process.
    write().catch(() => undefined)
  }

  /** What a packet brings at the rate of this wallet, and at the best one that the peer may have. */
  function mostOf(reference: string): Most {
    const attempt = sending.settlement.attempts.find((each) => each.reference === reference)
    const here = BigInt(attempt?.amount ?? 0)
    if (!isExchanged) return { here, there: here }
    const { numerator, denominator } = rate
    const better = {
      numerator: numerator * (100n + betterPercent),
      denominator: denominator * 100n,
    }
    return { here, there: convertedUp(BigInt(sending.packets[reference] ?? 0), better) }
  }

  async function align(): Promise<void> {
    replace(await aligned(book, peer.ilpAddress, sending.settlement, now()))
  }

  return {
    totals: () => totalsOf(sending.settlement),
    sending: () => sending,
    /** What the packets cost that may arrive, in the asset of the peer. */
    spent(): bigint {
      let sum = BigInt(sending.sent)
      for (const { reference, outcome } of sending.settlement.attempts) {
        const isFree = outcome.state === 'decided' && outcome.arrived === '0'
        if (!isFree) sum += BigInt(sending.packets[reference] ?? 0)
      }
      return sum
    },
    /** Sends packets to the receiver. Probes, which nobody can fulfill, are not recorded. */
    send: (async (bytes) => {
      if (stopped) return reject('F00', 'The sender has stopped')
      const prepare = readPrepare(bytes)
      if (prepare === undefined) return reject('F01', 'The packet is not an ILP Prepare')
      const [amount, most] = [BigInt(prepare.amount), largestOf(peer)]
      if (amount > most) return reject('F08', 'The amount is too large', pair(amount, most))
      if (!isFulfillable(prepare, secret)) return peer.send(bytes)
      // The peer could not keep "never" about it for so long.
      if (prepare.expiresAt.getTime() > now() + lifetimeMaxMs) {
        return reject('F00', 'The packet expires more than five minutes from now')
      }
      const reference = prepare.executionCondition.toString('base64url')
      const reserved = await reserve(reference, prepare)
      if (!reserved.ok) return reject(...reserved.refusal)
      const reply = await peer.send(
        serializeIlpPrepare({ ...prepare, amount: `${reserved.amount}` }),
      )
      await settle(reference, prepare, reply)
      return reply
    }) satisfies IlpHandler,
    /** Asks the peer to close the packets without an outcome, if it can: its word about them is exact. */
    async close(): Promise<void> {
      await align()
      for (const { reference, outcome, amount } of sending.settlement.attempts) {
        const isOpen = outcome.state === 'reserved' || outcome.state === 'unknown'
        const closed = isOpen ? await peer.close?.(reference) : undefined
        if (closed?.outcome === 'fulfilled') {
          const { fulfillment } = closed
          await book.decide(keyOf(reference), 'fulfilled', { fulfillment })
          record(reference, { outcome: 'proven', arrived: BigInt(amount), proof: fulfillment })
        } else if (closed?.outcome === 'never') {
          const by = { by: 'close' } as const
          const decided = decideAttempt(sending.settlement, reference, 'never', by, now())
          if (decided.ok) replace(decided.record)
        }
      }
      await writeAll()
      await align()
    },
    /** Concludes from what the receiver has received. */
    async conclude(evidence: Evidence | undefined): Promise<Conclusion> {
      const conclusion = concludeFrom(sending.settlement, evidence, marginMs, now())
      if (conclusion.isChanged) {
        replace(conclusion.settlement)
        await writeAll()
        await align()
      }
      return conclusion
    },
    /** Records that nothing gets through. */
    async wait(waiting: Sending['waiting']): Promise<void> {
      const { waiting: before, ...rest } = sending
      if (waiting === before) return
      sending = { ...rest, ...(waiting !== undefined && { waiting }) }
      await writeAll()
    },
    /** Notes what the receiver has received once nothing is in doubt. */
    note(received: bigint): void {
      sending = { ...sending, received: `${received}` }
    },
    /**
     * Ends the record, and resolves to it once nothing more is written. The book of the peer still takes a reply that
     * comes later, and an operator's decision takes it from there.
     */
    async ended(): Promise<Sending> {
      hasEnded = true
      await writing
      return sending
    },
    /** Resolves once everything is written. Rejects if another process has taken over the payment. */
    written: writeAll,
  }
}

/** Brings the book of the peer to what was decided, and takes proofs from it that no process has recorded. */
export async function aligned(
  book: PacketBook,
  peer: string,
  settlement: Settlement,
  now: number,
): Promise<Settlement> {
  let next = settlement
  for (const { reference: condition, outcome, amount } of settlement.attempts) {
    const key: PacketKey = { peer, direction: 'out', condition }
    if (outcome.state === 'decided') {
      const decision = outcome.arrived === '0' ? 'released' : 'unproven'
      const isOperators = outcome.by === 'operator'
      await book.decide(key, decision, { ...(isOperators && { by: 'operator' as const }) })
    }
    // What is not in the book was not sent. Closed there, it never will be.
    const isOpen = outcome.state === 'reserved'
    const row = isOpen ? await book.close(key, now) : await book.get(key)
    const reply = row && replyIn(row, BigInt(amount), now)
    if (reply === undefined || (reply.outcome === 'refused' && !isOpen)) continue
    const recorded = recordReply(next, condition, reply, now)
    if (recorded.ok) next = recorded.record
  }
  return next
}

/** What the book says of a packet whose process may have ended before it recorded that. */
function replyIn(
  { state, fulfillment }: PacketRow,
  arrived: bigint,
  now: number,
): Reply | undefined {
  if (state === 'released') {
    return { outcome: 'refused', reason: 'not sent, or rejected', retryAt: now }
  }
  if (state !== 'fulfilled') return undefined
  return { outcome: 'proven', arrived, ...(fulfillment !== undefined && { proof: fulfillment }) }
}

/** Whether the book has a packet that may be sent. Another process may have closed it before. */
function isReserved(reservation: Reservation): boolean {
  return reservation.ok && reservation.row.state === 'reserved'
}

function reasonOf(reply: IlpReject | undefined): string {
  if (reply === undefined) return 'no reply'
  return `${reply.code} ${reply.message}`.replace(/[^ !#-[\]-~]/g, '?').slice(0, 64)
}

/** Returns the amount in a STREAM packet: what it asks the receiver for, or what the receiver acknowledges. */
async function amountIn(secret: Buffer, data: Buffer): Promise<bigint> {
  const packet = await readStream(secret, data)
  return BigInt(packet?.prepareAmount.toString() ?? 0)
}

interface Most {
  readonly here: bigint
  readonly there: bigint
}

/** By how much the rate of a peer may be better than that of this wallet. */
const betterPercent = 1n

/**
 * Returns what a fulfilled packet delivered: at least what it asked for. The fulfillment proves that the receiver took
 * what the packet carried; what it acknowledges beyond that is its word.
 */
function deliveredBy(asked: bigint, told: bigint, { here, there }: Most) {
  if (told > greatest(here, there)) return { arrived: here, said: told - here }
  return { arrived: greatest(told, asked) }
}
