import type { Commit, RecordChange, Store, Stored } from 'open-payments-server'
import type { CommitOrder } from './history.js'

/** A store that actions are raced on. */
export interface RacingStore {
  readonly store: Store
  /**
   * Runs tasks at once. Each is held at its first commit until all have come to theirs, or have ended: so all
   * have read before any has written, which is where races are lost.
   */
  race<Result>(
    tasks: readonly (() => Promise<Result>)[],
    order: CommitOrder,
  ): Promise<readonly Result[]>
  /** What was committed though it must not have been, in a sentence. */
  problem(): string | undefined
}

interface Held {
  /** What brings the same commits into the same order, however long each took to come here. */
  readonly rank: string
  release(): Promise<unknown>
}

/** Puts a starting gate in front of a store, and watches that nothing is paid under a grant that has ended. */
export function racingStore(store: Store): RacingStore {
  const ended = new Set<string>()
  let problem: string | undefined
  let runners = 0
  let held: Held[] = []
  let order: CommitOrder = 'together'

  async function watched(commit: Commit): Promise<boolean> {
    const paid = commit.changes.find(
      ({ kind, expectedVersion }) => kind === 'outgoing-payment' && expectedVersion === 0,
    )
    const grantId = paid && text(paid.next, 'grantId')
    const tooLate = grantId !== undefined && ended.has(grantId)
    const committed = await store.commit(commit)
    if (!committed) return committed
    if (tooLate) problem = 'a payment was created when its grant had been revoked already'
    for (const { kind, next } of commit.changes) {
      if (kind === 'grant' && text(next, 'state') === 'finalized') ended.add(next.id)
    }
    return committed
  }

  /** Opens the gate once nobody is still on the way. */
  async function openWhenFull(): Promise<void> {
    if (runners === 0 || held.length < runners) return
    const waiting = held.sort((a, b) => (a.rank < b.rank ? -1 : 1))
    runners = 0
    held = []
    if (order === 'together') {
      for (const { release } of waiting) void release()
      return
    }
    if (order === 'in reverse') waiting.reverse()
    for (const { release } of waiting) await release()
  }

  function arrive(commit: Commit): Promise<boolean> {
    return new Promise((resolve, reject) => {
      const release = () => watched(commit).then(resolve, reject)
      held.push({ rank: rankOf(commit.changes), release })
      void openWhenFull()
    })
  }

  return {
    store: {
      load: (kind, id) => store.load(kind, id),
      list: (query) => store.list(query),
      due: (...query) => store.due(...query),
      remove: (...record) => store.remove(...record),
      commit(commit) {
        const racing = runners > 0 && !commit.changes.some(({ kind }) => kind === 'quote')
        return racing ? arrive(commit) : watched(commit)
      },
    },
    race(tasks, commits) {
      runners = tasks.length
      order = commits
      const running = tasks.map(async (task) => {
        try {
          return await task()
        } finally {
          // Whoever has been let through is counted no longer.
          if (runners > 0) {
            runners -= 1
            void openWhenFull()
          }
        }
      })
      return Promise.all(running)
    },
    problem: () => problem,
  }
}

/** By what is written first, and by which request. */
function rankOf(changes: readonly RecordChange[]): string {
  const [first] = changes
  if (first === undefined) return ''
  return `${first.kind} ${JSON.stringify((first.next as { metadata?: unknown }).metadata ?? null)}`
}

function text(record: Stored, member: string): string | undefined {
  const value = (record as unknown as { readonly [name: string]: unknown })[member]
  return typeof value === 'string' ? value : undefined
}
