import fc from 'fast-check'
import { deserializeIlpPrepare, type IlpReject, isReject, serializeIlpPrepare } from 'ilp-packet'
import {
  ConnectionAssetDetailsFrame,
  ConnectionNewAddressFrame,
  FrameType,
  IlpPacketType,
  StreamMoneyFrame,
} from 'ilp-protocol-stream/dist/src/packet.js'
import type { MayReceive } from 'open-payments-server'
import { manualClock } from 'open-payments-test-support/clock'
import {
  fulfillmentOf,
  ilpAddress,
  outcomeOf,
  type PacketOptions,
  replyOf,
  streamPacket,
  streamReply,
} from 'open-payments-test-support/ilp'
import type { WorldOptions } from 'open-payments-test-support/world'
import { describe, expect, test } from 'vitest'
import { packetBytesMax } from '../src/packet.js'
import { receivingWallet } from './claimed-receiver.js'

const usd = (value: string) => ({ value, assetCode: 'USD', assetScale: 2 })

/** A payment and its receiver, with a manual clock. */
async function setUp(
  request: Parameters<Wallet['createPayment']>[0] = {},
  resources: NonNullable<WorldOptions['resources']> = {},
) {
  const clock = manualClock()
  const wallet = receivingWallet({ clock, resources })
  const details = await wallet.createPayment(request)
  const receive = wallet.receiver({ now: clock.now })
  const packet = (options: PacketOptions) =>
    streamPacket(details, { expiresAt: clock.now() + 30_000, ...options })
  const send = async (options: PacketOptions) => outcomeOf(await receive(packet(options)))
  return { wallet, clock, details, receive, packet, send, received: () => wallet.received(details) }
}

type Wallet = ReturnType<typeof receivingWallet>

function rejectOf(reply: Uint8Array): IlpReject {
  const read = replyOf(reply)
  if (!isReject(read)) throw new Error('expected a reject')
  return read
}

describe('a valid packet', () => {
  test('is fulfilled with a value that only the receiver can compute, and credited', async () => {
    const { details, receive, packet, received } = await setUp()
    const bytes = packet({ amount: 700n, sequence: 9 })
    const reply = await receive(bytes)
    const { data } = deserializeIlpPrepare(bytes)
    expect(replyOf(reply)).toMatchObject({ fulfillment: fulfillmentOf(details, data) })
    const { sequence, ilpPacketType, prepareAmount } = await streamReply(details, reply)
    expect(sequence.toNumber()).toBe(9)
    expect(ilpPacketType).toBe(IlpPacketType.Fulfill)
    expect(prepareAmount.toNumber()).toBe(700)
    expect(await received()).toBe(700n)
  })

  test('may exceed the amount that it requests, and is credited in full', async () => {
    const { send, received } = await setUp()
    expect(await send({ amount: 700n, asked: 699n })).toBe('fulfill')
    expect(await received()).toBe(700n)
  })

  test('may be addressed below the address of the payment', async () => {
    const { details, send, received } = await setUp()
    const destination = `${details.ilpAddress}.a.b`
    expect(await send({ amount: 700n, destination })).toBe('fulfill')
    expect(await received()).toBe(700n)
  })

  test('gets the asset of the payment on request', async () => {
    const { details, receive, packet } = await setUp()
    const frames = [new ConnectionNewAddressFrame('')]
    const reply = await streamReply(details, await receive(packet({ amount: 0n, frames })))
    expect(reply.frames).toEqual([new ConnectionAssetDetailsFrame('USD', 2)])
    const silent = await streamReply(details, await receive(packet({ amount: 0n })))
    expect(silent.frames).toEqual([])
  })

  test.each([
    ['the amount of the payment', { incomingAmount: usd('900') }, '900'],
    ['no limit, if the payment has none', {}, '18446744073709551615'],
  ])('gets the limit of its stream: %s', async (_, request, receiveMax) => {
    const { details, receive, packet } = await setUp(request)
    const frames = [new StreamMoneyFrame(1, 1)]
    const { frames: replied } = await streamReply(
      details,
      await receive(packet({ amount: 7n, frames })),
    )
    expect(replied).toHaveLength(1)
    const [frame] = replied
    if (frame?.type !== FrameType.StreamMaxMoney) throw new Error('expected the limit')
    expect(frame.streamId.toNumber()).toBe(1)
    expect(frame.receiveMax.toString()).toBe(receiveMax)
    expect(frame.totalReceived.toString()).toBe('7')
  })

  test('is fulfilled without a credit if its amount is zero', async () => {
    const { send, received } = await setUp()
    expect(await send({ amount: 0n })).toBe('fulfill')
    expect(await received()).toBe(0n)
  })
})

