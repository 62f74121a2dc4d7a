import type { GrantedItem, TokenItem } from '../core/access.js'
import type { Amount, Asset } from '../core/amount.js'
import type { HostReasons } from '../core/decision.js'
import type { SubjectId } from '../core/grant/record.js'
import type { Instant } from '../core/instant.js'
import type { GrantConditions, SpendingLimit } from '../core/limits.js'
import type { Requester } from '../core/outgoing-payment/authority.js'
import type { Price, PriceQuery } from '../core/quote.js'
import type { JsonObject } from '../core/stored.js'

/** The source of the current time. `Date` is an implementation. */
export interface Clock {
  /** Returns the current time in milliseconds since the Unix epoch. The library ignores fractions of a millisecond. */
  now(): Instant
}

/** A cryptographically secure source of random bytes. The global `crypto` is an implementation. */
export interface Random {
  getRandomValues(array: Uint8Array): Uint8Array
}

/** An account of the host that can send and receive payments. */
export interface WalletAddress extends Asset {
  /** The wallet address itself: an absolute URL, canonical, without a trailing slash. */
  readonly url: string
  /** The name that the account's owner chose to show to counterparties. */
  readonly publicName?: string
  /** When false, new payments and quotes are refused with `inactive_wallet_address`. Default true. */
  readonly active?: boolean
  /**
   * Ed25519 public keys of the account as a client, each with a `kid` of its own. Published at `{url}/jwks.json`, also
   * while `active` is false: to stop the account as a client, remove them. `readClientKey` reads those that an owner
   * registers. Other wallets may read no more than 64 KiB, which is about 400 keys.
   */
  readonly keys?: readonly PublicJwk[]
  /**
   * Further members of the wallet address document, which anybody can read: an object of JSON of at most 8 KiB and 8
   * levels, without the members that the server writes (`id`, `publicName`, `assetCode`, `assetScale`, `authServer`,
   * `resourceServer`).
   */
  readonly publicProperties?: JsonObject
}

/**
 * What each function of the host gets beside its question. A function that has not answered in time has failed: the
 * client gets 503 and may repeat, and a later answer changes nothing. The limit is `hostTimeoutMs`, and of `mayPay`
 * `policy.outgoingPayments.decideMs`.
 */
export interface HostCall {
  /** Aborted when nobody waits for the answer any more. Pass it to `fetch` and to your database. */
  readonly signal: AbortSignal
}

/** A function of the host as the services call it: `askHost` ends the call. */
export type BoundedFunction<Ask extends (query: never, call: HostCall) => unknown> = (
  query: Parameters<Ask>[0],
) => Promise<Awaited<ReturnType<Ask>>>

/** A port of the host as the services call it. */
export type Bounded<Port> = {
  readonly [Name in keyof Port]: Port[Name] extends (
    query: infer Query,
    call: HostCall,
  ) => infer Answer
    ? (query: Query) => Answer
    : Port[Name]
}

/** Looks up the host's accounts. */
export interface WalletAddresses {
  /**
   * Resolves to the account of a canonical wallet address, or to `undefined` or `null` if it does not exist. An account
   * with another `url`, such as one that a table without case finds, does not exist either. A rejection results in 503,
   * and a member with a value that this interface does not allow in 500. Other members are ignored.
   */
  find(url: string, call: HostCall): Promise<WalletAddress | undefined>
}

/** An Ed25519 public key as a JSON Web Key (RFC 8037), reduced to the members that verification needs. */
export interface PublicJwk {
  readonly kid: string
  /** The public key, base64url. */
  readonly x: string
}

/**
 * Finds the public keys of clients. `remoteClientKeys` is the implementation that fetches
 * `{walletAddress}/jwks.json`.
 */
