import { changed, type Decision, refused, unchanged } from '../decision.js'
import type { Instant } from '../instant.js'
import { decideAttempt } from './evidence.js'
import { stopSettlement } from './reply.js'
import {
  type Attempt,
  excessOf,
  isByWord,
  isOpen,
  type Settlement,
  saidOf,
  totalsOf,
} from './settlement.js'

/** What an operator, who knows what became of attempts, decides. */
export interface OperatorDecision {
  readonly what: 'arrived' | 'never'
  /** The operator, for the record. */
  readonly who: string
  /** The attempt, as a whole. Default: see `decideByOperator`. */
  readonly reference?: string
}

/**
 * Decides by an operator who knows: all attempts that nobody knows about, or if there is none, those that were decided
 * by word alone, whose amounts `arrived` confirms, with the excess.
 *
 * @example
 * ```ts
 * import { decideByOperator, type Settlement } from 'open-payments-server/attempts'
 *
 * const refund = (settlement: Settlement) =>
 *   decideByOperator(settlement, { what: 'never', who: 'ada' }, Date.now())
 * ```
 */
export function decideByOperator(
  settlement: Settlement,
  { what, who, reference }: OperatorDecision,
  now: Instant,
): Decision<
  Settlement,
  never,
  'attempt_unknown' | 'attempt_decided' | 'attempt_open' | 'nothing_in_doubt'
> {
  const by = { by: 'operator', who } as const
  const { attempts } = settlement
  const referencesOf = (is: (attempt: Attempt) => boolean) =>
    attempts.filter(is).map((each) => each.reference)
  const open = reference === undefined ? referencesOf(isOpen) : [reference]
  const isKnownByWord = (attempt: Attempt) =>
    isByWord(attempt) || saidOf(attempt) > 0n || (what === 'arrived' && excessOf(attempt) > 0n)
  const byWord = open.length === 0 ? referencesOf(isKnownByWord) : []
  if (open.length + byWord.length === 0) {
    return refused('nothing_in_doubt', 'no attempt of the settlement is in doubt')
  }
  let next = settlement
  for (const each of [...open, ...byWord]) {
    const isConfirmed = what === 'arrived' && byWord.length > 0
    const decided = decideAttempt(next, each, isConfirmed ? 'confirmed' : what, by, now)
    if (!decided.ok) return decided
    next = decided.record
  }
  // It has ended: what is free now is the host's to refund, and not sent again.
  const hasEnded = totalsOf(settlement).free === 0n && !attempts.some(isOpen)
  if (hasEnded && totalsOf(next).free > 0n) next = stopSettlement(next, `decided by ${who}`, now)
  return next === settlement ? unchanged(settlement) : changed(next)
}
