import type { Instant } from '../core/instant.js'
import type { Stored } from '../core/stored.js'

/** The kinds of record that the library stores. An id is unique within its kind. */
export type RecordKind =
  | 'grant'
  | 'ended-grant'
  | 'incoming-payment'
  | 'outgoing-payment'
  | 'doubt'
  | 'quote'
  | 'budget'
  | 'transfer'
  | 'replay'
  | 'event'
  | 'settlement'
  | 'server'

/** What identifies a record. */
export interface RecordKey {
  readonly kind: RecordKind
  readonly id: string
}

/** A record to write, as a compare-and-set on its version. */
export interface RecordChange {
  readonly kind: RecordKind
  readonly next: Stored
  /**
   * The version that must be stored now; 0 when the record must not exist. `next` has this version plus 1.
   */
  readonly expectedVersion: number
  /**
   * Where the version to replace is found: its lists and its due time. Absent exactly when `expectedVersion` is
   * 0. A store that keeps entries of its own for them need not load the record to remove those entries. The
   * values hold only if the record is at `expectedVersion`.
   */
  readonly previous?: Pick<Stored, 'lists' | 'dueAt'>
}

/**
 * A record that must still be at this version for the commit to take effect. The commit does not write it.
 */
export interface VersionGuard extends RecordKey {
  /** At least 1: a guard cannot require that a record does not exist. */
  readonly version: number
}

/**
 * The bounds within which the library calls a store.
 *
 * - `commitSize`: the maximum sum, over a commit, of its changes, its guards and the list entries that its
 *   changes add, move or remove. An operation on one record stays at or below 11; commits that combine several
 *   operations or events fill the rest.
 * - `recordLists`: the maximum number of lists of a record.
 * - `listLimit` and `dueLimit`: the maximum `limit` of `list` and of `due`. The minimum is 1.
 * - `loadKeys` and `removeRecords`: the maximum number of keys of `load`, and of records of `remove`. The minimum is 1.
 * - `listNameLength`: the maximum length of the name of a list, in characters: the namespace and two URLs.
 * - `valueBytes`: the maximum size of a record, in bytes of its JSON.
 *
 * @example
 * ```ts
 * import { type RecordKey, storeBounds } from 'open-payments-server/adapter'
 *
 * function rejectTooMany(keys: readonly RecordKey[]): void {
 *   if (keys.length > storeBounds.loadKeys) throw new RangeError('load at most 60 records at once')
 * }
 * ```
 */
export const storeBounds = {
  commitSize: 90,
  recordLists: 3,
  listLimit: 100,
  dueLimit: 10_000,
  loadKeys: 60,
  removeRecords: 1_000,
  listNameLength: 4_106,
  valueBytes: 256 * 1024,
} as const

/** All writes of one operation; they take effect together or not at all. */
export interface Commit {
  readonly changes: readonly RecordChange[]
  readonly guards: readonly VersionGuard[]
}

/** A page of a list: where it starts, and how many records it has at most. */
export interface ListQuery {
  readonly kind: RecordKind
  readonly list: string
  /** The position next to which the page starts. It need not be the position of a record. */
  readonly cursor?: { readonly at: Instant; readonly id: string }
  /**
   * True for the records after the cursor, or the first ones without a cursor; false for the records
   * immediately before the cursor, or the last ones without a cursor.
   */
  readonly forward: boolean
  readonly limit: number
}

/** A page of records, ascending by `(at, id)` in either direction of the query. */
export interface RecordPage {
  readonly records: readonly Stored[]
  /** Whether further records follow in the direction of the query. */
  readonly more: boolean
}

