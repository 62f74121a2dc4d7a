import type { Grant } from '../core/grant/record.js'
import type { RecordKey, Store } from '../ports/store.js'
import { loadRecords, nameOf, type Records, readerOf } from './load.js'
import { storeOfPublicIds } from './public-ids.js'

/**
 * What an introspection loads in the same call of the store as the grant of the token. The records are a guess at what
 * the request needs: they are used if they contain all of it, and otherwise loaded again as one snapshot.
 */
export interface LoadedWithGrant {
  /**
   * Loads the grant and the guessed records as one snapshot.
   *
   * @param store of the authorization server, which has another namespace.
   * @param id of the grant, which may not exist, and whose token is not yet verified.
   */
  load(store: Store, id: string): Promise<Grant | undefined>
  /** Takes the snapshot out. Returns each snapshot once, if it has all these keys: a retry must use a later one. */
  takeIfComplete(keys: readonly RecordKey[]): Records | undefined
}

/** @param namespace of the resource server. */
export function loadedWithGrant(
  namespace: () => Promise<string>,
  keysFor: (grantId: string) => readonly RecordKey[],
): LoadedWithGrant {
  let snapshot: Records | undefined
  return {
    async load(store, id) {
      const key = { kind: 'grant', id } as const
      const keys = [key, ...keysFor(id)]
      snapshot = await loadRecords(storeOfPublicIds(store, namespace), keys)
      return readerOf(snapshot)<Grant>(key)
    },
    takeIfComplete(wanted) {
      const records = snapshot
      snapshot = undefined
      return records && wanted.every((key) => records.has(nameOf(key))) ? records : undefined
    },
  }
}
