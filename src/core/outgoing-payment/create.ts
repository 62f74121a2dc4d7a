import type { Amount } from '../amount.js'
import {
  type Budget,
  type BudgetCandidate,
  type BudgetPolicy,
  type Charge,
  type ChargeRefusal,
  type CountedLimit,
  decideSpending,
} from '../budget.js'
import { type Changed, changed, ok, type Refused, type Result, refused } from '../decision.js'
import type { Instant } from '../instant.js'
import { type ConditionsRefusal, type GrantConditions, refuseByConditions } from '../limits.js'
import type { JsonObject, ListEntry } from '../stored.js'
import {
  type OutgoingPayment,
  type OutgoingPaymentEvent,
  type OutgoingPaymentPolicy,
  outgoingPaymentEvent,
  type PaymentRecord,
} from './record.js'

/** A client creates a payment, from a quote or at a price that is determined now. */
export interface CreateOutgoingPayment extends Charge {
  readonly id: string
  readonly walletAddress: string
  readonly client: string
  readonly quoteId?: string
  readonly requestHash: string
  readonly receiver: string
  readonly receiverWalletAddress?: string
  readonly debitAmount: Amount
  readonly receiveAmount: Amount
  readonly metadata?: JsonObject
  readonly lists: readonly ListEntry[]
  /** The granted items that allow payments from the wallet address, in the order in which they were granted. */
  readonly candidates: readonly BudgetCandidate[]
  /** The resource owner's conditions for payments under the grant. */
  readonly conditions?: GrantConditions
  /** All limits that the owner has set: in `conditions`, and for the account. Default: none. */
  readonly limits?: readonly CountedLimit[]
}

/** A new payment and the budgets that count it. */
export interface CreatedPayment extends Changed<OutgoingPayment, OutgoingPaymentEvent> {
  /** The budget, including the amounts that the payment reserves. */
  readonly budget: Budget
  /** The same of the limits that the owner has set. */
  readonly limitBudgets: readonly Budget[]
}

/**
 * Creates an outgoing payment, and reserves its full amounts in the budgets of the current windows.
 *
 * @example
 * ```ts
 * import { createOutgoingPayment } from 'open-payments-server/core'
 *
 * const created = createOutgoingPayment(
 *   {
 *     ...spending,
 *     commandId: 'command-1',
 *     namespace: 'wallet01',
 *     id: 'wallet01payment-1',
 *     grantId: 'wallet01grant-1',
 *     walletAddress: 'https://wallet.example/alice',
 *     client: 'https://shop.example',
 *     requestHash: 'hash-1',
 *     lists: [],
 *     candidates: [{ item }],
 *   },
 *   Date.now(),
 *   { holdMs: 86_400_000, retentionMs: 365 * 86_400_000 },
 * )
 * console.log(created.ok ? created.budget.spent : created.reason)
 * ```
 */
export function createOutgoingPayment(
  { candidates, namespace, conditions = {}, limits = [], ...command }: CreateOutgoingPayment,
  now: Instant,
  policy: OutgoingPaymentPolicy & BudgetPolicy,
): CreatedPayment | Refused<ChargeRefusal | ConditionsRefusal> {
  const unmet = refuseByConditions(conditions, command, now)
  if (unmet !== undefined) return unmet
  const { commandId, grantId } = command
  const charged = decideSpending(
    candidates,
    command,
    { commandId, namespace, grantId },
    now,
    policy,
    limits,
  )
  if (!charged.ok) return charged
  const { item, budget, limitBudgets } = charged.value
  const holdUntil = now + policy.holdMs
  const payment: OutgoingPayment = {
    version: 1,
    ...command,
    itemId: item.itemId,
    budgetId: budget.id,
    ...(limitBudgets.length > 0 && { limitBudgetIds: limitBudgets.map(({ id }) => id) }),
    sent: '0',
    delivered: '0',
    state: 'created',
    createdAt: now,
    updatedAt: now,
    holdUntil,
    dueAt: holdUntil,
  }
  const event = outgoingPaymentEvent('outgoing-payment.created', payment, now)
  return { budget, limitBudgets, ...changed(payment, event) }
}

/** The client and the request that identify a repeat. */
export type Repeat = Pick<OutgoingPayment, 'client' | 'requestHash'>

/**
 * Checks whether a request repeats the one that created a payment. A repeat gets the same payment, even if the
 * quote has expired, the window has ended or the budget is spent.
 *
 * @returns `undefined` if there is no payment, or another client created it.
 */
export function repeated(
  payment: PaymentRecord | undefined,
  { client, requestHash }: Repeat,
): Result<PaymentRecord, Refused<'request_differs'>> | undefined {
  if (payment?.client !== client) return undefined
  return payment.requestHash === requestHash
    ? ok(payment)
    : refused('request_differs', 'this quote or key was used for another payment')
}
