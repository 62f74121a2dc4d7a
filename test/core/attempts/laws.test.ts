import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  type Conclusion,
  concludeFrom,
  decideAttempt,
  decideByOperator,
  doubtsOf,
  type Evidence,
  openSettlement,
  recordReply,
  reserveAttempt,
  type Settlement,
  stopSettlement,
  totalsOf,
} from '../../../src/entry-attempts.js'
import { runs } from '../../support/runs.js'
import { marginMs, overMs, start, validMs } from '../../support/settlements.js'

/**
 * Histories of one settlement at an honest other side, whose clock may be behind. The test knows what truly arrived,
 * and the machine only the replies and answers that it gets.
 */
type Step =
  | {
      readonly do: 'send'
      readonly amount: bigint
      /** How long after the request it takes effect; `undefined`: never. */
      readonly takesMs: number | undefined
      readonly hasReply: boolean
    }
  | { readonly do: 'wait'; readonly ms: number }
  /** The answer shows what there was when it was given, or when it was asked for. */
  | { readonly do: 'ask'; readonly isOld: boolean; readonly takesMs: number }
  | { readonly do: 'other'; readonly amount: bigint }
  | { readonly do: 'late proofs' }

interface History {
  readonly steps: readonly Step[]
  readonly behindMs: number
  readonly by: 'id' | 'sum'
}

const amount = fc.constantFrom(100n, 250n, 300n)
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('send' as const),
      amount,
      takesMs: fc.constantFrom(0, 0, undefined, undefined, 5_000, 19_999, 28_000, 60_000),
      hasReply: fc.constantFrom(true, false, false),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('wait' as const),
      ms: fc.constantFrom(1_000, 15_000, 21_000, 35_000),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('ask' as const),
      isOld: fc.boolean(),
      takesMs: fc.constantFrom(0, 0, 2_000, 30_000),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('other' as const), amount }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('late proofs' as const) }) },
)
const history: fc.Arbitrary<History> = fc.record({
  steps: fc.array(step, { minLength: 2, maxLength: 14 }),
  behindMs: fc.constantFrom(0, 4_000, 9_000),
  by: fc.constantFrom('id', 'sum', 'sum'),
})

interface Machine {
  readonly concludeFrom: typeof concludeFrom
  readonly marginMs: number
}

interface Result {
  readonly settlement: Settlement
  readonly arrived: bigint
  readonly othersPaid: bigint
}

/** Runs a history, and calls `check` after each step. */
function run(
  { steps, behindMs, by }: History,
  machine: Machine,
  check: (result: Result) => void,
): Result {
  let now = start
  const [before, amountOfAll] = [500n, 1_000n]
  let settlement = openSettlement({ amount: amountOfAll, now })
  if (by === 'sum') settlement = { ...settlement, base: `${before}` }
  /** When each attempt takes effect, if it does. */
  const effects = new Map<string, { readonly at: number; readonly amount: bigint }>()
  let othersPaid = 0n
  const arrivedBy = (instant: number) =>
    [...effects.values()].reduce((sum, { at, amount }) => (at <= instant ? sum + amount : sum), 0n)

  function reply(reference: string): void {
    const effect = effects.get(reference)
    const hasArrived = effect !== undefined && effect.at <= now
    const given = hasArrived
      ? ({ outcome: 'proven' } as const)
      : ({ outcome: 'unknown', reason: 'no reply' } as const)
    const replied = recordReply(settlement, reference, given, now)
    if (replied.ok) settlement = replied.record
  }

  function send(each: Step & { do: 'send' }): void {
    const reference = `${settlement.attemptCount}`
    const notAfter = now + validMs
    const attempt = { reference, amount: each.amount, notAfter }
    const reserved = reserveAttempt(settlement, attempt, 1_000_000n, now)
    if (!reserved.ok) return
    settlement = reserved.record
    const { takesMs } = each
    // The other side refuses it after its end, by its own clock.
    if (takesMs !== undefined && takesMs <= validMs + behindMs) {
      effects.set(reference, { at: now + takesMs, amount: each.amount })
    }
    if (each.hasReply) reply(reference)
  }

  function ask(each: Step & { do: 'ask' }): void {
    const [asked, askedAt] = [settlement, now]
    const seenAt = each.isOld ? now : now + each.takesMs
    now += each.takesMs
    let evidence: Evidence = {
      by: 'sum',
      askedAt,
      received: before + othersPaid + arrivedBy(seenAt),
    }
    if (by === 'id') {
      const attempts = Object.fromEntries(
        asked.attempts.map(({ reference }) => {
          const effect = effects.get(reference)
          const hasArrived = effect !== undefined && effect.at <= seenAt
          return [reference, { found: hasArrived ? ('arrived' as const) : ('absent' as const) }]
        }),
      )
      evidence = { by: 'id', askedAt, attempts }
    }
    const conclusion = machine.concludeFrom(asked, evidence, machine.marginMs, now)
    if (conclusion.isChanged) settlement = conclusion.settlement
  }

  const result = () => ({ settlement, arrived: arrivedBy(now), othersPaid })
  for (const each of steps) {
    if (each.do === 'send') send(each)
    if (each.do === 'wait') now += each.ms
    if (each.do === 'other') othersPaid += each.amount
    if (each.do === 'ask') ask(each)
    if (each.do === 'late proofs') for (const reference of effects.keys()) reply(reference)
    check(result())
  }
  // Nothing can arrive any more, and the other side answers.
  now += overMs
  ask({ do: 'ask', isOld: false, takesMs: 0 })
  check(result())
  return result()
}

