import type { RefusalReport } from 'open-payments-server'
import type { DecidedByRule } from './consent.js'
import type { Fault } from './faults.js'

/** The facts that are known while a request is served. */
export interface Seen {
  refusal?: RefusalReport
  /** The faults that the request had. */
  readonly faults: Fault['fault'][]
  /** The decision of a rule about consent. */
  decided?: DecidedByRule
  /** Returns the time after which a client that sends too much may retry, and counts the fault. */
  readonly limit?: () => { readonly retryAfterMs: number } | undefined
}
