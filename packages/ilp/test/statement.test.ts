import fc from 'fast-check'
import {
  concludeFrom,
  openSettlement,
  reserveAttempt,
  type Settlement,
} from 'open-payments-server/attempts'
import { isLong, runs } from 'open-payments-test-support/runs'
import { describe, expect, test } from 'vitest'
import {
  compareStatements,
  memoryBook,
  memorySendingBook,
  type PacketBook,
  type PacketState,
  type PaymentSenderOptions,
  paymentSender,
  type StatedPacket,
  type Statement,
  statementOf,
} from '../src/index.js'
import { readPrepare, readReply, rejectsOf, sha256 } from '../src/packet.js'
import { usePostgres } from './databases.js'
import { createLink, type Fate, type Setting, useSkippingClock } from './paying-wallet.js'
import { booksIn, cent, usd } from './receiving-wallet.js'

const cleared = usePostgres(2)
useSkippingClock()

const ok: Fate = { how: 'arrives' }
const noReply: Fate = { how: 'its reply is lost' }

async function open(where: string, more: Partial<Setting> = {}) {
  const [one, other] = where === 'in memory' ? [] : await cleared()
  const books = { here: booksIn(one), there: booksIn(other) }
  return createLink({ ...books, receiver: 'USD', isOurs: true, amount: 1_000n, ...more })
}
type Link = Awaited<ReturnType<typeof open>>

/** Lets the payment end, perhaps although nobody can read its receiver. */
async function give(link: Link, fates: readonly Fate[], isReadable: boolean) {
  const onFate = (how: string) =>
    void (how !== 'arrives' && link.beUnreadable(isReadable ? 0 : 1_000))
  await link.process([...fates], onFate).run()
  for (let more = 0; more < 16 && !(await link.isOver()); more++) {
    await link.advance(more < 2 ? 45_000 : 3_600_000)
    await link.process([]).run()
  }
  await link.advance(3_600_000)
  await link.receiving.rail().recover()
}

/** What both wallets state about each other, and compare. */
async function stated(link: Link) {
  const now = link.clock.now()
  const period = { from: 0, to: now }
  const { book } = link.process([]).options
  const here = await statementOf(book, 'test.wallet', period, now)
  const there = await statementOf(link.receiving.book, 'test.here', period, now)
  return { here, there, differences: compareStatements(here, there) }
}

const sum = (differences: ReturnType<typeof compareStatements>) =>
  differences.reduce((all, { amount }) => all + amount, 0n)

async function conditionsListed(link: Link): Promise<readonly string[]> {
  const listed: string[] = []
  for await (const { doubts } of link.process([]).sender.inDoubt()) {
    listed.push(...doubts.map(({ reference }) => reference))
  }
  return listed
}

const fate = fc.constantFrom<Fate>(
  ok,
  noReply,
  { how: 'is lost' },
  { how: 'its sender is killed before its reply' },
  { how: 'its sender is killed before it leaves' },
  { how: 'its receiver is killed', before: 'credits' },
  { how: 'its receiver is killed', before: 'replies' },
)

const history = fc.record({
  fates: fc.array(fate, { minLength: 1, maxLength: 5 }),
  isReadable: fc.boolean(),
  /** Otherwise the receiver's word decides, if it can be read. */
  closes: fc.boolean(),
})
type History = typeof history extends fc.Arbitrary<infer Value> ? Value : never
const examples: readonly [History][] = [
  [{ fates: [ok, noReply], isReadable: false, closes: false }],
  [{ fates: [noReply], isReadable: true, closes: false }],
  [{ fates: [ok, { how: 'is lost' }], isReadable: true, closes: false }],
  [{ fates: [ok, noReply], isReadable: true, closes: true }],
]
const withoutClose: Setting['mistake'] = ({ rail }) => ({
  rail: {
    peerFor(address) {
      const { close: _, ...peer } = rail.peerFor(address) ?? {}
      return 'send' in peer ? peer : undefined
    },
  },
})

