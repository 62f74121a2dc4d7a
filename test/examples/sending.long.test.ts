import fc from 'fast-check'
import { serializeIlpReject } from 'ilp-packet'
import { describe, expect, test } from 'vitest'
import { createConnector } from '../../examples/ilp/connector.js'
import { type IlpHandler, readPrepare } from '../../examples/ilp/packet.js'
import type { FoundReceiver } from '../../examples/wallet/receivers.js'
import { paymentSender } from '../../examples/wallet/sending.js'
import { memorySendingBook } from '../../examples/wallet/sending-book.js'
import type { OutgoingPayment } from '../../src/index.js'
import { manualClock } from '../support/clock.js'
import { createReceivingWallet, ilpAddress, outcomeOf } from '../support/ilp.js'
import { runs } from '../support/runs.js'
import { createSpendingWorld, grantToPay, outgoingItem, pay, usd } from '../support/spending.js'
import { bob, incomingAccess } from '../support/world.js'

const asset = { assetCode: 'USD', assetScale: 2 }

function rejected(code: 'R00' | 'T00' | 'F00'): Uint8Array {
  return serializeIlpReject({ code, triggeredBy: 'test.line', message: '', data: Buffer.alloc(0) })
}

/**
 * Forwards a packet or not. `arrived` is the number of packets that the receiver fulfilled before this one.
 */
type Line = (arrived: number, forward: () => Promise<Uint8Array>) => Promise<Uint8Array>

const goodLine: Line = (_, forward) => forward()

/**
 * A paying wallet, a receiving wallet, and the connection between them, which carries 2.50 in each packet.
 */
async function opened() {
  const clock = manualClock(Date.now())
  const paying = createSpendingWorld({ clock })
  const receiving = createReceivingWallet()
  const client = paying.client()
  const { token } = await grantToPay(paying, client, [
    outgoingItem({ debitAmount: usd(1_000_000) }),
  ])
  const { outgoingPayments, events } = paying.resources
  const book = memorySendingBook()
  const connector = createConnector({
    ilpAddress: 'test.sender',
    peers: [
      { ilpAddress: 'test.sender.usd', asset, send: receiving.receiver(), packetAmountMax: 250n },
      { ilpAddress, asset, send: receiving.receiver() },
    ],
    rateOf: () => ({ numerator: 1n, denominator: 1n }),
  })
  const forward = connector.from('test.sender.usd')

  /** Creates a payment to a new incoming payment in the other wallet. */
  async function created(value: string) {
    const details = await receiving.createPayment()
    const { body } = await pay(client, token, value)
    const id = outgoingPayments.idOf(body.id) ?? ''
    const found: FoundReceiver = { ok: true, receiver: { asset, ilp: details } }

    /** A process that receives the payment's event, and the connection that it uses. */
    function process(line: Line = goodLine, receiver: FoundReceiver = found) {
      const stopping = new AbortController()
      let arrived = 0
      const counted = async (packet: Uint8Array) => {
        const reply = await forward(packet)
        if (outcomeOf(reply) === 'fulfill' && readPrepare(packet)?.amount !== '0') arrived += 1
        return reply
      }
      const send: IlpHandler = (packet) => line(arrived, () => counted(packet))
      const options = {
        resources: paying.resources,
        receivers: async () => receiver,
        rail: { from: () => send },
        book,
      }
      const handler = paymentSender(options)(stopping.signal)
      return {
        stop: () => stopping.abort(),
        drain: () => events.drain(handler, { leaseMs: 60_000, skewMaxMs: 0 }),
      }
    }

    async function status() {
      const { state, sent, delivered, failure } = (await outgoingPayments.get(
        id,
      )) as OutgoingPayment
      const received = `${await receiving.received(details)}`
      return { state, sent, delivered, received, ...(failure && { failure }) }
    }
    return { id, process, status }
  }
  return { clock, paying, client, token, book, created }
}

/** Delivers packets, and loses the reply after a number of them. */
const losingReply =
  (after: number, code: 'R00' | 'T00' = 'R00'): Line =>
  async (arrived, forward) => {
    const reply = await forward()
    return arrived === after && outcomeOf(reply) === 'fulfill' ? rejected(code) : reply
  }

