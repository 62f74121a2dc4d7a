import type { Database, Sql } from 'create-open-payments-server/wallet/sql'
import { afterAll, describe, expect, test } from 'vitest'
import {
  memoryBook,
  type NewPacket,
  type PacketBook,
  sqlBook,
  sqlSendingBook,
} from '../src/index.js'
import { mariadb, postgres, sqlite } from './databases.js'

const opened: Database[] = []
afterAll(() => Promise.all(opened.map((database) => database.close())))

async function bookOn(database: Database | undefined): Promise<PacketBook<Sql> | undefined> {
  if (database === undefined) return undefined
  opened.push(database)
  return sqlBook(database)
}

const books: readonly (readonly [string, PacketBook<Sql> | undefined])[] = [
  ['in memory', memoryBook() as PacketBook<Sql>],
  ['on PostgreSQL', await bookOn(await postgres())],
  ['on SQLite', await bookOn(await sqlite())],
  ['on MariaDB', await bookOn(await mariadb())],
]

let peers = 0
let packets = 0

describe.each<readonly [string, PacketBook<Sql> | undefined]>([...books])(
  'a book %s',
  (name, given) => {
    const book = given ?? (memoryBook() as PacketBook<Sql>)
    const each = test.skipIf(given === undefined)

    /** A packet of a peer that the other tests do not know. */
    function packet(more: Partial<NewPacket> = {}): NewPacket {
      return {
        peer: `test.peer-${++peers}`,
        direction: 'in',
        condition: `condition-${++packets}`,
        amount: 100n,
        expiresAt: 1_000,
        reservedAt: 500,
        paymentId: 'payment',
        fulfillment: 'proof',
        ...more,
      }
    }

    each('counts what comes in for the peer and what goes out against it', async () => {
      const incoming = packet()
      const { peer } = incoming
      await book.reserve(incoming)
      await book.reserve(packet({ peer, direction: 'out', amount: 30n }))
      expect(await book.balance(peer)).toBe(70n)
      expect(await book.settle(peer, { id: 'transfer', amount: 50n })).toBe(true)
      expect(await book.settle(peer, { id: 'transfer', amount: 50n })).toBe(true)
      expect(await book.settle(peer, { id: 'transfer', amount: 51n })).toBe(false)
      expect(await book.balance(peer)).toBe(20n)
    })

    each('has amounts of 64 bits, and more of them than fit in 64 bits', async () => {
      const amount = 2n ** 64n - 1n
      const first = packet({ amount })
      await book.reserve(first)
      await book.reserve(packet({ peer: first.peer, amount }))
      expect(await book.balance(first.peer)).toBe(2n * amount)
      expect((await book.list({ peer: first.peer }))[0]?.amount).toBe(amount)
    })

    each('records a packet once, with what it had at first', async () => {
      const first = packet()
      const reserved = { ok: true, row: { ...first, state: 'reserved' } }
      expect(await book.reserve(first)).toEqual({ ...reserved, isNew: true })
      expect(await book.reserve({ ...first, amount: 200n })).toEqual({ ...reserved, isNew: false })
      expect(await book.balance(first.peer)).toBe(100n)
      // The same condition in the other direction is another packet.
      expect(await book.reserve({ ...first, direction: 'out' })).toMatchObject({ isNew: true })
      expect(await book.balance(first.peer)).toBe(0n)
    })

    each('records nothing beyond what the peer may owe', async () => {
      const first = packet()
      const { peer } = first
      expect(await book.reserve(first, 150n)).toMatchObject({ ok: true })
      const second = packet({ peer })
      expect(await book.reserve(second, 150n)).toEqual({ ok: false })
      expect(await book.list({ peer })).toHaveLength(1)
      await book.settle(peer, { id: 'transfer', amount: 50n })
      expect(await book.reserve(second, 150n)).toMatchObject({ ok: true })
    })

    each('loses and repeats nothing if packets are recorded and released at once', async () => {
      const { peer } = packet()
      const all = Array.from({ length: 12 }, () => packet({ peer }))
      const results = await Promise.all(
        all.flatMap((one) => [book.reserve(one, 1_000n), book.reserve(one, 1_000n)]),
      )
      expect(results.filter((each) => each.ok && each.isNew)).toHaveLength(10)
      expect(await book.balance(peer)).toBe(1_000n)
      const reserved = await book.list({ peer })
      await Promise.all(
        reserved.flatMap((one) => [book.decide(one, 'released'), book.decide(one, 'released')]),
      )
      expect(await book.balance(peer)).toBe(0n)
    })

    each('decides a packet once', async () => {
      const first = packet()
      await book.reserve(first)
      const decided = await Promise.all([
        book.decide(first, 'released'),
        book.decide(first, 'unproven'),
      ])
      expect(new Set(decided).size).toBe(1)
      const [row] = await book.list({ peer: first.peer })
      expect(row?.state).toBe(decided[0])
      expect(await book.balance(first.peer)).toBe(row?.state === 'released' ? 0n : 100n)
      expect(await book.decide(packet(), 'released')).toBeUndefined()
    })

    each.for(['released', 'unproven'] as const)(
      'counts a packet that was %s once its fulfillment is shown',
      async (state) => {
        const sent = packet({ direction: 'out' })
        const { fulfillment: _, ...unproven } = sent
        await book.reserve(unproven)
        await book.decide(sent, state)
        expect(await book.decide(sent, 'fulfilled', { fulfillment: 'shown' })).toBe('fulfilled')
        expect(await book.balance(sent.peer)).toBe(-100n)
        expect(await book.list({ peer: sent.peer })).toEqual([
          { ...sent, state: 'fulfilled', fulfillment: 'shown' },
        ])
        expect(await book.decide(sent, 'released')).toBe('fulfilled')
      },
    )

    each('lets an operator decide otherwise what went out without a proof', async () => {
      const sent = packet({ direction: 'out' })
      const by = 'operator'
      await book.reserve(sent)
      await book.decide(sent, 'unproven')
      expect(await book.decide(sent, 'released')).toBe('unproven')
      expect(await book.decide(sent, 'released', { by })).toBe('released')
      expect(await book.balance(sent.peer)).toBe(0n)
      expect(await book.decide(sent, 'unproven', { by })).toBe('unproven')
      expect(await book.balance(sent.peer)).toBe(-100n)
      await book.decide(sent, 'fulfilled')
      expect(await book.decide(sent, 'released', { by })).toBe('fulfilled')
      const received = packet()
      await book.reserve(received)
      await book.decide(received, 'released')
      expect(await book.decide(received, 'unproven', { by })).toBe('released')
    })

    each('never counts a packet that came in and was released', async () => {
      const first = packet()
      await book.reserve(first)
      await book.decide(first, 'released')
      expect(await book.decide(first, 'fulfilled')).toBe('released')
      expect(await book.balance(first.peer)).toBe(0n)
    })

    each('never reserves a packet that was closed before', async () => {
      const first = packet()
      const closed = { state: 'released', amount: 0n }
      expect(await book.close(first, 700)).toMatchObject(closed)
      const reserved = await book.reserve(first)
      expect(reserved).toMatchObject({ ok: true, isNew: false, row: closed })
      expect(await book.balance(first.peer)).toBe(0n)
      const second = packet()
      await book.reserve(second)
      expect(await book.close(second, 700)).toEqual({ ...second, state: 'reserved' })
    })

    each('lists packets by peer, direction, state, payment and expiry, in pages', async () => {
      const first = packet({ paymentId: 'one' })
      const { peer } = first
      const others = [packet({ peer, expiresAt: 2_000 }), packet({ peer, direction: 'out' })]
      for (const each of [first, ...others]) await book.reserve(each)
      await book.decide(first, 'fulfilled')
      const conditions = async (query: Parameters<typeof book.list>[0]) =>
        (await book.list({ peer, ...query })).map(({ condition }) => condition)
      const [second, third] = others.map(({ condition }) => condition)
      expect(await conditions({ state: 'reserved' })).toEqual([second, third])
      expect(await conditions({ direction: 'out' })).toEqual([third])
      expect(await conditions({ paymentId: 'one' })).toEqual([first.condition])
      expect(await conditions({ expiredBefore: 1_001, state: 'reserved' })).toEqual([third])
      expect(await conditions({ expiresFrom: 1_001 })).toEqual([second])
      const [page] = await book.list({ peer, limit: 1 })
      expect(page?.condition).toBe(first.condition)
      expect(await conditions({ after: first })).toEqual([second, third])
    })

    each('keeps the balance when it removes what was decided and has expired', async () => {
      const first = packet()
      const { peer } = first
      const reserved = packet({ peer })
      for (const each of [first, reserved, packet({ peer, expiresAt: 2_000 })]) {
        await book.reserve(each)
        if (each !== reserved) await book.decide(each, 'fulfilled')
      }
      await book.prune(1_500)
      expect((await book.list({ peer })).map(({ state }) => state)).toEqual([
        'reserved',
        'fulfilled',
      ])
      expect(await book.balance(peer)).toBe(300n)
    })

    each('keeps that a packet was closed until it can no longer arrive', async () => {
      const first = packet()
      await book.close(first, 5_000)
      await book.prune(5_000 + 300_000)
      expect(await book.reserve(first)).toMatchObject({ isNew: false, row: { state: 'released' } })
      await book.prune(5_000 + 300_001)
      expect(await book.get(first)).toBeUndefined()
    })

    each('removes at most as many as it is told to in one call', async () => {
      const { peer } = packet()
      const old = Array.from({ length: 7 }, (_, index) =>
        packet({ peer, expiresAt: 10, direction: index < 2 ? 'out' : 'in' }),
      )
      for (const each of old) await book.reserve(each)
      for (const each of old) await book.decide(each, 'released')
      while ((await book.prune(9)).more);
      expect(await book.prune(11, 5)).toEqual({ removed: 5, more: true })
      expect(await book.list({ peer })).toHaveLength(2)
      expect(await book.prune(11, 5)).toEqual({ removed: 2, more: false })
      expect(await book.list({ peer })).toEqual([])
    })

    const database =
      opened[books.filter(([, one]) => one).findIndex(([, one]) => one === given) - 1]

    test.skipIf(database === undefined)(
      'keeps what was decided about a payment while its record may still decide it otherwise',
      async () => {
        const sendings = sqlSendingBook(database as Database)
        const paymentId = `payment of ${packet().peer}`
        const { peer } = packet()
        const sent = packet({ peer, direction: 'out', paymentId, expiresAt: 10 })
        const others = packet({ peer, direction: 'out', expiresAt: 10 })
        await sendings.take(paymentId, 'writer')
        for (const key of [sent, others]) {
          await book.reserve(key)
          await book.decide(key, 'released')
        }
        await book.prune(11)
        expect([await book.get(sent), await book.get(others)]).toMatchObject([sent, undefined])
        expect(await book.decide(sent, 'unproven', { by: 'operator' })).toBe('unproven')
        expect(await book.balance(peer)).toBe(-100n)
        await sendings.forget(paymentId, 'writer')
        await book.prune(11)
        expect(await book.get(sent)).toBeUndefined()
      },
    )

    test.skipIf(given === undefined || name === 'in memory')(
      'fulfills a packet with a transaction of the host, or not at all',
      async () => {
        const first = packet()
        await book.reserve(first)
        const failed = database?.transaction(async (inside) => {
          expect(await book.decide(first, 'fulfilled', { inside })).toBe('fulfilled')
          throw new Error('the ledger refuses')
        })
        await expect(failed).rejects.toThrow('the ledger refuses')
        expect((await book.list({ peer: first.peer }))[0]?.state).toBe('reserved')
        await database?.transaction((inside) => book.decide(first, 'fulfilled', { inside }))
        expect((await book.list({ peer: first.peer }))[0]?.state).toBe('fulfilled')
        await book.decide(first, 'released')
        expect(await book.balance(first.peer)).toBe(100n)
        const released = packet()
        await book.reserve(released)
        await book.decide(released, 'released')
        await database?.transaction(async (inside) => {
          expect(await book.decide(released, 'fulfilled', { inside })).toBe('released')
        })
      },
    )
  },
)
