import * as v from 'valibot'
import type { Amount } from '../core/amount.js'
import type { OutgoingPayment } from '../core/outgoing-payment/record.js'
import type { JsonObject } from '../core/stored.js'
import { urlSchema } from '../protocol/schema.js'
import { resourceUrl } from '../protocol/url.js'
import type { PaymentInput } from '../service/create-outgoing-payment/request.js'
import type { PaymentCreation } from '../service/create-outgoing-payment.js'
import { ContentionError } from '../service/store-errors.js'
import { given } from '../util/given.js'
import { boolean, exactly, having, type Members, readInput, text } from '../util/input.js'
import { InvalidInputError } from '../util/invalid-input.js'
import { askedPayment, requireOneAmount } from './asked-payment.js'
import { readObject } from './host-data.js'
import type { OutgoingPaymentView } from './outgoing-payment-view.js'
import { type QuoteCreationRefusal, type RefusedOrder, refusedOrder } from './quote.js'

/** A payment that the owner of an account orders in the host's own app. */
export type OutgoingPaymentCreation = {
  /** The wallet address to debit. */
  readonly walletAddress: string
  /** An object of at most 8 KiB and 8 levels, which becomes part of the resource. */
  readonly metadata?: JsonObject
  /**
   * Data of your own, such as about a card: an object of at most 8 KiB and 8 levels. `mayPay` gets it, and the record
   * and the views contain it. Neither a resource nor an event does.
   */
  readonly data?: JsonObject
  /**
   * Your identifier of the owner who orders the payment. If it needs a confirmation, only this owner can confirm it.
   * Default: you compare the owner of `walletAddress` yourself.
   */
  readonly resourceOwner?: string
  /**
   * Whether the limits of `policy.accountLimits` count the payment, and may refuse it. Default false: the owner has set
   * them for apps.
   */
  readonly countsInAccountLimits?: boolean
} & (
  | {
      /** The id of a quote from `quotes.create`. It pays once, so a repeat needs no key. */
      readonly quoteId: string
    }
  | {
      /** URL of the incoming payment to pay. */
      readonly receiver: string
      /** At most one of the two. Default: the amount of the incoming payment, as `pricing` says. */
      readonly debitAmount?: Amount
      /** What is to arrive at the receiver, in the receiver's asset. */
      readonly receiveAmount?: Amount
      /**
       * Identifies this payment among all that are ordered from the wallet address, such as the number of a standing
       * order with its month. Well-formed Unicode.
       */
      readonly idempotencyKey: string
    }
)

/** Why a payment that an owner orders is not created. Minor versions add members: give a `switch` a `default`. */
export type OrderRefusal =
  | QuoteCreationRefusal
  | 'quote_unknown'
  | 'quote_mismatch'
  | 'request_differs'
  | 'payment_unknown'
  | 'account_limit_exceeded'
  | 'funds_insufficient'
  | 'payment_not_allowed'
  | 'confirmation_required'
  | 'confirmation_declined'
  | 'confirmation_expired'

/** The payments that the host creates for its owners. */
export interface OrderServices {
  /**
   * Creates a payment that the owner of an account orders in your own app, without a client, a grant or a token. You
   * vouch that the signed-in user owns the wallet address. It is priced, `policy.mayPay` is asked, and the same events
   * tell of it as of any other payment; it has no `client`, and no client can list or read it.
   *
   * A repeat with the same `quoteId` or `idempotencyKey` and equal members resolves to the same payment, with
   * `changed: false`, or to the refusal of `mayPay` or of the owner; other members are refused with `request_differs`.
   * A key is kept for 400 days at least, and as long as its payment: after the payment was removed, a repeat is refused
   * with `payment_unknown`, and never pays again.
   *
   * If `mayPay` demands a confirmation, `create` is refused with `confirmation_required`, and `details` has its `url`
   * and `until`.
   *
   * In a transaction of yours, use it only if `mayPay` holds nothing: a rollback also removes what was reserved before
   * `mayPay` was asked, so no event follows that would release a hold.
   *
   * @throws {InvalidInputError} for invalid members, and without `pricing`.
   * @throws {ContentionError} if an earlier call for the payment is still undecided. Repeat the call.
   */
  create(payment: OutgoingPaymentCreation): Promise<
    | {
        readonly ok: true
        readonly payment: OutgoingPaymentView
        /** The URL of the payment, which no client can read. */
        readonly url: string
        /** Whether this call created the payment. */
        readonly changed: boolean
      }
    | RefusedOrder<OrderRefusal>
  >
}

const members = {
  walletAddress: urlSchema,
  metadata: v.optional(having({})),
  data: v.optional(having({})),
  resourceOwner: v.optional(text),
  countsInAccountLimits: v.optional(boolean),
} satisfies Partial<Members<OutgoingPaymentCreation>>

const byQuote = exactly({ ...members, quoteId: text })

const byReceiver = exactly({
  ...members,
  ...askedPayment,
  idempotencyKey: text,
})

/** @param creation absent without `pricing`. */
export function orderServices(
  creation: Pick<PaymentCreation, 'order'> | undefined,
  seen: (payment: OutgoingPayment) => OutgoingPaymentView,
  baseUrl: string,
): OrderServices {
  return {
    async create(payment) {
      const { input, key } = readOrder(payment)
      if (creation === undefined) throw new InvalidInputError('payment', 'needs the option pricing')
      const answer = await creation.order(input, key)
      if (answer.ok) {
        const { payment: created, changed } = answer
        const url = resourceUrl(baseUrl, 'outgoing-payments', created.id)
        return { ok: true, payment: seen(created), url, changed }
      }
      if (answer.refusal === 'busy') throw new ContentionError(answer.reason)
      return refusedOrder(answer)
    },
  }
}

function readOrder(payment: OutgoingPaymentCreation): {
  readonly input: PaymentInput
  readonly key: string | undefined
} {
  const isQuoted = 'quoteId' in Object(payment)
  const read = isQuoted
    ? readInput('payment', byQuote, payment)
    : readInput('payment', byReceiver, payment)
  const { walletAddress, resourceOwner, countsInAccountLimits } = read
  const common = {
    walletAddress,
    // As they were given: a schema copies no members of unknown names.
    ...readObject('payment', 'metadata', payment.metadata),
    ...readObject('payment', 'data', payment.data),
    ...(resourceOwner !== undefined && { resourceOwner }),
    ...(countsInAccountLimits === true && { countsInAccountLimits }),
  }
  if ('quoteId' in read) return { input: { ...common, quoteId: read.quoteId }, key: undefined }
  const { receiver: incomingPayment, debitAmount, receiveAmount } = read
  requireOneAmount('payment', read)
  const input = { ...common, incomingPayment, ...given({ debitAmount, receiveAmount }) }
  return { input, key: read.idempotencyKey }
}
