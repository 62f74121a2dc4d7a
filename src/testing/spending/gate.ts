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

/** The gate, at which commits wait for each other. It is closed while `runners` is not 0. */
interface Gate {
  /** The number of running tasks that have not passed the gate. */
  runners: number
  held: Held[]
  order: CommitOrder
}

/** Adds a starting gate to a store, and detects payments that are created under a revoked grant. */
export function racingStore(store: Store): RacingStore {
  const { commit, problem } = watchedCommit(store)
  const gate: Gate = { runners: 0, held: [], order: 'together' }
  return {
    store: {
      load: (kind, id) => store.load(kind, id),
      list: (query) => store.list(query),
      due: (...query) => store.due(...query),
      remove: (...record) => store.remove(...record),
      commit(requested) {
        const { changes } = requested
        const racing = gate.runners > 0 && !changes.some(({ kind }) => kind === 'quote')
        return racing ? arrive(gate, rankOf(changes), () => commit(requested)) : commit(requested)
      },
    },
    race(tasks, order) {
      gate.runners = tasks.length
      gate.order = order
      return Promise.all(tasks.map((task) => runUpTo(gate, task)))
    },
    problem,
  }
}

/** Commits to the store, and remembers which grants have ended. */
function watchedCommit(store: Store) {
  const ended = new Set<string>()
  let problem: string | undefined

  async function commit(requested: Commit): Promise<boolean> {
    const { changes } = requested
    const paid = changes.find(
      ({ kind, expectedVersion }) => kind === 'outgoing-payment' && expectedVersion === 0,
    )
    const grantId = paid && text(paid.next, 'grantId')
    const tooLate = grantId !== undefined && ended.has(grantId)
    const committed = await store.commit(requested)
    if (!committed) return committed
    if (tooLate) problem = 'a payment was created after its grant was revoked'
    for (const { kind, next } of changes) {
      if (kind === 'grant' && text(next, 'state') === 'finalized') ended.add(next.id)
    }
    return committed
  }

  return { commit, problem: () => problem }
}

function arrive(gate: Gate, rank: string, commit: () => Promise<boolean>): Promise<boolean> {
  return new Promise((resolve, reject) => {
    gate.held.push({ rank, release: () => commit().then(resolve, reject) })
    void openWhenFull(gate)
  })
}

async function runUpTo<Result>(gate: Gate, task: () => Promise<Result>): Promise<Result> {
  try {
    return await task()
  } finally {
    // A task that passed the gate no longer counts as running.
    if (gate.runners > 0) {
      gate.runners -= 1
      void openWhenFull(gate)
    }
  }
}

/** Opens the gate once all running tasks have reached it. */
async function openWhenFull(gate: Gate): Promise<void> {
  const { runners, held, order } = gate
  if (runners === 0 || held.length < runners) return
  const waiting = held.sort((a, b) => (a.rank < b.rank ? -1 : 1))
  gate.runners = 0
  gate.held = []
  if (order === 'together') {
    for (const { release } of waiting) void release()
    return
  }
  if (order === 'in reverse') waiting.reverse()
  for (const { release } of waiting) await release()
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
