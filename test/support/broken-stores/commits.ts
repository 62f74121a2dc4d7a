import {
  type Commit,
  type RecordChange,
  type RecordKind,
  type Stored,
  storeBounds,
  type VersionGuard,
} from 'open-payments-server/adapter'
import { commitSizeOf } from '../bounded-store.js'
import type { OneRecordStore } from './one-record.js'

/** Waits as long as a step in a real database might take. */
export async function pause(steps = 3): Promise<void> {
  for (let i = 0; i < steps; i++) await undefined
}

/** A fault of a store. */
export type Break = (store: OneRecordStore) => OneRecordStore

type Operation = 'load' | 'commit' | 'list' | 'due' | 'remove'

/** Replaces one operation of a store. */
export function on<Name extends Operation>(
  name: Name,
  operate: (
    store: OneRecordStore,
    ...given: Parameters<OneRecordStore[Name]>
  ) => ReturnType<OneRecordStore[Name]>,
): Break {
  return (store) => ({
    ...store,
    [name]: (...given: Parameters<OneRecordStore[Name]>) => operate(store, ...given),
  })
}

/** Changes each change of a commit before it is written. */
function rewriting(
  rewrite: (change: RecordChange, stored: number, commit: Commit) => RecordChange,
): Break {
  return on('commit', async (store, commit) => {
    const changes = commit.changes.map(async (change) =>
      rewrite(change, await versionIn(store, change.kind, change.next.id), commit),
    )
    return store.commit({ ...commit, changes: await Promise.all(changes) })
  })
}

async function versionIn(store: OneRecordStore, kind: RecordKind, id: string): Promise<number> {
  return (await store.load(kind, id))?.version ?? 0
}

/** The same change, but expecting the currently stored version. */
async function overwriting(store: OneRecordStore, change: RecordChange): Promise<RecordChange> {
  return { ...change, expectedVersion: await versionIn(store, change.kind, change.next.id) }
}

async function guardsHold(
  store: OneRecordStore,
  guards: readonly VersionGuard[],
): Promise<boolean> {
  for (const { kind, id, version } of guards) {
    if ((await versionIn(store, kind, id)) !== version) return false
  }
  return true
}

/** The last write wins, whatever version the writer read. */
export const lastWriteWins = on('commit', async (store, { changes }) => {
  for (const change of changes) {
    await store.commit({ changes: [await overwriting(store, change)], guards: [] })
  }
  return true
})

/** Checks the versions, waits, and overwrites intermediate changes. */
export function checkThenAct(
  store: OneRecordStore,
  between: () => Promise<unknown> = () => pause(),
): OneRecordStore {
  const blind = lastWriteWins(store)
  return {
    ...store,
    async commit(commit) {
      for (const { kind, next, expectedVersion } of commit.changes) {
        if ((await versionIn(store, kind, next.id)) !== expectedVersion) return false
      }
      if (!(await guardsHold(store, commit.guards))) return false
      await between()
      return blind.commit(commit)
    },
  }
}

/** Serializes commits, and then checks and writes: this is correct within one process only. */
export function locksInProcess(store: OneRecordStore): OneRecordStore {
  return oneAtATime(checkThenAct(store))
}

/** Locks the guarded records within one process only; what it changes is correct in all processes. */
export function guardsInProcess(store: OneRecordStore): OneRecordStore {
  return oneAtATime(guardsFirst(store, () => pause(30)))
}

/** @param queue The commits of one process; the same for two stores that share a lock. */
function oneAtATime(
  store: OneRecordStore,
  queue: Queue = { last: Promise.resolve() },
): OneRecordStore {
  return {
    ...store,
    commit(commit) {
      const answer = queue.last.then(() => store.commit(commit))
      queue.last = answer.catch(() => undefined)
      return answer
    },
  }
}

interface Queue {
  last: Promise<unknown>
}

const queues = new WeakMap<OneRecordStore, Queue>()

