import type { Instant, Stored } from '../core/decision.js'

/** The kinds of record that the library stores. An id is unique within its kind. */
export type RecordKind =
  | 'grant'
  | 'incoming-payment'
  | 'outgoing-payment'
  | 'quote'
  | 'budget'
  | 'transfer'
  | 'nonce'
  | 'event'

/** One record to write: a compare-and-set on its version. */
export interface RecordChange {
  readonly kind: RecordKind
  readonly next: Stored
  /** The version that must be stored now; 0 when the record must not exist. `next` has the one after it. */
  readonly expectedVersion: number
}

/** A record that must still be at this version for the commit to take effect; it is not written. */
export interface VersionGuard {
  readonly kind: RecordKind
  readonly id: string
  /** At least 1: that a record does not exist cannot be guarded. */
  readonly version: number
}

/** Everything that one operation writes, all or nothing. */
export interface Commit {
  readonly changes: readonly RecordChange[]
  readonly guards: readonly VersionGuard[]
}

export interface ListQuery {
  readonly kind: RecordKind
  readonly list: string
  /** The page starts next to this place, which need not be taken by a record. */
  readonly cursor?: { readonly at: Instant; readonly id: string }
  /** True for the records after the cursor, from the first; false for those before it, from the last. */
  readonly forward: boolean
  readonly limit: number
}

/** A page of records, ascending by `(at, id)` whichever way the query went. */
export interface RecordPage {
  readonly records: readonly Stored[]
  /** Whether the query had more to give than its limit. */
  readonly more: boolean
}

/**
 * What the host implements to keep records. The whole contract:
 *
 * 1. `commit` is all or nothing, and each change is a compare-and-set. `true`: all of it was written by
 *    this call. `false`: reload; nothing is half written.
 * 2. At most one commit per record and expected version takes effect, and if none fails for another
 *    reason one does. Losers leave no trace. A guard that no longer holds fails the commit.
 * 3. `load` and `list` see every commit that returned `true`: no lagging replica, no index that is
 *    consistent only eventually.
 * 4. JSON in, JSON out, key for key, U+0000 and lone surrogates included. A loaded value never aliases
 *    the stored one.
 * 5. A rejected promise means that the outcome is unknown, and `false` may come from a driver that
 *    retried a write which had landed. The library resolves both by loading again: a record whose `by`
 *    is its own command is its own work.
 * 6. Every record committed before the first page was asked for appears exactly once while one pages.
 *
 * Ids match `[A-Za-z0-9._-]{1,128}`, are compared and ordered byte for byte, and begin with the namespace of
 * the server that made them. A commit names a record once. A record is in at most three lists, each once.
 * Instants are safe integers. `storeConformance` in `open-payments-server-testing` has a case for each rule.
 */
export interface Store {
  load(kind: RecordKind, id: string): Promise<Stored | undefined>
  commit(commit: Commit): Promise<boolean>
  list(query: ListQuery): Promise<RecordPage>
  /**
   * Records of a namespace, the first 8 characters of their ids, whose `dueAt` is at or before `before`,
   * ascending by `(dueAt, id)`. May lag.
   */
  due(
    kind: RecordKind,
    namespace: string,
    before: Instant,
    limit: number,
  ): Promise<readonly Stored[]>
  /** Removes a record if it is still at this version, and tells whether it did. */
  remove(kind: RecordKind, id: string, version: number): Promise<boolean>
}

/**
 * What a store over the host's own transaction rejects with when that transaction cannot go on: the library
 * then gives up at once, and leaves it to the host to roll back.
 */
export interface TransactionError extends Error {
  /** With `ERR_RESTART_TRANSACTION` the host may run the whole transaction again, from its beginning. */
  readonly code: 'ERR_RESTART_TRANSACTION' | 'ERR_TRANSACTION_FAILED'
}
