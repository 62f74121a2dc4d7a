import type { RecordKey } from '../ports/store.js'
import { nameOf, type Records } from './load.js'

/**
 * What an introspection loads in the same call of the store as the grant of the token. The records are a guess at what
 * the request needs: they are used if they contain all of it, and otherwise loaded again as one snapshot.
 */
export interface Preload {
  /** Returns the keys to load with a grant, which may not exist, and whose token is not yet verified. */
  keysFor(grantId: string): readonly RecordKey[]
  /** Puts in what was loaded: one snapshot, which contains the grant. */
  loaded(records: Records): void
  /** Takes the snapshot out. Returns each snapshot once, if it has all these keys: a retry must use a later one. */
  takeIfComplete(keys: readonly RecordKey[]): Records | undefined
}

export function createPreload(keysFor: Preload['keysFor']): Preload {
  let snapshot: Records | undefined
  return {
    keysFor,
    loaded(records) {
      snapshot = records
    },
    takeIfComplete(keys) {
      const records = snapshot
      snapshot = undefined
      return records && keys.every((key) => records.has(nameOf(key))) ? records : undefined
    },
  }
}
