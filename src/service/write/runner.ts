import type { Random } from '../../ports/host.js'
import { type RecordKey, type Store, storeBounds } from '../../ports/store.js'
import { InvalidInputError } from '../../util/invalid-input.js'
import type { RecordedEvents } from '../event-record.js'
import { loadRecords, nameOf } from '../load.js'
import type { Namespace } from '../namespace.js'
import { ContentionError, isTransactionError } from '../store-errors.js'
import { withinTime } from '../store-guard.js'
import type { Pacing } from '../time.js'
import { decideInOrder, type Outcome } from './round.js'
import type { RunWrite, Write } from './write.js'

export interface RunnerContext {
  readonly store: Store
  readonly random: Random
  readonly pacing: Pacing
  readonly recordsEvents: RecordedEvents
  /** Resolves to the prefix of the ids of this server's records in the store. */
  readonly namespace: () => Promise<string>
  /** How long an operation tries to commit, in milliseconds. */
  readonly storeTimeoutMs: number
  /** Resolves once the store confirms that the namespace of the records belongs to this server. */
  readonly claim: Namespace['claim']
}

/** The maximum number of writes that wait for others with the same name. */
export const waitingMax = 1_000

/** The minimum time for a call of the store, in milliseconds, even if it begins just before the deadline. */
const settleMinMs = 500

const pauseMaxMs = 64

/**
 * Returns the function that executes every write:
 *
 * 1. Load everything that the writes read, unless the caller has done so.
 * 2. Decide one write after the other, each on the records as the writes before it leave them.
 * 3. Commit all of it at once. If the commit loses a race, or its outcome is unknown, begin again.
 *
 * While a write with a name is in progress, other writes with this name wait, and then share one load and one commit.
 * With commits of their own, all but one would lose the race for the same record. A record with the command id of a
 * write shows that an earlier commit of it took effect; its decision then returns the same result without a change.
 *
 * The function rejects with a `ContentionError` if other writers keep changing the records until the deadline, if too
 * many writes wait, or if the write has waited too long; with the error of the store if an outcome is unknown at the
 * deadline; and with a `TransactionError` at once.
 *
 * @param inTransaction whether the store is inside a transaction of the host. Writes then do not wait for others, which
 *   may wait for a lock of that transaction, and no store call is limited in time.
 */
export function createRunner(context: RunnerContext, inTransaction = false): RunWrite {
  const { pacing, storeTimeoutMs } = context
  const waitingFor = new Map<string, Waiting[]>()

  return function run<Result>(write: Write<Result>): Promise<Result> {
    return new Promise<Result>((resolve, reject) => {
      const member = { write, resolve, reject } as Member
      const name = inTransaction ? undefined : write.together
      if (name === undefined) return void execute(context, [member], inTransaction)
      const waiting = waitingFor.get(name)
      if (waiting === undefined) void lead(name, member)
      else if (waiting.length >= waitingMax) reject(new ContentionError())
      else void wait(waiting, member)
    })
  }

  /** Executes the first write with a name, and then the writes that have waited for it. */
  async function lead(name: string, first: Member): Promise<void> {
    const waiting: Waiting[] = []
    waitingFor.set(name, waiting)
    await execute(context, [first])
    while (waiting.length > 0) {
      const batch = nextBatch(waiting)
      // A reason of our own: without one, `abort` makes a DOMException with a stack, which costs more than the rest.
      for (const { begun } of batch) begun.abort('begun')
      const left = await execute(context, batch)
      const isOver = ({ endsAt }: Waiting) => pacing.elapsedMs() >= endsAt
      const behind = batch.slice(batch.length - left)
      waiting.unshift(...behind.filter((member) => !isOver(member)))
      for (const member of behind.filter(isOver)) member.reject(new ContentionError())
    }
    waitingFor.delete(name)
  }

  async function wait(waiting: Waiting[], member: Member): Promise<void> {
    const begun = new AbortController()
    const endsAt = pacing.elapsedMs() + storeTimeoutMs
    const entry = { ...member, write: withoutBasis(member.write), begun, endsAt }
    waiting.push(entry)
    await pacing.sleep(storeTimeoutMs, begun.signal)
    if (begun.signal.aborted) return
    waiting.splice(waiting.indexOf(entry), 1)
    entry.reject(new ContentionError())
  }
}

/** A write with the promise of its result. The runner does not know the type of the result. */
interface Member {
  readonly write: Write<unknown>
  readonly resolve: (result: unknown) => void
  readonly reject: (error: unknown) => void
}

