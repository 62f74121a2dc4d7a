import {
  type Commit,
  type RecordChange,
  type RecordKind,
  type Store,
  type Stored,
  storeBounds,
  type VersionGuard,
} from '../../../src/index.js'
import { commitSizeOf } from '../../../src/testing/conformance/trial.js'

/** Waits as long as a step in a real database might take. */
export async function pause(steps = 3): Promise<void> {
  for (let i = 0; i < steps; i++) await undefined
}

async function versionIn(store: Store, kind: RecordKind, id: string): Promise<number> {
  return (await store.load(kind, id))?.version ?? 0
}

/** The same change, but expecting the currently stored version. */
async function overwriting(store: Store, change: RecordChange): Promise<RecordChange> {
  return { ...change, expectedVersion: await versionIn(store, change.kind, change.next.id) }
}

async function guardsHold(store: Store, guards: readonly VersionGuard[]): Promise<boolean> {
  for (const { kind, id, version } of guards) {
    if ((await versionIn(store, kind, id)) !== version) return false
  }
  return true
}

/** The last write wins, whatever version the writer read. */
export function lastWriteWins(store: Store): Store {
  return {
    ...store,
    async commit({ changes }) {
      for (const change of changes) {
        await store.commit({ changes: [await overwriting(store, change)], guards: [] })
      }
      return true
    },
  }
}

