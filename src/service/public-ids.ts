import type { Stored } from '../core/stored.js'
import type { RecordKey, RecordKind, Store } from '../ports/store.js'

/**
 * The kinds of record whose ids are public: each is a UUID, because other wallets look such ids up as one, and hosts
 * keep them in columns of this type. What a store needs beside it, the namespace of the server, is only in the keys of
 * the store.
 */
const publicKinds = ['incoming-payment', 'outgoing-payment', 'quote'] as const

export type PublicKind = (typeof publicKinds)[number]

function isPublic(kind: RecordKind): kind is PublicKind {
  return publicKinds.some((each) => each === kind)
}

export function storedId(namespace: string, kind: RecordKind, id: string): string {
  return isPublic(kind) ? namespace + id : id
}

export function storedKey<Key extends RecordKey>(namespace: string, key: Key): Key {
  return isPublic(key.kind) ? { ...key, id: namespace + key.id } : key
}

/** Returns a record of the store with the id that the services know. */
export function publicRecord<Found extends Stored | undefined>(
  namespace: string,
  kind: RecordKind,
  record: Found,
): Found {
  return record !== undefined && isPublic(kind)
    ? { ...record, id: record.id.slice(namespace.length) }
    : record
}

/** Returns the store as the services of a resource server use it: with public ids. */
export function storeOfPublicIds(store: Store, namespace: () => Promise<string>): Store {
  return {
    async load(keys) {
      const own = await namespace()
      const records = await store.load(keys.map((key) => storedKey(own, key)))
      return records.map((record, index) => {
        const key = keys[index]
        return key && publicRecord(own, key.kind, record)
      })
    },
    async commit({ changes, guards }) {
      const own = await namespace()
      return store.commit({
        changes: changes.map((change) =>
          isPublic(change.kind)
            ? { ...change, next: { ...change.next, id: own + change.next.id } }
            : change,
        ),
        guards: guards.map((guard) => storedKey(own, guard)),
      })
    },
    async list(query) {
      const own = await namespace()
      const { kind, cursor } = query
      const place = cursor && { cursor: { ...cursor, id: storedId(own, kind, cursor.id) } }
      const { records, more } = await store.list({ ...query, ...place })
      return { records: records.map((record) => publicRecord(own, kind, record)), more }
    },
    async due(kind, namespaceOfIds, ...range) {
      const own = await namespace()
      const records = await store.due(kind, namespaceOfIds, ...range)
      return records.map((record) => publicRecord(own, kind, record))
    },
    async remove(records) {
      const own = await namespace()
      return store.remove(records.map((record) => storedKey(own, record)))
    },
  }
}
