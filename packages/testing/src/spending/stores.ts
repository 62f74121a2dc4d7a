import { type Store, TransactionError } from 'open-payments-server'
import type { Commit, RecordChange, Stored } from 'open-payments-server/adapter'
import type { CommitOrder, StoreFailure } from './history.js'

/** Stores of one database that fails when the test says so. */
export interface FailingStores {
  readonly failing: (store: Store) => Store
  /**
   * Makes a write reject, before or after it takes effect: the next one, or a later one. Every second time, only this
   * write rejects, and the servers find out what happened. Otherwise, every later call rejects too, until the returned
   * function is called.
   */
  fail(failure: StoreFailure, write?: number): () => void
}

export function failingStores(): FailingStores {
  let next: { readonly failure: StoreFailure; readonly write: number } | undefined
  let isDown = false
  let writes = 0
  let failures = 0

  function requireUp(): void {
    // The servers do not retry after this error. After another error, they would retry for 3 s.
    if (isDown) throw new TransactionError('ERR_TRANSACTION_FAILED', 'the store is down')
  }

  async function write<Answer>(work: () => Promise<Answer>): Promise<Answer> {
    requireUp()
    if (next === undefined || ++writes < next.write) return work()
    const { failure } = next
    next = undefined
    isDown = ++failures % 2 === 1
    if (failure === 'after') await work()
    throw new Error('the store failed')
  }

  async function read<Result>(work: () => Promise<Result>): Promise<Result> {
    requireUp()
    return work()
  }

  return {
    failing: (store) => ({
      load: (keys) => read(() => store.load(keys)),
      list: (query) => read(() => store.list(query)),
      due: (...query) => read(() => store.due(...query)),
      remove: (records) => write(() => store.remove(records)),
      commit(commit) {
        const work = () => store.commit(commit)
        // A record of the server itself belongs to no action.
        return commit.changes.every(({ kind }) => kind === 'server') ? read(work) : write(work)
      },
    }),
    fail(failure, write = 1) {
      next = { failure, write }
      writes = 0
      return () => {
        next = undefined
        isDown = false
      }
    },
  }
}

/** A store on which actions race. */
interface RacingStore {
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
  /** Sorts commits into the same order in every run, regardless of when they waitAtBarrier. */
  readonly rank: string
  release(): Promise<unknown>
}

/** Where commits wait for each other. It is closed while `running` is not 0. */
interface Barrier {
  /** The number of running tasks that have not passed the barrier. */
  running: number
  held: Held[]
  order: CommitOrder
}

/** Adds a barrier to a store, and detects payments that are created under a revoked grant. */
export function racingStore(store: Store): RacingStore {
  const { commit, problem } = watchedCommit(store)
  const barrier: Barrier = { running: 0, held: [], order: 'together' }
  return {
    store: {
      load: (keys) => store.load(keys),
      list: (query) => store.list(query),
      due: (...query) => store.due(...query),
      remove: (records) => store.remove(records),
      commit(requested) {
        const { changes } = requested
        // Each server records its URL once, in whatever task is first.
        const isFree = changes.some(({ kind }) => kind === 'quote' || kind === 'server')
        const racing = barrier.running > 0 && !isFree
        return racing
          ? waitAtBarrier(barrier, rankOf(changes), () => commit(requested))
          : commit(requested)
      },
    },
    race(tasks, order) {
      barrier.running = tasks.length
      barrier.order = order
      return Promise.all(tasks.map((task) => runToBarrier(barrier, task)))
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
      if (kind === 'grant' && 'finalized' in next) ended.add(next.id)
    }
    return committed
  }

  return { commit, problem: () => problem }
}

function waitAtBarrier(
  barrier: Barrier,
  rank: string,
  commit: () => Promise<boolean>,
): Promise<boolean> {
  return new Promise((resolve, reject) => {
    barrier.held.push({ rank, release: () => commit().then(resolve, reject) })
    void openWhenAllWait(barrier)
  })
}

async function runToBarrier<Result>(
  barrier: Barrier,
  task: () => Promise<Result>,
): Promise<Result> {
  try {
    return await task()
  } finally {
    // A task that passed the barrier no longer counts as running.
    if (barrier.running > 0) {
      barrier.running -= 1
      void openWhenAllWait(barrier)
    }
  }
}

/** Opens the barrier once all running tasks have reached it. */
async function openWhenAllWait(barrier: Barrier): Promise<void> {
  const { running, held, order } = barrier
  if (running === 0 || held.length < running) return
  const waiting = held.sort((a, b) => (a.rank < b.rank ? -1 : 1))
  barrier.running = 0
  barrier.held = []
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
