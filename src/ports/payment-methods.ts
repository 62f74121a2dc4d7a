import type { Asset } from '../core/amount.js'

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

export type PaymentMethod = IlpPaymentMethod

/** The incoming payment whose payment details are requested. */
export interface PaymentDetailsQuery {
  readonly paymentId: string
  readonly walletAddress: string
  readonly asset: Asset
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
  detailsOf(query: PaymentDetailsQuery): Promise<readonly PaymentMethod[]>
  /** Returns the id of the payment that an ILP address belongs to, or `undefined` for other addresses. */
  paymentIdOf(ilpAddress: string): string | undefined
}
