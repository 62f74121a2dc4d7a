/**
 * Testing kit: the store contract as test cases, a controllable clock, seeded randomness, a client instance
 * that signs requests, and a property test that searches for ways to overspend.
 *
 * @module open-payments-server-testing
 */

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
export type { FullJwk } from './key.js'
export { seededRandom } from './random.js'
export type { ServerRuleLevel } from './server/definition.js'
export type { SendFetch } from './server/exchange.js'
export type { Consent, ConsentDecision } from './server/session.js'
export {
  type ConformanceClient,
  type ServerConformanceCase,
  type ServerConformanceOptions,
  serverConformance,
} from './server-conformance.js'
export { type Arbitraries, arbitraries, type LimitsOptions } from './spending/arbitraries.js'
export type { Account, Spent } from './spending/book.js'
export { type ExpectedStep, expectedSpending } from './spending/expected.js'
export type { Arbitrary, FastCheck } from './spending/fast-check.js'
export type { LimitForm } from './spending/grant-wishes.js'
export type { HistoryOptions } from './spending/histories.js'
export type {
  ActionDuringFailure,
  ActionsAtOnce,
  CommitOrder,
  PaymentRequest,
  SpendingAction,
  SpendingHistory,
  SpendingStep,
  StoreFailure,
} from './spending/history.js'
export type { SpendingPorts, SpendingServers } from './spending/host-servers.js'
export { SpendingError } from './spending/play.js'
export {
  type ServersSubject,
  type StoreSubject,
  spendingProperty,
  type WalletSubject,
} from './spending/property.js'
export { defaultScene, type SpendingReceiver, type SpendingScene } from './spending/scene.js'
export type {
  PaymentAnswer,
  SpendingAnswer,
  SpendingWallet,
  WalletRequest,
  WalletTotals,
} from './spending/wallet.js'
