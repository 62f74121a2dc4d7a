import { isDeepStrictEqual } from 'node:util'
import type { Store } from 'open-payments-server'
import {
  type Commit,
  type ListEntry,
  type RecordChange,
  type Stored,
  storeBounds,
} from 'open-payments-server/adapter'

const idPattern = /^[A-Za-z0-9._-]{8,128}$/
const namespacePattern = /^[A-Za-z0-9_-]{8}$/
const commandIdPattern = /^[A-Za-z0-9_-]{22}$/

const knownMax = 1_000

/** The records that each store holds, as far as they were committed through `boundedStore`. */
const known = new WeakMap<Store, Map<string, Stored>>()

/**
 * Wraps a store so that a call outside the bounds that src/ports/store.ts states rejects: too large a commit or
 * limit, another form of an id or namespace, or a change whose `previous` is not that of the version it replaces.
 */
export function boundedStore(store: Store): Store {
  const records = known.get(store) ?? new Map<string, Stored>()
  known.set(store, records)
  return {
    ...store,
    async commit(commit) {
      const problem = problemOf(commit, records)
      if (problem !== undefined) throw new Error(`commit: ${problem}`)
      const committed = await store.commit(commit)
      if (committed)
        for (const { kind, next } of commit.changes) remember(records, `${kind} ${next.id}`, next)
      return committed
    },
    async load(keys) {
      requireLimit('load', keys.length, storeBounds.loadKeys)
      return store.load(keys)
    },
    async remove(removed) {
      requireLimit('remove', removed.length, storeBounds.removeRecords)
      const names = new Set(removed.map(({ kind, id }) => `${kind} ${id}`))
      if (names.size < removed.length) throw new Error('remove: a record occurs twice')
      return store.remove(removed)
    },
    async list(query) {
      requireLimit('list', query.limit, storeBounds.listLimit)
      return store.list(query)
    },
    async due(kind, namespace, before, limit, from) {
      // A store compares it with the beginning of ids: another length matches nothing.
      if (!namespacePattern.test(namespace)) throw new Error(`due: the namespace is ${namespace}`)
      requireLimit('due', limit, storeBounds.dueLimit)
      return store.due(kind, namespace, before, limit, from)
    },
  }
}

/** Keeps the records that were written last, so that a search of any length uses little memory. */
function remember(records: Map<string, Stored>, key: string, record: Stored): void {
  records.delete(key)
  records.set(key, record)
  if (records.size <= knownMax) return
  for (const oldest of records.keys()) {
    records.delete(oldest)
    return
  }
}

function requireLimit(method: string, limit: number, most: number): void {
  if (Number.isInteger(limit) && limit >= 1 && limit <= most) return
  throw new Error(`${method}: the limit is ${limit}, expected 1 to ${most}`)
}

/** Returns the size of a commit that `storeBounds.commitSize` limits. */
export function commitSizeOf({ changes, guards }: Commit): number {
  return changes.reduce((size, each) => size + 1 + movedEntries(each), guards.length)
}

/** Returns the number of list entries that a change adds, moves or removes. */
function movedEntries({ next: { lists: after = [] }, previous }: RecordChange): number {
  const before = previous?.lists ?? []
  const same = (one: ListEntry, other: ListEntry) => one.list === other.list && one.at === other.at
  const kept = after.filter((entry) => before.some((old) => same(old, entry)))
  return new Set([...before, ...after].map(({ list }) => list)).size - kept.length
}

/** Describes how a commit leaves the bounds. */
function problemOf(commit: Commit, records: ReadonlyMap<string, Stored>): string | undefined {
  const { changes, guards } = commit
  const size = commitSizeOf(commit)
  if (size > storeBounds.commitSize) return `its size is ${size}`
  const keys = [
    ...changes.map(({ kind, next }) => `${kind} ${next.id}`),
    ...guards.map(({ kind, id }) => `${kind} ${id}`),
  ]
  if (new Set(keys).size < keys.length) return `a record occurs twice in ${keys.join(', ')}`
  for (const { kind, next, expectedVersion, previous } of changes) {
    const { id, version, commandId, lists = [] } = next
    const about = `${kind} ${id}`
    if (!idPattern.test(id)) return `${about} has another form of id`
    if (!commandIdPattern.test(commandId)) return `${about} has the command id ${commandId}`
    if (lists.length > storeBounds.recordLists) return `${about} has ${lists.length} lists`
    for (const { list } of lists) {
      if (list.length > storeBounds.listNameLength) return `${about} has the list ${list}`
    }
    const bytes = Buffer.byteLength(JSON.stringify(next))
    if (bytes > storeBounds.valueBytes) return `${about} has ${bytes} bytes`
    if (version !== expectedVersion + 1) return `${about} has version ${version}`
    if ((previous === undefined) !== (expectedVersion === 0)) return `${about} has a wrong previous`
    const old = records.get(about)
    if (old?.version !== expectedVersion) continue
    const { lists: oldLists, dueAt } = old
    const expected = { ...(oldLists && { lists: oldLists }), ...(dueAt !== undefined && { dueAt }) }
    if (!isDeepStrictEqual(previous, expected)) return `${about} has an outdated previous`
  }
  return undefined
}
