import {
  type IlpHandler,
  readPrepare,
  readReply,
  rejectsOf,
  sha256,
  streamFulfillment,
} from '../ilp/packet.js'
import type { Progress, SendingBook } from './sending-book.js'

/** Sends the packets of one payment, and records before each packet how much may be sent with it. */
export interface PacketRecord {
  readonly send: IlpHandler
  /** Records the receiver's acknowledgements, as totals over all packets. */
  acknowledge(totals: Pick<Progress, 'sent' | 'delivered'>): void
  /**
   * Resolves to the progress of the payment once everything is written. Rejects if another process has taken
   * over the payment, which then reports its outcome.
   */
  close(): Promise<Progress>
}

export interface PacketRecordOptions {
  readonly send: IlpHandler
  /** base64url */
  readonly sharedSecret: string
  readonly book: SendingBook
  readonly paymentId: string
  readonly writer: string
  readonly progress: Progress
}

/** Codes that leave open whether the packet was fulfilled. */
const unknownOutcomes: readonly string[] = ['R00', 'T00']

/**
 * After a packet with an unknown outcome, or after another process has taken over the payment, it sends
 * nothing more: the amount might arrive twice.
 */
export function packetRecord(options: PacketRecordOptions): PacketRecord {
  const { send, book, paymentId, writer } = options
  const secret = Buffer.from(options.sharedSecret, 'base64url')
  const reject = rejectsOf('')
  let { progress } = options
  let stopped = false
  let writing: Promise<unknown> = Promise.resolve()

  /** Writes the latest progress, one write at a time. */
  function write(): Promise<boolean> {
    const written = writing.then(() => book.write(paymentId, writer, progress))
    writing = written.catch(() => undefined)
    return written
  }

  return {
    async send(packet) {
      const amount = fulfillableAmount(packet, secret)
      if (stopped) return reject('F00', 'The sender has stopped')
      if (amount === 0n) return send(packet)
      progress = { ...progress, left: progress.left + amount }
      if (!(await write().catch(() => false))) {
        stopped = true
        progress = { ...progress, left: progress.left - amount }
        return reject('F00', 'The packet could not be recorded')
      }
      const bytes = await send(packet)
      const reply = readReply(bytes)
      if (reply === undefined || ('code' in reply && unknownOutcomes.includes(reply.code))) {
        stopped = true
      } else if ('code' in reply) {
        progress = { ...progress, left: progress.left - amount }
      }
      return bytes
    },
    acknowledge(totals) {
      progress = { ...progress, ...totals }
      write().catch(() => undefined)
    },
    async close() {
      if (!(await write().catch(() => true))) {
        throw new Error(`${paymentId}: another process has taken over the payment`)
      }
      return progress
    },
  }
}

/** Returns the amount of a packet if the receiver can fulfill it, else 0. */
function fulfillableAmount(packet: Uint8Array, sharedSecret: Uint8Array): bigint {
  const prepare = readPrepare(packet)
  if (prepare === undefined) return 0n
  const fulfillment = streamFulfillment(sharedSecret, prepare.data)
  const fulfillable = sha256(fulfillment).equals(prepare.executionCondition)
  return fulfillable ? BigInt(prepare.amount) : 0n
}
