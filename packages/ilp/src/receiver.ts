import { setTimeout as sleep } from 'node:timers/promises'
import { type IlpPrepare, serializeIlpFulfill } from 'ilp-packet'
import {
  ConnectionAssetDetailsFrame,
  ConnectionCloseFrame,
  ErrorCode,
  type Frame,
  FrameType,
  IlpPacketType,
  Packet,
  StreamMaxMoneyFrame,
} from 'ilp-protocol-stream/dist/src/packet.js'
import type {
  HostResult,
  IlpPaymentMethods,
  IncomingPaymentServices,
  IncomingPaymentView,
  ReceivedFunds,
} from 'open-payments-server'
import type { PacketState } from './book.js'
import {
  packetAmountMax,
  readPrepare,
  readStream,
  rejectsOf,
  sha256,
  streamEncryptionKey,
  streamFulfillment,
} from './packet.js'

export interface StreamReceiverOptions {
  /** ILP address of this receiver, under which its rejects are. */
  readonly ilpAddress: string
  readonly paymentMethods: Pick<IlpPaymentMethods, 'credentialsOf'>
  readonly incomingPayments: Pick<IncomingPaymentServices, 'get'>
  /** Milliseconds since 1970. */
  readonly now: () => number
  readonly onError?: (error: unknown) => void
}

/** Records the claim on the peer that a packet came from, and credits both in one transaction. */
export interface Claim {
  /** Under which the packet is credited, one for each peer and condition: each peer owes for what it sends. */
  readonly transferId: string
  /**
   * Records the packet before it is credited.
   *
   * @returns the state that the packet has in the book, or why it is refused.
   */
  reserve(paymentId: string, fulfillment: Buffer): Promise<PacketState | Refusal>
  readonly receive: (paymentId: string, funds: ReceivedFunds) => Promise<Received>
  /**
   * The packet is refused, or comes too late: unless it has been credited, the peer owes nothing for it, and it never
   * will be. A repeat may be refused after the packet was credited, and accepted after the packet was refused.
   */
  release(): Promise<'fulfilled' | 'released' | Refusal>
}

/** What your `receive` resolves to: the result of `incomingPayments.receive`. */
export type Received = HostResult<{ readonly payment: IncomingPaymentView }>

/**
 * What `fulfill` rejects with in `receive`, if the packet was decided not to count while it was being credited.
 *
 * @example
 * ```ts
 * import { PacketReleasedError } from 'open-payments-ilp'
 *
 * const isReleased = (error: unknown) => error instanceof PacketReleasedError
 * ```
 */
export class PacketReleasedError extends Error {
  override readonly name = 'PacketReleasedError'
}

/** A packet from a sender that knows the payment's details. */
interface Decrypted {
  readonly prepare: IlpPrepare
  readonly request: Packet
  readonly encryptionKey: Buffer
  readonly fulfillment: Buffer
}

/** The packet, and the payment. */
interface Paid extends Decrypted {
  readonly payment: IncomingPaymentView
}

type Refusal = Readonly<Parameters<ReturnType<typeof rejectsOf>>>

/** A receiver's options, and its rejects. */
interface Receiver extends StreamReceiverOptions {
  readonly reject: ReturnType<typeof rejectsOf>
  readonly claim: Claim
}

/** The time that a Fulfill needs to reach the previous connector before the packet expires. */
const replyMs = 500
const attemptsMax = 3
const pauseMs = 100

/**
 * Receives STREAM packets for incoming payments: credits each packet once, and fulfills only packets that were
 * credited. It keeps no state of its own, so any number of processes can receive for one payment.
 *
 * @see Interledger RFC 0029
 */
export function streamReceiver(options: StreamReceiverOptions) {
  const reject = rejectsOf(options.ilpAddress)
  return async (packet: Uint8Array, claim: Claim): Promise<Uint8Array> => {
    const receiver: Receiver = { ...options, reject, claim }
    try {
      const paid = await readPaid(receiver, packet)
      return paid.ok ? await answer(receiver, paid.value) : paid.reply
    } catch (error) {
      report(receiver, error)
      return reject('R00', 'The outcome could not be recorded')
    }
  }
}

type Read =
  | { readonly ok: true; readonly value: Paid }
  | { readonly ok: false; readonly reply: Uint8Array }

