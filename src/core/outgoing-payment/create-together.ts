import { type Budget, type BudgetCandidate, type BudgetPolicy, budgetId } from '../budget.js'
import type { Refused } from '../decision.js'
import type { Instant } from '../instant.js'
import { allowanceAt, type LimitsRefusal } from '../limits.js'
import { type CreatedPayment, type CreateOutgoingPayment, createOutgoingPayment } from './create.js'
import type { OutgoingPaymentPolicy } from './record.js'

/** A payment to create, at the time of its request. Its budgets are those of the store. */
export interface TimedCreation {
  readonly command: CreateOutgoingPayment
  readonly now: Instant
}

/** The decisions on several payments, and the budgets of one commit that carries out all of them. */
export interface CreatedTogether {
  readonly decisions: readonly (CreatedPayment | Refused<LimitsRefusal>)[]
  /** The next version of each charged budget, by its id. */
  readonly budgets: ReadonlyMap<string, Budget>
}

/**
 * Decides several payments under one grant in order, each on the budgets as the payments before it leave them. The
 * decisions are the same as with one commit per payment, but each budget gets only one new version. A refused payment
 * does not affect the others.
 */
export function createTogether(
  creations: readonly TimedCreation[],
  policy: OutgoingPaymentPolicy & BudgetPolicy,
): CreatedTogether {
  const budgets = new Map<string, Budget>()
  const decisions = creations.map(({ command, now }) => {
    const candidates = command.candidates.map((each) => charged(each, command, now, budgets))
    const decision = createOutgoingPayment({ ...command, candidates }, now, policy)
    if (decision.ok) budgets.set(decision.budget.id, decision.budget)
    return decision
  })
  return { decisions, budgets }
}

/** Returns a candidate with its budget as the earlier payments leave it, at the version that is stored. */
function charged(
  candidate: BudgetCandidate,
  command: CreateOutgoingPayment,
  now: Instant,
  budgets: ReadonlyMap<string, Budget>,
): BudgetCandidate {
  const { item, budget: stored } = candidate
  const allowance = allowanceAt(item, now)
  const budget = allowance.ok && budgets.get(budgetId(command, item, allowance.value))
  return budget ? { item, budget: { ...budget, version: stored?.version ?? 0 } } : candidate
}