export interface ClientKeys {
  /**
   * Resolves to the key, or to `undefined` only if the key set is known to be gone (404 or 410) or to lack the key:
   * `undefined` ends what the key signs. Rejects when the keys cannot be read at the moment, for
   * whatever reason; the client then receives 503, and no grant changes. A grant request gets 400 instead, as for an
   * unknown key, if the `code` of the error is `ERR_FETCH_REFUSED`: the client named a URL that is never fetched. A
   * `ClientKeyError` says in the response what the client must change. A key with another `kid` is taken for
   * `undefined`; one that is not a sound Ed25519 key results in 500.
   */
  find(query: ClientKeyQuery, call: HostCall): Promise<PublicJwk | undefined>
  /**
   * Resolves to what a client publishes about itself for people (RFC 9635 section 2.3.2), or to `undefined`.
   * `interactions.get` and `grants.displayOf` clean the name, and wait for it for at most 2 s. If the promise is late
   * or rejects, there is no name. Default: clients have no names.
   *
   * @param walletAddress of the client, canonical.
   */
  displayOf?(walletAddress: string, call: HostCall): Promise<{ readonly name?: string } | undefined>
}

/** Which key of a client a signature names. */
export interface ClientKeyQuery {
  /** The client's wallet address, canonical. */
  readonly walletAddress: string
  /** The `keyid` of the signature, compared with the key's `kid` byte for byte. */
  readonly kid: string
  /**
   * True for a grant request, which any sender can send. False for later requests under a grant, which only the
   * holder of one of its tokens can send. In both, a key that a cached key set lacks can be newer than the set. A cache
   * should not let lookups with true evict or delay lookups with false.
   */
  readonly mayBeNew: boolean
}

/**
 * Determines the subject identifiers of resource owners that clients receive (RFC 9635 section 2.2).
 * `walletAddressSubjects` is an implementation that confirms wallet addresses.
 */
export interface Subjects {
  /**
   * Resolves to the owner's identifier for this client: the requested one, or another identifier of the same owner.
   * Resolves to `undefined` when the requested subject is not this owner; the approval is then refused, because a
   * client must not mistake one owner for another. Called at each approval that shares the subject; the grant stores
   * the result. When it rejects, so does the approval; when the identifier is not an absolute URI in `id` with the
   * format `uri`, the approval rejects with a `HostAnswerError`.
   */
  resolve(
    query: {
      /** The host's identifier of the owner, as passed to `approve`. */
      readonly resourceOwner: string
      /** The owner's wallet addresses as passed to `approve`, in canonical form. */
      readonly walletAddresses: readonly string[]
      /** The subject identifier that the client asked to confirm. */
      readonly requested: SubjectId
      /** Wallet address of the client, verified by its signature. */
      readonly client: string
    },
    call: HostCall,
  ): Promise<SubjectId | undefined>
}

/** The result of introspecting an access token (RFC 9767 section 3.3). */
export type Introspection =
  | {
      readonly active: false
      /**
       * The key that the grant records, if the token is inactive only because the client no longer publishes it, and no
       * other key signs for the grant. A request that this key signed is refused for its signature, as every other
       * request of the client, and not for its token.
       */
      readonly withdrawnKey?: PublicJwk
    }
  | {
      readonly active: true
      readonly grantId: string
      /**
       * Version of the grant's record; absent when another process stores the grant. The resource server guards
       * the commit of each outgoing payment with it, so that a revoked grant cannot spend.
       */
      readonly grantVersion?: number
      readonly access: readonly GrantedItem[]
      /** The resource owner's conditions for payments; absent if there are none. */
      readonly conditions?: GrantConditions
      /**
       * The key that must have signed the request with the token: the one that was asked about, if it signs for the
       * grant, or else another that does.
       */
      readonly key: PublicJwk & { readonly thumbprint: string }
      /** Wallet address of the client; absent when it identifies itself only by its key. */
      readonly walletAddress?: string
      /** When the token expires. */
      readonly expiresAt: Instant
    }

/**
 * Introspects an access token at the authorization server. Rejects when the authorization server cannot be
 * reached: the client then receives 503, because an outage must not look like an invalid token.
 */
export type Introspect = (query: IntrospectionQuery) => Promise<Introspection>

/** A token to introspect. */
export interface IntrospectionQuery {
  readonly accessToken: string
  /** The `keyid` of the signature that came with the token, which need not be verified. */
  readonly keyid?: string
  /** True if the answer must not come from a cache, because it decides about a payment. Default: false. */
  readonly isFresh?: boolean
}

