import { type Budget, type BudgetPolicy, keep } from '../core/budget.js'
import type { Introspect } from '../ports/introspect.js'
import { newCall, type ServiceContext } from './mechanism/context.js'
import { removeRetired, sweep } from './mechanism/sweeps.js'

/**
 * Removes budgets that nobody will look at again: those whose window is long over, and those for the life of
 * a grant that is no more. Where grants are kept out of reach the latter stay.
 *
 * @returns how many it has removed, of at most `limit` that it has looked at.
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
