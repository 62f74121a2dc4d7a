import type { Stored } from 'open-payments-server/adapter'
import { pause } from './commits.js'
import type { OneRecordStore } from './one-record.js'

/** Stores that take many records in parts. Each part is right; the whole is right only if it is one part. */

function partsOf<Each>(all: readonly Each[], size: number): readonly (readonly Each[])[] {
  const count = Math.ceil(all.length / size)
  return Array.from({ length: count }, (_, i) => all.slice(i * size, (i + 1) * size))
}

/** Each part of a load is a snapshot of its own. */
export function loadsInParts(store: OneRecordStore): OneRecordStore {
  return {
    ...store,
    async loadAll(keys) {
      const found: (Stored | undefined)[] = []
      for (const part of partsOf(keys, 30)) {
        found.push(...((await store.loadAll?.(part)) ?? []))
        await pause()
      }
      return found
    },
  }
}

/** Each part of a commit is a transaction of its own; the first that fails ends it. */
export function commitsInParts(store: OneRecordStore): OneRecordStore {
  return {
    ...store,
    async commit({ changes, guards }) {
      if (changes.length === 0) return store.commit({ changes, guards })
      for (const [i, part] of partsOf(changes, 25).entries()) {
        if (!(await store.commit({ changes: part, guards: i === 0 ? guards : [] }))) return false
        await pause()
      }
      return true
    },
  }
}

/** Only the first part of a removal compares versions; the others were compared with it. */
export function removesInParts(store: OneRecordStore): OneRecordStore {
  return {
    ...store,
    async removeAll(records) {
      const [first = [], ...others] = partsOf(records, 100)
      const seen = await Promise.all(records.map(({ kind, id }) => store.load(kind, id)))
      const removed = await Promise.all(first.map((each) => removeAt(store, each)))
      for (const each of others.flat()) {
        const before = seen[records.indexOf(each)]
        if (before?.version !== each.version) {
          removed.push(false)
          continue
        }
        const now = await store.load(each.kind, each.id)
        if (now !== undefined) await store.remove(each.kind, each.id, now.version)
        removed.push(true)
      }
      return removed
    },
  }
}

function removeAt(
  store: OneRecordStore,
  {
    kind,
    id,
    version,
  }: { kind: Parameters<OneRecordStore['remove']>[0]; id: string; version: number },
): Promise<boolean> {
  return store.remove(kind, id, version)
}

/** A page is read in parts, each by its distance from the cursor. */
export function pagesByOffset(store: OneRecordStore): OneRecordStore {
  return {
    ...store,
    async list(query) {
      const records: Stored[] = []
      for (let offset = 0; offset < query.limit; offset += 30) {
        const page = await store.list({ ...query, limit: 100 })
        const inOrder = query.forward ? page.records : page.records.toReversed()
        records.push(...inOrder.slice(offset, Math.min(offset + 30, query.limit)))
        await pause(12)
      }
      const { more } = await store.list(query)
      return { records: query.forward ? records : records.toReversed(), more }
    },
  }
}
