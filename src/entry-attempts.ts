/**
 * Settlement whose reply can be lost, such as at a bank, a custodian or a card processor behind an API: what is known
 * about each attempt, what an answer proves, and when money may be sent again.
 *
 * @module open-payments-server/attempts
 */

export { type Attempts, attempts } from './attempts/attempts.js'
export type { InTransaction, SettlementChange } from './attempts/book.js'
export {
  type SettlementHandlerOptions,
  type SettlementRequests,
  settlementHandler,
} from './attempts/handler.js'
export type {
  Answer,
  AttemptsOptions,
  Closed,
  Order,
  Question,
  SettleRequest,
} from './attempts/options.js'
export { askByRepeating } from './attempts/repeat.js'
export {
  type ReportedSettlement,
  reportSettled,
  type SettledPayments,
  totalsAt,
} from './attempts/report.js'
export {
  type DecideRefusal,
  type DecideResult,
  type Settled,
  type SettledDoubt,
  type SettlementView,
  settledOf,
} from './attempts/views.js'
export {
  type Conclusion,
  concludeFrom,
  decideAttempt,
  type Evidence,
  type FoundById,
  type OpenAttempts,
  type Undecided,
  type Verdict,
  verdictOn,
} from './core/attempts/evidence.js'
export { decideByOperator, type OperatorDecision } from './core/attempts/operator.js'
export {
  forgetProven,
  type NewAttempt,
  type Reply,
  type ReserveRefusal,
  recordReply,
  reserveAttempt,
  stopSettlement,
} from './core/attempts/reply.js'
export {
  type Attempt,
  type DecidedOutcome,
  type Doubt,
  doubtsOf,
  type Known,
  type KnownOutcome,
  type Outcome,
  openSettlement,
  type ProvenOutcome,
  type Settlement,
  type SettlementTotals,
  totalsOf,
} from './core/attempts/settlement.js'
export type { Changed, Decision, HostResult, Refused, Unchanged } from './core/decision.js'
export type { Instant } from './core/instant.js'
