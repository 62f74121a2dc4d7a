import type { Store } from 'open-payments-server'
import type { Stored } from 'open-payments-server/adapter'
import {
  broken,
  commits,
  type OneRecordStore,
  plantedIn,
} from 'open-payments-test-support/broken-stores'

/** Stores with which a client can spend more than its limits allow. */
export const storeFaults = {
  'lets the last writer win': broken(commits.lastWriteWins),
  'checks before it writes': broken((store) => commits.checkThenAct(store)),
  'ignores guards': broken(commits.ignoresGuards),
  'writes a part of a commit': broken(commits.halfCommit),
  'writes only the first record': broken(commits.firstOnly),
  'reads old versions': broken(lagsBehind),
  'accepts older versions of budgets': broken(plantedIn('budget', commits.takesOlderVersions)),
} satisfies Record<string, (store: Store) => Store>

export type StoreFault = keyof typeof storeFaults

/** Reads budgets from a replica that is one write behind. */
function lagsBehind({ loadAll: _, ...store }: OneRecordStore): OneRecordStore {
  const old = new Map<string, Stored | undefined>()
  return {
    ...store,
    load: async (kind, id) =>
      kind === 'budget' && old.has(id) ? old.get(id) : store.load(kind, id),
    async commit(commit) {
      const ids = commit.changes.flatMap(({ kind, next }) => (kind === 'budget' ? next.id : []))
      const before = new Map(
        await Promise.all(ids.map(async (id) => [id, await store.load('budget', id)] as const)),
      )
      const committed = await store.commit(commit)
      for (const [id, budget] of committed ? before : []) old.set(id, budget)
      // A writer that lost a race reads the current state next time.
      if (!committed) for (const id of ids) old.delete(id)
      return committed
    },
  }
}
