/**
 * Serves Open Payments for the accounts of a payment backend: a GNAP authorization server, a resource
 * server and a wallet address server, on a store that the host provides.
 *
 * @module open-payments-server
 */

export {
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
export type { SpentAmounts } from './core/budget/record.js'
export type { LimitStatus } from './core/budget/status.js'
export type { HostReasons, HostResult, PaymentResult } from './core/decision.js'
export type { AmendRefusal, ConditionChanges } from './core/grant/amendment.js'
export type { ConsentRefusal } from './core/grant/consent.js'
export type {
  ClientKeyId,
  EarlierConditions,
  Finalization,
  GrantClient,
  GrantEvent,
  SubjectId,
} from './core/grant/record.js'
export type { GrantStatus } from './core/grant/status.js'
export type {
  Cancellation,
  CreateRefusal,
  IncomingPaymentChanged,
  IncomingPaymentEvent,
  IncomingPaymentEventMembers,
  IncomingPaymentReceived,
  IncomingPaymentRefusals,
  ReceiveRefusal,
} from './core/incoming-payment.js'
export type { Instant } from './core/instant.js'
export type { IntervalCounting, SpendingWindow } from './core/interval.js'
export type {
  AccountLimitRefusal,
  ConditionsRefusal,
  CountedAmount,
  GrantConditions,
  LimitsRefusal,
  SpendingLimit,
} from './core/limits.js'
export type { AllOrNone, Requester, UnderGrant } from './core/outgoing-payment/authority.js'
export type {
  DecideDoubt,
  DecideDoubtRefusal,
  PaymentDoubt,
} from './core/outgoing-payment/doubt.js'
export type {
  ConfirmRefusal,
  DeclineByOwnerRefusal,
  ShownPayment,
} from './core/outgoing-payment/owner-decision.js'
export type {
  DeclineRefusal,
  OutgoingPaymentEvent,
} from './core/outgoing-payment/record.js'
export type {
  OutgoingPaymentRefusals,
  Totals,
  TotalsRefusal,
} from './core/outgoing-payment.js'
export type { Price, PriceQuery, QuoteEvent } from './core/quote.js'
export type { LimitSource } from './core/spending-limits.js'
export type { SpendingTotal } from './core/spending-total.js'
export type { Json, JsonObject, ListEntry, Stored } from './core/stored.js'
export type { GrantAmendment, GrantApproval, ItemView } from './host/approval.js'
export type {
  ConfirmationServices,
  PaymentConfirmation,
  PaymentToConfirm,
} from './host/confirmation.js'
export { type ConsumeOptions, consumeEvents, type EventConsumer } from './host/consumer.js'
export type {
  AmendmentView,
  GrantHistoryQuery,
  GrantListQuery,
  GrantQuery,
  GrantServices,
  GrantsToRevoke,
  GrantView,
} from './host/grant.js'
export type {
  IncomingPaymentCreation,
  IncomingPaymentServices,
  IncomingPaymentView,
} from './host/incoming-payment.js'
export type { Interactions } from './host/interaction.js'
export type { InteractionView, TokenView } from './host/interaction-view.js'
export type { OrderRefusal, OrderServices, OutgoingPaymentCreation } from './host/order.js'
export type {
  DoubtDecision,
  FailureReport,
  ItemBudget,
  OutgoingPaymentServices,
  ReportResult,
  SentReport,
} from './host/outgoing-payment.js'
export type { ListedPayments, OutgoingPaymentScope } from './host/outgoing-payment-scope.js'
export type { ClientOfPayment, OutgoingPaymentView } from './host/outgoing-payment-view.js'
export type { PaymentReader } from './host/payments.js'
export type {
  LimitScope,
  LimitServices,
  PaymentPreview,
} from './host/preview.js'
export type {
  QuoteCreation,
  QuoteCreationRefusal,
  QuoteServices,
  QuoteView,
  RefusedOrder,
} from './host/quote.js'
export { type RunSweepsOptions, runSweeps, type SweepRunner } from './host/sweep-runner.js'
export type { RegisteredResourceServer } from './http/authorization-server/resource-server-registry.js'
export type { RequestMessage } from './http/diagnostics.js'
export { type FetchRequest, RawBodyError, toFetch } from './http/fetch.js'
export type {
  RateLimit,
  RateLimitedCall,
  RefusalMessage,
  RefusalReport,
  ServerHooks,
} from './http/hooks.js'
export type { Handler, HttpRequest, HttpResponse } from './http/message.js'
export type { Refusal } from './http/public-errors.js'
export type { FetchBody } from './http/request-body.js'
export type { ServerHandlers, ServerOperation, ServerRoute } from './http/routes.js'
export {
  type DocumentFetch,
  type FetchedDocument,
  FetchRefusedError,
  type GuardedFetch,
  type GuardedFetchOptions,
  type GuardedRequest,
  guardedFetch,
  HostUnreachableError,
  isPublicAddress,
  NoResponseError,
} from './network/index.js'
export {
  ClientKeyError,
  type RemoteClientKeys,
  type RemoteClientKeysOptions,
  remoteClientKeys,
} from './outbound/client-keys.js'
export type { IntrospectionCacheOptions } from './outbound/introspection-cache.js'
export type { OwnAccounts } from './outbound/own-accounts.js'
export { type RemoteGrantsOptions, remoteGrants } from './outbound/remote-grants.js'
export type {
  AccountLimits,
  ClientKeyQuery,
  ClientKeys,
  Clock,
  ConfirmationRequired,
  HostCall,
  IlpPaymentMethod,
  Introspection,
  IntrospectionQuery,
  MayPay,
  MayPayAnswer,
  MayReceive,
  MayReceiveAnswer,
  MayReceiveQuery,
  MayRequest,
  MayRequestAnswer,
  PaymentMethods,
  PriceAnswer,
  PriceRequest,
  Pricing,
  PublicJwk,
  Random,
  RequestedPayment,
  RequestOutcome,
  ReviewRequired,
  Subjects,
  Telemetry,
  TelemetryActivity,
  WalletAddress,
  WalletAddresses,
} from './ports/host.js'
export {
  type Commit,
  type ListQuery,
  type RecordChange,
  type RecordKey,
  type RecordKind,
  type RecordPage,
  type Store,
  TransactionError,
  type VersionGuard,
} from './ports/store.js'
export { displayName } from './protocol/display-name.js'
export {
  type RequestSignerOptions,
  type RequestToSign,
  requestSigner,
  type SignRequest,
} from './protocol/http-signature/request-signer.js'
export type { PrivateJwk } from './protocol/http-signature/sign.js'
export type { IncomingPaymentBody } from './protocol/incoming-payment.js'
export type { OutgoingPaymentBody } from './protocol/outgoing-payment.js'
export { type ClientKeyForm, type ClientKeyRefusal, readClientKey } from './protocol/pasted-key.js'
export type { AuthorizationPolicy } from './servers/authorization-policy.js'
export {
  type AuthorizationServer,
  type AuthorizationServerOptions,
  type AuthorizationServices,
  createAuthorizationServer,
} from './servers/authorization-server.js'
export type { CompatibilityOptions } from './servers/compatibility.js'
export type { ServerOptions, SignatureOptions } from './servers/options.js'
export type { ResourcePolicy } from './servers/resource-policy.js'
export {
  createResourceServer,
  type GrantSource,
  type ResourceServer,
  type ResourceServerOptions,
  type ResourceServices,
} from './servers/resource-server.js'
export {
  createSignatureVerifier,
  type SignatureVerifier,
  type SignatureVerifierOptions,
} from './servers/signature-verifier.js'
export { createWallet, type Wallet, type WalletOptions } from './servers/wallet.js'
export {
  createWalletAddressServer,
  type WalletAddressServer,
  type WalletAddressServerOptions,
} from './servers/wallet-address-server.js'
export type { AccountRefusal } from './service/accounts.js'
export type { EventType } from './service/event-record.js'
export type { DrainOptions, FailedDelivery } from './service/events/drain-options.js'
export type { DeliveredEvent, EventHandler, PostponedDelivery } from './service/events/handler.js'
export type { ServerEvents, SetAsideEvent } from './service/events/server-events.js'
export type { CreationRefusal } from './service/incoming-payment/create.js'
export type { ReceivedFunds } from './service/incoming-payment/receive.js'
export type { TransferOutcome } from './service/incoming-payment/transfer.js'
export type { ListPage, PageQuery } from './service/lists.js'
export type { ArrivalInReview, MayReceiveRefusal } from './service/may-receive.js'
export type { DoubtSummary } from './service/payment-doubts.js'
export type { PaymentPreviewRequest, PreviewRefusal } from './service/preview.js'
export { ContentionError, StoreTimeoutError } from './service/store-errors.js'
export type { SweepOptions, SweepResult } from './service/sweep.js'
export { ClockError } from './service/time.js'
export { HostAnswerError, HostTimeoutError } from './util/errors.js'
export { InvalidInputError } from './util/invalid-input.js'
