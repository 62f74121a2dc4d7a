import type { RecordKind, Store } from '../../ports/store.js'

/** Performs a call of the store, which may concern a kind of record. */
export type AroundCall = <Value>(
  call: keyof Store,
  kind: RecordKind | undefined,
  work: () => Promise<Value>,
) => Promise<Value>

/** Returns a store that performs each call of `store` by `around`. It has `loadAll` if `store` has it. */
export function aroundStore(store: Store, around: AroundCall): Store {
  const readAll = store.loadAll?.bind(store)
  return {
    ...(readAll && { loadAll: (keys) => around('loadAll', keys[0]?.kind, () => readAll(keys)) }),
    load: (kind, id) => around('load', kind, () => store.load(kind, id)),
    commit: (commit) => around('commit', commit.changes[0]?.kind, () => store.commit(commit)),
    list: (query) => around('list', query.kind, () => store.list(query)),
    due: (kind, namespace, before, limit) =>
      around('due', kind, () => store.due(kind, namespace, before, limit)),
    remove: (kind, id, version) => around('remove', kind, () => store.remove(kind, id, version)),
  }
}
