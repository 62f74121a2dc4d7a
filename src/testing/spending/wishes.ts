import type { Arbitrary, FastCheck } from './fast-check.js'
import { rarely } from './grant-wishes.js'
import type { CommitOrder, StoreFailure } from './history.js'
import type { PayWish, Share, Size, TotalsWish, Wish } from './wish.js'

const dayMs = 86_400_000

/** One step, several concurrent ones, or several that find mistakes more often in this order. */
export function anyWish(fc: FastCheck, grants: Arbitrary<Wish>): Arbitrary<Wish> {
  const acting = actionWish(fc, 1)
  const commits = fc.constantFrom<CommitOrder[]>('together', 'in turn', 'in reverse')
  const several = fc
    .tuple(fc.array(actionWish(fc, 6), { maxLength: 4, size: 'max' }), commits)
    .map(([wishes, commits]) => ({ type: 'at once' as const, wishes, commits }))
  return fc.oneof(
    { weight: 24, arbitrary: acting },
    { weight: 10, arbitrary: waitWish(fc) },
    { weight: 5, arbitrary: several },
    { weight: 3, arbitrary: acrossEdges(fc) },
    { weight: 3, arbitrary: reportedTwice(fc) },
    { weight: 2, arbitrary: duringFailure(fc) },
    { weight: 1, arbitrary: grants },
  )
}

/** Payments just before and just after the ends of successive windows. */
function acrossEdges(fc: FastCheck): Arbitrary<Wish> {
  const off = fc.constantFrom(-1, -1, 0, 0, 1)
  const by = fc.constantFrom('direct' as const, 'quote' as const)
  const turns = fc.array(fc.tuple(off, kept(fc), sizeOf(fc), by), { maxLength: 4, size: 'max' })
  return fc.tuple(fc.nat({ max: 2 }), fc.nat({ max: 2 }), turns).map(([grant, item, turns]) => ({
    type: 'in a row' as const,
    wishes: turns.flatMap(([off, pays, size, by]): Wish[] => {
      const edge = { type: 'edge', grant, item, off } as const
      const pay = { type: 'pay', grant, item, size, receiver: 0, other: false, by } as const
      return pays ? [edge, pay] : [edge]
    }),
  }))
}

/**
 * Payments, reports about one of them, a repeat of one report, and a payment that only fits if each report counts once.
 */
function reportedTwice(fc: FastCheck): Arbitrary<Wish> {
  const report = totalsWish(fc).map((wish) => ({ ...wish, back: 0, any: false }))
  const again = fc.constant<Wish>({ type: 'again', back: 0 })
  const begin = fc.constant<Wish>({ type: 'begin', back: 0, any: false })
  const cancel = fc.constant<Wish>({ type: 'cancel', back: 0, any: false })
  const pay = payWish(fc)
  return fc.oneof(
    { weight: 2, arbitrary: inARow(fc, [pay, begin, report, report, again, report, pay]) },
    { weight: 1, arbitrary: inARow(fc, [pay, pay, cancel, again, pay]) },
  )
}

function inARow(fc: FastCheck, wishes: readonly Arbitrary<Wish>[]): Arbitrary<Wish> {
  return fc
    .tuple(...wishes.map((wish) => fc.tuple(kept(fc), wish)))
    .map((all) => all.flatMap(([isKept, wish]) => (isKept ? [wish] : [])))
    .map((wishes) => ({ type: 'in a row' as const, wishes }))
}

/** Usually true. It shrinks to false, so that a step that is not needed disappears from a counterexample. */
function kept(fc: FastCheck): Arbitrary<boolean> {
  return fc.constantFrom(false, true, true, true, true, true, true, true)
}

/** A payment or a report during which the store fails. */
function duringFailure(fc: FastCheck): Arbitrary<Wish> {
  return fc
    .tuple(actionWish(fc, 1), fc.constantFrom<StoreFailure[]>('before', 'after'))
    .map(([wish, failure]) => ({ type: 'store fails' as const, wish, failure }))
}

/**
 * An action under a grant. Revocations are more frequent in races, because otherwise they end the history.
 */
