import type { Instant, Stored } from '../../core/decision.js'
import type { RecordKind } from '../../ports/store.js'
import type { ServiceContext } from './context.js'
import { inParallel } from './parallel.js'

const concurrency = 8

/**
 * Settles what is due of one kind, at most `limit` records, several at a time. Any number of processes may
 * do so: each record is settled by a compare-and-set, whose loser answers false.
 *
 * @returns how many this call has settled.
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

/** Removes a record once its time has passed. It stays when it was changed meanwhile. */
export async function removeRetired(
  { store }: ServiceContext,
  kind: RecordKind,
  { id, version, retainUntil }: Stored,
  now: Instant,
): Promise<boolean> {
  return retainUntil !== undefined && retainUntil <= now && store.remove(kind, id, version)
}

/**
 * Settles records that something is still to be done with, and removes those past their retention. Both, since
 * either would otherwise stand before the other in what is due, for good.
 *
 * @param settle answers whether this call has done it.
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

/** Removes the records of these kinds whose time has passed, at most `limit` in all. */
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
