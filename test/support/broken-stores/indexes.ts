import type { Commit, RecordChange, RecordKind, Stored } from 'open-payments-server/adapter'
import { type Break, on, pause } from './commits.js'
import type { OneRecordStore } from './one-record.js'

/** Stores with indexes of their own for lists and due times, which go wrong beside the records. */

type Places = Pick<Stored, 'lists' | 'dueAt'>

const byDueTime = (a: { at: number; id: string }, b: { at: number; id: string }) =>
  a.at - b.at || (a.id < b.id ? -1 : Number(a.id > b.id))

/** Leaves the list entries of a commit that lost: they show whatever the record is. */
function leavingEntries(isLeft: (commit: Commit) => boolean): Break {
  return (store) => {
    const left = new Set<string>()
    return {
      ...store,
      async commit(commit) {
        const entries = commit.changes.flatMap(({ kind, next: { id, lists = [] } }) =>
          lists.map(({ list }) => JSON.stringify([kind, list, id])),
        )
        const committed = await store.commit(commit)
        for (const entry of !committed && isLeft(commit) ? entries : []) left.add(entry)
        return committed
      },
      async list(query) {
        const page = await store.list(query)
        const records = [...page.records]
        for (const entry of left) {
          const [kind, list, id] = JSON.parse(entry)
          if (kind !== query.kind || list !== query.list) continue
          const found = await store.load(kind, id)
          if (found && !records.some((each) => each.id === id)) records.push(found)
        }
        return { ...page, records }
      },
    }
  }
}

/** Writes list entries before it compares versions. */
export const lostCommitsLeaveEntries = leavingEntries(() => true)

/** Writes list entries before it compares guards. */
export const lostGuardsLeaveEntries = leavingEntries(({ guards }) => guards.length > 0)

/** Writes due times before it compares versions. */
export function lostCommitsLeaveDueTimes(store: OneRecordStore): OneRecordStore {
  const left: { kind: RecordKind; id: string; dueAt: number }[] = []
  return {
    ...store,
    async commit(commit) {
      const due = commit.changes.flatMap(({ kind, next: { id, dueAt } }) =>
        dueAt === undefined ? [] : [{ kind, id, dueAt }],
      )
      const committed = await store.commit(commit)
      if (!committed) left.push(...due)
      return committed
    },
    async due(kind, namespace, before, limit) {
      const found = [...(await store.due(kind, namespace, before, limit))]
      for (const each of left) {
        if (each.kind !== kind || each.dueAt > before || !each.id.startsWith(namespace)) continue
        const record = await store.load(kind, each.id)
        if (record && !found.some(({ id }) => id === each.id)) found.push(record)
      }
      return found.slice(0, limit)
    },
  }
}

/** Removes entries of lists or due times when a write fails, until the record is written again. */
function hiding(hides: (change: RecordChange) => Places, ofRemovals = false): Break {
  return (store) => {
    const hidden = new Map<string, Places[]>()
    const keyOf = (kind: RecordKind, id: string) => `${kind} ${id}`
    return {
      ...store,
      async commit(commit) {
        const places = commit.changes.map(
          (each) => [keyOf(each.kind, each.next.id), structuredClone(hides(each))] as const,
        )
        const committed = await store.commit(commit)
        for (const [key, each] of places) {
          if (committed) hidden.delete(key)
          else hidden.set(key, [...(hidden.get(key) ?? []), each])
        }
        return committed
      },
      async remove(kind, id, version) {
        const found = ofRemovals ? await store.load(kind, id) : undefined
        const removed = await store.remove(kind, id, version)
        if (!removed && found) hidden.set(keyOf(kind, id), [found])
        return removed
      },
      async list(query) {
        const all = await store.list({ ...query, limit: 1e9 })
        const records = all.records.filter(({ id, lists = [] }) => {
          const gone = (hidden.get(keyOf(query.kind, id)) ?? []).flatMap((each) => each.lists ?? [])
          const place = lists.find(({ list }) => list === query.list)
          return !gone.some(({ list, at }) => list === query.list && at === place?.at)
        })
        const { forward, limit } = query
        const kept = forward ? records.slice(0, limit) : records.slice(-limit)
        return { records: kept, more: records.length > limit }
      },
      async due(kind, namespace, before, limit) {
        const all = await store.due(kind, namespace, before, 1e9)
        const shown = all.filter(
          ({ id, dueAt }) => !hidden.get(keyOf(kind, id))?.some((each) => each.dueAt === dueAt),
        )
        return shown.slice(0, limit)
      },
    }
  }
}

