import type { Instant } from '../../core/instant.js'
import { dueAtOnce, type EventRecord } from '../event-record.js'
import type { Pacing } from '../time.js'

/** How much older than the newest event that was seen another one may be, to be found at once, in milliseconds. */
const lateMs = 60_000

/** One look-up in so many has no bound. */
const lookUpsPerFull = 10

/** How long after a look-up without a bound others may have one, in milliseconds. */
const boundedMs = 30_000

/** What is known of a slice. */
interface Seen {
  /** The due time that the newest event had when it was recorded. */
  readonly newest: Instant
  /** Where look-ups begin, as long as some are left, and until when. */
  readonly from: Instant
  readonly left: number
  readonly until: number
}

export type DueBounds = ReturnType<typeof createDueBounds>

/**
 * Bounds the look-ups of due events from below. A database cannot remove the index entries of delivered events while an
 * older snapshot is held, such as by a dump or a replica with feedback, and a look-up without a bound reads all of them
 * again. An event that is more than a minute older than another one that was seen, because its commit was late or its
 * clock is wrong, is found within ten look-ups, and by the first one after 30 s.
 */
export function createDueBounds({ elapsedMs }: Pick<Pacing, 'elapsedMs'>) {
  const slices = new Map<number, Seen>()
  return {
    /** Returns the time at which the next look-up of a slice begins, or `undefined` if it is to find all. */
    begin(slice: number): Instant | undefined {
      const seen = slices.get(slice)
      if (seen === undefined || seen.left === 0 || elapsedMs() >= seen.until) return undefined
      slices.set(slice, { ...seen, left: seen.left - 1 })
      return seen.from
    },
    /** Notes what a look-up that began there has found, in the order of the due times. */
    found(slice: number, began: Instant | undefined, due: readonly EventRecord[]): void {
      const seen = slices.get(slice)
      const newest = due.reduce(
        (at, { event }) => Math.max(at, dueAtOnce(event.at)),
        seen?.newest ?? Number.NEGATIVE_INFINITY,
      )
      if (newest === Number.NEGATIVE_INFINITY) return
      const from = Math.min(due[0]?.dueAt ?? newest, newest) - lateMs
      const { left, until } =
        began === undefined || seen === undefined
          ? { left: lookUpsPerFull - 1, until: elapsedMs() + boundedMs }
          : seen
      slices.set(slice, { newest, from, left, until })
    },
  }
}
