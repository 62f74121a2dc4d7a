import { randomBytes } from 'node:crypto'
import { isFulfill, serializeIlpPrepare, serializeIlpReply } from 'ilp-packet'
import {
  ConnectionCloseFrame,
  ErrorCode,
  IlpPacketType,
  Packet,
} from 'ilp-protocol-stream/dist/src/packet.js'
import type { Asset } from 'open-payments-server'
import {
  createNetwork,
  type Details,
  encryptionKeyOf,
  ilpAddress,
  type ReceivingWallet,
  replyOf,
  streamReply,
  streamRequest,
} from 'open-payments-test-support/ilp'
import { carol } from 'open-payments-test-support/world'
import { afterAll, describe, expect, test } from 'vitest'
import {
  fulfills,
  type IlpHandler,
  pair,
  readPrepare,
  readReply,
  rejectsOf,
  sha256,
  streamFulfillment,
} from '../src/packet.js'
import { type PayOverIlpOptions, payOverIlp, type Sent } from '../src/sender.js'
import { receivingWallet } from './claimed-receiver.js'
import { kindsOfReceivers } from './stream-receivers.js'

const usd: Asset = { assetCode: 'USD', assetScale: 2 }
const eur: Asset = { assetCode: 'EUR', assetScale: 2 }
const nothing = { sent: 0n, delivered: 0n, packets: 0, unknown: 0n }
const network = createNetwork()
afterAll(network.close)

/** A sender, a peer that exchanges, and a receiver, each behind HTTP on its own port. */
async function path(receiver: IlpHandler, { to = usd, packetAmountMax = 250n } = {}) {
  const next = await network.serve(receiver)
  const reject = rejectsOf('test.peer')
  const [numerator, denominator] = to === usd ? [1n, 1n] : [9_137n, 10_000n]
  let [owed, owing] = [0n, 0n]
  const send = await network.serve(async (bytes) => {
    const packet = readPrepare(bytes)
    if (packet === undefined) return reject('F01', 'it is not a packet')
    const amount = BigInt(packet.amount)
    if (amount > packetAmountMax) {
      return reject('F08', 'it is too large', pair(amount, packetAmountMax))
    }
    const converted = (amount * numerator) / denominator
    if (amount > 0n && converted === 0n) return reject('R01', 'it is too small')
    const reply = await next(serializeIlpPrepare({ ...packet, amount: `${converted}` }))
    if (!fulfills(readReply(reply), packet)) return reply
    owed += amount
    owing += converted
    return reply
  })
  return { send, owed: async () => owed, owing: async () => owing }
}

function pay(
  send: IlpHandler,
  details: Details,
  amount: PayOverIlpOptions['amount'],
  { asset = usd, ...more }: Partial<PayOverIlpOptions> & { readonly asset?: Asset } = {},
) {
  const maxSourceAmount = 'deliver' in amount ? amount.deliver : amount.debit
  return payOverIlp({ send, receiver: { ...details, asset }, amount, maxSourceAmount, ...more })
}

