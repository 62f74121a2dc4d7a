import { changed, type Decision, refused, unchanged } from '../decision.js'
import type { Instant } from '../instant.js'
import { withArrival, withOutcome } from './arrival.js'
import { recordReply } from './reply.js'
import {
  type Attempt,
  arrivedOf,
  countedIn,
  type DecidedOutcome,
  excessOf,
  hasEnded,
  isByWord,
  isOpen,
  knownOf,
  type Outcome,
  type Settlement,
  saidOf,
  totalsOf,
  withdrawnOf,
} from './settlement.js'

/** What the other side says about one attempt when it is asked by its reference. */
export type FoundById =
  /** The order was carried out. `arrived`: by default all of it. */
  | { readonly found: 'arrived'; readonly arrived?: bigint; readonly proof?: string }
  /** The order was cancelled, closed or refused for now: it did not and will not take effect, and another one may. */
  | { readonly found: 'never' }
  /** The order was refused by the other side's own word, as another one would be: nothing more is sent. */
  | { readonly found: 'refused'; readonly reason: string }
  /** It knows the reference, and has not decided. */
  | { readonly found: 'pending' }
  /** It does not know the reference. Soon after the order this says nothing: the order may still be under way. */
  | { readonly found: 'absent' }

/** An answer to a question about attempts. What it shows may be as old as `askedAt`, when it was asked. */
export type Evidence =
  | {
      readonly by: 'id'
      readonly askedAt: Instant
      /** By reference. An attempt that is not in it is not decided. */
      readonly attempts: Readonly<Record<string, FoundById>>
    }
  | {
      readonly by: 'sum'
      readonly askedAt: Instant
      /** What the other side has received in total, from everybody, such as `receivedAmount`. */
      readonly received: bigint
    }

/** Why open attempts are not decided. */
export type Undecided =
  /** Nobody could be asked, or there is nothing to compare the answer with. */
  | 'unreadable'
  /** They may still take effect: until `until`, if there is such an instant. */
  | 'may_take_effect'
  /** The answer lacks what is proven, so that it proves nothing. */
  | 'contradicted'

/** What follows from evidence. */
export interface Conclusion {
  readonly settlement: Settlement
  /** Whether the evidence decided anything. */
  readonly isChanged: boolean
  /** Why attempts are still open. Absent if none is. */
  readonly undecided?: Undecided
  /** From this instant on, an answer decides all open attempts. Absent if no instant is known. */
  readonly until?: Instant
}

/** The open attempts of a settlement taken together, for `verdictOn`. */
export interface OpenAttempts {
  /** What they deliver if all of them take effect. */
  readonly amount: bigint
  /** From this instant on, with the margin, none of them can take effect any more. Absent if nobody knows. */
  readonly overAt?: Instant
}

/** What a sum shows about the open attempts. */
export type Verdict =
  | { readonly isDecided: false; readonly why: 'may_take_effect' | 'contradicted' }
  /** `arrived` is the most that can have arrived: others may have paid a part of it. */
  | { readonly isDecided: true; readonly arrived: bigint }

/**
 * Concludes from a sum what arrived of open attempts.
 *
 * - What is more than known is the most that arrived of them. At 0, nothing arrived.
 * - Before `overAt` it decides only if it covers all of them: what happens later does not change that bound.
 * - An answer that lacks what is known comes from an outdated copy, or is false.
 *
 * @param known what the other side had before the attempts, and what arrived since, by proof or by its word.
 *
 * @example
 * ```ts
 * import { verdictOn } from 'open-payments-server/attempts'
 *
 * const open = { amount: 250n, overAt: 30_000 }
 * verdictOn(open, 500n, { received: 500n, askedAt: 29_999 }) // not decided: it may still arrive
 * verdictOn(open, 500n, { received: 500n, askedAt: 30_000 }) // nothing arrived
 * verdictOn(open, 500n, { received: 750n, askedAt: 0 }) // at most 250 arrived
 * ```
 */
export function verdictOn(
  { amount, overAt = Number.POSITIVE_INFINITY }: OpenAttempts,
  known: bigint,
  { received, askedAt }: { readonly received: bigint; readonly askedAt: Instant },
): Verdict {
  if (received < known) return { isDecided: false, why: 'contradicted' }
  const more = received - known
  if (more >= amount) return { isDecided: true, arrived: amount }
  if (askedAt < overAt) return { isDecided: false, why: 'may_take_effect' }
  return { isDecided: true, arrived: more }
}

/**
 * Decides open attempts by what the other side says. `settlement` must be as it was stored when the question was asked,
 * and its record may not have changed when the result is written: a proof that arrives in between may be in the answer.
 *
 * @param marginMs how long after `notAfter` an attempt may still take effect: the difference of the clocks, and the
 *   time in which the other side completes what it has begun.
 *
 * @example
 * ```ts
 * import { concludeFrom, type Settlement, totalsOf } from 'open-payments-server/attempts'
 *
 * function decided(settlement: Settlement, received: bigint, askedAt: number) {
 *   const evidence = { by: 'sum', received, askedAt } as const
 *   const conclusion = concludeFrom(settlement, evidence, 10_000, Date.now())
 *   return { again: conclusion.until, ...totalsOf(conclusion.settlement) }
 * }
 * ```
 */
