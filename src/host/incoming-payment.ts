import * as v from 'valibot'
import type { Amount } from '../core/amount.js'
import type { HostResult, PaymentResult } from '../core/decision.js'
import {
  acceptsFunds,
  type Cancellation,
  type IncomingPayment,
  type IncomingPaymentRefusals,
  type ReceiveRefusal,
  receivedAmount,
} from '../core/incoming-payment.js'
import { formatInstant, type Instant, lastInstant } from '../core/instant.js'
import type { Json, JsonObject } from '../core/stored.js'
import type { Bounded, Clock, PaymentMethods } from '../ports/host.js'
import {
  type IncomingPaymentBody,
  incomingPaymentBody,
  readIncomingPaymentRequest,
} from '../protocol/incoming-payment.js'
import { resourceUrl } from '../protocol/url.js'
import type { CreationRefusal } from '../service/incoming-payment/create.js'
import type { ReceivedFunds } from '../service/incoming-payment/receive.js'
import type { TransferOutcome } from '../service/incoming-payment/transfer.js'
import type { IncomingPayments } from '../service/incoming-payment.js'
import type { ArrivalInReview } from '../service/may-receive.js'
import {
  boolean,
  exactly,
  having,
  integer,
  type Members,
  readInput,
  string,
  text,
  textOfAtMost,
} from '../util/input.js'
import { InvalidInputError } from '../util/invalid-input.js'
import {
  amount,
  byWalletAddress,
  type PaymentReader,
  paymentReader,
  seenResult,
  view,
} from './payments.js'

/** An incoming payment as hosts see it. */
export interface IncomingPaymentView {
  readonly paymentId: string
  /** The wallet address that receives the funds. */
  readonly walletAddress: string
  /**
   * Wallet address of the client that created it, or the URN of its key's thumbprint. Absent if the host created it.
   */
  readonly client?: string
  /** The current status. The payment accepts funds while it is `open`. */
  readonly status: 'open' | 'completed' | 'expired'
  /** The amount to receive; absent if any amount is accepted. */
  readonly incomingAmount?: Amount
  /** What it has received so far, in the asset of the wallet address. */
  readonly receivedAmount: Amount
  /** When it was created. */
  readonly createdAt: Instant
  /** The last instant at which it accepts funds; if you cancelled it, when you did. */
  readonly expiresAt: Instant
  /** Absent unless you cancelled the payment, which has then `expired`. Clients do not see it. */
  readonly cancellation?: Cancellation
  readonly metadata?: JsonObject
}

/** A request of the host to create an incoming payment. */
export interface IncomingPaymentCreation {
  /** The wallet address that receives the funds. */
  readonly walletAddress: string
  /**
   * Identifies this payment among all that the host creates, such as the number of an invoice. Well-formed Unicode.
   */
  readonly idempotencyKey: string
  /** The amount to receive, in the asset of the wallet address. Default: any amount. */
  readonly incomingAmount?: Amount
  /** Default: after `policy.incomingPayments.expiryDefaultMs`. */
  readonly expiresAt?: Instant
  /** An object of at most 8 KiB and 8 levels. Every client that may read the payment sees it. */
  readonly metadata?: JsonObject
}

/**
 * The operations on incoming payments that the host calls. Each throws an `InvalidInputError` for an invalid argument,
 * before it reads the store.
 */
