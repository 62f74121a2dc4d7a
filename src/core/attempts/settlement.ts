import type { Instant } from '../instant.js'

/**
 * Money that is to move at another party, in one attempt or in several. It is plain JSON: amounts are decimal text, in
 * the unit that the evidence counts, which is what arrives.
 */
export interface Settlement {
  /** What is to arrive in all. */
  readonly amount: string
  readonly createdAt: Instant
  /** Who the money moves at, for the list of doubts. */
  readonly otherSide?: string
  /**
   * What the other side had received in total before the attempts, from everybody, by its own word. Each decision by
   * the sum moves it, so that later ones do not count what others have paid. Absent without evidence by sum.
   */
  readonly base?: string
  /** What arrived with proof by attempts that `forgetProven` has removed. Absent for 0. */
  readonly forgotten?: string
  /** In the order of their reservations. */
  readonly attempts: readonly Attempt[]
  /** How many attempts were reserved, including those that were removed. */
  readonly attemptCount: number
  /** How many decisions by the sum were made. */
  readonly decisionCount: number
  /** Why no further attempt is reserved. */
  readonly stopped?: { readonly at: Instant; readonly reason: string }
}

/** One request to the other side that moves money there, once or never. */
export interface Attempt {
  /** What the other side knows it by: new for each attempt. */
  readonly reference: string
  /** The most that arrives if it takes effect. */
  readonly amount: string
  /** When it was written, before its request. */
  readonly reservedAt: Instant
  /**
   * After this instant the other side does not carry it out. The request says so, and the other side, or whoever moves
   * the money, enforces it. Absent if nobody does: then only a closed reference or an operator decides "never".
   */
  readonly notAfter?: Instant
  readonly outcome: Outcome
}

/**
 * What is known about an attempt.
 *
 * - `reserved`: written before the request. A crash cannot tell whether the request left, so it may have.
 * - `unknown`: the request was made, and there is no word of the other side: no reply, "try again", any status of
 *   something in between.
 * - `proven`: it arrived, and the other side has proved or confirmed it by the reference. `said` is what arrived more
 *   than that, by the other side's word alone.
 * - `refused`: by the other side's own word. It did not and will not take effect.
 * - `decided`: `arrived` of it arrived, and the rest never will. `by` says how that is known: `id`, by its reference;
 *   `close`, because the other side has closed the reference; `sum`, by its word about a total, which is a bound; or
 *   `operator`.
 */
export type Outcome =
  | { readonly state: 'reserved' }
  | { readonly state: 'unknown'; readonly since: Instant; readonly reason: string }
  | { readonly state: 'refused'; readonly at: Instant; readonly reason: string }
  | KnownOutcome

/** See `Outcome`. */
export type KnownOutcome = ProvenOutcome | DecidedOutcome

/** What follows for an outcome from what was known before: absent for nothing. Amounts are decimal text. */
export interface Known {
  /** The number of the decision by the sum, which may be about several attempts. */
  readonly decision?: number
  /** The part that had been decided never to arrive: a time or a word on which that decision relied was wrong. */
  readonly excess?: string
  /** What the sum has shown of it, and others have paid, because it did not arrive. */
  readonly others?: string
  /** What counted when the settlement had ended, and did not arrive. */
  readonly withdrawn?: string
  /** Whether the host's account was corrected by `withdrawn`. */
  readonly isCorrected?: true
}

/** See `Outcome`. */
export interface ProvenOutcome extends Known {
  readonly state: 'proven'
  readonly at: Instant
  readonly arrived: string
  readonly proof?: string
  readonly said?: string
  /** The operator who has decided what was said, or corrected an account. */
  readonly who?: string
}

/** See `Outcome`. */
export interface DecidedOutcome extends Known {
  readonly state: 'decided'
  readonly at: Instant
  readonly arrived: string
  readonly by: 'id' | 'close' | 'sum' | 'operator'
  /** The operator. */
  readonly who?: string
}