describe('a payment over ILP', () => {
  test('arrives in as many packets as its amount needs', async () => {
    const wallet = receivingWallet()
    const details = await wallet.createPayment()
    const { send, owed, owing } = await path(wallet.receiver())
    const seen: bigint[] = []
    const onProgress = ({ sent }: Sent) => void seen.push(sent)
    const result = await pay(send, details, { debit: 1_000n }, { onProgress })
    expect(result).toEqual({ ok: true, sent: 1_000n, delivered: 1_000n, packets: 4, unknown: 0n })
    expect(seen).toEqual([250n, 500n, 750n, 1_000n])
    expect(await wallet.payment(details)).toMatchObject({ received: '1000', completed: false })
    expect(await owed()).toBe(1_000n)
    expect(await owing()).toBe(1_000n)
  })

  test('completes an incoming payment with exactly its amount', async () => {
    const wallet = receivingWallet()
    const incomingAmount = { value: '1234', ...usd }
    const details = await wallet.createPayment({ incomingAmount })
    const { send } = await path(wallet.receiver())
    const result = await pay(send, details, { deliver: 1_234n })
    expect(result).toEqual({ ok: true, sent: 1_234n, delivered: 1_234n, packets: 5, unknown: 0n })
    expect(await wallet.payment(details)).toMatchObject({ received: '1234', completed: true })
  })

  test('is converted, with each packet rounded down', async () => {
    const wallet = receivingWallet()
    const details = await wallet.createPayment({}, carol)
    const { send, owing } = await path(wallet.receiver(), { to: eur })
    const result = await pay(send, details, { debit: 1_000n }, { asset: eur })
    // 250 * 0.9137 is 228.425
    expect(result).toEqual({ ok: true, sent: 1_000n, delivered: 912n, packets: 4, unknown: 0n })
    expect(await wallet.received(details)).toBe(912n)
    expect(await owing()).toBe(912n)
  })

  test('completes an incoming payment in another currency, at most a unit above its amount', async () => {
    const wallet = receivingWallet()
    const incomingAmount = { value: '1000', ...eur }
    const details = await wallet.createPayment({ incomingAmount }, carol)
    const { send, owed } = await path(wallet.receiver(), { to: eur })
    const more = { asset: eur, maxSourceAmount: 1_110n }
    const result = await pay(send, details, { deliver: 1_000n }, more)
    expect(result.ok).toBe(true)
    expect([1_000n, 1_001n]).toContain(result.delivered)
    const received = result.delivered.toString()
    expect(await wallet.payment(details)).toMatchObject({ received, completed: true })
    expect(await owed()).toBe(result.sent)
    expect(result.sent).toBeGreaterThanOrEqual(1_095n) // 1000 / 0.9137 is 1094.45
    expect(result.sent).toBeLessThanOrEqual(1_110n)
  })

  test('sends nothing when the rate is below the minimum', async () => {
    const wallet = receivingWallet()
    const details = await wallet.createPayment({}, carol)
    const { send, owed } = await path(wallet.receiver(), { to: eur })
    const more = { asset: eur, minRate: { numerator: 92n, denominator: 100n } }
    const result = await pay(send, details, { debit: 1_000n }, more)
    expect(result).toEqual({ ok: false, problem: 'InsufficientExchangeRate', ...nothing })
    expect(await owed()).toBe(0n)
  })

  test('sends nothing to a receiver whose asset differs from the incoming payment', async () => {
    const wallet = receivingWallet()
    const details = await wallet.createPayment({}, carol)
    const { send } = await path(wallet.receiver())
    const result = await pay(send, details, { debit: 1_000n })
    expect(result).toEqual({ ok: false, problem: 'AssetMismatch', ...nothing })
    expect(await wallet.received(details)).toBe(0n)
  })

  test('sends nothing to a payment that does not exist', async () => {
    const wallet = receivingWallet()
    const details = { ...(await wallet.createPayment()), ilpAddress: `${ilpAddress}.unknown` }
    const { send } = await path(wallet.receiver())
    const result = await pay(send, details, { debit: 1_000n })
    expect(result).toEqual({ ok: false, problem: 'EstablishmentFailed', ...nothing })
  })

  test('sends nothing to a payment that is complete', async () => {
    const wallet = receivingWallet()
    const details = await wallet.createPayment()
    await wallet.incomingPayments.complete(details.id)
    const { send } = await path(wallet.receiver())
    const result = await pay(send, details, { debit: 1_000n })
    expect(result).toEqual({ ok: false, problem: 'ClosedByReceiver', ...nothing })
  })

  test('reports how much arrived if the payment is completed before the end', async () => {
    const wallet = receivingWallet()
    const details = await wallet.createPayment()
    const receiver = wallet.receiver()
    let packets = 0
    let completion: Promise<unknown> | undefined
    const { send } = await path(async (packet) => {
      const { prepareAmount } = await streamRequest(details, packet)
      if (prepareAmount.greaterThan(0) && ++packets > 2) {
        completion ??= wallet.incomingPayments.complete(details.id)
        await completion
      }
      return receiver(packet)
    })
    const result = await pay(send, details, { debit: 5_000n })
    const sent = { sent: 500n, delivered: 500n, packets: 2, unknown: 0n }
    expect(result).toEqual({ ok: false, problem: 'ClosedByReceiver', ...sent })
    expect(await wallet.received(details)).toBe(500n)
  })

  test('continues after it was aborted', async () => {
    const wallet = receivingWallet()
    const incomingAmount = { value: '20000', ...usd }
    const details = await wallet.createPayment({ incomingAmount })
    const { send } = await path(wallet.receiver())
    const { signal, abort } = abortable()
    const first = await pay(send, details, { deliver: 20_000n }, { signal, onProgress: abort })
    expect(first).toMatchObject({ ok: false, problem: 'Aborted' })
    expect(first.delivered).toBeGreaterThanOrEqual(250n)
    // The sender has at most 20 packets of 250 in flight.
    expect(first.delivered).toBeLessThan(20_000n)
    expect(await wallet.received(details)).toBe(first.delivered)

    const rest = 20_000n - first.delivered
    expect(await pay(send, details, { deliver: rest })).toMatchObject({ ok: true, delivered: rest })
    expect(await wallet.payment(details)).toMatchObject({ received: '20000', completed: true })
  })

  test('is retried while the receiver fails temporarily', async () => {
    const wallet = receivingWallet()
    const details = await wallet.createPayment()
    let failures = 0
    const receive: ReceivingWallet['incomingPayments']['receive'] = (...arrived) => {
      if (++failures <= 4) throw new Error('the database is down')
      return wallet.incomingPayments.receive(...arrived)
    }
    const incomingPayments = { get: wallet.incomingPayments.get, receive }
    const { send } = await path(wallet.receiver({ incomingPayments }))
    const result = await pay(send, details, { debit: 1_000n })
    expect(result).toMatchObject({ ok: true, sent: 1_000n, delivered: 1_000n })
    expect(await wallet.received(details)).toBe(1_000n)
  })
})

