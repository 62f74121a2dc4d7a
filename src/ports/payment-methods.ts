import type { Asset } from '../core/amount.js'

/**
 * How an incoming payment can be paid over Interledger.
 *
 * @see Open Payments OpenAPI, schema `ilp-payment-method`
 */
export interface IlpPaymentMethod {
  readonly type: 'ilp'
  /** Where the STREAM connection goes; at most 1023 characters. */
  readonly ilpAddress: string
  /** Shared secret of the STREAM connection, base64url. */
  readonly sharedSecret: string
}

export type PaymentMethod = IlpPaymentMethod

/** The payment that details are wanted for. */
export interface PaymentDetailsQuery {
  readonly paymentId: string
  readonly walletAddress: string
  readonly asset: Asset
}

/**
 * Makes the details by which an incoming payment can be paid, and finds the payment that details belong
 * to. `ilpPaymentMethods` derives both from a secret of the host and the payment's id.
 */
export interface PaymentMethods {
  /**
   * The details of one payment: unique to it, and the same each time they are asked for, since the
   * library stores none. Called once before a payment is created, and at each read while it is open.
   */
  detailsOf(query: PaymentDetailsQuery): Promise<readonly PaymentMethod[]>
  /** The id of the payment that an ILP address was made for, if it was made here. */
  paymentIdOf(ilpAddress: string): string | undefined
}
