import type { Amount } from '../core/amount.js'
import type { Price, PriceQuery } from '../core/quote.js'
import type { WalletAddress } from './wallet-addresses.js'

/** A payment to price. */
export interface PriceRequest extends PriceQuery {
  /** The account that the payment would debit. */
  readonly account: WalletAddress
  /** The client instance that asks: its wallet address, or the URN of its key's thumbprint. */
  readonly client: string
  readonly method: 'ilp'
}

/** Why a payment cannot be priced. */
export interface PriceRefusal {
  readonly ok: false
  /**
   * - `receiver_invalid`: the incoming payment does not exist, or does not accept further funds.
   * - `amount_missing`: neither the request nor the incoming payment has an amount.
   * - `amount_too_small`: the amount is too small to deliver anything.
   * - `amount_invalid`: the receiver does not accept the asset or so large an amount, or the amount is too large to
   *   price.
   */
  readonly refusal: 'receiver_invalid' | 'amount_missing' | 'amount_too_small' | 'amount_invalid'
  /** For the operator; never part of a response. */
  readonly reason?: string
  /** With `amount_too_small`: the smallest debit amount that delivers something. */
  readonly minDebitAmount?: Amount
}

/** The price of a payment, or why it has none. */
export type PriceAnswer = ({ readonly ok: true } & Price) | PriceRefusal

/** Prices payments: determines what the host debits and what the receiver gets. */
export interface Pricing {
  /**
   * Resolves to the price of a payment, or to the reason why it cannot be priced. A price repeats the amount
   * of the request unchanged. `debitAmount` is in the account's asset, and both amounts are positive.
   * Rejects when the host cannot determine a price at the moment; the client instance then gets 503. A wrong price
   * results in 500.
   */
  price(request: PriceRequest): Promise<PriceAnswer>
}
