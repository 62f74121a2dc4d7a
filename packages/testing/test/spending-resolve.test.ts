import fc from 'fast-check'
import { runs } from 'open-payments-test-support/runs'
import { describe, expect, test } from 'vitest'
import { anyHistory } from '../src/spending/generate.js'
import type { SpendingStep } from '../src/spending/history.js'
import { hasEnded, windowAt } from '../src/spending/windows.js'

const decideMs = 30_000

/** The latest instant of the wallet's clock after a step: the repeat of a failed action waits for `decideMs`. */
function latestAfter(step: SpendingStep, now: number): number {
  if ('failure' in step) return now + decideMs
  return step.type === 'wait' ? Math.max(now, step.until) : now
}

describe('a generated history', () => {
  test('grants no item whose last window can have ended, however often the store failed before', () => {
    fc.assert(
      fc.property(anyHistory(fc, { decideMs }), ({ start, steps }) => {
        let now = start
        for (const step of steps) {
          if (!('failure' in step) && step.type === 'grant') {
            for (const { limits } of step.granted) {
              if (limits?.interval === undefined) continue
              const ended = hasEnded(windowAt(limits.interval, now, 'occurrences'))
              expect(ended, `${limits.interval} at ${new Date(now).toISOString()}`).toBe(false)
            }
          }
          now = latestAfter(step, now)
        }
      }),
      { numRuns: runs(10_000, 400) },
    )
  })
})