/** Removes the list entries of the previous version before it compares versions. */
export const lostCommitsRemoveEntries = hiding(({ previous }) =>
  previous?.lists ? { lists: previous.lists } : {},
)

/** Removes the due time of the previous version before it compares versions. */
export const lostCommitsRemoveDueTimes = hiding(({ previous }) =>
  previous?.dueAt === undefined ? {} : { dueAt: previous.dueAt },
)

/** Writes list entries first, and removes them after a lost comparison: also those of the winner. */
export const losersUndoTheWinner = hiding(({ next: { lists } }) => (lists ? { lists } : {}))

/** Removes the entries of a record before it compares the version to remove. */
export const lostRemovalsRemoveEntries = hiding(() => ({}), true)

type Change = 'postponed' | 'done' | 'removed'

interface DueIndex {
  /** Which entries stay in the index after the record has changed. */
  readonly stays?: (change: Change) => boolean
  /** Whether the limit counts the entries of all kinds, or all namespaces. */
  readonly anyKind?: true
  readonly anyNamespace?: true
}

/** Looks up as many entries of an index as the limit allows, and then omits the outdated and foreign ones. */
function limitedFirst({ stays = () => false, ...any }: DueIndex): Break {
  return (store) => {
    let entries: { kind: RecordKind; id: string; at: number }[] = []
    const drop = (kind: RecordKind, id: string) => {
      entries = entries.filter((each) => each.kind !== kind || each.id !== id)
    }
    return {
      ...store,
      async commit(commit) {
        const written = commit.changes.map(({ kind, next: { id, dueAt } }) => ({
          kind,
          id,
          at: dueAt,
        }))
        const committed = await store.commit(commit)
        for (const { kind, id, at } of committed ? written : []) {
          if (!stays(at === undefined ? 'done' : 'postponed')) drop(kind, id)
          if (at !== undefined) entries.push({ kind, id, at })
        }
        return committed
      },
      async remove(kind, id, version) {
        const removed = await store.remove(kind, id, version)
        if (removed && !stays('removed')) drop(kind, id)
        return removed
      },
      async due(kind, namespace, before, limit) {
        const fits = ({ kind: own, id }: { kind: RecordKind; id: string }) => ({
          kind: own === kind,
          namespace: id.slice(0, 8) === namespace,
        })
        const looked = entries
          .filter((each) => any.anyKind || fits(each).kind)
          .filter((each) => any.anyNamespace || fits(each).namespace)
          .filter(({ at }) => at <= before)
          .sort(byDueTime)
          .slice(0, limit)
        const found = new Map<string, Stored>()
        for (const each of looked) {
          if (!fits(each).kind || !fits(each).namespace) continue
          const record = await store.load(kind, each.id)
          if (record?.dueAt === each.at) found.set(each.id, record)
        }
        return [...found.values()]
      },
    }
  }
}

export const postponedFillsDue = limitedFirst({ stays: (change) => change === 'postponed' })

export const doneFillsDue = limitedFirst({ stays: (change) => change === 'done' })

export const removedFillsDue = limitedFirst({ stays: (change) => change === 'removed' })

export const otherKindsFillDue = limitedFirst({ anyKind: true })

export const otherNamespacesFillDue = limitedFirst({ anyNamespace: true })

