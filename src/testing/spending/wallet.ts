import type { AccessItem, Amount, Instant } from 'open-payments-server'

/** How a wallet answered. */
export type SpendingAnswer =
  | { readonly accepted: true }
  | { readonly accepted: false; readonly reason?: string }

/** How a wallet answered a request to pay. */
export type PaymentAnswer =
  | {
      readonly accepted: true
      /** The wallet's own name for the payment: an answer to a repeat has the same. */
      readonly id: string
      /**
       * `grantSpentDebitAmount` of the answer: debited and reserved in the window that counts this payment,
       * this payment included. It is checked where debits are limited.
       */
      readonly spentDebitAmount?: Amount
      /** `grantSpentReceiveAmount` of the answer. It is checked where what arrives is limited. */
      readonly spentReceiveAmount?: Amount
    }
  | { readonly accepted: false; readonly reason?: string }

/** A request to pay under a grant. */
export interface WalletRequest {
  /** What `grant` has answered. */
  readonly grant: string
  /**
   * Names the request: with the same key it is the same request again, by the same quote or with the same
   * `Idempotency-Key`. No two histories have a key in common.
   */
  readonly key: string
  /** By a quote that is asked for first, or straight to the incoming payment. */
  readonly by: 'quote' | 'direct'
  readonly walletAddress: string
  /** URL of the incoming payment. */
  readonly receiver: string
  readonly debitAmount: Amount
}

/** What has been sent and delivered in all, all attempts together. */
export interface WalletTotals {
  readonly sentAmount: Amount
  readonly deliveredAmount: Amount
  /** True when nothing more will be sent. */
  readonly final: boolean
}

/**
 * A wallet whose payment limits are tried: most often a client instance and a host in front of a running server.
 * Each function answers once the wallet has, and rejects where the wallet neither accepted nor refused, such as
 * on a status of 500: that ends the search as a failure. What a wallet cannot do is left out of the histories.
 */
export interface SpendingWallet {
  /**
   * Asks for a grant to pay, and has the account's owner approve it for `granted`, which is at most what was
   * asked. Answers any name for it. Tokens that expire are the wallet's own affair: rotate them when they do.
   */
  grant(asked: readonly AccessItem[], granted: readonly AccessItem[]): Promise<string>
  pay(request: WalletRequest): Promise<PaymentAnswer>
  /** The host claims a payment before it sends it. */
  begin(paymentId: string): Promise<SpendingAnswer>
  settle(paymentId: string, totals: WalletTotals): Promise<SpendingAnswer>
  /** The host gives a payment up, of which so much was sent. */
  fail(paymentId: string, totals: Omit<WalletTotals, 'final'>): Promise<SpendingAnswer>
  /** The host withdraws a payment that was not begun. */
  cancel?(paymentId: string): Promise<SpendingAnswer>
  /** Fails all payments that were not begun in time, and removes what is too old to be of use. */
  lapse?(): Promise<void>
  rotate?(grant: string): Promise<SpendingAnswer>
  revoke?(grant: string): Promise<void>
  /**
   * Moves the wallet's clock, at the beginning of a history also into its past. Without it the clock is `Date`,
   * and no history waits.
   */
  setClock?(now: Instant): void | Promise<void>
  /** What else is wrong with the wallet, in a sentence; asked after each step. */
  problem?(): string | undefined | Promise<string | undefined>
  /** Called when the history is over. */
  close?(): void | Promise<void>
}