function queueOf(store: OneRecordStore): Queue {
  const queue = queues.get(store) ?? { last: Promise.resolve() }
  queues.set(store, queue)
  return queue
}

/** Replaces a record that must not exist, instead of failing. */
export const upsert = rewriting((change, stored) =>
  change.expectedVersion === 0 ? { ...change, expectedVersion: stored } : change,
)

/** Creates a record that was to be replaced but does not exist, or no longer exists. */
export const resurrects = rewriting((change, stored) =>
  stored === 0 ? { ...change, expectedVersion: 0 } : change,
)

/** Compares weakly: replaces an existing record whose version is not expected, if `accepts` says so. */
function comparing(accepts: (change: RecordChange, stored: number, commit: Commit) => boolean) {
  return rewriting((change, stored, commit) =>
    change.expectedVersion > 0 && stored > 0 && accepts(change, stored, commit)
      ? { ...change, expectedVersion: stored }
      : change,
  )
}

/** Accepts any expected version that is not older than the stored one. */
export const takesLaterVersions = comparing((change, stored) => change.expectedVersion > stored)

/** Accepts an expected version that is older than the stored one: the writer has missed a change. */
export const takesOlderVersions = comparing((change, stored) => change.expectedVersion < stored)

/** Compares only whether a record exists. */
export const takesAnyVersion = comparing(() => true)

/** Compares only whether a record exists, if its commit also writes records of other kinds. */
export const takesAnyVersionBesideOthers = comparing(({ kind }, _, { changes }) =>
  changes.some((each) => each.kind !== kind),
)

/** Compares budgets before the commit, and then overwrites them. Other records are compared by the commit. */
export function comparesBudgetsFirst(store: OneRecordStore): OneRecordStore {
  const overwriter = oneAtATime({
    ...store,
    async commit({ changes, guards }) {
      const current = changes.map((each) =>
        each.kind === 'budget' ? overwriting(store, each) : each,
      )
      return store.commit({ changes: await Promise.all(current), guards })
    },
  })
  return {
    ...store,
    async commit(commit) {
      for (const { kind, next, expectedVersion } of commit.changes) {
        if (kind !== 'budget') continue
        if ((await versionIn(store, kind, next.id)) !== expectedVersion) return false
      }
      await pause()
      return overwriter.commit(commit)
    },
  }
}

/** Does so only beside a payment, as if the statement that creates payments alone were wrong. */
export function comparesBudgetsFirstBesidePayments(store: OneRecordStore): OneRecordStore {
  const broken = comparesBudgetsFirst(store)
  return {
    ...store,
    commit(commit) {
      const pays = commit.changes.some(({ kind }) => kind === 'outgoing-payment')
      return (pays ? broken : store).commit(commit)
    },
  }
}

/** Writes record by record, and stops at the first that cannot be written. */
export const halfCommit = on('commit', async (store, { changes, guards }) => {
  if (!(await store.commit({ changes: [], guards }))) return false
  for (const change of changes) {
    if (!(await store.commit({ changes: [change], guards: [] }))) return false
  }
  return true
})

/** Writes parts of a commit one after the other, once it knows that it can write all. */
function writesParts(
  partsOf: (changes: readonly RecordChange[]) => readonly (readonly RecordChange[])[],
): Break {
  const written = on('commit', async (store, { changes, guards }) => {
    const expected = changes.map(({ kind, next, expectedVersion }) => {
      return { kind, id: next.id, version: expectedVersion }
    })
    if (!(await guardsHold(store, [...expected, ...guards]))) return false
    for (const part of partsOf(changes)) {
      await store.commit({ changes: part, guards: [] })
      await pause(24)
    }
    return true
  })
  return (store) => oneAtATime(written(store), queueOf(store))
}

/** Commits all or nothing eventually, but makes the records visible one after the other. */
export const writesOneByOne = writesParts((changes) => changes.map((change) => [change]))