/** Decrypts a packet, and finds its payment. */
async function readPaid(receiver: Receiver, packet: Uint8Array): Promise<Read> {
  const { paymentMethods, incomingPayments } = receiver
  const refused = (...reason: Refusal): Read => ({ ok: false, reply: receiver.reject(...reason) })
  const prepare = readPrepare(packet)
  if (prepare === undefined) return refused('F01', 'The packet is not an ILP Prepare')
  const credentials = await paymentMethods.credentialsOf(prepare.destination)
  if (credentials === undefined) return refused('F02', 'The address is not one of this receiver')
  const { sharedSecret, paymentId } = credentials
  const request = await readStream(sharedSecret, prepare.data)
  if (request?.ilpPacketType !== IlpPacketType.Prepare)
    return refused('F06', 'The data does not decrypt')
  const payment = await incomingPayments.get(paymentId).catch((error) => {
    report(receiver, error)
    return 'unreadable' as const
  })
  const fulfillment = streamFulfillment(sharedSecret, prepare.data)
  const encryptionKey = streamEncryptionKey(sharedSecret)
  const decrypted = { prepare, request, encryptionKey, fulfillment }
  if (payment === 'unreadable' || payment === undefined) {
    const reply = isFulfillable(decrypted) ? await credited(receiver, decrypted) : undefined
    if (reply !== undefined) return { ok: false, reply }
    // Nothing was credited, which R00 and T00 would leave open.
    return payment === undefined
      ? refused('F02', 'The payment does not exist')
      : refused('T03', 'The payment could not be read')
  }
  return { ok: true, value: { ...decrypted, payment } }
}

function isFulfillable({ prepare, fulfillment }: Decrypted): boolean {
  return sha256(fulfillment).equals(prepare.executionCondition)
}

async function answer(receiver: Receiver, paid: Paid): Promise<Uint8Array> {
  const { prepare, request, payment } = paid
  const amount = BigInt(prepare.amount)
  if (!isFulfillable(paid)) {
    // Senders probe the rate with such packets: no receiver can fulfill them, and the reply contains the
    // received amount.
    const frames = closing(payment)
    return refuse(receiver, paid, 'F99', 'The packet cannot be fulfilled', frames)
  }
  if (amount < BigInt(request.prepareAmount.toString())) {
    // At the rate of another moment, more arrives.
    return (await credited(receiver, paid)) ?? refuse(receiver, paid, 'F99', tooLittle)
  }
  if (timeLeft(receiver, prepare) < replyMs) {
    return (await credited(receiver, paid)) ?? refuse(receiver, paid, 'R02', tooLate)
  }
  return amount === 0n ? fulfill(paid, closing(payment)) : credit(receiver, paid)
}

const tooLate = 'Too little time is left'
const tooLittle = 'Less arrived than was asked'

/**
 * Resolves to the reply to a repeat of a packet that was credited. Otherwise the packet never will be, also if it comes
 * again: after a reject that leaves nothing open, the sender sends the money in another one.
 */
async function credited(
  { claim, reject }: Receiver,
  paid: Decrypted & Partial<Paid>,
): Promise<Uint8Array | undefined> {
  if (paid.prepare.amount === '0') return undefined
  const state = await claim.release()
  if (typeof state === 'object') return reject(...state)
  return state === 'fulfilled' ? fulfill(paid) : undefined
}

async function credit(receiver: Receiver, paid: Paid): Promise<Uint8Array> {
  const { prepare, payment, fulfillment } = paid
  const { claim, reject } = receiver
  const state = await claim.reserve(payment.paymentId, fulfillment)
  if (state === 'fulfilled') return fulfill(paid)
  if (state === 'released') return refuse(receiver, paid, 'R02', released)
  if (typeof state === 'object') return reject(...state)
  const funds: ReceivedFunds = {
    transferId: claim.transferId,
    amount: { ...payment.receivedAmount, value: prepare.amount },
  }
  const result = await receive(receiver, paid, funds)
  if (result === 'released') return refuse(receiver, paid, 'R02', released)
  if (result === 'unknown') {
    return refuse(receiver, paid, 'R00', 'The packet could not be credited')
  }
  if (result.ok) return fulfill({ ...paid, payment: result.payment })
  // It was credited, with another amount.
  if (result.refusal === 'transfer_mismatch') {
    return refuse(receiver, paid, 'R00', 'The packet was credited with another amount')
  }
  const repeated = await credited(receiver, paid)
  if (repeated !== undefined) return repeated
  if (result.refusal === 'transfer_closed') return refuse(receiver, paid, 'R02', released)
  // The reasons that your `mayReceive` gives are not for the sender. After T99 it tries again for a while.
  if (result.refusal === 'review_required') {
    return refuse(receiver, paid, 'T99', 'The payment cannot be received yet')
  }
  const isYours = /^(?:payment_not_allowed|amount_too_large)$/.test(result.refusal)
  const reason = isYours ? 'the payment is not allowed' : result.reason
  return refuse(receiver, paid, 'F99', reason, [close(reason)])
}