describe('a packet is refused and not credited', () => {
  const random = Buffer.alloc(32, 1)
  const flipped = (data: Buffer) =>
    Buffer.from(data.map((byte, i) => (i === data.length - 1 ? byte ^ 1 : byte)))

  test.each<[string, string, Omit<PacketOptions, 'amount'>]>([
    ['its condition does not match its data', 'F99', { condition: random }],
    ['less arrives than it requests', 'F99', { asked: 701n }],
    ['its data is tampered with, although the condition matches', 'F06', { data: flipped }],
    ['its data is empty', 'F06', { data: () => Buffer.alloc(0) }],
    ['its data is shorter than a tag', 'F06', { data: (data) => data.subarray(0, 16) }],
    ['its data is a STREAM reply', 'F06', { type: IlpPacketType.Fulfill }],
    ['it is for another payment', 'F06', { destination: `${ilpAddress}.another` }],
    ['it is for the receiver itself', 'F02', { destination: ilpAddress }],
    ['it is for another receiver', 'F02', { destination: 'test.other.payment' }],
  ])('when %s', async (_, code, options) => {
    const { receive, packet, received } = await setUp()
    const { code: actual, triggeredBy } = rejectOf(
      await receive(packet({ amount: 700n, ...options })),
    )
    expect({ code: actual, triggeredBy }).toEqual({ code, triggeredBy: ilpAddress })
    expect(await received()).toBe(0n)
  })

  test('when the payment does not exist, although the details are valid', async () => {
    const { wallet, clock } = await setUp()
    const other = receivingWallet({ clock })
    await other.createPayment() // the first id is the same in both, because of the seed
    const details = await other.createPayment()
    const packet = streamPacket(details, { amount: 1n, expiresAt: clock.now() + 30_000 })
    expect(outcomeOf(await wallet.receiver({ now: clock.now })(packet))).toBe('F02')
  })

  test.each([
    ['has expired', 0, 'R02'],
    ['expired long ago', -86_400_000, 'R02'],
    ['expires before a reply could return', 400, 'R02'],
  ])('when it %s', async (_, leftMs, code) => {
    const { clock, send, received } = await setUp()
    expect(await send({ amount: 700n, expiresAt: clock.now() + leftMs })).toBe(code)
    expect(await received()).toBe(0n)
  })

  test('when the payment is complete, and the sender is asked to stop', async () => {
    const { wallet, details, receive, packet, received } = await setUp()
    await wallet.incomingPayments.complete(details.id)
    const reply = await receive(packet({ amount: 700n }))
    expect(outcomeOf(reply)).toBe('F99')
    expect((await streamReply(details, reply)).frames).toMatchObject([
      { type: FrameType.ConnectionClose, errorMessage: 'the payment is complete' },
    ])
    expect(await received()).toBe(0n)
  })

  async function isToldOfTheExpiry({
    details,
    receive,
    packet,
    received,
  }: Awaited<ReturnType<typeof setUp>>) {
    for (const condition of [undefined, random]) {
      const reply = await receive(packet({ amount: 700n, ...(condition && { condition }) }))
      expect(outcomeOf(reply)).toBe('F99')
      expect((await streamReply(details, reply)).frames).toMatchObject([
        { type: FrameType.ConnectionClose, errorMessage: 'the payment has expired' },
      ])
    }
    expect(await received()).toBe(0n)
  }

  test('when the payment has expired, and the sender is asked to stop', async () => {
    const payment = await setUp({ expiresAt: '2026-11-21T13:00:00Z' })
    payment.clock.advance(3_600_001)
    await isToldOfTheExpiry(payment)
  })

  test('when the host has cancelled the payment, and the sender is asked to stop at once', async () => {
    const payment = await setUp()
    await payment.wallet.incomingPayments.cancel(payment.details.id)
    await isToldOfTheExpiry(payment)
  })

  test('when the host does not allow it, and the sender is asked to stop but not told why', async () => {
    const mayReceive: MayReceive = ({ type }) =>
      type === 'creation'
        ? { ok: true }
        : { ok: false, refusal: 'payment_not_allowed', reason: 'on the list' }
    const { details, receive, packet, received } = await setUp({}, { policy: { mayReceive } })
    const reply = await receive(packet({ amount: 700n }))
    const text = 'the payment is not allowed'
    expect(rejectOf(reply)).toMatchObject({ code: 'F99', message: text })
    expect((await streamReply(details, reply)).frames).toMatchObject([
      { type: FrameType.ConnectionClose, errorMessage: text },
    ])
    expect(await received()).toBe(0n)
  })

  test('when the host reviews it, and the sender is asked to try again but not told why', async () => {
    const retryAt = manualClock().now() + 60_000
    const mayReceive: MayReceive = ({ type }) =>
      type === 'creation'
        ? { ok: true }
        : { ok: false, refusal: 'review_required', retryAt, reason: 'on the list' }
    const { details, receive, packet, received } = await setUp({}, { policy: { mayReceive } })
    const reply = await receive(packet({ amount: 700n }))
    const message = 'The payment cannot be received yet'
    expect(rejectOf(reply)).toMatchObject({ code: 'T99', message })
    expect((await streamReply(details, reply)).frames).toEqual([])
    expect(await received()).toBe(0n)
  })

  test('when the total would exceed 64 bits', async () => {
    const { send, received } = await setUp()
    expect(await send({ amount: 2n ** 64n - 1n })).toBe('fulfill')
    expect(await send({ amount: 1n })).toBe('F99')
    expect(await received()).toBe(2n ** 64n - 1n)
  })

  test('and a sender that probes the rate learns the received amount', async () => {
    const { details, receive, packet } = await setUp()
    const reply = await receive(packet({ amount: 700n, condition: random }))
    const { ilpPacketType, prepareAmount } = await streamReply(details, reply)
    expect(ilpPacketType).toBe(IlpPacketType.Reject)
    expect(prepareAmount.toNumber()).toBe(700)
  })
})