export interface IncomingPaymentServices
  extends PaymentReader<IncomingPaymentView, IncomingPayment> {
  /**
   * Creates a payment on behalf of the owner of a wallet address, such as for an invoice or a request for money. The
   * payment follows the same rules and records the same events as one that a client creates (OpenAPI
   * `create-incoming-payment`). It has no `client`. Any wallet that knows its URL can pay it.
   *
   * A repeat with the same `idempotencyKey` and equal members resolves to the existing payment, in its current state.
   * The library recognizes a repeat until one day after the retention of the payment ends. The refusal is
   * `request_differs` if the key was used for another payment, and `payment_unknown` if a sweep has removed the payment
   * that it was used for. `policy.mayReceive` is asked about a new payment, and its refusal is the result.
   *
   * @returns the payment, and its URL for the payer.
   * @throws {InvalidInputError} also for members that the OpenAPI schema does not allow, such as a negative amount.
   * @throws {ContentionError} if every attempt to commit loses a race for 3 s.
   */
  create(
    request: IncomingPaymentCreation,
  ): Promise<
    HostResult<
      { readonly payment: IncomingPaymentView; readonly url: string },
      CreationRefusal | 'request_differs' | 'payment_unknown'
    >
  >
  /** Returns the payment as clients see it, without its payment methods. */
  toResource(payment: IncomingPaymentView): IncomingPaymentBody
  /**
   * Resolves to the payment that an ILP address was created for, or to `undefined` if there is no such
   * payment. Use it to find the payment of an incoming packet.
   */
  findByIlpAddress(ilpAddress: string): Promise<IncomingPaymentView | undefined>
  /**
   * Counts funds that have arrived. If the result is `changed`, credit the account. If it is not, an earlier call with
   * the same `transferId` counted the funds: do not credit the account again. After a refusal, do not credit the
   * account; call `close`, and return the funds if it says that they were not counted. You may report the same
   * `transferId` again at any time.
   *
   * With `review_required`, `policy.mayReceive` has not decided yet: nothing is counted and nothing refused. Neither
   * credit nor return the funds, and report the same `transferId` again at `retryAt`.
   *
   * Concurrent calls for one payment share commits, and each has its own result. `policy.mayReceive` is asked first,
   * unless an earlier call has counted the transfer, and its refusal is the result. In a transaction of the host it
   * runs inside, so it must not wait for what the transaction has locked.
   *
   * @throws {ContentionError} if other writers keep changing the payment for 3 s, if the call has waited 3 s for other
   *   calls in this process, or if 1,000 calls are already waiting. Nothing was written; report the transfer again.
   */
  receive(
    paymentId: string,
    funds: ReceivedFunds,
  ): Promise<
    | PaymentResult<
        IncomingPaymentView,
        ReceiveRefusal | 'amount_too_large' | 'payment_not_allowed'
      >
    | ArrivalInReview
  >
  /**
   * Asks whether a transfer was counted, and closes it if it was not: `receive` refuses it with `transfer_closed` from
   * then on, whichever call comes first and whenever a late one arrives. So a `counted` of false means never, and the
   * sender may send the funds again under another id, or refund them. A repeat has the same answer, with `changed`
   * false. Call it after a `receive` of which you do not know the outcome, or for a sender that got no reply.
   *
   * One commit writes the mark, and the answer does not depend on a clock. It is kept as long as a counted transfer: a
   * day longer than the payment can be, which is `policy.incomingPayments.retentionMs` (365 days) after its expiry.
   * Then `payment_unknown` is the answer, as for an unknown payment: it may have counted the transfer.
   *
   * @param transferId the one that you pass, or would pass, to `receive`.
   * @param query `paymentId`: the payment for which it would arrive. A transfer that was counted for another one is
   *   counted, and the answer names that payment.
   *
   * @throws {ContentionError} if other writers keep changing the records for 3 s. Nothing is known: call again.
   */
  close(
    transferId: string,
    query: { readonly paymentId: string },
  ): Promise<HostResult<TransferOutcome, 'payment_unknown'>>
  /**
   * Completes a payment, so that it accepts no further funds. It need not have received its `incomingAmount`;
   * any client may have created it. A completed payment stays unchanged; one that has expired has ended, and is
   * refused with `payment_expired`, so that each payment has one final event.
   *
   * @throws {ContentionError} if other writers keep changing the payment for 3 s.
   */
  complete(paymentId: string): Promise<PaymentResult<IncomingPaymentView, 'payment_expired'>>
  /**
   * Ends an open payment before its time, such as for an invoice that was withdrawn; any client may have created it.
   * It has `expired` from then on, for clients too: `expiresAt` is the time of the call, and `completed` stays false,
   * because a client may take a completed payment for a paid one. Its event is `incoming-payment.expired`, with
   * `cancelled`. What it has received stays counted; `receive` refuses what arrives later with `payment_expired`, as
   * after every expiry: return those funds. A cancelled payment stays unchanged. `close` works as before.
   *
   * @param cancellation `reason`: of at most 1,024 characters, for the operator.
   * @throws {ContentionError} if other writers keep changing the payment for 3 s.
   */
  cancel(
    paymentId: string,
    cancellation?: Cancellation,
  ): Promise<PaymentResult<IncomingPaymentView, IncomingPaymentRefusals['cancel']>>
}

const creation = exactly({
  walletAddress: text,
  idempotencyKey: text,
  incomingAmount: v.optional(amount),
  expiresAt: v.optional(integer),
  metadata: v.optional(having({})),
} satisfies Members<IncomingPaymentCreation>)

