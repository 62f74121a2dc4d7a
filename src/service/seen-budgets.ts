import type { RecordKey } from '../ports/store.js'
import { recentlyUsed } from '../util/recently-used.js'

/**
 * The budgets that this process has last seen with a grant, a payment or, for orders of its owner, a wallet address, by
 * which it guesses them the next time. Another process, and this one after a restart, guesses wrong and loads once
 * more.
 */
export interface SeenBudgets {
  /** Returns the keys of the budgets seen with an id; nothing if this process has not seen it. */
  guess(id: string): readonly RecordKey[] | undefined
  see(id: string, budgets: readonly RecordKey[]): void
}

/** At most 10,000 ids with 8 keys of 200 bytes: 16 MB. */
const seenMax = 10_000
const budgetsMax = 8

export function createSeenBudgets(): SeenBudgets {
  const seen = recentlyUsed<readonly RecordKey[]>(seenMax)
  return {
    guess: (id) => seen.get(id),
    see(id, budgets) {
      if (budgets.length > budgetsMax) seen.delete(id)
      else seen.set(id, budgets)
    },
  }
}