export function concludeFrom(
  settlement: Settlement,
  evidence: Evidence | undefined,
  marginMs: number,
  now: Instant,
): Conclusion {
  if (evidence === undefined) return undecidedIn(settlement, settlement, 'unreadable', marginMs)
  return evidence.by === 'id'
    ? concludeById(settlement, evidence, marginMs, now)
    : concludeBySum(settlement, evidence, marginMs, now)
}

/** Whether an attempt can no longer take effect at an instant. */
export function isOver({ notAfter }: Attempt, at: Instant, marginMs: number): boolean {
  return notAfter !== undefined && at >= notAfter + marginMs
}

/**
 * Decides an open attempt, or what is known by word alone, by somebody who knows: an operator, or the other side that
 * has closed the reference. An operator also decides what was closed. `confirmed` keeps what was decided, or counts of
 * what was said, and nobody doubts it any more. What an operator decides to have arrived after "never" is `excess`, as
 * with a proof: another attempt may have brought it again. What had counted when the settlement had ended, and never
 * arrived, is `withdrawn`. `corrected` ends both: the host's account has what is due.
 *
 * @example
 * ```ts
 * import { decideAttempt, type Settlement } from 'open-payments-server/attempts'
 *
 * function refund(settlement: Settlement, reference: string) {
 *   return decideAttempt(settlement, reference, 'never', { by: 'operator', who: 'ada' }, Date.now())
 * }
 * ```
 */
export function decideAttempt(
  settlement: Settlement,
  reference: string,
  what: 'arrived' | 'never' | 'confirmed' | 'corrected',
  { by, who }: Pick<DecidedOutcome, 'who'> & { readonly by: 'close' | 'operator' },
  now: Instant,
): Decision<Settlement, never, 'attempt_unknown' | 'attempt_decided' | 'attempt_open'> {
  const attempt = settlement.attempts.find((each) => each.reference === reference)
  if (attempt === undefined) return refused('attempt_unknown', `no attempt has ${reference}`)
  if (what === 'confirmed' && isOpen(attempt)) {
    return refused('attempt_open', 'nothing was decided about it')
  }
  if (what === 'corrected') return correct(settlement, attempt, who)
  if (by === 'operator' && saidOf(attempt) > 0n) return decideSaid(settlement, attempt, what, who)
  const arrived = { arrived: BigInt(attempt.amount), never: 0n, confirmed: arrivedOf(attempt) }[
    what
  ]
  const isClosed = attempt.outcome.state === 'decided' && attempt.outcome.by === 'close'
  if (!isOpen(attempt) && !isByWord(attempt) && !(isClosed && by === 'operator')) {
    return arrivedOf(attempt) === arrived
      ? unchanged(settlement)
      : refused('attempt_decided', 'it was decided otherwise')
  }
  const decided = { state: 'decided', at: now, by, ...(who !== undefined && { who }) } as const
  return changed(withArrival(settlement, attempt, arrived, decided))
}

/** What is proven stays. Of what is said, an operator confirms what counts: nobody was debited for more. */
function decideSaid(
  settlement: Settlement,
  attempt: Attempt,
  what: 'arrived' | 'never' | 'confirmed',
  who: string | undefined,
): Decision<Settlement, never, never> {
  if (attempt.outcome.state !== 'proven') return unchanged(settlement)
  const { said: _said, arrived, ...proven } = attempt.outcome
  const counted = countedIn(settlement).get(attempt.reference) ?? 0n
  const isNever = what === 'never'
  const withdrawn = isNever && hasEnded(settlement) ? counted : 0n
  return changed(
    withOutcome(settlement, attempt, {
      ...proven,
      arrived: `${isNever ? BigInt(arrived) : BigInt(arrived) + counted}`,
      ...(withdrawn > 0n && { withdrawn: `${withdrawn}` }),
      ...(who !== undefined && { who }),
    }),
  )
}

/** The host's account has what is due for what came after "never", or was debited and did not come. */
function correct(
  settlement: Settlement,
  attempt: Attempt,
  who: string | undefined,
): Decision<Settlement, never, never> {
  const { outcome } = attempt
  const isKnown = outcome.state === 'proven' || outcome.state === 'decided'
  if (!isKnown || excessOf(attempt) + withdrawnOf(attempt) === 0n) return unchanged(settlement)
  const { excess: _excess, ...rest } = outcome
  return changed(
    withOutcome(settlement, attempt, {
      ...rest,
      ...(rest.withdrawn !== undefined && { isCorrected: true }),
      ...(who !== undefined && { who }),
    }),
  )
}

