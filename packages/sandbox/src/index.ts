/**
 * Two Open Payments wallets that pay each other, for the tests of SDKs and apps.
 *
 * @module open-payments-sandbox
 */

export type { RecordedRequest } from 'create-open-payments-server/wallet/start-page/requests'
export type { FullJwk } from 'open-payments-server-testing'
export type { ClockChange } from './clock.js'
export type { ConsentRules } from './consent.js'
export type { SandboxDescription, SandboxUrls } from './description.js'
export { SandboxError } from './error.js'
export type {
  Fault,
  FaultScope,
  PaymentFault,
  PaymentFaultScope,
  PlantedFault,
} from './faults.js'
export type { SandboxKey } from './keys.js'
export type { Decided, OwnerDecision, Revocation } from './owners.js'
export { type Sandbox, type SandboxOptions, startSandbox } from './sandbox.js'
export type { AccountWithKey } from './wallet.js'
