import type { Amount } from '../amount.js'
import {
  type Budget,
  type BudgetPolicy,
  type Candidate,
  type Charge,
  decideSpending,
} from '../budget.js'
import {
  type Changed,
  changed,
  type Instant,
  type JsonObject,
  type ListEntry,
  type Refused,
  refused,
} from '../decision.js'
import type { LimitsRefusal } from '../limits.js'
import { ok, type Result } from '../result.js'
import {
  type OutgoingPayment,
  type OutgoingPaymentEvent,
  type OutgoingPaymentPolicy,
  outgoingPaymentEvent,
} from './record.js'

/** A client instance pays, by a price that it was promised or that is made for it now. */
export interface CreateOutgoingPayment extends Charge {
  readonly id: string
  readonly walletAddress: string
  readonly client: string
  readonly quoteId?: string
  readonly requestHash: string
  readonly receiver: string
  readonly debitAmount: Amount
  readonly receiveAmount: Amount
  readonly metadata?: JsonObject
  readonly lists: readonly ListEntry[]
  /** The granted items that allow payments from there, in the order in which they were granted. */
  readonly candidates: readonly Candidate[]
}

/** A payment that was created, together with the budget that counts it. */
export interface CreatedPayment extends Changed<OutgoingPayment, OutgoingPaymentEvent> {
  /** The budget, with what the payment reserves of it. */
  readonly budget: Budget
}

/** Creates an outgoing payment, and reserves all that it may debit or deliver in the budget of its window. */
export function createOutgoingPayment(
  { candidates, namespace, ...command }: CreateOutgoingPayment,
  now: Instant,
  policy: OutgoingPaymentPolicy & BudgetPolicy,
): CreatedPayment | Refused<LimitsRefusal> {
  const { commandId, grantId } = command
  const charged = decideSpending(
    candidates,
    command,
    { commandId, namespace, grantId },
    now,
    policy,
  )
  if (!charged.ok) return charged
  const { item, budget } = charged.value
  const holdUntil = now + policy.holdMs
  const payment: OutgoingPayment = {
    ...command,
    version: 1,
    itemId: item.itemId,
    budgetId: budget.id,
    sent: '0',
    delivered: '0',
    state: 'created',
    createdAt: now,
    holdUntil,
    dueAt: holdUntil,
  }
  const event = outgoingPaymentEvent('outgoing-payment.created', payment, now)
  return { ...changed(payment, event), budget }
}

/** What a repeat is measured by: who asks, and for what. */
export type Repeat = Pick<OutgoingPayment, 'client' | 'requestHash'>

/**
 * The payment that a request of the same client instance has created before, or why it is no repeat of that:
 * whoever asks for the same again gets the payment that it has, whatever became of quote, window and budget
 * since. To others there is none.
 */
export function repeated(
  payment: OutgoingPayment | undefined,
  { client, requestHash }: Repeat,
): Result<OutgoingPayment, Refused<'request_differs'>> | undefined {
  if (payment?.client !== client) return undefined
  return payment.requestHash === requestHash
    ? ok(payment)
    : refused('request_differs', 'this quote or key was used for another payment')
}
