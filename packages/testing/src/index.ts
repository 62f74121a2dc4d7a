/**
 * Testing kit: the store contract and the rules of a host's holds as test cases, a controllable clock, seeded
 * randomness, a client that signs requests, and a property test that searches for ways to overspend.
 *
 * @module open-payments-server-testing
 */

export type { OtherAccounts, ReceivedOrder } from './attempts/accounts.js'
export type { AttemptsHistory, Fate, RequestFate } from './attempts/history.js'
export { AttemptsError } from './attempts/laws.js'
export type { AttemptsHost, AttemptsPorts, AttemptsSubject } from './attempts/world.js'
export { type AttemptsCase, attemptsConformance, attemptsProperty } from './attempts.js'
export {
  type ClientRequest,
  type ClientResponse,
  clientKeysOf,
  type TestClient,
  type TestClientOptions,
  testClient,
} from './client.js'
export { type ManualClock, manualClock, startOfTests } from './clock.js'
export type { ConformanceRule } from './conformance/expectations.js'
export type { Shapes } from './conformance/records.js'
export { type ConformanceCase, type ConformanceOptions, storeConformance } from './conformance.js'
export type { DeliveredPaymentEvent, HoldSubject } from './holds/account.js'
export { type HoldCase, type HoldOptions, holdConformance } from './holds.js'
export { type FullJwk, jwkOf, type KeyPair, keyPairOf, throwAwayKey } from './key.js'
export { seededRandom } from './random.js'
export { type SignOptions, signedRequest } from './sign.js'
export { type Arbitraries, arbitraries, type LimitsOptions } from './spending/arbitraries.js'
export type { Account } from './spending/expected.js'
export type { HistoryOptions, LimitForm } from './spending/generate.js'
export {
  type ActionDuringFailure,
  type ActionsAtOnce,
  type CommitOrder,
  defaultScene,
  type PaymentRequest,
  type RemainingItem,
  type SpendingAction,
  type SpendingAmendment,
  type SpendingHistory,
  type SpendingReceiver,
  type SpendingScene,
  type SpendingStep,
  type StoreFailure,
} from './spending/history.js'
export type { SpendingHost, SpendingReport } from './spending/host.js'
export type { Spent } from './spending/model.js'
export { type ExpectedStep, expectedSpending } from './spending/oracle.js'
export {
  type ServersSubject,
  type StoreSubject,
  type SubjectOptions,
  spendingProperty,
  type WalletSubject,
} from './spending/property.js'
export { SpendingError } from './spending/run.js'
export type { SpendingPorts, SpendingServers } from './spending/servers.js'
export type { Arbitrary, FastCheck } from './spending/values.js'
export type {
  ListAnswer,
  OwnerRequest,
  PaymentAnswer,
  SpendingAnswer,
  SpendingWallet,
  WalletDecision,
  WalletRequest,
  WalletTotals,
} from './spending/wallet.js'
