import { type Refused, refused } from '../core/decision.js'
import type { Instant } from '../core/instant.js'
import type { ListQuery, Store } from '../ports/store.js'
import { evictOldest } from '../util/evict-oldest.js'

/** Limits the open payments in each list. */
export interface OpenPaymentLimit {
  /** Runs the creation of a payment, or refuses it if the list is full. */
  within<Result>(
    list: string,
    now: Instant,
    create: () => Promise<Result>,
  ): Promise<Result | Refused<'open_payments_exceeded'>>
}

/** What this process knows about a list. */
interface Tally {
  /** The number of payments to create before the list is counted again. */
  left: number
  /** The number of payments whose creation is in progress, and which a count may miss. */
  creating: number
  /** A list that was nearly full is not counted again before this instant. */
  nextCountAt: Instant
  counting: Promise<void> | undefined
}

const talliesMax = 10_000
const pageLimit = 100
const pauseMs = 1_000
const retryMs = 60_000

/**
 * Creates a limit that does not read the store for most payments. A process counts a list only after it has created a
 * tenth of the maximum in it, and then reads at most the maximum number of records. Each process can therefore exceed
 * the maximum by a tenth. A process that restarts, or that has used 10,000 other lists since, can do so again. If the
 * maximum is below 10, the process counts the list for each payment.
 *
 * A list that is nearly full is counted at most once per second. Until the next count, payments that exceed the
 * capacity found by the last count are refused.
 */
export function createOpenPaymentLimit(store: Store, openMax: number): OpenPaymentLimit {
  const uncounted = Math.floor(openMax / 10)
  const tallyOf = createTallies(uncounted)

  async function count(list: string, tally: Tally, now: Instant): Promise<void> {
    const remaining = openMax - (await countOpen(store, list, now, openMax)) - tally.creating
    tally.left = Math.max(0, Math.min(remaining, Math.max(1, uncounted)))
    tally.nextCountAt = remaining > uncounted ? 0 : now + pauseMs
  }

  /** Takes a place in the list. No other call can run between the last check of `left` and its change. */
  async function enter(list: string, tally: Tally, now: Instant): Promise<boolean> {
    while (tally.left === 0) {
      if (tally.counting === undefined) {
        if (now < tally.nextCountAt && tally.nextCountAt <= now + pauseMs) return false
        tally.counting = count(list, tally, now).finally(() => {
          tally.counting = undefined
        })
      }
      await tally.counting
    }
    tally.left -= 1
    tally.creating += 1
    return true
  }

  return {
    async within(list, now, create) {
      const tally = tallyOf(list)
      if (!(await enter(list, tally, now))) {
        const reason = `the client has ${openMax} open payments at this wallet address`
        return refused('open_payments_exceeded', reason, now + retryMs)
      }
      try {
        return await create()
      } finally {
        tally.creating -= 1
      }
    },
  }
}

/** Returns a function that finds what is known about a list; it forgets the least recently used lists. */
function createTallies(uncounted: number): (list: string) => Tally {
  const tallies = new Map<string, Tally>()
  return (list) => {
    const initial = { left: uncounted, creating: 0, nextCountAt: 0, counting: undefined }
    const tally: Tally = tallies.get(list) ?? initial
    tallies.delete(list)
    tallies.set(list, tally)
    evictOldest(tallies, talliesMax)
    return tally
  }
}

/** Counts the payments in a list, ordered by expiry, that have not expired; at most `max` of them. */
async function countOpen(store: Store, list: string, now: Instant, max: number): Promise<number> {
  let counted = 0
  // A payment is still open at the instant of its expiry, and every id follows this one.
  let cursor: ListQuery['cursor'] = { at: now, id: '-' }
  while (cursor !== undefined && counted < max) {
    const limit = Math.min(pageLimit, max - counted)
    const query: ListQuery = { kind: 'incoming-payment', list, cursor, forward: true, limit }
    const { records, more } = await store.list(query)
    counted += records.length
    const last = records.at(-1)
    const at = last?.lists?.find((entry) => entry.list === list)?.at
    cursor = more && last !== undefined && at !== undefined ? { at, id: last.id } : undefined
  }
  return counted
}
