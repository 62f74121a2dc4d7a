import { createHash } from 'node:crypto'
import {
  deserializeIlpPrepare,
  deserializeIlpReply,
  type IlpErrorCode,
  type IlpPrepare,
  type IlpReply,
  isFulfill,
  serializeIlpReject,
} from 'ilp-packet'

/**
 * Takes the bytes of an ILP Prepare and resolves to those of a Fulfill or a Reject. It never rejects its promise:
 * what goes wrong is an ILP Reject.
 *
 * @see Interledger RFC 0027
 */
export type IlpHandler = (packet: Uint8Array) => Promise<Uint8Array>

/** The largest ILP packet that is read, in bytes: 32 KiB of data, and room for the other fields. */
export const packetBytesMax = 32 * 1024 + 2 * 1024

/** The largest amount that an ILP packet can have. */
export const packetAmountMax = 2n ** 64n - 1n

/** Reads an ILP Prepare, or returns `undefined` if the bytes are too many or are not a Prepare. */
export function readPrepare(packet: Uint8Array): IlpPrepare | undefined {
  if (packet.length > packetBytesMax) return undefined
  try {
    return deserializeIlpPrepare(bufferOf(packet))
  } catch {
    return undefined
  }
}

/** Reads an ILP Fulfill or Reject, or returns `undefined` if the bytes are too many or are neither. */
export function readReply(packet: Uint8Array): IlpReply | undefined {
  if (packet.length > packetBytesMax) return undefined
  try {
    return deserializeIlpReply(bufferOf(packet))
  } catch {
    return undefined
  }
}

/** Whether the reply is a Fulfill whose fulfillment hashes to the condition of the Prepare. */
export function fulfills(reply: IlpReply | undefined, { executionCondition }: IlpPrepare): boolean {
  return isFulfill(reply) && sha256(reply.fulfillment).equals(executionCondition)
}

export function sha256(bytes: Uint8Array): Buffer {
  return createHash('sha256').update(bytes).digest()
}

/** Writes rejects in the name of the node that has this ILP address; `''` for one that has none. */
export function rejectsOf(triggeredBy: string) {
  return (code: `${IlpErrorCode}`, message: string, data: Buffer = Buffer.alloc(0)): Uint8Array =>
    serializeIlpReject({ code, triggeredBy, message, data })
}

/** The same memory as a `Buffer`, which the packet codecs need. */
function bufferOf({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength)
}
