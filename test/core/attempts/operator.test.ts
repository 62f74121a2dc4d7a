import { describe, expect, test } from 'vitest'
import {
  decideAttempt,
  decideByOperator,
  doubtsOf,
  recordReply,
  reserveAttempt,
  type Settlement,
  totalsOf,
} from '../../../src/entry-attempts.js'
import {
  afterSum,
  attempted,
  lost,
  opened,
  outcomeIn,
  overMs,
  proven,
  recordOf,
  start,
} from '../../support/settlements.js'

const now = start + 1

const decide = (settlement: Settlement, what: 'arrived' | 'never', reference?: string) => {
  const one = reference === undefined ? {} : { reference }
  return decideByOperator(settlement, { what, who: 'ada', ...one }, now)
}
const decided = (settlement: Settlement, what: 'arrived' | 'never', reference?: string) =>
  recordOf(decide(settlement, what, reference))

/** Whether something more may be sent. */
const isSending = (settlement: Settlement) =>
  reserveAttempt(settlement, { reference: 'more', amount: 1n }, 1_000n, now).ok

/** Of 1,000, 250 are proven. Of 500, a sum has shown the first 250, and denied the others. */
const denied = afterSum(attempted(opened(500n), { a: proven, b: lost, c: lost }), 1_000n, overMs)
const byWord = denied.settlement

/** A reference was closed, and its order has arrived. */
const excess = recordOf(
  recordReply(
    recordOf(decideAttempt(attempted(opened(), { a: lost }), 'a', 'never', { by: 'close' }, start)),
    'a',
    proven,
    start,
  ),
)

describe('an operator decides', () => {
  test.each([
    ['arrived', 750n],
    ['never', 250n],
  ] as const)('all that is in doubt, and nothing else: %s', (what, known) => {
    const settlement = attempted(opened(), { a: proven, b: lost, c: undefined })
    const after = decided(settlement, what)
    expect(totalsOf(after)).toMatchObject({ proven: known, inDoubt: 0n, free: 1_000n - known })
    expect(outcomeIn(after, 'a')).toEqual(outcomeIn(settlement, 'a'))
    const arrived = what === 'arrived' ? '250' : '0'
    const outcome = { state: 'decided', at: now, arrived, by: 'operator', who: 'ada' }
    expect(outcomeIn(after, 'b')).toEqual(outcome)
    expect(outcomeIn(after, 'c')).toEqual(outcome)
  })

  test.each(['arrived', 'never'] as const)(
    'nothing that is known by word while anything is in doubt: %s',
    (what) => {
      const after = decided(attempted(byWord, { d: lost }), what)
      expect(totalsOf(after)).toMatchObject({ byWord: 250n, denied: 250n, inDoubt: 0n })
    },
  )

  test('one attempt that he names, and no other', () => {
    const settlement = attempted(opened(), { a: lost, b: lost })
    expect(totalsOf(decided(settlement, 'arrived', 'b'))).toMatchObject({
      proven: 250n,
      inDoubt: 250n,
    })
    expect(decide(settlement, 'arrived', 'other')).toMatchObject({ refusal: 'attempt_unknown' })
  })

  test('one attempt the same way again, which changes nothing', () => {
    const after = decided(attempted(opened(), { a: lost }), 'never', 'a')
    expect(decide(after, 'never', 'a')).toMatchObject({ ok: true, outcome: 'unchanged' })
    expect(decide(after, 'arrived', 'a')).toMatchObject({ ok: false, refusal: 'attempt_decided' })
  })

  test('what is known by word alone: its amounts stay if it arrived', () => {
    const after = decided(byWord, 'arrived')
    expect(totalsOf(after)).toMatchObject({ proven: 500n, byWord: 0n, denied: 0n, free: 500n })
    const outcome = { state: 'decided', at: now, by: 'operator', who: 'ada' }
    expect(outcomeIn(after, 'b')).toEqual({ ...outcome, arrived: '250' })
    expect(outcomeIn(after, 'c')).toEqual({ ...outcome, arrived: '0' })
    expect(doubtsOf(after)).toEqual([])
  })

  test('that nothing arrived of what is known by word alone: what is proven stays', () => {
    const after = decided(byWord, 'never')
    expect(totalsOf(after)).toMatchObject({ proven: 250n, byWord: 0n, denied: 0n, free: 750n })
    expect(doubtsOf(after)).toEqual([])
  })

  test('what is said beyond a proof', () => {
    const saying = { outcome: 'proven', arrived: 250n, said: 100n } as const
    const settlement = attempted(opened(), { a: saying, b: proven })
    expect(totalsOf(decided(settlement, 'arrived'))).toMatchObject({ proven: 600n, byWord: 0n })
    expect(totalsOf(decided(settlement, 'never'))).toMatchObject({ proven: 500n, byWord: 0n })
  })

  test('that what came after "never" arrived, which ends the doubt', () => {
    expect(totalsOf(excess)).toMatchObject({ proven: 250n, excess: 250n })
    const after = decided(excess, 'arrived')
    expect(totalsOf(after)).toMatchObject({ proven: 250n, excess: 0n })
    expect(outcomeIn(after, 'a')).toEqual({
      state: 'proven',
      at: start,
      arrived: '250',
      proof: 'receipt',
      who: 'ada',
    })
  })

  test('both at once: what came after "never", and what is said beyond it', () => {
    const closed = attempted(opened(), { a: lost })
    const never = recordOf(decideAttempt(closed, 'a', 'never', { by: 'close' }, start))
    const saying = { outcome: 'proven', said: 100n } as const
    const after = decided(recordOf(recordReply(never, 'a', saying, start)), 'arrived')
    expect(totalsOf(after)).toMatchObject({ proven: 350n, byWord: 0n, excess: 0n })
    expect(doubtsOf(after)).toEqual([])
  })

  test.each([
    ['arrived', 'everything is proven', attempted(opened(), { a: proven })],
    ['never', 'everything is proven', attempted(opened(), { a: proven })],
    ['never', 'a proof has contradicted "never"', excess],
  ] as const)('nothing if nothing is in doubt: %s, where %s', (what, _, settlement) => {
    expect(decide(settlement, what)).toMatchObject({ ok: false, refusal: 'nothing_in_doubt' })
  })
})

describe('after the decision of an operator', () => {
  test('money that was all brought and is free again is not sent again', () => {
    const all = attempted(opened(500n), { a: lost }, { amount: 1_000n })
    const ended = afterSum(all, 1_500n, 0).settlement
    const after = decided(ended, 'never')
    expect(totalsOf(after).free).toBe(1_000n)
    expect(isSending(after)).toBe(false)
    expect(after.stopped).toEqual({ at: now, reason: 'decided by ada' })
  })

  test('nothing stops if nothing is free', () => {
    const all = attempted(opened(500n), { a: lost }, { amount: 1_000n })
    expect(decided(afterSum(all, 1_500n, 0).settlement, 'arrived').stopped).toBeUndefined()
  })

  test.each([
    ['all of it was in doubt', attempted(opened(), { a: lost }, { amount: 1_000n })],
    ['a part of it was proven', attempted(opened(), { a: proven, b: proven, c: proven, d: lost })],
    ['something was free before', attempted(opened(), { a: lost })],
    ['something was denied, and nothing in doubt', byWord],
  ])('money is sent again while its sending had not ended: %s', (_, settlement) => {
    const after = decided(settlement, 'never')
    expect(after.stopped).toBeUndefined()
    expect(isSending(after)).toBe(true)
  })
})
