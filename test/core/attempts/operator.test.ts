import { describe, expect, test } from 'vitest'
import {
  decideAttempt,
  decideByOperator,
  doubtsOf,
  recordReply,
  reserveAttempt,
  type Settlement,
  stopSettlement,
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

const decide = (
  settlement: Settlement,
  what: 'arrived' | 'never' | 'corrected',
  reference?: string,
) => {
  const one = reference === undefined ? {} : { reference }
  return decideByOperator(settlement, { what, who: 'ada', ...one }, now)
}
const decided = (
  settlement: Settlement,
  what: 'arrived' | 'never' | 'corrected',
  reference?: string,
) => recordOf(decide(settlement, what, reference))

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
    const outcome = { state: 'decided', at: now, by: 'operator', who: 'ada', decision: 1 }
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

  test('that an account has what came after "never", which ends the doubt', () => {
    expect(totalsOf(excess)).toMatchObject({ proven: 250n, excess: 250n })
    expect(decide(excess, 'arrived')).toMatchObject({ refusal: 'nothing_in_doubt' })
    const after = decided(excess, 'corrected')
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
    const arrived = decided(recordOf(recordReply(never, 'a', saying, start)), 'arrived')
    const after = decided(arrived, 'corrected')
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

describe('what was debited by word, and is decided never to have arrived once all was brought,', () => {
  const all = attempted(opened(500n), { a: lost }, { amount: 1_000n })
  const ended = afterSum(all, 1_500n, 0).settlement
  const withdrawn = decided(ended, 'never')
  const listed = (settlement: Settlement) =>
    doubtsOf(settlement).map(({ kind, amount }) => [kind, amount])

  test('is listed until the account of the payer was corrected, and stays debited', () => {
    expect(listed(withdrawn)).toEqual([['withdrawn', '1000']])
    expect(totalsOf(withdrawn)).toMatchObject({
      proven: 0n,
      byWord: 0n,
      withdrawn: 1_000n,
      free: 0n,
    })
    const after = decided(withdrawn, 'corrected')
    expect(listed(after)).toEqual([])
    expect(totalsOf(after)).toMatchObject({ withdrawn: 1_000n, free: 0n })
    expect(decide(after, 'corrected')).toMatchObject({ refusal: 'nothing_in_doubt' })
    expect(decide(after, 'corrected', 'a')).toMatchObject({ ok: true, outcome: 'unchanged' })
  })

  test('is right as it is if a proof comes after all, or else arrived after the correction', () => {
    const proof = (settlement: Settlement) => recordOf(recordReply(settlement, 'a', proven, now))
    expect(listed(proof(withdrawn))).toEqual([])
    const after = proof(decided(withdrawn, 'corrected'))
    expect(listed(after)).toEqual([['excess', '1000']])
    expect(totalsOf(after)).toMatchObject({ proven: 1_000n, withdrawn: 0n })
  })

  test('is what another attempt of the same decision brought, if that is proven', () => {
    const two = attempted(opened(500n), { a: lost, b: lost }, { amount: 500n })
    const one = stopSettlement(afterSum(two, 1_000n, overMs).settlement, 'it is over', now)
    const never = decided(one, 'never', 'a')
    expect(listed(never)).toEqual([
      ['withdrawn', '500'],
      ['denied', '500'],
    ])
    expect(listed(recordOf(recordReply(never, 'b', proven, now)))).toEqual([])
  })

  test('is listed if a receipt shows less than a sum', () => {
    const part = { outcome: 'proven', arrived: 400n } as const
    const after = recordOf(recordReply(ended, 'a', part, now))
    expect(listed(after)).toEqual([['withdrawn', '600']])
    expect(totalsOf(after)).toMatchObject({ proven: 400n, withdrawn: 600n, free: 0n })
  })

  test('makes room for nothing else that was said', () => {
    const saying = { outcome: 'proven', said: 750n } as const
    const both = attempted(opened(), { a: saying, b: saying }, { amount: 100n })
    const never = decided(both, 'never', 'a')
    expect(listed(never)).toEqual([
      ['withdrawn', '750'],
      ['by_word', '50'],
    ])
  })
})

describe('after the decision of an operator', () => {
  test('money that was all brought and is free again is not sent again', () => {
    const all = attempted(opened(500n), { a: lost }, { amount: 1_000n })
    const ended = afterSum(all, 1_500n, 0).settlement
    expect(isSending(decided(ended, 'never'))).toBe(false)
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
