import type { Grant } from '../core/grant/record.js'
import type { Stored } from '../core/stored.js'
import type { RecordKey, RecordKind, Store } from '../ports/store.js'
import { isIdOf } from '../protocol/credential.js'
import { isUuid } from '../protocol/uuid.js'
import type { PublicKind } from './public-ids.js'

/** Records as they were at one instant, by `nameOf` their keys; `undefined` if a record does not exist. */
export type Records = ReadonlyMap<string, Stored | undefined>

/** Reads a record of a snapshot, which must contain its key. */
export type Read = <Found extends Stored>(key: RecordKey) => Found | undefined

export function nameOf({ kind, id }: RecordKey): string {
  return `${kind} ${id}`
}

export function recordsOf(kind: RecordKind, ...records: readonly Stored[]): Records {
  return new Map(records.map((record) => [nameOf({ kind, id: record.id }), record]))
}

export function readerOf(records: Records): Read {
  return <Found extends Stored>(key: RecordKey) => records.get(nameOf(key)) as Found | undefined
}

/** Loads the records with these keys, each once and all as one snapshot. Without a key, the store is not called. */
export async function loadRecords(store: Store, keys: readonly RecordKey[]): Promise<Records> {
  const wanted = new Map(keys.map((key) => [nameOf(key), key]))
  const found = wanted.size === 0 ? [] : await store.load([...wanted.values()])
  return new Map([...wanted.keys()].map((name, index) => [name, found[index]]))
}

export async function loadOne<Found extends Stored>(
  store: Store,
  key: RecordKey,
): Promise<Found | undefined> {
  const [found] = await store.load([key])
  return found as Found | undefined
}

/** Loads a payment or a quote of this server by its public id. Resolves to `undefined` for an invalid id. */
export async function loadPublic<Found extends Stored>(
  store: Store,
  kind: PublicKind,
  id: string,
): Promise<Found | undefined> {
  return isUuid(id) ? loadOne<Found>(store, { kind, id }) : undefined
}

/**
 * Loads a grant of the authorization server whose grants a server serves. Resolves to `undefined` for an invalid id,
 * and for an id of another server.
 */
export async function loadGrant(
  {
    store,
    grantNamespace,
  }: { readonly store: Store; readonly grantNamespace: () => Promise<string> },
  id: string,
): Promise<Grant | undefined> {
  if (!isIdOf(await grantNamespace(), id)) return undefined
  return loadOne<Grant>(store, { kind: 'grant', id })
}
