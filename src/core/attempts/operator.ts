import { changed, type Decision, refused, unchanged } from '../decision.js'
import type { Instant } from '../instant.js'
import { decideAttempt } from './evidence.js'
import {
  type Attempt,
  excessOf,
  isByWord,
  isOpen,
  type Settlement,
  saidOf,
  withdrawnOf,
} from './settlement.js'

/** What an operator, who knows what became of attempts, decides. */
export interface OperatorDecision {
  readonly what: 'arrived' | 'never' | 'corrected'
  /** The operator, for the record. */
  readonly who: string
  /** The attempt, as a whole. Default: see `decideByOperator`. */
  readonly reference?: string
}

/**
 * Decides by an operator who knows: all attempts that nobody knows about, or if there is none, those that were decided
 * by word alone, whose amounts `arrived` confirms. `corrected`: the host's account has what is due, so that no `excess`
 * is listed any more, and nothing `withdrawn`.
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
  const isKnownByWord = (attempt: Attempt) => isByWord(attempt) || saidOf(attempt) > 0n
  const isDue = (attempt: Attempt) => excessOf(attempt) + withdrawnOf(attempt) > 0n
  const open = settlement.attempts.filter(isOpen)
  const byWord = open.length > 0 ? open : settlement.attempts.filter(isKnownByWord)
  const listed = what === 'corrected' ? settlement.attempts.filter(isDue) : byWord
  const references = reference === undefined ? listed.map((each) => each.reference) : [reference]
  if (references.length === 0) {
    return refused('nothing_in_doubt', 'no attempt of the settlement is in doubt')
  }
  const isConfirmed = what === 'arrived' && reference === undefined && open.length === 0
  let next = settlement
  for (const each of references) {
    const decided = decideAttempt(next, each, isConfirmed ? 'confirmed' : what, by, now)
    if (!decided.ok) return decided
    next = decided.record
  }
  return next === settlement ? unchanged(settlement) : changed(next)
}
