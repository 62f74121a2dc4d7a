import type { Database } from 'create-open-payments-server/wallet/sql'
import fc from 'fast-check'
import { deserializeIlpPrepare, serializeIlpFulfill, serializeIlpPrepare } from 'ilp-packet'
import { openSettlement, stopSettlement } from 'open-payments-server/attempts'
import { type Details, streamPacket } from 'open-payments-test-support/ilp'
import { runs } from 'open-payments-test-support/runs'
import { afterAll, describe, expect, test } from 'vitest'
import {
  memoryBook,
  memorySendingBook,
  type Rate,
  type Sending,
  sqlSendingBook,
} from '../src/index.js'
import {
  type IlpHandler,
  readPrepare,
  readReply,
  rejectsOf,
  streamFulfillment,
} from '../src/packet.js'
import { packetRecord } from '../src/packet-record.js'
import { mariadb, postgres, sqlite } from './databases.js'
import { cent, link } from './receiving-wallet.js'

const details: Details = {
  id: 'payment',
  ilpAddress: `test.wallet.usd.${'a'.repeat(1_000)}`,
  sharedSecret: Buffer.alloc(32, 5).toString('base64url'),
}
const now = 1_700_000_000_000

async function recordOf(
  amount: bigint,
  send: IlpHandler,
  rate: Rate,
  { sendings, book } = { sendings: memorySendingBook(), book: memoryBook() },
) {
  await sendings.take('payment', 'writer')
  const otherSide = `https://wallet.example/${'b'.repeat(2_000)}`
  const route = { peer: `test.${'p'.repeat(250)}`, ...details }
  const settlement = openSettlement({ amount, now, otherSide })
  const sending: Sending = { route, settlement, packets: {}, sent: '0' }
  return packetRecord({
    book,
    sendings,
    paymentId: 'payment',
    writer: 'writer',
    sending,
    route,
    peer: { ilpAddress: route.peer, asset: link, send, token: '', packetAmountMax: 2n ** 64n - 1n },
    rate,
    isExchanged: rate !== rates['par'],
    trustMax: amount,
    now: () => now,
  })
}

let sequence = 0
function packet(amount: bigint, asked: bigint): Uint8Array {
  sequence += 1
  const made = streamPacket(details, { amount: asked, sequence, expiresAt: now + 20_000 })
  return serializeIlpPrepare({ ...deserializeIlpPrepare(made), amount: `${amount}` })
}

const codeOf = (reply: Uint8Array) => {
  const read = readReply(reply)
  return read !== undefined && 'code' in read ? read.code : 'fulfilled'
}

const rates: Readonly<Record<string, Rate>> = {
  par: { numerator: 1n, denominator: cent },
  dear: { numerator: 10_000n, denominator: 10_800n * cent },
  cheap: { numerator: 13_371n, denominator: 10_000n * cent },
}

test('no packets leave that could bring more than the payment delivers, at any rate', async () => {
  const sent = fc.record({
    /** In the asset of the link. */
    amount: fc.bigInt({ min: 1n, max: 400n * cent }),
    /** How much less than it brings the packet asks for, in percent. */
    less: fc.nat(3),
  })
  const property = fc.asyncProperty(
    fc.constantFrom(...Object.keys(rates)),
    fc.bigInt({ min: 1n, max: 1_000n }),
    fc.array(sent, { minLength: 1, maxLength: 12 }),
    async (name, amount, packets) => {
      const rate = rates[name] as Rate
      let mayArrive = 0n
      const record = await recordOf(
        amount,
        async (bytes) => {
          const { amount: value = '0' } = readPrepare(bytes) ?? {}
          mayArrive += (BigInt(value) * rate.numerator) / rate.denominator
          return rejectsOf('test.peer')('R00', 'no reply')
        },
        rate,
      )
      for (const { amount: value, less } of packets) {
        const brings = (value * rate.numerator) / rate.denominator
        const asked = (brings * BigInt(100 - less)) / 100n
        await record.send(packet(value, asked))
        expect(mayArrive).toBeLessThanOrEqual(amount)
        expect(record.totals().inDoubt).toBeLessThanOrEqual(amount)
      }
    },
  )
  await fc.assert(property, { numRuns: runs(400, 60) })
})

