import type { RefusalReport } from 'open-payments-server'

/** What is known while a request is served. */
export interface Seen {
  refusal?: RefusalReport
  fault?: string
  consent?: 'by rule'
  /** The account has too little for the payment. */
  lacksFunds?: true
  /** The owner has to confirm the payment. */
  mustConfirm?: true
}
