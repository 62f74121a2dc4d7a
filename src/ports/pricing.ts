import type { Amount } from '../core/amount.js'
import type { Price, PriceQuery } from '../core/quote.js'
import type { WalletAddress } from './wallet-addresses.js'

/** A payment whose price is wanted. */
export interface PriceRequest extends PriceQuery {
  /** The account that would pay. */
  readonly account: WalletAddress
  readonly method: 'ilp'
}

/** Why there is no price. */
export interface PriceRefusal {
  /**
   * `receiver_invalid`: there is no such incoming payment, or it takes nothing more. `amount_missing`: no
   * amount was named, and the receiver names none either. `amount_too_small`: nothing would arrive.
   * `amount_invalid`: the amount is in an asset that is not taken there, or more than can be priced.
   */
  readonly refusal: 'receiver_invalid' | 'amount_missing' | 'amount_too_small' | 'amount_invalid'
  /** For the operator; the client does not see it. */
  readonly reason?: string
  /** With `amount_too_small`: the least that has to be debited for something to arrive. */
  readonly minDebitAmount?: Amount
}

/** Prices payments: what the host charges, and what arrives. */
export interface Pricing {
  /**
   * Answers what a payment costs, or why it cannot be made. An amount that was asked for is answered as it
   * was asked; `debitAmount` is in the asset of the wallet address; both are more than nothing. Rejects when
   * the price cannot be had for now.
   */
  price(request: PriceRequest): Promise<Price | PriceRefusal>
}