/** Reads a creation as strictly as the body of a request, because the payment is sent to clients. */
function readCreation(request: IncomingPaymentCreation) {
  readInput('request', creation, request)
  const { walletAddress, incomingAmount, expiresAt, metadata } = request
  if (expiresAt !== undefined && !(expiresAt >= 0 && expiresAt <= lastInstant)) {
    throw new InvalidInputError('request.expiresAt', 'must be an instant in the years 1970 to 9999')
  }
  const body = {
    walletAddress,
    ...(incomingAmount !== undefined && { incomingAmount }),
    ...(expiresAt !== undefined && { expiresAt: formatInstant(expiresAt) }),
    ...(metadata !== undefined && { metadata }),
  }
  // As JSON, because the payment is stored, and the host may change its object later.
  const read = readIncomingPaymentRequest(jsonOf(body))
  if (!read.ok) throw new InvalidInputError(`request.${read.path}`, read.problem)
  return read.value
}

function jsonOf(body: object): Json {
  try {
    return JSON.parse(JSON.stringify(body))
  } catch {
    throw new InvalidInputError('request.metadata', 'must be JSON')
  }
}

/** Events contain it, and records are limited. */
const transferId = textOfAtMost(1_024)

const receivedFunds = exactly({
  transferId,
  amount,
  refuseExcess: v.optional(boolean),
  notAfter: v.optional(integer),
} satisfies Members<ReceivedFunds>)

const cancellationOf = exactly({
  reason: v.optional(textOfAtMost(1_024)),
} satisfies Members<Cancellation>)

const closedFor = exactly({ paymentId: text })

export function incomingPaymentServices(
  payments: IncomingPayments,
  paymentMethods: Bounded<PaymentMethods>,
  clock: Clock,
  baseUrl: string,
): IncomingPaymentServices {
  const seen = (payment: IncomingPayment) => incomingPaymentView(payment, clock.now())
  return {
    ...paymentReader(payments, seen, baseUrl, 'incoming-payments', byWalletAddress),
    toResource(payment) {
      readInput('payment', view, payment)
      const { paymentId, status, receivedAmount: asset } = payment
      const content = {
        ...payment,
        completed: status === 'completed',
        asset,
        received: asset.value,
      }
      return incomingPaymentBody(content, resourceUrl(baseUrl, 'incoming-payments', paymentId))
    },
    async create(request) {
      const created = await payments.createOnce(readCreation(request), request.idempotencyKey)
      if (!created.ok) return created
      const { payment } = created
      const url = resourceUrl(baseUrl, 'incoming-payments', payment.id)
      return { ...created, payment: seen(payment), url }
    },
    async findByIlpAddress(ilpAddress) {
      readInput('ilpAddress', string, ilpAddress)
      const id = paymentMethods.paymentIdOf(ilpAddress)
      const payment = id === undefined ? undefined : await payments.load(id)
      return payment && seen(payment)
    },
    async receive(paymentId, funds) {
      readInput('paymentId', text, paymentId)
      const copy = readInput('funds', receivedFunds, funds)
      const received = await payments.receive(paymentId, copy)
      return received.ok ? { ...received, payment: seen(received.payment) } : received
    },
    async close(id, query) {
      readInput('transferId', transferId, id)
      const { paymentId } = readInput('query', closedFor, query)
      return payments.close(id, paymentId)
    },
    async complete(paymentId) {
      readInput('paymentId', text, paymentId)
      return seenResult(await payments.completeById(paymentId), seen)
    },
    async cancel(paymentId, cancellation = {}) {
      readInput('paymentId', text, paymentId)
      const copy = readInput('cancellation', cancellationOf, cancellation)
      return seenResult(await payments.cancel(paymentId, copy), seen)
    },
  }
}

export function incomingPaymentView(payment: IncomingPayment, now: Instant): IncomingPaymentView {
  const { id: paymentId, walletAddress, client, incomingAmount, metadata } = payment
  const { completed, createdAt, expiresAt, cancellation } = payment
  return {
    paymentId,
    walletAddress,
    ...(client !== undefined && { client }),
    status: completed ? 'completed' : acceptsFunds(payment, now) ? 'open' : 'expired',
    ...(incomingAmount !== undefined && { incomingAmount }),
    receivedAmount: receivedAmount(payment),
    createdAt,
    expiresAt,
    ...(cancellation !== undefined && { cancellation }),
    ...(metadata !== undefined && { metadata }),
  }
}
