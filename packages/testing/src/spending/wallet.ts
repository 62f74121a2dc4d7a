import type { AccessItem, Amount, Instant, SpendingLimit } from 'open-payments-server'
import type { SpendingAmendment, StoreFailure } from './history.js'

/** A wallet's answer to an action. */
export type SpendingAnswer =
  | { readonly accepted: true }
  | { readonly accepted: false; readonly reason?: string }

/** A wallet's answer to a payment request. */
export type PaymentAnswer =
  | {
      readonly accepted: true
      /** The wallet's id of the payment. The answer to a repeat has the same id. */
      readonly id: string
      /**
       * `grantSpentDebitAmount` of the response: debited and reserved in all open windows of the grant, this payment
       * included. Checked if the item that counts this payment limits the debit amount, and every payment under the
       * grant is counted by an item that limits an amount.
       */
      readonly spentDebitAmount?: Amount
      /** `grantSpentReceiveAmount` of the response. Checked like `spentDebitAmount`. */
      readonly spentReceiveAmount?: Amount
    }
  | { readonly accepted: false; readonly reason?: string }

/** A request for a payment under a grant. */
export interface WalletRequest {
  /** The value that `grant` resolved to. */
  readonly grant: string
  /**
   * Identifies the request: the same key is the same request again, with the same quote or the same
   * `Idempotency-Key`. The owner of an account has keys of its own. Histories share no keys. Only a `direct` request is
   * repeated with another amount; the wallet must refuse that if it accepted the first request.
   */
  readonly key: string
  /** `quote`: create a quote first. `direct`: name the incoming payment in the request. */
  readonly by: 'quote' | 'direct'
  readonly walletAddress: string
  /** URL of the incoming payment. */
  readonly receiver: string
  /** What the payer is debited in all, the wallet's fees included, in the asset of the account. */
  readonly debitAmount: Amount
}

/** A request for a payment that the owner of the account orders in the wallet's own app. */
export interface OwnerRequest extends Omit<WalletRequest, 'grant'> {
  /** Whether the limits of the account count the payment, and may refuse it. */
  readonly countsInAccountLimits: boolean
}

/** The payments that a client can list, by the wallet's ids. */
export type ListAnswer =
  | { readonly accepted: true; readonly listed: readonly string[] }
  | { readonly accepted: false; readonly reason?: string }

/** The cumulative sent and delivered amounts of a payment. */
export interface WalletTotals {
  /** What the payment has debited so far, in the asset of the account. */
  readonly sentAmount: Amount
  /** What has arrived at the receiver so far, in the receiver's asset. */
  readonly deliveredAmount: Amount
  /** True if nothing more will be sent. */
  readonly final: boolean
  /**
   * What may arrive, and is not proven: beside `sentAmount` while the payment goes on, and a part of it in the report
   * that ends the payment. Absent from the reports to a wallet without `decideDoubt`.
   */
  readonly inDoubt?: Amount
}

/** What became of the part of a payment that was in doubt. */
export interface WalletDecision {
  /** The part that did not arrive. It counts back in the windows in which the payment counts. */
  readonly refunded: Amount
  /** What was delivered in total. */
  readonly deliveredAmount: Amount
}

/**
 * A wallet whose payment limits are tested: usually a client and a host in front of a running server. Each function
 * resolves to the wallet's answer. It rejects if the wallet neither accepts nor refuses, for example with status 500,
 * which ends the search as a failure. Actions whose optional function is missing are skipped.
 */
export interface SpendingWallet {
  /**
   * Requests a grant for payments and has the resource owner approve it for `granted`, which is at most what was
   * requested. Resolves to any id of the grant. The wallet itself must rotate access tokens that expire.
   *
   * @param limits the `limits` of the owner's conditions, if there are any: see the form `ownersLimits`.
   */
  grant(
    asked: readonly AccessItem[],
    granted: readonly AccessItem[],
    limits?: readonly SpendingLimit[],
  ): Promise<string>
  pay(request: WalletRequest): Promise<PaymentAnswer>
  /** The owner of the account pays, without a grant. No limit of a grant counts the payment, and no client sees it. */
  order?(request: OwnerRequest): Promise<PaymentAnswer>
  /** The client lists the payments of an account with the widest right that the grant gives. */
  list?(grant: string, walletAddress: string): Promise<ListAnswer>
  /** The host claims a payment before sending it. */
  begin(paymentId: string): Promise<SpendingAnswer>
  reportSent(paymentId: string, totals: WalletTotals): Promise<SpendingAnswer>
  /** The host fails a payment after sending the given totals. */
  fail(paymentId: string, totals: Omit<WalletTotals, 'final'>): Promise<SpendingAnswer>
  /** The host decides the doubt of a payment that has ended. If absent, no report has a doubt. */
  decideDoubt?(paymentId: string, decision: WalletDecision): Promise<SpendingAnswer>
  /** The host cancels a payment that it has not begun. */
  cancel?(paymentId: string): Promise<SpendingAnswer>
  /** Fails all payments that were not begun in time, and removes records that are no longer needed. */
  lapse?(): Promise<void>
  rotate?(grant: string): Promise<SpendingAnswer>
  revoke?(grant: string): Promise<void>
  /**
   * The resource owner changes an approved grant. The wallet must refuse what would allow more than before, except the
   * end of a pause.
   */
  amend?(grant: string, amendment: SpendingAmendment): Promise<SpendingAnswer>
  /** The owner sets all limits of an account, whatever the grants. They apply to the next payment. */
  limitAccount?(walletAddress: string, limits: readonly SpendingLimit[]): Promise<void>
  /**
   * The client publishes another key and signs all further requests with it. Its grants and their spending stay as they
   * are.
   */
  replaceKey?(): Promise<void>
  /**
   * Makes the wallet's store fail from one of its next writes on, `before` or `after` this write takes effect, until
   * the returned function is called. Meanwhile, an action may reject: its outcome is then unknown. It is repeated once
   * the store works again and the returned function has resolved, a payment after `decideMs`. If absent, the store does
   * not fail.
   *
   * @param write which write fails: 1 is the next one.
   */
  failStore?(failure: StoreFailure, write: number): () => void | Promise<void>
  /**
   * Sets the wallet's clock; at the start of a history possibly to an earlier time. If absent, the clock is
   * `Date` and histories do not wait.
   */
  setClock?(now: Instant): void | Promise<void>
  /**
   * Returns the `receiveAmount` of a new quote for the request. Called after a wrong answer: if the price differs from
   * the scene, the error names the price instead of the answer.
   */
  quote?(request: WalletRequest): Promise<Amount | undefined>
  /** Describes any other problem of the wallet; called after each step. */
  problem?(): string | undefined | Promise<string | undefined>
  /** Called at the end of the history. */
  close?(): void | Promise<void>
}
