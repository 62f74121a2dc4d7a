import { type IlpReject, isFulfill, isReject, serializeIlpPrepare } from 'ilp-packet'
import type { IlpHandler } from 'open-payments-ilp'
import {
  fulfills,
  isFulfillable,
  isUnknown,
  readPrepare,
  readReply,
  readStream,
  rejectsOf,
} from './packet.js'
import type { PendingPacket, Progress, SendingBook } from './sending-book.js'

/** Sends the packets of one payment, and records each before it is sent. */
export interface PacketRecord {
  progress(): Progress
  /** The packets whose outcome is unknown. The receiver may have them, so they count as sent. */
  unknown(): Promise<UnknownPackets>
  /** Records what the receiver had received before the first packet. Later calls change nothing. */
  startFrom(received: bigint): void
  /** Returns a handler that sends packets to the receiver with this shared secret, base64url. */
  sendTo(sharedSecret: string): IlpHandler
  /** Repeats the packets whose outcome is unknown, where everyone counts a packet once: `countsRepeats`. */
  repeatPending(): Promise<void>
  /**
   * Resolves once everything is written. Rejects if another process has taken over the payment, which then reports its
   * outcome.
   */
  close(): Promise<void>
}

export interface UnknownPackets {
  /** In the payer's asset. */
  readonly sent: bigint
  /** What they asked the receiver for, in its asset. */
  readonly asked: bigint
  /** Whether one of them may be repeated. */
  readonly mayRepeat: boolean
  /** Whether none of them can arrive any more. */
  readonly haveExpired: boolean
}

export interface PacketRecordOptions {
  readonly send: IlpHandler
  /** Sends packets that nobody can fulfill. */
  readonly probe: IlpHandler
  /** Whether all nodes on the way to this ILP address count a packet once that they get twice. */
  readonly countsRepeats: (ilpAddress: string) => boolean
  readonly book: SendingBook
  readonly paymentId: string
  readonly writer: string
  readonly progress: Progress
  /** Milliseconds since the epoch. Default `Date.now`. */
  readonly now?: () => number
}

/** How long a repeated packet is valid. */
const repeatMs = 30_000

/** After another process has taken over the payment, it sends nothing new: the amount might arrive twice. */
export function packetRecord(options: PacketRecordOptions): PacketRecord {
  const { send, probe, countsRepeats, book, paymentId, writer, now = () => Date.now() } = options
  const reject = rejectsOf('')
  let { progress } = options
  let stopped = false
  let writing: Promise<unknown> = Promise.resolve()

  /** Writes the latest progress, one write at a time. Resolves to false if the payment has another writer. */
  function write(): Promise<boolean> {
    const written = writing.then(() => book.write(paymentId, writer, progress))
    writing = written.catch(() => undefined)
    return written
  }

  function replace(old: PendingPacket, ...by: readonly PendingPacket[]): void {
    const others = progress.pending.filter((each) => each !== old)
    progress = { ...progress, pending: [...others, ...by] }
  }

  /** Records a reply. A reject counts only if it says that the packet was not, and will not be, fulfilled. */
  async function settle(
    pending: PendingPacket,
    bytes: Uint8Array,
    isFinal: (reject: IlpReject) => Promise<boolean>,
  ): Promise<void> {
    const prepare = readPrepare(bytesOf(pending))
    const reply = readReply(bytes)
    if (prepare === undefined || reply === undefined) return
    if (isReject(reply)) {
      if (!(await isFinal(reply))) return
      replace(pending)
    } else if (isFulfill(reply) && fulfills(reply, prepare)) {
      const delivered = await deliveredBy(pending, prepare.data, reply.data)
      const { sent } = progress
      progress = {
        ...progress,
        sent: sent + BigInt(prepare.amount),
        delivered: progress.delivered + delivered,
      }
      replace(pending)
    } else {
      return
    }
    // If this cannot be written, the outcome is unknown to the next process.
    write().catch(() => undefined)
  }

  async function repeat(old: PendingPacket): Promise<void> {
    const prepare = readPrepare(bytesOf(old))
    if (prepare === undefined) return
    const hasExpired = prepare.expiresAt.getTime() <= now()
    const expiresAt = hasExpired ? new Date(now() + repeatMs) : prepare.expiresAt
    const packet = serializeIlpPrepare({ ...prepare, expiresAt })
    const pending = { ...old, packet: packet.toString('base64') }
    replace(old, pending)
    if (!(await write())) throw takenOver(paymentId)
    // Before the first packet has expired, it may still arrive after the reject of the second.
    await settle(
      pending,
      await send(packet),
      async ({ data }) => hasExpired && (await readStream(secretOf(pending), data)) !== undefined,
    )
  }

  function mayRepeat(packet: PendingPacket): boolean {
    const prepare = readPrepare(bytesOf(packet))
    return prepare !== undefined && countsRepeats(prepare.destination)
  }

  return {
    progress: () => progress,
    async unknown() {
      let [sent, asked, haveExpired] = [0n, 0n, true]
      for (const packet of progress.pending) {
        const prepare = readPrepare(bytesOf(packet))
        if (prepare === undefined) continue
        sent += BigInt(prepare.amount)
        asked += await askedBy(packet, prepare.data)
        haveExpired &&= prepare.expiresAt.getTime() <= now()
      }
      return { sent, asked, mayRepeat: progress.pending.some(mayRepeat), haveExpired }
    },
    startFrom(received) {
      progress = { receivedBefore: received, ...progress }
    },
    sendTo(sharedSecret) {
      const secret = Buffer.from(sharedSecret, 'base64url')
      return async (bytes) => {
        if (stopped) return reject('F00', 'The sender has stopped')
        const prepare = readPrepare(bytes)
        if (prepare === undefined || !isFulfillable(prepare, secret)) return probe(bytes)
        const packet = Buffer.from(bytes).toString('base64')
        const pending: PendingPacket = { packet, sharedSecret }
        progress = { ...progress, pending: [...progress.pending, pending] }
        if (!(await write().catch(() => false))) {
          stopped = true
          replace(pending)
          return reject('F00', 'The packet could not be recorded')
        }
        const reply = await send(bytes)
        await settle(pending, reply, async (reject) => !isUnknown(reject))
        return reply
      }
    },
    async repeatPending() {
      await Promise.all(progress.pending.filter(mayRepeat).map(repeat))
    },
    async close() {
      if (!(await write().catch(() => true))) throw takenOver(paymentId)
    },
  }
}

function takenOver(paymentId: string): Error {
  return new Error(`${paymentId}: another process has taken over the payment`)
}

function bytesOf({ packet }: PendingPacket): Buffer {
  return Buffer.from(packet, 'base64')
}

function secretOf({ sharedSecret }: PendingPacket): Buffer {
  return Buffer.from(sharedSecret, 'base64url')
}

/** Returns what a packet asks the receiver for. */
async function askedBy(pending: PendingPacket, data: Buffer): Promise<bigint> {
  const request = await readStream(secretOf(pending), data)
  return BigInt(request?.prepareAmount.toString() ?? 0)
}

/** Returns what a packet delivered: what the receiver acknowledges, at least what the packet asked for. */
async function deliveredBy(pending: PendingPacket, request: Buffer, answered: Buffer) {
  const asked = await askedBy(pending, request)
  const answer = await readStream(secretOf(pending), answered)
  const told = BigInt(answer?.prepareAmount.toString() ?? 0)
  return told > asked ? told : asked
}
