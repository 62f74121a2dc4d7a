/**
 * Serves Open Payments for the accounts of a payment backend: a GNAP authorization server, a resource
 * server and a wallet address server, on a store that the host provides.
 *
 * @module open-payments-server
 */

export {
  type IlpCredentials,
  type IlpPaymentMethods,
  type IlpPaymentMethodsOptions,
  ilpPaymentMethods,
} from './built-in/ilp-payment-methods.js'
export { memoryStore } from './built-in/memory-store.js'
export { walletAddressSubjects } from './built-in/wallet-address-subjects.js'
export type {
  AccessAction,
  AccessItem,
  AccessType,
  GrantedItem,
  Limits,
  TokenItem,
} from './core/access.js'
export type { Amount, Asset } from './core/amount.js'
export type { Ok, Problem, Result } from './core/decision.js'
export type { ConsentRefusal } from './core/grant/consent.js'
export type { Grant, GrantEvent, GrantStatus, SubjectId } from './core/grant/record.js'
export type {
  IncomingPayment,
  IncomingPaymentEvent,
  ReceiveRefusal,
} from './core/incoming-payment.js'
export type { Instant } from './core/instant.js'
export type { IntervalCounting } from './core/interval.js'
export type { OutgoingPayment, OutgoingPaymentEvent } from './core/outgoing-payment/record.js'
export type { OutgoingPaymentRefusals, Totals, TotalsRefusal } from './core/outgoing-payment.js'
export type { Price, PriceQuery, QuoteEvent } from './core/quote.js'
export type { SpendingTotal } from './core/spending-total.js'
export type { Json, JsonObject, ListEntry, Stored } from './core/stored.js'
export type { GrantApproval } from './host/approval.js'
export {
  type ConsumeOptions,
  consumeEvents,
  type EventConsumer,
  type StopOptions,
} from './host/consumer.js'
export type {
  GrantListQuery,
  GrantQuery,
  GrantServices,
  GrantsToRevoke,
  GrantView,
} from './host/grant.js'
export type {
  CreateIncomingPaymentResult,
  IncomingPaymentCreation,
  IncomingPaymentServices,
} from './host/incoming-payment.js'
export type { GrantDenial, InteractionResult, Interactions } from './host/interaction.js'
export type { DenialRedirect } from './host/interaction-redirect.js'
export type { InteractionView, TokenView } from './host/interaction-view.js'
export type {
  CancellationReport,
  FailureReport,
  ItemBudget,
  OutgoingPaymentScope,
  OutgoingPaymentServices,
  SentReport,
} from './host/outgoing-payment.js'
export type {
  OfWalletAddress,
  PaymentReader,
} from './host/payments.js'
export {
  type RunSweepsOptions,
  runSweeps,
  type SweepRunner,
  type SweptServer,
} from './host/sweep-runner.js'
export type {
  MayRequest,
  MayRequestAnswer,
  RequestedGrant,
} from './http/authorization-server/may-request.js'
export type { AuthorizationPolicy } from './http/authorization-server/policy.js'
export type { RegisteredResourceServer } from './http/authorization-server/resource-server-registry.js'
export {
  type AuthorizationServer,
  type AuthorizationServerOptions,
  type AuthorizationServices,
  createAuthorizationServer,
} from './http/authorization-server.js'
export { type FetchHandler, RawBodyError, toFetch } from './http/fetch.js'
export type { Handler, HttpRequest, HttpResponse } from './http/message.js'
export type { ServerOptions, SignatureOptions } from './http/options.js'
export type {
  RateExceeded,
  RateLimit,
  RateLimitedCall,
  RateLimiting,
  RefusalReport,
  ServerHooks,
} from './http/pipeline.js'
export type { Refusal } from './http/public-errors.js'
export { type PublicError, type PublicErrors, refusals } from './http/refusals.js'
export type { ResourcePolicy } from './http/resource-server/policy.js'
export {
  createResourceServer,
  type ResourceServer,
  type ResourceServerOptions,
  type ResourceServices,
} from './http/resource-server.js'
export type {
  AuthorizationOperation,
  ResourceOperation,
  ServerOperation,
  ServerRoute,
  WalletAddressOperation,
} from './http/routes.js'
export {
  createSignatureVerifier,
  type SignatureVerdict,
  type SignatureVerifier,
  type SignatureVerifierOptions,
} from './http/signature-verifier.js'
export {
  createWalletAddressServer,
  type WalletAddressServer,
  type WalletAddressServerOptions,
} from './http/wallet-address-server.js'
export {
  type RemoteClientKeys,
  type RemoteClientKeysOptions,
  remoteClientKeys,
} from './outbound/client-keys.js'
export {
  type DocumentFetch,
  type FetchedDocument,
  FetchRefusedError,
  type GuardedFetch,
  type GuardedFetchOptions,
  type GuardedRequest,
  guardedFetch,
  HostUnreachableError,
  NoResponseError,
} from './outbound/guarded-fetch.js'
export {
  type IntrospectionCacheOptions,
  type RemoteIntrospectionOptions,
  remoteIntrospection,
} from './outbound/remote-introspection.js'
export type { ClientKeyQuery, ClientKeys, PublicJwk } from './ports/client-keys.js'
export type { Clock } from './ports/clock.js'
export type { Introspect, Introspection } from './ports/introspect.js'
export type { MayPay, MayPayAnswer, PaymentRefusal, RequestedPayment } from './ports/may-pay.js'
export type {
  IlpPaymentMethod,
  PaymentDetailsQuery,
  PaymentMethod,
  PaymentMethods,
} from './ports/payment-methods.js'
export type { PriceAnswer, PriceRefusal, PriceRequest, Pricing } from './ports/pricing.js'
export type { Random } from './ports/random.js'
export {
  type Commit,
  type ListQuery,
  type RecordChange,
  type RecordKey,
  type RecordKind,
  type RecordPage,
  type Store,
  storeBounds,
  TransactionError,
  type VersionGuard,
} from './ports/store.js'
export type { SubjectQuery, Subjects } from './ports/subjects.js'
export type { RequestOutcome, Telemetry, TelemetryActivity } from './ports/telemetry.js'
export type { WalletAddress, WalletAddresses } from './ports/wallet-addresses.js'
export type { PrivateJwk } from './protocol/http-signature/sign.js'
export type { IncomingPaymentBody } from './protocol/incoming-payment.js'
export type { InteractionHashEncoding } from './protocol/interaction-hash.js'
export type { OutgoingPaymentBody } from './protocol/outgoing-payment.js'
export type { QuoteBody } from './protocol/quote.js'
export type {
  DeliveredEvent,
  DrainOptions,
  DrainResult,
  EventDelivery,
  EventHandler,
  FailedDelivery,
  ServerEvents,
  SetAsideEvent,
} from './service/events/delivery.js'
export type { DomainEvent, EventRecord, EventType } from './service/events/record.js'
export { HostAnswerError } from './service/host-answer.js'
export type {
  CompleteIncomingPaymentResult,
  CreatedOnce,
  ReceivedFunds,
  ReceiveResult,
} from './service/incoming-payment.js'
export type { ListPage, PageInfo, PageQuery, PaymentListQuery } from './service/lists.js'
export type { OutgoingPaymentResult } from './service/outgoing-payment.js'
export type { RepeatRule } from './service/replay.js'
export { ContentionError, StoreTimeoutError } from './service/store-guard.js'
export type { SweepOptions, SweepResult } from './service/sweep.js'
export { ClockError } from './service/time.js'
export { ArgumentError } from './util/argument-error.js'
export { OptionError } from './util/option-error.js'
