import type { Instant, IntervalCounting } from 'open-payments-server'
import { startOfTests } from '../clock.js'
import type { Arbitrary, FastCheck } from './fast-check.js'
import type { SpendingHistory } from './history.js'
import { planHistory } from './plan.js'
import { defaultScene, type SpendingScene } from './scene.js'
import { anyWish, grantWish, type Wish } from './wishes.js'

/** What histories are about, and what the wallet promises beside the limits. */
export interface HistoryOptions {
  /** Who pays whom. Default: an account in dollars pays receivers in dollars and euros. */
  readonly scene?: SpendingScene
  /** When the first step is taken. Default: `startOfTests`, or now and then where calendars have their corners. */
  readonly start?: Instant
  /** The most steps after the first one, which is always a grant. Default 24. */
  readonly stepsMax?: number
  /** What the count of an interval means to the wallet. Default `occurrences`. */
  readonly intervalCounting?: IntervalCounting
  /** How long a payment waits to be begun before it may lapse, in milliseconds. Default 24 hours. */
  readonly holdMs?: number
}

/** The same options with their defaults. */
export function filledIn({
  scene = defaultScene,
  stepsMax = 24,
  intervalCounting = 'occurrences',
  holdMs = 86_400_000,
}: HistoryOptions) {
  const rules = { intervalCounting, holdMs, walletAddress: scene.walletAddress }
  return { scene, stepsMax, rules }
}

/** The last days of a long month and of a leap February, and the last millisecond of a year. */
const corners: readonly Instant[] = [
  Date.UTC(2027, 0, 31),
  Date.UTC(2028, 1, 29, 12),
  Date.UTC(2026, 11, 31, 23, 59, 59, 999),
]

/** Histories of payments under limits, each step of which makes sense after those before it. */
export function anyHistory(fc: FastCheck, options: HistoryOptions): Arbitrary<SpendingHistory> {
  const { start } = options
  if (start !== undefined) return historyFrom(fc, start, options)
  return fc.oneof(
    { weight: 3, arbitrary: historyFrom(fc, startOfTests, options) },
    ...corners.map((corner) => ({ weight: 1, arbitrary: historyFrom(fc, corner, options) })),
  )
}

function historyFrom(
  fc: FastCheck,
  start: Instant,
  options: HistoryOptions,
): Arbitrary<SpendingHistory> {
  const { scene, stepsMax, rules } = filledIn(options)
  const wish = anyWish(fc, scene, start)
  // One array would be short most of the time.
  const [first, second, third] = [0, 1, 2].map((i) =>
    fc.array(wish, { maxLength: Math.floor((stepsMax + i) / 3), size: 'max' }),
  ) as [Arbitrary<Wish[]>, Arbitrary<Wish[]>, Arbitrary<Wish[]>]
  return fc
    .tuple(grantWish(fc, scene, start), first, second, third)
    .map(([grant, ...others]) => planHistory([grant, ...others.flat()], scene, start, rules))
}
