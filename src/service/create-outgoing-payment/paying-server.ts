import type { AllOrNone, Requester } from '../../core/outgoing-payment/authority.js'
import type { CreationPolicy } from '../../core/outgoing-payment/create.js'
import type {
  AccountLimits,
  ActiveToken,
  Bounded,
  BoundedFunction,
  MayPay,
  WalletAddresses,
} from '../../ports/host.js'
import type { ServiceContext } from '../context.js'
import type { QuoteOperations } from '../quote.js'
import type { SeenBudgets } from '../seen-budgets.js'

export interface PaymentCreationPorts {
  /** Whether the grants are in the store of this commit, which then guards the version of the payment's grant. */
  readonly hasGrants: boolean
  readonly walletAddresses: Bounded<WalletAddresses>
  readonly quotes: QuoteOperations
  readonly seenBudgets: SeenBudgets
  /** Decides for the host whether a payment may be created. Default: every payment. */
  readonly mayPay?: MayPay | undefined
  /** Returns the limits of an account. Default: none has any. */
  readonly accountLimits?: BoundedFunction<AccountLimits> | undefined
}

/** Who pays: a client with a token, or else the owner of the account. */
export type Payer = AllOrNone<{ readonly client: string; readonly token: ActiveToken }>

export function requesterFor({ client, token }: Payer): Requester {
  return token === undefined ? {} : { client, grantId: token.grantId }
}

export interface PayingServer extends PaymentCreationPorts {
  readonly context: ServiceContext
  readonly policy: CreationPolicy
}
