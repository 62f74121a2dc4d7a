import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { isFulfill, serializeIlpFulfill, serializeIlpReject, serializeIlpReply } from 'ilp-packet'
import { Packet } from 'ilp-protocol-stream/dist/src/packet.js'
import { describe, expect, test } from 'vitest'
import { createConnector, memoryBalance } from '../../examples/ilp/connector.js'
import { type FoundReceiver, receiverFrom } from '../../examples/ilp/receivers.js'
import { paymentSender } from '../../examples/ilp/sending.js'
import { memorySendingBook } from '../../examples/ilp/sending-book.js'
import { type IlpHandler, readPrepare } from '../../packages/ilp/src/packet.js'
import type { Rate } from '../../packages/ilp/src/rail.js'
import type { Amount, OutgoingPayment } from '../../src/index.js'
import { manualClock } from '../support/clock.js'
import {
  createReceivingWallet,
  encryptionKeyOf,
  ilpAddress,
  outcomeOf,
  replyOf,
  streamReply,
  streamRequest,
} from '../support/ilp.js'
import { runs } from '../support/runs.js'
import {
  createSpendingWorld,
  euroReceiver,
  grantToPay,
  outgoingItem,
  pay,
  usd,
} from '../support/spending.js'
import { bob, carol } from '../support/world.js'

const asset = { assetCode: 'USD', assetScale: 2 }

function rejected(code: 'R00' | 'T00' | 'F00'): Uint8Array {
  return serializeIlpReject({ code, triggeredBy: 'test.line', message: '', data: Buffer.alloc(0) })
}

/**
 * Forwards a packet or not. `arrived` is the number of packets that the receiver fulfilled before this one.
 */
type Line = (
  arrived: number,
  forward: () => Promise<Uint8Array>,
  asksForMoney: boolean,
) => Promise<Uint8Array>

const goodLine: Line = (_, forward) => forward()

/**
 * A paying wallet, a receiving wallet, and the connection between their connectors, which carries `packetMax` in each
 * packet. Without `countsRepeats`, the receiving wallet counts each packet that it gets, also one that it got before.
 */
