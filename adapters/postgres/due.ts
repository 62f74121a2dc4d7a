import type { Instant } from '../../src/index.js'

/** A look-up without a lower bound begins with the oldest record. */
export const unbounded = Number.MIN_SAFE_INTEGER

/** One look-up in so many has no lower bound. */
const lookUpsPerFull = 10

/** How much older than what was seen a record may be to be found at once: its commit was late, or its clock slow. */
const lateMs = 5_000

/** The look-ups that are remembered: a server has 8 of events. */
const boundsMax = 1_000

/** Where the next look-up begins, and how many more may begin there. */
interface Bound {
  readonly from: Instant
  readonly left: number
}

export type DueBounds = ReturnType<typeof dueBounds>

/**
 * Bounds the look-ups of due events from below. PostgreSQL cannot remove an index entry of a delivered event while an
 * older snapshot is held, such as by a dump or a replica with feedback. Without a bound, every look-up reads all of
 * them again. A record that is inserted with an older time is found within ten look-ups.
 */
export function dueBounds() {
  const bounds = new Map<string, Bound>()
  return {
    /** Returns the time at which a look-up of a slice up to a time begins. */
    begin(slice: string, until: Instant): Instant {
      const bound = bounds.get(slice)
      if (bound === undefined) return unbounded
      // A clock that has gone back finds nothing above it.
      if (bound.left === 0 || bound.from > until) {
        bounds.delete(slice)
        return unbounded
      }
      bounds.set(slice, { ...bound, left: bound.left - 1 })
      return bound.from
    },
    /** Records that a look-up up to a time that began here has found nothing older than this. */
    seen(slice: string, began: Instant, until: Instant, oldest: Instant | undefined): void {
      const from = Math.min(oldest ?? until, until) - lateMs
      const left = began === unbounded ? lookUpsPerFull - 1 : bounds.get(slice)?.left
      // Another look-up of the slice has dropped the bound meanwhile.
      if (left === undefined) return
      if (bounds.size >= boundsMax && !bounds.has(slice)) bounds.clear()
      bounds.set(slice, { from: Math.max(from, began), left })
    },
  }
}
