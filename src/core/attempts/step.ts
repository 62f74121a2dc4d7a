import type { Instant } from '../instant.js'
import { isOpen, type Settlement, totalsOf } from './settlement.js'

export interface AttemptsPolicy {
  readonly trustMax: bigint
  readonly attemptsMax: number
  readonly giveUpMs: number
}

export type Step =
  | { readonly do: 'send'; readonly amount: bigint }
  /** Record that nothing more is sent. */
  | { readonly do: 'stop'; readonly reason: string }
  /** Ask about the open attempts. */
  | { readonly do: 'ask' }
  | { readonly do: 'end' }

/** The shortest and the longest time between two questions: each waits as long as the oldest open attempt is old. */
const [askMinMs, askMaxMs] = [1_000, 3_600_000]

/** The shortest and the longest time before a further attempt: each waits twice as long. */
const [sendMinMs, sendMaxMs] = [1_000, 60_000]

/** Returns when to make a further attempt, after one that did not bring all of the amount. */
export function nextAttemptAt({ attemptCount }: Settlement, now: Instant): Instant {
  return now + Math.min(sendMinMs * 2 ** (attemptCount - 1), sendMaxMs)
}

/** Decides what to do next: send what is free, then ask about what is open. */
export function nextStep(settlement: Settlement, policy: AttemptsPolicy, now: Instant): Step {
  const { free, denied } = totalsOf(settlement)
  const { stopped, attemptCount, createdAt } = settlement
  if (stopped === undefined && free > 0n) {
    if (attemptCount >= policy.attemptsMax) {
      return { do: 'stop', reason: `${attemptCount} attempts were made` }
    }
    if (denied > policy.trustMax) {
      return { do: 'stop', reason: 'the other side has denied more than it is trusted with' }
    }
    if (now >= createdAt + policy.giveUpMs) {
      return { do: 'stop', reason: 'it could not be sent in time' }
    }
    return { do: 'send', amount: free }
  }
  return settlement.attempts.some(isOpen) ? { do: 'ask' } : { do: 'end' }
}

/**
 * Returns when to ask again after an answer that decided nothing; `undefined` to give up. It does not give up before
 * the instant from which an answer decides.
 *
 * @param until the instant from which an answer decides all open attempts, if there is one.
 */
export function nextQuestionAt(
  { createdAt, attempts }: Settlement,
  until: Instant | undefined,
  { giveUpMs }: AttemptsPolicy,
  now: Instant,
): Instant | undefined {
  const giveUpAt = Math.max(createdAt + giveUpMs, until ?? Number.NEGATIVE_INFINITY)
  if (now >= giveUpAt) return undefined
  const open = attempts.filter(isOpen).map(({ reservedAt }) => reservedAt)
  const oldest = open.length === 0 ? createdAt : Math.min(...open)
  const waitMs = Math.min(Math.max(now - oldest, askMinMs), askMaxMs)
  const ends = [until, giveUpAt].filter((at) => at !== undefined && at > now) as Instant[]
  return Math.min(now + waitMs, ...ends)
}