async function opened({ countsRepeats = true, packetMax = 250n } = {}) {
  const clock = manualClock(Date.now())
  const paying = createSpendingWorld({ clock })
  const receiving = createReceivingWallet()
  const client = paying.client()
  const { token } = await grantToPay(paying, client, [
    outgoingItem({ debitAmount: usd(1_000_000) }),
  ])
  const { outgoingPayments, events } = paying.resources
  const book = memorySendingBook()
  const balances = { here: memoryBalance(), there: memoryBalance() }
  const rate: { now: Rate } = { now: { numerator: 1n, denominator: 1n } }
  const unused: IlpHandler = () => Promise.reject(new Error('it receives no packets'))
  const par = () => ({ numerator: 1n, denominator: 1n })

  /** The receiving wallet, in a new process. `interrupt` can end it before it has counted a packet. */
  const there = (interrupt = () => {}) => {
    if (!countsRepeats) return countingEach(interrupt)
    const { add, ...others } = balances.there
    const balance = {
      ...others,
      async add(...entry: Parameters<typeof add>) {
        interrupt()
        return add(...entry)
      },
    }
    return createConnector({
      ilpAddress: 'test.there',
      peers: [
        { ilpAddress: 'test.here', asset, balance, send: unused },
        { ilpAddress, asset, send: receiving.receiver(), countsRepeats: true },
      ],
      rateOf: () => rate.now,
    }).from('test.here')
  }
  function countingEach(interrupt: () => void): IlpHandler {
    const { get, receive } = receiving.incomingPayments
    const receiver = receiving.receiver({
      incomingPayments: {
        get,
        async receive(id, funds) {
          interrupt()
          return receive(id, { ...funds, transferId: randomUUID() })
        },
      },
    })
    return async (packet) => {
      const reply = await receiver(packet)
      const amount = BigInt(readPrepare(packet)?.amount ?? 0)
      if (outcomeOf(reply) === 'fulfill') await balances.there.add(randomUUID(), amount)
      return reply
    }
  }
  /** The connector of the paying wallet, in a new process. */
  const here = (send: IlpHandler) =>
    createConnector({
      ilpAddress: 'test.here',
      peers: [
        { ilpAddress: 'test.here.usd', asset, send: unused, packetAmountMax: packetMax },
        { ilpAddress, asset, balance: balances.here, send, countsRepeats },
      ],
      rateOf: par,
    })

  /** Creates a payment to a new incoming payment in the other wallet, which asks for an amount or is open. */
  async function created(value: string, account = bob, incomingAmount?: Amount) {
    const asked = incomingAmount === undefined ? {} : { incomingAmount }
    const details = await receiving.createPayment(asked, account)
    const receiver = account === carol ? { incomingPayment: euroReceiver } : {}
    const { body } = await pay(client, token, value, receiver)
    const id = outgoingPayments.idOf(body.id) ?? ''

    /** The receiver as its resource server returns it. */
    async function live(): Promise<FoundReceiver> {
      const payment = await receiving.payment(details)
      const receivedAmount = { ...payment.asset, value: payment.received }
      const found = receiverFrom({ ...payment, receivedAmount }, clock.now())
      return found.ok ? { ...found, receiver: { ...found.receiver, ilp: details } } : found
    }

    /** A process that receives the payment's event, and the connection that it uses. */
    function process(line: Line = goodLine, receiver?: FoundReceiver, end = there()) {
      const stopping = new AbortController()
      let arrived = 0
      const counted = async (packet: Uint8Array) => {
        const reply = await end(packet)
        if (outcomeOf(reply) === 'fulfill' && readPrepare(packet)?.amount !== '0') arrived += 1
        return reply
      }
      const connector = here(async (packet) => {
        const { prepareAmount } = await streamRequest(details, packet)
        return line(arrived, () => counted(packet), prepareAmount.greaterThan(0))
      })
      const options = {
        resources: paying.resources,
        receivers: async () => receiver ?? live(),
        rail: {
          from: () => connector.from('test.here.usd'),
          probesFrom: () => connector.probesFrom('test.here.usd'),
          countsRepeats: () => countsRepeats,
          rateOf: () => rate.now,
        },
        book,
        now: clock.now,
      }
      const handler = paymentSender(options)(stopping.signal)
      return {
        stop: () => stopping.abort(),
        drain: () => events.drain(handler, { leaseMs: 60_000, skewMaxMs: 0 }),
      }
    }

    async function status() {
      const { state, sent, delivered, failure } = (await outgoingPayments.getRecord(
        id,
      )) as OutgoingPayment
      const received = `${await receiving.received(details)}`
      return { state, sent, delivered, received, ...(failure && { failure }) }
    }
    return { id, details, process, status }
  }
  return { clock, paying, receiving, client, token, book, balances, rate, there, created }
}

const losingMoney: Line = async (_, forward, asksForMoney) =>
  asksForMoney ? rejected('R00') : forward()

/** Delivers packets, and loses the reply after a number of them. */
const losingReply =
  (after: number, code: 'R00' | 'T00' = 'R00'): Line =>
  async (arrived, forward) => {
    const reply = await forward()
    return arrived === after && outcomeOf(reply) === 'fulfill' ? rejected(code) : reply
  }

/** What interrupts a payment, and after how many packets that arrived. */
const faults = {
  after: fc.nat(4),
  how: fc.constantFrom(
    'lost reply',
    'lost packet',
    'refused',
    'stopped',
    'crashed before it left',
    'crashed before its reply',
    'the peer crashed',
  ),
}

interface Fault {
  readonly after: number
  readonly how: string
  /** Whether it happens to all further packets with money, or to one packet. */
  readonly many: boolean
}

