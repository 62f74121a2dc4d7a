import type { Undecided } from '../core/attempts/evidence.js'
import {
  type Attempt,
  type Doubt,
  doubtsOf,
  type Settlement,
  type SettlementTotals,
  totalsOf,
} from '../core/attempts/settlement.js'
import type { HostResult } from '../core/decision.js'
import type { Instant } from '../core/instant.js'

/** How a call of `settle` ends. */
export type Settled =
  /**
   * Call `settle` again at this instant. Something is in doubt that may be decided, or is to be sent later: the other
   * side has refused it for now, or has not carried it out as far as is known.
   */
  | {
      readonly state: 'again'
      readonly retryAt: Instant
      readonly why: Undecided | 'refused' | 'not_arrived'
      readonly totals: SettlementTotals
      readonly doubt?: SettledDoubt
    }
  /**
   * Nothing more is sent. `arrived` is proven or by word: all of the amount or less, or more with `totals.excess`.
   * `inDoubt` is what nobody knows, which a later call may decide. `reason`: why less than all was sent.
   */
  | {
      readonly state: 'ended'
      readonly arrived: bigint
      readonly inDoubt: bigint
      readonly totals: SettlementTotals
      readonly doubt?: SettledDoubt
      readonly reason?: string
    }

/**
 * Since when the oldest part that is not proven is in doubt, and why. Once the settlement has ended, what is known by
 * word counts as arrived. Absent if nothing is in doubt.
 */
export interface SettledDoubt {
  readonly since: Instant
  /** For the operator: at most 256 characters. */
  readonly reason: string
}

/** A settlement as an operator sees it. */
export interface SettlementView {
  readonly id: string
  readonly otherSide?: string
  /** What is to arrive in all, in smallest units of the asset that arrives. */
  readonly amount: bigint
  readonly totals: SettlementTotals
  /** What is known of each attempt, by its `reference`, such as for a notice about one of them. The oldest first. */
  readonly attempts: readonly Attempt[]
  /** The oldest first. Empty if everything is proven. */
  readonly doubts: readonly Doubt[]
}

/** The result of a decision by an operator. */
export type DecideResult = HostResult<{ readonly settlement: SettlementView }, DecideRefusal>

/** Why an operator's decision is refused. Minor versions add members: give a `switch` a `default`. */
export type DecideRefusal =
  | 'settlement_unknown'
  | 'attempt_unknown'
  | 'attempt_decided'
  | 'attempt_open'
  | 'nothing_in_doubt'

/**
 * Returns what a settlement has brought, if nothing more is sent: for `reportSettled`, without a driver.
 *
 * @example
 * ```ts
 * import { type Settlement, settledOf } from 'open-payments-server/attempts'
 *
 * const arrivedOf = (settlement: Settlement) => settledOf(settlement).arrived
 * ```
 */
export function settledOf(settlement: Settlement): Settled & { readonly state: 'ended' } {
  const known = knownOf(settlement, false)
  const { proven, byWord, inDoubt } = known.totals
  const reason = settlement.stopped?.reason
  const arrived = proven + byWord
  return { state: 'ended', arrived, inDoubt, ...known, ...(reason !== undefined && { reason }) }
}

export function again(
  settlement: Settlement,
  retryAt: Instant,
  why: (Settled & { readonly state: 'again' })['why'],
): Settled {
  return { state: 'again', retryAt, why, ...knownOf(settlement, true) }
}

function knownOf(settlement: Settlement, isByWordInDoubt: boolean) {
  const isInDoubt = ({ kind }: Doubt) =>
    kind === 'in_doubt' || (kind === 'by_word' && isByWordInDoubt)
  const found = doubtsOf(settlement).find(isInDoubt)
  const doubt = found && { since: found.since, reason: found.reason || 'no reason was given' }
  return { totals: totalsOf(settlement), ...(doubt !== undefined && { doubt }) }
}

export function viewOf(id: string, settlement: Settlement): SettlementView {
  const { otherSide, amount } = settlement
  return {
    id,
    ...(otherSide !== undefined && { otherSide }),
    amount: BigInt(amount),
    totals: totalsOf(settlement),
    attempts: settlement.attempts,
    doubts: doubtsOf(settlement),
  }
}