const released = 'The packet was decided not to count'

/**
 * Repeats `receive` while its outcome is unknown and time remains. What then stays unknown is reserved in the book, or
 * decided by the record of the transfer.
 */
async function receive(
  receiver: Receiver,
  { prepare, payment }: Paid,
  funds: ReceivedFunds,
): Promise<Received | 'released' | 'unknown'> {
  const { paymentId } = payment
  // After the expiry the sender may send the amount again, however long the database takes.
  const inTime = { ...funds, notAfter: prepare.expiresAt.getTime() }
  for (let attempt = 1; ; attempt++) {
    try {
      return await receiver.claim.receive(paymentId, inTime)
    } catch (error) {
      if (error instanceof PacketReleasedError) return 'released'
      if (attempt === attemptsMax || timeLeft(receiver, prepare) < replyMs + pauseMs) {
        report(receiver, error)
        return 'unknown'
      }
      await sleep(pauseMs)
    }
  }
}

function report({ onError }: Receiver, error: unknown): void {
  // An error of the callback must not prevent the reply.
  if (onError) queueMicrotask(() => onError(error))
}

/** By its status, because a payment that you cancel ends at once, whatever the clock of this process says. */
function closing({ status }: IncomingPaymentView): readonly Frame[] {
  if (status === 'open') return []
  return [close(status === 'completed' ? 'the payment is complete' : 'the payment has expired')]
}

function timeLeft({ now }: Receiver, { expiresAt }: IlpPrepare): number {
  return expiresAt.getTime() - now()
}

async function refuse(
  { reject }: Receiver,
  paid: Paid,
  code: 'F99' | 'R00' | 'R02' | 'T99',
  message: string,
  frames: readonly Frame[] = [],
): Promise<Uint8Array> {
  return reject(code, message, await replyTo(paid, IlpPacketType.Reject, frames))
}

async function fulfill(
  { payment, ...packet }: Decrypted & Partial<Paid>,
  frames: readonly Frame[] = [],
): Promise<Uint8Array> {
  const { fulfillment } = packet
  const data =
    payment === undefined
      ? Buffer.alloc(0)
      : await replyTo({ ...packet, payment }, IlpPacketType.Fulfill, frames)
  return serializeIlpFulfill({ fulfillment, data })
}

/** Returns the encrypted STREAM reply: the received amount, and replies to the frames of the request. */
function replyTo(
  { prepare, request, encryptionKey, payment }: Paid,
  type: Packet['ilpPacketType'],
  more: readonly Frame[],
): Promise<Buffer> {
  const { incomingAmount, receivedAmount } = payment
  const { value: received, ...asset } = receivedAmount
  const receiveMax = incomingAmount?.value ?? packetAmountMax.toString()
  const frames: Frame[] = [...more]
  const asksAsset = request.frames.some(({ type }) => type === FrameType.ConnectionNewAddress)
  if (asksAsset) frames.push(new ConnectionAssetDetailsFrame(asset.assetCode, asset.assetScale))
  for (const frame of request.frames.slice(0, framesMax)) {
    if (frame.type !== FrameType.StreamMoney) continue
    frames.push(new StreamMaxMoneyFrame(frame.streamId, receiveMax, received))
  }
  const reply = new Packet(request.sequence, type, prepare.amount, frames)
  return reply.serializeAndEncrypt(encryptionKey)
}

/** The maximum number of frames to process; senders do not open more streams in one packet. */
const framesMax = 100

function close(reason: string): Frame {
  return new ConnectionCloseFrame(ErrorCode.ApplicationError, reason)
}