describe('a payment to another wallet', () => {
  test('is sent in packets, and leaves no record behind', async () => {
    const { created, book } = await opened()
    const { id, process, status } = await created('1000')
    expect(await process().drain()).toMatchObject({ failed: 0 })
    const all = { sent: '1000', delivered: '1000', received: '1000' }
    expect(await status()).toEqual({ state: 'completed', ...all })
    expect(await book.take(id, 'writer')).toEqual({ left: 0n, sent: 0n, delivered: 0n })
    expect(await process().drain()).toMatchObject({ failed: 0 })
    expect(await status()).toMatchObject(all)
  })

  test.each(['R00', 'T00'] as const)(
    'ends at a packet whose outcome is unknown (%s), which counts as sent',
    async (code) => {
      const { created } = await opened()
      const { process, status } = await created('1000')
      expect(await process(losingReply(2, code)).drain()).toMatchObject({ failed: 0 })
      const { state, sent, delivered, received } = await status()
      expect(state).toBe('failed')
      expect(sent).toBe(received)
      expect(BigInt(sent) - BigInt(delivered)).toBe(250n)
    },
  )

  test('with an unknown outcome of its only packet is over, and the payer is debited', async () => {
    const { created } = await opened()
    const { process, status } = await created('200')
    await process(losingReply(0)).drain()
    const debited = { state: 'completed', sent: '200', delivered: '0', received: '200' }
    expect(await status()).toEqual(debited)
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

  test('is not continued if a process ended with a packet in flight', async () => {
    const { created, clock } = await opened()
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
    const over = await status()
    expect(over.state).toBe('failed')
    // The first process is still alive, and its packets arrive: the payer was debited for them.
    release()
    await first
    const { received, ...after } = await status()
    expect(after).toMatchObject({ state: 'failed', sent: over.sent, delivered: over.delivered })
    expect(BigInt(received)).toBeLessThanOrEqual(BigInt(over.sent))
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
    ['has another asset', { ok: true, receiver: { asset: { ...asset, assetScale: 3 } } }],
    ['has no payment method', { ok: true, receiver: { asset } }],
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

  const fault = fc.record({
    after: fc.nat(4),
    how: fc.constantFrom('lost reply', 'lost packet', 'refused', 'stopped'),
  })

  test('never debits less than arrived, for all losses, refusals and stops', async () => {
    const property = fc.asyncProperty(fc.array(fault, { maxLength: 4 }), async (faults) => {
      const { created, clock } = await opened()
      const { process, status } = await created('1000')
      for (const { after, how } of [...faults, { after: 9, how: 'refused' }]) {
        let done = false
        const running = process(async (arrived, forward) => {
          if (done || arrived !== after) return forward()
          done = true
          if (how === 'stopped') running.stop()
          if (how === 'lost packet') return rejected('R00')
          if (how === 'refused') return rejected('F00')
          const reply = await forward()
          return how === 'lost reply' ? rejected('R00') : reply
        })
        await running.drain()
        clock.advance(3_600_000)
      }
      const { state, sent, delivered, received } = await status()
      expect(['completed', 'failed']).toContain(state)
      expect(BigInt(received)).toBeLessThanOrEqual(BigInt(sent))
      expect(BigInt(delivered)).toBeLessThanOrEqual(BigInt(received))
    })
    await fc.assert(property, { numRuns: runs(12) })
  })
})

test('a payment within the wallet arrives automatically, once', async () => {
  const { paying, client, token } = await opened()
  const { incomingPayments, outgoingPayments, events } = paying.resources
  const incoming = (await client.request([incomingAccess])).body.access_token.value
  const { body: receiver } = await client.createPayment(incoming, { walletAddress: bob })
  const { body } = await pay(client, token, 1000, { incomingPayment: receiver.id })
  const sender = paymentSender({
    resources: paying.resources,
    receivers: () => Promise.reject(new Error('no receiver is read')),
    rail: { from: () => () => Promise.reject(new Error('no packet is sent')) },
    book: memorySendingBook(),
  })
  const handler = sender(new AbortController().signal)
  const event = {
    type: 'outgoing-payment.created',
    outgoingPaymentId: outgoingPayments.idOf(body.id),
  }
  expect(await events.drain(handler)).toMatchObject({ failed: 0 })
  await handler(event as never, { attempt: 2, signal: new AbortController().signal })
  const payment = await incomingPayments.get(incomingPayments.idOf(receiver.id) ?? '')
  expect(payment?.received).toBe('1000')
})