export type ActiveToken = Extract<Introspection, { readonly active: true }>

/**
 * The reason why a request cannot use its token: the token is inactive, its status is unknown, or the signing key was
 * withdrawn.
 */
export type TokenRefusal = 'token_unknown' | 'signature_invalid' | 'introspection_unavailable'

/**
 * How an incoming payment can be paid over Interledger.
 *
 * @see Open Payments OpenAPI, schema `ilp-payment-method`
 */
export interface IlpPaymentMethod {
  readonly type: 'ilp'
  /** The ILP address of the STREAM connection; at most 1023 characters. */
  readonly ilpAddress: string
  /** Shared secret of the STREAM connection, base64url without padding. */
  readonly sharedSecret: string
}

/**
 * Creates the details by which an incoming payment can be paid, and finds the payment that an ILP address
 * belongs to. `ilpPaymentMethods` derives both from a secret of the host and the payment's id.
 */
export interface PaymentMethods {
  /**
   * Resolves to the details of one payment. They must be unique to the payment and the same in every call,
   * because the library does not store them. Called once before a payment is created, and at each read
   * while it is open. A rejection results in 503, and details of another form in 500.
   */
  detailsOf(
    query: {
      readonly paymentId: string
      readonly walletAddress: string
      readonly asset: Asset
    },
    call: HostCall,
  ): Promise<readonly IlpPaymentMethod[]>
  /** Returns the id of the payment that an ILP address belongs to, or `undefined` for other addresses. */
  paymentIdOf(ilpAddress: string): string | undefined
}

/** A payment to price. */
export interface PriceRequest extends PriceQuery {
  /** The account that the payment would debit. */
  readonly account: WalletAddress
  /**
   * The client that asks: its wallet address, or the URN of its key's thumbprint. Absent if the owner of the account
   * asks, in your own app.
   */
  readonly client?: string
  readonly method: 'ilp'
}

/** The price of a payment, or why it has none. */
export type PriceAnswer =
  | ({ readonly ok: true } & Price)
  | ({
      readonly ok: false
      /**
       * - `receiver_invalid`: the incoming payment does not exist, or does not accept further funds.
       * - `amount_missing`: neither the request nor the incoming payment has an amount.
       * - `amount_too_small`: the amount is too small to deliver anything.
       * - `amount_invalid`: the receiver does not accept the asset or so large an amount, or the amount is too large to
       *   price.
       */
      readonly refusal:
        | 'receiver_invalid'
        | 'amount_missing'
        | 'amount_too_small'
        | 'amount_invalid'
      /** With `amount_too_small`: the smallest debit amount that delivers something. */
      readonly minDebitAmount?: Amount
    } & HostReasons)

export type PriceRefusal = Extract<PriceAnswer, { readonly ok: false }>

/** Prices payments: determines what the host debits and what the receiver gets. */
export interface Pricing {
  /**
   * Resolves to the price of a payment, or to the reason why it cannot be priced. A price repeats the amount of the
   * request unchanged. `debitAmount` is in the account's asset, and both amounts are positive. Rejects when the host
   * cannot determine a price at the moment; the client then gets 503. A wrong price results in 500.
   */
  price(request: PriceRequest, call: HostCall): Promise<PriceAnswer>
}

/**
 * An outgoing payment that is priced, permitted by its grant and counted in its budget, before anybody sees it. It has
 * neither `client` nor `grantId` if the owner of the account orders it with `outgoingPayments.create`.
 */
export type RequestedPayment = Requester & {
  /** The id of the payment. Hold `debitAmount` once for it. */
  readonly outgoingPaymentId: string
  /** The wallet address to debit. */
  readonly walletAddress: string
  /** URL of the incoming payment to pay. */
  readonly receiver: string
  /** Wallet address of the receiver; absent if `pricing` did not name it. */
  readonly receiverWalletAddress?: string
  /** What the payment may debit in all, your fees included, in the asset of the account: what you hold. */
  readonly debitAmount: Amount
  /** What arrives at the receiver, in the receiver's asset. */
  readonly receiveAmount: Amount
  /** The metadata that the client sent. */
  readonly metadata?: JsonObject
  /** The data that you gave to `outgoingPayments.create`. */
  readonly data?: JsonObject
  /** The resource owner's conditions, which the payment meets; `data` is for you to enforce. */
  readonly conditions?: GrantConditions
  /** True if `preview` asks: there is no such payment. Hold nothing, because no event will end it. */
  readonly isPreview?: true
  /** True once the resource owner has confirmed this payment, after you answered that this is required. */
  readonly isConfirmed?: true
}