/** Looks up as many list entries as the limit allows, and then omits the records of another kind. */
export const otherKindsFillPages = on('list', async (store, query) => {
  const kinds: readonly RecordKind[] = ['grant', 'event']
  const pages = await Promise.all(
    kinds.map(async (kind) =>
      (await store.list({ ...query, kind, limit: 1e9 })).records.map((record) => {
        const at = record.lists?.find(({ list }) => list === query.list)?.at ?? 0
        return { kind, record, at, id: record.id }
      }),
    ),
  )
  const all = pages.flat().sort(byDueTime)
  const { forward, limit } = query
  const kept = forward ? all.slice(0, limit) : all.slice(-limit)
  const records = kept.filter(({ kind }) => kind === query.kind).map(({ record }) => record)
  return { records, more: all.length > limit }
})

/** A copy for some reads, which a commit writes after the records and before it returns. */
function copied(methods: readonly ('list' | 'loadAll')[]): Break {
  return (store) => {
    const copies = new Map<string, Stored>()
    const copyOf = <Found extends Stored | undefined>(kind: RecordKind, found: Found): Found =>
      found && (structuredClone(copies.get(`${kind} ${found.id}`) ?? found) as Found)
    const late: Partial<OneRecordStore> = {
      async list(query) {
        const page = await store.list(query)
        return { ...page, records: page.records.map((each) => copyOf(query.kind, each)) }
      },
      async loadAll(keys) {
        const found = (await store.loadAll?.(keys)) ?? []
        return found.map((each, i) => copyOf(keys[i]?.kind ?? 'event', each))
      },
    }
    return {
      ...store,
      ...Object.fromEntries(methods.map((method) => [method, late[method]])),
      async commit(commit) {
        const { changes } = structuredClone(commit)
        const before = await Promise.all(changes.map(({ kind, next }) => store.load(kind, next.id)))
        changes.forEach(({ kind }, i) => {
          const old = before[i]
          const key = `${kind} ${old?.id}`
          if (old !== undefined && !copies.has(key)) copies.set(key, old)
        })
        const committed = await store.commit(commit)
        await pause(24)
        for (const { kind, next } of changes) copies.delete(`${kind} ${next.id}`)
        return committed
      },
    }
  }
}

/** Lists show a commit a moment later than loads do. */
export const listsShowLater = copied(['list'])

/** `loadAll` shows a commit a moment later than `load` does. */
export const loadAllShowsLater = copied(['loadAll'])

/** Adds the list entries of a commit a moment after its records, and only then returns. */
export function entriesShowLater(store: OneRecordStore): OneRecordStore {
  const pending = new Map<string, number>()
  return {
    ...store,
    async commit(commit) {
      const entries = commit.changes.flatMap(({ kind, next: { id, lists = [] } }) =>
        lists.map(({ list, at }) => JSON.stringify([kind, id, list, at])),
      )
      for (const entry of entries) pending.set(entry, (pending.get(entry) ?? 0) + 1)
      const committed = await store.commit(commit)
      await pause(24)
      for (const entry of entries) pending.set(entry, (pending.get(entry) ?? 0) - 1)
      return committed
    },
    async list(query) {
      const page = await store.list(query)
      const records = page.records.filter(({ id, lists = [] }) => {
        const at = lists.find(({ list }) => list === query.list)?.at
        return !pending.get(JSON.stringify([query.kind, id, query.list, at]))
      })
      return { ...page, records }
    },
  }
}

/** Adds entries of at most 25 lists per commit. */
export function dropsLaterEntries(store: OneRecordStore): OneRecordStore {
  const dropped = new Set<string>()
  return {
    ...store,
    async commit(commit) {
      const entries = commit.changes.flatMap(({ kind, next: { id, lists = [] } }) =>
        lists.map(({ list }) => JSON.stringify([kind, id, list])),
      )
      const committed = await store.commit(commit)
      for (const entry of committed ? entries.slice(0, 25) : []) dropped.delete(entry)
      for (const entry of committed ? entries.slice(25) : []) dropped.add(entry)
      return committed
    },
    async list(query) {
      const page = await store.list(query)
      const records = page.records.filter(
        ({ id }) => !dropped.has(JSON.stringify([query.kind, id, query.list])),
      )
      return { ...page, records }
    },
  }
}
