import type { CreationPolicy } from '../../core/outgoing-payment/create.js'
import type { AccountLimits, MayPay, WalletAddresses } from '../../ports/host.js'
import type { ServiceContext } from '../context.js'
import type { QuoteOperations } from '../quote.js'
import type { SeenBudgets } from '../seen-budgets.js'

export interface PaymentCreationPorts {
  /** Whether the grants are in the store of this commit, which then guards the version of the payment's grant. */
  readonly hasGrants: boolean
  readonly walletAddresses: WalletAddresses
  readonly quotes: QuoteOperations
  readonly seenBudgets: SeenBudgets
  /** Decides for the host whether a payment may be created. Default: every payment. */
  readonly mayPay?: MayPay | undefined
  /** Returns the limits of an account. Default: none has any. */
  readonly accountLimits?: AccountLimits | undefined
}

/** What the steps of a creation need. */
export interface Dependencies extends PaymentCreationPorts {
  readonly context: ServiceContext
  readonly policy: CreationPolicy
}
