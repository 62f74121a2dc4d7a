import type { AccessItem, Instant, Limits } from 'open-payments-server'
import type { Arbitrary, FastCheck } from './fast-check.js'
import type { CommitOrder } from './history.js'
import { validInterval } from './intervals.js'
import { amountOf, type SpendingScene } from './scene.js'
import { valueEdges } from './values.js'

/**
 * A step in terms relative to the state when it runs, such as the last payment but one, or the whole
 * remainder. A plan turns wishes into steps. A history stays valid when wishes are removed, so fast-check can
 * shrink long counterexamples.
 */
export type Wish =
  | {
      readonly type: 'grant'
      readonly items: readonly AccessItem[]
      /** Whether the resource owner approves half of each limit. */
      readonly halved: boolean
    }
  | PayWish
  /** Repeats a payment request, or a report of the host. */
  | { readonly type: 'retry' | 'again'; readonly back: number }
  | { readonly type: 'begin' | 'cancel'; readonly back: number; readonly any: boolean }
  | {
      readonly type: 'report-sent' | 'fail'
      readonly back: number
      readonly any: boolean
      readonly share: Share
      readonly final: boolean
    }
  | { readonly type: 'lapse' }
  | { readonly type: 'rotate' | 'revoke'; readonly grant: number }
  | { readonly type: 'wait'; readonly ms: number }
  /** Waits until a window of an item ends or begins, or until a hold expires, or 1 ms before or after. */
  | { readonly type: 'edge'; readonly grant: number; readonly item: number; readonly off: number }
  | { readonly type: 'hold'; readonly back: number; readonly off: number }
  | { readonly type: 'at once'; readonly wishes: readonly Wish[]; readonly commits: CommitOrder }

export interface PayWish {
  readonly type: 'pay'
  readonly grant: number
  /** The item whose limit the amount is derived from. */
  readonly item: number
  readonly size: Size
  readonly receiver: number
  readonly by: 'quote' | 'direct'
}

/** The remainder of a limit or a share of it, each plus or minus up to 1, or a fixed value. */
export type Size =
  | { readonly of: 'rest'; readonly off: bigint }
  | { readonly of: 'limit'; readonly parts: bigint; readonly off: bigint }
  | { readonly of: 'value'; readonly value: bigint }

/** How much of a payment has been sent: a part of its amount, or one unit more than it. */
export type Share = 'nothing' | 'one unit' | 'half' | 'all but one unit' | 'all' | 'too much'

const dayMs = 86_400_000

/** A grant with limits that are low enough to be reached. */
export function grantWish(fc: FastCheck, scene: SpendingScene, start: Instant): Arbitrary<Wish> {
  const limits = limitsIn(fc, scene, start)
  const item = limits.map((limits): AccessItem => {
    const base = {
      type: 'outgoing-payment',
      actions: ['create', 'read'],
      identifier: scene.walletAddress,
    } as const
    return Object.keys(limits).length === 0 ? base : { ...base, limits }
  })
  // A possible third item covers quotes.
  const items = fc.array(item, { minLength: 1, maxLength: 2 })
  return fc
    .tuple(items, rarely(fc))
    .map(([items, halved]) => ({ type: 'grant' as const, items, halved }))
}

function limitsIn(fc: FastCheck, scene: SpendingScene, start: Instant): Arbitrary<Limits> {
  const value = fc.oneof(
    { weight: 2, arbitrary: fc.bigInt({ min: 1n, max: 12n }) },
    { weight: 1, arbitrary: fc.bigInt({ min: 1n, max: 5_000n }) },
    { weight: 1, arbitrary: valueEdges(fc) },
  )
  const amounts: Arbitrary<Limits> = fc.oneof(
    {
      weight: 12,
      arbitrary: value.map((value) => ({ debitAmount: amountOf(value, scene.asset) })),
    },
    {
      weight: 4,
      arbitrary: fc
        .tuple(value, fc.constantFrom(...scene.receivers))
        .map(([value, { asset }]) => ({ receiveAmount: amountOf(value, asset) })),
    },
    { weight: 1, arbitrary: fc.constant({}) },
  )
  const interval = fc.oneof(
    { weight: 1, arbitrary: fc.constant(undefined) },
    { weight: 2, arbitrary: validInterval(fc, start) },
  )
  const receiver = fc.oneof(
    { weight: 5, arbitrary: fc.constant(undefined) },
    { weight: 1, arbitrary: fc.constantFrom(...scene.receivers).map(({ url }) => url) },
  )
  return fc.tuple(amounts, interval, receiver).map(([amounts, interval, receiver]) => ({
    ...(receiver === undefined ? {} : { receiver }),
    ...(interval === undefined ? {} : { interval }),
    ...amounts,
  }))
}

function rarely(fc: FastCheck): Arbitrary<boolean> {
  return fc.oneof(
    { weight: 7, arbitrary: fc.constant(false) },
    { weight: 1, arbitrary: fc.constant(true) },
  )
}

/** One step, or several concurrent ones. */
export function anyWish(fc: FastCheck, scene: SpendingScene, start: Instant): Arbitrary<Wish> {
  const acting = actionWish(fc, 1)
  const commits = fc.constantFrom<CommitOrder[]>('together', 'in turn', 'in reverse')
  const several = fc
    .tuple(fc.array(actionWish(fc, 6), { maxLength: 4, size: 'max' }), commits)
    .map(([wishes, commits]) => ({ type: 'at once' as const, wishes, commits }))
  return fc.oneof(
    { weight: 24, arbitrary: acting },
    { weight: 10, arbitrary: waitWish(fc) },
    { weight: 5, arbitrary: several },
    { weight: 1, arbitrary: grantWish(fc, scene, start) },
  )
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

function payWish(fc: FastCheck): Arbitrary<Wish> {
  const off = fc.oneof(
    { weight: 3, arbitrary: fc.constant(0n) },
    { weight: 2, arbitrary: fc.constantFrom(1n, -1n) },
  )
  const size: Arbitrary<Size> = fc.oneof(
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
  const numbers = fc.tuple(fc.nat({ max: 2 }), fc.nat({ max: 2 }), fc.nat({ max: 3 }))
  return fc
    .tuple(numbers, size, fc.constantFrom('direct' as const, 'quote' as const))
    .map(([[grant, item, receiver], size, by]) => ({
      type: 'pay' as const,
      grant,
      item,
      size,
      receiver,
      by,
    }))
}

function totalsWish(fc: FastCheck): Arbitrary<Wish> {
  const share = fc.constantFrom<Share[]>(
    'nothing',
    'all',
    'half',
    'one unit',
    'all but one unit',
    'too much',
  )
  return fc
    .tuple(
      fc.constantFrom('fail' as const, 'report-sent' as const),
      fc.nat({ max: 3 }),
      rarely(fc),
      share,
      fc.boolean(),
    )
    .map(([type, back, any, share, final]) => ({ type, back, any, share, final }))
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
