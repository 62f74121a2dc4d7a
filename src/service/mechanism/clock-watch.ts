import type { Instant } from '../../core/instant.js'
import type { Stored } from '../../core/stored.js'
import type { Clock } from '../../ports/clock.js'
import type { RecordKind, Store } from '../../ports/store.js'
import type { EventRecord } from './events.js'
import { nonceMarginMs } from './nonces.js'
import { ClockError, clockDifferenceMaxMs } from './steady-clock.js'
import { ContentionError } from './transact.js'

/** The least time between two reports, in milliseconds. */
const pauseMs = 60_000

/**
 * Wraps a store, and compares the times of its records with the clock. A record from more than 120 s in the future
 * shows that the clock of this server is too far behind, or that of the server that wrote it too far ahead. This is
 * reported at most once a minute, and changes no result: the server cannot tell which of the two clocks is wrong.
 *
 * A commit with a nonce whose signature has expired rejects with a `ContentionError`.
 */
export function clockWatch(store: Store, clock: Clock, report: (error: ClockError) => void): Store {
  let reportedAt: Instant | undefined

  function compare(kind: RecordKind, record: Stored | undefined): void {
    const at = record && writtenAt(record)
    if (at === undefined) return
    const now = clock.now()
    const aheadMs = at - now
    if (aheadMs <= clockDifferenceMaxMs) return
    if (reportedAt !== undefined && Math.abs(now - reportedAt) < pauseMs) return
    reportedAt = now
    report(new ClockError(`a record (${kind}) is dated ${aheadMs} ms ahead of this clock`))
  }

  const readAll = store.loadAll?.bind(store)
  return {
    ...(readAll && {
      async loadAll(keys) {
        const found = await readAll(keys)
        for (const [index, { kind }] of keys.entries()) compare(kind, found[index])
        return found
      },
    }),
    async load(kind, id) {
      const found = await store.load(kind, id)
      compare(kind, found)
      return found
    },
    async list(query) {
      const page = await store.list(query)
      for (const record of page.records) compare(query.kind, record)
      return page
    },
    async due(kind, namespace, before, limit) {
      const found = await store.due(kind, namespace, before, limit)
      for (const record of found) compare(kind, record)
      return found
    },
    async commit(commit) {
      if (commit.changes.some(({ kind, next }) => kind === 'nonce' && isTooLate(next, clock))) {
        throw new ContentionError('the signature expired before its operation was committed')
      }
      return store.commit(commit)
    },
    remove: (kind, id, version) => store.remove(kind, id, version),
  }
}

/**
 * Whether a commit that begins now may take effect after a server has removed the nonce that a copy of the request
 * wrote, so that both requests count. A port of the host may be slow, and a process can be suspended.
 */
function isTooLate({ dueAt }: Stored, clock: Clock): boolean {
  return dueAt !== undefined && clock.now() + nonceMarginMs > dueAt
}

/** Returns when a record was created, if it says so. For an event, this is the time of the change that it reports. */
function writtenAt(record: Stored): Instant | undefined {
  const { createdAt, event } = record as Partial<EventRecord> & { readonly createdAt?: Instant }
  return createdAt ?? event?.at
}
