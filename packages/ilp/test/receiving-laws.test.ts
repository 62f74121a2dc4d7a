import type { Database, Sql } from 'create-open-payments-server/wallet/sql'
import fc from 'fast-check'
import { deserializeIlpPrepare, isFulfill, serializeIlpPrepare } from 'ilp-packet'
import { manualClock } from 'open-payments-test-support/clock'
import { streamPacket } from 'open-payments-test-support/ilp'
import { runs } from 'open-payments-test-support/runs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { PacketBook, RailOptions } from '../src/index.js'
import { isFulfillmentOf, isUnknown, readReply } from '../src/packet.js'
import { clear, postgres } from './databases.js'
import {
  alive,
  booksIn,
  cent,
  createWallet,
  killedBefore,
  type Process,
} from './receiving-wallet.js'

let database: Database
beforeAll(async () => {
  database = await postgres()
})
afterAll(() => database.close())

const peers = ['test.one', 'test.two']
const values = [1n, 250n, 700n]

/** What happens to a packet, each time in a new process. */
const event = fc.record({
  packet: fc.nat(3),
  what: fc.oneof(
    { weight: 4, arbitrary: fc.constant('arrives' as const) },
    {
      weight: 5,
      arbitrary: fc.constantFrom(
        'is killed before it reserves' as const,
        'is killed before it credits' as const,
        'is killed before it commits' as const,
        'is killed before it replies' as const,
        'arrives twice at once' as const,
        'is closed' as const,
        'is closed while it arrives' as const,
        'is repeated too late' as const,
        'is repeated while the wallet refuses it' as const,
        'comes while there is no rate' as const,
        'comes while the payment cannot be read' as const,
      ),
    },
    {
      weight: 2,
      arbitrary: fc.constantFrom('expires' as const, 'the payment is complete' as const),
    },
  ),
})
type Event = typeof event extends fc.Arbitrary<infer Value> ? Value : never

type Mistake = (
  wallet: ReturnType<typeof createWallet>,
  process: Process,
) => Partial<RailOptions<Sql>> & { readonly book?: PacketBook<Sql> }