/** Checks the versions, waits, and overwrites intermediate changes. */
export function checkThenAct(store: Store, between: () => Promise<unknown> = () => pause()): Store {
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
export function locksInProcess(store: Store): Store {
  return oneAtATime(checkThenAct(store))
}

/** Locks the guarded records within one process only; what it changes is correct in all processes. */
export function guardsInProcess(store: Store): Store {
  return oneAtATime(guardsFirst(store, () => pause(30)))
}

/** @param queue The commits of one process; the same for two stores that share a lock. */
function oneAtATime(store: Store, queue: Queue = { last: Promise.resolve() }): Store {
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

const queues = new WeakMap<Store, Queue>()

function queueOf(store: Store): Queue {
  const queue = queues.get(store) ?? { last: Promise.resolve() }
  queues.set(store, queue)
  return queue
}

/** Replaces a record that must not exist, instead of failing. */
export function upsert(store: Store): Store {
  return {
    ...store,
    async commit({ changes, guards }) {
      const lenient = await Promise.all(
        changes.map((change) =>
          change.expectedVersion === 0 ? overwriting(store, change) : change,
        ),
      )
      return store.commit({ changes: lenient, guards })
    },
  }
}

/** Creates a record that was to be replaced but does not exist, or no longer exists. */
export function resurrects(store: Store): Store {
  return {
    ...store,
    async commit({ changes, guards }) {
      const lenient = await Promise.all(
        changes.map(async (change) => {
          const absent = (await versionIn(store, change.kind, change.next.id)) === 0
          return absent ? { ...change, expectedVersion: 0 } : change
        }),
      )
      return store.commit({ changes: lenient, guards })
    },
  }
}

/** Accepts any expected version that is not older than the stored one. */
export function takesLaterVersions(store: Store): Store {
  return {
    ...store,
    async commit({ changes, guards }) {
      const lenient = await Promise.all(
        changes.map(async (change) => {
          const { expectedVersion } = await overwriting(store, change)
          const later = expectedVersion > 0 && change.expectedVersion > expectedVersion
          return later ? { ...change, expectedVersion } : change
        }),
      )
      return store.commit({ changes: lenient, guards })
    },
  }
}

/** Compares weakly: replaces an existing record whose version is not expected, if `accepts` says so. */
function comparing(
  store: Store,
  accepts: (change: RecordChange, stored: number, commit: Commit) => boolean,
): Store {
  return {
    ...store,
    async commit(commit) {
      const changes = await Promise.all(
        commit.changes.map(async (change) => {
          const { expectedVersion } = await overwriting(store, change)
          const exists = change.expectedVersion > 0 && expectedVersion > 0
          return exists && accepts(change, expectedVersion, commit)
            ? { ...change, expectedVersion }
            : change
        }),
      )
      return store.commit({ ...commit, changes })
    },
  }
}

/** Accepts an expected version that is older than the stored one: the writer has missed a change. */
export function takesOlderVersions(store: Store): Store {
  return comparing(store, ({ expectedVersion }, stored) => expectedVersion < stored)
}

/** Compares only whether a record exists. */
export function takesAnyVersion(store: Store): Store {
  return comparing(store, () => true)
}

/** Compares only whether a record exists, if its commit also writes records of other kinds. */
export function takesAnyVersionBesideOthers(store: Store): Store {
  return comparing(store, ({ kind }, _, { changes }) => changes.some((each) => each.kind !== kind))
}

/** Compares budgets before the commit, and then overwrites them. Other records are compared by the commit. */
export function comparesBudgetsFirst(store: Store): Store {
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
export function comparesBudgetsFirstBesidePayments(store: Store): Store {
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
export function halfCommit(store: Store): Store {
  return {
    ...store,
    async commit({ changes, guards }) {
      if (!(await store.commit({ changes: [], guards }))) return false
      for (const change of changes) {
        if (!(await store.commit({ changes: [change], guards: [] }))) return false
      }
      return true
    },
  }
}

/** Commits all or nothing eventually, but makes the records visible one after the other. */
export function writesOneByOne(store: Store): Store {
  let last: Promise<unknown> = Promise.resolve()
  const write = async ({ changes, guards }: Commit): Promise<boolean> => {
    const expected = changes.map(({ kind, next, expectedVersion }) => {
      return { kind, id: next.id, version: expectedVersion }
    })
    if (!(await guardsHold(store, [...expected, ...guards]))) return false
    for (const change of changes) {
      await store.commit({ changes: [change], guards: [] })
      await pause(24)
    }
    return true
  }
  return {
    ...store,
    commit(commit) {
      const answer = last.then(() => write(commit))
      last = answer.catch(() => undefined)
      return answer
    },
  }
}

/** Writes the changes of one kind after the other, in an order of the kinds. */
function kindByKind(store: Store, compare: (a: RecordKind, b: RecordKind) => number): Store {
  const written: Store = {
    ...store,
    async commit({ changes, guards }) {
      const expected = changes.map(({ kind, next, expectedVersion }) => {
        return { kind, id: next.id, version: expectedVersion }
      })
      if (!(await guardsHold(store, [...expected, ...guards]))) return false
      const kinds = [...new Set(changes.map(({ kind }) => kind))].sort(compare)
      for (const kind of kinds) {
        const own = changes.filter((each) => each.kind === kind)
        await store.commit({ changes: own, guards: [] })
        await pause(24)
      }
      return true
    },
  }
  return oneAtATime(written, queueOf(store))
}

/** Commits each kind as a whole, and makes the kinds visible one after the other. */
export function writesKindByKind(store: Store): Store {
  return kindByKind(store, (a, b) => (a < b ? -1 : 1))
}

/** Makes the kinds visible in the other order. */
export function writesKindByKindReversed(store: Store): Store {
  return kindByKind(store, (a, b) => (a > b ? -1 : 1))
}

/** Makes one kind visible later than another, only in a commit of just these two. */
export function writesPairOneByOne(one: RecordKind, other: RecordKind) {
  return (store: Store): Store => {
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
export function rejectsLargeCommits(store: Store): Store {
  return {
    ...store,
    async commit(commit) {
      if (commit.changes.length > itemsMax) throw new Error('too many items in the transaction')
      return store.commit(commit)
    },
  }
}

/** Rejects a commit of the greatest size, and no smaller one. */
export function rejectsGreatestCommits(store: Store): Store {
  return {
    ...store,
    async commit(commit) {
      if (commitSizeOf(commit) >= storeBounds.commitSize) throw new Error('too many items')
      return store.commit(commit)
    },
  }
}

/** Resolves to false for a commit of more than 25 changes. */
export function losesLargeCommits(store: Store): Store {
  return {
    ...store,
    commit: async (commit) => commit.changes.length <= itemsMax && store.commit(commit),
  }
}

/** Writes the first 25 changes only. */
export function truncatesLargeCommits(store: Store): Store {
  return {
    ...store,
    commit: ({ changes, guards }) => store.commit({ changes: changes.slice(0, itemsMax), guards }),
  }
}

/** Writes 25 changes at a time, and stops at the first part that loses. */
export function splitsLargeCommits(store: Store): Store {
  return {
    ...store,
    async commit({ changes, guards }) {
      for (let from = 0; from === 0 || from < changes.length; from += itemsMax) {
        const some = changes.slice(from, from + itemsMax)
        if (!(await store.commit({ changes: some, guards: from === 0 ? guards : [] }))) return false
      }
      return true
    },
  }
}

/** Compares the first 25 guards only. */
export function truncatesGuards(store: Store): Store {
  return {
    ...store,
    commit: ({ changes, guards }) => store.commit({ changes, guards: guards.slice(0, itemsMax) }),
  }
}

/** Throws the database error when a record already exists. */
export function rejectsDuplicates(store: Store): Store {
  return {
    ...store,
    async commit(commit) {
      const committed = await store.commit(commit)
      const creates = commit.changes.some(({ expectedVersion }) => expectedVersion === 0)
      if (!committed && creates) throw new Error('duplicate key value violates unique constraint')
      return committed
    },
  }
}

/** Resolves to the number of rows written, and to null for an absent record. */
export function answersLikeTheDriver(store: Store): Store {
  return {
    ...store,
    load: async (kind, id) => (await store.load(kind, id)) ?? (null as unknown as undefined),
    async commit(commit) {
      return ((await store.commit(commit)) ? commit.changes.length : 0) as unknown as boolean
    },
  }
}

/** Keeps the first record of a commit and drops the others. */
export function firstOnly(store: Store): Store {
  return {
    ...store,
    commit: ({ changes, guards }) => store.commit({ changes: changes.slice(0, 1), guards }),
  }
}

/** Drops the events of a commit that also changes other records. */
export function losesEvents(store: Store): Store {
  return {
    ...store,
    commit({ changes, guards }) {
      const others = changes.filter(({ kind }) => kind !== 'event')
      return store.commit({ changes: others.length === 0 ? changes : others, guards })
    },
  }
}

/** Writes events first and separately, so that they report changes that then fail. */
export function eventsFirst(store: Store): Store {
  return {
    ...store,
    async commit({ changes, guards }) {
      const events = changes.filter(({ kind }) => kind === 'event')
      if (events.length === 0) return store.commit({ changes, guards })
      const others = changes.filter(({ kind }) => kind !== 'event')
      if (!(await store.commit({ changes: events, guards: [] }))) return false
      return store.commit({ changes: others, guards })
    },
  }
}

export function ignoresGuards(store: Store): Store {
  return { ...store, commit: ({ changes }) => store.commit({ changes, guards: [] }) }
}

/** Checks only one guard. */
export function firstGuardOnly(store: Store): Store {
  return {
    ...store,
    commit: ({ changes, guards }) => store.commit({ changes, guards: guards.slice(0, 1) }),
  }
}

/** Checks the guards of existing records only. */
export function guardsOnlyWhatExists(store: Store): Store {
  return {
    ...store,
    async commit({ changes, guards }) {
      const versions = await Promise.all(guards.map(({ kind, id }) => versionIn(store, kind, id)))
      return store.commit({ changes, guards: guards.filter((_, i) => versions[i] !== 0) })
    },
  }
}

/** Checks the guards before the write, but not atomically with it. */
export function guardsFirst(store: Store, between: () => Promise<unknown> = () => pause()): Store {
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
export function writesGuards(store: Store): Store {
  return {
    ...store,
    async commit({ changes, guards }) {
      const touched = await Promise.all(
        guards.map(async ({ kind, id, version }) => {
          const found: Stored = (await store.load(kind, id)) ?? { id, version, commandId: '' }
          return { kind, next: { ...found, version: version + 1 }, expectedVersion: version }
        }),
      )
      return store.commit({ changes: [...changes, ...touched], guards: [] })
    },
  }
}

/** Compares a guard's version with any record of that id, regardless of its kind. */
export function guardsAnyKind(store: Store): Store {
  return {
    ...store,
    commit: ({ changes, guards }) =>
      store.commit({
        changes,
        guards: guards.map((each) => ({ ...each, kind: 'grant' as const })),
      }),
  }
}

/** Skips the checks of a commit without changes. */
export function skipsGuardsAlone(store: Store): Store {
  return {
    ...store,
    commit: async (commit) => (commit.changes.length === 0 ? true : store.commit(commit)),
  }
}

/** Resolves to false for a commit without changes. */
export function refusesNothing(store: Store): Store {
  return {
    ...store,
    commit: async (commit) => (commit.changes.length === 0 ? false : store.commit(commit)),
  }
}

/** Resolves a repeated commit to the result of the first one. */
export function remembersCommits(store: Store): Store {
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
export function retriesWhatLanded(store: Store): Store {
  return {
    ...store,
    async commit(commit) {
      await store.commit(commit)
      return store.commit(commit)
    },
  }
}

/** Fails concurrent commits, like a database whose serialization failures the store does not retry. */
export function failsUnderContention(store: Store): Store {
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
export function losesSpuriously(store: Store): Store {
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
export function deadlocks(store: Store): Store {
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
export function removesAnyVersion(store: Store): Store {
  return {
    ...store,
    remove: async (kind, id) => store.remove(kind, id, await versionIn(store, kind, id)),
  }
}

/** Checks the version, waits, and removes the then current record. */
export function checkThenRemove(store: Store): Store {
  return {
    ...store,
    async remove(kind, id, version) {
      if (version === 0 || (await versionIn(store, kind, id)) !== version) return false
      await pause()
      await store.remove(kind, id, await versionIn(store, kind, id))
      return true
    },
  }
}

/** Reports that a record was removed because it does not exist now. */
export function removesWhatIsNotThere(store: Store): Store {
  return {
    ...store,
    async remove(kind, id, version) {
      await store.remove(kind, id, version)
      return (await versionIn(store, kind, id)) === 0
    },
  }
}
