import { type Instant, type IntervalCounting, OptionError } from 'open-payments-server'
import { startOfTests } from '../clock.js'
import type { Arbitrary, FastCheck } from './fast-check.js'
import { grantWish, type LimitForm, limitForms } from './grant-wishes.js'
import type { SpendingHistory } from './history.js'
import { planHistory } from './plan.js'
import { defaultScene, priceOf, type SpendingScene } from './scene.js'
import type { Wish } from './wish.js'
import { anyWish } from './wishes.js'

/** The scene of the histories, and the rules of the wallet besides the limits. */
export interface HistoryOptions {
  /** Who pays whom. Default: an account in dollars pays receivers in dollars and euros. */
  readonly scene?: SpendingScene
  /** The time of the first step. Default: `startOfTests`, or sometimes a calendar edge. */
  readonly start?: Instant
  /** The maximum number of steps after the first one, which is always a grant. Default 24. */
  readonly stepsMax?: number
  /**
   * The forms of limits that grants have, for a wallet that serves fewer. Default: all. Must contain `debitAmount`,
   * `receiveAmount` or `anyAmount`.
   */
  readonly limits?: readonly LimitForm[]
  /**
   * Returns the intervals of limits for a history that starts at the given instant, for a wallet that serves fewer
   * forms. Default: all forms, with windows near the start, and often months from the last days of a month.
   */
  readonly interval?: (start: Instant) => Arbitrary<string>
  /** How the wallet counts the repetitions of an interval. Default `occurrences`. */
  readonly intervalCounting?: IntervalCounting
  /** How long a payment may wait until the host begins it, in milliseconds. Default 24 hours. */
  readonly holdMs?: number
}

/** The names of the options. */
export const historyOptions: Readonly<Record<keyof HistoryOptions, true>> = {
  scene: true,
  start: true,
  stepsMax: true,
  limits: true,
  interval: true,
  intervalCounting: true,
  holdMs: true,
}

/**
 * Returns the options with their defaults.
 *
 * @throws {OptionError} if the limits or the prices are invalid.
 */
export function filledIn({
  scene = defaultScene,
  stepsMax = 24,
  limits = limitForms,
  interval,
  intervalCounting = 'occurrences',
  holdMs = 86_400_000,
}: HistoryOptions) {
  const hasAmount = limits.some((form) => form !== 'interval' && form !== 'receiver')
  if (!hasAmount || !limits.every((form) => limitForms.includes(form))) {
    const forms = `must contain some of ${limitForms.join(', ')}`
    throw new OptionError('limits', `${forms}, and one of the first three`)
  }
  for (const receiver of scene.receivers) priceOf(receiver)
  return {
    scene,
    stepsMax,
    forms: { scene, limits, interval },
    rules: { intervalCounting, holdMs },
  }
}

/** The last days of a long month and of a leap February, and the last millisecond of a year. */
const corners: readonly Instant[] = [
  Date.UTC(2027, 0, 31),
  Date.UTC(2028, 1, 29, 12),
  Date.UTC(2026, 11, 31, 23, 59, 59, 999),
]

/** Generates histories of payments under limits in which each step is possible after those before it. */
export function anyHistory(fc: FastCheck, options: HistoryOptions): Arbitrary<SpendingHistory> {
  const { start } = options
  if (start !== undefined) return historyFrom(fc, Math.floor(start), options)
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
  const { scene, stepsMax, forms, rules } = filledIn(options)
  const grants = grantWish(fc, forms, start)
  const wish = anyWish(fc, grants)
  // A single array would usually be short.
  const [first, second, third] = [0, 1, 2].map((i) =>
    fc.array(wish, { maxLength: Math.floor((stepsMax + i) / 3), size: 'max' }),
  ) as [Arbitrary<Wish[]>, Arbitrary<Wish[]>, Arbitrary<Wish[]>]
  return fc.tuple(grants, first, second, third).map(([grant, ...others]) => {
    return planHistory([grant, ...others.flat()], { scene, start, stepsMax, rules })
  })
}