const real: Machine = { concludeFrom, marginMs }

/** Returns the laws that are broken. They hold at all times. */
function broken({ settlement, arrived, othersPaid }: Result): readonly string[] {
  const { proven, byWord, inDoubt, denied, excess, free } = totalsOf(settlement)
  const laws = {
    'nothing that was decided never to arrive is proven': excess === 0n,
    'what arrived is known, or in doubt': arrived <= proven + byWord + inDoubt,
    'what is proven arrived': proven <= arrived,
    'what arrived by word arrived, or others paid it': proven + byWord <= arrived + othersPaid,
    'only what is free is sent': proven + byWord + inDoubt + free === BigInt(settlement.amount),
    'no amount is negative': denied >= 0n,
  }
  return Object.entries(laws).flatMap(([law, holds]) => (holds ? [] : law))
}

function property(machine: Machine) {
  return fc.property(history, (each) => {
    const end = run(each, machine, (result) => {
      const [law] = broken(result)
      if (law !== undefined) throw new Error(law)
    })
    if (totalsOf(end.settlement).inDoubt > 0n) throw new Error('an answer after the end decides')
  })
}

test('what is decided is true, whatever was lost, late or asked in between', () => {
  fc.assert(property(real), { numRuns: runs(60_000) })
})

describe('the search finds', () => {
  /** Changes what the machine concludes. */
  const changing = (
    change: (after: Conclusion, before: Settlement, evidence: Evidence) => Settlement,
  ): Machine => ({
    marginMs,
    concludeFrom(settlement, evidence, margin, now) {
      const conclusion = concludeFrom(settlement, evidence, margin, now)
      if (!conclusion.isChanged || evidence === undefined) return conclusion
      return { ...conclusion, settlement: change(conclusion, settlement, evidence) }
    },
  })
  const mistakes: Record<string, Machine> = {
    'a margin of 0': { ...real, marginMs: 0 },
    'an answer that is taken as newer than its question': {
      marginMs,
      concludeFrom: (settlement, evidence, margin, now) =>
        concludeFrom(settlement, evidence && { ...evidence, askedAt: now }, margin, now),
    },
    'an absent order that is taken as "never" at once': {
      marginMs,
      concludeFrom: (settlement, evidence, margin, now) =>
        concludeFrom(settlement, evidence && { ...evidence, askedAt: now + 1e9 }, margin, now),
    },
    'a base that contains what was decided by word': changing(({ settlement }, _, evidence) =>
      evidence.by === 'sum'
        ? { ...settlement, base: `${evidence.received - totalsOf(settlement).proven}` }
        : settlement,
    ),
    'a base that is the whole sum': changing(({ settlement }, _, evidence) =>
      evidence.by === 'sum' ? { ...settlement, base: `${evidence.received}` } : settlement,
    ),
  }
  test.each(Object.keys(mistakes))('%s', (name) => {
    const result = fc.check(property(mistakes[name] as Machine), { numRuns: 20_000 })
    expect(result.failed).toBe(true)
  })
})