const kindByKind = (compare: (a: RecordKind, b: RecordKind) => number) =>
  writesParts((changes) => {
    const kinds = [...new Set(changes.map(({ kind }) => kind))].sort(compare)
    return kinds.map((kind) => changes.filter((each) => each.kind === kind))
  })

/** Commits each kind as a whole, and makes the kinds visible one after the other. */
export const writesKindByKind = kindByKind((a, b) => (a < b ? -1 : 1))

/** Makes the kinds visible in the other order. */
export const writesKindByKindReversed = kindByKind((a, b) => (a > b ? -1 : 1))

/** Makes one kind visible later than another, only in a commit of just these two. */
export function writesPairOneByOne(one: RecordKind, other: RecordKind) {
  return (store: OneRecordStore): OneRecordStore => {
    const broken = writesKindByKind(store)
    // All commits wait for each other, so that only what a reader sees is wrong.
    const others = oneAtATime(store, queueOf(store))
    return {
      ...store,
      commit(commit) {
        const kinds = new Set(commit.changes.map(({ kind }) => kind))
        const isPair = kinds.size === 2 && kinds.has(one) && kinds.has(other)
        return (isPair ? broken : others).commit(commit)
      },
    }
  }
}

/** As many statements as one transaction of some databases may have. */
const itemsMax = 25

/** Rejects a commit of more than 25 changes, as a database with that limit does. */
export const rejectsLargeCommits = on('commit', async (store, commit) => {
  if (commit.changes.length > itemsMax) throw new Error('too many items in the transaction')
  return store.commit(commit)
})

/** Rejects a commit of the maximum size, and no smaller one. */
export const rejectsGreatestCommits = on('commit', async (store, commit) => {
  if (commitSizeOf(commit) >= storeBounds.commitSize) throw new Error('too many items')
  return store.commit(commit)
})

/** Resolves to false for a commit of more than 25 changes. */
export const losesLargeCommits = on(
  'commit',
  async (store, commit) => commit.changes.length <= itemsMax && store.commit(commit),
)

/** Writes the first 25 changes only. */
export const truncatesLargeCommits = on('commit', (store, { changes, guards }) =>
  store.commit({ changes: changes.slice(0, itemsMax), guards }),
)

/** Writes 25 changes at a time, and stops at the first part that loses. */
export const splitsLargeCommits = on('commit', async (store, { changes, guards }) => {
  for (let from = 0; from === 0 || from < changes.length; from += itemsMax) {
    const some = changes.slice(from, from + itemsMax)
    if (!(await store.commit({ changes: some, guards: from === 0 ? guards : [] }))) return false
  }
  return true
})

/** Compares the first 25 guards only. */
export const truncatesGuards = on('commit', (store, { changes, guards }) =>
  store.commit({ changes, guards: guards.slice(0, itemsMax) }),
)

/** Throws the database error when a record already exists. */
export const rejectsDuplicates = on('commit', async (store, commit) => {
  const committed = await store.commit(commit)
  const creates = commit.changes.some(({ expectedVersion }) => expectedVersion === 0)
  if (!committed && creates) throw new Error('duplicate key value violates unique constraint')
  return committed
})

/** Resolves to the number of rows written, and to null for an absent record. */
export function answersLikeTheDriver(store: OneRecordStore): OneRecordStore {
  return {
    ...store,
    load: async (kind, id) => (await store.load(kind, id)) ?? (null as unknown as undefined),
    async commit(commit) {
      return ((await store.commit(commit)) ? commit.changes.length : 0) as unknown as boolean
    },
  }
}

/** Keeps the first record of a commit and drops the others. */
export const firstOnly = on('commit', (store, { changes, guards }) =>
  store.commit({ changes: changes.slice(0, 1), guards }),
)

/** Drops the events of a commit that also changes other records. */
export const losesEvents = on('commit', (store, { changes, guards }) => {
  const others = changes.filter(({ kind }) => kind !== 'event')
  return store.commit({ changes: others.length === 0 ? changes : others, guards })
})