/** What is known about the money of a settlement. */
export interface SettlementTotals {
  /** Arrived, and confirmed by proof, by its reference or by an operator. */
  readonly proven: bigint
  /** Arrived by the other side's word about a total, or beyond what it has proved: at most this much. */
  readonly byWord: bigint
  /** Attempts whose outcome is not known: nothing to all of it arrives. */
  readonly inDoubt: bigint
  /** Did not arrive by the other side's word about a total. It may be sent again, up to `trustMax`. */
  readonly denied: bigint
  /** Arrived although it had been decided that it never would, until `corrected`. Part of `proven`. */
  readonly excess: bigint
  /**
   * Counted as arrived by a word when the settlement had ended, and did not arrive. It is not sent again, and stays
   * here once it is `corrected`.
   */
  readonly withdrawn: bigint
  /** What no attempt has brought and none in doubt can bring: the most that a further attempt may have. */
  readonly free: bigint
}

/** An attempt, or a part of it, that is not known to have arrived or not: see `doubtsOf`. */
export interface Doubt {
  /**
   * `in_doubt`: nobody knows yet. `by_word`: at most this much arrived by the other side's word, as far as it counts.
   * `denied`: this much did not arrive, by the same word. Until somebody has corrected the host's account: `excess`, it
   * arrived after it had been decided that it never would; `withdrawn`, it did not arrive, and was debited by a word.
   */
  readonly kind: 'in_doubt' | 'by_word' | 'denied' | 'excess' | 'withdrawn'
  readonly reference: string
  readonly amount: string
  /** When it was reserved, or when what is said of it became known. */
  readonly since: Instant
  /** For the operator. */
  readonly reason: string
}

/**
 * Returns a settlement without attempts.
 *
 * @example
 * ```ts
 * import { openSettlement } from 'open-payments-server/attempts'
 *
 * openSettlement({ amount: 2_500n, now: Date.now(), otherSide: 'https://bank.example' })
 * ```
 */
export function openSettlement(given: {
  /** What is to arrive in all, in smallest units of the asset that arrives. */
  readonly amount: bigint
  readonly now: Instant
  readonly otherSide?: string
}): Settlement {
  const { amount, now, otherSide } = given
  return {
    amount: `${amount}`,
    createdAt: now,
    ...(otherSide !== undefined && { otherSide }),
    attempts: [],
    attemptCount: 0,
    decisionCount: 0,
  }
}

/** Whether the outcome of an attempt is open: it may have arrived, and may still arrive. */
export function isOpen({ outcome }: Attempt): boolean {
  return outcome.state === 'reserved' || outcome.state === 'unknown'
}

export function arrivedOf({ outcome }: Attempt): bigint {
  const hasArrived = outcome.state === 'proven' || outcome.state === 'decided'
  return hasArrived ? BigInt(outcome.arrived) : 0n
}

/** Whether an attempt was decided by the other side's word about a total, which proves nothing. */
export function isByWord({ outcome }: Attempt): boolean {
  return outcome.state === 'decided' && outcome.by === 'sum'
}

/** What the other side says to have received beyond what it has proved. */
export function saidOf({ outcome }: Attempt): bigint {
  return outcome.state === 'proven' ? BigInt(outcome.said ?? 0) : 0n
}

export function knownOf({ outcome }: Attempt): Known {
  if (outcome.state !== 'proven' && outcome.state !== 'decided') return {}
  const { decision, excess, others, withdrawn, isCorrected } = outcome
  return {
    ...(decision !== undefined && { decision }),
    ...(excess !== undefined && { excess }),
    ...(others !== undefined && { others }),
    ...(withdrawn !== undefined && { withdrawn }),
    ...(isCorrected !== undefined && { isCorrected }),
  }
}

/** What arrived after it had been decided that it never would. */
export function excessOf(attempt: Attempt): bigint {
  return BigInt(knownOf(attempt).excess ?? 0)
}

/** What was debited by a word and did not arrive, and nobody has corrected. */
export function withdrawnOf(attempt: Attempt): bigint {
  const { withdrawn = 0, isCorrected } = knownOf(attempt)
  return isCorrected ? 0n : BigInt(withdrawn)
}

/** Whether nothing more is sent, so that what counts as arrived was debited. */
export function hasEnded(settlement: Settlement): boolean {
  const isAll = totalsOf(settlement).free === 0n && !settlement.attempts.some(isOpen)
  return settlement.stopped !== undefined || isAll
}

/**
 * Returns what is known about the money of a settlement.
 *
 * @example
 * ```ts
 * import { openSettlement, totalsOf } from 'open-payments-server/attempts'
 *
 * const { proven, byWord, inDoubt } = totalsOf(openSettlement({ amount: 2_500n, now: Date.now() }))
 * console.log(proven + byWord, inDoubt) // what arrived, and what may have
 * ```
 */
