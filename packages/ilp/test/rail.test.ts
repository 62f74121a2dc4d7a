import type { Database } from 'create-open-payments-server/wallet/sql'
import { deserializeIlpPrepare, type IlpPrepare, serializeIlpPrepare } from 'ilp-packet'
import { manualClock } from 'open-payments-test-support/clock'
import { type Details, outcomeOf, replyOf, streamPacket } from 'open-payments-test-support/ilp'
import { carol } from 'open-payments-test-support/world'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { isFulfillmentOf } from '../src/packet.js'
import { clear, postgres } from './databases.js'
import {
  booksIn,
  cent,
  createWallet,
  killedBefore,
  type Process,
  type Step,
} from './receiving-wallet.js'

const peer = 'test.peer'
const other = 'test.other'

let database: Database
beforeAll(async () => {
  database = await postgres()
})
afterAll(() => database.close())

describe.each(['in memory', 'on PostgreSQL'])('a rail %s', (where) => {
  async function setUp() {
    if (where !== 'in memory') await clear(database)
    const books = booksIn(where === 'in memory' ? undefined : database)
    const peers = [`${peer}-${Math.random()}`, `${other}-${Math.random()}`] as const
    const wallet = createWallet(books, peers, { clock: manualClock(Date.now()) })
    const details = await wallet.createPayment()
    const packet = (more: Partial<IlpPrepare> = {}, to: Details = details) => {
      const asked = { amount: 700n, expiresAt: wallet.clock.now() + 30_000 }
      const made = deserializeIlpPrepare(streamPacket(to, asked))
      return serializeIlpPrepare({ ...made, amount: `${700n * cent}`, ...more })
    }
    const rowOf = async (packet: Uint8Array, from = peers[0]) =>
      (await books.book.list({ peer: from })).find(
        ({ condition }) => condition === conditionOf(packet),
      )
    const owed = (from: string = peers[0]) => books.book.balance(from)
    return {
      ...wallet,
      peers,
      details,
      packet,
      rowOf,
      owed,
      receivedNow: () => wallet.received(details),
    }
  }

  test('credits an account with what arrives from a peer, and keeps the proof of its claim', async () => {
    const { rail, peers, packet, rowOf, owed, receivedNow } = await setUp()
    const sent = packet()
    expect(outcomeOf(await rail().send(peers[0], sent))).toBe('fulfill')
    expect([await receivedNow(), await owed()]).toEqual([700n, 700n * cent])
    const row = await rowOf(sent)
    expect(row).toMatchObject({ state: 'fulfilled', amount: 700n * cent })
    expect(isFulfillmentOf(row?.fulfillment ?? '', conditionOf(sent))).toBe(true)
  })

  test('credits nothing once a packet has expired, however long the database takes', async () => {
    const { rail, clock, resources, peers, packet, rowOf, owed, receivedNow } = await setUp()
    const sent = packet()
    const slow = rail(undefined, {
      async receive(id, funds, fulfill) {
        clock.advance(40_000)
        const received = await resources.incomingPayments.receive(id, funds)
        if (received.ok) await fulfill(async () => [])
        return received
      },
    })
    expect(outcomeOf(await slow.send(peers[0], sent))).toBe('R02')
    expect([await receivedNow(), await owed()]).toEqual([0n, 0n])
    expect((await rowOf(sent))?.state).toBe('released')
  })

  test('exchanges into the currency of the account, rounded down', async () => {
    const { rail, peers, createPayment, packet, owed, received } = await setUp()
    const euros = await createPayment({}, carol)
    const sent = packet({ amount: `${1_000n * cent}` }, euros)
    expect(outcomeOf(await rail().send(peers[0], sent))).toBe('fulfill')
    expect([await received(euros), await owed()]).toEqual([925n, 1_000n * cent])
  })

  test.each<[string, string, Partial<IlpPrepare>]>([
    ['for another node, because it forwards none', 'F02', { destination: 'test.elsewhere.bob' }],
    ['for the address of a peer', 'F02', { destination: `${other}.bob` }],
    ['for a currency without accounts', 'F02', { destination: 'test.wallet.jpy.bob' }],
    ['that is larger than the maximum', 'F08', { amount: `${1_000n * cent + 1n}` }],
    ['that is worth less than a cent', 'R01', { amount: `${cent - 1n}` }],
    ['that has expired', 'R02', { expiresAt: new Date(Date.now() - 60_000) }],
    ['that lives for too long', 'F00', { expiresAt: new Date(Date.now() + 600_000) }],
    ['that nobody can fulfill', 'F99', { executionCondition: Buffer.alloc(32, 1) }],
    ['that carries less than was asked', 'F99', { amount: `${699n * cent}` }],
  ])('refuses a packet %s, and claims nothing', async (_, code, more) => {
    const { rail, peers, packet, rowOf, owed, receivedNow } = await setUp()
    const sent = packet(more)
    expect(outcomeOf(await rail().send(peers[0], sent))).toBe(code)
    // One that comes too late is closed, so that another process does not credit it in its last moment.
    const { amount = 0n } = (await rowOf(sent)) ?? {}
    expect([await receivedNow(), await owed(), amount]).toEqual([0n, 0n, 0n])
  })

  test('does not know a peer without its token, nor another one', async () => {
    const { rail, peers, packet } = await setUp()
    const request = { method: 'POST', headers: [], body: packet() }
    expect(await rail().handle({ ...request, url: `/ilp/${peers[0]}` })).toMatchObject({
      status: 401,
    })
    expect(await rail().handle({ ...request, url: '/ilp/test.peer' })).toMatchObject({
      status: 404,
    })
  })

  test('releases a packet that the payment refuses', async () => {
    const { rail, peers, packet, rowOf, owed, resources, details } = await setUp()
    await resources.incomingPayments.complete(details.id)
    const sent = packet()
    expect(outcomeOf(await rail().send(peers[0], sent))).toBe('F99')
    expect(await rowOf(sent)).toMatchObject({ state: 'released' })
    expect(await owed()).toBe(0n)
  })

  test('releases a packet that waits for a review, which never counts then', async () => {
    const { rail, clock, peers, packet, rowOf, owed, receivedNow } = await setUp()
    const retryAt = clock.now() + 60_000
    const inReview = { ok: false, refusal: 'review_required', reason: 'not yet', retryAt } as const
    const sent = packet()
    const waiting = rail(undefined, { receive: async () => inReview })
    expect(outcomeOf(await waiting.send(peers[0], sent))).toBe('T99')
    expect(await rowOf(sent)).toMatchObject({ state: 'released' })
    expect(outcomeOf(await rail().send(peers[0], sent))).toBe('R02')
    expect([await receivedNow(), await owed()]).toEqual([0n, 0n])
  })

  test('fulfills a packet each time that it comes, and counts it once', async () => {
    const { rail, peers, packet, owed, receivedNow } = await setUp()
    const sent = packet()
    const both = await Promise.all([rail().send(peers[0], sent), rail().send(peers[0], sent)])
    const again = await rail().send(peers[0], sent)
    for (const reply of [...both, again]) expect(outcomeOf(reply)).toBe('fulfill')
    expect(replyOf(again)).toHaveProperty('fulfillment')
    expect([await receivedNow(), await owed()]).toEqual([700n, 700n * cent])
  })

  test('credits a packet as often as a peer owes for it, if two peers send the same one', async () => {
    const { rail, peers, packet, owed, receivedNow } = await setUp()
    const sent = packet()
    for (const from of [...peers, ...peers]) {
      expect(outcomeOf(await rail().send(from, sent))).toBe('fulfill')
    }
    expect([await owed(peers[0]), await owed(peers[1])]).toEqual([700n * cent, 700n * cent])
    expect(await receivedNow()).toBe(1_400n)
  })

  test('leaves open what became of a condition that comes with another amount', async () => {
    const { rail, peers, packet, owed, receivedNow } = await setUp()
    const sent = packet()
    await rail().send(peers[0], sent)
    const more = serializeIlpPrepare({
      ...deserializeIlpPrepare(Buffer.from(sent)),
      amount: `${800n * cent}`,
    })
    expect(outcomeOf(await rail().send(peers[0], more))).toBe('R00')
    expect([await receivedNow(), await owed()]).toEqual([700n, 700n * cent])
  })

  test('limits what a peer may owe, until it settles', async () => {
    const { rail, peers, packet, owed } = await setUp()
    const limited = rail(undefined, {
      peers: [
        {
          ilpAddress: peers[0],
          asset: { assetCode: 'USD', assetScale: 9 },
          send: () => Promise.reject(new Error('it sends nothing')),
          token: `token of ${peers[0]}`,
          creditMax: 1_000n * cent,
        },
      ],
    })
    expect(outcomeOf(await limited.send(peers[0], packet()))).toBe('fulfill')
    expect(outcomeOf(await limited.send(peers[0], packet()))).toBe('T04')
    const settlement = { id: 'transfer', amount: 400n * cent }
    expect(await limited.settle(peers[0], settlement)).toBe('settled')
    expect(await limited.settle(peers[0], settlement)).toBe('settled')
    expect(await limited.settle(peers[0], { ...settlement, amount: 1n })).toBe('transfer_mismatch')
    expect(await limited.settle('test.nobody', settlement)).toBe('peer_unknown')
    expect(outcomeOf(await limited.send(peers[0], packet()))).toBe('fulfill')
    expect(await owed()).toBe(1_000n * cent)
    expect(await limited.balances()).toEqual({ [peers[0]]: 1_000n * cent })
  })

  describe('that refuses a packet for a moment', () => {
    type Wallet = Awaited<ReturnType<typeof setUp>>
    const reasons: Readonly<Record<string, (wallet: Wallet) => ReturnType<Wallet['rail']>>> = {
      'because the payment cannot be read': ({ rail }) =>
        rail(undefined, { incomingPayments: { get: () => Promise.reject(new Error('away')) } }),
      'because the peer owes too much': ({ rail, peers }) =>
        rail(undefined, {
          peers: [
            {
              ilpAddress: peers[0],
              asset: { assetCode: 'USD', assetScale: 9 },
              send: () => Promise.reject(new Error('it sends nothing')),
              token: `token of ${peers[0]}`,
              creditMax: 0n,
            },
          ],
        }),
      'because there is no rate': ({ rail }) => rail(undefined, { rateOf: () => undefined }),
      'because less arrives at the rate of the moment': ({ rail }) =>
        rail(undefined, { rateOf: () => ({ numerator: 1n, denominator: cent + 100_000n }) }),
      'because nothing arrives at the rate of the moment': ({ rail }) =>
        rail(undefined, { rateOf: () => ({ numerator: 1n, denominator: 10n ** 30n }) }),
    }

    test.each(Object.entries(reasons))('%s, never counts its repeat', async (_, refusing) => {
      const wallet = await setUp()
      const { rail, peers, packet, owed, receivedNow } = wallet
      const sent = packet()
      const code = outcomeOf(await refusing(wallet).send(peers[0], sent))
      expect(code).not.toBe('fulfill')
      // After R00, the sender would send nothing else.
      expect(code).not.toBe('R00')
      expect(outcomeOf(await rail().send(peers[0], sent))).toBe('R02')
      expect([await receivedNow(), await owed()]).toEqual([0n, 0n])
    })

    test.each(Object.entries(reasons))('%s, fulfills what it has credited', async (_, refusing) => {
      const wallet = await setUp()
      const { rail, peers, packet, owed, receivedNow } = wallet
      const sent = packet()
      expect(outcomeOf(await rail().send(peers[0], sent))).toBe('fulfill')
      expect(outcomeOf(await refusing(wallet).send(peers[0], sent))).toBe('fulfill')
      expect([await receivedNow(), await owed()]).toEqual([700n, 700n * cent])
    })
  })

  describe('whose process is killed', () => {
    const kills: readonly [Step, string | undefined, bigint][] = [
      ['reserves', undefined, 0n],
      ['credits', 'reserved', 0n],
      ['commits', 'reserved', 0n],
      ['replies', 'fulfilled', 700n],
    ]
    const possible = kills.filter(([step]) => step !== 'commits' || where !== 'in memory')
    test.each(possible)(
      'before it %s has the packet %s, and credits it when it comes again',
      async (last, state, credited) => {
        const { rail, peers, packet, rowOf, owed, receivedNow } = await setUp()
        const sent = packet()
        const killed = killedBefore(last)
        void rail(killed).send(peers[0], sent)
        await killed.ended
        await expect.poll(async () => (await rowOf(sent))?.state).toBe(state)
        expect(await receivedNow()).toBe(credited)
        expect(outcomeOf(await rail().send(peers[0], sent))).toBe('fulfill')
        expect([await receivedNow(), await owed()]).toEqual([700n, 700n * cent])
      },
    )

    test('claims nothing in the end for a packet that it had not credited', async () => {
      const { rail, peers, packet, rowOf, owed, receivedNow, clock } = await setUp()
      const sent = packet()
      const killed = killedBefore('credits')
      void rail(killed).send(peers[0], sent)
      await killed.ended
      await rail().recover()
      expect(await rowOf(sent)).toMatchObject({ state: 'reserved' })
      clock.advance(91_000)
      await rail().recover()
      expect(await rowOf(sent)).toMatchObject({ state: 'released' })
      expect([await receivedNow(), await owed()]).toEqual([0n, 0n])
    })
  })

  // In memory, there is no transaction that could fail.
  test.skipIf(where === 'in memory')(
    'credits nothing for a packet that is released while it is credited, and says so',
    async () => {
      const { rail, peers, packet, rowOf, owed, receivedNow, clock } = await setUp()
      const sent = packet()
      let hold = () => {}
      const held = new Promise<void>((resolve) => {
        hold = resolve
      })
      let reached = () => {}
      const reaching = new Promise<void>((resolve) => {
        reached = resolve
      })
      const slow: Process = {
        async step(step) {
          if (step !== 'credits') return
          reached()
          await held
        },
      }
      const reply = rail(slow).send(peers[0], sent)
      await reaching
      clock.advance(91_000)
      await rail().recover()
      hold()
      expect(outcomeOf(await reply)).toBe('R02')
      expect(await rowOf(sent)).toMatchObject({ state: 'released' })
      expect([await receivedNow(), await owed()]).toEqual([0n, 0n])
    },
  )

  describe('asked by a peer to close a packet', () => {
    test('shows the fulfillment of one that it has credited', async () => {
      const { rail, peers, packet } = await setUp()
      const sent = packet()
      await rail().send(peers[0], sent)
      const condition = conditionOf(sent)
      const closed = await rail().close(peers[0], condition)
      expect(closed).toMatchObject({ condition, outcome: 'fulfilled' })
      expect(isFulfillmentOf(closed.fulfillment, condition)).toBe(true)
    })

    test('never credits one that comes later', async () => {
      const { rail, peers, packet, owed, receivedNow } = await setUp()
      const sent = packet()
      const condition = conditionOf(sent)
      expect(await rail().close(peers[0], condition)).toEqual({ condition, outcome: 'never' })
      expect(outcomeOf(await rail().send(peers[0], sent))).toBe('R02')
      expect([await receivedNow(), await owed()]).toEqual([0n, 0n])
      expect(await rail().close(peers[0], condition)).toEqual({ condition, outcome: 'never' })
    })

    test('decides one whose process is gone', async () => {
      const { rail, peers, packet, owed } = await setUp()
      const sent = packet()
      const killed = killedBefore('credits')
      void rail(killed).send(peers[0], sent)
      await killed.ended
      const condition = conditionOf(sent)
      expect(await rail().close(peers[0], condition)).toEqual({ condition, outcome: 'never' })
      expect(outcomeOf(await rail().send(peers[0], sent))).toBe('R02')
      expect(await owed()).toBe(0n)
    })

    test('tells nothing about the packets of another peer', async () => {
      const { rail, peers, packet } = await setUp()
      const sent = packet()
      await rail().send(peers[0], sent)
      expect(await rail().close(peers[1], conditionOf(sent))).toMatchObject({ outcome: 'never' })
      expect(outcomeOf(await rail().send(peers[0], sent))).toBe('fulfill')
    })
  })
})

function conditionOf(packet: Uint8Array): string {
  return deserializeIlpPrepare(Buffer.from(packet)).executionCondition.toString('base64url')
}
