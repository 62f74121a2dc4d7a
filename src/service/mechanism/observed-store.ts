import type { Store } from '../../ports/store.js'
import type { Telemetry } from '../../ports/telemetry.js'

/** Returns the store with each call measured. */
export function observedStore(store: Store, telemetry: Telemetry): Store {
  function observe<Result>(
    call: keyof Store,
    kind: string | undefined,
    work: () => Promise<Result>,
  ) {
    const activity = { type: 'store', call, ...(kind === undefined ? {} : { kind }) } as const
    return telemetry.observe(activity, work)
  }
  return {
    load: (kind, id) => observe('load', kind, () => store.load(kind, id)),
    commit: (commit) => observe('commit', commit.changes[0]?.kind, () => store.commit(commit)),
    list: (query) => observe('list', query.kind, () => store.list(query)),
    due: (kind, namespace, before, limit) =>
      observe('due', kind, () => store.due(kind, namespace, before, limit)),
    remove: (kind, id, version) => observe('remove', kind, () => store.remove(kind, id, version)),
  }
}
