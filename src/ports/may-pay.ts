import type { Amount } from '../core/amount.js'
import type { JsonObject } from '../core/stored.js'

/** An outgoing payment that is priced and that its grant permits, before it is created. */
export interface RequestedPayment {
  /**
   * Identifies this request for funds: hold them once per `holdId`. A repeat has the same `holdId` only if all its
   * other members are the same. The id has 43 characters of base64url.
   */
  readonly holdId: string
  /**
   * The id that the payment gets when it is created; use it to release holds. Until the payment exists, all requests
   * with the same `Idempotency-Key` share this id, even if they differ in amount, account or grant, so do not hold
   * funds by it.
   */
  readonly outgoingPaymentId: string
  /** The wallet address to debit. */
  readonly walletAddress: string
  /** Wallet address of the client instance, or the URN of its key's thumbprint. */
  readonly client: string
  readonly grantId: string
  /** URL of the incoming payment to pay. */
  readonly receiver: string
  readonly debitAmount: Amount
  readonly receiveAmount: Amount
  /** The metadata that the client instance sent. */
  readonly metadata?: JsonObject
}

/** Why the host does not carry out a payment. */
export interface PaymentRefusal {
  readonly ok: false
  /**
   * - `funds_insufficient`: the account cannot pay the amount. The client receives 403 `insufficient_funds`.
   * - `payment_not_allowed`: any other reason. The client receives 403 `payment_denied`.
   */
  readonly refusal: 'funds_insufficient' | 'payment_not_allowed'
  /** For the operator; never part of a response. */
  readonly reason?: string
}

/** Whether the host carries out a payment. */
export type MayPayAnswer = { readonly ok: true } | PaymentRefusal

/**
 * Decides whether an outgoing payment may be created. It runs before the commit, and again if the grant changed before
 * the commit; the payment may then still not be created. Calls can be concurrent, even for one `outgoingPaymentId`; at
 * most one of them leads to a payment. `mayPay` must therefore have no effects, or be idempotent by `holdId`.
 */
export type MayPay = (payment: RequestedPayment) => MayPayAnswer | Promise<MayPayAnswer>
