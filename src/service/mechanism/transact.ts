import { type Refused, refused } from '../../core/decision.js'
import type { Stored } from '../../core/stored.js'
import type { Random } from '../../ports/random.js'
import type { RecordChange, Store, VersionGuard } from '../../ports/store.js'
import { type Deadline, startDeadline } from './deadline.js'
import { isTransactionError } from './dependency-failure.js'
import type { Pacing } from './pacing.js'
import type { Queues } from './queues.js'

/**
 * The error of an operation that fails because other writers keep changing the same records. Nothing was written; the
 * caller may retry.
 */
export class ContentionError extends Error {
  readonly code = 'ERR_CONTENTION'

  constructor(message = 'other writers kept changing the same records until the deadline passed') {
    super(message)
  }
}

/** The result of a decision: the records to write, and the result to return after the commit. */
export interface Attempt<Result> {
  readonly changes: readonly RecordChange[]
  /** Versions that must still be current for the changes to take effect. */
  readonly guards?: readonly VersionGuard[]
  readonly result: Result
  readonly refused: boolean
  /** Whether the changes themselves record that the request's signature has been used. Default false. */
  readonly recordsSignature?: boolean
}

/**
 * A record that makes a signed request count once: that of its nonce, or that of the signature itself if the
 * operation refuses byte-identical repeats.
 */
export interface NonceGuard {
  readonly change: RecordChange
  readonly of: 'nonce' | 'signature'
  /** Whether a refusal consumes it too. A signature is usually consumed only by a success. */
  readonly consumedByRefusal: boolean
}

/** The replay protection of one signed request. */
export interface ReplayProtection {
  /** Absent if a repeat of the request is accepted. */
  guard?: NonceGuard | undefined
  /** True if nothing has to consume the guard any more: the operation has settled, or `keepNonce` was called. */
  consumed: boolean
}

export interface Operation<Loaded, Result> {
  /** The records for the first attempt, already loaded; every later attempt reloads. */
  readonly loaded: Loaded
  readonly reload: () => Promise<Loaded>
  /** Pure: secrets, ids and the time are fixed before the first attempt. */
  readonly decide: (loaded: Loaded) => Attempt<Result>
  /** The name of a contended record. An operation that loses a race for it retries in its queue. */
  readonly contended?: string | undefined
}

/** The signature or nonce of this request has been used before. */
export type Replayed = Refused<'replayed'>

export interface TransactContext {
  readonly store: Store
  readonly random: Random
  readonly pacing: Pacing
  /** How long an operation tries, and how long each call of the store may take, in milliseconds. Default 3,000. */
  readonly storeTimeoutMs?: number | undefined
  /** Absent inside a transaction of the host: the queue's holder may wait for a lock of that transaction. */
  readonly queues?: Queues | undefined
}

const pauseMaxMs = 64

/**
 * Runs an operation: load, decide, commit. All races are resolved in this loop.
 *
 * After a commit that failed, or whose outcome is unknown, it reloads the records and decides again, with jitter, for
 * `storeTimeoutMs`. A record with the operation's command id shows that an earlier commit succeeded; the decision then returns
 * the same result. After that time it does not wait for a pending store call, except inside a transaction of the host.
 *
 * @throws {ContentionError} if the deadline passes while other writers keep changing the records.
 * @throws the store's error, such as a `StoreTimeoutError`, if the deadline passes while an outcome is unknown.
 * @throws {TransactionError} without a retry, from a store inside the host's transaction.
 */
export function transact<Loaded, Result>(
  context: TransactContext,
  operation: Operation<Loaded, Result>,
): Promise<Result> {
  return settle(context, operation, undefined) as Promise<Result>
}

/** Runs the operation of a signed request, and consumes its guard in the same commit. */
export async function transactSigned<Loaded, Result>(
  context: TransactContext,
  operation: Operation<Loaded, Result>,
  replay: ReplayProtection,
): Promise<Result | Replayed> {
  const result = await settle(context, operation, replay.consumed ? undefined : replay.guard)
  replay.consumed = true
  return result
}

