import type { Change, Commit, Guard, Kind, Store, Stored } from '../../../src/index.js'

/** Waits as long as a step of a real database might. */
export async function pause(steps = 3): Promise<void> {
  for (let i = 0; i < steps; i++) await undefined
}

async function versionIn(store: Store, kind: Kind, id: string): Promise<number> {
  return (await store.load(kind, id))?.version ?? 0
}

/** The same change, expecting whatever is stored now. */
async function overwriting(store: Store, change: Change): Promise<Change> {
  return { ...change, expectedVersion: await versionIn(store, change.kind, change.next.id) }
}

async function guardsHold(store: Store, guards: readonly Guard[]): Promise<boolean> {
  for (const { kind, id, version } of guards) {
    if ((await versionIn(store, kind, id)) !== version) return false
  }
  return true
}

/** Whoever writes last wins, whatever version it had seen. */
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

/** Checks the versions, looks away, and writes over whatever has happened meanwhile. */
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

/** Lets one commit at a time through and only then checks and acts: right in one process, and nowhere else. */
export function locksInProcess(store: Store): Store {
  const unlocked = checkThenAct(store)
  let last: Promise<unknown> = Promise.resolve()
  return {
    ...store,
    commit(commit) {
      const answer = last.then(() => unlocked.commit(commit))
      last = answer.catch(() => undefined)
      return answer
    },
  }
}

/** Creating a record that exists already replaces it instead of failing. */
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

/** Replacing a record that does not exist, or not any more, creates it. */
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

/** Takes any version that is not older than the one stored. */
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

/** All or nothing in the end, but one record after the other. */
export function writesOneByOne(store: Store): Store {
  let last: Promise<unknown> = Promise.resolve()
  const write = async ({ changes, guards }: Commit): Promise<boolean> => {
    const expected = changes.map(({ kind, next, expectedVersion }) => {
      return { kind, id: next.id, version: expectedVersion }
    })
    if (!(await guardsHold(store, [...expected, ...guards]))) return false
    for (const change of changes) {
      await store.commit({ changes: [change], guards: [] })
      await pause()
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

/** Throws what the database says when a record is there already. */
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

/** Answers how many rows it wrote, and null for a record that is not there. */
export function answersLikeTheDriver(store: Store): Store {
  return {
    ...store,
    load: async (kind, id) => (await store.load(kind, id)) ?? (null as unknown as undefined),
    async commit(commit) {
      return ((await store.commit(commit)) ? commit.changes.length : 0) as unknown as boolean
    },
  }
}

/** Keeps the first record of a commit and forgets the others. */
export function firstOnly(store: Store): Store {
  return {
    ...store,
    commit: ({ changes, guards }) => store.commit({ changes: changes.slice(0, 1), guards }),
  }
}

/** Drops the events of a commit that also writes something else. */
export function losesEvents(store: Store): Store {
  return {
    ...store,
    commit({ changes, guards }) {
      const others = changes.filter(({ kind }) => kind !== 'event')
      return store.commit({ changes: others.length === 0 ? changes : others, guards })
    },
  }
}

/** Writes events first and by themselves, so that they tell of what then does not happen. */
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

/** Looks at one guard only. */
export function firstGuardOnly(store: Store): Store {
  return {
    ...store,
    commit: ({ changes, guards }) => store.commit({ changes, guards: guards.slice(0, 1) }),
  }
}

/** Checks the guards of what exists, and lets the others pass. */
export function guardsOnlyWhatExists(store: Store): Store {
  return {
    ...store,
    async commit({ changes, guards }) {
      const versions = await Promise.all(guards.map(({ kind, id }) => versionIn(store, kind, id)))
      return store.commit({ changes, guards: guards.filter((_, i) => versions[i] !== 0) })
    },
  }
}

/** Checks the guards before it writes, and not together with it. */
export function guardsFirst(store: Store): Store {
  return {
    ...store,
    async commit({ changes, guards }) {
      if (!(await guardsHold(store, guards))) return false
      await pause()
      return store.commit({ changes, guards: [] })
    },
  }
}

/** Writes what it guards, so that everybody else who guards it is lost. */
export function writesGuards(store: Store): Store {
  return {
    ...store,
    async commit({ changes, guards }) {
      const touched = await Promise.all(
        guards.map(async ({ kind, id, version }) => {
          const found: Stored = (await store.load(kind, id)) ?? { id, version, by: '' }
          return { kind, next: { ...found, version: version + 1 }, expectedVersion: version }
        }),
      )
      return store.commit({ changes: [...changes, ...touched], guards: [] })
    },
  }
}

/** Takes the guard's version to be about any record of that id, whatever its kind. */
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

/** Believes that a commit without changes has nothing to check. */
export function skipsGuardsAlone(store: Store): Store {
  return {
    ...store,
    commit: async (commit) => (commit.changes.length === 0 ? true : store.commit(commit)),
  }
}

/** Answers false to a commit that has nothing to write. */
export function refusesNothing(store: Store): Store {
  return {
    ...store,
    commit: async (commit) => (commit.changes.length === 0 ? false : store.commit(commit)),
  }
}

/** A commit that is repeated is answered as it was the first time. */
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

/** A driver that sends a write again when its answer is late, and tells what the second one brought. */
export function retriesWhatLanded(store: Store): Store {
  return {
    ...store,
    async commit(commit) {
      await store.commit(commit)
      return store.commit(commit)
    },
  }
}

/** Fails whoever meets another commit, as a database does whose serialization failures nobody retries. */
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

/** Lets one commit at a time through, and answers false to the others without looking. */
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

/** Locks records in the order in which a commit names them, so that two commits wait for each other. */
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

/** Removes a record whatever its version. */
export function removesAnyVersion(store: Store): Store {
  return {
    ...store,
    remove: async (kind, id) => store.remove(kind, id, await versionIn(store, kind, id)),
  }
}

/** Checks the version, looks away, and removes whatever is there by then. */
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

/** Says that a record was removed, since it is not there now. */
export function removesWhatIsNotThere(store: Store): Store {
  return {
    ...store,
    async remove(kind, id, version) {
      await store.remove(kind, id, version)
      return (await versionIn(store, kind, id)) === 0
    },
  }
}
