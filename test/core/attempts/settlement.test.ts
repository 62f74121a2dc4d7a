import { describe, expect, test } from 'vitest'
import {
  concludeFrom,
  decideAttempt,
  decideByOperator,
  doubtsOf,
  type FoundById,
  forgetProven,
  openSettlement,
  recordReply,
  reserveAttempt,
  stopSettlement,
  totalsOf,
  verdictOn,
} from '../../../src/entry-attempts.js'
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

test('a settlement names the other side, if it has one', () => {
  const settlement = {
    amount: '1000',
    createdAt: start,
    attempts: [],
    attemptCount: 0,
    decisionCount: 0,
  }
  expect(openSettlement({ amount: 1_000n, now: start })).toEqual(settlement)
  const atBank = openSettlement({ amount: 1_000n, now: start, otherSide: 'bank' })
  expect(atBank).toEqual({ ...settlement, otherSide: 'bank' })
})

describe('an attempt is reserved', () => {
  test('before its request, and may have been sent from then on', () => {
    const settlement = attempted(opened(), { a: undefined })
    expect(outcomeIn(settlement, 'a')).toEqual({ state: 'reserved' })
    expect(totalsOf(settlement)).toMatchObject({ inDoubt: 250n, free: 750n })
  })

  test('of what no other one has brought or may bring', () => {
    const settlement = attempted(opened(), { a: proven, b: lost, c: undefined })
    const attempt = { reference: 'd', amount: 251n }
    const refused = reserveAttempt(settlement, attempt, 0n, start)
    expect(refused).toMatchObject({ ok: false, refusal: 'amount_not_free' })
    expect(reserveAttempt(settlement, { ...attempt, amount: 250n }, 0n, start).ok).toBe(true)
  })

  test('of a positive amount', () => {
    for (const amount of [0n, -1n]) {
      const refused = reserveAttempt(opened(), { reference: 'a', amount }, 0n, start)
      expect(refused).toMatchObject({ ok: false, refusal: 'amount_not_free' })
    }
  })

  test('and counted, also once it is removed', () => {
    const settlement = attempted(opened(), { a: proven, b: lost })
    expect(settlement.attemptCount).toBe(2)
    expect(attempted(forgetProven(settlement), { c: lost }).attemptCount).toBe(3)
  })

  test('with a new reference', () => {
    const again = reserveAttempt(
      attempted(opened(), { a: lost }),
      { reference: 'a', amount: 1n },
      0n,
      start,
    )
    expect(again).toMatchObject({ ok: false, refusal: 'reference_used' })
  })

  test('no more after a lasting refusal, or the end', () => {
    const refusal = { outcome: 'refused', reason: 'the account is closed' } as const
    const settlement = attempted(opened(), { a: refusal })
    const attempt = { reference: 'b', amount: 1n }
    const stopped = { ok: false, refusal: 'settlement_stopped', reason: 'the account is closed' }
    expect(reserveAttempt(settlement, attempt, 0n, start)).toMatchObject(stopped)
    const ended = stopSettlement(opened(), 'cancelled', start)
    expect(reserveAttempt(ended, attempt, 0n, start)).toMatchObject({ reason: 'cancelled' })
    expect(stopSettlement(ended, 'a later reason', start + 1)).toBe(ended)
  })

  test('again after a refusal that names an instant', () => {
    const busy = { outcome: 'refused', reason: 'busy', retryAt: start + 1 } as const
    const settlement = attempted(opened(), { a: busy })
    expect(totalsOf(settlement)).toMatchObject({ inDoubt: 0n, free: 1_000n })
    expect(reserveAttempt(settlement, { reference: 'b', amount: 1_000n }, 0n, start).ok).toBe(true)
  })

  test('no more once the other side has denied more than is trusted', () => {
    const denied = afterSum(attempted(opened(500n), { a: lost, b: lost }), 500n, overMs).settlement
    expect(totalsOf(denied)).toMatchObject({ denied: 500n, free: 1_000n })
    const attempt = { reference: 'c', amount: 250n }
    const refused = { ok: false, refusal: 'trust_exceeded' }
    expect(reserveAttempt(denied, attempt, 499n, start)).toMatchObject(refused)
    expect(reserveAttempt(denied, attempt, 500n, start).ok).toBe(true)
  })
})

