import type { Kind, Store, Stored } from '../../src/index.js'

/** What is in a store, as one sees it who watches everything that is written. */
export interface Written {
  /** How many commits and removals there have been, landed or not. */
  count(): number
  /** The record as it was written last; `undefined` if there is none, or none any more. */
  get(kind: Kind, id: string): Stored | undefined
}

/** The same store, watched. Looking at what was written costs nothing, and asks the store nothing. */
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
      async remove(kind, id, version) {
        count += 1
        const removed = await store.remove(kind, id, version)
        if (removed) records.delete(`${kind} ${id}`)
        return removed
      },
    },
  }
}
