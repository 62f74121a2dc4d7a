/**
 * Serves Open Payments for the accounts of a payment backend: a GNAP authorization server, a resource
 * server and a wallet address server, on a store that the host provides.
 *
 * @module
 */

export {
  type IlpCredentials,
  type IlpPaymentMethods,
  type IlpPaymentMethodsOptions,
  ilpPaymentMethods,
} from './built-in/ilp-payment-methods.js'
export { memoryStore } from './built-in/memory-store.js'
export { walletAddressSubjects } from './built-in/wallet-address-subjects.js'
export type { AccessAction, AccessItem, AccessType, GrantedItem, Limits } from './core/access.js'
export type { Amount, Asset } from './core/amount.js'
export type { Instant, Json, JsonObject, ListEntry, Stored } from './core/decision.js'
export type { ConsentRefusal } from './core/grant/consent.js'
export type { GrantEvent } from './core/grant/event.js'
export type { Grant, GrantStatus } from './core/grant/record.js'
export type { SubjectId } from './core/grant/subject.js'
export type {
  IncomingPayment,
  IncomingPaymentEvent,
  ReceiveRefusal,
} from './core/incoming-payment.js'
export type { IntervalCounting } from './core/interval.js'
export type { OutgoingPayment, OutgoingPaymentEvent } from './core/outgoing-payment/record.js'
export type { OutgoingPaymentRefusals, Totals, TotalsRefusal } from './core/outgoing-payment.js'
export type { Price, PriceQuery, QuoteEvent } from './core/quote.js'
export type { Ok, Problem, Result } from './core/result.js'
export type { GrantApproval } from './host/approval.js'
export type { GrantListQuery, GrantServices, GrantView } from './host/grant.js'
export type { IncomingPaymentServices } from './host/incoming-payment.js'
export type { InteractionResult, Interactions } from './host/interaction.js'
export type { DenialRedirect } from './host/interaction-redirect.js'
export type { InteractionView } from './host/interaction-view.js'
export type {
  CancellationReport,
  FailureReport,
  OutgoingPaymentServices,
  SentReport,
} from './host/outgoing-payment.js'
export type { PaymentReader } from './host/payments.js'
export type {
  MayRequest,
  MayRequestAnswer,
  RequestedGrant,
} from './http/authorization-server/may-request.js'
export type { AuthorizationPolicy } from './http/authorization-server/policy.js'
export type { RegisteredResourceServer } from './http/authorization-server/resource-server-registry.js'
export {
  type AuthorizationOperation,
  type AuthorizationServer,
  type AuthorizationServerOptions,
  type AuthorizationServices,
  createAuthorizationServer,
} from './http/authorization-server.js'
export { type FetchHandler, toFetch } from './http/fetch.js'
export type { Handler, HttpRequest, HttpResponse } from './http/message.js'
export type { ServerOperation } from './http/operations.js'
export type { ServerOptions, SignatureOptions } from './http/options.js'
export type { RefusalReport, ServerHooks } from './http/pipeline.js'
export type { Refusal } from './http/public-errors.js'
export type {
  RateExceeded,
  RateLimit,
  RateLimitedCall,
  RateLimiting,
} from './http/rate-limit.js'
export { type PublicError, type PublicErrors, refusals } from './http/refusals.js'
export type { ResourcePolicy } from './http/resource-server/policy.js'
export {
  createResourceServer,
  type ResourceOperation,
  type ResourceServer,
  type ResourceServerOptions,
  type ResourceServices,
} from './http/resource-server.js'
export type { Route } from './http/routes.js'
export {
  createSignatureVerifier,
  type SignatureVerdict,
  type SignatureVerifier,
  type SignatureVerifierOptions,
} from './http/signature-verifier.js'
export {
  createWalletAddressServer,
  type WalletAddressOperation,
  type WalletAddressServer,
  type WalletAddressServerOptions,
} from './http/wallet-address-server.js'
export { type RemoteClientKeysOptions, remoteClientKeys } from './outbound/client-keys.js'
export {
  type DocumentFetch,
  type FetchedDocument,
  FetchRefusedError,
  type GuardedFetch,
  type GuardedFetchOptions,
  type GuardedRequest,
  guardedFetch,
} from './outbound/guarded-fetch.js'
export type { IntrospectionCacheOptions } from './outbound/introspection-cache.js'
export {
  type RemoteIntrospectionOptions,
  remoteIntrospection,
} from './outbound/remote-introspection.js'
export type { ClientKeyQuery, ClientKeys, PublicJwk } from './ports/client-keys.js'
export type { Clock } from './ports/clock.js'
export type { Introspect, Introspection } from './ports/introspect.js'
export type {
  IlpPaymentMethod,
  PaymentDetailsQuery,
  PaymentMethod,
  PaymentMethods,
} from './ports/payment-methods.js'
export type { PriceRefusal, PriceRequest, Pricing } from './ports/pricing.js'
export type { Random } from './ports/random.js'
export {
  type Commit,
  type ListQuery,
  type RecordChange,
  type RecordKind,
  type RecordPage,
  type Store,
  TransactionError,
  type VersionGuard,
} from './ports/store.js'
export type { SubjectQuery, Subjects } from './ports/subjects.js'
export type { RequestOutcome, Telemetry, TelemetryActivity } from './ports/telemetry.js'
export type { WalletAddress, WalletAddresses } from './ports/wallet-addresses.js'
export type { PrivateJwk } from './protocol/http-signature/sign.js'
export type { IncomingPaymentBody } from './protocol/incoming-payment.js'
export type { InteractionHashEncoding } from './protocol/interaction-hash.js'
export type { OutgoingPaymentBody, QuoteBody } from './protocol/outgoing-payment.js'
export type {
  CompleteResult,
  ReceivedFunds,
  ReceiveResult,
} from './service/incoming-payment.js'
export {
  type ConsumeOptions,
  consumeEvents,
  type EventConsumer,
} from './service/mechanism/consumer.js'
export type {
  DeliveredEvent,
  Delivery,
  DrainOptions,
  DrainResult,
  EventHandler,
  EventOutbox,
  FailedDelivery,
  SetAsideEvent,
} from './service/mechanism/delivery.js'
export type { DomainEvent, EventRecord } from './service/mechanism/events.js'
export type { RepeatRule } from './service/mechanism/nonces.js'
export type { Page, PageInfo, PageQuery, PaymentListQuery } from './service/mechanism/pages.js'
export type { SweepOptions, SweepResult } from './service/mechanism/sweeps.js'
export { ContentionError } from './service/mechanism/transact.js'
export type { OutgoingPaymentResult } from './service/outgoing-payment.js'
export { ArgumentError } from './util/argument-error.js'
export { OptionError } from './util/option-error.js'
