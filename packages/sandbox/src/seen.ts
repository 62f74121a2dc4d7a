import type { RefusalReport } from 'open-payments-server'
import type { DecidedByRule } from './consent.js'
import type { Fault } from './faults.js'

/** What is known while a request is served. */
export interface Seen {
  refusal?: RefusalReport
  /** The faults that the request had. */
  readonly faults: Fault['fault'][]
  /** What a rule has decided about consent. */
  decided?: DecidedByRule
  /** Returns the time after which a client that sends too much may retry, and counts the fault. */
  readonly limit?: () => { readonly retryAfterMs: number } | undefined
}
