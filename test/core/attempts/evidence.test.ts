import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  concludeFrom,
  decideAttempt,
  doubtsOf,
  type FoundById,
  openSettlement,
  recordReply,
  reserveAttempt,
  type Settlement,
  totalsOf,
} from '../../../src/entry-attempts.js'
import { runs } from '../../support/runs.js'
import {
  afterSum,
  attempted,
  lost,
  marginMs,
  opened,
  outcomeIn,
  overMs,
  proven,
  recordOf,
  start,
} from '../../support/settlements.js'

const ada = { by: 'operator', who: 'ada' } as const
const close = { by: 'close' } as const

/** Reserves attempts of these amounts, named by their order. The receiver had 500 before. */
function attemptsOf(amounts: readonly bigint[]): Settlement {
  const settlement = openSettlement({ amount: 10_000n, now: start })
  return amounts.reduce<Settlement>(
    (next, amount, i) => attempted(next, { [i]: lost }, { amount }),
    { ...settlement, base: '500' },
  )
}

const arrivedIn = (settlement: Settlement, reference: string) => {
  const outcome = outcomeIn(settlement, reference)
  return 'arrived' in outcome ? BigInt(outcome.arrived) : undefined
}

const found = (settlement: Settlement, attempts: Record<string, FoundById>, askedMs = 0) =>
  concludeFrom(
    settlement,
    { by: 'id', askedAt: start + askedMs, attempts },
    marginMs,
    start + askedMs,
  )

describe('a sum', () => {
  const amounts = fc.array(fc.bigInt(1n, 300n), { minLength: 1, maxLength: 5 })

  test('is divided among the attempts as a whole: one at most arrived in part, none twice', () => {
    fc.assert(
      fc.property(amounts, fc.bigInt(0n, 100n), (each, percent) => {
        const more = (each.reduce((sum, amount) => sum + amount, 0n) * percent) / 100n
        const { settlement } = afterSum(attemptsOf(each), 500n + more, overMs)
        const parts = each.map((amount, i) => ({ amount, arrived: arrivedIn(settlement, `${i}`) }))
        expect(totalsOf(settlement).byWord).toBe(more)
        const isPart = ({ amount, arrived }: (typeof parts)[number]) =>
          arrived !== 0n && arrived !== amount
        const partial = parts.filter(isPart)
        expect(partial.length).toBeLessThanOrEqual(1)
        for (const { amount, arrived = -1n } of partial) {
          expect(arrived > 0n && arrived < amount).toBe(true)
        }
      }),
      { numRuns: runs(3_000, 200) },
    )
  })

  test.each([
    [
      [100n, 250n],
      [0n, 250n],
    ],
    [
      [250n, 100n],
      [250n, 0n],
    ],
  ])('shows the larger attempts first: %s', (given, arrived) => {
    const { settlement } = afterSum(attemptsOf(given), 750n, overMs)
    expect(given.map((_, i) => arrivedIn(settlement, `${i}`))).toEqual(arrived)
  })

  test('decides under a number, which its attempts have', () => {
    const first = afterSum(attempted(opened(500n), { a: lost, b: lost }), 500n, overMs).settlement
    expect(first.decisionCount).toBe(1)
    const again = attempted(first, { c: lost }, { at: start + overMs })
    const { settlement } = afterSum(again, 500n, 2 * overMs)
    expect(settlement.decisionCount).toBe(2)
    const numbers = ['a', 'b', 'c'].map((each) => outcomeIn(settlement, each))
    expect(numbers).toMatchObject([{ decision: 1 }, { decision: 1 }, { decision: 2 }])
  })

  test('concludes nothing where nothing is open', () => {
    const settlement = attempted(opened(500n), { a: proven })
    const conclusion = afterSum(settlement, 9_000n, overMs)
    expect(conclusion).toEqual({ settlement, isChanged: false })
    expect(conclusion.settlement).toBe(settlement)
  })

  test('that contains what was said does not show it a second time in the next decision', () => {
    const saying = { outcome: 'proven', arrived: 250n, said: 100n } as const
    const first = afterSum(attempted(opened(0n), { a: saying, b: lost }), 350n, overMs).settlement
    const again = attempted(first, { c: lost }, { at: start + overMs })
    const nothing = afterSum(again, 350n, 2 * overMs).settlement
    expect(outcomeIn(nothing, 'c')).toMatchObject({ state: 'decided', arrived: '0' })
    const all = afterSum(again, 600n, 2 * overMs).settlement
    expect(outcomeIn(all, 'c')).toMatchObject({ state: 'decided', arrived: '250' })
  })
})

