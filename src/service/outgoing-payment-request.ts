import type { Amount } from '../core/amount.js'
import type {
  Budget,
  BudgetCandidate,
  BudgetPolicy,
  PayingItem,
  SpentAmounts,
} from '../core/budget.js'
import type { Refused } from '../core/decision.js'
import type { JsonObject } from '../core/json.js'
import type { LimitsRefusal, Spending } from '../core/limits.js'
import type { Repeat } from '../core/outgoing-payment/create.js'
import type { OutgoingPayment, OutgoingPaymentPolicy } from '../core/outgoing-payment/record.js'
import type { Quote, QuoteRefusal } from '../core/quote.js'
import type { Result } from '../core/result.js'
import type { Stored } from '../core/stored.js'
import type { ActiveToken, TokenRefusal } from '../ports/introspect.js'
import type { MayPay, PaymentRefusal } from '../ports/may-pay.js'
import type { WalletAddresses } from '../ports/wallet-addresses.js'
import type { AccountRefusal } from './account.js'
import type { ServiceContext } from './mechanism/context.js'
import type { SignedCall } from './mechanism/nonces.js'
import type { Replayed } from './mechanism/transact.js'
import type { OutgoingPayments } from './outgoing-payment.js'
import type { Permission } from './payment-permission.js'
import type { PricingRefused, QuoteOperations } from './quote.js'

/** The payment to create: from a quote, or directly to an incoming payment, which is priced now. */
export type PaymentInput = {
  readonly walletAddress: string
  readonly metadata?: JsonObject
} & (
  | { readonly quoteId: string }
  | { readonly incomingPayment: string; readonly debitAmount: Amount }
)

/** The client instance that creates the payment, and its token. */
export interface Spender {
  readonly client: string
  readonly token: ActiveToken
  /** Introspects the token again, because the grant may have changed when a commit lost a race. */
  renew(): Promise<Result<ActiveToken, Refused<TokenRefusal>>>
}

export interface CreationPorts {
  /** Whether the records of grants whose version is known are in the store of this commit. */
  readonly guardsGrants: boolean
  readonly walletAddresses: WalletAddresses
  readonly quotes: QuoteOperations
  readonly payments: OutgoingPayments
  /** Decides for the host whether a payment may be created. Default: every payment. */
  readonly mayPay?: MayPay | undefined
}

/** What every step of a creation uses. */
export interface CreationDependencies extends CreationPorts {
  readonly context: ServiceContext
  readonly limits: OutgoingPaymentPolicy & BudgetPolicy
}

/** A request to create a payment, before anything is loaded. */
export interface Requested {
  readonly input: PaymentInput
  readonly spender: Spender
  readonly call: SignedCall
  readonly namespace: string
  readonly grantNamespace: string
  readonly repeat: Repeat
  /** The id that client instance and idempotency key determine, if the request has a key. */
  readonly keyedId?: string
}

/** A request with everything that is fixed before the first attempt. */
export interface Creation extends Requested {
  readonly id: string
  /** The price of a payment without a quote; absent with a quote, which contains it. */
  readonly price?: Spending
  /** What was read under the token when the request began, if anything was. */
  readonly read?: Read | undefined
  /** The answer of the host, if it has been asked. */
  readonly permission?: Permission | undefined
}

/** Records that a creation depends on, read together. */
export interface Read {
  readonly quote?: Quote | undefined
  /** The token's items for outgoing payments, with the budgets of their open windows. */
  readonly items: readonly (PayingItem & { readonly budget?: Budget })[]
  /** The items that permit the payment. */
  readonly candidates: readonly BudgetCandidate[]
  /** The payment that this request, or an earlier identical one, created, if it was asked for. */
  readonly payment?: OutgoingPayment | undefined
  /** Whose request has consumed the nonce or signature, if that was asked for. */
  readonly consumed?: 'us' | 'another' | undefined
  /** The grant whose version the commit guards, if it was asked for. */
  readonly grant?: Stored | undefined
}

/** A created payment, with the amounts spent under the token if the commit of this request created it. */
export interface Created {
  readonly ok: true
  readonly payment: OutgoingPayment
  readonly spent?: SpentAmounts
}

export type Decided = Created | PaymentCreationRefused | Replayed

export type PaymentCreationRefused =
  | Refused<AccountRefusal | QuoteRefusal | LimitsRefusal | TokenRefusal | 'request_differs'>
  | Refused<PaymentRefusal['refusal']>
  | PricingRefused