function actionWish(fc: FastCheck, revocations: number): Arbitrary<Wish> {
  const back = fc.nat({ max: 3 })
  const grant = fc.nat({ max: 2 })
  const any = rarely(fc)
  return fc.oneof(
    { weight: 20, arbitrary: payWish(fc) },
    { weight: 5, arbitrary: back.map((back) => ({ type: 'retry' as const, back })) },
    { weight: 2, arbitrary: back.map((back) => ({ type: 'alter' as const, back })) },
    { weight: 4, arbitrary: back.map((back) => ({ type: 'again' as const, back })) },
    {
      weight: 6,
      arbitrary: fc.tuple(back, any).map(([back, any]) => ({ type: 'begin' as const, back, any })),
    },
    { weight: 16, arbitrary: totalsWish(fc) },
    {
      weight: 3,
      arbitrary: fc.tuple(back, any).map(([back, any]) => ({ type: 'cancel' as const, back, any })),
    },
    { weight: 2, arbitrary: fc.constant<Wish>({ type: 'lapse' }) },
    { weight: 2, arbitrary: grant.map((grant) => ({ type: 'rotate' as const, grant })) },
    { weight: revocations, arbitrary: grant.map((grant) => ({ type: 'revoke' as const, grant })) },
  )
}

function sizeOf(fc: FastCheck): Arbitrary<Size> {
  const off = fc.oneof(
    { weight: 3, arbitrary: fc.constant(0n) },
    { weight: 2, arbitrary: fc.constantFrom(1n, -1n) },
  )
  return fc.oneof(
    { weight: 2, arbitrary: off.map((off) => ({ of: 'rest' as const, off })) },
    {
      weight: 4,
      arbitrary: fc
        .tuple(fc.constantFrom(1n, 2n, 2n, 3n, 10n), off)
        .map(([parts, off]) => ({ of: 'limit' as const, parts, off })),
    },
    {
      weight: 1,
      arbitrary: fc
        .bigInt({ min: 1n, max: 5_000n })
        .map((value) => ({ of: 'value' as const, value })),
    },
  )
}

function payWish(fc: FastCheck): Arbitrary<PayWish> {
  const numbers = fc.tuple(fc.nat({ max: 2 }), fc.nat({ max: 2 }), fc.nat({ max: 3 }))
  return fc
    .tuple(numbers, sizeOf(fc), rarely(fc), fc.constantFrom('direct' as const, 'quote' as const))
    .map(([[grant, item, receiver], size, other, by]) => ({
      type: 'pay' as const,
      grant,
      item,
      size,
      receiver,
      other,
      by,
    }))
}

function totalsWish(fc: FastCheck): Arbitrary<TotalsWish> {
  const share = fc.constantFrom<Share[]>(
    'nothing',
    'all',
    'half',
    'one unit',
    'all but one unit',
    'too much',
  )
  const delivered = fc.oneof(
    { weight: 2, arbitrary: fc.constant(undefined) },
    { weight: 1, arbitrary: share },
  )
  return fc
    .tuple(
      fc.constantFrom('fail' as const, 'report-sent' as const),
      fc.nat({ max: 3 }),
      rarely(fc),
      fc.tuple(share, delivered),
      fc.boolean(),
    )
    .map(([type, back, any, [share, delivered], final]) => {
      return { type, back, any, share, delivered, final }
    })
}

function waitWish(fc: FastCheck): Arbitrary<Wish> {
  const off = fc.constantFrom(0, -1, 1)
  const [grant, item] = [fc.nat({ max: 2 }), fc.nat({ max: 2 })]
  return fc.oneof(
    {
      weight: 6,
      arbitrary: fc
        .tuple(grant, item, off)
        .map(([grant, item, off]) => ({ type: 'edge' as const, grant, item, off })),
    },
    {
      weight: 1,
      arbitrary: fc
        .tuple(fc.nat({ max: 3 }), off)
        .map(([back, off]) => ({ type: 'hold' as const, back, off })),
    },
    {
      weight: 2,
      arbitrary: fc
        .constantFrom(1, 1_000, 60_000, 3_600_000, dayMs, 31 * dayMs, 366 * dayMs)
        .map((ms) => ({ type: 'wait' as const, ms })),
    },
  )
}
