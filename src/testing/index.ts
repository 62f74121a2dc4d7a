/**
 * For tests: the contract of a store as cases, a clock and randomness that the test holds, and a client
 * instance that signs.
 *
 * @module
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
export type { ConformanceRule } from './conformance/trial.js'
export { type ConformanceCase, type ConformanceOptions, storeConformance } from './conformance.js'
export type { FullJwk } from './key.js'
export { seededRandom } from './random.js'