describe('bytes that are not a packet', () => {
  test.each([
    ['nothing', () => Buffer.alloc(0)],
    ['a truncated packet', (packet: Buffer) => packet.subarray(0, -1)],
    ['too many bytes', (packet: Buffer) => Buffer.concat([packet, Buffer.alloc(packetBytesMax)])],
    ['another type of packet', (packet: Buffer) => Buffer.concat([Buffer.of(99), packet])],
  ])('are rejected: %s', async (_, mangle) => {
    const { receive, packet, received } = await setUp()
    expect(outcomeOf(await receive(mangle(packet({ amount: 7n }))))).toBe('F01')
    expect(await received()).toBe(0n)
  })

  test('always get an ILP packet as reply, and are credited only if their data is intact', async () => {
    const { wallet, receive, packet, received } = await setUp()
    const valid = packet({ amount: 7n })
    const mutated = fc
      .tuple(fc.nat(valid.length - 1), fc.integer({ min: 1, max: 255 }))
      .map(([at, byte]) => valid.map((old, index) => (index === at ? old ^ byte : old)))
    let credited = 0n
    await fc.assert(
      fc.asyncProperty(fc.oneof(fc.uint8Array({ maxLength: 200 }), mutated), async (bytes) => {
        if (outcomeOf(await receive(bytes)) !== 'fulfill') return
        // Only the amount or the expiry changed, which connectors may change.
        const { amount, data } = deserializeIlpPrepare(Buffer.from(bytes))
        expect(data).toEqual(deserializeIlpPrepare(valid).data)
        credited ||= BigInt(amount)
      }),
      { numRuns: 300 },
    )
    expect(wallet.errors).toEqual([])
    expect(await received()).toBe(credited)
  })
})

