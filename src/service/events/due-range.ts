import type { Instant } from '../../core/instant.js'
import { dueAtOnce, type EventRecord } from '../event-record.js'
import type { Pacing } from '../time.js'

/** How long after an event was recorded a bounded look-up finds it, in milliseconds. */
const visibleWithinMs = 10_000

/** How often a slice is looked up without a bound, in milliseconds. */
const unboundedEveryMs = 5_000

/** From which due time on a process looks up the events of each slice. */
export type DueRanges = ReturnType<typeof createDueRanges>

/**
 * While a snapshot is held, such as by a dump, a database keeps what was removed, and every look-up reads it again.
 * Each look-up therefore begins at the oldest event that the previous one found, or shortly before the due time of new
 * events. An event that becomes visible late, or whose server has another clock, can be older: every few seconds, a
 * look-up has no bound.
 */
export function createDueRanges(pacing: Pacing) {
  const ranges = new Map<number, { readonly from: Instant; readonly unboundedAt: number }>()
  return {
    /** Returns from when on to look up events of a slice, or `undefined` for all. */
    from(slice: number): Instant | undefined {
      const found = ranges.get(slice)
      const isOld =
        found === undefined || pacing.elapsedMs() - found.unboundedAt >= unboundedEveryMs
      return isOld ? undefined : found.from
    },

    /** Notes what a look-up has found, the oldest event first. */
    note(
      slice: number,
      from: Instant | undefined,
      due: readonly EventRecord[],
      now: Instant,
    ): void {
      const oldest = due[0]?.dueAt ?? now
      const unboundedAt = from === undefined ? pacing.elapsedMs() : ranges.get(slice)?.unboundedAt
      if (unboundedAt === undefined) return
      const next = Math.min(oldest, dueAtOnce(now) - visibleWithinMs)
      ranges.set(slice, { from: next, unboundedAt })
    },
  }
}
