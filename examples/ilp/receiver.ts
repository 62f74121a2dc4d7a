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
  IlpPaymentMethods,
  IncomingPayment,
  IncomingPaymentServices,
  ReceivedFunds,
  ReceiveResult,
} from 'open-payments-server'
import {
  hmac,
  type IlpHandler,
  packetAmountMax,
  readPrepare,
  rejectsOf,
  sha256,
  streamFulfillment,
} from './packet.js'

export interface StreamReceiverOptions {
  /**
   * ILP address of this receiver: the `addressPrefix` of the payment methods. It identifies the receiver in
   * rejects.
   */
  readonly ilpAddress: string
  readonly paymentMethods: Pick<IlpPaymentMethods, 'credentialsOf'>
  /** Pass your own `receive` to credit your ledger in the same transaction. */
  readonly incomingPayments: Pick<IncomingPaymentServices, 'get' | 'receive'>
  /** Milliseconds since the epoch. Default `Date.now`. */
  readonly now?: () => number
  /**
   * Called after an error, when the packet was rejected with T00. With `funds`, all calls of `receive` failed
   * but may have counted the funds: check your ledger. Do not call `receive` again, because the sender keeps
   * the funds.
   */
  readonly onError?: (error: unknown, funds?: UncertainFunds) => void
}

/** Funds that may have been counted. */
export interface UncertainFunds extends ReceivedFunds {
  readonly paymentId: string
}

/** A packet from a sender that knows the payment's details, and the payment. */
interface Paid {
  readonly prepare: IlpPrepare
  readonly request: Packet
  readonly encryptionKey: Buffer
  readonly payment: IncomingPayment
}

/** The time that a Fulfill needs to reach the previous connector before the packet expires. */
const replyMs = 500
const attemptsMax = 3
const pauseMs = 100

/**
 * Receives STREAM packets for incoming payments: credits each packet once, and fulfills only packets that
 * `receive` accepts. It keeps no state of its own, so any number of processes can receive for one payment.
 *
 * @see Interledger RFC 0029
 */
export function createStreamReceiver(options: StreamReceiverOptions): IlpHandler {
  const { paymentMethods, incomingPayments, onError, now = Date.now } = options
  const reject = rejectsOf(options.ilpAddress)

  function report(error: unknown, funds?: UncertainFunds): void {
    // An error of the callback must not prevent the reply.
    if (onError) queueMicrotask(() => onError(error, funds))
  }

  async function answer(packet: Uint8Array): Promise<Uint8Array> {
    const prepare = readPrepare(packet)
    if (prepare === undefined) return reject('F01', 'The packet is not an ILP Prepare')
    if (timeLeft(prepare) <= 0) return reject('R00', 'The packet has expired')

    const credentials = await paymentMethods.credentialsOf(prepare.destination)
    if (credentials === undefined) return reject('F02', 'The address is not one of this receiver')
    const encryptionKey = hmac(credentials.sharedSecret, 'ilp_stream_encryption')
    const request = await decrypted(encryptionKey, prepare.data)
    if (request === undefined) return reject('F06', 'The data does not decrypt')
    const payment = await incomingPayments.get(credentials.paymentId)
    if (payment === undefined) return reject('F02', 'The payment does not exist')

    const paid: Paid = { prepare, request, encryptionKey, payment }
    const fulfillment = streamFulfillment(credentials.sharedSecret, prepare.data)
    const asked = BigInt(request.prepareAmount.toString())
    if (!sha256(fulfillment).equals(prepare.executionCondition)) {
      // Senders probe the rate with such packets: no receiver can fulfill them, and the reply contains the
      // received amount.
      return refuse(paid, 'F99', 'The packet cannot be fulfilled', closing(payment))
    }
    if (BigInt(prepare.amount) < asked) return refuse(paid, 'F99', 'Less arrived than was asked')
    if (timeLeft(prepare) < replyMs) return refuse(paid, 'R02', 'Too little time is left')
    return BigInt(prepare.amount) === 0n
      ? fulfill(paid, fulfillment, closing(payment))
      : credit(paid, fulfillment)
  }

  async function credit(paid: Paid, fulfillment: Buffer): Promise<Uint8Array> {
    const { prepare, payment } = paid
    const funds: ReceivedFunds = {
      transferId: prepare.executionCondition.toString('base64url'),
      amount: { value: prepare.amount, ...payment.asset },
    }
    const result = await receive(paid, funds)
    if (result === undefined) return refuse(paid, 'T00', 'The packet could not be credited')
    if (result.ok) return fulfill({ ...paid, payment: result.payment }, fulfillment)
    return refuse(paid, 'F99', result.reason, [close(result.reason)])
  }

  /**
   * Repeats `receive` while its outcome is unknown and time remains. After T00, the sender sends the amount
   * again in a packet with another condition, which would count in addition to this one.
   */
  async function receive(
    { prepare, payment }: Paid,
    funds: ReceivedFunds,
  ): Promise<ReceiveResult | undefined> {
    const paymentId = payment.id
    for (let attempt = 1; ; attempt++) {
      try {
        return await incomingPayments.receive(paymentId, funds)
      } catch (error) {
        if (attempt === attemptsMax || timeLeft(prepare) < replyMs + pauseMs) {
          report(error, { paymentId, ...funds })
          return undefined
        }
        await sleep(pauseMs)
      }
    }
  }

  function closing(payment: IncomingPayment): readonly Frame[] {
    if (payment.completed) return [close('the payment is complete')]
    return now() > payment.expiresAt ? [close('the payment has expired')] : []
  }

  const timeLeft = ({ expiresAt }: IlpPrepare) => expiresAt.getTime() - now()

  async function refuse(
    paid: Paid,
    code: 'F99' | 'R02' | 'T00',
    message: string,
    frames: readonly Frame[] = [],
  ): Promise<Uint8Array> {
    return reject(code, message, await replyTo(paid, IlpPacketType.Reject, frames))
  }

  return async (packet) => {
    try {
      return await answer(packet)
    } catch (error) {
      report(error)
      return reject('T00', 'Internal error')
    }
  }
}

async function fulfill(paid: Paid, fulfillment: Buffer, frames: readonly Frame[] = []) {
  const data = await replyTo(paid, IlpPacketType.Fulfill, frames)
  return serializeIlpFulfill({ fulfillment, data })
}

/** Returns the encrypted STREAM reply: the received amount, and replies to the frames of the request. */
function replyTo(
  { prepare, request, encryptionKey, payment }: Paid,
  type: Packet['ilpPacketType'],
  more: readonly Frame[],
): Promise<Buffer> {
  const { asset, incomingAmount, received } = payment
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

async function decrypted(encryptionKey: Buffer, data: Buffer): Promise<Packet | undefined> {
  try {
    const packet = await Packet.decryptAndDeserialize(encryptionKey, data)
    return packet.ilpPacketType === IlpPacketType.Prepare ? packet : undefined
  } catch {
    return undefined
  }
}
