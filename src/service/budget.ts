import { type Budget, type BudgetPolicy, keep } from '../core/budget.js'
import type { Introspect } from '../ports/introspect.js'
import { newCall, type ServiceContext } from './mechanism/context.js'
import { removeRetired, sweep } from './mechanism/sweeps.js'

/**
 * Removes budgets that no later request can read: those past their retention, and lifetime budgets of
 * grants that no longer exist. Lifetime budgets stay if the grants are not in this store.
 *
 * @returns the number of budgets removed, of at most `limit` processed.
 */
export function purgeBudgets(
  context: ServiceContext,
  introspect: Pick<Introspect, 'store'>,
  policy: BudgetPolicy,
  limit: number,
): Promise<number> {
  const { store } = context
  return sweep(context, 'budget', limit, async (record, now) => {
    const budget = record as Budget
    if (budget.retainUntil !== undefined) return removeRetired(context, 'budget', budget, now)
    const within = introspect.store === context.givenStore
    if (within && (await store.load('grant', budget.grantId)) === undefined) {
      return store.remove('budget', budget.id, budget.version)
    }
    const next = keep(budget, newCall(context).commandId, now, policy)
    const change = { kind: 'budget', next, expectedVersion: budget.version } as const
    await store.commit({ changes: [change], guards: [] })
    return false
  })
}