describe('a reply', () => {
  test('that is missing or of something in between leaves the outcome unknown', () => {
    const settlement = attempted(opened(), { a: lost })
    expect(outcomeIn(settlement, 'a')).toEqual({
      state: 'unknown',
      since: start,
      reason: 'no reply',
    })
    expect(totalsOf(settlement)).toMatchObject({ inDoubt: 250n, free: 750n })
  })

  test('that is missing again leaves the first reason, and its time', () => {
    const settlement = attempted(opened(), { a: lost })
    const again = { outcome: 'unknown', reason: 'HTTP 502' } as const
    const replied = recordReply(settlement, 'a', again, start + 1)
    expect(replied).toMatchObject({ ok: true, outcome: 'unchanged', record: settlement })
  })

  test('keeps its proof', () => {
    const settlement = attempted(opened(), { a: proven, b: { outcome: 'proven' } })
    const outcome = { state: 'proven', at: start, arrived: '250' }
    expect(outcomeIn(settlement, 'a')).toEqual({ ...outcome, proof: 'receipt' })
    expect(outcomeIn(settlement, 'b')).toEqual(outcome)
  })

  test('does not change a decision, unless it is a proof', () => {
    const settlement = afterSum(attempted(opened(500n), { a: lost }), 500n, overMs).settlement
    const refusal = { outcome: 'refused', reason: 'too late' } as const
    for (const reply of [lost, refusal]) {
      const replied = recordReply(settlement, 'a', reply, start)
      expect(replied).toMatchObject({ ok: true, outcome: 'unchanged' })
    }
  })

  test('to an attempt that is not known is refused', () => {
    const replied = recordReply(opened(), 'a', proven, start)
    expect(replied).toMatchObject({ ok: false, refusal: 'attempt_unknown' })
  })

  test('can say that less arrived', () => {
    const settlement = attempted(opened(), { a: { outcome: 'proven', arrived: 249n } })
    expect(totalsOf(settlement)).toMatchObject({ proven: 249n, free: 751n })
  })
})

describe('a proof after a decision', () => {
  test('confirms what arrived by word', () => {
    const decided = afterSum(attempted(opened(500n), { a: lost }), 750n, 0).settlement
    expect(totalsOf(decided)).toMatchObject({ proven: 0n, byWord: 250n })
    const settlement = recordOf(recordReply(decided, 'a', proven, start))
    expect(totalsOf(settlement)).toMatchObject({ proven: 250n, byWord: 0n, excess: 0n })
    expect(doubtsOf(settlement)).toEqual([])
  })

  test('takes the sum from another attempt of the same decision', () => {
    const two = attempted(opened(500n), { a: lost, b: lost })
    const decided = afterSum(two, 750n, overMs).settlement
    expect(outcomeIn(decided, 'a')).toMatchObject({ arrived: '250' })
    expect(outcomeIn(decided, 'b')).toMatchObject({ arrived: '0' })
    const settlement = recordOf(recordReply(decided, 'b', proven, start))
    expect(outcomeIn(settlement, 'a')).toMatchObject({ state: 'decided', arrived: '0' })
    expect(totalsOf(settlement)).toMatchObject({ proven: 250n, byWord: 0n, excess: 0n, free: 750n })
  })

  test('of "never" is listed as excess', () => {
    const decided = afterSum(attempted(opened(500n), { a: lost }), 500n, overMs).settlement
    const settlement = recordOf(recordReply(decided, 'a', proven, start))
    expect(totalsOf(settlement)).toMatchObject({ proven: 250n, excess: 250n })
    expect(doubtsOf(settlement)).toMatchObject([{ kind: 'excess', amount: '250' }])
  })

  test('that came after the money was sent again leaves nothing free, nor less by word', () => {
    const denied = afterSum(attempted(opened(500n), { a: lost }), 500n, overMs).settlement
    const again = attempted(denied, { b: proven }, { amount: 1_000n })
    const settlement = recordOf(recordReply(again, 'a', proven, start))
    expect(totalsOf(settlement)).toMatchObject({
      proven: 1_250n,
      byWord: 0n,
      excess: 250n,
      free: 0n,
    })
  })

  test('counts once', () => {
    const once = attempted(opened(), { a: proven })
    expect(recordReply(once, 'a', proven, start)).toMatchObject({ outcome: 'unchanged' })
  })
})

