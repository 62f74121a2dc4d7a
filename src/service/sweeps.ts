import type { Instant, Stored } from '../core/decision.js'
import type { Kind } from '../ports/store.js'
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
  kind: Kind,
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
  kind: Kind,
  { id, version, retainUntil }: Stored,
  now: Instant,
): Promise<boolean> {
  return retainUntil !== undefined && retainUntil <= now && store.remove(kind, id, version)
}

/** Removes the records of these kinds whose time has passed, at most `limit` in all. */
export async function purge(
  context: ServiceContext,
  kinds: readonly Kind[],
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
