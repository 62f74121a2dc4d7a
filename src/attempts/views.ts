import type { Undecided } from '../core/attempts/evidence.js'
import {
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
  /** Call `settle` again at this instant. Something is in doubt that may be decided, or may be sent later. */
  | {
      readonly state: 'again'
      readonly retryAt: Instant
      readonly why: Undecided | 'refused'
      readonly totals: SettlementTotals
    }
  /**
   * Nothing more is sent. `arrived` is proven or by word, all of the amount or less; `inDoubt` is what nobody knows,
   * which a later call may decide. `reason`: why less than all was sent.
   */
  | {
      readonly state: 'ended'
      readonly arrived: bigint
      readonly inDoubt: bigint
      readonly totals: SettlementTotals
      readonly reason?: string
    }

/** A settlement as an operator sees it. */
export interface SettlementView {
  readonly id: string
  readonly otherSide?: string
  readonly amount: bigint
  readonly totals: SettlementTotals
  /** The oldest first. Empty if everything is proven. */
  readonly doubts: readonly Doubt[]
}

/** The result of a decision by an operator. */
export type DecideResult = HostResult<{ readonly settlement: SettlementView }, DecideRefusal>

/** Why an operator's decision is refused. */
export type DecideRefusal =
  | 'settlement_unknown'
  | 'attempt_unknown'
  | 'attempt_decided'
  | 'attempt_open'
  | 'nothing_in_doubt'

export function ended(settlement: Settlement): Settled {
  const totals = totalsOf(settlement)
  const { proven, byWord, inDoubt } = totals
  const reason = settlement.stopped?.reason
  const arrived = proven + byWord
  return { state: 'ended', arrived, inDoubt, totals, ...(reason !== undefined && { reason }) }
}

export function viewOf(id: string, settlement: Settlement): SettlementView {
  const { otherSide, amount } = settlement
  return {
    id,
    ...(otherSide !== undefined && { otherSide }),
    amount: BigInt(amount),
    totals: totalsOf(settlement),
    doubts: doubtsOf(settlement),
  }
}