/** What anybody says about attempts, whether it is true or not. */
type Word =
  | { readonly say: 'send'; readonly amount: bigint }
  | { readonly say: 'proven' | 'unknown' | 'refused' | 'close'; readonly at: number }
  | { readonly say: 'proven and more'; readonly at: number; readonly said: bigint }
  | { readonly say: 'sum'; readonly received: bigint }
  | { readonly say: 'found'; readonly found: readonly ('arrived' | 'never')[] }
  | { readonly say: 'arrived' | 'never' | 'confirmed' | 'corrected'; readonly at: number }
  | { readonly say: 'all arrived' | 'all never' }
  | { readonly say: 'stop' }

const at = fc.nat(3)
const word: fc.Arbitrary<Word> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      say: fc.constant('send' as const),
      amount: fc.constantFrom(250n, 250n, 100n),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      say: fc.constantFrom('proven', 'unknown', 'refused', 'close', 'close'),
      at,
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      say: fc.constant('proven and more' as const),
      at,
      said: fc.constantFrom(1n, 250n, 2n ** 63n),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      say: fc.constant('sum' as const),
      received: fc.constantFrom(0n, 500n, 750n, 1_000n, 1_250n),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      say: fc.constant('found' as const),
      found: fc.array(fc.constantFrom('arrived', 'never'), { minLength: 1, maxLength: 4 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      say: fc.constantFrom('arrived', 'arrived', 'never', 'confirmed', 'corrected'),
      at,
    }),
  },
  { weight: 1, arbitrary: fc.constant({ say: 'stop' as const }) },
  { weight: 1, arbitrary: fc.record({ say: fc.constantFrom('all arrived', 'all never') }) },
)

const ada = { by: 'operator', who: 'ada' } as const

/** Returns the settlement after a word, or the same if nothing follows from it. */
function after(settlement: Settlement, each: Word, now: number): Settlement {
  const reference = 'at' in each ? `${each.at}` : ''
  const taken = (decision: { readonly ok: boolean; readonly record?: Settlement }) =>
    decision.record ?? settlement
  switch (each.say) {
    case 'send': {
      const attempt = {
        reference: `${settlement.attemptCount}`,
        amount: each.amount,
        notAfter: now,
      }
      return taken(reserveAttempt(settlement, attempt, 1_000_000n, now))
    }
    case 'proven':
      return taken(recordReply(settlement, reference, { outcome: 'proven' }, now))
    case 'proven and more': {
      const { said } = each
      return taken(recordReply(settlement, reference, { outcome: 'proven', said }, now))
    }
    case 'unknown':
    case 'refused': {
      const reply = { outcome: each.say, reason: 'a reply', retryAt: now }
      return taken(recordReply(settlement, reference, reply, now))
    }
    case 'close':
      return taken(decideAttempt(settlement, reference, 'never', { by: 'close' }, now))
    case 'sum': {
      const evidence = { by: 'sum', askedAt: now + marginMs, received: each.received } as const
      return concludeFrom(settlement, evidence, marginMs, now).settlement
    }
    case 'found': {
      const attempts = Object.fromEntries(each.found.map((found, i) => [`${i}`, { found }]))
      const evidence = { by: 'id', askedAt: now, attempts } as const
      return concludeFrom(settlement, evidence, marginMs, now).settlement
    }
    case 'stop':
      return stopSettlement(settlement, 'it is over', now)
    case 'all arrived':
    case 'all never': {
      const what = each.say === 'all arrived' ? 'arrived' : 'never'
      return taken(decideByOperator(settlement, { what, who: 'ada' }, now))
    }
    default:
      return taken(decideAttempt(settlement, reference, each.say, ada, now))
  }
}

