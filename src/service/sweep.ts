import * as v from 'valibot'
import type { Instant } from '../core/instant.js'
import type { Stored } from '../core/stored.js'
import { type RecordKind, storeBounds, type VersionGuard } from '../ports/store.js'
import { abortSignal, integerFrom, type Members, optionsOf, readInput } from '../util/input.js'
import { newCall, type ServiceContext } from './context.js'
import { recordsOf } from './load.js'

/** Options of a sweep. */
export interface SweepOptions {
  /** The maximum number of records of each kind to process: 1 to 10,000. Default 1,000. */
  readonly limit?: number
  /** Once aborted, the sweep processes no further record, and resolves. */
  readonly signal?: AbortSignal
}

/** The result of one call of a sweep. */
export interface SweepResult {
  /** The number of incoming payments whose expiry this call recorded; 0 at an authorization server. */
  readonly expired: number
  /**
   * The number of outgoing payments that this call failed, because the host did not begin them in time, or declined,
   * because `mayPay` did not decide; 0 at an authorization server.
   */
  readonly lapsed: number
  /** The number of records that this call removed because they were past their retention. */
  readonly removed: number
  /** Whether more records may be due: call again immediately. False if `signal` is aborted. */
  readonly more: boolean
}

/**
 * The outcome for a due record: one of the counts of `SweepResult`, `kept` if it became due later, `retired` if it is
 * to be removed at the version that was found, or `undefined` if nothing changed, such as when another process was
 * faster.
 */
type Swept = 'expired' | 'lapsed' | 'kept' | 'retired' | undefined

/** How a server sweeps the due records of one kind. */
export interface SweptKind {
  readonly kind: RecordKind
  /** Resolves to the prefix of the ids. Default: the namespace of the server. */
  readonly namespace?: () => Promise<string>
  sweep(record: Stored, now: Instant): Promise<Swept> | Swept
}

const concurrency = 8
const limitDefault = 1_000

/** A limit that `Store.due` accepts. */
export const sweepLimit = v.optional(integerFrom(1, storeBounds.dueLimit), limitDefault)

const sweepOptions = optionsOf({
  limit: sweepLimit,
  signal: v.optional(abortSignal),
} satisfies Members<SweepOptions>)

/**
 * Processes due records of these kinds, several concurrently, and removes the retired ones of all kinds at once. Any
 * number of processes may sweep: each record changes by a compare-and-set, which fails for all but one. An error of one
 * kind does not prevent the others from being swept; the sweep rejects with the first error at its end.
 */
export async function sweepKinds(
  context: ServiceContext,
  kinds: readonly SweptKind[],
  options: SweepOptions = {},
): Promise<SweepResult> {
  const { limit, signal } = readInput('', sweepOptions, options)
  const counts = { expired: 0, lapsed: 0, kept: 0 }
  const retired: VersionGuard[] = []
  /** The kinds of which more records may be due. */
  const full = new Set<RecordKind>()
  let removed = 0
  let more = false

  async function sweepKind({ kind, sweep, namespace = context.namespace }: SweptKind) {
    if (signal?.aborted) return
    const now = context.clock.now()
    const due = await context.store.due(kind, await namespace(), now, limit)
    if (due.length === limit) full.add(kind)
    await inParallel(due, concurrency, async (record) => {
      const swept = signal?.aborted ? undefined : await sweep(record, now)
      if (swept === undefined) return
      const { id, version } = record
      if (swept === 'retired') return void retired.push({ kind, id, version })
      counts[swept] += 1
      // A changed record may be due again, for its removal.
      more = true
    })
  }

  async function removeRetired(records: readonly VersionGuard[]): Promise<void> {
    if (signal?.aborted) return
    let answers: readonly boolean[]
    try {
      answers = await context.store.remove(records)
    } catch (error) {
      if (records.length === 1) throw error
      // A record that cannot be removed, such as a locked one, must not prevent the removal of others.
      return inParallel(records, concurrency, (record) => removeRetired([record]))
    }
    for (const [i, isRemoved] of answers.entries()) {
      if (!isRemoved) continue
      removed += 1
      // Without progress, a repeat would find the same records.
      more ||= full.has(records[i]?.kind as RecordKind)
    }
  }

  const errors: unknown[] = []
  for (const each of kinds) await sweepKind(each).catch((error) => errors.push(error))
  for (let i = 0; i < retired.length; i += storeBounds.removeRecords) {
    const some = retired.slice(i, i + storeBounds.removeRecords)
    await removeRetired(some).catch((error) => errors.push(error))
  }
  if (errors.length > 0) throw errors[0]
  const { expired, lapsed } = counts
  return { expired, lapsed, removed, more: more && !signal?.aborted }
}

/**
 * Makes a due record due later, if it is still as it was found.
 *
 * @param next returns its next version.
 */
export function postpone<Due extends Stored>(
  context: ServiceContext,
  kind: RecordKind,
  due: Due,
  next: (commandId: string) => Due,
): Promise<'kept' | undefined> {
  const { commandId } = newCall(context)
  const key = { kind, id: due.id }
  return context.run<'kept' | undefined>({
    reads: [key],
    basis: { type: 'loaded', records: recordsOf(kind, due) },
    decide(read) {
      const found = read<Due>(key)
      if (found?.commandId === commandId) return { type: 'answer', result: 'kept' }
      if (found?.version !== due.version) return { type: 'answer', result: undefined }
      return { type: 'commit', changes: [{ kind, next: next(commandId) }], result: 'kept' }
    },
  })
}

/** Sweeps records that are due only when their retention ends. */
export function retired(kind: RecordKind): SweptKind {
  return { kind, sweep: ifRetired }
}

/** Marks a record for removal if it is past its retention. */
export function ifRetired({ retainUntil }: Stored, now: Instant): 'retired' | undefined {
  return retainUntil !== undefined && retainUntil <= now ? 'retired' : undefined
}

/** Runs a task for each item with limited concurrency. Rejects with the first error after all have ended. */
async function inParallel<Item>(
  items: readonly Item[],
  concurrency: number,
  task: (item: Item) => Promise<void>,
): Promise<void> {
  const queue = items.values()
  const workers = Array.from({ length: Math.min(concurrency, items.length) }, async () => {
    for (const item of queue) await task(item)
  })
  const outcomes = await Promise.allSettled(workers)
  const failed = outcomes.find((outcome) => outcome.status === 'rejected')
  if (failed !== undefined) throw failed.reason
}
