import type { RefusalReport } from 'open-payments-server'
import type { DecidedByRule } from './consent.js'
import type { PaymentFailure } from './payments.js'

/** What is known while a request is served. */
export interface Seen {
  refusal?: RefusalReport
  fault?: string
  /** What a rule has decided about consent. */
  decided?: DecidedByRule
  /** The account has too little for the payment. */
  lacksFunds?: true
  /** How the payment fails after it was created. */
  failing?: PaymentFailure
  /** The time after which a client that sends too much may retry. */
  retryAfterMs?: number
  /** The owner has to confirm the payment. */
  mustConfirm?: true
}
