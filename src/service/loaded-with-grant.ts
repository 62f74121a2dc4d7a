import type { RecordKey } from '../ports/store.js'
import { nameOf, type Records } from './load.js'
import { publicRecord, storedKey } from './public-ids.js'

/**
 * What an introspection loads in the same call of the store as the grant of the token. The records are a guess at what
 * the request needs: they are used if they contain all of it, and otherwise loaded again as one snapshot.
 */
export interface LoadedWithGrant {
  /**
   * Returns the keys to load with a grant, which may not exist, and whose token is not yet verified: those of the
   * store, because the authorization server has another namespace.
   */
  keysFor(grantId: string): readonly RecordKey[]
  /** Puts in what was loaded: one snapshot, which contains the grant. */
  loaded(records: Records): void
  /** Takes the snapshot out. Returns each snapshot once, if it has all these keys: a retry must use a later one. */
  takeIfComplete(keys: readonly RecordKey[]): Records | undefined
}

/** @param namespace of the resource server. */
export function loadedWithGrant(
  namespace: string,
  keysFor: (grantId: string) => readonly RecordKey[],
): LoadedWithGrant {
  let keys: readonly RecordKey[] = []
  let snapshot: Records | undefined
  return {
    keysFor(grantId) {
      keys = keysFor(grantId)
      return keys.map((key) => storedKey(namespace, key))
    },
    loaded(records) {
      const named = keys.map((key) => {
        const record = records.get(nameOf(storedKey(namespace, key)))
        return [nameOf(key), publicRecord(namespace, key.kind, record)] as const
      })
      snapshot = new Map([...records, ...named])
    },
    takeIfComplete(wanted) {
      const records = snapshot
      snapshot = undefined
      return records && wanted.every((key) => records.has(nameOf(key))) ? records : undefined
    },
  }
}
