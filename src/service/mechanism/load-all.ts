import type { Stored } from '../../core/stored.js'
import type { RecordKey, Store } from '../../ports/store.js'

/**
 * Resolves to the records with these keys, in their order. It takes one call of a store that has `loadAll`, and
 * concurrent calls of `load` otherwise.
 */
export async function loadAll(
  store: Store,
  keys: readonly RecordKey[],
): Promise<readonly (Stored | undefined)[]> {
  if (store.loadAll !== undefined && keys.length > 1) return store.loadAll(keys)
  return Promise.all(keys.map(({ kind, id }) => store.load(kind, id)))
}