/** A line and an interruption of the other wallet, and when the paying process has crashed. */
function faulty({ after, how, many }: Fault, stop: () => void) {
  let done = false
  let crash = () => {}
  const crashed = new Promise<void>((resolve) => {
    crash = resolve
  })
  const hang = () => {
    crash()
    return new Promise<never>(() => {})
  }
  const interrupt = () => {
    if (how !== 'the peer crashed' || (done && !many)) return
    done = true
    throw new Error('the peer crashed')
  }
  const line: Line = async (arrived, forward, asksForMoney) => {
    const isHit = many ? asksForMoney && arrived >= after : !done && arrived === after
    if (how === 'the peer crashed' || !isHit) return forward()
    done = true
    if (how === 'stopped') stop()
    if (how === 'lost packet') return rejected('R00')
    if (how === 'refused') return rejected('F00')
    if (how === 'crashed before it left') return hang()
    const reply = await forward()
    if (how === 'crashed before its reply') return hang()
    return how === 'lost reply' ? rejected('R00') : reply
  }
  return { line, interrupt, crashed }
}

describe('a payment to another wallet', () => {
  test('is sent in packets, and leaves no record behind', async () => {
    const { created, book } = await opened()
    const { id, process, status } = await created('1000')
    expect(await process().drain()).toMatchObject({ failed: 0 })
    const all = { sent: '1000', delivered: '1000', received: '1000' }
    expect(await status()).toEqual({ state: 'completed', ...all })
    expect(await book.take(id, 'writer')).toEqual({ sent: 0n, delivered: 0n, pending: [] })
    expect(await process().drain()).toMatchObject({ failed: 0 })
    expect(await status()).toMatchObject(all)
  })

  test.each(['R00', 'T00'] as const)(
    'repeats a packet whose outcome is unknown (%s), which counts once',
    async (code) => {
      const { created, clock, balances } = await opened()
      const { process, status } = await created('1000')
      expect(await process(losingReply(2, code)).drain()).toMatchObject({ failed: 1 })
      const { state, delivered, received } = await status()
      expect(state).toBe('begun')
      expect(BigInt(received) - BigInt(delivered)).toBeGreaterThan(0n)
      clock.advance(1_000)
      expect(await process().drain()).toMatchObject({ failed: 0 })
      const all = { sent: '1000', delivered: '1000', received: '1000' }
      expect(await status()).toEqual({ state: 'completed', ...all })
      expect([await balances.here.value(), await balances.there.value()]).toEqual([-1_000n, 1_000n])
    },
  )

  test('is over if its only packet, whose reply was lost, completed the receiver', async () => {
    const { created, clock, receiving } = await opened()
    const { process, status, details } = await created('200')
    await process(losingReply(0)).drain()
    await receiving.incomingPayments.complete(details.id)
    clock.advance(1_000)
    // The other wallet no longer says how to pay it.
    await process(goodLine, { ok: false, reason: 'complete' }).drain()
    const all = { sent: '200', delivered: '200', received: '200' }
    expect(await status()).toEqual({ state: 'completed', ...all })
  })

  test('counts a packet as sent if its outcome stays unknown for half an hour', async () => {
    const { created, clock } = await opened()
    const { process, status } = await created('200')
    for (let attempt = 1; attempt < 12; attempt++) {
      expect(await process(losingMoney).drain()).toMatchObject({ failed: 1 })
      expect(await status()).toMatchObject({ state: 'begun', sent: '0' })
      clock.advance(3_600_000)
    }
    expect(await process(losingMoney).drain()).toMatchObject({ failed: 0 })
    const debited = { sent: '200', delivered: '0', received: '0' }
    expect(await status()).toEqual({ state: 'completed', ...debited })
  })

  test('believes the reject of a repeated packet only after the first packet has expired', async () => {
    const { created, clock, receiving } = await opened()
    const { process, status, details } = await created('200')
    expect(await process(losingMoney).drain()).toMatchObject({ failed: 1 })
    await receiving.incomingPayments.complete(details.id)
    const complete = { ok: false, reason: 'it is complete' } as const
    clock.advance(1_000)
    expect(await process(goodLine, complete).drain()).toMatchObject({ failed: 1 })
    expect(await status()).toMatchObject({ state: 'begun' })
    clock.advance(30_000)
    expect(await process(goodLine, complete).drain()).toMatchObject({ failed: 0 })
    const nothing = { sent: '0', delivered: '0', received: '0' }
    expect(await status()).toEqual({ state: 'failed', failure: complete.reason, ...nothing })
  })

  test('continues in another process', async () => {
    const { created, clock } = await opened()
    const { process, status } = await created('1000')
    const first = process(async (arrived, forward) => {
      if (arrived === 2) first.stop()
      return forward()
    })
    expect(await first.drain()).toMatchObject({ failed: 1 })
    const before = await status()
    expect(before.state).toBe('begun')
    expect(BigInt(before.received)).toBeLessThan(1_000n)
    // Clients see what has been sent so far.
    expect(BigInt(before.sent)).toBeGreaterThan(0n)
    expect(BigInt(before.sent)).toBeLessThanOrEqual(BigInt(before.received))
    clock.advance(1_000)
    expect(await process().drain()).toMatchObject({ failed: 0 })
    const all = { sent: '1000', delivered: '1000', received: '1000' }
    expect(await status()).toEqual({ state: 'completed', ...all })
  })

  test('is finished by another process if the first hangs with packets in flight', async () => {
    const { created, clock, balances } = await opened()
    // More than two packets and the 20 that may be in flight, so that some have not left yet.
    const { process, status } = await created('10000')
    let hung = () => {}
    const hanging = new Promise<void>((resolve) => {
      hung = resolve
    })
    let release = () => {}
    const released = new Promise<void>((resolve) => {
      release = resolve
    })
    const line: Line = async (arrived, forward) => {
      if (arrived < 2) return forward()
      hung()
      await released
      return forward()
    }
    const first = process(line).drain()
    await hanging
    clock.advance(61_000)
    await process().drain()
    const all = { state: 'completed', sent: '10000', delivered: '10000', received: '10000' }
    expect(await status()).toEqual(all)
    // The first process is still alive, and its packets arrive: they have been counted.
    release()
    await first
    expect(await status()).toEqual(all)
    expect([await balances.here.value(), await balances.there.value()]).toEqual([-10_000n, 10_000n])
  })

  test('waits while the other wallet does not respond, and eventually fails', async () => {
    const { created, clock } = await opened()
    const { process, status } = await created('1000')
    const away = { ok: false, reason: 'it does not respond', temporary: true } as const
    for (let attempt = 1; attempt < 5; attempt++) {
      expect(await process(goodLine, away).drain()).toMatchObject({ failed: 1 })
      expect(await status()).toMatchObject({ state: 'begun', received: '0' })
      clock.advance(3_600_000)
    }
    expect(await process(goodLine, away).drain()).toMatchObject({ failed: 0 })
    expect(await status()).toEqual({
      state: 'failed',
      sent: '0',
      delivered: '0',
      received: '0',
      failure: 'it does not respond',
    })
  })

  test('arrives once the other wallet responds again', async () => {
    const { created, clock } = await opened()
    const { process, status } = await created('1000')
    const away = { ok: false, reason: 'it does not respond', temporary: true } as const
    expect(await process(goodLine, away).drain()).toMatchObject({ failed: 1 })
    clock.advance(3_600_000)
    await process().drain()
    expect(await status()).toMatchObject({ state: 'completed', received: '1000' })
  })

  test.each<[string, FoundReceiver]>([
    ['accepts no more', { ok: false, reason: 'complete' }],
    [
      'has another asset',
      {
        ok: true,
        receiver: {
          asset: { ...asset, assetScale: 3 },
          receivedAmount: { ...usd(0), assetScale: 3 },
        },
      },
    ],
    ['has no payment method', { ok: true, receiver: { asset, receivedAmount: usd(0) } }],
  ])('fails immediately if the receiver %s', async (_, receiver) => {
    const { created } = await opened()
    const { process, status } = await created('1000')
    expect(await process(goodLine, receiver).drain()).toMatchObject({ failed: 0 })
    expect(await status()).toMatchObject({ state: 'failed', sent: '0', received: '0' })
  })

  test('is not sent if its record cannot be written', async () => {
    const { created, book } = await opened()
    const { process, status } = await created('1000')
    const { write } = book
    Object.assign(book, { write: () => Promise.reject(new Error('the database is unavailable')) })
    expect(await process().drain()).toMatchObject({ failed: 1 })
    expect(await status()).toMatchObject({ state: 'begun', received: '0' })
    Object.assign(book, { write })
  })

  const fault = fc.record({ ...faults, settled: fc.bigInt({ min: -500n, max: 500n }) })

  test('loses and doubles nothing, for all losses, refusals, stops, crashes and settlements', async () => {
    const property = fc.asyncProperty(fc.array(fault, { maxLength: 4 }), async (faults) => {
      const { created, clock, balances, there } = await opened()
      const { process, status } = await created('1000')
      let owed = 0n
      let sent = 0n
      for (const { settled, ...fault } of faults) {
        const { line, interrupt, crashed } = faulty({ ...fault, many: false }, () => running.stop())
        const running = process(line, undefined, there(interrupt))
        await Promise.race([running.drain(), crashed])
        clock.advance(3_600_000)

        const [here, over] = [await balances.here.value(), await balances.there.value()]
        await balances.here.add(`settlement ${owed}`, settled)
        await balances.there.add(`settlement ${owed}`, -settled)
        if ((await balances.here.value()) !== here) owed += 1n
        // A packet that was lost has been counted at this end only.
        expect(over).toBeLessThanOrEqual(-here)
        const now = BigInt((await status()).sent)
        expect(now).toBeGreaterThanOrEqual(sent)
        expect(now).toBeLessThanOrEqual(1_000n)
        sent = now
      }
      const all = { sent: '1000', delivered: '1000', received: '1000' }
      // What has crashed still runs in this process, and gives its delivery a lease, which ends with the clock.
      const last = async () => {
        clock.advance(3_600_000)
        await process().drain()
        return status()
      }
      await expect.poll(last).toEqual({ state: 'completed', ...all })
      expect(await balances.here.value()).toBe(-(await balances.there.value()))
    })
    await fc.assert(property, { numRuns: runs(60) })
  })
})