const words = fc.array(word, { minLength: 3, maxLength: 14 })
const ordered = (): Settlement => ({
  ...openSettlement({ amount: 500n, now: start }),
  base: '500',
})

test('an operator ends all doubts, and what is proven stays, whoever said what before', () => {
  fc.assert(
    fc.property(words, fc.constantFrom('arrived', 'never'), (before, what) => {
      const settlement = before.reduce((next, each, i) => after(next, each, start + i), ordered())
      let decided = settlement
      // First what is in doubt, then what is known by word.
      const rounds = totalsOf(settlement).inDoubt > 0n ? [what, what] : [what]
      for (const each of [...rounds, 'corrected' as const]) {
        const decision = decideByOperator(decided, { what: each, who: 'ada' }, start)
        if (!decision.ok) expect(decision.refusal).toBe('nothing_in_doubt')
        else decided = decision.record
      }
      expect(doubtsOf(decided)).toEqual([])
      const { proven } = totalsOf(decided)
      expect(proven).toBeGreaterThanOrEqual(totalsOf(settlement).proven)
      if (what === 'never') expect(proven).toBe(totalsOf(settlement).proven)
    }),
    { numRuns: runs(20_000, 500) },
  )
})

test('what arrived beyond the order is listed until somebody confirms it, whoever says so', () => {
  fc.assert(
    fc.property(words, (said) => {
      let settlement = ordered()
      let confirmed = 0n
      for (const [index, each] of said.entries()) {
        const before = totalsOf(settlement)
        settlement = after(settlement, each, start + index)
        const { proven, byWord, inDoubt, excess } = totalsOf(settlement)
        if (each.say === 'corrected' && excess < before.excess) {
          confirmed += before.excess - excess
        }
        expect(proven + byWord + inDoubt - 500n).toBeLessThanOrEqual(excess + confirmed)
        const listed = doubtsOf(settlement).filter(({ kind }) => kind === 'excess')
        expect(listed.reduce((sum, { amount: more }) => sum + BigInt(more), 0n)).toBe(excess)
      }
    }),
    { numRuns: runs(20_000, 500) },
  )
})

/** What happens at an honest receiver, of which a packet that is late may still arrive after it was decided. */
type Event =
  | {
      readonly is: 'order'
      readonly amount: bigint
      readonly fate: 'arrives' | 'is lost' | 'is late'
    }
  | { readonly is: 'sum' }
  | { readonly is: 'payment of others'; readonly amount: bigint }
  | { readonly is: 'arrival of the late' }
  | { readonly is: 'truth'; readonly at: number; readonly by: 'proof' | 'operator' }

const told = fc.record({
  is: fc.constant('truth' as const),
  at: fc.nat(4),
  by: fc.constantFrom('proof', 'operator'),
})
const event: fc.Arbitrary<Event> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      is: fc.constant('order' as const),
      amount: fc.constantFrom(100n, 250n, 250n),
      fate: fc.constantFrom('arrives', 'is lost', 'is late'),
    }),
  },
  { weight: 3, arbitrary: fc.constant({ is: 'sum' as const }) },
  { weight: 1, arbitrary: fc.record({ is: fc.constant('payment of others' as const), amount }) },
  { weight: 1, arbitrary: fc.constant({ is: 'arrival of the late' as const }) },
  { weight: 3, arbitrary: told },
)