describe('what the other side says beyond its proof', () => {
  const saying = (said: bigint) => ({ outcome: 'proven', arrived: 250n, said }) as const

  test.each([750n, 2n ** 63n])('counts for what nothing else brings, by word: %i', (said) => {
    const settlement = attempted(opened(), { a: saying(said) })
    expect(totalsOf(settlement)).toMatchObject({ proven: 250n, byWord: 750n, free: 0n })
    expect(doubtsOf(settlement)).toMatchObject([{ kind: 'by_word', reference: 'a', amount: '750' }])
    expect(forgetProven(settlement)).toEqual(settlement)
    const beside = attempted(opened(), { b: lost, a: saying(said) })
    expect(totalsOf(beside)).toMatchObject({ proven: 250n, byWord: 500n, inDoubt: 250n })
  })

  test('counts in the order of the attempts, beside what a sum has shown', () => {
    const shown = afterSum(attempted(opened(500n), { a: lost }), 750n, 0).settlement
    const settlement = attempted(shown, { b: saying(100n), c: saying(500n) })
    expect(totalsOf(settlement)).toMatchObject({ proven: 500n, byWord: 500n, free: 0n })
    const listed = doubtsOf(settlement).map(({ reference, amount }) => [reference, amount])
    expect(listed).toEqual([
      ['a', '250'],
      ['b', '100'],
      ['c', '150'],
    ])
  })

  test('explains a part of a sum, and contradicts none that lacks it', () => {
    const settlement = attempted(opened(0n), { a: saying(100n), b: lost })
    const of = (received: bigint) => totalsOf(afterSum(settlement, received, overMs).settlement)
    expect(of(250n)).toMatchObject({ proven: 250n, byWord: 100n, denied: 250n, inDoubt: 0n })
    expect(of(350n)).toMatchObject({ proven: 250n, byWord: 100n, denied: 250n, inDoubt: 0n })
    expect(of(600n)).toMatchObject({ proven: 250n, byWord: 350n, denied: 0n, inDoubt: 0n })
    // Whatever was a lie, no more has arrived than counts.
    expect(of(500n)).toMatchObject({ proven: 250n, byWord: 250n, denied: 100n, inDoubt: 0n })
  })

  test.each([
    ['arrived', 350n],
    ['never', 250n],
  ] as const)('is decided by an operator: %s', (what, known) => {
    const settlement = attempted(opened(), { a: saying(100n) })
    const by = { by: 'operator', who: 'ada' } as const
    const decided = recordOf(decideAttempt(settlement, 'a', what, by, start))
    expect(totalsOf(decided)).toMatchObject({ proven: known, byWord: 0n })
    expect(doubtsOf(decided)).toEqual([])
    expect(outcomeIn(decided, 'a')).toMatchObject({ state: 'proven', who: 'ada' })
  })
})

