/**
 * The rules of Open Payments for servers, as test cases that send requests to deployed servers over HTTP.
 *
 * @module open-payments-doctor
 */

export type { Consent, ConsentDecision, SendFetch, ServerRuleLevel } from './conformance/session.js'
export {
  type ConformanceClient,
  type ServerConformanceCase,
  type ServerConformanceOptions,
  serverConformance,
} from './conformance.js'
