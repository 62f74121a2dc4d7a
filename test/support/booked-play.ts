import fc from 'fast-check'
import { arbitraries, type SpendingHistory } from '../../src/testing/index.js'
import { runHistory } from '../../src/testing/spending/run.js'
import { type Aside, asides } from './asides.js'
import { bookedScene, bookedWallet } from './booked-wallet.js'
import type { PlayedWallet } from './played-wallet.js'
import { spendingPolicy } from './spending-services.js'

const { holdMs } = spendingPolicy.payments

/** A history of the testing kit, and what happens beside it after each of its steps. */
export const stories: fc.Arbitrary<readonly [SpendingHistory, readonly Aside[]]> = fc.tuple(
  arbitraries(fc).history({ stepsMax: 40, holdMs, scene: bookedScene }),
  fc.array(asides, { minLength: 20, maxLength: 40, size: 'max' }),
)

/** Plays a story on a wallet, which the judge of the testing kit and the book of the tests both follow. */
export function playBooked(
  wallet: PlayedWallet,
  [history, beside]: readonly [SpendingHistory, readonly Aside[]],
  met?: Map<string, number>,
): Promise<void> {
  const rules = { intervalCounting: 'occurrences', holdMs, mayRefuse: false } as const
  return runHistory(history, bookedWallet(wallet, beside, met), rules)
}
