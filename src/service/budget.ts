import { type Budget, type BudgetPolicy, keep } from '../core/budget.js'
import type { Introspect } from '../ports/introspect.js'
import { changeOf } from './mechanism/changes.js'
import { newCall, type ServiceContext } from './mechanism/context.js'
import { removeRetired, type SweptKind } from './mechanism/sweeps.js'

/**
 * Sweeps budgets: removes budgets past their retention, and lifetime budgets of grants that no longer exist. No later
 * request can read them. Keeps all lifetime budgets if the grants are not in this store.
 */
export function sweptBudgets(
  context: ServiceContext,
  introspect: Pick<Introspect, 'store'>,
  policy: BudgetPolicy,
): SweptKind {
  const { store } = context

  async function hasNoGrant({ grantId }: Budget): Promise<boolean> {
    const sharesStore = introspect.store === context.givenStore
    return sharesStore && (await store.load('grant', grantId)) === undefined
  }

  return {
    kind: 'budget',
    namespace: context.grantNamespace,
    async sweep(record, now) {
      const budget = record as Budget
      if (budget.retainUntil !== undefined) return removeRetired(context, 'budget', budget, now)
      if (await hasNoGrant(budget)) {
        const removed = await store.remove('budget', budget.id, budget.version)
        return removed ? 'removed' : undefined
      }
      const next = keep(budget, newCall(context).commandId, now, policy)
      const changes = [changeOf('budget', budget, next)]
      return (await store.commit({ changes, guards: [] })) ? 'kept' : undefined
    },
  }
}
