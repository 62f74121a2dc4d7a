import type { Instant, IntervalCounting } from '../../index.js'
import { startOfTests } from '../clock.js'
import type { Arbitrary, FastCheck } from './fast-check.js'
import type { SpendingHistory } from './history.js'
import { planHistory } from './plan.js'
import { defaultScene, type SpendingScene } from './scene.js'
import { anyWish, grantWish } from './wishes.js'

/** What histories are about, and what the wallet promises beside the limits. */
export interface HistoryOptions {
  /** Who pays whom. Default: an account in dollars pays receivers in dollars and euros. */
  readonly scene?: SpendingScene
  /** When the first step is taken. Default `startOfTests`. */
  readonly start?: Instant
  /** The most steps after the first one, which is always a grant. Default 20. */
  readonly stepsMax?: number
  /** What the count of an interval means to the wallet. Default `occurrences`. */
  readonly intervalCounting?: IntervalCounting
  /** How long a payment waits to be begun before it may lapse, in milliseconds. Default 24 hours. */
  readonly holdMs?: number
}

/** The same options with their defaults. */
export function filledIn({
  scene = defaultScene,
  start = startOfTests,
  stepsMax = 20,
  intervalCounting = 'occurrences',
  holdMs = 86_400_000,
}: HistoryOptions) {
  const rules = { intervalCounting, holdMs, walletAddress: scene.walletAddress }
  return { scene, start, stepsMax, rules }
}

/** Histories of payments under limits, each step of which makes sense after those before it. */
export function anyHistory(fc: FastCheck, options: HistoryOptions): Arbitrary<SpendingHistory> {
  const { scene, start, stepsMax, rules } = filledIn(options)
  const wishes = fc.array(anyWish(fc, scene, start), { maxLength: stepsMax, size: 'max' })
  return fc
    .tuple(grantWish(fc, scene, start), wishes)
    .map(([grant, others]) => planHistory([grant, ...others], scene, start, rules))
}
