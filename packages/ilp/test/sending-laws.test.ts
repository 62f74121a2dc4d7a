import fc from 'fast-check'
import type { Amount } from 'open-payments-server'
import { runs } from 'open-payments-test-support/runs'
import { describe, expect, test } from 'vitest'
import type { PaymentSenderOptions, Peer } from '../src/index.js'
import { isUnknown, readReply, rejectsOf } from '../src/packet.js'
import { usePostgres } from './databases.js'
import { createLink, type Fate, useSkippingClock } from './paying-wallet.js'
import { booksIn, cent } from './receiving-wallet.js'

const cleared = usePostgres(2)
useSkippingClock()

const kinds = [
  'is lost',
  'its reply is lost',
  'its sender is killed before it leaves',
  'its sender is killed before its reply',
] as const
const fate: fc.Arbitrary<Fate> = fc.oneof(
  { weight: 3, arbitrary: fc.constant({ how: 'arrives' } as const) },
  { weight: 3, arbitrary: fc.record({ how: fc.constantFrom(...kinds) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      how: fc.constant('its receiver is killed' as const),
      before: fc.constantFrom('reserves', 'credits', 'replies'),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      how: fc.constant('is answered by a proxy' as const),
      status: fc.constantFrom(503, 429, 408, 404, 500, 502),
      forwards: fc.boolean(),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      how: fc.constant('is late' as const),
      lateMs: fc.constantFrom(500, 8_000, 15_000, 31_000),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ how: 'arrives twice' } as const) },
  {
    weight: 2,
    arbitrary: fc.record({
      how: fc.constant('is overstated' as const),
      by: fc.constantFrom(1n, 2n, 100n, 250n, 2n ** 63n),
    }),
  },
)

const history = fc.record({
  fates: fc.array(fate, { maxLength: 7 }),
  waits: fc.array(fc.constantFrom(1_000, 5_000, 12_000, 25_000, 45_000, 3_600_000), {
    maxLength: 6,
  }),
  isOurs: fc.boolean(),
  isInvoice: fc.boolean(),
  receiver: fc.constantFrom('USD' as const, 'EUR' as const),
  /** After which packet the receiver cannot be read, and how many reads fail. */
  unreadable: fc.option(fc.record({ after: fc.nat(4), reads: fc.constantFrom(1, 2, 1_000) }), {
    nil: undefined,
    freq: 3,
  }),
  /** What another payer pays, after which attempt. */
  other: fc.option(fc.record({ after: fc.nat(3), amount: fc.constantFrom(100n, 250n) }), {
    nil: undefined,
    freq: 3,
  }),
  skewMs: fc.constantFrom(0, 4_000),
})
type History = typeof history extends fc.Arbitrary<infer Value> ? Value : never
type Mistake = (options: PaymentSenderOptions) => Partial<PaymentSenderOptions>

const amount = 1_000n

async function run(where: string, given: Partial<History>, mistake?: Mistake) {
  const each = { ...quiet, ...given }
  const [here, there] = where === 'on PostgreSQL' ? await cleared() : []
  const link = await createLink({
    ...each,
    here: booksIn(here),
    there: booksIn(there),
    amount,
    ...(mistake !== undefined && { mistake }),
  })
  const fates = [...each.fates]
  let packets = 0
  const onFate = () => {
    if (each.unreadable?.after === packets) link.beUnreadable(each.unreadable.reads)
    packets += 1
  }
  for (const [attempt, wait] of each.waits.entries()) {
    if (await link.isOver()) break
    await link.process(fates, onFate).run()
    if (each.other?.after === attempt && !each.isInvoice) await link.payByOther(each.other.amount)
    await link.advance(wait)
  }
  // The link is healed. What is late arrives, or is too late.
  for (let healed = 0; healed < 16 && !(await link.isOver()); healed++) {
    await link.process([]).run()
    await link.advance(healed < 2 ? 45_000 : 3_600_000)
  }
  await link.advance(3_600_000)
  return { ...(await link.state()), each }
}

const quiet: History = {
  fates: [],
  waits: [1_000, 5_000, 45_000, 45_000],
  isOurs: false,
  isInvoice: false,
  receiver: 'USD',
  unreadable: undefined,
  other: undefined,
  skewMs: 0,
}

type End = Awaited<ReturnType<typeof run>>

const least = (one: bigint, other: bigint) => (one < other ? one : other)

/** What is debited for an amount that arrives: a euro costs 1.08 dollars. */
const priceOf = (value: bigint, { each }: End) =>
  each.receiver === 'USD' ? value : (value * 108n + 99n) / 100n

/** What an amount of the receiver costs at most in the asset of the peers. */
const linkOf = (value: bigint, { each }: End) =>
  each.receiver === 'USD' || value === 0n ? value * cent : ((value + 2n) * cent * 108n) / 100n

/** In another currency, a packet may have up to a hundredth more by the better rate of the peer, and a unit. */
const betterOf = ({ each }: End) =>
  each.receiver === 'USD' ? 0n : 4n * BigInt(each.fates.filter(isOverstated).length)
