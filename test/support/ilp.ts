import { createCipheriv, createHash, createHmac, randomBytes } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import {
  deserializeIlpPrepare,
  deserializeIlpReply,
  type IlpReply,
  isFulfill,
  serializeIlpPrepare,
} from 'ilp-packet'
import { type Frame, IlpPacketType, Packet } from 'ilp-protocol-stream/dist/src/packet.js'
import { type IlpHandler, ilpOverHttp, sendOverHttp } from 'open-payments-ilp'
import type {
  IlpPaymentMethods,
  IncomingPaymentServices,
  ilpPaymentMethods,
} from 'open-payments-server'
import type { IncomingPayment } from 'open-payments-server/core'
import { toExpress } from 'open-payments-server/express'
import { manualClock } from './clock.js'
import { bob, createWorld, incomingAccess, type WorldOptions } from './world.js'

export const ilpAddress = 'test.receiver'

/** Creates the payment methods of an ILP address, and the receiver of the packets for it. */
export interface StreamReceivers {
  readonly paymentMethods: typeof ilpPaymentMethods
  readonly receiver: (options: ReceiverOptions) => IlpHandler
}

export interface ReceiverOptions {
  readonly ilpAddress: string
  readonly paymentMethods: Pick<IlpPaymentMethods, 'credentialsOf'>
  readonly incomingPayments: Pick<IncomingPaymentServices, 'get' | 'receive'>
  readonly now: () => number
  readonly onError: (error: unknown) => void
}

/** Returns the details of a payment as a sender reads them. */
export interface Details {
  readonly id: string
  readonly ilpAddress: string
  readonly sharedSecret: string
}

/** A receiving wallet. Its clock shows the present, because the packets of real senders expire. */
export function createReceivingWallet(options: WorldOptions, receivers: StreamReceivers) {
  const paymentMethods = () =>
    receivers.paymentMethods({ addressPrefix: ilpAddress, secret: new Uint8Array(32).fill(3) })
  const clock = options.clock ?? manualClock(Date.now())
  const resources = { paymentMethods: paymentMethods(), ...options.resources }
  const world = createWorld({ ...options, clock, resources })
  const { incomingPayments } = world.resources
  const client = world.client()
  const errors: unknown[] = []

  return {
    ...world,
    incomingPayments,
    errors,
    /** A receiver with only the state of a new process. */
    receiver: (more: Partial<ReceiverOptions> = {}) =>
      receivers.receiver({
        ilpAddress,
        paymentMethods: paymentMethods(),
        incomingPayments,
        now: () => Date.now(),
        onError: (error) => void errors.push(error),
        ...more,
      }),
    async createPayment(
      request: { readonly incomingAmount?: object; readonly expiresAt?: string } = {},
      walletAddress = bob,
    ): Promise<Details> {
      const access = { ...incomingAccess, identifier: walletAddress }
      const { body: grant } = await client.request([access])
      const token = grant.access_token.value
      const { body } = await client.createPayment(token, { walletAddress, ...request })
      const [{ ilpAddress, sharedSecret }] = body.methods
      return { id: incomingPayments.idOf(body.id) ?? '', ilpAddress, sharedSecret }
    },
    async payment({ id }: Details): Promise<IncomingPayment> {
      const payment = await incomingPayments.getRecord(id)
      if (payment === undefined) throw new Error('there is no such payment')
      return payment
    },
    async received({ id }: Details): Promise<bigint> {
      return BigInt((await incomingPayments.get(id))?.receivedAmount.value ?? '-1')
    },
  }
}

export type ReceivingWallet = ReturnType<typeof createReceivingWallet>

export interface PacketOptions {
  readonly amount: bigint
  /** The minimum that the packet requires the receiver to get. Default: the amount. */
  readonly asked?: bigint
  readonly sequence?: number
  readonly frames?: readonly Frame[]
  readonly expiresAt?: number
  /** Changes the encrypted data before the condition is derived from it. */
  readonly data?: (data: Buffer) => Buffer
  readonly condition?: Buffer
  readonly destination?: string
  readonly type?: Packet['ilpPacketType']
}

/** Builds a STREAM packet of a sender with these details. Derives the keys independently of the library. */
export function streamPacket(details: Details, options: PacketOptions): Buffer {
  const {
    amount,
    asked = amount,
    sequence = 1,
    frames = [],
    type = IlpPacketType.Prepare,
  } = options
  const packet = new Packet(sequence, type, asked.toString(), [...frames])
  const data = (options.data ?? ((data) => data))(encrypted(details, packet._serialize()))
  return serializeIlpPrepare({
    amount: amount.toString(),
    executionCondition: options.condition ?? sha256(fulfillmentOf(details, data)),
    expiresAt: new Date(options.expiresAt ?? Date.now() + 30_000),
    destination: options.destination ?? details.ilpAddress,
    data,
  })
}

function encrypted(details: Details, plain: Buffer): Buffer {
  const iv = randomBytes(12)
  const cipher = createCipheriv('aes-256-gcm', encryptionKeyOf(details), iv)
  const text = Buffer.concat([cipher.update(plain), cipher.final()])
  return Buffer.concat([iv, cipher.getAuthTag(), text])
}

export function fulfillmentOf(details: Details, data: Buffer): Buffer {
  return hmac(keyOf(details, 'ilp_stream_fulfillment'), data)
}

export function encryptionKeyOf(details: Details): Buffer {
  return keyOf(details, 'ilp_stream_encryption')
}

function keyOf({ sharedSecret }: Details, purpose: string): Buffer {
  return hmac(Buffer.from(sharedSecret, 'base64url'), purpose)
}

function hmac(key: Buffer, message: string | Buffer): Buffer {
  return createHmac('sha256', key).update(message).digest()
}

function sha256(bytes: Buffer): Buffer {
  return createHash('sha256').update(bytes).digest()
}

/** Describes a reply: `fulfill`, or the code of the reject. */
export function outcomeOf(reply: Uint8Array): string {
  const read = replyOf(reply)
  return isFulfill(read) ? 'fulfill' : read.code
}

export function replyOf(reply: Uint8Array): IlpReply {
  return deserializeIlpReply(Buffer.from(reply))
}

/** Returns the STREAM packet in an ILP Prepare. */
export function streamRequest(details: Details, prepare: Uint8Array): Promise<Packet> {
  const { data } = deserializeIlpPrepare(Buffer.from(prepare))
  return Packet.decryptAndDeserialize(encryptionKeyOf(details), data)
}

/** Returns the STREAM packet in a reply. */
export function streamReply(details: Details, reply: Uint8Array): Promise<Packet> {
  return Packet.decryptAndDeserialize(encryptionKeyOf(details), replyOf(reply).data)
}

export interface Network {
  /** Serves a handler on its own port, and returns a client for it. */
  serve(handle: IlpHandler): Promise<IlpHandler>
  close(): Promise<void>
}

/** Nodes that use ILP over HTTP on the loopback interface. */
export function createNetwork(): Network {
  const servers: Server[] = []
  return {
    async serve(handle) {
      const token = randomBytes(16).toString('hex')
      const server = createServer(toExpress(ilpOverHttp({ token, handle })))
      // A server that closes an idle connection while a busy client reuses it makes the outcome of a packet unknown.
      server.keepAliveTimeout = 0
      servers.push(server)
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
      const { port } = server.address() as AddressInfo
      return sendOverHttp({ url: `http://127.0.0.1:${port}/ilp`, token })
    },
    async close() {
      for (const server of servers) {
        server.closeAllConnections()
        await new Promise((resolve) => server.close(resolve))
      }
    },
  }
}
