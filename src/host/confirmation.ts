import type { Amount } from '../core/amount.js'
import { type HostResult, refusedCall } from '../core/decision.js'
import { type ClientKeyId, clientKeyOf } from '../core/grant/record.js'
import type { Instant } from '../core/instant.js'
import type { AllOrNone } from '../core/outgoing-payment/authority.js'
import type {
  ConfirmRefusal,
  DeclineByOwnerRefusal,
  ShownPayment,
} from '../core/outgoing-payment/owner-decision.js'
import type { DeclineRefusal, OutgoingPayment } from '../core/outgoing-payment/record.js'
import type { JsonObject } from '../core/stored.js'
import type { AccountRefusal } from '../service/accounts.js'
import type { ListPage, PageQuery } from '../service/lists.js'
import type { ConfirmablePayment, OwnerConfirmations } from '../service/owner-confirmation.js'
import { exactly, type Members, readInput, string, text } from '../util/input.js'
import { byAddressOrGrant, type OutgoingPaymentScope } from './outgoing-payment-scope.js'
import {
  type ClientOfPayment,
  clientOfPayment,
  type OutgoingPaymentView,
} from './outgoing-payment-view.js'
import { amount, pageMembers, requirePage } from './payments.js'

/**
 * A payment that its resource owner has to confirm. Its amounts and its receiver do not change. It has `client`,
 * `grantId` and `itemId`, or none of them if the owner ordered it with `create`.
 */
export type PaymentToConfirm = AllOrNone<ClientOfPayment> & {
  readonly paymentId: string
  /** The wallet address that pays. */
  readonly walletAddress: string
  /** The key that signed for its grant, as in `GrantView`. Absent with `remoteGrants`, and without a grant. */
  readonly clientKey?: ClientKeyId
  /**
   * The owner who consented to the grant. Absent with `remoteGrants`, and if the grant needed no consent. Without a
   * grant, the `resourceOwner` that you gave to `create`, if any.
   */
  readonly resourceOwner?: string
  /** URL of the incoming payment to pay. */
  readonly receiver: string
  /** Wallet address of the receiver; absent if `pricing` did not name it. */
  readonly receiverWalletAddress?: string
  /** What the payer is debited in all, your fees included, in the asset of the account. */
  readonly debitAmount: Amount
  /** What arrives at the receiver, in the receiver's asset. */
  readonly receiveAmount: Amount
  /** The metadata that the client sent. */
  readonly metadata?: JsonObject
  /** The data that you gave to `create`. */
  readonly data?: JsonObject
  /** When its request arrived: the limits of the grant count it in the windows of this instant. */
  readonly createdAt: Instant
  /** URL of your page where the owner confirms it, as `policy.mayPay` returned it. */
  readonly url: string
  /** The owner can confirm before this instant, or repeat a confirmation that failed. */
  readonly until: Instant
}

/** The owner's confirmation of a payment as it was shown to the owner. */
export interface PaymentConfirmation extends ShownPayment {
  /** The host's identifier of the owner, as passed to `interactions.approve`. */
  readonly resourceOwner: string
}

/**
 * The calls of the host's page where resource owners confirm single payments, after `policy.mayPay` has answered
 * `confirmation_required`. Each throws an `InvalidInputError` for an invalid argument, before it reads the store.
 */