/**
 * The storage that the host implements: five methods. The whole contract:
 *
 * 1. `commit` is atomic, and each change is a compare-and-set. `true` means that this call wrote all of it. `false`
 *    means that the caller must reload. A part of a commit is never visible: once a call has returned it, every call
 *    that begins later sees the whole commit.
 * 2. At most one commit per record and expected version takes effect, and exactly one does if none of them fails for
 *    another reason. A commit that loses leaves no trace, in lists and due times too. A guard that no longer holds
 *    fails the commit. Contention must not make a call reject: a store retries deadlocks and serialization failures,
 *    and returns `false` for a commit that lost.
 * 3. `load` and `list` see every commit that returned `true`, and a guard is compared with its result: no lagging
 *    replicas and no eventually consistent indexes. What one call of `load` returns is one snapshot: all its records as
 *    they were at one moment of the call.
 * 4. A loaded value equals the stored JSON, key for key, including U+0000 and lone surrogates. It never shares memory
 *    with the stored value.
 * 5. A rejected promise means that the outcome is unknown. `false` can also come from a driver that retried a write
 *    which had already succeeded. The library resolves both by loading again: a record with its own `commandId` is its
 *    own write.
 * 6. Every record committed before the first page was read, and neither moved in its list nor removed since, appears
 *    exactly once on the pages. A page need not be one snapshot: each of its records is as it was at some moment of the
 *    call, and one that is removed during the call may be left out. `list` must not reject because of such a removal.
 *
 * Ids match `[A-Za-z0-9._-]{8,128}`, are compared and ordered byte for byte, and begin with the namespace of the server
 * that created them, 8 characters. In the ids of events, the last of these is the number of a slice, which is a
 * namespace of its own to a store. Command ids match `[A-Za-z0-9_-]{22}`. A commit contains each record at most once,
 * as a change or as a guard. A record is in at most three lists, once in each. Instants are safe integers.
 * `storeBounds` limits the sizes of commits, records and names, and the limits of queries. `storeConformance` in
 * `open-payments-server-testing` checks each rule within these bounds.
 */
export interface Store {
  /**
   * Resolves to the record with each key, in the order of the keys, or to `undefined` for a key without a record. A key
   * may occur more than once.
   */
  load(keys: readonly RecordKey[]): Promise<readonly (Stored | undefined)[]>
  /** Writes all changes if every expected version and guard holds; resolves to whether it did. */
  commit(commit: Commit): Promise<boolean>
  /** Resolves to a page of the records in a list. */
  list(query: ListQuery): Promise<RecordPage>
  /**
   * Resolves to at most `limit` records of a namespace (the first 8 characters of their ids) with a `dueAt`
   * at or before `before`, ascending by `(dueAt, id)`. Unlike `list`, it may lag behind commits, by seconds but
   * not for ever: it may return earlier versions of records, and records that were removed. Records that it leaves
   * out, because their `dueAt` has changed or they were removed, do not count towards the limit.
   *
   * With `from`, it may leave out records that are due before that instant, or were in an earlier version. A store can
   * ignore it. A database then reads less of what was removed, which a held snapshot keeps.
   */
  due(
    kind: RecordKind,
    namespace: string,
    before: Instant,
    limit: number,
    from?: Instant,
  ): Promise<readonly Stored[]>
  /**
   * Removes each of these records that is still at its version, with its places in lists; resolves to whether it did,
   * in the order of the records. The records may be of several kinds; each occurs once. Unlike a commit, the removals
   * need not take effect together.
   */
  remove(records: readonly VersionGuard[]): Promise<readonly boolean[]>
}

/**
 * The error with which a store inside the host's transaction rejects when that transaction cannot continue.
 * The library does not retry then; the host must roll back.
 *
 * @example
 * ```ts
 * import { TransactionError } from 'open-payments-server'
 *
 * async function twice<Result>(transaction: () => Promise<Result>): Promise<Result> {
 *   try {
 *     return await transaction()
 *   } catch (error) {
 *     const restarts = error instanceof TransactionError && error.code === 'ERR_RESTART_TRANSACTION'
 *     if (restarts) return transaction()
 *     throw error
 *   }
 * }
 * ```
 */
export class TransactionError extends Error {
  /** With `ERR_RESTART_TRANSACTION`, the host may run the whole transaction again from the start. */
  readonly code: 'ERR_RESTART_TRANSACTION' | 'ERR_TRANSACTION_FAILED'

  constructor(
    code: TransactionError['code'],
    message: string,
    options?: { readonly cause?: unknown },
  ) {
    super(message, options)
    this.code = code
  }
}
