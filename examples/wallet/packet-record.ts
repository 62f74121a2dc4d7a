import { isFulfill, isReject, serializeIlpPrepare } from 'ilp-packet'
import {
  fulfills,
  type IlpHandler,
  readPrepare,
  readReply,
  readStream,
  rejectsOf,
  sha256,
  streamFulfillment,
} from '../ilp/packet.js'
import type { PendingPacket, Progress, SendingBook } from './sending-book.js'

/** Sends the packets of one payment, and records each before it is sent. */
export interface PacketRecord {
  progress(): Progress
  /** Returns a handler that sends packets to the receiver with this shared secret, base64url. */
  sendTo(sharedSecret: string): IlpHandler
  /**
   * Repeats the packets whose outcome is unknown. Connectors and the receiver count a packet once, so that one that
   * arrived is fulfilled again.
   */
  repeatPending(): Promise<void>
  /**
   * Resolves once everything is written. Rejects if another process has taken over the payment, which then reports its
   * outcome.
   */
  close(): Promise<void>
}

export interface PacketRecordOptions {
  readonly send: IlpHandler
  readonly book: SendingBook
  readonly paymentId: string
  readonly writer: string
  readonly progress: Progress
  /** Milliseconds since the epoch. Default `Date.now`. */
  readonly now?: () => number
}

/** Codes that leave open whether the packet was fulfilled. */
const unknownOutcomes: readonly string[] = ['R00', 'T00']
/** How long a repeated packet is valid. */
const repeatMs = 30_000

/**
 * After a packet with an unknown outcome, or after another process has taken over the payment, it sends nothing new: the
 * amount might arrive twice.
 */
export function packetRecord(options: PacketRecordOptions): PacketRecord {
  const { send, book, paymentId, writer, now = Date.now } = options
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
    isFinal: (code: string, data: Buffer) => Promise<boolean>,
  ): Promise<boolean> {
    const prepare = readPrepare(bytesOf(pending))
    const reply = readReply(bytes)
    if (prepare === undefined || reply === undefined) return false
    if (isReject(reply)) {
      if (!(await isFinal(reply.code, reply.data))) return false
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
      return false
    }
    // If this cannot be written, the packet is repeated, and its outcome is the same.
    write().catch(() => undefined)
    return true
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
      async (_, data) => hasExpired && (await readStream(secretOf(pending), data)) !== undefined,
    )
  }

  return {
    progress: () => progress,
    sendTo(sharedSecret) {
      const secret = Buffer.from(sharedSecret, 'base64url')
      return async (bytes) => {
        if (stopped) return reject('F00', 'The sender has stopped')
        if (!isFulfillable(bytes, secret)) return send(bytes)
        const packet = Buffer.from(bytes).toString('base64')
        const pending: PendingPacket = { packet, sharedSecret }
        progress = { ...progress, pending: [...progress.pending, pending] }
        if (!(await write().catch(() => false))) {
          stopped = true
          replace(pending)
          return reject('F00', 'The packet could not be recorded')
        }
        const reply = await send(bytes)
        const isKnown = await settle(
          pending,
          reply,
          async (code) => !unknownOutcomes.includes(code),
        )
        stopped ||= !isKnown
        return reply
      }
    },
    async repeatPending() {
      await Promise.all(progress.pending.map(repeat))
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

/** Returns whether the receiver can fulfill a packet with money. Others only probe the path. */
function isFulfillable(bytes: Uint8Array, sharedSecret: Uint8Array): boolean {
  const prepare = readPrepare(bytes)
  if (prepare === undefined || prepare.amount === '0') return false
  const fulfillment = streamFulfillment(sharedSecret, prepare.data)
  return sha256(fulfillment).equals(prepare.executionCondition)
}

/** Returns what a packet delivered: what the receiver acknowledges, at least what the packet asked for. */
async function deliveredBy(pending: PendingPacket, asked: Buffer, answered: Buffer) {
  const request = await readStream(secretOf(pending), asked)
  const answer = await readStream(secretOf(pending), answered)
  const least = BigInt(request?.prepareAmount.toString() ?? 0)
  const told = BigInt(answer?.prepareAmount.toString() ?? 0)
  return told > least ? told : least
}