describe('evidence by sum', () => {
  const open = attempted(opened(500n), { a: proven, b: lost, c: lost })

  test.each([
    ['nothing arrived, asked when nothing can any more', 750n, overMs, [0n, 500n]],
    ['a part arrived, asked when nothing can any more', 1_000n, overMs, [250n, 250n]],
    ['all of it arrived, asked at any time', 1_250n, 0, [500n, 0n]],
    ['others have paid too', 9_000n, 0, [500n, 0n]],
  ] as const)('decides: %s', (_, received, askedMs, [byWord, denied]) => {
    const { settlement, undecided } = afterSum(open, received, askedMs)
    expect(undecided).toBeUndefined()
    expect(totalsOf(settlement)).toMatchObject({ proven: 250n, byWord, denied, inDoubt: 0n })
  })

  test.each([
    ['nothing arrived yet', 750n],
    ['a part arrived', 1_000n],
  ])('waits until nothing can arrive any more: %s', (_, received) => {
    const waiting = { isChanged: false, undecided: 'may_take_effect', until: start + overMs }
    expect(afterSum(open, received, overMs - 1)).toMatchObject(waiting)
  })

  test('proves nothing if it lacks what is proven: it is outdated, or false', () => {
    const settled = afterSum(open, 749n, overMs)
    expect(settled).toMatchObject({ isChanged: false, undecided: 'contradicted' })
  })

  test('proves nothing without a sum before the attempts, or if nobody answers', () => {
    const nothing = { isChanged: false, undecided: 'unreadable' }
    expect(afterSum(attempted(opened(), { a: lost }), 500n, overMs)).toMatchObject(nothing)
    expect(concludeFrom(open, undefined, marginMs, start)).toMatchObject(nothing)
  })

  test('waits for ever for an attempt without an end, unless all arrived', () => {
    const endless = attempted(opened(500n), { a: lost }, { isEndless: true })
    const waiting = afterSum(endless, 500n, 10 * overMs)
    expect(waiting).toMatchObject({ undecided: 'may_take_effect' })
    expect(waiting.until).toBeUndefined()
    expect(totalsOf(afterSum(endless, 750n, 0).settlement)).toMatchObject({ byWord: 250n })
  })

  test('decides those that are over while others are not, if nothing arrived', () => {
    const later = attempted(open, { d: lost }, { at: start + overMs })
    const { settlement } = afterSum(later, 750n, overMs)
    expect(outcomeIn(settlement, 'b')).toMatchObject({ state: 'decided', arrived: '0' })
    expect(outcomeIn(settlement, 'd')).toMatchObject({ state: 'unknown' })
    // The part that arrived may be of the later one.
    expect(afterSum(later, 1_000n, overMs)).toMatchObject({ isChanged: false })
  })

  test('gives a rest that is no whole attempt to a larger one', () => {
    const { settlement } = afterSum(open, 1_050n, overMs)
    expect(totalsOf(settlement)).toMatchObject({ byWord: 300n, denied: 200n })
    expect(doubtsOf(settlement)).toMatchObject([
      { kind: 'by_word', reference: 'b', amount: '250' },
      { kind: 'by_word', reference: 'c', amount: '50' },
      { kind: 'denied', reference: 'c', amount: '200' },
    ])
  })

  test('decides twice, each time on what is known since: two replies lost, one after the other', () => {
    const first = afterSum(attempted(opened(500n), { a: proven, b: lost }), 1_000n, 0).settlement
    const again = attempted(first, { c: lost })
    // `c` arrived as well.
    const { settlement } = afterSum(again, 1_250n, overMs)
    expect(totalsOf(settlement)).toMatchObject({ byWord: 500n, denied: 0n })
    // Or it did not.
    const other = afterSum(again, 1_000n, overMs).settlement
    expect(totalsOf(other)).toMatchObject({ byWord: 250n, denied: 250n })
  })

  test('decides twice: what others have paid counts once', () => {
    const first = afterSum(attempted(opened(500n), { a: lost }), 1_500n, 0).settlement
    expect(totalsOf(first)).toMatchObject({ byWord: 250n })
    const { settlement } = afterSum(attempted(first, { b: lost }), 1_500n, overMs)
    expect(totalsOf(settlement)).toMatchObject({ byWord: 250n, denied: 250n })
  })

  test('decides twice: the first "never" does not hide a later arrival', () => {
    const first = afterSum(attempted(opened(500n), { a: lost }), 500n, overMs).settlement
    const { settlement } = afterSum(attempted(first, { b: lost }), 750n, overMs)
    expect(totalsOf(settlement)).toMatchObject({ byWord: 250n, denied: 250n })
  })
})