/** Whether the host carries out a payment. */
export type MayPayAnswer =
  | { readonly ok: true }
  | ({
      readonly ok: false
      /**
       * - `funds_insufficient`: the account cannot pay the amount. The client receives 403 `insufficient_funds`.
       * - `payment_not_allowed`: any other reason. The client receives 403 `payment_denied`.
       */
      readonly refusal: 'funds_insufficient' | 'payment_not_allowed'
    } & HostReasons)
  | ConfirmationRequired

/**
 * The resource owner must confirm the payment, at a page of the host. The payment stays reserved until then, and the
 * client receives 403 `confirmation_required` with `url` and `until`, even if it repeats its request. The page calls
 * `outgoingPayments.toConfirm`, and then `confirm` or `decline`. Not allowed as an answer if `isConfirmed` is true.
 */
export interface ConfirmationRequired {
  readonly ok: false
  readonly refusal: 'confirmation_required'
  /** URL of the page: https, or http on loopback. The client shows it to the owner. */
  readonly url: string
  /** The owner can confirm before this instant, in milliseconds: in the future, by at most 24 hours. */
  readonly until: Instant
}

/**
 * Decides whether a payment is created, and may hold its funds. The payment is priced, permitted by its grant and
 * counted in its budget, but nobody sees it yet.
 *
 * - Hold `debitAmount` once for `outgoingPaymentId`, under one lock of the account. If a call or the commit after it
 *   fails, if the process ends, or if the `data` of the conditions changes meanwhile, you are asked again about the
 *   same payment; its amounts never change.
 * - A refusal means that you hold nothing for it. It is final: repeats of the request get it too.
 * - `confirmation_required` is not final. Once the owner confirms, you are asked again, with `isConfirmed: true`: hold
 *   the funds then. If the owner declines, or is too late, you get the event `outgoing-payment.declined`.
 * - Release whatever you hold for the id at the event `outgoing-payment.completed`, `.failed` or `.declined`. Each
 *   payment that you were asked about gets exactly one of them, even if it was never created, and even if you threw.
 *   Release there even if you have released it when you settled. Only after a rollback of your own transaction, in
 *   which you called `outgoingPayments.create`, does none follow: call it outside of a transaction if you hold funds.
 * - If you throw, or take longer than `policy.outgoingPayments.decideMs`, the client gets 503 and may repeat. No
 *   hold of yours may take effect later than a minute after that, unless it respects a mark that your release of the
 *   same payment leaves: set a statement time-out.
 */
export type MayPay = (
  payment: RequestedPayment,
  call: HostCall,
) => MayPayAnswer | Promise<MayPayAnswer>

/**
 * Returns the limits that the owner of an account has set for all payments that apps make, whatever their grants: at
 * most three, each with another interval, in the asset of the account. An empty array if there are none. Called before
 * each new payment that the limits count, so that a lower one applies to the next payment; what is reserved stays.
 */
export type AccountLimits = (
  walletAddress: string,
  call: HostCall,
) => readonly SpendingLimit[] | Promise<readonly SpendingLimit[]>

/** The subject of a decision of `MayReceive`: the creation of an incoming payment, or an arrival of funds for one. */
export type MayReceiveQuery = {
  /** The id of the payment, which is not created yet if `type` is `creation`. */
  readonly incomingPaymentId: string
  /** The wallet address to credit. */
  readonly walletAddress: string
  /**
   * The client that creates the payment, or has created it: its wallet address, or the URN of its key's thumbprint.
   * Absent if the host creates it.
   */
  readonly client?: string
  /** The amount that the payment asks for. Absent if it has no target amount. */
  readonly incomingAmount?: Amount
  /** The last instant at which the payment accepts funds. */
  readonly expiresAt: Instant
  /** The metadata of the payment. */
  readonly metadata?: JsonObject
} & (
  | { readonly type: 'creation' }
  | {
      readonly type: 'arrival'
      /** The host's id of the transfer, as passed to `receive`. */
      readonly transferId: string
      /** The amount that has arrived, as passed to `receive`. */
      readonly amount: Amount
    }
)

