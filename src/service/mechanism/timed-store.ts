import type { Store } from '../../ports/store.js'

/** A call of the store that did not settle in time. A commit may still take effect. */
export class StoreTimeoutError extends Error {
  readonly code = 'ERR_STORE_TIMEOUT'

  constructor(call: keyof Store, timeoutMs: number) {
    super(`${call} of the store did not settle within ${timeoutMs} ms`)
  }
}

/** Returns the store with a time limit for each call, so that a frozen database does not hold requests. */
export function timedStore(store: Store, timeoutMs: number): Store {
  function timed<Value>(call: keyof Store, result: Promise<Value>): Promise<Value> {
    return new Promise((resolve, reject) => {
      const late = () => reject(new StoreTimeoutError(call, timeoutMs))
      const timer = setTimeout(late, timeoutMs)
      result.then(resolve, reject).finally(() => clearTimeout(timer))
    })
  }

  return {
    load: (kind, id) => timed('load', store.load(kind, id)),
    commit: (commit) => timed('commit', store.commit(commit)),
    list: (query) => timed('list', store.list(query)),
    due: (kind, namespace, before, limit) =>
      timed('due', store.due(kind, namespace, before, limit)),
    remove: (kind, id, version) => timed('remove', store.remove(kind, id, version)),
  }
}