describe.each(kindsOfReceivers)('a receiver of another wallet: %s', (_, receivers) => {
  test.each(['1', '100', '2500', '345', '100000'])('is paid exactly %s cents', async (value) => {
    const wallet = receivingWallet({}, receivers)
    const details = await wallet.createPayment({ incomingAmount: { value, ...usd } })
    const { send, owed, owing } = await path(wallet.receiver(), { packetAmountMax: 5_000n })
    const result = await pay(send, details, { deliver: BigInt(value) })
    expect(result).toMatchObject({ ok: true, sent: BigInt(value), delivered: BigInt(value) })
    expect(await wallet.payment(details)).toMatchObject({ received: value, completed: true })
    expect([await owed(), await owing()]).toEqual([BigInt(value), BigInt(value)])
  })

  test('is paid in its currency, with each packet rounded down', async () => {
    const wallet = receivingWallet({}, receivers)
    const details = await wallet.createPayment({}, carol)
    const { send } = await path(wallet.receiver(), { to: eur })
    const result = await pay(send, details, { debit: 1_000n }, { asset: eur })
    expect(result).toEqual({ ok: true, sent: 1_000n, delivered: 912n, packets: 4, unknown: 0n })
    expect(await wallet.received(details)).toBe(912n)
  })

  test('gets nothing once it is complete', async () => {
    const wallet = receivingWallet({}, receivers)
    const details = await wallet.createPayment()
    await wallet.incomingPayments.complete(details.id)
    const { send, owed } = await path(wallet.receiver())
    const result = await pay(send, details, { debit: 1_000n })
    expect(result).toEqual({ ok: false, problem: 'ClosedByReceiver', ...nothing })
    expect(await owed()).toBe(0n)
  })
})