describe.each([
  ['in memory', 300, 4],
  ['on PostgreSQL', 40, 2],
] as const)('the statements of two wallets %s', (where, all, short) => {
  test('name each packet by which their books differ, which is listed, and decide all that is listed', async () => {
    await fc.assert(
      fc.asyncProperty(history, async ({ fates, isReadable, closes }) => {
        const link = await open(where, closes ? {} : { mistake: withoutClose })
        await give(link, fates, isReadable)
        const { owing, owed, arrived } = await link.state()
        const before = await stated(link)
        expect(sum(before.differences)).toBe(owed - owing)
        const listed = await conditionsListed(link)
        for (const { condition } of before.differences) expect(listed).toContain(condition)
        // The word of a wallet that closes packets is exact.
        if (isReadable && closes) expect(before.differences).toEqual([])

        const { sender } = link.process([])
        const decision = {
          what: 'stated',
          who: 'ada',
          peer: 'test.wallet',
          statement: before.there,
        } as const
        const decided = await sender.decide(link.id, decision)
        if (listed.length > 0) expect(decided).toMatchObject({ ok: true, changed: true })
        expect((await stated(link)).differences).toEqual([])
        const after = await link.state()
        expect(after).toMatchObject({ inDoubt: 0n, byWord: 0n, denied: 0n, difference: 0n })
        expect([after.owing, after.owed]).toEqual([arrived * cent, arrived * cent])
        // Each call is made twice: a process may be killed after it.
        const { outgoingPayments } = link
        for (const isFirst of [true, false]) {
          for await (const { decideDoubt } of sender.inDoubt()) {
            if (decideDoubt === undefined) continue
            const done = await outgoingPayments.decideDoubt(link.id, decideDoubt)
            expect(done).toMatchObject({ ok: true, changed: isFirst })
          }
        }
        for (const _ of [1, 2]) {
          const next = await sender.decide(link.id, { what: 'corrected', who: 'ada' })
          if (next.ok) expect(next).toEqual({ ok: true, changed: true })
        }
        for await (const left of sender.inDoubt()) expect(left).toBeUndefined()
        expect(await link.state()).toMatchObject({ debited: arrived, recordedDoubt: 0n })
      }),
      { numRuns: runs(all, short), examples: isLong ? [...examples] : examples.slice(0, short) },
    )
  })
})

test('a statement that lacks what its wallet has credited is found by the next one', async () => {
  const link = await open('in memory', { mistake: withoutClose })
  await give(link, [ok, noReply], false)
  const { there } = await stated(link)
  const conditions = await conditionsListed(link)
  const packets = there.packets.filter(({ condition }) => !conditions.includes(condition))
  expect(packets.length).toBeLessThan(there.packets.length)
  const decision = {
    what: 'stated',
    who: 'ada',
    peer: 'test.wallet',
    statement: { ...there, packets },
  } as const
  const { sender } = link.process([])
  expect(await sender.decide(link.id, decision)).toMatchObject({ ok: true, changed: true })
  const { differences } = await stated(link)
  expect(differences.map(({ condition }) => condition)).toEqual(conditions.toSorted())
  const { owing, owed } = await link.state()
  expect(sum(differences)).toBe(owed - owing)
})

test.each(['T03', 'F02'] as const)(
  'a packet that its peer fulfilled and rejected with %s is not owed, and the statements alone name its claim',
  async (code) => {
    const claims: StatedPacket[] = []
    const rejecting: Setting['mistake'] = ({ rail }) => ({
      rail: {
        peerFor(address) {
          const peer = rail.peerFor(address)
          const send = async (packet: Uint8Array) => {
            const reply = (await peer?.send(packet)) ?? new Uint8Array()
            const { fulfillment } = { fulfillment: undefined, ...readReply(reply) }
            const prepare = readPrepare(packet)
            if (fulfillment === undefined || prepare === undefined || claims.length > 0)
              return reply
            const { amount, expiresAt, executionCondition } = prepare
            claims.push({
              ...{ direction: 'in', state: 'fulfilled', amount, expiresAt: expiresAt.getTime() },
              condition: executionCondition.toString('base64url'),
              fulfillment: fulfillment.toString('base64url'),
            })
            return rejectsOf('test.wallet')(code, 'it was not carried out')
          }
          return peer && { ...peer, send }
        },
      },
    })
    const link = await open('in memory', { isOurs: false, mistake: rejecting })
    await give(link, [], true)
    const { owing, owed, debited } = await link.state()
    // What it has delivered and denied is its own loss: the payer was debited once.
    expect([debited, owing, owed - owing]).toEqual([1_000n, 1_000n * cent, 250n * cent])
    const { here } = await stated(link)
    const packets = here.packets.map((each) => ({ ...each, direction: 'in' as const }))
    const there = { ...here, packets: [...packets, ...claims] }
    const [claim] = claims
    expect(compareStatements(here, there)).toEqual([
      {
        direction: 'out',
        condition: claim?.condition,
        there: expect.anything(),
        amount: owed - owing,
      },
    ])
    const decision = { what: 'stated', who: 'ada', peer: 'test.wallet', statement: there } as const
    await link.process([]).sender.decide(link.id, decision)
    expect((await link.state()).owing).toBe(owing)
  },
)

