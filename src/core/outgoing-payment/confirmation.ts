import type { Budget, BudgetPolicy } from '../budget/record.js'
import { chargeTo } from '../budget.js'
import { ok, type Refused, type Result, refused } from '../decision.js'
import { formatInstant, type Instant } from '../instant.js'
import { isOfAccount, type OpenLimit, waitingLimit, waitingMax } from '../spending-limits.js'
import type { ListEntry } from '../stored.js'
import { isUnderGrant } from './authority.js'
import {
  type Confirmation,
  heldBy,
  type PaymentRecord,
  type ReservedPayment,
  releaseFrom,
} from './record.js'

/** The longest time that an owner has to confirm a payment, in milliseconds: its budget counts it meanwhile. */
export const confirmationMaxMs = 86_400_000

/** A reserved payment that its owner has to confirm. The host is not asked about it meanwhile. */
export type WaitingPayment = ReservedPayment & { readonly confirmation: Confirmation }

/** Whether a payment waits for its owner, or its owner's time has ended. */
export function waitsForOwner(payment: PaymentRecord): payment is WaitingPayment {
  const { state, confirmation } = payment
  return state === 'reserved' && confirmation !== undefined && confirmation.given === undefined
}

/** Whether a payment waits for its owner under another grant, which may have ended since. */
export function waitsUnderOther(
  payment: PaymentRecord,
  grantId: string,
): payment is WaitingPayment {
  return waitsForOwner(payment) && isUnderGrant(payment) && payment.grantId !== grantId
}

/** A payment must wait for its owner. */
export interface AwaitConfirmation {
  readonly commandId: string
  /** The prefix of the ids of budgets. */
  readonly namespace: string
  readonly confirmation: Confirmation
  /** The lists of the payments that wait. */
  readonly lists: readonly ListEntry[]
}

/** A payment that has begun to wait, or ceased to, with the budgets that change. */
export interface Moved<Payment extends ReservedPayment = ReservedPayment> {
  readonly record: Payment
  readonly budgets: readonly Budget[]
}

/**
 * Lets a payment wait for its owner, after the host has answered that the owner must confirm it. Until then the limits
 * of the account do not count it: what one client asks for takes nothing from another. Refuses if as many payments of
 * the grant wait already as may. Payments that the owner orders wait in any number.
 */
export function awaitConfirmation(
  payment: ReservedPayment,
  { commandId, namespace, confirmation, lists }: AwaitConfirmation,
  budgetOf: (id: string) => Budget | undefined,
  now: Instant,
  policy: BudgetPolicy,
): Result<Moved<WaitingPayment>, Refused<'conditions_exceeded'>> {
  const limits = waitingLimitsOf(payment, namespace)
  const counted = limits.map((open) => ({ open, budget: budgetOf(open.budgetId) }))
  const waiting = chargeTo(counted, payment, { commandId }, now, policy)
  if (!waiting.ok) {
    const reason = `${waitingMax} payments of the grant wait for their owner already`
    return refused('conditions_exceeded', reason)
  }
  const { limitBudgetIds = [] } = payment
  const ofAccount = limitBudgetIds.filter(isOfAccount)
  const { until } = confirmation
  const record: WaitingPayment = {
    ...payment,
    version: payment.version + 1,
    commandId,
    confirmation,
    lists,
    limitBudgetIds: [
      ...limitBudgetIds.filter((id) => !isOfAccount(id)),
      ...limits.map(({ budgetId }) => budgetId),
    ],
    ...{ updatedAt: now, askUntil: until, dueAt: until },
  }
  const freed = releaseFrom(ofAccount, budgetOf, {
    payment,
    held: heldBy(payment),
    commandId,
  })
  return ok({ record, budgets: [...freed, ...waiting.value] })
}

/** Returns the limit of the payments of the grant of a payment that wait. Empty if its owner ordered it. */
export function waitingLimitsOf(payment: PaymentRecord, namespace: string): readonly OpenLimit[] {
  return isUnderGrant(payment) ? [waitingLimit(namespace, payment.grantId)] : []
}

/** The refusal of requests for a payment that waits for its owner. The client shows the owner the URL. */
export function confirmationRequired({
  url,
  until,
}: Confirmation): Refused<'confirmation_required'> {
  const required = refused('confirmation_required', 'the owner has not confirmed the payment')
  return { ...required, details: { url, until: formatInstant(until) } }
}

export const confirmationExpired = refused(
  'confirmation_expired',
  'the owner did not confirm the payment in time',
)

export const confirmationDeclined = refused(
  'confirmation_declined',
  'the owner declined the payment',
)
