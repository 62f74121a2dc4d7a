import type fc from 'fast-check'
import { attemptsCases, historyOf } from './attempts/cases.js'
import { type AttemptsHistory, histories } from './attempts/history.js'
import { runHistory } from './attempts/laws.js'
import type { AttemptsSubject } from './attempts/world.js'
import type { ConformanceCase } from './conformance.js'
import type { FastCheck } from './spending/values.js'

/** One case of the suite, for any test runner. */
export type AttemptsCase = Pick<ConformanceCase, 'name' | 'run'>

/**
 * Returns a property that searches for a history in which a host's settlement breaks a law: what the payer is debited
 * has arrived or is listed, and never more arrives than was debited; the settlement ends; both books differ by exactly
 * what is listed. The link loses requests and replies, delivers late and twice, and answers with any status; the host
 * is killed at each step; the other side cannot be read, has a clock that is behind, and gets money from others.
 *
 * Run `attemptsConformance` as well: where an instant decides, a random history rarely contains it.
 *
 * @param fastCheck the module `fast-check`.
 *
 * @example
 * ```ts
 * import fc from 'fast-check'
 * import { type AttemptsSubject, attemptsProperty } from 'open-payments-server-testing'
 *
 * const search = (subject: AttemptsSubject) => fc.assert(attemptsProperty(fc, subject), { numRuns: 2_000 })
 * ```
 */
export function attemptsProperty(
  fastCheck: FastCheck,
  subject: AttemptsSubject,
): fc.IAsyncPropertyWithHooks<[AttemptsHistory]> {
  return fastCheck.asyncProperty(histories(fastCheck, subject.trustMax !== undefined), (history) =>
    runHistory(subject, history),
  )
}

/**
 * Returns named histories with the laws of `attemptsProperty`, for any test runner: each lost message, each status of
 * something in between, each kill, and the instants at which an answer begins to decide.
 *
 * @example
 * ```ts
 * import { type AttemptsSubject, attemptsConformance } from 'open-payments-server-testing'
 * import { test } from 'vitest'
 *
 * function suite(subject: AttemptsSubject): void {
 *   for (const { name, run } of attemptsConformance(subject)) test(name, run)
 * }
 * ```
 */
export function attemptsConformance(subject: AttemptsSubject): readonly AttemptsCase[] {
  return attemptsCases
    .filter(({ denies }) => denies !== true || subject.trustMax !== undefined)
    .map((each) => ({ name: each.name, run: () => runHistory(subject, historyOf(each)) }))
}
