import type { RefusalReport } from 'open-payments-server'
import type { DecidedByRule } from './consent.js'

/** What is known while a request is served. */
export interface Seen {
  refusal?: RefusalReport
  fault?: string
  /** What a rule has decided about consent. */
  decided?: DecidedByRule
  /** The account has too little for the payment. */
  lacksFunds?: true
  /** The owner has to confirm the payment. */
  mustConfirm?: true
}
