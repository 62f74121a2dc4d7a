import { type Refused, refused, type Stored } from '../../core/decision.js'
import type { Random } from '../../ports/random.js'
import type { RecordChange, Store, TransactionError, VersionGuard } from '../../ports/store.js'
import { hasCode } from '../../util/error-code.js'
import type { Queues } from './queues.js'
import { sleep } from './sleep.js'

/** Real time for retries. Decisions never use it; their time is an argument. */
export interface Pacing {
  elapsedMs(): number
  /** Resolves after the delay, or as soon as the signal is aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

export const realPacing: Pacing = {
  elapsedMs: () => performance.now(),
  sleep,
}

/** The error when other writers keep changing the same records. Nothing was written; the caller may retry. */
export class ContentionError extends Error {
  readonly code = 'ERR_CONTENTION'

  constructor() {
    super('other writers kept changing the same records until the deadline passed')
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
  /** True once a commit of the operation has consumed the guard, or the request has been refused for it. */
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
  /** Absent inside a transaction of the host: the queue's holder may wait for a lock of that transaction. */
  readonly queues?: Queues | undefined
}

const deadlineMs = 3_000
const pauseMaxMs = 64

/**
 * Runs an operation: load, decide, commit. All races are resolved in this loop.
 *
 * After a commit that failed, or whose outcome is unknown, it reloads the records and decides again, with
 * jitter, for up to 3 s. A record with the operation's command id shows that an earlier commit succeeded; the
 * decision then returns the same result.
 *
 * @throws {ContentionError} if the deadline passes while other writers keep changing the records.
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
  let leave: (() => void) | undefined
  async function takeTurn(): Promise<void> {
    if (leave !== undefined || operation.contended === undefined || !context.queues) return
    const turn = context.queues.take(operation.contended)
    leave = () => void turn.then((over) => over())
    const inTime = new AbortController()
    // Stops waiting after the deadline, even if the previous holder never finishes.
    await Promise.race([turn, context.pacing.sleep(deadlineMs, inTime.signal)])
    inTime.abort()
  }
  try {
    return await attempts(context, operation, unconsumed, takeTurn)
  } finally {
    leave?.()
  }
}

async function attempts<Loaded, Result>(
  { store, random, pacing }: TransactContext,
  operation: Operation<Loaded, Result>,
  unconsumed: NonceGuard | undefined,
  takeTurn: () => Promise<void>,
): Promise<Result | Replayed> {
  const startedAt = pacing.elapsedMs()
  let { loaded } = operation
  let nonceGuard = unconsumed
  for (let attempt = 1; ; attempt++) {
    const { changes, guards = [], result, ...attempted } = operation.decide(loaded)
    if (attempted.refused && nonceGuard?.consumedByRefusal === false) {
      return (await consumedBy(store, nonceGuard)) === 'another' ? replayed() : result
    }
    const all =
      nonceGuard === undefined || attempted.recordsSignature
        ? changes
        : [...changes, nonceGuard.change]
    if (all.length === 0) return result

    let failure: unknown
    try {
      if (await store.commit({ changes: all, guards })) return result
    } catch (error) {
      failure = retriable(error)
    }
    await takeTurn()
    for (let reloaded = false; !reloaded; ) {
      if (pacing.elapsedMs() - startedAt >= deadlineMs) throw failure ?? new ContentionError()
      if (attempt > 1 || failure !== undefined) await pacing.sleep(pauseMs(random, attempt))
      try {
        const spent = nonceGuard && (await consumedBy(store, nonceGuard))
        if (spent === 'another') return replayed()
        if (spent === 'us') nonceGuard = undefined
        loaded = await operation.reload()
        reloaded = true
      } catch (error) {
        failure = retriable(error)
      }
    }
  }
}

/** Rethrows the error of a failed host transaction, which no retry can repair. */
function retriable(error: unknown): unknown {
  if (isTransactionError(error)) throw error
  return error
}

function isTransactionError(error: unknown): error is TransactionError {
  return hasCode(error, 'ERR_RESTART_TRANSACTION') || hasCode(error, 'ERR_TRANSACTION_FAILED')
}

function replayed(): Replayed {
  return refused('replayed', 'the signature or nonce has already been used')
}

async function consumedBy(
  store: Store,
  { change }: NonceGuard,
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