export function totalsOf({ amount, forgotten = '0', attempts }: Settlement): SettlementTotals {
  let [proven, byWord, inDoubt, denied] = [BigInt(forgotten), 0n, 0n, 0n]
  let [excess, withdrawn, said] = [0n, 0n, 0n]
  for (const attempt of attempts) {
    const arrived = arrivedOf(attempt)
    if (isOpen(attempt)) inDoubt += BigInt(attempt.amount)
    else if (isByWord(attempt)) {
      byWord += arrived
      denied += BigInt(attempt.amount) - arrived
    } else proven += arrived
    excess += excessOf(attempt)
    withdrawn += BigInt(knownOf(attempt).withdrawn ?? 0)
    said += saidOf(attempt)
  }
  const left = atLeastNothing(BigInt(amount) - proven - byWord - inDoubt - withdrawn)
  // What is said counts for what nothing else brings: it takes no money, and may be any number.
  const counted = atMost(said, left)
  const free = left - counted
  return { proven, byWord: byWord + counted, inDoubt, denied, excess, withdrawn, free }
}

const atLeastNothing = (amount: bigint) => (amount > 0n ? amount : 0n)
const atMost = (amount: bigint, most: bigint) => (amount < most ? amount : most)

/**
 * Returns what an operator should know about a settlement, oldest first: what is in doubt, and what was decided by
 * somebody's word alone. Empty if everything is proven.
 *
 * @example
 * ```ts
 * import { doubtsOf, type Settlement } from 'open-payments-server/attempts'
 *
 * function report(settlement: Settlement): void {
 *   for (const { kind, amount, since, reason } of doubtsOf(settlement)) {
 *     console.log(kind, amount, new Date(since), reason)
 *   }
 * }
 * ```
 */
export function doubtsOf(settlement: Settlement): readonly Doubt[] {
  const counted = countedIn(settlement)
  const doubts = settlement.attempts.flatMap((attempt) =>
    doubtsAbout(attempt, counted.get(attempt.reference) ?? 0n),
  )
  return doubts.sort((a, b) => a.since - b.since)
}

/** Returns how much counts of what each attempt is said to have brought beyond its proof, by reference. */
export function countedIn(settlement: Settlement): ReadonlyMap<string, bigint> {
  const { attempts } = settlement
  const decided = attempts.filter(isByWord).reduce((sum, each) => sum + arrivedOf(each), 0n)
  let left = totalsOf(settlement).byWord - decided
  const counted = new Map<string, bigint>()
  for (const attempt of attempts) {
    const part = atMost(saidOf(attempt), left)
    left -= part
    counted.set(attempt.reference, part)
  }
  return counted
}

const byItsWord = 'by the word of the other side'

function doubtsAbout(attempt: Attempt, said: bigint): readonly Doubt[] {
  const { reference, amount, reservedAt, outcome } = attempt
  const withdrawn = () =>
    'at' in outcome
      ? doubt(
          'withdrawn',
          withdrawnOf(attempt),
          outcome.at,
          'did not arrive, and was debited by a word',
        )
      : []
  const doubt = (kind: Doubt['kind'], value: bigint, since: Instant, reason: string) =>
    value > 0n ? [{ kind, reference, amount: `${value}`, since, reason }] : []
  switch (outcome.state) {
    case 'reserved':
      return doubt('in_doubt', BigInt(amount), reservedAt, 'no outcome was recorded')
    case 'unknown':
      return doubt('in_doubt', BigInt(amount), reservedAt, outcome.reason)
    case 'proven':
      return [
        ...doubt('excess', excessOf(attempt), outcome.at, 'proven after "never"'),
        ...doubt('by_word', said, outcome.at, `arrived ${byItsWord}, beyond what is proven`),
        ...withdrawn(),
      ]
    case 'decided': {
      const decided = 'decided by an operator after "never"'
      if (outcome.by !== 'sum') {
        return [...doubt('excess', excessOf(attempt), outcome.at, decided), ...withdrawn()]
      }
      const arrived = BigInt(outcome.arrived)
      return [
        ...doubt('by_word', arrived, outcome.at, `arrived ${byItsWord}`),
        ...doubt('denied', BigInt(amount) - arrived, outcome.at, `did not arrive ${byItsWord}`),
      ]
    }
    case 'refused':
      return []
  }
}