/** Whether an account may receive. */
export type MayReceiveAnswer =
  | { readonly ok: true }
  | ({
      readonly ok: false
      /**
       * - `amount_too_large`: the account may receive less. The client receives 400 `invalid_amount`.
       * - `payment_not_allowed`: any other reason. The client receives 403 `payment_denied`.
       */
      readonly refusal: 'amount_too_large' | 'payment_not_allowed'
    } & HostReasons)
  | ReviewRequired

/**
 * Only of an arrival: it waits for a review of the host, which takes longer than a call. `receive` resolves to it, and
 * nothing is counted, closed or stored: report the transfer again at `retryAt`, and answer then, or let it wait again.
 * A payment does not wait for its arrivals: once it has completed or expired, they are refused.
 */
export interface ReviewRequired {
  readonly ok: false
  readonly refusal: 'review_required'
  /** When to report the transfer again, in milliseconds: in the future, by at most 30 days. */
  readonly retryAt: Instant
  /** For the operator; never part of a response. */
  readonly reason?: string
}

/**
 * Decides whether an incoming payment may be created, and whether each arrival of funds for one may be counted. It runs
 * before the commit, so what it allows may still not happen. Calls can be concurrent, even for the same transfer.
 */
export type MayReceive = (
  query: MayReceiveQuery,
  call: HostCall,
) => MayReceiveAnswer | Promise<MayReceiveAnswer>

/**
 * Measures requests, and within them store calls and signature verifications. `openTelemetry` in
 * `open-payments-server/opentelemetry` is an implementation.
 */
export interface Telemetry {
  /**
   * Calls `work` exactly once, synchronously, and returns its promise. For a request, `work` reports the outcome
   * through its argument before the promise resolves. The activity identifies no client, record, token or key.
   *
   * The implementation cannot change what it measures: the server uses the result of `work` directly, and runs `work`
   * exactly once even if `observe` does not. Errors of `observe` go to `onError`.
   */
  observe<Result>(
    activity: TelemetryActivity,
    work: (tell: (outcome: RequestOutcome) => void) => Promise<Result>,
  ): Promise<Result>
}

/** What a server does that can be measured: a request, and within it a call of the store or a verification. */
export type TelemetryActivity =
  | {
      readonly type: 'request'
      readonly server: string
      readonly method: string
      /** The scheme of the public URL: `https`, or `http`. */
      readonly scheme: string
    }
  | {
      readonly type: 'store'
      readonly server: string
      readonly call: string
      readonly kind?: string
    }
  | { readonly type: 'verify'; readonly server: string }

/** How a request ended. */
export interface RequestOutcome {
  /** The requested operation; absent if the request was refused before its operation was known. */
  readonly operation?: string
  /** The path of the operation from the public origin, such as `/quotes/{id}`; absent with it. */
  readonly route?: string
  readonly status: number
  /** The precise refusal, as `onRefusal` reports it; absent when the request succeeded. */
  readonly refusal?: string
}

/**
 * Decides whether a client may make a grant request, whose signature has been verified, before anything is granted. The
 * client receives a `publicReason` as `details.problem`.
 */
export type MayRequest = (
  asked: {
    /** Wallet address of the client, or the URN of its key's thumbprint. */
    readonly client: string
    /** The requested access of all tokens. Empty if only a subject is requested. */
    readonly access: readonly TokenItem[]
    readonly subject?: SubjectId
  },
  call: HostCall,
) => MayRequestAnswer | Promise<MayRequestAnswer>

/** Whether a client may make a grant request. */
export type MayRequestAnswer = { readonly ok: true } | ({ readonly ok: false } & HostReasons)