/** A write that waits for others with the same name. `begun` is aborted when it is executed. */
interface Waiting extends Member {
  readonly begun: AbortController
  /** The time at which the write has waited too long; set if a commit that it joined had no room for it. */
  readonly endsAt: number
}

/** Records that were assumed before a write waited, or was decided, may have changed since. */
function withoutBasis({ basis: _basis, ...write }: Write<unknown>): Write<unknown> {
  return write
}

/** Removes the first waiting writes from the queue, as many as one call of `load` can load. */
function nextBatch(waiting: Waiting[]): readonly Waiting[] {
  const names = new Set<string>()
  const last = waiting.findIndex(({ write }) => {
    for (const key of keysOf(write)) names.add(nameOf(key))
    return names.size > storeBounds.loadKeys
  })
  return waiting.splice(0, last === -1 ? waiting.length : Math.max(last, 1))
}

/** Executes writes in one commit. Resolves to the number of writes at the end that did not fit. Never rejects. */
async function execute(
  context: RunnerContext,
  members: readonly Member[],
  inTransaction = false,
): Promise<number> {
  const writes = members.map(({ write }) => write)
  let outcomes: readonly Outcome[]
  try {
    outcomes = await committed(context, writes, inTransaction)
  } catch (error) {
    outcomes = writes.map(() => ({ type: 'failed', error }))
  }
  const again: Member[] = []
  let left = 0
  for (const [index, member] of members.entries()) {
    const outcome = outcomes[index]
    if (outcome?.type === 'decided') member.resolve(outcome.result)
    else if (outcome?.type === 'failed') member.reject(outcome.error)
    else if (outcome?.type === 'again') again.push({ ...member, write: withoutBasis(member.write) })
    else left += 1
  }
  // Concurrently, so that a slow store delays the last of them no longer than the first.
  await Promise.all(again.map((member) => execute(context, [member], inTransaction)))
  return left
}

/** Loads, decides and commits, until a commit takes effect. Only a write that is alone may assume records. */
async function committed(
  context: RunnerContext,
  writes: readonly Write<unknown>[],
  inTransaction: boolean,
): Promise<readonly Outcome[]> {
  const { store, random, pacing, recordsEvents, storeTimeoutMs, claim } = context
  const endsAt = pacing.elapsedMs() + storeTimeoutMs
  const namespace = await context.namespace()
  let basis = writes[0]?.basis
  // The error of a commit that may still take effect, even after a later commit has lost a race.
  let unknown: unknown
  for (let attempt = 1; ; attempt++) {
    const within = <Value>(call: keyof Store, work: () => Promise<Value>): Promise<Value> =>
      attempt === 1 || inTransaction
        ? work()
        : withinTime(call, Math.max(endsAt - pacing.elapsedMs(), settleMinMs), work)
    let failure: unknown
    let isCommitting = false
    try {
      basis ??= {
        type: 'loaded',
        records: await within('load', () => loadRecords(store, writes.flatMap(keysOf))),
      }
      const { commit, outcomes } = decideInOrder(writes, basis, { recordsEvents, namespace })
      if (commit.changes.length === 0) return outcomes
      isCommitting = true
      await claim(store, inTransaction)
      if (await within('commit', () => store.commit(commit))) return outcomes
    } catch (error) {
      // Before the first commit, nothing can have been written: the caller gets the error at once.
      const isFirstLoad = attempt === 1 && !isCommitting
      if (isFirstLoad || isTransactionError(error) || error instanceof InvalidInputError)
        throw error
      if (error instanceof ContentionError) {
        // The signature of one write has expired. It must not fail the others.
        if (writes.length > 1) return writes.map(() => ({ type: 'again' }))
        throw unknown ?? error
      }
      failure = error
      if (isCommitting) unknown = error
    }
    if (pacing.elapsedMs() >= endsAt) throw failure ?? unknown ?? new ContentionError()
    if (attempt > 1 || failure !== undefined) await pacing.sleep(pauseMs(random, attempt))
    basis = undefined
  }
}

function keysOf({ reads, guard }: Write<unknown>): readonly RecordKey[] {
  return guard === undefined ? reads : [...reads, guard.record]
}

/** Returns a random delay below a bound that doubles, so that concurrent losers do not collide again. */
function pauseMs(random: Random, attempt: number): number {
  const [byte = 0] = random.getRandomValues(new Uint8Array(1))
  return (byte / 255) * Math.min(pauseMaxMs, 2 ** attempt)
}