/** Runs a history. After each event, what is credited is claimed, and what is claimed has a proof. */
async function holds(
  where: string,
  events: readonly Event[],
  mistake: Mistake = () => ({}),
): Promise<void> {
  if (where !== 'in memory') await clear(database)
  const books = booksIn(where === 'in memory' ? undefined : database)
  const clock = manualClock(Date.now())
  const wallet = createWallet(books, peers, { clock })
  const details = await wallet.createPayment()
  const expiresAt = clock.now() + 30_000
  const packets = values.concat(values).map((value, index) => {
    const amount = value
    const made = streamPacket(details, { amount, expiresAt, sequence: index + 1 })
    return serializeIlpPrepare({ ...deserializeIlpPrepare(made), amount: `${value * cent}` })
  })
  const conditionAt = (index: number) => conditionOf(packets[index] as Buffer)
  const rail = (process: Process = alive) => wallet.rail(process, mistake(wallet, process))
  const peerOf = (index: number) => peers[index % peers.length] ?? ''
  const closed = new Set<number>()
  const fulfilled = new Set<number>()
  const rejected = new Set<number>()

  async function send(index: number, from = rail()) {
    const reply = readReply(await from.send(peerOf(index), packets[index] ?? Buffer.alloc(0)))
    if (reply !== undefined && isFulfill(reply)) fulfilled.add(index)
    else if (!isUnknown(reply)) rejected.add(index)
  }
  /** A process whose wallet refuses a packet after other work, when another process has perhaps credited it. */
  const refusing = (work: () => Promise<void>) =>
    wallet.rail(alive, {
      ...mistake(wallet, alive),
      async receive() {
        await work()
        return { ok: false, refusal: 'payment_not_allowed', reason: 'not now' }
      },
    })
  const momentarily = (more: Partial<RailOptions<Sql>>) =>
    wallet.rail(alive, { ...mistake(wallet, alive), ...more })
  async function close(index: number) {
    const { outcome } = await rail().close(peerOf(index), conditionAt(index))
    if (outcome === 'never') closed.add(index)
    else fulfilled.add(index)
  }
  async function happen({ packet: index, what }: Event): Promise<unknown> {
    const [, last] = /^is killed before it (\w+)$/.exec(what) ?? []
    if (last !== undefined) {
      const killed = killedBefore(last as 'commits')
      const sending = send(index, rail(killed))
      // It may be refused before it comes to the step.
      return Promise.race([killed.ended, sending])
    }
    switch (what) {
      case 'arrives twice at once':
        return Promise.all([send(index), send(index)])
      case 'is closed':
        return close(index)
      case 'is closed while it arrives':
        return Promise.all([send(index), close(index)])
      case 'is repeated too late':
        clock.advance(Math.max(0, expiresAt - 200 - clock.now()))
        return send(index)
      case 'is repeated while the wallet refuses it':
        return send(
          index,
          refusing(() => send(index)),
        )
      case 'comes while there is no rate':
        return send(index, momentarily({ rateOf: () => undefined }))
      case 'comes while the payment cannot be read': {
        const get = () => Promise.reject(new Error('away'))
        return send(index, momentarily({ incomingPayments: { get } }))
      }
      case 'expires':
        clock.advance(100_000)
        return rail().recover()
      case 'the payment is complete':
        return wallet.resources.incomingPayments.complete(details.id)
      default:
        return send(index)
    }
  }
  async function check(when: string) {
    const rows = await wallet.book.list({ direction: 'in' })
    const counted = rows.filter(({ state }) => state === 'fulfilled')
    const claimed = counted.reduce((sum, { amount }) => sum + amount, 0n)
    expect(claimed, `${when}: what is credited is claimed`).toBe(
      (await wallet.received(details)) * cent,
    )
    for (const { fulfillment = '', condition } of counted) {
      expect(isFulfillmentOf(fulfillment, condition), `${when}: a claim has its proof`).toBe(true)
    }
    // What the peer was told is what the books say.
    const told = [...fulfilled].map((index) => conditionAt(index))
    expect(counted.map(({ condition }) => condition)).toEqual(expect.arrayContaining(told))
    for (const index of rejected) {
      const { state } = rows.find(({ condition }) => condition === conditionAt(index)) ?? {}
      expect(state, `${when}: what was rejected does not count`).not.toBe('fulfilled')
    }
    for (const index of closed) expect(fulfilled.has(index), 'closed, and fulfilled').toBe(false)
    return claimed
  }

  for (const each of events) {
    await happen(each)
    await check(JSON.stringify(each))
  }
  clock.advance(100_000)
  await rail().recover()
  const claimed = await check('in the end')
  const owed = await Promise.all(peers.map((peer) => wallet.book.balance(peer)))
  expect(
    owed.reduce((sum, each) => sum + each, 0n),
    'no more is claimed',
  ).toBe(claimed)
}

function conditionOf(packet: Buffer): string {
  return deserializeIlpPrepare(packet).executionCondition.toString('base64url')
}

const history = fc.array(event, { minLength: 1, maxLength: 10 })

describe.each([
  ['in memory', 600],
  ['on PostgreSQL', 96],
])('a wallet %s', (where, count) => {
  test('claims from its peers exactly what it has credited, with proofs, whenever it is killed', async () => {
    await fc.assert(
      fc.asyncProperty(history, (events) => holds(where, events)),
      { numRuns: runs(count, where === 'in memory' ? 15 : 4) },
    )
  })
})

/** Mistakes that the law must find, each with the histories in which it shows. */
const mistakes: Readonly<Record<string, Mistake>> = {
  'the claim and the credit in two commits': ({ resources }, { step }) => ({
    async receive(id, funds, fulfill) {
      const received = await resources.incomingPayments.receive(id, funds)
      await step('commits')
      if (received.ok) await fulfill(async () => [])
      return received
    },
  }),
  'no proof of a claim': ({ book }) => ({
    book: {
      ...book,
      reserve: ({ fulfillment: _, ...packet }, max) => book.reserve(packet, max),
    },
  }),
  'a peer that closes a packet is told before it is recorded': ({ book }) => ({
    book: {
      ...book,
      close: async (key, now) => ({
        ...key,
        amount: 0n,
        state: 'released',
        paymentId: '',
        expiresAt: now,
        reservedAt: now,
      }),
    },
  }),
}

test.each(Object.keys(mistakes))('the law finds a mistake: %s', async (name) => {
  const found = await fc.check(
    fc.asyncProperty(history, (events) => holds('in memory', events, mistakes[name])),
    { numRuns: 200, endOnFailure: true },
  )
  expect(found.failed).toBe(true)
})