function concludeById(
  settlement: Settlement,
  { attempts, askedAt }: Evidence & { readonly by: 'id' },
  marginMs: number,
  now: Instant,
): Conclusion {
  let next = settlement
  for (const attempt of settlement.attempts) {
    const found = Object.hasOwn(attempts, attempt.reference)
      ? attempts[attempt.reference]
      : undefined
    if (found?.found === 'arrived') {
      // As `next` has it: the proof of another one may have taken from it what a sum had shown.
      const proven = recordReply(next, attempt.reference, { ...found, outcome: 'proven' }, now)
      if (proven.ok) next = proven.record
    }
    if (!isOpen(attempt)) continue
    if (found?.found === 'refused') {
      const { reason } = found
      const replied = recordReply(next, attempt.reference, { outcome: 'refused', reason }, now)
      if (replied.ok) next = replied.record
      continue
    }
    const isAbsent = found?.found === 'absent' && isOver(attempt, askedAt, marginMs)
    if (found?.found !== 'never' && !isAbsent) continue
    next = withOutcome(next, attempt, { state: 'decided', at: now, arrived: '0', by: 'id' })
  }
  return undecidedIn(settlement, next, 'may_take_effect', marginMs)
}

function concludeBySum(
  settlement: Settlement,
  { received, askedAt }: Evidence & { readonly by: 'sum' },
  marginMs: number,
  now: Instant,
): Conclusion {
  const open = settlement.attempts.filter(isOpen)
  if (open.length === 0) return { settlement, isChanged: false }
  if (settlement.base === undefined)
    return undecidedIn(settlement, settlement, 'unreadable', marginMs)
  const { proven, inDoubt } = totalsOf(settlement)
  const byWord = settlement.attempts
    .filter(isByWord)
    .reduce((sum, each) => sum + arrivedOf(each), 0n)
  const said = settlement.attempts.reduce((sum, each) => sum + saidOf(each), 0n)
  const others = settlement.attempts.reduce(
    (sum, each) => sum + BigInt(knownOf(each).others ?? 0),
    0n,
  )
  const certain = BigInt(settlement.base) + others + proven + byWord
  // What is said explains a part of the sum. What is said in vain contradicts nothing: it is listed.
  const explained = received < certain + said ? received : certain + said
  const known = explained > certain ? explained : certain
  const overAt = overAtOf(open, marginMs)
  const all = { amount: inDoubt, ...(overAt !== undefined && { overAt }) }
  const verdict = verdictOn(all, known, { received, askedAt })
  if (verdict.isDecided) {
    const decided = allotted(settlement, open, verdict.arrived, now)
    // What others have paid until now does not count again.
    const base = received - others - proven - byWord - (known - certain) - verdict.arrived
    return { settlement: { ...decided, base: `${base}` }, isChanged: true }
  }
  // Nothing more than known arrived: of those that are over, nothing will.
  const over = received === known ? open.filter((each) => isOver(each, askedAt, marginMs)) : []
  const next = over.length > 0 ? allotted(settlement, over, 0n, now) : settlement
  return undecidedIn(settlement, next, verdict.why, marginMs)
}

/**
 * Decides attempts together: `arrived` of them has arrived in all. The larger ones first; a rest is a part of one that
 * is larger than the rest.
 */
function allotted(
  settlement: Settlement,
  attempts: readonly Attempt[],
  arrived: bigint,
  now: Instant,
): Settlement {
  const decision = settlement.decisionCount + 1
  const parts = new Map<string, bigint>()
  const amountOf = ({ amount }: Attempt) => BigInt(amount)
  let left = arrived
  const sorted = attempts.toSorted((a, b) => {
    return amountOf(a) === amountOf(b) ? 0 : amountOf(a) < amountOf(b) ? 1 : -1
  })
  for (const attempt of sorted) {
    const isWhole = amountOf(attempt) <= left
    parts.set(attempt.reference, isWhole ? amountOf(attempt) : 0n)
    if (isWhole) left -= amountOf(attempt)
  }
  const larger = sorted.filter(({ reference }) => parts.get(reference) === 0n).at(-1)
  if (larger !== undefined) parts.set(larger.reference, left)
  let next: Settlement = { ...settlement, decisionCount: decision }
  for (const attempt of attempts) {
    const part = `${parts.get(attempt.reference) ?? 0n}`
    const outcome: Outcome = { state: 'decided', at: now, arrived: part, by: 'sum', decision }
    next = withOutcome(next, attempt, outcome)
  }
  return next
}

/** The instant from which all of the attempts are over; `undefined` if one of them has no end. */
function overAtOf(attempts: readonly Attempt[], marginMs: number): Instant | undefined {
  let last: Instant = Number.NEGATIVE_INFINITY
  for (const { notAfter } of attempts) {
    if (notAfter === undefined) return undefined
    last = Math.max(last, notAfter + marginMs)
  }
  return last
}

function undecidedIn(
  before: Settlement,
  settlement: Settlement,
  why: Undecided,
  marginMs: number,
): Conclusion {
  const open = settlement.attempts.filter(isOpen)
  const isChanged = settlement !== before
  if (open.length === 0) return { settlement, isChanged }
  const until = overAtOf(open, marginMs)
  return { settlement, isChanged, undecided: why, ...(until !== undefined && { until }) }
}
