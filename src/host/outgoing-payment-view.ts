import type { Amount } from '../core/amount.js'
import type { Instant } from '../core/instant.js'
import { type AllOrNone, isUnderGrant } from '../core/outgoing-payment/authority.js'
import type { PaymentDoubt } from '../core/outgoing-payment/doubt.js'
import {
  hasFailed,
  type OutgoingPayment,
  type PaymentRecord,
  sentAmount,
} from '../core/outgoing-payment/record.js'
import type { Totals } from '../core/outgoing-payment.js'
import type { JsonObject } from '../core/stored.js'

/** What allows a payment of a client, as hosts see it. */
export interface ClientOfPayment {
  /** Wallet address of the client that requested it, or the URN of its key's thumbprint. */
  readonly client: string
  readonly grantId: string
  /** The granted item that it was charged to: see `ItemView`. */
  readonly itemId: string
}

/** Returns what allows a payment, as hosts see it. */
export function clientOfPayment(payment: PaymentRecord): AllOrNone<ClientOfPayment> {
  if (!isUnderGrant(payment)) return {}
  const { client, grantId, itemId } = payment
  return { client, grantId, itemId }
}

/**
 * An outgoing payment as hosts see it. It has `client`, `grantId` and `itemId`, or none of them if the owner of the
 * account ordered it with `create`.
 */
export type OutgoingPaymentView = AllOrNone<ClientOfPayment> &
  Totals & {
    readonly paymentId: string
    /** The wallet address that pays. */
    readonly walletAddress: string
    /** The quote that it was created from, if any. */
    readonly quoteId?: string
    /** URL of the incoming payment that is paid. */
    readonly receiver: string
    /** Wallet address of the receiver; absent if `pricing` did not name it. */
    readonly receiverWalletAddress?: string
    /**
     * The current status: `created` until `begin`, then `begun` until it ends. A payment that was not begun before
     * `holdUntil` has `failed`, even before a sweep records it.
     */
    readonly status: OutgoingPayment['state']
    /** The maximum to debit. */
    readonly debitAmount: Amount
    /** The amount to deliver to the receiver. */
    readonly receiveAmount: Amount
    /** When it was created. */
    readonly createdAt: Instant
    /** The host must begin the payment before this instant. */
    readonly holdUntil: Instant
    /** When its end was recorded. */
    readonly endedAt?: Instant
    /** The reason for the failure, as reported by the host or the library. Clients do not see it. */
    readonly failure?: string
    /** The reason for the failure that the host published to the client. */
    readonly publicReason?: string
    /**
     * The part of which nobody knows whether it arrives. `sentAmount` does not include it while the payment is begun,
     * and includes it once it has ended. Clients do not see it. Absent if nothing is in doubt.
     */
    readonly inDoubt?: PaymentDoubt
    /**
     * What was refunded of the part that was in doubt, which `sentAmount` no longer includes. Absent until that is
     * decided.
     */
    readonly refundedAmount?: Amount
    /** The metadata that the client sent. */
    readonly metadata?: JsonObject
    /** The data that you gave to `create`. Clients do not see it. */
    readonly data?: JsonObject
  }

export function outgoingPaymentView(payment: OutgoingPayment, now: Instant): OutgoingPaymentView {
  const { id: paymentId, walletAddress, quoteId, data } = payment
  const { receiver, receiverWalletAddress, debitAmount, receiveAmount, delivered } = payment
  const { createdAt, holdUntil, endedAt, failure, publicReason, inDoubt, decided, metadata } =
    payment
  return {
    paymentId,
    walletAddress,
    ...clientOfPayment(payment),
    ...(quoteId !== undefined && { quoteId }),
    receiver,
    ...(receiverWalletAddress !== undefined && { receiverWalletAddress }),
    status: hasFailed(payment, now) ? 'failed' : payment.state,
    debitAmount,
    receiveAmount,
    sentAmount: sentAmount(payment),
    deliveredAmount: { ...receiveAmount, value: delivered },
    createdAt,
    holdUntil,
    ...(endedAt !== undefined && { endedAt }),
    ...(failure !== undefined && { failure }),
    ...(publicReason !== undefined && { publicReason }),
    ...(inDoubt !== undefined && {
      inDoubt: { ...inDoubt, amount: { ...debitAmount, value: inDoubt.amount } },
    }),
    ...(decided !== undefined && { refundedAmount: { ...debitAmount, value: decided.refunded } }),
    ...(metadata !== undefined && { metadata }),
    ...(data !== undefined && { data }),
  }
}
