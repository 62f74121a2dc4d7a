import { memoryStore, type Store } from 'open-payments-server'
import type { RecordKind, Stored } from 'open-payments-server/adapter'

/** A document database: reads a document, or overwrites it unconditionally. */
interface Documents extends Pick<Store, 'list' | 'due' | 'remove'> {
  read(kind: RecordKind, id: string): Promise<Stored | undefined>
  write(kind: RecordKind, document: Stored): Promise<void>
}

/**
 * A store over a document database with a common mistake: `commit` checks the versions and then writes. Each
 * of the two steps is correct, but another process can write between them.
 */
export function naiveStore(documents: Documents = documentDatabase()): Store {
  const versionOf = async (kind: RecordKind, id: string) =>
    (await documents.read(kind, id))?.version ?? 0
  return {
    load: (keys) => Promise.all(keys.map(({ kind, id }) => documents.read(kind, id))),
    list: documents.list,
    due: documents.due,
    remove: documents.remove,
    async commit({ changes, guards }) {
      for (const { kind, next, expectedVersion } of changes) {
        if ((await versionOf(kind, next.id)) !== expectedVersion) return false
      }
      for (const { kind, id, version } of guards) {
        if ((await versionOf(kind, id)) !== version) return false
      }
      for (const { kind, next } of changes) await documents.write(kind, next)
      return true
    },
  }
}

/** An in-memory database that waits between its steps, like one behind a network. */
function documentDatabase(): Documents {
  const { load, list, due, remove, commit } = memoryStore()
  async function read(kind: RecordKind, id: string) {
    const [document] = await load([{ kind, id }])
    return document
  }
  return {
    read,
    list,
    due,
    remove,
    async write(kind, next) {
      for (let written = false; !written; ) {
        const expectedVersion = (await read(kind, next.id))?.version ?? 0
        written = await commit({ changes: [{ kind, next, expectedVersion }], guards: [] })
      }
    },
  }
}
