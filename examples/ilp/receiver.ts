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
import {
  type IlpHandler,
  packetAmountMax,
  readPrepare,
  readStream,
  rejectsOf,
  sha256,
  streamEncryptionKey,
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
  readonly fulfillment: Buffer
  readonly payment: IncomingPaymentView
}

/** A receiver's options, and its rejects. */
interface Receiver extends StreamReceiverOptions {
  readonly now: () => number
  readonly reject: ReturnType<typeof rejectsOf>
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
  const { now = () => Date.now() } = options
  const reject = rejectsOf(options.ilpAddress)
  const receiver: Receiver = { ...options, now, reject }
  return async (packet) => {
    try {
      const paid = await readPaid(receiver, packet)
      return paid.ok ? await answer(receiver, paid.value) : reject(...paid.reason)
    } catch (error) {
      report(receiver, error)
      return reject('T00', 'Internal error')
    }
  }
}

type Read =
  | { readonly ok: true; readonly value: Paid }
  | { readonly ok: false; readonly reason: Parameters<Receiver['reject']> }

/** Decrypts a packet, and finds its payment. */
async function readPaid(receiver: Receiver, packet: Uint8Array): Promise<Read> {
  const { paymentMethods, incomingPayments } = receiver
  const refused = (...reason: Parameters<Receiver['reject']>): Read => ({ ok: false, reason })
  const prepare = readPrepare(packet)
  if (prepare === undefined) return refused('F01', 'The packet is not an ILP Prepare')
  if (timeLeft(receiver, prepare) <= 0) return refused('R02', 'The packet has expired')

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
  // Nothing was credited, which T00 would leave open.
  if (payment === 'unreadable') return refused('T03', 'The payment could not be read')
  if (payment === undefined) return refused('F02', 'The payment does not exist')
  const fulfillment = streamFulfillment(sharedSecret, prepare.data)
  const encryptionKey = streamEncryptionKey(sharedSecret)
  return { ok: true, value: { prepare, request, encryptionKey, fulfillment, payment } }
}

async function answer(receiver: Receiver, paid: Paid): Promise<Uint8Array> {
  const { prepare, request, fulfillment, payment } = paid
  const amount = BigInt(prepare.amount)
  if (!sha256(fulfillment).equals(prepare.executionCondition)) {
    // Senders probe the rate with such packets: no receiver can fulfill them, and the reply contains the
    // received amount.
    const frames = closing(receiver, payment)
    return refuse(receiver, paid, 'F99', 'The packet cannot be fulfilled', frames)
  }
  if (amount < BigInt(request.prepareAmount.toString())) {
    return refuse(receiver, paid, 'F99', 'Less arrived than was asked')
  }
  if (timeLeft(receiver, prepare) < replyMs) {
    return refuse(receiver, paid, 'R02', 'Too little time is left')
  }
  return amount === 0n ? fulfill(paid, closing(receiver, payment)) : credit(receiver, paid)
}

async function credit(receiver: Receiver, paid: Paid): Promise<Uint8Array> {
  const { prepare, payment } = paid
  const funds: ReceivedFunds = {
    transferId: prepare.executionCondition.toString('base64url'),
    amount: { ...payment.receivedAmount, value: prepare.amount },
  }
  const result = await receive(receiver, paid, funds)
  if (result === undefined) return refuse(receiver, paid, 'T00', 'The packet could not be credited')
  if (result.ok) return fulfill({ ...paid, payment: result.payment })
  // It was credited, with the amount that a connector converted it to before its rate changed.
  if (result.refusal === 'transfer_mismatch') {
    return refuse(receiver, paid, 'T00', 'The packet was credited with another amount')
  }
  // The reason that your `mayReceive` gives is not for the sender.
  const isYours = /^(?:payment_not_allowed|amount_too_large)$/.test(result.refusal)
  const reason = isYours ? 'the payment is not allowed' : result.reason
  return refuse(receiver, paid, 'F99', reason, [close(reason)])
}

/**
 * Repeats `receive` while its outcome is unknown and time remains. After T00, the sender sends the amount
 * again in a packet with another condition, which would count in addition to this one.
 */
async function receive(
  receiver: Receiver,
  { prepare, payment }: Paid,
  funds: ReceivedFunds,
): Promise<HostResult<{ readonly payment: IncomingPaymentView }> | undefined> {
  const { paymentId } = payment
  for (let attempt = 1; ; attempt++) {
    try {
      return await receiver.incomingPayments.receive(paymentId, funds)
    } catch (error) {
      if (attempt === attemptsMax || timeLeft(receiver, prepare) < replyMs + pauseMs) {
        report(receiver, error, { paymentId, ...funds })
        return undefined
      }
      await sleep(pauseMs)
    }
  }
}

function report({ onError }: Receiver, error: unknown, funds?: UncertainFunds): void {
  // An error of the callback must not prevent the reply.
  if (onError) queueMicrotask(() => onError(error, funds))
}

function closing({ now }: Receiver, payment: IncomingPaymentView): readonly Frame[] {
  if (payment.status === 'completed') return [close('the payment is complete')]
  return now() > payment.expiresAt ? [close('the payment has expired')] : []
}

function timeLeft({ now }: Receiver, { expiresAt }: IlpPrepare): number {
  return expiresAt.getTime() - now()
}

async function refuse(
  { reject }: Receiver,
  paid: Paid,
  code: 'F99' | 'R02' | 'T00',
  message: string,
  frames: readonly Frame[] = [],
): Promise<Uint8Array> {
  return reject(code, message, await replyTo(paid, IlpPacketType.Reject, frames))
}

async function fulfill(paid: Paid, frames: readonly Frame[] = []): Promise<Uint8Array> {
  const data = await replyTo(paid, IlpPacketType.Fulfill, frames)
  return serializeIlpFulfill({ fulfillment: paid.fulfillment, data })
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
