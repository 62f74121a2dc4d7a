import type { RecordKey } from '../ports/store.js'
import { recentlyUsed } from '../util/recently-used.js'
import { nameOf, type Records } from './load.js'

/**
 * What an introspection loads in the same call of the store as the grant of the token. The records are a guess at what
 * the request needs: they are used if they contain all of it, and otherwise loaded again as one snapshot.
 */
export interface Ahead {
  /** Returns the keys to load with a grant, which may not exist, and whose token is not yet verified. */
  keysOf(grantId: string): readonly RecordKey[]
  /** Takes what was loaded: one snapshot, which contains the grant. */
  take(records: Records): void
  /** Returns the last snapshot if it contains all these records. It counts once: a later decision needs a later one. */
  use(keys: readonly RecordKey[]): Records | undefined
}

export function aheadOf(keysOf: Ahead['keysOf']): Ahead {
  let taken: Records | undefined
  return {
    keysOf,
    take(records) {
      taken = records
    },
    use(keys) {
      const records = taken
      taken = undefined
      return records && keys.every((key) => records.has(nameOf(key))) ? records : undefined
    },
  }
}

/**
 * The budgets that this process has last seen with a grant or a payment, by which it guesses them the next time. Another
 * process, and this one after a restart, guesses wrong and loads once more.
 */
export interface SeenBudgets {
  /** Returns the keys of the budgets seen with a grant or payment; nothing if this process has not seen it. */
  guess(id: string): readonly RecordKey[] | undefined
  see(id: string, budgets: readonly RecordKey[]): void
}

/** At most 10,000 ids with 8 keys of 200 bytes: 16 MB. */
const seenMax = 10_000
const budgetsMax = 8

export function seenBudgets(): SeenBudgets {
  const seen = recentlyUsed<readonly RecordKey[]>(seenMax)
  return {
    guess: (id) => seen.get(id),
    see(id, budgets) {
      if (budgets.length > budgetsMax) seen.delete(id)
      else seen.set(id, budgets)
    },
  }
}