async function settle<Loaded, Result>(
  context: TransactContext,
  operation: Operation<Loaded, Result>,
  unconsumed: NonceGuard | undefined,
): Promise<Result | Replayed> {
  const deadline = startDeadline(context)
  let leave: (() => void) | undefined
  async function waitInQueue(): Promise<void> {
    if (leave !== undefined || operation.contended === undefined || !context.queues) return
    const place = context.queues.take(operation.contended)
    leave = () => void place.then((leavePlace) => leavePlace())
    const inTime = new AbortController()
    // Stops waiting after the deadline, even if the previous holder never finishes.
    await Promise.race([place, context.pacing.sleep(Math.max(0, deadline.leftMs()), inTime.signal)])
    inTime.abort()
  }
  try {
    return await attempts(context, operation, unconsumed, deadline, waitInQueue)
  } finally {
    leave?.()
  }
}

async function attempts<Loaded, Result>(
  { store, random, pacing }: TransactContext,
  operation: Operation<Loaded, Result>,
  unconsumed: NonceGuard | undefined,
  deadline: Deadline,
  waitInQueue: () => Promise<void>,
): Promise<Result | Replayed> {
  let { loaded } = operation
  let nonceGuard = unconsumed
  // The error of a commit that may still take effect, also after a later commit has lost a race.
  let unknown: unknown
  for (let attempt = 1; ; attempt++) {
    const { changes, guards = [], result, ...attempted } = operation.decide(loaded)
    if (attempted.refused && nonceGuard?.consumedByRefusal === false) {
      const { change } = nonceGuard
      const consumer = await deadline.within('load', () => consumedBy(store, change))
      return consumer === 'another' ? replayed() : result
    }
    const all =
      nonceGuard === undefined || attempted.recordsSignature
        ? changes
        : [...changes, nonceGuard.change]
    if (all.length === 0) return result

    let failure: unknown
    try {
      const commit = { changes: all, guards }
      if (await deadline.within('commit', () => store.commit(commit))) return result
    } catch (error) {
      failure = unknown = retriable(error)
    }
    await waitInQueue()
    for (let reloaded = false; !reloaded; ) {
      if (deadline.leftMs() <= 0) throw failure ?? unknown ?? new ContentionError()
      if (attempt > 1 || failure !== undefined) await pacing.sleep(pauseMs(random, attempt))
      try {
        const again = await deadline.within('load', () => reload(store, operation, nonceGuard))
        if (again.consumer === 'another') return replayed()
        if (again.consumer === 'us') nonceGuard = undefined
        loaded = again.loaded
        reloaded = true
      } catch (error) {
        failure = retriable(error)
      }
    }
  }
}

/** Rethrows the errors that no retry can repair: of a failed host transaction, and of a signature that has expired. */
function retriable(error: unknown): unknown {
  if (isTransactionError(error) || error instanceof ContentionError) throw error
  return error
}

export function replayed(): Replayed {
  return refused('replayed', 'the signature or nonce has already been used')
}

/** Reloads the records of an operation, unless its nonce turns out to be used by another request. */
async function reload<Loaded, Result>(
  store: Store,
  operation: Operation<Loaded, Result>,
  nonceGuard: NonceGuard | undefined,
) {
  const consumer = nonceGuard && (await consumedBy(store, nonceGuard.change))
  if (consumer === 'another') return { consumer } as const
  return { consumer, loaded: await operation.reload() } as const
}

/** Resolves to whose request consumed a guard: `us`, `another`, or `undefined` if it has not been consumed. */
export async function consumedBy(
  store: Store,
  change: RecordChange,
): Promise<'us' | 'another' | undefined> {
  const stored: Stored | undefined = await store.load(change.kind, change.next.id)
  if (stored === undefined) return undefined
  return stored.commandId === change.next.commandId ? 'us' : 'another'
}

/** Returns a random delay below a bound that doubles, so that concurrent losers do not collide again. */
function pauseMs(random: Random, attempt: number): number {
  const [byte = 0] = random.getRandomValues(new Uint8Array(1))
  return (byte / 255) * Math.min(pauseMaxMs, 2 ** attempt)
}