test('the packet that completes a payment brings exactly what is missing', async () => {
  let sent = 0n
  const send: IlpHandler = async (bytes) => {
    sent = BigInt(readPrepare(bytes)?.amount ?? 0)
    return rejectsOf('test.peer')('R00', 'no reply')
  }
  const rate = rates['cheap'] as Rate
  const record = await recordOf(100n, send, rate)
  await record.send(packet(400n * cent, 99n))
  expect((sent * rate.numerator) / rate.denominator).toBe(100n)
  expect(record.totals().free).toBe(0n)
})

test('a reply after the payment has ended proves its packet in the book, and leaves the record as it ended', async () => {
  const books = { sendings: memorySendingBook(), book: memoryBook() }
  let reply = () => {}
  const replied = new Promise<void>((resolve) => {
    reply = resolve
  })
  let leave = () => {}
  const left = new Promise<void>((resolve) => {
    leave = resolve
  })
  const secret = Buffer.from(details.sharedSecret, 'base64url')
  const send: IlpHandler = async (bytes) => {
    leave()
    await replied
    const fulfillment = streamFulfillment(secret, readPrepare(bytes)?.data ?? Buffer.alloc(0))
    return serializeIlpFulfill({ fulfillment, data: Buffer.alloc(0) })
  }
  const record = await recordOf(250n, send, rates['par'] as Rate, books)
  const bytes = packet(250n * cent, 250n)
  const sending = record.send(bytes)
  await left
  const ended = await record.ended()
  const settlement = stopSettlement(ended.settlement, 'it is over', now)
  const last = { ...ended, settlement }
  expect(await books.sendings.write('payment', 'writer', last, true)).toBe(true)
  reply()
  expect(codeOf(await sending)).toBe('fulfilled')
  await record.written()
  expect(await books.sendings.listed()).toEqual([{ paymentId: 'payment', sending: last }])
  const condition = readPrepare(bytes)?.executionCondition.toString('base64url') ?? ''
  const key = { peer: ended.route?.peer ?? '', direction: 'out', condition } as const
  expect(await books.book.get(key)).toMatchObject({ state: 'fulfilled' })
})

const opened: Database[] = []
afterAll(() => Promise.all(opened.map((database) => database.close())))

describe('the record of a payment with as many packets without a proof as it may have', () => {
  const outcome = async () => {
    let packets = 0
    const record = await recordOf(
      10n ** 19n,
      async () => {
        packets += 1
        return rejectsOf('test.peer')('R00', '\u0001"\\é'.repeat(500))
      },
      { numerator: 1n, denominator: 1n },
    )
    for (let index = 0; index < 100; index++) await record.send(packet(10n ** 16n, 10n ** 16n))
    return { record, packets: () => packets }
  }

  test('sends no other one', async () => {
    const { record, packets } = await outcome()
    expect(packets()).toBe(100)
    expect(codeOf(await record.send(packet(1n, 1n)))).toBe('F00')
    expect(packets()).toBe(100)
  })

  test.each([
    ['PostgreSQL', postgres],
    ['SQLite', sqlite],
    ['MariaDB', mariadb],
  ])('is stored on %s, also after an operator has decided all of it', async (_, on) => {
    const database = await on()
    if (database === undefined) return
    opened.push(database)
    const { record } = await outcome()
    const book = sqlSendingBook(database)
    await book.take('payment', 'writer')
    const decided = { state: 'decided', at: now, arrived: `${10n ** 16n}`, by: 'operator' } as const
    const { settlement, ...sending } = record.sending()
    const all: Sending[] = [
      record.sending(),
      {
        ...sending,
        settlement: {
          ...settlement,
          attempts: settlement.attempts.map((attempt) => ({
            ...attempt,
            outcome: { ...decided, who: '界'.repeat(64) },
          })),
        },
      },
    ]
    for (const each of all) {
      expect(await book.write('payment', 'writer', each, true)).toBe(true)
      expect(await book.take('payment', 'writer')).toEqual(each)
      expect(Buffer.byteLength(JSON.stringify(each))).toBeLessThan(64 * 1024)
    }
  })
})
