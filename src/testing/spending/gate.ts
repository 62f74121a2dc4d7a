import type { Commit, RecordChange, Store, Stored } from 'open-payments-server'
import type { CommitOrder } from './history.js'

/** A store on which actions race. */
export interface RacingStore {
  readonly store: Store
  /**
   * Runs tasks concurrently. Each waits at its first commit until all have reached theirs or have ended, so
   * that all read before any writes: this is where races are lost.
   */
  race<Result>(
    tasks: readonly (() => Promise<Result>)[],
    order: CommitOrder,
  ): Promise<readonly Result[]>
  /** A description of a commit that must not have happened, if there was one. */
  problem(): string | undefined
}

interface Held {
  /** Sorts commits into the same order in every run, regardless of when they arrive. */
  readonly rank: string
  release(): Promise<unknown>
}

/** Adds a starting gate to a store, and detects payments that are created under a revoked grant. */
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
    if (tooLate) problem = 'a payment was created after its grant was revoked'
    for (const { kind, next } of commit.changes) {
      if (kind === 'grant' && text(next, 'state') === 'finalized') ended.add(next.id)
    }
    return committed
  }

  /** Opens the gate once all running tasks have reached it. */
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
          // A task that passed the gate no longer counts as running.
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

/** Ranks a commit by its first record and by the request that it belongs to. */
function rankOf(changes: readonly RecordChange[]): string {
  const [first] = changes
  if (first === undefined) return ''
  return `${first.kind} ${JSON.stringify((first.next as { metadata?: unknown }).metadata ?? null)}`
}

function text(record: Stored, member: string): string | undefined {
  const value = (record as unknown as { readonly [name: string]: unknown })[member]
  return typeof value === 'string' ? value : undefined
}