test('what is told about attempts explains each later sum, whoever tells it, in any order', () => {
  const property = fc.property(
    fc.array(event, { maxLength: 12 }),
    fc.shuffledSubarray([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], { minLength: 12 }),
    fc.array(fc.constantFrom('proof', 'operator'), { minLength: 12, maxLength: 12 }),
    fc.constantFrom('arrives', 'is lost'),
    (events, order, ways, last) => {
      let settlement = { ...openSettlement({ amount: 10_000n, now: start }), base: '500' }
      let now = start
      let [othersPaid, cameLate] = [0n, 0n]
      const fates: { amount: bigint; fate: string }[] = []
      const take = (decision: { readonly ok: boolean; readonly record?: Settlement }) => {
        settlement = { base: '500', ...(decision.record ?? settlement) }
      }
      const send = (each: { amount: bigint; fate: string }) => {
        const attempt = { reference: `${fates.length}`, amount: each.amount, notAfter: now }
        take(reserveAttempt(settlement, attempt, 1_000_000n, now))
        fates.push({ ...each })
      }
      const sum = () => {
        const arrived = fates.filter(({ fate }) => fate === 'arrives')
        const received = arrived.reduce((all, each) => all + each.amount, 500n + othersPaid)
        now += marginMs
        take({
          ok: true,
          record: concludeFrom(settlement, { by: 'sum', askedAt: now, received }, marginMs, now)
            .settlement,
        })
      }
      const arriveLate = () => {
        for (const each of fates.filter(({ fate }) => fate === 'is late')) {
          each.fate = 'arrives'
          if (settlement.decisionCount > 1) cameLate += each.amount
        }
      }
      const tell = (at: number, by: string) => {
        const { fate } = fates[at] ?? {}
        if (fate === undefined || fate === 'is late') return
        if (fate === 'arrives' && by === 'proof') {
          take(recordReply(settlement, `${at}`, { outcome: 'proven' }, now))
        } else {
          const what = fate === 'arrives' ? 'arrived' : 'never'
          take(decideAttempt(settlement, `${at}`, what, ada, now))
        }
      }
      for (const each of events) {
        if (each.is === 'order') send(each)
        if (each.is === 'sum') sum()
        if (each.is === 'payment of others') othersPaid += each.amount
        if (each.is === 'arrival of the late') arriveLate()
        if (each.is === 'truth') tell(each.at, each.by)
      }
      arriveLate()
      for (const at of order) tell(at, ways[at] ?? 'proof')
      const { proven: before } = totalsOf(settlement)
      const arrived = fates.filter(({ fate }) => fate === 'arrives')
      expect(before).toBe(arrived.reduce((all, each) => all + each.amount, 0n))
      // A sum hides no order, and shows of one that is lost what others have paid, or what came late, at most.
      send({ amount: 250n, fate: last })
      sum()
      const { proven, byWord, inDoubt } = totalsOf(settlement)
      expect([proven, inDoubt]).toEqual([before, 0n])
      if (last === 'arrives') expect(byWord).toBe(250n)
      else expect(byWord).toBeLessThanOrEqual(othersPaid + cameLate)
    },
  )
  fc.assert(property, { numRuns: runs(40_000, 1_000) })
})

test('what counts once nothing more is sent stays, or is listed until it is corrected, whoever says what', () => {
  const listedIn = (settlement: Settlement) =>
    doubtsOf(settlement)
      .filter(({ kind }) => kind === 'withdrawn')
      .reduce((sum, { amount: part }) => sum + BigInt(part), 0n)
  fc.assert(
    fc.property(words, (said) => {
      let settlement = ordered()
      let debited: bigint | undefined
      let corrected = 0n
      for (const [index, each] of said.entries()) {
        const before = settlement
        settlement = after(settlement, each, start + index)
        const { proven, byWord, inDoubt, withdrawn, free } = totalsOf(settlement)
        if (each.say === 'corrected') corrected += listedIn(before) - listedIn(settlement)
        const counted = proven + byWord + withdrawn
        if (debited !== undefined) expect(counted).toBeGreaterThanOrEqual(debited)
        const isEnded = settlement.stopped !== undefined || (inDoubt === 0n && free === 0n)
        if (isEnded) debited = counted
        // A proof that comes after the correction ends it, and is listed as `excess`.
        expect(withdrawn - listedIn(settlement)).toBeLessThanOrEqual(corrected)
      }
    }),
    { numRuns: runs(20_000, 500) },
  )
})