/** Two packets of 2.50 were lost or had no reply; the receiver has 2.50 more, which were given to the first of them. */
const peer = 'test.peer'
/** What is left if none of the two has arrived: the payer was debited 2.50. */
const refund = { doubts: [], mismatch: { debited: { value: '250' }, due: { value: '0' } } }

async function ofTwo(now = 100_000) {
  const names = ['first', 'second'] as const
  const proofs = names.map((name) => Buffer.alloc(32, name).toString('base64url'))
  const conditions = names.map((name) => sha256(Buffer.alloc(32, name)).toString('base64url'))
  let settlement: Settlement = { ...openSettlement({ amount: 500n, now: 0 }), base: '0' }
  const book: PacketBook = memoryBook()
  for (const reference of conditions) {
    const reserved = reserveAttempt(settlement, { reference, amount: 250n, notAfter: 1 }, 0n, 0)
    if (reserved.ok) settlement = reserved.record
    const key = { peer: 'test.peer', direction: 'out', condition: reference } as const
    await book.reserve({ ...key, amount: 250n, expiresAt: 1, reservedAt: 0, paymentId: 'one' })
  }
  const evidence = { by: 'sum', received: 250n, askedAt: 20_000 } as const
  settlement = concludeFrom(settlement, evidence, 10_000, 20_000).settlement
  const sendings = memorySendingBook()
  await sendings.take('one', 'ada')
  const route = { peer: 'test.peer', ilpAddress: 'test.peer.bob', sharedSecret: '' }
  const packets = Object.fromEntries(conditions.map((each) => [each, '250']))
  await sendings.write('one', 'ada', { route, settlement, packets, sent: '0' }, true)
  const [debitAmount, sentAmount] = [500n, 250n].map((value) => ({ ...usd, value: `${value}` }))
  const amounts = { debitAmount, receiveAmount: debitAmount, sentAmount }
  const outgoingPayments = { get: async () => ({ status: 'failed', ...amounts }) }
  const sender = paymentSender({
    book,
    sendings,
    outgoingPayments,
    now: () => now,
  } as unknown as PaymentSenderOptions)
  return { book, sender, proofs, conditions }
}

test.each([0, 1])('a statement proves which packet arrived: number %i of two', async (arrived) => {
  const { book, sender, proofs, conditions } = await ofTwo()
  const packet = { direction: 'in', expiresAt: 1, amount: '250', state: 'fulfilled' } as const
  const [condition = '', fulfillment = ''] = [conditions[arrived], proofs[arrived]]
  const statement = { from: 0, to: 2, packets: [{ ...packet, condition, fulfillment }] }
  const decided = await sender.decide('one', { what: 'stated', who: 'ada', peer, statement })
  // Nothing is in excess: as much arrived as the receiver has said.
  expect(decided).toEqual({ ok: true, changed: true })
  expect(await book.balance('test.peer')).toBe(-250n)
})

test('a statement proves nothing by what is no fulfillment, whatever state it states', async () => {
  const { book, sender, conditions } = await ofTwo()
  const claims = ['fulfilled', 'by_word', 'in_doubt'] as const
  for (const state of claims) {
    const packets = conditions.map((condition) => {
      return { direction: 'in', expiresAt: 1, amount: '250', state, condition, fulfillment: 'no' }
    }) satisfies readonly unknown[] as Statement['packets']
    const statement = { from: 0, to: 2, packets }
    const decided = await sender.decide('one', { what: 'stated', who: 'ada', peer, statement })
    expect(decided).toMatchObject({ ok: false, refusal: 'nothing_in_doubt' })
  }
  expect(await book.list({ state: 'fulfilled' })).toEqual([])
})

test('a statement of another peer decides nothing', async () => {
  const { sender } = await ofTwo()
  const statement = { from: 0, to: 2, packets: [] }
  const other = { what: 'stated', who: 'ada', peer: 'test.other', statement } as const
  expect(await sender.decide('one', other)).toMatchObject({ ok: false, refusal: 'other_peer' })
  expect(await sender.decide('one', { ...other, peer })).toMatchObject({ ok: true, left: refund })
})

