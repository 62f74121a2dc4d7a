import { memoryStore } from 'open-payments-server'
import type { ListQuery, RecordPage, Stored } from 'open-payments-server/adapter'
import { type Break, on, pause } from './commits.js'
import { type OneRecordStore, oneRecordStore } from './one-record.js'

/** A replica: it receives every write of the store after a delay. */
function replicaOf(store: OneRecordStore, lag: () => Promise<unknown>) {
  const replica = oneRecordStore(memoryStore())
  let applied: Promise<unknown> = Promise.resolve()
  const later = (write: () => Promise<unknown>) => {
    applied = Promise.all([applied, lag()]).then(write)
  }
  const writing: Pick<OneRecordStore, 'commit' | 'remove'> = {
    async commit(commit) {
      const { changes } = structuredClone(commit)
      const committed = await store.commit(commit)
      if (committed) later(() => replica.commit({ changes, guards: [] }))
      return committed
    },
    async remove(kind, id, version) {
      const removed = await store.remove(kind, id, version)
      if (removed) later(() => replica.remove(kind, id, version))
      return removed
    },
  }
  return { replica, writing }
}

function aTick(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/** Some operations read from a replica. */
const lagging =
  (...names: ('load' | 'loadAll' | 'list' | 'due')[]): Break =>
  (store) => {
    const { replica, writing } = replicaOf(store, aTick)
    const read = Object.fromEntries(names.map((name) => [name, replica[name]]))
    return { ...store, ...writing, ...read }
  }

export const laggingLoad = lagging('load')
export const laggingLoadAll = lagging('loadAll')
/** A replica or an eventually consistent index. */
export const laggingList = lagging('list')
/** This is allowed. */
export const laggingDue = lagging('due')

/** Resolves to true after the decision to write, and writes shortly afterwards. */
export function trueBeforeDurable(store: OneRecordStore): OneRecordStore {
  const { replica, writing } = replicaOf(store, () => pause(12))
  return { ...replica, ...writing }
}

/** Each store instance has a cache that only its own writes update. */
export function cachesLoads(store: OneRecordStore): OneRecordStore {
  const cache = new Map<string, Stored>()
  return {
    ...store,
    async load(kind, id) {
      const key = `${kind} ${id}`
      const found = cache.get(key) ?? (await store.load(kind, id))
      if (found !== undefined) cache.set(key, found)
      return structuredClone(found)
    },
    async commit(commit) {
      for (const { kind, next } of commit.changes) cache.delete(`${kind} ${next.id}`)
      const committed = await store.commit(commit)
      for (const { kind, next } of commit.changes) cache.delete(`${kind} ${next.id}`)
      return committed
    },
    async remove(kind, id, version) {
      cache.delete(`${kind} ${id}`)
      return store.remove(kind, id, version)
    },
  }
}

/** Also caches pages of `list`; only its own writes clear the cache. */
export function cachesPages(store: OneRecordStore): OneRecordStore {
  const cache = new Map<string, RecordPage>()
  return {
    ...store,
    async list(query) {
      const key = JSON.stringify(query)
      const page = cache.get(key) ?? (await store.list(query))
      cache.set(key, page)
      return structuredClone(page)
    },
    async commit(commit) {
      cache.clear()
      return store.commit(commit)
    },
    async remove(kind, id, version) {
      cache.clear()
      return store.remove(kind, id, version)
    },
  }
}

export interface Place {
  readonly at: number
  readonly id: string
}

type Compare = (a: Place, b: Place) => number

export function byPlaceAndId(a: Place, b: Place): number {
  return a.at - b.at || (a.id < b.id ? -1 : Number(a.id > b.id))
}

/** A list with another order and another cursor comparison. Correct if both are correct. */
export function relisted(order: Compare, afterCursor: Compare = order): Break {
  return on('list', async (store, { cursor, limit, ...query }) => {
    const all = await everything(store, query)
    const placed = all
      .map((record) => ({ record, id: record.id, at: placeIn(record, query.list) }))
      .sort(order)
      .filter((place) => {
        if (cursor === undefined) return true
        return query.forward ? afterCursor(place, cursor) > 0 : afterCursor(place, cursor) < 0
      })
    const kept = query.forward ? placed.slice(0, limit) : placed.slice(-limit)
    return { records: kept.map(({ record }) => record), more: placed.length > limit }
  })
}

async function everything(
  store: OneRecordStore,
  query: Pick<ListQuery, 'kind' | 'list'>,
): Promise<readonly Stored[]> {
  return (await store.list({ kind: query.kind, list: query.list, forward: true, limit: 1e9 }))
    .records
}

function placeIn({ lists = [] }: Stored, commandId: string): number {
  return lists.find((entry) => entry.list === commandId)?.at ?? 0
}

/** Returns records at the same position in a different order on each call. */
export function unstableOrder(store: OneRecordStore): OneRecordStore {
  let calls = 0
  const rank = (id: string) => ((id.charCodeAt(id.length - 1) * 31 + 7 * calls) % 11) - 5
  const restless: Compare = (a, b) => a.at - b.at || rank(a.id) - rank(b.id)
  const unstable = relisted(restless, byPlaceAndId)(store)
  return {
    ...unstable,
    list(query) {
      calls += 1
      return unstable.list(query)
    },
  }
}

/** Uses only the time as the cursor, which skips other records with the same time. */
export const cursorByTime = relisted(byPlaceAndId, (a, b) => a.at - b.at)

/** Includes the record at the cursor in the page. */
export const cursorIncluded = relisted(byPlaceAndId, (a, b) => byPlaceAndId(a, b) || 1)

/** Sorts lists and due records in another order. */
const reordered =
  (order: Compare): Break =>
  (store) => ({
    ...relisted(order)(store),
    due: async (...query) =>
      (await store.due(...query)).toSorted((a, b) =>
        order({ at: a.dueAt ?? 0, id: a.id }, { at: b.dueAt ?? 0, id: b.id }),
      ),
  })

/** Sorts ids in dictionary order. */
export const localeOrder = reordered((a, b) => a.at - b.at || a.id.localeCompare(b.id, 'en'))

/** Compares numbers as strings, as a string index does. */
export const textOrder = reordered((a, b) =>
  `${a.at}` === `${b.at}`
    ? byPlaceAndId({ ...a, at: 0 }, { ...b, at: 0 })
    : `${a.at}` < `${b.at}`
      ? -1
      : 1,
)

/** Continues from the position of the record that had the cursor. */
export const cursorIsRecord = on('list', async (store, query) => {
  const { kind, cursor } = query
  const gone = cursor !== undefined && (await store.load(kind, cursor.id)) === undefined
  return gone ? { records: [], more: false } : store.list(query)
})

/** Backwards, starts at the wrong end: returns the first records instead of those next to the cursor. */
export const backwardsFromTheStart = on('list', async (store, query) => {
  if (query.forward) return store.list(query)
  const all = await store.list({ ...query, limit: 1e9 })
  const { limit } = query
  return { records: all.records.slice(0, limit), more: all.records.length > limit }
})

/** Backwards, returns the records in the reverse order. */
export const backwardsReversed = on('list', async (store, query) => {
  const page = await store.list(query)
  return query.forward ? page : { ...page, records: [...page.records].reverse() }
})

/** Reports more records whenever a page is full. */
export const moreWhenFull = on('list', async (store, query) => {
  const { records } = await store.list(query)
  return { records, more: records.length === query.limit }
})

/** Reports more records only when at least two follow the page. */
export const moreTooLate = on('list', async (store, query) => {
  const { records } = await store.list(query)
  const further = await store.list({ ...query, limit: query.limit + 1 })
  return { records, more: further.more }
})

/** Paginates by offset, although records may be added or removed between pages. */
export function pagesByOffset(store: OneRecordStore): OneRecordStore {
  const offsets = new Map<string, number>()
  const keyOf = (commandId: string, place: Place) => `${commandId} ${place.at} ${place.id}`
  return {
    ...store,
    async list(query) {
      const { list: wanted, cursor, forward, limit } = query
      const known = cursor && offsets.get(keyOf(wanted, cursor))
      if (known === undefined) return remember(await store.list(query), query, 0)
      const { records } = await store.list({ kind: query.kind, list: wanted, forward, limit: 1e9 })
      const rest = forward
        ? records.slice(known, known + limit)
        : records.slice(Math.max(0, records.length - known - limit), records.length - known)
      return remember({ records: rest, more: records.length > known + limit }, query, known)
    },
  }

  function remember(
    page: RecordPage,
    { list: wanted, forward }: ListQuery,
    before: number,
  ): RecordPage {
    const last = page.records.at(forward ? -1 : 0)
    if (last !== undefined) {
      const place = { at: placeIn(last, wanted), id: last.id }
      offsets.set(keyOf(wanted, place), before + page.records.length)
    }
    return page
  }
}

/** Lists records of all kinds. */
export const listsAnyKind = on('list', async (store, query) => {
  const grants = await store.list(query)
  const events = await store.list({ ...query, kind: 'event' })
  return { ...grants, records: [...grants.records, ...events.records].slice(0, query.limit) }
})

/** Uses only the first list of a record. */
export const firstListOnly = on('list', async (store, query) => {
  const all = await store.list({ ...query, limit: 1e9 })
  const records = all.records.filter(({ lists = [] }) => lists[0]?.list === query.list)
  return { records: records.slice(0, query.limit), more: records.length > query.limit }
})

/** Adds records to its list index but never removes them. */
export function keepsOldPlaces(store: OneRecordStore): OneRecordStore {
  const former = new Map<string, Stored>()
  return {
    ...store,
    async commit(commit) {
      const before = await Promise.all(
        commit.changes.map(({ kind, next }) => store.load(kind, next.id)),
      )
      const committed = await store.commit(commit)
      for (const each of before) if (committed && each?.lists) former.set(each.id, each)
      return committed
    },
    async list(query) {
      const page = await store.list(query)
      const shown = new Set(page.records.map(({ id }) => id))
      const stale = [...former.values()].filter(
        ({ id, lists = [] }) =>
          !shown.has(id) && lists.some(({ list: wanted }) => wanted === query.list),
      )
      return { ...page, records: [...page.records, ...stale] }
    },
    async remove(kind, id, version) {
      const found = await store.load(kind, id)
      const removed = await store.remove(kind, id, version)
      if (removed && found?.lists) former.set(id, found)
      return removed
    },
  }
}

/** Every namespace that `due` must distinguish. */
function withNamespaces(takenForTheSame: (a: string, b: string) => boolean): Break {
  return (store) => {
    const namespaces = new Set<string>()
    return {
      ...store,
      commit(commit) {
        for (const { next } of commit.changes) namespaces.add(next.id.slice(0, 8))
        return store.commit(commit)
      },
      async due(kind, namespace, before, limit) {
        const matching = [...namespaces].filter((each) => takenForTheSame(each, namespace))
        const found = await Promise.all(
          matching.map((each) => store.due(kind, each, before, limit)),
        )
        return found
          .flat()
          .sort((a, b) => (a.dueAt ?? 0) - (b.dueAt ?? 0) || (a.id < b.id ? -1 : 1))
          .slice(0, limit)
      },
    }
  }
}

export const dueOfAnyNamespace = withNamespaces(() => true)

/** Finds a namespace with LIKE, where an underscore matches any character. */
export const dueByPattern = withNamespaces((each, namespace) => {
  const escaped = namespace.replace(/[.]/g, '\\.').replace(/[_]/g, '.').replace(/%/g, '.*')
  return new RegExp(`^${escaped}$`).test(each)
})

export const dueFoldsCase = withNamespaces((a, b) => a.toLowerCase() === b.toLowerCase())

/** Omits records that are due at the exact instant. */
export const dueBeforeOnly = on('due', (store, kind, ns, before, limit) =>
  store.due(kind, ns, before - 1, limit),
)

/** Omits records that are due at the exact instant from which it is asked. */
export const dueAfterOnly = on('due', (store, kind, ns, before, limit, from) =>
  store.due(kind, ns, before, limit, from === undefined ? from : from + 1),
)

export const dueWithoutLimit = on('due', (store, kind, ns, before) =>
  store.due(kind, ns, before, 1e9),
)

/** Respects the limit, but does not return the earliest records. */
export const dueAnyFew = on('due', async (store, kind, ns, before, limit) =>
  (await store.due(kind, ns, before, 1e9)).slice(-limit),
)

export const dueOfGrantsOnly = on('due', (store, _, ns, before, limit) =>
  store.due('grant', ns, before, limit),
)

/** Uses the first due time of a record, even after it has changed. */
export function dueAsAtFirst(store: OneRecordStore): OneRecordStore {
  const first = new Map<string, number>()
  return {
    ...store,
    commit(commit) {
      for (const { next } of commit.changes) {
        if (next.dueAt !== undefined && !first.has(next.id)) first.set(next.id, next.dueAt)
      }
      return store.commit(commit)
    },
    async due(kind, ns, before, limit) {
      const found = await store.due(kind, ns, Number.MAX_SAFE_INTEGER, 1e9)
      const times = found.map((record) => ({ record, at: first.get(record.id) ?? 0 }))
      const due = times.filter(({ at }) => at <= before).sort((a, b) => a.at - b.at)
      return due.slice(0, limit).map(({ record }) => record)
    },
  }
}

/** Keeps a copy in the index of due times, and replaces it only when the due time changes. */
export function dueKeepsCopies(store: OneRecordStore): OneRecordStore {
  const copies = new Map<string, Stored>()
  return {
    ...store,
    async commit(commit) {
      const changes = structuredClone(commit.changes)
      const committed = await store.commit(commit)
      for (const { kind, next } of committed ? changes : []) {
        const key = `${kind} ${next.id}`
        if (copies.get(key)?.dueAt !== next.dueAt) copies.set(key, next)
      }
      return committed
    },
    due: async (kind, ...query) =>
      (await store.due(kind, ...query)).map((found) =>
        structuredClone(copies.get(`${kind} ${found.id}`) ?? found),
      ),
  }
}

/** Leaves the entries of a removed record in its lists, where they wait for a record with the same id. */
export function removeLeavesPlaces(store: OneRecordStore): OneRecordStore {
  const left = new Map<string, string>()
  return {
    ...store,
    async remove(kind, id, version) {
      const found = await store.load(kind, id)
      const removed = await store.remove(kind, id, version)
      for (const { list } of (removed && found?.lists) || []) left.set(`${kind} ${list}`, id)
      return removed
    },
    async list(query) {
      const page = await store.list(query)
      const id = left.get(`${query.kind} ${query.list}`)
      const found = id === undefined ? undefined : await store.load(query.kind, id)
      if (found === undefined || page.records.some((each) => each.id === id)) return page
      return { ...page, records: [...page.records, found] }
    },
  }
}

/** Reads a page and then each of its records, and rejects if one is gone by then. */
export const rejectsRemovedRecords = on('list', async (store, query) => {
  const page = await store.list(query)
  await pause()
  const records = await Promise.all(
    page.records.map(async ({ id }) => {
      const found = await store.load(query.kind, id)
      if (found === undefined) throw new TypeError('Cannot read properties of undefined')
      return found
    }),
  )
  return { ...page, records }
})

/** Answers commits that write nothing from a replica. */
export function guardsFromReplica(store: OneRecordStore): OneRecordStore {
  const { replica, writing } = replicaOf(store, aTick)
  return {
    ...store,
    ...writing,
    commit: (commit) => (commit.changes.length === 0 ? replica : writing).commit(commit),
  }
}

/** Its methods call each other through `this`. */
export function needsThis(store: OneRecordStore): OneRecordStore {
  return {
    ...store,
    async load(this: OneRecordStore | undefined, kind, id) {
      if (this === undefined) throw new TypeError('Cannot read properties of undefined')
      return store.load(kind, id)
    },
  }
}

/** Reads several records one after another, and so at different moments. */
export function loadsOneAfterAnother(store: OneRecordStore): OneRecordStore {
  return {
    ...store,
    async loadAll(keys) {
      const found: (Stored | undefined)[] = []
      for (const { kind, id } of keys) found.push(await store.load(kind, id))
      return found
    },
  }
}

/** Reads each kind as a whole, one after another, as a store does that has a table for each kind. */
export function loadsKindByKind(store: OneRecordStore): OneRecordStore {
  return {
    ...store,
    async loadAll(keys) {
      const found = new Map<string, Stored | undefined>()
      for (const kind of new Set(keys.map((key) => key.kind))) {
        const own = keys.filter((key) => key.kind === kind)
        const records = (await store.loadAll?.(own)) ?? []
        for (const [i, { id }] of own.entries()) found.set(`${kind} ${id}`, records[i])
      }
      return keys.map(({ kind, id }) => found.get(`${kind} ${id}`))
    },
  }
}

type LoadAll = NonNullable<OneRecordStore['loadAll']>

function readingAll(change: (readAll: LoadAll) => LoadAll): Break {
  return (store) => {
    if (store.loadAll === undefined) throw new Error('the store has no loadAll')
    return { ...store, loadAll: change(store.loadAll) }
  }
}

/** Returns what it finds, in the order of the ids. */
export const loadAllInItsOwnOrder = readingAll((readAll) => async (keys) => {
  const found = await readAll(keys)
  return found.toSorted((one, other) => ((one?.id ?? '') < (other?.id ?? '') ? -1 : 1))
})

/** Returns only the records that it finds. */
export const loadAllWithoutMissing = readingAll((readAll) => async (keys) => {
  return (await readAll(keys)).filter((each) => each !== undefined)
})

/** Finds records by their id alone. */
export const loadAllIgnoresKinds = readingAll((readAll) => async (keys) => {
  const [first] = keys.toReversed()
  return readAll(keys.map((key) => ({ ...key, kind: first?.kind ?? key.kind })))
})

/** Answers a key that occurs again with nothing, as a driver does that returns each row once. */
export const loadAllAnswersOnce = readingAll((readAll) => async (keys) => {
  const found = await readAll(keys)
  const names = keys.map(({ kind, id }) => `${kind} ${id}`)
  return found.map((each, i) => (names.indexOf(names[i] ?? '') === i ? each : undefined))
})

/** Returns one value for all keys of a record. */
export const loadAllSharesValues = readingAll((readAll) => async (keys) => {
  const found = await readAll(keys)
  const names = keys.map(({ kind, id }) => `${kind} ${id}`)
  return found.map((_, i) => found[names.indexOf(names[i] ?? '')])
})
