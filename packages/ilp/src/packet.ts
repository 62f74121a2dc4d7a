import { createHash, createHmac } from 'node:crypto'
import {
  deserializeIlpPrepare,
  deserializeIlpReply,
  type IlpErrorCode,
  type IlpPrepare,
  type IlpReply,
  isFulfill,
  isReject,
  serializeIlpReject,
} from 'ilp-packet'
import { Packet } from 'ilp-protocol-stream/dist/src/packet.js'

/**
 * Takes the bytes of an ILP Prepare and resolves to those of a Fulfill or a Reject. The promise never
 * rejects: errors are ILP Rejects.
 *
 * @see Interledger RFC 0027
 */
export type IlpHandler = (packet: Uint8Array) => Promise<Uint8Array>

/** The maximum size of an ILP packet in bytes: 32 KiB of data plus the other fields. */
export const packetBytesMax = 32 * 1024 + 2 * 1024

/** The maximum amount of an ILP packet. */
export const packetAmountMax = 2n ** 64n - 1n

/** Reads an ILP Prepare. Returns `undefined` for other or too many bytes. */
export function readPrepare(packet: Uint8Array): IlpPrepare | undefined {
  if (packet.length > packetBytesMax) return undefined
  try {
    return deserializeIlpPrepare(bufferOf(packet))
  } catch {
    return undefined
  }
}

/** Reads an ILP Fulfill or Reject. Returns `undefined` for other or too many bytes. */
export function readReply(packet: Uint8Array): IlpReply | undefined {
  if (packet.length > packetBytesMax) return undefined
  try {
    return deserializeIlpReply(bufferOf(packet))
  } catch {
    return undefined
  }
}

/** Returns whether a reply is a Fulfill whose fulfillment matches the condition of the Prepare. */
export function fulfills(reply: IlpReply | undefined, { executionCondition }: IlpPrepare): boolean {
  return isFulfill(reply) && sha256(reply.fulfillment).equals(executionCondition)
}

/**
 * Returns whether a reply leaves open whether its packet was, or still will be, fulfilled: a node did not get a reply
 * (R00), or failed while it processed the packet (T00).
 */
export function isUnknown(reply: IlpReply | undefined): boolean {
  return reply === undefined || (isReject(reply) && ['R00', 'T00'].includes(reply.code))
}

/** Returns whether a fulfillment proves the packet with this condition. Both are base64url. */
export function isFulfillmentOf(fulfillment: string, condition: string): boolean {
  return sha256(Buffer.from(fulfillment, 'base64url')).toString('base64url') === condition
}

export function sha256(bytes: Uint8Array | string): Buffer {
  return createHash('sha256').update(bytes).digest()
}

function hmac(key: Uint8Array, message: string | Uint8Array): Buffer {
  return createHmac('sha256', key).update(message).digest()
}

/**
 * Returns the fulfillment of a STREAM packet with this data. A packet whose condition it does not meet only
 * probes the rate: no receiver can fulfill it.
 *
 * @see Interledger RFC 0029
 */
export function streamFulfillment(sharedSecret: Uint8Array, data: Uint8Array): Buffer {
  return hmac(hmac(sharedSecret, 'ilp_stream_fulfillment'), data)
}

/**
 * Returns whether a receiver with this shared secret can fulfill a packet that carries money. Others only probe the
 * path.
 */
export function isFulfillable(
  { amount, data, executionCondition }: IlpPrepare,
  sharedSecret: Uint8Array,
): boolean {
  if (amount === '0') return false
  return sha256(streamFulfillment(sharedSecret, data)).equals(executionCondition)
}

/**
 * Reads the STREAM packet in the data of an ILP packet. Returns `undefined` if nobody with the shared secret encrypted
 * it.
 */
export async function readStream(
  sharedSecret: Uint8Array,
  data: Buffer,
): Promise<Packet | undefined> {
  try {
    return await Packet.decryptAndDeserialize(streamEncryptionKey(sharedSecret), data)
  } catch {
    return undefined
  }
}

export function streamEncryptionKey(sharedSecret: Uint8Array): Buffer {
  return hmac(sharedSecret, 'ilp_stream_encryption')
}

/** Returns whether an ILP address is `prefix` or below it. */
export function isWithin(ilpAddress: string, prefix: string): boolean {
  return `${ilpAddress}.`.startsWith(`${prefix}.`)
}

/** Creates rejects in the name of the node with this ILP address; `''` for a node without one. */
export function rejectsOf(triggeredBy: string) {
  return (code: `${IlpErrorCode}`, message: string, data: Buffer = Buffer.alloc(0)): Uint8Array =>
    serializeIlpReject({ code, triggeredBy, message, data })
}

/** Returns the data of an F08 reject: the received amount and the maximum. */
export function pair(received: bigint, maximum: bigint): Buffer {
  const data = Buffer.alloc(16)
  data.writeBigUInt64BE(received, 0)
  data.writeBigUInt64BE(maximum, 8)
  return data
}

/** Returns a `Buffer` over the same memory, which the packet codecs need. */
function bufferOf({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength)
}
