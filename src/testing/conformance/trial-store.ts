import {
  type Commit,
  type RecordKind,
  type RecordPage,
  type Store,
  type Stored,
  storeBounds,
} from 'open-payments-server'
import { commitSizeOf } from './bounds.js'
import { demand, isObject, show } from './expectations.js'
import type { Dresser } from './shapes.js'

/** What a trial has written: for `previous` of its changes, and to remove it at the end. */
export interface Ledger {
  /** The last version of each record that the trial knows of; `undefined` if it does not know one. */
  readonly records: Map<string, Written>
}

interface Written {
  readonly kind: RecordKind
  readonly id: string
  last?: Places | undefined
}

type Places = Pick<Stored, 'version' | 'lists' | 'dueAt'>

function placesOf({ version, lists, dueAt }: Stored): Places {
  return {
    version,
    ...(lists && { lists: lists.map((entry) => ({ ...entry })) }),
    ...(dueAt !== undefined && { dueAt }),
  }
}

function note({ records }: Ledger, kind: RecordKind, id: string): Written {
  const key = `${kind} ${id}`
  const written = records.get(key) ?? { kind, id }
  records.set(key, written)
  return written
}

/** Adds `previous` to the changes that replace a version. */
function withPrevious(ledger: Ledger, { changes, guards }: Commit): Commit {
  const known = changes.map((change) => {
    const { kind, next, expectedVersion } = change
    const { last } = note(ledger, kind, next.id)
    if (expectedVersion === 0) return change
    const { version, ...previous } = last ?? { version: 0 }
    return { ...change, previous: version === expectedVersion ? previous : {} }
  })
  return { changes: known, guards }
}

/** Wraps a store so that a rejection or a result of the wrong type fails the case and names the method. */
export function checkedStore(store: Store, ledger: Ledger): Store {
  const readAll = store.loadAll?.bind(store)
  return {
    ...checkedReads(store, ledger),
    ...checkedWrites(store, ledger),
    ...(readAll && { loadAll: checkedLoadAll(readAll) }),
  }
}

type LoadAll = NonNullable<Store['loadAll']>

function checkedLoadAll(readAll: LoadAll): LoadAll {
  return async (keys) => {
    const found: unknown = await answerOf('loadAll', readAll(keys))
    demand(
      Array.isArray(found) &&
        found.length === keys.length &&
        found.every((each) => each === undefined || isObject(each)),
      () =>
        `loadAll returned ${show(found)} for ${keys.length} keys; expected an array with a record, or undefined, ` +
        'for each key',
    )
    return found as Awaited<ReturnType<LoadAll>>
  }
}

function checkedReads(store: Store, { records }: Ledger): Pick<Store, 'load' | 'list' | 'due'> {
  return {
    async load(kind, id) {
      const found: unknown = await answerOf('load', store.load(kind, id))
      demand(
        found === undefined || isObject(found),
        () => `load returned ${show(found)}; expected a record, or undefined if it does not exist`,
      )
      const loaded = found as Awaited<ReturnType<Store['load']>>
      const written = records.get(`${kind} ${id}`)
      if (loaded && written && (written.last?.version ?? 0) < loaded.version) {
        written.last = placesOf(loaded)
      }
      return loaded
    },
    async list(query) {
      const page: unknown = await answerOf('list', store.list(query))
      demand(
        isObject(page) && Array.isArray(page['records']) && typeof page['more'] === 'boolean',
        () => `list returned ${show(page)}; expected { records: [...], more: true or false }`,
      )
      return page as unknown as RecordPage
    },
    async due(kind, namespace, before, limit) {
      const found: unknown = await answerOf('due', store.due(kind, namespace, before, limit))
      demand(
        Array.isArray(found),
        () => `due returned ${show(found)}; expected an array of records`,
      )
      return found
    },
  }
}

function checkedWrites(store: Store, ledger: Ledger): Pick<Store, 'commit' | 'remove'> {
  return {
    async commit(requested) {
      const commit = withPrevious(ledger, requested)
      const size = commitSizeOf(commit)
      if (size > storeBounds.commitSize) throw new Error(`the case commits ${size} at once`)
      // The case may change its records during the commit.
      const places = commit.changes.map(({ kind, next }) => ({
        written: note(ledger, kind, next.id),
        last: placesOf(next),
      }))
      const committed = boolean('commit', await answerOf('commit', store.commit(commit)))
      for (const { written, last } of committed ? places : []) {
        const isLater = last.version > (written.last?.version ?? 0)
        if (isLater || last.version === 1) written.last = last
      }
      return committed
    },
    async remove(kind, id, version) {
      const removed = boolean('remove', await answerOf('remove', store.remove(kind, id, version)))
      const written = ledger.records.get(`${kind} ${id}`)
      if (removed && written?.last?.version === version) written.last = undefined
      return removed
    },
  }
}

/** Wraps a store so that committed records get the members of real ones, which reads remove. */
export function dressedStore(store: Store, { dress, undress }: Dresser): Store {
  const readAll = store.loadAll?.bind(store)
  return {
    ...store,
    ...(readAll && {
      async loadAll(keys) {
        const found = await readAll(keys)
        return found.map((each, i) => each && undress(keys[i]?.kind ?? 'event', each, 'loadAll'))
      },
    }),
    async load(kind, id) {
      const found = await store.load(kind, id)
      return found && undress(kind, found, 'load')
    },
    commit({ changes, guards }) {
      const dressed = changes.map((change) => ({
        ...change,
        next: dress(change.kind, change.next),
      }))
      return store.commit({ changes: dressed, guards })
    },
    async list(query) {
      const { records, more } = await store.list(query)
      return { records: records.map((found) => undress(query.kind, found, 'list')), more }
    },
    async due(kind, ...query) {
      return (await store.due(kind, ...query)).map((found) => undress(kind, found, 'due'))
    },
  }
}

/** Removes everything that a trial wrote. Rejects if the store does not remove it. */
export async function removeWritten(store: Store, { records }: Ledger): Promise<void> {
  const left = [...records.values()]
  async function work(): Promise<void> {
    for (let written = left.pop(); written !== undefined; written = left.pop()) {
      await removeOne(store, written)
    }
  }
  await Promise.all(Array.from({ length: 16 }, work))
}

async function removeOne(store: Store, { kind, id, last }: Written): Promise<void> {
  if (last !== undefined && (await store.remove(kind, id, last.version))) return
  const found = await store.load(kind, id)
  if (found === undefined || (await store.remove(kind, id, found.version))) return
  throw new Error(
    `the suite could not remove its record, ${kind} ${id} at version ${found.version}`,
  )
}

async function answerOf<Answer>(method: string, answer: Promise<Answer>): Promise<Answer> {
  try {
    return await answer
  } catch (error) {
    const problem = error instanceof Error ? error.message : show(error)
    throw new Error(
      `${method} rejected, which means that its outcome is unknown. While the database is available, ` +
        'return false for a conflict with another writer, and retry serialization failures and ' +
        `deadlocks. It rejected with: ${problem}`,
      { cause: error },
    )
  }
}

function boolean(method: string, answer: unknown): boolean {
  demand(
    typeof answer === 'boolean',
    () => `${method} returned ${show(answer)}; expected true or false`,
  )
  return answer
}