/** Writes events first and separately, so that they report changes that then fail. */
export const eventsFirst = on('commit', async (store, { changes, guards }) => {
  const events = changes.filter(({ kind }) => kind === 'event')
  if (events.length === 0) return store.commit({ changes, guards })
  const others = changes.filter(({ kind }) => kind !== 'event')
  if (!(await store.commit({ changes: events, guards: [] }))) return false
  return store.commit({ changes: others, guards })
})

export const ignoresGuards = on('commit', (store, { changes }) =>
  store.commit({ changes, guards: [] }),
)

/** Checks only one guard. */
export const firstGuardOnly = on('commit', (store, { changes, guards }) =>
  store.commit({ changes, guards: guards.slice(0, 1) }),
)

/** Checks the guards of existing records only. */
export const guardsOnlyWhatExists = on('commit', async (store, { changes, guards }) => {
  const versions = await Promise.all(guards.map(({ kind, id }) => versionIn(store, kind, id)))
  return store.commit({ changes, guards: guards.filter((_, i) => versions[i] !== 0) })
})

/** Checks the guards before the write, but not atomically with it. */
export function guardsFirst(
  store: OneRecordStore,
  between: () => Promise<unknown> = () => pause(),
): OneRecordStore {
  return {
    ...store,
    async commit({ changes, guards }) {
      if (!(await guardsHold(store, guards))) return false
      if (guards.length > 0) await between()
      return store.commit({ changes, guards: [] })
    },
  }
}

/** Writes the guarded records, so that concurrent commits with the same guard fail. */
export const writesGuards = on('commit', async (store, { changes, guards }) => {
  const touched = await Promise.all(
    guards.map(async ({ kind, id, version }) => {
      const found: Stored = (await store.load(kind, id)) ?? { id, version, commandId: '' }
      return { kind, next: { ...found, version: version + 1 }, expectedVersion: version }
    }),
  )
  return store.commit({ changes: [...changes, ...touched], guards: [] })
})

/** Compares a guard's version with any record of that id, regardless of its kind. */
export const guardsAnyKind = on('commit', (store, { changes, guards }) =>
  store.commit({
    changes,
    guards: guards.map((each) => ({ ...each, kind: 'grant' as const })),
  }),
)

/** Skips the checks of a commit without changes. */
export const skipsGuardsAlone = on('commit', async (store, commit) =>
  commit.changes.length === 0 ? true : store.commit(commit),
)

/** Resolves to false for a commit without changes. */
export const refusesNothing = on('commit', async (store, commit) =>
  commit.changes.length === 0 ? false : store.commit(commit),
)

/** Resolves a repeated commit to the result of the first one. */
export function remembersCommits(store: OneRecordStore): OneRecordStore {
  const done = new Set<string>()
  return {
    ...store,
    async commit(commit) {
      const text = JSON.stringify(commit)
      if (done.has(text)) return true
      const committed = await store.commit(commit)
      if (committed) done.add(text)
      return committed
    },
  }
}

/** A driver that repeats a write when the response is late, and returns the result of the second one. */
export const retriesWhatLanded = on('commit', async (store, commit) => {
  await store.commit(commit)
  return store.commit(commit)
})

/** Fails concurrent commits, like a database whose serialization failures the store does not retry. */
export function failsUnderContention(store: OneRecordStore): OneRecordStore {
  let running = 0
  return {
    ...store,
    async commit(commit) {
      if (running > 0) throw new Error('could not serialize access due to concurrent update')
      running += 1
      try {
        return await store.commit(commit)
      } finally {
        running -= 1
      }
    },
  }
}

/** Runs one commit at a time, and resolves the others to false without a check. */
export function losesSpuriously(store: OneRecordStore): OneRecordStore {
  let running = 0
  return {
    ...store,
    async commit(commit) {
      running += 1
      try {
        await pause()
        return running > 1 ? false : await store.commit(commit)
      } finally {
        running -= 1
      }
    },
  }
}

