import type { RecordKind, Stored } from '../../src/entry-adapter.js'
import type { Store } from '../../src/index.js'

/** The contents of a store, as seen by an observer of all writes. */
export interface Written {
  /** How many commits and removals there were, including failed ones. */
  count(): number
  /** The most recently written record; `undefined` if there is none or it was removed. */
  get(kind: RecordKind, id: string): Stored | undefined
}

/** Returns the same store, observed. Reading the observed contents does not access the store. */
export function watchedStore(store: Store): { readonly store: Store; readonly written: Written } {
  const records = new Map<string, Stored>()
  let count = 0
  return {
    written: { count: () => count, get: (kind, id) => records.get(`${kind} ${id}`) },
    store: {
      ...store,
      async commit(commit) {
        count += 1
        const landed = await store.commit(commit)
        if (landed)
          for (const { kind, next } of commit.changes) records.set(`${kind} ${next.id}`, next)
        return landed
      },
      async remove(given) {
        count += 1
        const removed = await store.remove(given)
        for (const [i, { kind, id }] of given.entries()) {
          if (removed[i]) records.delete(`${kind} ${id}`)
        }
        return removed
      },
    },
  }
}
