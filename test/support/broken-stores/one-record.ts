import type { Store } from 'open-payments-server'
import type { RecordKey, RecordKind, Stored, VersionGuard } from 'open-payments-server/adapter'
import { loadOne } from '../one-record.js'

/** A store as most faults are written: `load` and `remove` take one record, `loadAll` and `removeAll` several. */
export interface OneRecordStore extends Omit<Store, 'load' | 'remove'> {
  load(kind: RecordKind, id: string): Promise<Stored | undefined>
  remove(kind: RecordKind, id: string, version: number): Promise<boolean>
  /** Without it, several records are loaded concurrently, which is no snapshot. */
  readonly loadAll?: (keys: readonly RecordKey[]) => Promise<readonly (Stored | undefined)[]>
  /** Default: several records are removed one by one. */
  readonly removeAll?: (records: readonly VersionGuard[]) => Promise<readonly boolean[]>
}

/** Returns a store with a fault of its methods for one record. */
export function broken(breaks: (store: OneRecordStore) => OneRecordStore): (store: Store) => Store {
  return (store) => storeOf(breaks(oneRecordStore(store)))
}

export function oneRecordStore(store: Store): OneRecordStore {
  return {
    ...store,
    loadAll: (keys) => store.load(keys),
    load: (kind, id) => loadOne(store, kind, id),
    async remove(kind, id, version) {
      const [removed = false] = await store.remove([{ kind, id, version }])
      return removed
    },
  }
}

function storeOf(single: OneRecordStore): Store {
  // Called without their object, as the library may call them.
  const { load, loadAll, remove, removeAll } = single
  return {
    ...single,
    load(keys) {
      if (loadAll !== undefined && keys.length > 1) return loadAll(keys)
      return Promise.all(keys.map(({ kind, id }) => load(kind, id)))
    },
    remove(records) {
      if (removeAll !== undefined && records.length > 1) return removeAll(records)
      return Promise.all(records.map(({ kind, id, version }) => remove(kind, id, version)))
    },
  }
}