describe('a packet that arrives more than once', () => {
  test('is fulfilled each time and credited once', async () => {
    const { wallet, clock, receive, packet, received } = await setUp()
    const bytes = packet({ amount: 700n })
    const first = await receive(bytes)
    const restarted = wallet.receiver({ now: clock.now })
    for (const again of [receive, restarted]) {
      const reply = await again(bytes)
      expect(replyOf(reply)).toMatchObject({ fulfillment: fulfillmentIn(first) })
    }
    expect(await received()).toBe(700n)
  })

  test('is fulfilled also if it completed the payment', async () => {
    const { receive, packet, received } = await setUp({ incomingAmount: usd('700') })
    const bytes = packet({ amount: 700n })
    expect(outcomeOf(await receive(bytes))).toBe('fulfill')
    expect(outcomeOf(await receive(bytes))).toBe('fulfill')
    expect(outcomeOf(await receive(packet({ amount: 1n })))).toBe('F99')
    expect(await received()).toBe(700n)
  })

  test('is not credited again when its amount has changed, and its outcome is unknown to the sender', async () => {
    const { receive, packet, received } = await setUp()
    const bytes = packet({ amount: 700n, asked: 1n })
    await receive(bytes)
    const more = serializeIlpPrepare({ ...deserializeIlpPrepare(bytes), amount: '800' })
    expect(outcomeOf(await receive(more))).toBe('R00')
    expect(await received()).toBe(700n)
  })
})

describe('when crediting a packet fails', () => {
  /** Credits packets, or fails before or after the credit, as listed. */
  async function failing(...fates: readonly ('before' | 'after')[]) {
    const { wallet, clock, packet, received } = await setUp()
    const { get, receive } = wallet.incomingPayments
    const remaining = [...fates]
    const errors: unknown[] = []
    const handle = wallet.receiver({
      now: clock.now,
      incomingPayments: {
        get,
        async receive(...arrived) {
          const fate = remaining.shift()
          const result = fate === 'before' ? undefined : await receive(...arrived)
          if (fate !== undefined || result === undefined) throw new Error('the connection was lost')
          return result
        },
      },
      onError: (error) => void errors.push(error),
    })
    return { handle, packet, received, errors }
  }

  test.each(['before', 'after'] as const)(
    'once, %s it was counted, the receiver retries',
    async (fate) => {
      const { handle, packet, received, errors } = await failing(fate)
      expect(outcomeOf(await handle(packet({ amount: 700n })))).toBe('fulfill')
      expect(await received()).toBe(700n)
      expect(errors).toEqual([])
    },
  )

  test.each(['before', 'after'] as const)(
    'repeatedly, %s it was counted, a repeat of the packet is fulfilled and counts once',
    async (fate) => {
      const { handle, packet, received, errors } = await failing(fate, fate, fate)
      const bytes = packet({ amount: 700n })
      expect(outcomeOf(await handle(bytes))).toBe('R00')
      expect(errors).toHaveLength(1)
      expect(outcomeOf(await handle(bytes))).toBe('fulfill')
      expect(await received()).toBe(700n)
    },
  )

  test('because the payment cannot be read, the packet is rejected', async () => {
    const { wallet, clock, packet } = await setUp()
    const errors: unknown[] = []
    const failure = new Error('the database is down')
    const handle = wallet.receiver({
      now: clock.now,
      incomingPayments: { ...wallet.incomingPayments, get: () => Promise.reject(failure) },
      onError: (error) => void errors.push(error),
    })
    expect(outcomeOf(await handle(packet({ amount: 700n })))).toBe('T03')
    expect(errors).toEqual([failure])
  })
})

function fulfillmentIn(reply: Uint8Array): Buffer {
  const read = replyOf(reply)
  if (isReject(read)) throw new Error(`expected a fulfill, not ${read.code}`)
  return read.fulfillment
}
