/**
 * For hosts that come from Rafiki: its webhooks, the import of its grants, wallet addresses and keys, and the exchange
 * of its tokens.
 *
 * @module open-payments-rafiki
 */

export { type ExchangeKey, exchangeKey, type OldToken } from './exchange-key.js'
export {
  type GrantImport,
  type GrantOwner,
  type ImportedGrant,
  importGrants,
  importPolicy,
  type NotImported,
} from './import-grants.js'
export { type RafikiWebhooksOptions, rafikiWebhooks } from './sender.js'
export { canonicalize, rafikiSignature } from './signature.js'
export { type RafikiDatabase, type RafikiWalletAddress, rafikiWalletAddresses } from './tables.js'
export { type TokenExchangeOptions, tokenExchange } from './token-exchange.js'
export {
  type CardPayment,
  type IncomingPaymentData,
  type OutgoingPaymentData,
  type RafikiWebhook,
  type RafikiWebhookType,
  type Recipient,
  type WebhookSources,
  webhookOf,
} from './webhook.js'
