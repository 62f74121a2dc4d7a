/**
 * The state machines and their records: pure functions of records, a command and the time. For hosts that test
 * or embed them. Unstable: a minor version may change or remove what this entry exports, except stored records.
 *
 * @module open-payments-server/core
 */

export {
  type AccessAction,
  type AccessItem,
  type AccessType,
  allowsSame,
  fitsAccount,
  type GrantedItem,
  type Limits,
  permits,
  type TokenItem,
} from './core/access.js'
export { type Amount, type Asset, amountValueMax, parseValue } from './core/amount.js'
export type { ChargedGrant } from './core/budget/paying-items.js'
export type { Budget, BudgetPolicy, CountedLimit, SpentAmounts } from './core/budget/record.js'
export type { HeldAmounts } from './core/budget/release.js'
export {
  type BudgetCandidate,
  type Charge,
  type ChargedBudget,
  type ChargeRefusal,
  decideSpending,
  type OwnerRules,
} from './core/budget.js'
export type {
  Changed,
  Decision,
  HostReasons,
  HostResult,
  PaymentResult,
  Refused,
  Unchanged,
} from './core/decision.js'
export { type Ok, ok, type Problem, type Result } from './core/decision.js'
export type { GrantedAccount } from './core/grant/account-assets.js'
export type {
  AmendedItem,
  AmendGrant,
  AmendRefusal,
  ConditionChanges,
} from './core/grant/amendment.js'
export type { ApproveGrant, ConsentRefusal, DenyGrant } from './core/grant/consent.js'
export type { ContinueGrant, ContinueRefusal } from './core/grant/continuation.js'
export type { CancelGrant, RevokeGrant, RevokeToken } from './core/grant/ending.js'
export type { GrantEvent, SubjectId } from './core/grant/record.js'
export {
  type Amendment,
  type ClientKeyId,
  type Consent,
  type Continuation,
  clientId,
  type Derivation,
  type EarlierConditions,
  type Finalization,
  type FinishMethod,
  type Grant,
  type GrantClient,
  type GrantKey,
  type GrantPolicy,
  type HashMethod,
  type Interaction,
  type IssuedToken,
  type Rotation,
  type StoredReference,
} from './core/grant/record.js'
export { type RequestGrant, type RequestRefusal, requestGrant } from './core/grant/request.js'
export type { ManagedToken, RotateRefusal, RotateToken } from './core/grant/rotation.js'
export { type GrantStatus, grantStatus, isActive } from './core/grant/status.js'
export type { NewToken, NextToken } from './core/grant/token.js'
export {
  decideGrant,
  type GrantCommand,
  type GrantDecision,
  type GrantRefusals,
} from './core/grant.js'
export {
  type ClosedTransfer,
  type CloseTransfer,
  closedTransfer,
  closeTransfer,
  isCounted,
  type PaymentOfTransfer,
  type Transfer,
  type TransferRecord,
  transferOf,
} from './core/incoming-payment/transfer.js'
export {
  type CancelIncomingPayment,
  type Cancellation,
  type CompleteIncomingPayment,
  type CreateIncomingPayment,
  type CreateRefusal,
  createIncomingPayment,
  decideIncomingPayment,
  type ExpireIncomingPayment,
  type IncomingPayment,
  type IncomingPaymentChanged,
  type IncomingPaymentCommand,
  type IncomingPaymentDecision,
  type IncomingPaymentEvent,
  type IncomingPaymentEventMembers,
  type IncomingPaymentPolicy,
  type IncomingPaymentReceived,
  type IncomingPaymentRefusals,
  type ReceiveFunds,
  type ReceiveRefusal,
} from './core/incoming-payment.js'
export type { Instant } from './core/instant.js'
export {
  type CalendarDuration,
  endOfWindows,
  type IntervalCounting,
  type IntervalSpan,
  type ParsedInterval,
  parseInterval,
  type RepeatingInterval,
  type SpendingWindow,
  windowAt,
} from './core/interval.js'
export {
  type AccountLimitRefusal,
  type Allowance,
  allow,
  allowanceAt,
  type ConditionsRefusal,
  type CountedAmount,
  type GrantConditions,
  type LimitsRefusal,
  type Spending,
  type SpendingLimit,
} from './core/limits.js'
export {
  type AllOrNone,
  isUnderGrant,
  type Requester,
  type UnderGrant,
} from './core/outgoing-payment/authority.js'
export {
  type CreatedPayment,
  type CreateOutgoingPayment,
  type CreateUnderGrant,
  createOutgoingPayment,
} from './core/outgoing-payment/create.js'
export {
  type DecideDoubt,
  type DecideDoubtRefusal,
  decideDoubt,
  type PaymentDoubt,
} from './core/outgoing-payment/doubt.js'
export {
  type Confirmation,
  type DeclineReason,
  type DeclineRefusal,
  hasFailed,
  heldBy,
  type OutgoingPayment,
  type OutgoingPaymentEvent,
  type OutgoingPaymentFields,
  type OutgoingPaymentPolicy,
  type PaymentRecord,
  type ReservedPayment,
} from './core/outgoing-payment/record.js'
export {
  type BeginPayment,
  type CancelPayment,
  decideOutgoingPayment,
  type FailPayment,
  type LapsePayment,
  type OutgoingPaymentCommand,
  type OutgoingPaymentDecision,
  type OutgoingPaymentRefusals,
  type ReportSent,
  type Totals,
  type TotalsRefusal,
} from './core/outgoing-payment.js'
export type { Price, PriceQuery, Quote, QuoteEvent, QuotePolicy } from './core/quote.js'
export {
  accountLimits,
  type BudgetScope,
  type LimitSource,
  type OpenLimit,
  ownerLimits,
  type SetLimit,
} from './core/spending-limits.js'
export type { Json, JsonObject, ListEntry, Stored } from './core/stored.js'
