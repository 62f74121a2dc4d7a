import type { IlpPrepare } from 'ilp-packet'
import { type IncomingPaymentServices, ilpPaymentMethods } from 'open-payments-server'
import {
  createReceivingWallet,
  type ReceiverOptions,
  type StreamReceivers,
} from 'open-payments-test-support/ilp'
import type { WorldOptions } from 'open-payments-test-support/world'
import { memoryBook, type PacketBook } from '../src/index.js'
import { type IlpHandler, readPrepare } from '../src/packet.js'
import { type Claim, streamReceiver } from '../src/receiver.js'

type Incoming = Pick<IncomingPaymentServices, 'get' | 'receive'>

const books = new WeakMap<Incoming, PacketBook>()
const none: IlpPrepare = {
  amount: '0',
  executionCondition: Buffer.alloc(32),
  expiresAt: new Date(0),
  destination: '',
  data: Buffer.alloc(0),
}
const otherAmount = ['R00', 'The condition was sent with another amount'] as const

/** The receiver of this package, with the claims of one peer in the assets of the payments. */
export function claimedReceiver(options: ReceiverOptions): IlpHandler {
  const { incomingPayments, now } = options
  const book = books.get(incomingPayments) ?? memoryBook()
  books.set(incomingPayments, book)
  const receive = streamReceiver(options)

  function claimOn({ amount, executionCondition, expiresAt }: IlpPrepare): Claim {
    const condition = executionCondition.toString('base64url')
    const key = { peer: 'test.peer', direction: 'in', condition } as const
    const row = {
      ...key,
      amount: BigInt(amount),
      expiresAt: expiresAt.getTime(),
      reservedAt: now(),
    }
    return {
      transferId: condition,
      async reserve(paymentId, fulfillment) {
        const proof = fulfillment.toString('base64url')
        const reserved = await book.reserve({ ...row, paymentId, fulfillment: proof })
        if (!reserved.ok) throw new Error('it has no limit')
        return reserved.row.amount === row.amount ? reserved.row.state : otherAmount
      },
      async receive(paymentId, funds) {
        const received = await incomingPayments.receive(paymentId, funds)
        if (received.ok) await book.decide(key, 'fulfilled')
        return received
      },
      async release() {
        await book.close(key, now())
        return (await book.decide(key, 'released')) === 'fulfilled' ? 'fulfilled' : 'released'
      },
    }
  }

  return (packet) => receive(packet, claimOn(readPrepare(packet) ?? none))
}

export const ours: StreamReceivers = {
  paymentMethods: ilpPaymentMethods,
  receiver: claimedReceiver,
}

/** A wallet with this receiver. */
export const receivingWallet = (options: WorldOptions = {}, receivers = ours) =>
  createReceivingWallet(options, receivers)