describe('evidence by id', () => {
  const settlement = attempted(opened(), { a: lost, b: lost })
  const asked = (found: Record<string, FoundById>, askedMs: number) => {
    const askedAt = start + askedMs
    return concludeFrom(settlement, { by: 'id', askedAt, attempts: found }, marginMs, askedAt)
  }

  test('decides what arrived at any time, exactly', () => {
    const decided = asked({ a: { found: 'arrived' }, b: { found: 'arrived', arrived: 249n } }, 0)
    expect(totalsOf(decided.settlement)).toMatchObject({ proven: 499n, byWord: 0n, free: 501n })
    expect(doubtsOf(decided.settlement)).toEqual([])
  })

  test('decides "never" by the final word of the other side at any time', () => {
    const { settlement: decided } = asked({ a: { found: 'never' }, b: { found: 'never' } }, 0)
    expect(totalsOf(decided)).toMatchObject({ proven: 0n, inDoubt: 0n, denied: 0n, free: 1_000n })
  })

  test('does not decide by an absent order until it can no longer run', () => {
    const absent = { a: { found: 'absent' }, b: { found: 'absent' } } as const
    const waiting = { isChanged: false, undecided: 'may_take_effect', until: start + overMs }
    expect(asked(absent, overMs - 1)).toMatchObject(waiting)
    expect(totalsOf(asked(absent, overMs).settlement)).toMatchObject({ inDoubt: 0n, free: 1_000n })
  })

  test('never decides by a pending order, or one that the answer does not name', () => {
    const pending = { a: { found: 'pending' } } as const
    expect(asked(pending, 10 * overMs)).toMatchObject({ isChanged: false })
  })

  test('shows an arrival after "never" as excess', () => {
    const never = asked({ a: { found: 'never' }, b: { found: 'never' } }, 0).settlement
    const found = { by: 'id', askedAt: start, attempts: { a: { found: 'arrived' } } } as const
    const { settlement: decided } = concludeFrom(never, found, marginMs, start)
    expect(totalsOf(decided)).toMatchObject({ proven: 250n, excess: 250n })
  })
})

describe('somebody who knows decides', () => {
  const operator = { by: 'operator', who: 'ada' } as const

  test('what is in doubt', () => {
    const settlement = attempted(opened(), { a: lost, b: lost })
    const arrived = recordOf(decideAttempt(settlement, 'a', 'arrived', operator, start))
    const never = recordOf(decideAttempt(arrived, 'b', 'never', operator, start))
    expect(totalsOf(never)).toMatchObject({ proven: 250n, inDoubt: 0n, free: 750n })
    expect(doubtsOf(never)).toEqual([])
  })

  test('what was decided by word', () => {
    const byWord = afterSum(attempted(opened(500n), { a: lost }), 750n, 0).settlement
    const never = recordOf(decideAttempt(byWord, 'a', 'never', operator, start))
    expect(totalsOf(never)).toMatchObject({ byWord: 0n, free: 1_000n })
  })

  test('who has paid what the receiver has: a later sum counts it for no other attempt', () => {
    const decided = afterSum(attempted(opened(500n), { a: lost, b: lost }), 750n, overMs).settlement
    expect(outcomeIn(decided, 'a')).toMatchObject({ arrived: '250' })
    const others = recordOf(decideAttempt(decided, 'a', 'never', operator, start))
    const at = start + overMs
    const next = afterSum(attempted(others, { c: lost }, { at }), 750n, 2 * overMs).settlement
    expect(outcomeIn(next, 'c')).toMatchObject({ state: 'decided', arrived: '0' })
    // The other one of the same decision has arrived in its place.
    const swapped = recordOf(decideAttempt(others, 'b', 'arrived', operator, start))
    const last = afterSum(attempted(swapped, { c: lost }, { at }), 1_000n, 2 * overMs).settlement
    expect(totalsOf(last)).toMatchObject({ proven: 250n, byWord: 250n, inDoubt: 0n })
  })

  test('once: a second decision is refused, unless it is the same', () => {
    const settlement = attempted(opened(), { a: lost })
    const decided = recordOf(decideAttempt(settlement, 'a', 'never', operator, start))
    const same = decideAttempt(decided, 'a', 'never', operator, start)
    expect(same).toMatchObject({ ok: true, outcome: 'unchanged' })
    for (const by of [operator, { by: 'close' }] as const) {
      const other = decideAttempt(decided, 'a', 'arrived', by, start)
      expect(other).toMatchObject({ ok: false, refusal: 'attempt_decided' })
    }
  })

  test('what the other side has closed: an operator alone', () => {
    const settlement = attempted(opened(), { a: lost })
    const closed = recordOf(decideAttempt(settlement, 'a', 'never', { by: 'close' }, start))
    const again = decideAttempt(closed, 'a', 'arrived', { by: 'close' }, start)
    expect(again).toMatchObject({ ok: false, refusal: 'attempt_decided' })
    const arrived = recordOf(decideAttempt(closed, 'a', 'arrived', operator, start))
    expect(totalsOf(arrived)).toMatchObject({ proven: 250n, excess: 250n, free: 750n })
    expect(doubtsOf(arrived)).toMatchObject([{ kind: 'excess', amount: '250' }])
    // A proof changes nothing about that, and a second decision ends it.
    const still = recordOf(recordReply(arrived, 'a', proven, start))
    expect(totalsOf(still)).toMatchObject({ proven: 250n, excess: 250n })
    const decision = { what: 'corrected', who: 'ada' } as const
    const confirmed = recordOf(decideByOperator(still, decision, start))
    expect(totalsOf(confirmed)).toMatchObject({ proven: 250n, excess: 0n })
    expect(doubtsOf(confirmed)).toEqual([])
  })
})