/** Whoever receives counts each packet, as most wallets on Interledger do. */
describe('a payment to a wallet that counts each packet that it gets', () => {
  const each = { countsRepeats: false }
  const all = { state: 'completed', sent: '1000', delivered: '1000', received: '1000' }

  test.each<[string, Amount?]>([['an open receiver'], ['a receiver with an amount', usd(1_000)]])(
    'arrives once at %s although a reply is lost, at the next attempt',
    async (_, amount) => {
      const { created, clock, balances } = await opened(each)
      const { process, status } = await created('1000', bob, amount)
      expect(await process(losingReply(1)).drain()).toMatchObject({ failed: 1 })
      expect(await status()).toMatchObject({ state: 'begun' })
      clock.advance(1_000)
      expect(await process().drain()).toMatchObject({ failed: 0 })
      expect(await status()).toEqual(all)
      expect([await balances.here.value(), await balances.there.value()]).toEqual([-1_000n, 1_000n])
    },
  )

  test('is debited for a packet without a reply, and ends when it cannot arrive any more', async () => {
    const { created, clock, balances } = await opened(each)
    const { process, status } = await created('1000')
    const losing: Line = async (arrived, forward, asksForMoney) =>
      arrived === 2 && asksForMoney ? rejected('R00') : forward()
    expect(await process(losing).drain()).toMatchObject({ failed: 1 })
    clock.advance(1_000)
    expect(await process().drain()).toMatchObject({ failed: 1 })
    expect(await status()).toMatchObject({ state: 'begun', received: '750' })
    clock.advance(30_000)
    expect(await process().drain()).toMatchObject({ failed: 0 })
    const less = { sent: '1000', delivered: '750', received: '750' }
    expect(await status()).toEqual({ state: 'completed', ...less })
    expect(await balances.here.value()).toBe(-1_000n)
  })

  test('is over when the receiver was completed without a packet whose reply was lost', async () => {
    const { created, clock, receiving } = await opened(each)
    const { process, status, details } = await created('1000')
    const losing: Line = async (arrived, forward, asksForMoney) =>
      arrived === 2 && asksForMoney ? rejected('R00') : forward()
    await process(losing).drain()
    await receiving.incomingPayments.complete(details.id)
    clock.advance(31_000)
    expect(await process().drain()).toMatchObject({ failed: 0 })
    const part = { sent: '750', delivered: '500', received: '500' }
    const failure = 'the incoming payment is complete'
    expect(await status()).toEqual({ state: 'failed', failure, ...part })
  })

  const fault = fc.record({
    ...faults,
    many: fc.boolean(),
    waitMs: fc.constantFrom(1_000, 3_600_000),
  })

  test('is never sent nor received beyond its debit, and its peer is told, for all losses and crashes', async () => {
    const property = fc.asyncProperty(
      fc.array(fault, { maxLength: 4 }),
      fc.boolean(),
      async (faults, isInvoice) => {
        const { created, clock, balances, there } = await opened(each)
        const { process, status } = await created('1000', bob, isInvoice ? usd(1_000) : undefined)
        async function check() {
          const { sent, delivered, received } = await status()
          const booked = -(await balances.here.value())
          expect(BigInt(received)).toBeLessThanOrEqual(booked)
          expect(BigInt(received)).toBe(await balances.there.value())
          expect(booked).toBeLessThanOrEqual(1_000n)
          expect(BigInt(delivered)).toBeLessThanOrEqual(BigInt(received))
          return { sent: BigInt(sent), booked }
        }
        for (const { waitMs, ...fault } of faults) {
          const { line, interrupt, crashed } = faulty(fault, () => running.stop())
          const running = process(line, undefined, there(interrupt))
          await Promise.race([running.drain(), crashed])
          await check()
          clock.advance(waitMs)
        }
        // Nothing is lost any more. What is unknown is decided when the last packet has expired.
        for (const waitMs of [3_600_000, 31_000]) {
          clock.advance(waitMs)
          await process().drain()
        }
        expect(['completed', 'failed']).toContain((await status()).state)
        const { sent, booked } = await check()
        expect(booked).toBeLessThanOrEqual(sent)
        expect(BigInt((await status()).received)).toBe(BigInt((await status()).delivered))
      },
    )
    await fc.assert(property, { numRuns: runs(60) })
  })
})