const isOverstated = ({ how }: Fate) => how === 'is overstated'

/** What a repeated request brings at most at a wallet that counts each: no sender can prevent it. */
const repeatsOf = ({ each }: End) =>
  each.isOurs ? 0n : 250n * BigInt(each.fates.filter(({ how }) => how === 'arrives twice').length)

const laws: Readonly<Record<string, (end: End) => boolean>> = {
  'L1: what is debited has arrived, or is listed': (end) =>
    end.debited >= priceOf(least(end.arrived - repeatsOf(end), amount), end) - 1n &&
    end.debited <= priceOf(end.arrived + end.inDoubt + end.byWord + betterOf(end), end) + 1n,
  'L2: never more arrives than was debited': (end) => end.arrived <= amount + repeatsOf(end),
  'L3: the books differ by what is listed at most': (end) =>
    // A packet that arrived in part by the receiver's word is owed as a whole.
    end.owing - end.owed <= linkOf(end.inDoubt + (end.byWord > 0n ? end.byWord + 250n : 0n), end) &&
    end.owing - end.owed <= end.difference &&
    end.owed - end.owing <=
      linkOf(end.denied + betterOf(end), end) +
        // What cannot be read in the end is not listed.
        (end.each.unreadable === undefined ? end.counted : linkOf(repeatsOf(end), end)),
  'L4: the payment ends': ({ state }) => state === 'completed' || state === 'failed',
  'L5: what is delivered by the record has arrived, or is listed': (end) =>
    end.delivered <= end.arrived + end.byWord + end.inDoubt + betterOf(end),
  'L6: a completed payment has arrived, or is listed': (end) =>
    end.state !== 'completed' ||
    end.arrived + betterOf(end) >= amount ||
    end.inDoubt + end.byWord > 0n,
  // What is beyond the rate of this wallet contradicts what the receiver says that it has received.
  'L7: nothing is in doubt if the receiver can be read': (end) =>
    end.each.unreadable?.reads === 1_000 || end.inDoubt === 0n || betterOf(end) > 0n,
  'L8: everything arrives if the link heals in time, or the receiver says that it has it': (end) =>
    end.each.waits.length > 2 ||
    end.each.unreadable !== undefined ||
    end.othersPaid > 0n ||
    (end.each.fates.some(isOverstated) || repeatsOf(end) > 0n
      ? end.arrived + end.byWord + end.inDoubt + betterOf(end) >= amount
      : end.arrived === amount),
  'L10: a packet is on the link once, and is decided once': ({ repeated, decidedAgain }) =>
    repeated === 0 && decidedAgain === 0,
}

function broken(end: End): readonly string[] {
  return Object.keys(laws).filter((law) => !laws[law]?.(end))
}

describe.each([
  ['in memory', 1_200, 5],
  ['on PostgreSQL', 120, 2],
] as const)('two wallets %s', (where, all, short) => {
  test('keep the laws of a rail, whatever the link does and whoever is killed', async () => {
    await fc.assert(
      fc.asyncProperty(history, async (each) => {
        const end = await run(where, each)
        expect(broken(end), text(end)).toEqual([])
      }),
      { numRuns: runs(all, short) },
    )
  })
})

function text(end: End): string {
  return JSON.stringify(end, (_, value) => (typeof value === 'bigint' ? `${value}n` : value))
}

/** Puts something between the sender and its peer. */
const between =
  (change: (peer: Peer) => Partial<Peer>): Mistake =>
  ({ rail }) => ({
    rail: {
      peerFor(address) {
        const peer = rail.peerFor(address)
        return peer && { ...peer, ...change(peer) }
      },
    },
  })

/** A status that is taken as the word of the peer. */
const believing = (code: 'T03' | 'F00') =>
  between(({ send }) => ({
    async send(packet) {
      const bytes = await send(packet)
      const reply = readReply(bytes)
      const isStatus = reply !== undefined && 'code' in reply && /status/.test(reply.message)
      return isStatus ? rejectsOf('')(code, 'the peer is busy') : bytes
    },
  }))

type Outgoing = PaymentSenderOptions['outgoingPayments']
type Failed = NonNullable<Parameters<Outgoing['fail']>[1]>
type Report = Failed & { readonly sentAmount: Amount; readonly deliveredAmount: Amount }

/** Reports a payment that fails in another way. */
const failing =
  (fail: (outgoing: Outgoing, id: string, report: Report) => unknown): Mistake =>
  ({ outgoingPayments }) => ({
    outgoingPayments: {
      ...outgoingPayments,
      fail: (id, report) => fail(outgoingPayments, id, report as Report) as never,
    },
  })

const less = ({ value, ...asset }: Amount, by: Amount | undefined): Amount => ({
  ...asset,
  value: `${BigInt(value) - BigInt(by?.value ?? 0)}`,
})

const ok: Fate = { how: 'arrives' }
const late: Partial<History> = {
  fates: [ok, { how: 'is late', lateMs: 15_000 }],
  waits: [5_000, 5_000, 45_000],
}
const forwarded: Partial<History> = {
  fates: [ok, { how: 'is answered by a proxy', status: 503, forwards: true }],
}
const unreadable: Partial<History> = {
  fates: [ok, { how: 'is lost' }],
  unreadable: { after: 1, reads: 1_000 },
}

