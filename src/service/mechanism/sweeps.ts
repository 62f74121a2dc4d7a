import type { Instant, Stored } from '../../core/decision.js'
import type { RecordKind } from '../../ports/store.js'
import type { ServiceContext } from './context.js'
import { inParallel } from './parallel.js'

const concurrency = 8

/**
 * Settles due records of one kind, at most `limit` of them, several concurrently. Any number of processes may
 * sweep: each record is settled by a compare-and-set, which resolves to false for the loser.
 *
 * @returns the number of records that this call settled.
 */
export async function sweep(
  context: ServiceContext,
  kind: RecordKind,
  limit: number,
  settle: (record: Stored, now: Instant) => Promise<boolean>,
): Promise<number> {
  const now = context.clock.now()
  const due = await context.store.due(kind, await context.namespace(), now, limit)
  let settled = 0
  await inParallel(due, concurrency, async (record) => {
    if (await settle(record, now)) settled += 1
  })
  return settled
}

/** Removes a record past its retention, unless it has changed since it was loaded. */
export async function removeRetired(
  { store }: ServiceContext,
  kind: RecordKind,
  { id, version, retainUntil }: Stored,
  now: Instant,
): Promise<boolean> {
  return retainUntil !== undefined && retainUntil <= now && store.remove(kind, id, version)
}

/**
 * Settles due records, and removes those past their retention. One sweep does both, because records of one
 * sort would otherwise permanently fill the batches of due records and hide the other sort.
 *
 * @param settle resolves to whether this call settled the record.
 */
export async function settleOrRemove<Due extends Stored>(
  context: ServiceContext,
  kind: RecordKind,
  limit: number,
  isUnsettled: (record: Due) => boolean,
  settle: (record: Due) => Promise<boolean>,
): Promise<{ settled: number; removed: number }> {
  let settled = 0
  const all = await sweep(context, kind, limit, async (record, now) => {
    if (!isUnsettled(record as Due)) return removeRetired(context, kind, record, now)
    const done = await settle(record as Due)
    if (done) settled += 1
    return done
  })
  return { settled, removed: all - settled }
}

/** Removes records of these kinds past their retention, at most `limit` in total. */
export async function purge(
  context: ServiceContext,
  kinds: readonly RecordKind[],
  limit: number,
): Promise<number> {
  let removed = 0
  for (const kind of kinds) {
    if (removed >= limit) break
    removed += await sweep(context, kind, limit - removed, (record, now) =>
      removeRetired(context, kind, record, now),
    )
  }
  return removed
}