test('a payment is not sent if its receiver wants less than when it was quoted', async () => {
  for (const countsRepeats of [true, false]) {
    const { created, receiving } = await opened({ countsRepeats })
    const { process, status, details } = await created('400')
    // Another payment of 4.00 has arrived for an invoice of 5.00, at a wallet that accepts more.
    const terms = { asset, receivedAmount: usd(400), wanted: usd(100), ilp: details }
    expect(await process(goodLine, { ok: true, receiver: terms }).drain()).toMatchObject({
      failed: 0,
    })
    const nothing = { sent: '0', delivered: '0', received: '0' }
    const failure = 'the receiver does not accept that much'
    expect(await status()).toEqual({ state: 'failed', failure, ...nothing })
    expect(await receiving.received(details)).toBe(0n)
  }
})

describe('a payment in another currency', () => {
  /** Half a euro for each dollar is the rate of the quote. */
  const rateOf = (perMille: bigint) => ({ numerator: perMille, denominator: 2_000n })
  const price = (delivered: bigint) => `${delivered * 2n}`

  test.each([1_000n, 995n, 1_100n])(
    'costs what was quoted if the rate becomes %s per mille of that of the quote',
    async (perMille) => {
      const { created, rate } = await opened()
      const { process, status } = await created('10000', carol)
      const changing: Line = (arrived, forward) => {
        rate.now = rateOf(arrived < 3 ? 1_000n : perMille)
        return forward()
      }
      rate.now = rateOf(1_000n)
      await process(changing).drain()
      const { state, sent, delivered, received } = await status()
      expect([state, sent, delivered]).toEqual(['completed', '10000', '5000'])
      // The last packet is exchanged to at most a unit more.
      expect(['5000', '5001']).toContain(received)
    },
  )

  test('costs at most a unit of each packet more if the receiver acknowledges less than it got', async () => {
    const { created, rate, there, balances } = await opened({ packetMax: 5_000n })
    rate.now = rateOf(1_000n)
    const { process, status, details } = await created('100000', carol)
    const honest = there()
    /** Acknowledges what each packet asks for, which is less than it gets. */
    const lying: IlpHandler = async (packet) => {
      const reply = replyOf(await honest(packet))
      if (!isFulfill(reply)) return serializeIlpReply(reply)
      const { prepareAmount } = await streamRequest(details, packet)
      const { sequence, ilpPacketType, frames } = await streamReply(
        details,
        serializeIlpReply(reply),
      )
      const told = new Packet(sequence, ilpPacketType, prepareAmount, frames)
      const data = await told.serializeAndEncrypt(encryptionKeyOf(details))
      return serializeIlpFulfill({ ...reply, data })
    }
    await process(goodLine, undefined, lying).drain()
    const { state, sent, delivered, received } = await status()
    expect([state, sent, delivered]).toEqual(['completed', '100000', '50000'])
    expect(BigInt(received)).toBeLessThanOrEqual(50_000n + 22n)
    expect(-(await balances.here.value())).toBeLessThanOrEqual(100_000n + 44n)
  })

  test('waits at a worse rate, and fails with what arrived if the rate stays', async () => {
    const { created, rate, clock } = await opened()
    const { process, status } = await created('10000', carol)
    const falling: Line = (arrived, forward) => {
      rate.now = rateOf(arrived < 3 ? 1_000n : 900n)
      return forward()
    }
    rate.now = rateOf(1_000n)
    for (let attempt = 1; attempt < 5; attempt++) {
      expect(await process(falling).drain()).toMatchObject({ failed: 1 })
      expect(await status()).toMatchObject({ state: 'begun' })
      clock.advance(3_600_000)
      rate.now = rateOf(900n)
    }
    expect(await process().drain()).toMatchObject({ failed: 0 })
    const { state, sent, delivered, received, failure } = await status()
    expect([state, failure]).toEqual(['failed', 'InsufficientExchangeRate'])
    expect(BigInt(delivered)).toBeGreaterThan(0n)
    expect(BigInt(delivered)).toBeLessThan(5_000n)
    expect([delivered, sent]).toEqual([received, price(BigInt(received))])
  })

  test('never costs the payer more than the quote, nor the wallet 1 % more, at any rates', async () => {
    const rates = fc.array(fc.bigInt({ min: 970n, max: 1_030n }), { minLength: 1, maxLength: 12 })
    const property = fc.asyncProperty(rates, async (perMille) => {
      const { created, rate, clock, balances } = await opened()
      const { process, status } = await created('2000', carol)
      const changing: Line = (arrived, forward) => {
        rate.now = rateOf(perMille[arrived % perMille.length] ?? 1_000n)
        return forward()
      }
      for (let attempt = 1; attempt <= 5; attempt++) {
        rate.now = rateOf(perMille[0] ?? 1_000n)
        await process(changing).drain()
        clock.advance(3_600_000)
      }
      const { state, sent, delivered, received } = await status()
      expect(['completed', 'failed']).toContain(state)
      expect(sent).toBe(price(BigInt(delivered)))
      expect(BigInt(sent)).toBeLessThanOrEqual(2_000n)
      // More arrives if the rate gets better than at the packets before: at most 6 % of the last packet, and a unit.
      expect(BigInt(received) - BigInt(delivered)).toBeLessThanOrEqual(8n)
      expect(BigInt(delivered)).toBeLessThanOrEqual(BigInt(received))
      const cost = -(await balances.here.value())
      expect(cost).toBe(await balances.there.value())
      expect(cost).toBeLessThanOrEqual(2_020n)
    })
    await fc.assert(property, { numRuns: runs(24) })
  })
})