/** Locks records in the order of the commit, so that two commits can deadlock. */
export function deadlocks(store: OneRecordStore): OneRecordStore {
  const locks = new Map<string, Promise<void>>()

  async function lock(key: string): Promise<() => void> {
    const before = locks.get(key) ?? Promise.resolve()
    let release = () => {}
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    locks.set(
      key,
      before.then(() => held),
    )
    await before
    return release
  }

  return {
    ...store,
    async commit(commit: Commit) {
      const held: (() => void)[] = []
      for (const { kind, next } of commit.changes) held.push(await lock(`${kind} ${next.id}`))
      try {
        return await store.commit(commit)
      } finally {
        for (const release of held) release()
      }
    },
  }
}

/** Removes a record regardless of its version. */
export const removesAnyVersion = on('remove', async (store, kind, id) =>
  store.remove(kind, id, await versionIn(store, kind, id)),
)

/** Checks the version, waits, and removes the then current record. */
export const checkThenRemove = on('remove', async (store, kind, id, version) => {
  if (version === 0 || (await versionIn(store, kind, id)) !== version) return false
  await pause()
  await store.remove(kind, id, await versionIn(store, kind, id))
  return true
})

/** Reports that a record was removed because it does not exist now. */
export const removesWhatIsNotThere = on('remove', async (store, kind, id, version) => {
  await store.remove(kind, id, version)
  return (await versionIn(store, kind, id)) === 0
})

/** Removes several records at once, as a store does. */
async function removing(
  store: OneRecordStore,
  records: readonly VersionGuard[],
): Promise<readonly boolean[]> {
  return Promise.all(records.map(({ kind, id, version }) => store.remove(kind, id, version)))
}

/** Compares the version of the first record only. */
export function removesAnyVersionButTheFirst(store: OneRecordStore): OneRecordStore {
  return {
    ...store,
    async removeAll([first, ...others]) {
      const current = others.map(async (each) => {
        return { ...each, version: await versionIn(store, each.kind, each.id) }
      })
      return removing(store, [...(first ? [first] : []), ...(await Promise.all(current))])
    },
  }
}

/** Reports all records as removed, as a driver does that only tells whether it failed. */
export function reportsAllRemoved(store: OneRecordStore): OneRecordStore {
  return {
    ...store,
    async removeAll(records) {
      await removing(store, records)
      return records.map(() => true)
    },
  }
}

/** Reports the removals in the order in which it found the records. */
export function reportsRemovalsInItsOwnOrder(store: OneRecordStore): OneRecordStore {
  return {
    ...store,
    async removeAll(records) {
      const removed = await removing(store, records)
      return removed.toSorted((one, other) => Number(other) - Number(one))
    },
  }
}

/** Removes several records by their ids alone, as if all were of the kind of the first. */
export function removesOfOneKind(store: OneRecordStore): OneRecordStore {
  return {
    ...store,
    async removeAll(records) {
      const [first] = records
      return removing(
        store,
        records.map((each) => ({ ...each, kind: first?.kind ?? each.kind })),
      )
    },
  }
}

/** Removes at most 500 records at once, and ignores the others. */
export function removesFirst500(store: OneRecordStore): OneRecordStore {
  return {
    ...store,
    async removeAll(records) {
      const removed = await removing(store, records.slice(0, 500))
      return records.map((_, i) => removed[i] ?? false)
    },
  }
}

/** Leaves the list entries of records that it removes together. */
export function removesTogetherWithoutPlaces(store: OneRecordStore): OneRecordStore {
  const left: Stored[] = []
  return {
    ...store,
    async removeAll(records) {
      for (const { kind, id } of records) {
        const found = await store.load(kind, id)
        if (found !== undefined) left.push(found)
      }
      return removing(store, records)
    },
    async list(query) {
      const { records, more } = await store.list(query)
      const stale = left.filter(({ lists }) => lists?.some(({ list }) => list === query.list))
      return { records: [...records, ...stale], more }
    },
  }
}