describe('an answer by reference', () => {
  test('is recorded with the time and the way in which "never" became known', () => {
    const { settlement } = found(attempted(opened(), { a: lost }), { a: { found: 'never' } }, 5)
    const outcome = { state: 'decided', at: start + 5, arrived: '0', by: 'id' }
    expect(outcomeIn(settlement, 'a')).toEqual(outcome)
  })

  test('leaves no doubt once all attempts are decided', () => {
    const settlement = attempted(opened(), { a: lost, b: lost })
    const decided = found(settlement, { a: { found: 'never' }, b: { found: 'arrived' } })
    expect(decided).toEqual({ settlement: decided.settlement, isChanged: true })
    const waiting = found(settlement, { a: { found: 'never' } })
    expect(waiting).toMatchObject({ undecided: 'may_take_effect', until: start + overMs })
  })

  test('waits for the open attempts, not for those that are decided', () => {
    const endless = attempted(opened(), { a: proven }, { isEndless: true })
    const { undecided, until } = found(attempted(endless, { b: lost }), {})
    expect(undecided).toBe('may_take_effect')
    expect(until).toBe(start + overMs)
  })

  test.each(['never', 'absent'] as const)('takes no proof and no decision back: %s', (word) => {
    const settlement = attempted(opened(), { a: proven, b: lost })
    const decided = recordOf(decideAttempt(settlement, 'b', 'arrived', ada, start))
    const answer = { a: { found: word }, b: { found: word } } as const
    const after = found(decided, answer, 10 * overMs)
    expect(after).toEqual({ settlement: decided, isChanged: false })
  })

  test('proves several attempts as their replies do, one after the other', () => {
    const amounts = fc.array(fc.constantFrom(100n, 150n, 250n), { minLength: 2, maxLength: 4 })
    fc.assert(
      fc.property(amounts, fc.bigInt(0n, 800n), (each, more) => {
        const { settlement } = afterSum(attemptsOf(each), 500n + more, overMs)
        const references = each.map((_, i) => `${i}`)
        const replied = references.reduce(
          (next, reference) => recordOf(recordReply(next, reference, proven, start)),
          settlement,
        )
        const answer = { found: 'arrived', proof: 'receipt' } as const
        const attempts = Object.fromEntries(references.map((reference) => [reference, answer]))
        expect(found(settlement, attempts).settlement).toEqual(replied)
        // What the sum had denied may have been sent again.
        expect(totalsOf(replied).excess).toBe(totalsOf(settlement).denied)
      }),
      { numRuns: runs(3_000, 200) },
    )
  })
})