test('a statement of a period that has not ended decides what had expired a minute ago alone', async () => {
  const statement = { from: 0, to: 1_000_000_000, packets: [] }
  const decision = { what: 'stated', who: 'ada', peer, statement } as const
  const before = await ofTwo(60_000)
  expect(await before.sender.decide('one', decision)).toMatchObject({
    ok: false,
    refusal: 'nothing_in_doubt',
  })
  const after = await ofTwo(60_002)
  expect(await after.sender.decide('one', decision)).toMatchObject({ ok: true, left: refund })
})

describe('a statement', () => {
  const fulfillment = Buffer.alloc(32, 1).toString('base64url')
  const condition = sha256(Buffer.alloc(32, 1)).toString('base64url')
  const now = 1_000_000

  /** The statement of a book with one packet, which came in or went out. */
  async function one(
    direction: 'in' | 'out',
    state: PacketState,
    { amount = 250n, proof = fulfillment, expiresAt = 500_000 } = {},
  ): Promise<Statement> {
    const book: PacketBook = memoryBook()
    const key = { peer: 'test.peer', direction, condition }
    await book.reserve({ ...key, amount, expiresAt, reservedAt: 0, paymentId: 'one' })
    if (state !== 'reserved') await book.decide(key, state, { fulfillment: proof })
    return statementOf(book, 'test.peer', { from: 0, to: now }, now)
  }
  const compared = async (here: Promise<Statement>, there: Promise<Statement>) =>
    compareStatements(await here, await there)

  test('agrees with that of the peer if both have the packet, with its proof', async () => {
    expect(await compared(one('out', 'fulfilled'), one('in', 'fulfilled'))).toEqual([])
    expect(await compared(one('in', 'fulfilled'), one('out', 'fulfilled'))).toEqual([])
    expect(await compared(one('out', 'released'), one('in', 'released'))).toEqual([])
  })

  test('differs by a packet that counts on one side only, by its amount, and by its proof', async () => {
    const none = one('in', 'released')
    expect(await compared(one('out', 'unproven'), none)).toMatchObject([
      { direction: 'out', condition, here: { state: 'by_word' }, amount: -250n },
    ])
    expect(await compared(one('out', 'released'), one('in', 'fulfilled'))).toMatchObject([
      { there: { state: 'fulfilled', fulfillment }, amount: 250n },
    ])
    const more = one('in', 'fulfilled', { amount: 300n })
    expect(await compared(one('out', 'fulfilled'), more)).toMatchObject([{ amount: 50n }])
    expect(await compared(one('out', 'reserved'), one('in', 'fulfilled'))).toMatchObject([
      { here: { state: 'in_doubt' }, there: { state: 'fulfilled' }, amount: 0n },
    ])
  })

  test('proves nothing by a fulfillment of another packet', async () => {
    const proof = Buffer.alloc(32, 2).toString('base64url')
    const claimed = one('in', 'fulfilled', { proof })
    expect(await compared(one('out', 'unproven'), claimed)).toEqual([])
    expect(await compared(one('out', 'fulfilled'), claimed)).toMatchObject([
      { there: { state: 'in_doubt' } },
    ])
  })

  test('has no packet that may still change, and is compared for the period of both', async () => {
    const young = { expiresAt: now - 59_999 }
    expect((await one('in', 'fulfilled', young)).packets).toEqual([])
    const old = await one('out', 'fulfilled')
    expect(old.to).toBe(now - 60_000)
    const later = { from: 600_000, to: 700_000, packets: [] }
    expect(compareStatements(old, later)).toEqual([])
  })

  test('is the same, byte for byte, of books that have the same packets in another order', async () => {
    const keys = ['b', 'A', 'a', 'B', '-', '_'].map((name) => name.repeat(43))
    const texts = [keys, keys.toReversed()].map(async (order) => {
      const book: PacketBook = memoryBook()
      for (const each of order) {
        const key = { peer: 'test.peer', direction: 'in', condition: each } as const
        await book.reserve({ ...key, amount: 1n, expiresAt: 1, reservedAt: 0, paymentId: 'one' })
      }
      return JSON.stringify(await statementOf(book, 'test.peer', { from: 0, to: now }, now))
    })
    expect(await texts[0]).toBe(await texts[1])
  })
})
