import { type Budget, type BudgetPolicy, keep } from '../core/budget.js'
import type { Introspect } from '../ports/introspect.js'
import { newCall, type ServiceContext } from './context.js'
import { removeRetired, type SweptKind } from './sweep.js'

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
      const { commandId } = newCall(context)
      const key = { kind: 'budget', id: budget.id } as const
      return context.run<'kept' | undefined>({
        reads: [key],
        known: [budget],
        decide(read) {
          const found = read<Budget>(key)
          if (found?.commandId === commandId) return { result: 'kept' }
          if (found?.version !== budget.version) return { result: undefined }
          return {
            changes: [{ ...key, next: keep(budget, commandId, now, policy) }],
            result: 'kept',
          }
        },
      })
    },
  }
}