describe('a receiver that answers under another code', () => {
  /** Answers as the receiver, with these codes for packets that no receiver can fulfill, and for too little. */
  function answering(receiver: IlpHandler, details: Details, codes: Codes): IlpHandler {
    return async (packet) => {
      const reply = readReply(await receiver(packet))
      if (reply === undefined) throw new Error('it is no reply')
      if (isFulfill(reply)) return serializeIlpReply(reply)
      const prepare = readPrepare(packet)
      if (prepare === undefined) throw new Error('it is no packet')
      const fulfillment = streamFulfillment(
        Buffer.from(details.sharedSecret, 'base64url'),
        prepare.data,
      )
      const isProbe = !sha256(fulfillment).equals(prepare.executionCondition)
      const code = isProbe ? codes.probe : codes.tooLittle
      if (codes.close === undefined) return serializeIlpReply({ ...reply, code })
      const key = encryptionKeyOf(details)
      const answer = await Packet.decryptAndDeserialize(key, reply.data)
      const close = new ConnectionCloseFrame(ErrorCode.NoError, '')
      const { sequence, ilpPacketType, prepareAmount } = answer
      const frames = [...answer.frames, close]
      const closing = new Packet(sequence, ilpPacketType, prepareAmount.toString(), frames)
      return serializeIlpReply({ ...reply, code, data: await closing.serializeAndEncrypt(key) })
    }
  }

  interface Codes {
    readonly probe: 'F04' | 'F05' | 'F99'
    readonly tooLittle: 'F04' | 'F05' | 'F99'
    /** Whether each of its rejects closes the connection. */
    readonly close?: true
  }

  const codes: readonly Codes[] = [
    { probe: 'F99', tooLittle: 'F99' },
    { probe: 'F05', tooLittle: 'F04' },
    { probe: 'F04', tooLittle: 'F05' },
  ]
  const amounts = ['1', '100', '2500', '345']

  test.each(codes.flatMap((each) => amounts.map((value) => ({ ...each, value }))))(
    'is paid exactly: $value, $probe to a probe and $tooLittle to too little',
    async ({ value, ...each }) => {
      const wallet = receivingWallet()
      const details = await wallet.createPayment({ incomingAmount: { value, ...usd } })
      const receiver = answering(wallet.receiver(), details, each)
      const { send } = await path(receiver)
      const result = await pay(send, details, { deliver: BigInt(value) })
      expect(result).toMatchObject({ ok: true, sent: BigInt(value), delivered: BigInt(value) })
      expect(await wallet.payment(details)).toMatchObject({ received: value, completed: true })
    },
  )

  test.each(codes)('gets nothing if it closes the connection with $probe', async (each) => {
    const wallet = receivingWallet()
    const details = await wallet.createPayment({ incomingAmount: { value: '345', ...usd } })
    const receiver = answering(wallet.receiver(), details, { ...each, close: true })
    const { send } = await path(receiver)
    const result = await pay(send, details, { deliver: 345n })
    expect(result).toEqual({ ok: false, problem: 'ClosedByReceiver', ...nothing })
    expect(await wallet.received(details)).toBe(0n)
  })

  /** Encrypts an answer with a key, and addresses it to a packet. */
  async function answerWith(
    key: Buffer,
    type: Packet['ilpPacketType'],
    sequence: number,
  ): Promise<Buffer> {
    return new Packet(sequence, type, '100', []).serializeAndEncrypt(key)
  }

  const data: readonly [string, (details: Details) => Buffer | Promise<Buffer>][] = [
    ['no data', () => Buffer.alloc(0)],
    ['forged data', () => randomBytes(80)],
    ['data of another key', () => answerWith(randomBytes(32), IlpPacketType.Reject, 1)],
    [
      'data of a STREAM packet that is no answer',
      (details) => answerWith(encryptionKeyOf(details), IlpPacketType.Prepare, 1),
    ],
    [
      'data of an answer to another packet',
      (details) => answerWith(encryptionKeyOf(details), IlpPacketType.Reject, 999_999),
    ],
  ]

  test.each(
    (['F04', 'F05', 'F99'] as const).flatMap((code) =>
      data.map(([what, make]) => ({ code, what, make })),
    ),
  )('is not meant by $code with $what: the path has failed', async ({ code, make }) => {
    const wallet = receivingWallet()
    const details = await wallet.createPayment()
    const receiver = wallet.receiver()
    const { send, owed } = await path(async (packet) => {
      const reply = await receiver(packet)
      if (isFulfill(replyOf(reply)) && readPrepare(packet)?.amount === '0') return reply
      return rejectsOf('test.other')(code, 'no', await make(details))
    })
    const result = await pay(send, details, { deliver: 100n })
    expect(result).toMatchObject({ ok: false, ...nothing })
    expect(await wallet.received(details)).toBe(0n)
    expect(await owed()).toBe(0n)
  })

  test('ends the payment if it fulfills a packet without its data, and the packet counts', async () => {
    const wallet = receivingWallet()
    const details = await wallet.createPayment({ incomingAmount: { value: '1000', ...usd } })
    const receiver = wallet.receiver()
    const { send, owed } = await path(async (packet) => {
      const reply = replyOf(await receiver(packet))
      const isMoney = isFulfill(reply) && readPrepare(packet)?.amount !== '0'
      return serializeIlpReply(isMoney ? { ...reply, data: Buffer.alloc(0) } : reply)
    })
    const result = await pay(send, details, { deliver: 1_000n })
    expect(result).toMatchObject({ ok: false, problem: 'ReceiverProtocolViolation' })
    const received = await wallet.received(details)
    expect(received).toBeGreaterThan(0n)
    expect([result.sent, await owed()]).toEqual([received, received])
    // Without data, what arrived is what the packet asked for: the last one asks for a unit less.
    expect(received - result.delivered).toBeLessThanOrEqual(1n)
  })
})

