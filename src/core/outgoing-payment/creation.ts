import type { BudgetCandidate, BudgetPolicy, ChargeRefusal, CountedLimit } from '../budget.js'
import { ok, type Refused, type Result } from '../decision.js'
import type { Instant } from '../instant.js'
import type { ConditionsRefusal, Spending } from '../limits.js'
import { type Quote, type QuoteRefusal, usableQuote } from '../quote.js'
import { type CreatedPayment, type CreateOutgoingPayment, createOutgoingPayment } from './create.js'
import type { OutgoingPaymentPolicy } from './record.js'
import {
  type CreatedReservation,
  type ReservationPolicy,
  reserveOutgoingPayment,
} from './reservation.js'

/** What is paid, and to whom: as in a quote, or at a price that was determined for the request. */
export type Terms =
  | { readonly type: 'quote'; readonly quoteId: string }
  | { readonly type: 'price'; readonly price: Spending }

/** A client requests a payment. */
export interface RequestPayment
  extends Omit<CreateOutgoingPayment, 'quoteId' | 'candidates' | 'limits' | keyof Spending> {
  readonly terms: Terms
  /** When the host is asked about the payment, which is then only reserved. Absent if the host does not decide. */
  readonly askedAt?: Instant | undefined
}

/** The records that the creation of a payment depends on. */
export interface CreationRecords {
  /** The quote of the terms; absent if there is none with this id. */
  readonly quote: Quote | undefined
  /** The granted items that allow payments from the wallet address, in the order in which they were granted. */
  readonly candidates: readonly BudgetCandidate[]
  /** All limits that the owner has set, for the grant and for the account. */
  readonly limits: readonly CountedLimit[]
}

/** Decides whether a payment that does not exist is created or reserved: by its terms, then by its grant. */
export function decideCreation(
  { terms, askedAt, lists, ...request }: RequestPayment,
  { quote, candidates, limits }: CreationRecords,
  now: Instant,
  policy: OutgoingPaymentPolicy & BudgetPolicy & ReservationPolicy,
): CreatedPayment | CreatedReservation | Refused<QuoteRefusal | ChargeRefusal | ConditionsRefusal> {
  const agreed: Result<Spending, Refused<QuoteRefusal>> = terms.type === 'price'
    ? ok(terms.price)
    : usableQuote(quote, request, now)
  if (!agreed.ok) return agreed
  const { receiver, receiverWalletAddress, debitAmount, receiveAmount } = agreed.value
  const command: Omit<CreateOutgoingPayment, 'lists'> = {
    ...request,
    ...(terms.type === 'quote' && { quoteId: terms.quoteId }),
    receiver,
    ...(receiverWalletAddress !== undefined && { receiverWalletAddress }),
    debitAmount,
    receiveAmount,
    candidates,
    limits,
  }
  return askedAt === undefined
    ? createOutgoingPayment({ ...command, lists }, now, policy)
    : reserveOutgoingPayment({ ...command, askedAt }, now, policy)
}