export interface ConfirmationServices {
  /**
   * Resolves to a payment that waits for its owner, or to `undefined` if there is none with this id, it was created or
   * declined, the owner's time is over, or its grant has ended. While `mayPay` has not decided about a payment that its
   * owner has confirmed, it is returned, too, so that the owner can repeat a confirmation that failed. Compare
   * `resourceOwner` with the signed-in user before you show it.
   */
  toConfirm(paymentId: string): Promise<PaymentToConfirm | undefined>
  /**
   * Resolves to a page of the payments that `toConfirm` would return, oldest first: those of a wallet address, or those
   * under a grant, at most ten of which wait at a time. A page has fewer payments than asked for, or none, if some of
   * the list have expired; `pagination` leads to the next page all the same.
   *
   * @throws {InvalidInputError} for an invalid query.
   */
  listToConfirm(query: OutgoingPaymentScope & PageQuery): Promise<ListPage<PaymentToConfirm>>
  /**
   * Confirms a payment on behalf of its owner. The limits of the account count it from then on: one that is exceeded
   * refuses the confirmation with `account_limit_exceeded`, and the payment waits further. `policy.mayPay` is asked
   * again, with `isConfirmed: true`. If it allows the payment and the grant still does, the payment is created, even if
   * the client never repeats its request. Repeating a confirmation resolves to the same payment, with `changed: false`.
   * `wallet_address_unknown` and `wallet_address_inactive` refuse the confirmation of a payment from such an account.
   *
   * If the grant needed no consent, only you know the owner: compare the owner of `walletAddress` with the signed-in
   * user. Do the same with `remoteGrants`, where the library also does not know whether the grant has ended.
   *
   * Rejects if `mayPay` rejects. The payment then remains confirmed, and the call may be repeated for about 3 minutes.
   *
   * @param confirmation what the owner has seen, from `toConfirm`. Another receiver or amount is refused with
   * `payment_differs`.
   */
  confirm(
    paymentId: string,
    confirmation: PaymentConfirmation,
  ): Promise<
    HostResult<
      { readonly payment: OutgoingPaymentView },
      ConfirmRefusal | DeclineRefusal | AccountRefusal | 'not_the_owner'
    >
  >
  /** Declines a payment on behalf of its owner, before it is confirmed. Its whole amount returns to the budget. */
  decline(
    paymentId: string,
    decision: { readonly resourceOwner: string },
  ): Promise<HostResult<object, DeclineByOwnerRefusal | 'not_the_owner'>>
}

const paymentConfirmation = exactly({
  resourceOwner: text,
  receiver: text,
  debitAmount: amount,
  receiveAmount: amount,
} satisfies Members<PaymentConfirmation>)

const pageQuery = exactly({ ...byAddressOrGrant.members, ...pageMembers })

const ownersDecision = exactly({ resourceOwner: text })

export function confirmationServices(
  confirmations: OwnerConfirmations,
  seen: (payment: OutgoingPayment) => OutgoingPaymentView,
): ConfirmationServices {
  return {
    async toConfirm(paymentId) {
      readInput('paymentId', string, paymentId)
      const found = await confirmations.find(paymentId)
      return found && paymentToConfirm(found)
    },
    async listToConfirm(query) {
      readInput('query', pageQuery, query)
      const page = await confirmations.list(byAddressOrGrant.read(query), requirePage(query))
      return { ...page, result: page.result.map(paymentToConfirm) }
    },
    async confirm(paymentId, confirmation) {
      readInput('paymentId', text, paymentId)
      const read = readInput('confirmation', paymentConfirmation, confirmation)
      const { resourceOwner, ...shown } = read
      const result = await confirmations.confirm(paymentId, resourceOwner, shown)
      return result.ok ? { ...result, payment: seen(result.payment) } : refusedCall(result)
    },
    async decline(paymentId, decision) {
      readInput('paymentId', text, paymentId)
      const { resourceOwner } = readInput('decision', ownersDecision, decision)
      const result = await confirmations.decline(paymentId, resourceOwner)
      return result.ok ? result : refusedCall(result)
    },
  }
}

function paymentToConfirm({ payment, grant }: ConfirmablePayment): PaymentToConfirm {
  const { id: paymentId, walletAddress, receiver, metadata, data } = payment
  const { receiverWalletAddress, debitAmount, receiveAmount } = payment
  const { createdAt, confirmation, dueAt: until } = payment
  const { url } = confirmation
  const { resourceOwner } = grant?.consent ?? confirmation
  return {
    paymentId,
    walletAddress,
    ...clientOfPayment(payment),
    ...(grant !== undefined && { clientKey: clientKeyOf(grant) }),
    ...(resourceOwner !== undefined && { resourceOwner }),
    receiver,
    ...(receiverWalletAddress !== undefined && { receiverWalletAddress }),
    debitAmount,
    receiveAmount,
    ...(metadata !== undefined && { metadata }),
    ...(data !== undefined && { data }),
    createdAt,
    url,
    until,
  }
}