describe('a dishonest receiver', () => {
  /** Fulfills and credits packets, but reports another amount. */
  async function liar(said: (amount: bigint) => bigint | Promise<bigint>) {
    const wallet = receivingWallet()
    const details = await wallet.createPayment()
    const honest = wallet.receiver()
    const lying: IlpHandler = async (packet) => {
      const reply = replyOf(await honest(packet))
      if (!isFulfill(reply)) return serializeIlpReply(reply)
      const read = await streamReply(details, serializeIlpReply(reply))
      const amount = await said(BigInt(read.prepareAmount.toString()))
      const told = new Packet(read.sequence, read.ilpPacketType, amount.toString(), read.frames)
      const data = await told.serializeAndEncrypt(encryptionKeyOf(details))
      return serializeIlpReply({ ...reply, data })
    }
    const { send, owed } = await path(lying)
    return { details, send, owed }
  }

  test('gets at most the maximum if it understates what arrived', async () => {
    const { details, send, owed } = await liar((amount) => amount / 2n)
    const result = await pay(send, details, { deliver: 1_000n })
    expect(result).toMatchObject({ ok: false, problem: 'ReceiverProtocolViolation' })
    expect(result.sent).toBe(await owed())
    expect(result.sent).toBeLessThanOrEqual(1_000n)
    // The minimum, which its fulfillment confirms. For the packet that completes the payment, it is a unit less.
    expect(result.sent - result.delivered).toBeLessThanOrEqual(result.sent === 1_000n ? 1n : 0n)
  })

  test('gets exactly the maximum if it understates what arrived after the last packet left', async () => {
    let arrived = 0
    const { details, send, owed } = await liar(async (amount) => {
      arrived += 1
      await expect.poll(() => arrived).toBe(4)
      return amount / 2n
    })
    const result = await pay(send, details, { deliver: 1_000n })
    const totals = { sent: 1_000n, delivered: 999n, packets: 4, unknown: 0n }
    expect(result).toEqual({ ok: false, problem: 'ReceiverProtocolViolation', ...totals })
    expect(await owed()).toBe(1_000n)
  })

  test('gets less if it overstates what arrived', async () => {
    const { details, send, owed } = await liar((amount) => amount * 3n)
    const result = await pay(send, details, { deliver: 1_000n })
    expect(result.ok).toBe(true)
    expect(result.sent).toBe(await owed())
    expect(result.sent).toBeLessThanOrEqual(1_000n)
  })
})

function abortable() {
  const controller = new AbortController()
  return { signal: controller.signal, abort: () => controller.abort() }
}