/** Mistakes, with a history in which each shows, and a law that it breaks. */
const mistakes: Readonly<Record<string, readonly [Mistake, Partial<History>, string]>> = {
  'a status of HTTP means that the packet may be sent again': [believing('T03'), forwarded, 'L2'],
  'a status of HTTP means that the packet was refused': [believing('F00'), forwarded, 'L2'],
  'the receiver is believed before the packet has expired': [
    ({ now = () => Date.now() }) => ({ now: () => now() + 120_000 }),
    late,
    'L2',
  ],
  'what is in doubt is not listed': [
    ({ sendings }) => ({ sendings: { ...sendings, listed: async () => [] } }),
    unreadable,
    'L3',
  ],
  'what the receiver has in the end is not recorded': [
    ({ sendings }) => ({
      sendings: {
        ...sendings,
        write: (id, writer, { received: _, ...sending }, isListed) =>
          sendings.write(id, writer, sending, isListed),
      },
    }),
    { fates: [ok, { how: 'arrives twice' }] },
    'L3',
  ],
  'what did not arrive stays in the book of the peer': [
    ({ book }) => ({
      book: {
        ...book,
        reserve: (...packet) => book.reserve(...packet),
        get: (key) => book.get(key),
        decide: async (key, decision, proof) =>
          decision === 'released' ? 'released' : book.decide(key, decision, proof),
      },
    }),
    { fates: [ok, { how: 'is lost' }] },
    'L3',
  ],
  'what is in doubt at the end is not debited': [
    failing(({ fail }, id, { inDoubt, ...report }) =>
      fail(id, { ...report, sentAmount: less(report.sentAmount, inDoubt?.amount) }),
    ),
    { ...unreadable, fates: [ok, { how: 'its reply is lost' }] },
    'L1',
  ],
  'a process forgets since when it waits': [
    ({ sendings }) => ({
      sendings: {
        ...sendings,
        write: (id, writer, { waiting: _, ...sending }, isListed) =>
          sendings.write(id, writer, sending, isListed),
      },
    }),
    unreadable,
    'L4',
  ],
  'what was asked for is recorded as delivered': [
    ({ outgoingPayments }) => ({
      outgoingPayments: {
        ...outgoingPayments,
        async fail(id, report) {
          const { receiveAmount } = (await outgoingPayments.get(id)) ?? {}
          const deliveredAmount = receiveAmount ?? report?.deliveredAmount
          return outgoingPayments.fail(id, {
            ...report,
            ...(deliveredAmount && { deliveredAmount }),
          })
        },
      },
    }),
    unreadable,
    'L5',
  ],
  'a payment that fails is completed': [
    failing(({ reportSent }, id, { sentAmount, deliveredAmount }) =>
      reportSent(id, { sentAmount, deliveredAmount, final: true }),
    ),
    {
      fates: [ok, ...Array.from({ length: 30 }, (): Fate => ({ how: 'is refused' }))],
      waits: [45_000, 45_000, 45_000, 3_600_000, 3_600_000, 3_600_000],
    },
    'L6',
  ],
  'what the receiver has received is not read': [
    ({ receivers }) => ({
      async receivers(url) {
        const { receivedAmount: _, ...found } = {
          receivedAmount: undefined,
          ...(await receivers(url)),
        }
        if (!found.ok) return found
        const receivedAmount = { ...found.receiver.receivedAmount, assetCode: 'XTS' }
        return { ...found, receiver: { ...found.receiver, receivedAmount } }
      },
    }),
    { fates: [ok, { how: 'is lost' }] },
    'L7',
  ],
  'a packet without a reply is sent again': [
    between(({ send }) => ({
      async send(packet) {
        const reply = await send(packet)
        return isUnknown(readReply(reply)) ? send(packet) : reply
      },
    })),
    { fates: [ok, { how: 'its reply is lost' }] },
    'L10',
  ],
  'a payment is given up at the first packet without a reply': [
    ({ receivers }) => {
      let reads = 0
      return {
        receivers: async (url) =>
          ++reads > 2 ? { ok: false, reason: 'it is gone' } : receivers(url),
      }
    },
    { fates: [ok, { how: 'is lost' }], waits: [45_000] },
    'L8',
  ],
}

/** The laws that a history breaks without a mistake. Several mistakes have the same one. */
const known = new Map<string, Promise<readonly string[]>>()
function brokenWithout(each: Partial<History>): Promise<readonly string[]> {
  const key = JSON.stringify(each)
  const found = known.get(key) ?? run('in memory', each).then(broken)
  known.set(key, found)
  return found
}

test.each(Object.entries(mistakes))(
  'the laws find a mistake: %s',
  async (_, [mistake, each, law]) => {
    expect(await brokenWithout(each)).toEqual([])
    const found = broken(await run('in memory', each, mistake))
    expect(found.map((name) => name.split(':')[0])).toContain(law)
  },
)
