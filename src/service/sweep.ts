import type { Instant } from '../core/instant.js'
import type { Stored } from '../core/stored.js'
import { type RecordKind, storeBounds } from '../ports/store.js'
import { InvalidInputError, integerFrom, requireKnownOptions } from '../util/input.js'
import type { ServiceContext } from './context.js'
import { inParallel } from './parallel.js'

/** Options of a sweep. */
export interface SweepOptions {
  /** The maximum number of records of each kind to process: 1 to 10,000. Default 1,000. */
  readonly limit?: number
  /** Once aborted, the sweep processes no further record, and resolves. */
  readonly signal?: AbortSignal
}

/** What one call of a sweep did. */
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
 * What happened to a due record: one of the counts of `SweepResult`, `kept` if it became due later, or
 * `undefined` if nothing changed, such as when another process was faster.
 */
type Swept = 'expired' | 'lapsed' | 'removed' | 'kept' | undefined

/** How a server sweeps the due records of one kind. */
export interface SweptKind {
  readonly kind: RecordKind
  /** Resolves to the prefix of the ids. Default: the namespace of the server. */
  readonly namespace?: () => Promise<string>
  sweep(record: Stored, now: Instant): Promise<Swept>
}

const concurrency = 8
const limitDefault = 1_000

/** Checks that `Store.due` accepts a limit. */
export const sweepLimit = integerFrom(1, storeBounds.dueLimit)

/**
 * Processes due records of these kinds, several concurrently. Any number of processes may sweep: each record
 * changes by a compare-and-set, which fails for all but one. An error of one kind does not prevent the
 * others from being swept; the sweep rejects with the first error at its end.
 */
export async function sweepKinds(
  context: ServiceContext,
  kinds: readonly SweptKind[],
  options: SweepOptions = {},
): Promise<SweepResult> {
  requireKnownOptions('', options, { limit: true, signal: true })
  const { limit = limitDefault, signal } = options
  sweepLimit('limit', limit)
  requireSignal(signal)
  const counts = { expired: 0, lapsed: 0, removed: 0, kept: 0 }
  let more = false

  async function sweepKind({ kind, sweep, namespace = context.namespace }: SweptKind) {
    if (signal?.aborted) return
    const now = context.clock.now()
    const due = await context.store.due(kind, await namespace(), now, limit)
    await inParallel(due, concurrency, async (record) => {
      const swept = signal?.aborted ? undefined : await sweep(record, now)
      if (swept === undefined) return
      counts[swept] += 1
      // A changed record may be due again, for its removal. Without progress, a repeat would find the same records.
      more ||= swept !== 'removed' || due.length === limit
    })
  }

  const errors: unknown[] = []
  for (const each of kinds) await sweepKind(each).catch((error) => errors.push(error))
  if (errors.length > 0) throw errors[0]
  const { expired, lapsed, removed } = counts
  return { expired, lapsed, removed, more: more && !signal?.aborted }
}

function requireSignal(signal: unknown): void {
  if (signal === undefined || typeof Object(signal).aborted === 'boolean') return
  throw new InvalidInputError('signal', 'must be an AbortSignal')
}

/** Sweeps records that are due only when their retention ends. */
export function retired(context: ServiceContext, kind: RecordKind): SweptKind {
  return { kind, sweep: (record, now) => removeRetired(context, kind, record, now) }
}

/** Removes a record past its retention, unless it has changed since it was loaded. */
export async function removeRetired(
  { store }: ServiceContext,
  kind: RecordKind,
  { id, version, retainUntil }: Stored,
  now: Instant,
): Promise<'removed' | undefined> {
  const isRetired = retainUntil !== undefined && retainUntil <= now
  return isRetired && (await store.remove([{ kind, id, version }]))[0] ? 'removed' : undefined
}