describe('doubts', () => {
  test('are listed oldest first, each with its reason', () => {
    const unknown = attempted(opened(500n), { a: lost, b: lost })
    const sum = afterSum(unknown, 750n, overMs).settlement
    const refusal = { outcome: 'refused', reason: 'busy', retryAt: start } as const
    const all = { c: lost, d: undefined, e: refusal, f: { outcome: 'proven', said: 1n } } as const
    const settlement = attempted(sum, all, { amount: 100n })
    expect(doubtsOf(settlement)).toEqual([
      ...['no reply', 'no outcome was recorded'].map((reason, i) => ({
        kind: 'in_doubt',
        reference: i === 0 ? 'c' : 'd',
        amount: '100',
        since: start,
        reason,
      })),
      {
        kind: 'by_word',
        reference: 'f',
        amount: '1',
        since: start,
        reason: 'arrived by the word of the other side, beyond what is proven',
      },
      {
        kind: 'by_word',
        reference: 'a',
        amount: '250',
        since: start + overMs,
        reason: 'arrived by the word of the other side',
      },
      {
        kind: 'denied',
        reference: 'b',
        amount: '250',
        since: start + overMs,
        reason: 'did not arrive by the word of the other side',
      },
    ])
  })

  test.each([
    ['a proof', { outcome: 'proven' }, 'proven after "never"'],
    ['an operator', undefined, 'decided by an operator after "never"'],
  ] as const)('name who has contradicted "never": %s', (_, reply, reason) => {
    const open = attempted(opened(), { a: lost })
    const closed = recordOf(decideAttempt(open, 'a', 'never', { by: 'close' }, start))
    const ada = { by: 'operator', who: 'ada' } as const
    const settlement = recordOf(
      reply === undefined
        ? decideAttempt(closed, 'a', 'arrived', ada, start + 1)
        : recordReply(closed, 'a', reply, start + 1),
    )
    const doubt = { kind: 'excess', reference: 'a', amount: '250', since: start + 1, reason }
    expect(doubtsOf(settlement)).toEqual([doubt])
  })
})

test('forgotten attempts leave their sum, and what is not proven stays', () => {
  const refusal = { outcome: 'refused', reason: 'busy', retryAt: start } as const
  const settlement = attempted(opened(500n), { a: proven, b: lost, c: refusal, d: proven })
  const short = forgetProven(settlement)
  expect(short.attempts.map(({ reference }) => reference)).toEqual(['b'])
  expect(totalsOf(short)).toEqual(totalsOf(settlement))
  expect(forgetProven(short)).toBe(short)
})

test('a verdict needs an end or the whole amount', () => {
  const reading = { received: 500n, askedAt: 0 }
  expect(verdictOn({ amount: 1n }, 500n, reading)).toMatchObject({ isDecided: false })
  expect(verdictOn({ amount: 0n }, 500n, reading)).toEqual({ isDecided: true, arrived: 0n })
})
