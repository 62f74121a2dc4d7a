import { type GrantedItem, permits } from '../access.js'
import type { Budget } from '../budget/record.js'
import { isWithinLimit } from '../budget/spent.js'
import { type Refused, refused } from '../decision.js'
import type { Grant, IssuedToken } from '../grant/record.js'
import { grantStatus } from '../grant/status.js'
import type { Instant } from '../instant.js'
import {
  allow,
  type ConditionsRefusal,
  type GrantConditions,
  type LimitsRefusal,
  refuseByConditions,
} from '../limits.js'
import { ownerLimits, type SetLimit } from '../spending-limits.js'
import type { UnderGrant } from './authority.js'
import { budgetIdsOf, type ReservedPayment } from './record.js'

/** What a grant allows at one of its versions. */
export interface GrantedRights {
  readonly access: readonly GrantedItem[]
  readonly conditions?: GrantConditions | undefined
}

/**
 * Returns what a grant allows, or `undefined` if its owner has not approved it or it has ended. A rotated token changes
 * nothing; a revoked one withdraws its items.
 */
export function rightsOf(grant: Grant, now: Instant): GrantedRights | undefined {
  if (grantStatus(grant, now) !== 'approved') return undefined
  const { granted = [], tokens = [], conditions } = grant
  const isRevoked = ({ revokedAt }: IssuedToken) => revokedAt !== undefined
  const revoked = new Set(tokens.filter(isRevoked).map(({ label }) => label))
  return { access: granted.filter(({ label }) => !revoked.has(label)), conditions }
}

/**
 * Returns why a reserved payment must not be created under the current rights of its grant, or `undefined` if it may.
 * The grant may have been amended since the payment was reserved. The limits of the account are not checked again: what
 * is reserved under them stays.
 *
 * @param namespace the prefix of the ids of budgets.
 * @param budgetOf returns a budget that counts the payment.
 */
export function refuseByGrant(
  payment: ReservedPayment & UnderGrant,
  { access, conditions = {} }: GrantedRights,
  namespace: string,
  budgetOf: (id: string) => Budget | undefined,
  now: Instant,
): Refused<LimitsRefusal | ConditionsRefusal> | undefined {
  const { itemId, budgetId, grantId, walletAddress, createdAt } = payment
  const item = access.find((each) => each.itemId === itemId)
  if (!item || !permits([item], 'outgoing-payment', 'create', walletAddress)) {
    return refused('limits_exceeded', 'the grant no longer allows payments under this item')
  }
  const allowed = allow(item, payment, createdAt)
  if (!allowed.ok) return allowed
  if (!isWithinLimit(budgetOf(budgetId), allowed.value)) {
    return refused('limits_exceeded', 'the budget of the window is spent')
  }
  const unmet = refuseByConditions(conditions, payment, now)
  if (unmet !== undefined) return unmet
  const counting = budgetIdsOf(payment)
  const isMet = ({ open }: SetLimit) =>
    open !== undefined &&
    counting.includes(open.budgetId) &&
    isWithinLimit(budgetOf(open.budgetId), open)
  return ownerLimits(conditions.limits, { namespace, grantId }, createdAt).every(isMet)
    ? undefined
    : refused('conditions_exceeded', 'a limit that the owner has set since does not allow it')
}