describe('somebody who knows', () => {
  const saying = { outcome: 'proven', arrived: 250n, said: 100n } as const
  const closed = (settlement: Settlement, reference: string) =>
    recordOf(decideAttempt(settlement, reference, 'never', close, start))
  const excess = recordOf(
    recordReply(closed(attempted(opened(), { a: lost }), 'a'), 'a', proven, start),
  )

  test('is recorded by name, and the way in which it became known', () => {
    const settlement = attempted(opened(), { a: lost, b: lost })
    const one = recordOf(decideAttempt(settlement, 'a', 'arrived', ada, start + 1))
    const both = recordOf(decideAttempt(one, 'b', 'never', close, start + 2))
    expect(both.attempts.map(({ outcome }) => outcome)).toEqual([
      { state: 'decided', at: start + 1, arrived: '250', by: 'operator', who: 'ada' },
      { state: 'decided', at: start + 2, arrived: '0', by: 'close' },
    ])
  })

  test('confirms only what was decided', () => {
    const settlement = attempted(opened(), { a: lost, b: undefined })
    for (const reference of ['a', 'b']) {
      const confirmed = decideAttempt(settlement, reference, 'confirmed', ada, start)
      expect(confirmed).toMatchObject({ ok: false, refusal: 'attempt_open' })
    }
    const unknown = decideAttempt(settlement, 'c', 'confirmed', ada, start)
    expect(unknown).toMatchObject({ ok: false, refusal: 'attempt_unknown' })
  })

  test.each(['a', 'b'])(
    'confirms a sum as it is: what arrived, or that nothing did: %s',
    (each) => {
      const { settlement } = afterSum(attempted(opened(500n), { a: lost, b: lost }), 750n, overMs)
      const before = outcomeIn(settlement, each)
      const confirmed = recordOf(decideAttempt(settlement, each, 'confirmed', ada, start))
      const arrived = 'arrived' in before ? before.arrived : ''
      expect(outcomeIn(confirmed, each)).toMatchObject({ arrived, by: 'operator', who: 'ada' })
    },
  )

  test('is an operator, if it is about what is only said: a closed reference decides nothing', () => {
    const settlement = attempted(opened(), { a: saying })
    const never = decideAttempt(settlement, 'a', 'never', close, start)
    expect(never).toMatchObject({ ok: false, refusal: 'attempt_decided' })
    const arrived = decideAttempt(settlement, 'a', 'arrived', close, start)
    expect(arrived).toMatchObject({ ok: true, outcome: 'unchanged' })
  })

  test('ends the doubt about what came after "never": an operator who confirms it, alone', () => {
    const listed = (settlement: Settlement) => doubtsOf(settlement).map(({ kind }) => kind)
    for (const [what, by] of [
      ['arrived', ada],
      ['arrived', close],
      ['confirmed', close],
    ] as const) {
      const decided = recordOf(decideAttempt(excess, 'a', what, by, start))
      expect(listed(decided)).toEqual(['excess'])
    }
    const never = decideAttempt(excess, 'a', 'never', ada, start)
    expect(never).toMatchObject({ ok: false, refusal: 'attempt_decided' })
    const confirmed = recordOf(decideAttempt(excess, 'a', 'corrected', ada, start))
    expect(listed(confirmed)).toEqual([])
    expect(outcomeIn(confirmed, 'a')).toMatchObject({ arrived: '250', who: 'ada' })
  })

  test.each(['arrived', 'never'] as const)(
    'decides what is said, and leaves the doubt about what came after "never": %s',
    (what) => {
      const never = closed(attempted(opened(), { a: lost }), 'a')
      const settlement = recordOf(recordReply(never, 'a', saying, start))
      const decided = recordOf(decideAttempt(settlement, 'a', what, ada, start))
      expect(totalsOf(decided)).toMatchObject({ byWord: 0n, excess: 250n })
    },
  )

  test('moves the part of a sum from one attempt to another: the sum stays explained', () => {
    const sum = afterSum(attempted(opened(500n), { a: lost, b: lost }), 750n, overMs).settlement
    const swapped = recordOf(decideAttempt(sum, 'b', 'arrived', ada, start))
    expect(totalsOf(swapped)).toMatchObject({ proven: 250n, byWord: 0n, excess: 0n })
    const again = attempted(swapped, { c: lost }, { at: start + overMs })
    const { settlement } = afterSum(again, 750n, 2 * overMs)
    expect(outcomeIn(settlement, 'c')).toMatchObject({ state: 'decided', arrived: '0' })
  })

  test('explains no sum by what a closed reference has brought: that is proven', () => {
    const settlement = closed(attempted(opened(500n), { a: lost }), 'a')
    const arrived = recordOf(decideAttempt(settlement, 'a', 'arrived', ada, start))
    const again = attempted(arrived, { b: lost }, { at: start })
    const nothing = afterSum(again, 750n, overMs).settlement
    expect(outcomeIn(nothing, 'b')).toMatchObject({ state: 'decided', arrived: '0' })
    expect(afterSum(again, 749n, overMs)).toMatchObject({ undecided: 'contradicted' })
  })
})

describe('a proof of what a sum has denied', () => {
  test('takes from the others of its decision no more than they have', () => {
    const { settlement } = afterSum(attemptsOf([250n, 100n, 250n]), 650n, overMs)
    const reserved = { reference: 'later', amount: 100n, notAfter: start + overMs }
    const open = recordOf(reserveAttempt(settlement, reserved, 1_000n, start))
    const later = afterSum(open, 750n, 2 * overMs).settlement
    // The first decision: 100 whole, and 50 of one of 250. The second one has its own 100.
    const before = ['0', '1', '2', 'later'].map((each) => arrivedIn(later, each))
    expect(before).toEqual([0n, 100n, 50n, 100n])
    const replied = recordOf(recordReply(later, '2', proven, start))
    const after = ['0', '1', '2', 'later'].map((each) => arrivedIn(replied, each))
    expect(after).toEqual([0n, 0n, 250n, 100n])
    expect(totalsOf(replied).excess).toBe(100n)
  })

  test('takes nothing from what is decided by reference', () => {
    const settlement = attempted(opened(), { a: lost, b: lost })
    const never = recordOf(decideAttempt(settlement, 'a', 'never', close, start))
    const decided = recordOf(decideAttempt(never, 'b', 'arrived', ada, start))
    const replied = recordOf(recordReply(decided, 'a', proven, start))
    expect(totalsOf(replied)).toMatchObject({ proven: 500n, excess: 250n })
  })
})
