import {
  type Changed,
  changed,
  type Decision,
  type Refused,
  refused,
  unchanged,
} from '../decision.js'
import type { Instant } from '../instant.js'
import { withArrival, withOutcome } from './arrival.js'
import { type Attempt, arrivedOf, isOpen, type Settlement, totalsOf } from './settlement.js'

/** Why an attempt may not be reserved. Minor versions add members: give a `switch` a `default`. */
export type ReserveRefusal =
  | 'settlement_stopped'
  | 'reference_used'
  | 'amount_not_free'
  | 'trust_exceeded'

/** An attempt to reserve: see `Attempt`. */
export interface NewAttempt {
  /** What the other side is to know it by: new for each attempt. */
  readonly reference: string
  /** The most that arrives if it takes effect, in smallest units of the asset that arrives: positive. */
  readonly amount: bigint
  /** After this instant the other side does not carry it out: see `Attempt`. */
  readonly notAfter?: Instant
}

/** The reply to an attempt, as the host's code has read it. */
export type Reply =
  /**
   * The other side has carried it out. `arrived`: what arrived, by default all of it. `proof`: such as a receipt.
   * `said`: what arrived more than that, by its word alone. It is not sent, and stays listed.
   */
  | {
      readonly outcome: 'proven'
      readonly arrived?: bigint
      readonly proof?: string
      readonly said?: bigint
    }
  /**
   * The other side's own word, by a reply that only it can have made, that it did not and will not carry out the order.
   * With `retryAt`, another attempt may be made from then on; without, none is.
   */
  | { readonly outcome: 'refused'; readonly reason: string; readonly retryAt?: Instant }
  /** Anything else: no reply, "try again", an HTTP status without the other side's own words. */
  | { readonly outcome: 'unknown'; readonly reason: string }

/**
 * Reserves an attempt. Write the result before the request: the request may leave only after that write.
 *
 * @param trustMax what the other side may deny by its word before nothing more is sent to it.
 *
 * @example
 * ```ts
 * import { openSettlement, reserveAttempt } from 'open-payments-server/attempts'
 *
 * const now = Date.now()
 * const settlement = openSettlement({ amount: 2_500n, now })
 * const attempt = { reference: crypto.randomUUID(), amount: 2_500n, notAfter: now + 60_000 }
 * const reserved = reserveAttempt(settlement, attempt, 0n, now)
 * if (reserved.ok) console.log('write this, then send:', reserved.record)
 * ```
 */
export function reserveAttempt(
  settlement: Settlement,
  { reference, amount, notAfter }: NewAttempt,
  trustMax: bigint,
  now: Instant,
): Changed<Settlement, never> | Refused<ReserveRefusal> {
  const { free, denied } = totalsOf(settlement)
  const { stopped, attempts } = settlement
  if (stopped !== undefined) return refused('settlement_stopped', stopped.reason)
  if (attempts.some((each) => each.reference === reference)) {
    return refused('reference_used', 'an attempt needs a new reference')
  }
  if (amount <= 0n || amount > free) {
    return refused('amount_not_free', `at most ${free} may be sent, not ${amount}`)
  }
  if (denied > trustMax) {
    return refused('trust_exceeded', `the other side has denied ${denied}, more than ${trustMax}`)
  }
  const attempt: Attempt = {
    reference,
    amount: `${amount}`,
    reservedAt: now,
    ...(notAfter !== undefined && { notAfter }),
    outcome: { state: 'reserved' },
  }
  const attemptCount = settlement.attemptCount + 1
  return changed({ ...settlement, attempts: [...attempts, attempt], attemptCount })
}

/**
 * Records the reply to an attempt. A proof counts at any time, also after a decision. Without one, a decision stays.
 *
 * @example
 * ```ts
 * import { recordReply, type Settlement } from 'open-payments-server/attempts'
 *
 * function replied(settlement: Settlement, reference: string, status: number) {
 *   const reply = { outcome: 'unknown', reason: `HTTP ${status}` } as const
 *   return recordReply(settlement, reference, reply, Date.now())
 * }
 * ```
 */
export function recordReply(
  settlement: Settlement,
  reference: string,
  reply: Reply,
  now: Instant,
): Decision<Settlement, never, 'attempt_unknown'> {
  const attempt = settlement.attempts.find((each) => each.reference === reference)
  if (attempt === undefined) return refused('attempt_unknown', `no attempt has ${reference}`)
  if (reply.outcome === 'proven') return prove(settlement, attempt, reply, now)
  if (!isOpen(attempt)) return unchanged(settlement)
  const { reason } = reply
  if (reply.outcome === 'refused') {
    const next = withOutcome(settlement, attempt, { state: 'refused', at: now, reason })
    return changed(reply.retryAt === undefined ? stopSettlement(next, reason, now) : next)
  }
  if (attempt.outcome.state === 'unknown') return unchanged(settlement)
  return changed(withOutcome(settlement, attempt, { state: 'unknown', since: now, reason }))
}

/**
 * Ends the sending of a settlement: no further attempt is reserved. Its open attempts can still be decided.
 *
 * @example
 * ```ts
 * import { type Settlement, stopSettlement } from 'open-payments-server/attempts'
 *
 * const cancelled = (settlement: Settlement) => stopSettlement(settlement, 'cancelled', Date.now())
 * ```
 */
export function stopSettlement(settlement: Settlement, reason: string, now: Instant): Settlement {
  return settlement.stopped === undefined
    ? { ...settlement, stopped: { at: now, reason } }
    : settlement
}

/**
 * Removes the attempts that are proven or refused, and keeps their sum, so that a settlement of many attempts stays
 * small. A later reply to one of them is refused with `attempt_unknown`.
 *
 * @example
 * ```ts
 * import { forgetProven, type Settlement, totalsOf } from 'open-payments-server/attempts'
 *
 * function shortened(settlement: Settlement): Settlement {
 *   return settlement.attempts.length < 100 ? settlement : forgetProven(settlement) // same totals
 * }
 * ```
 */
export function forgetProven(settlement: Settlement): Settlement {
  const isProven = ({ outcome }: Attempt) =>
    outcome.state === 'refused' ||
    (outcome.state === 'proven' &&
      (outcome.said ?? outcome.excess ?? outcome.others ?? outcome.withdrawn) === undefined)
  const gone = settlement.attempts.filter(isProven)
  if (gone.length === 0) return settlement
  const sum = gone.reduce((all, each) => all + arrivedOf(each), BigInt(settlement.forgotten ?? 0))
  const attempts = settlement.attempts.filter((each) => !isProven(each))
  return { ...settlement, forgotten: `${sum}`, attempts }
}

type Proof = Reply & { readonly outcome: 'proven' }

function prove(
  settlement: Settlement,
  attempt: Attempt,
  { arrived = BigInt(attempt.amount), proof, said = 0n }: Omit<Proof, 'outcome'>,
  now: Instant,
): Decision<Settlement, never, never> {
  if (attempt.outcome.state === 'proven') return unchanged(settlement)
  return changed(
    withArrival(settlement, attempt, arrived, {
      state: 'proven',
      at: now,
      ...(proof !== undefined && { proof }),
      ...(said > 0n && { said: `${said}` }),
    }),
  )
}
