/**
 * A client of other Open Payments wallets: wallet addresses, receivers, grants, quotes and payments, with a name for
 * everything that another server can do.
 *
 * @module open-payments-client
 */

export { type CallOptions, type Client, createClient } from './client.js'
export type { CompletedReceiver, CreatedReceiver, ReceiverRequest } from './created-receiver.js'
export type { FoundDocument, ReadAccess } from './document.js'
export { type VerifiedFinish, verifyFinish } from './finish.js'
export type {
  GrantContinuation,
  GrantServers,
  GrantState,
  IssuedGrant,
  PendingGrant,
} from './grant.js'
export type { Ended, GrantRequest, RotatedToken } from './grants.js'
export type { ClientOptions, ExportableKey } from './options.js'
export type {
  DirectPayment,
  FoundPayment,
  Payment,
  PaymentByQuote,
  PaymentRequest,
  PaymentTerms,
} from './outgoing-payments.js'
export type { FoundQuote, Quote, QuoteRequest } from './quotes.js'
export type {
  FoundPublicReceiver,
  FoundReceiver,
  OwnReceivers,
  PublicReceiver,
  Receiver,
} from './receiver.js'
export type {
  CallRefusal,
  ClientRefusal,
  ClosedReceiver,
  ConfirmationRequired,
  ErrorAnswer,
  Refused,
  RefusedCall,
  Refusing,
  Repeat,
  UnknownOutcome,
} from './refusal.js'
export type { Address, FoundAddress } from './wallet-address.js'
