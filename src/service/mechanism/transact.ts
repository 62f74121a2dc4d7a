import { type Refused, refused, type Stored } from '../../core/decision.js'
import type { Random } from '../../ports/random.js'
import type { RecordChange, Store, TransactionError, VersionGuard } from '../../ports/store.js'
import type { Queues } from './queues.js'
import { sleep } from './sleep.js'

/** Measures and spends real time while the store is busy; never the time that decisions are made by. */
export interface Pacing {
  elapsedMs(): number
  /** Ends early when the signal is given. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

export const realPacing: Pacing = {
  elapsedMs: () => performance.now(),
  sleep,
}

/** Too many writers for one record, for too long: nothing was written, and the caller may come back. */
export interface ContentionError extends Error {
  readonly code: 'ERR_CONTENTION'
}

/** What a decision wants: records to write, and what to answer once they are. */
export interface Attempt<Result> {
  readonly changes: readonly RecordChange[]
  /** What must still hold for the changes to take effect. */
  readonly guards?: readonly VersionGuard[]
  readonly result: Result
  readonly refused: boolean
  /** Whether the changes tell by themselves that the request's signature has been used. Default: they do not. */
  readonly recordsSignature?: boolean
}

/**
 * A record that makes a signed request count once: of its nonce, or of the signature itself where the
 * operation does not take a byte-identical repeat.
 */
export interface NonceGuard {
  readonly change: RecordChange
  /** A nonce is spent by a refusal too; a bare signature only by what it brought about. */
  readonly consumedByRefusal: boolean
}

export interface Operation<Loaded, Result> {
  /** What the caller holds already; every later attempt reloads. */
  readonly loaded: Loaded
  readonly reload: () => Promise<Loaded>
  /** Pure: secrets, ids and the time are fixed before the first attempt. */
  readonly decide: (loaded: Loaded) => Attempt<Result>
  /** What others are likely to change at the same time: who loses a race for it waits for a turn. */
  readonly contended?: string | undefined
}

/** The signature or nonce of this request has been used before. */
export type Replayed = Refused<'replayed'>

export interface TransactContext {
  readonly store: Store
  readonly random: Random
  readonly pacing: Pacing
  /** Absent inside a transaction of the host, which may hold what the one before is waiting for. */
  readonly queues?: Queues | undefined
}

const deadlineMs = 3_000
const pauseMaxMs = 64

/**
 * Load, decide, commit: the one loop in which races are settled.
 *
 * A commit that fails, or whose outcome is unknown, is decided again over reloaded records, with jitter,
 * for up to 3 s. Since every machine knows its own command by its id, a commit that had landed after all
 * is recognised and answered as it would have been.
 *
 * @throws {ContentionError} when the deadline passes while others keep winning.
 * @throws {TransactionError} at once, from a store inside the host's own transaction.
 */
export function transact<Loaded, Result>(
  context: TransactContext,
  operation: Operation<Loaded, Result>,
): Promise<Result> {
  return settle(context, operation, undefined) as Promise<Result>
}

/** The same for a signed request, which counts once if `once` is given. */
export function transactSigned<Loaded, Result>(
  context: TransactContext,
  operation: Operation<Loaded, Result>,
  nonceGuard: NonceGuard | undefined,
): Promise<Result | Replayed> {
  return settle(context, operation, nonceGuard)
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
    // Whoever is before may be stuck for longer than anybody should wait.
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
      if (pacing.elapsedMs() - startedAt >= deadlineMs) throw failure ?? contentionError()
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

/** Throws what no further attempt can mend: the host's own transaction has failed. */
function retriable(error: unknown): unknown {
  if (isTransactionError(error)) throw error
  return error
}

function isTransactionError(error: unknown): error is TransactionError {
  if (!(error instanceof Error && 'code' in error)) return false
  return error.code === 'ERR_RESTART_TRANSACTION' || error.code === 'ERR_TRANSACTION_FAILED'
}

function replayed(): Replayed {
  return refused('replayed', 'the same signature or nonce has been used before')
}

async function consumedBy(
  store: Store,
  { change }: NonceGuard,
): Promise<'us' | 'another' | undefined> {
  const stored: Stored | undefined = await store.load(change.kind, change.next.id)
  if (stored === undefined) return undefined
  return stored.commandId === change.next.commandId ? 'us' : 'another'
}

/** Between nothing and a bound that doubles, so that those who lost together do not meet again. */
function pauseMs(random: Random, attempt: number): number {
  const [byte = 0] = random.getRandomValues(new Uint8Array(1))
  return (byte / 255) * Math.min(pauseMaxMs, 2 ** attempt)
}

function contentionError(): ContentionError {
  const error = new Error('other writers kept changing the same records until the deadline passed')
  return Object.assign(error, { code: 'ERR_CONTENTION' as const })
}
