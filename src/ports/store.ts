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

/** A record to write, as a compare-and-set on its version. */
export interface RecordChange {
  readonly kind: RecordKind
  readonly next: Stored
  /**
   * The version that must be stored now; 0 when the record must not exist. `next` has this version plus 1.
   */
  readonly expectedVersion: number
}

/**
 * A record that must still be at this version for the commit to take effect. The commit does not write it.
 */
export interface VersionGuard {
  readonly kind: RecordKind
  readonly id: string
  /** At least 1: a guard cannot require that a record does not exist. */
  readonly version: number
}

/** All writes of one operation; they take effect together or not at all. */
export interface Commit {
  readonly changes: readonly RecordChange[]
  readonly guards: readonly VersionGuard[]
}

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
 * The storage that the host implements. The whole contract:
 *
 * 1. `commit` is atomic, and each change is a compare-and-set. `true` means that this call wrote all of it.
 *    `false` means that the caller must reload; a part of a commit is never visible.
 * 2. At most one commit per record and expected version takes effect, and exactly one does if none of them
 *    fails for another reason. A commit that loses leaves no trace. A guard that no longer holds fails the
 *    commit.
 * 3. `load` and `list` see every commit that returned `true`: no lagging replicas and no eventually
 *    consistent indexes.
 * 4. A loaded value equals the stored JSON, key for key, including U+0000 and lone surrogates. It never
 *    shares memory with the stored value.
 * 5. A rejected promise means that the outcome is unknown. `false` can also come from a driver that retried
 *    a write which had already succeeded. The library resolves both by loading again: a record with its own
 *    `commandId` is its own write.
 * 6. Every record committed before the first page was read appears exactly once on the pages.
 *
 * Ids match `[A-Za-z0-9._-]{1,128}`, are compared and ordered byte for byte, and begin with the namespace of
 * the server that created them. A commit contains each record at most once. A record is in at most three
 * lists, once in each. Instants are safe integers. `storeConformance` in `open-payments-server-testing`
 * checks each rule.
 */
export interface Store {
  /** Resolves to the record, or to `undefined` if it does not exist. */
  load(kind: RecordKind, id: string): Promise<Stored | undefined>
  /** Writes all changes if every expected version and guard holds; resolves to whether it did. */
  commit(commit: Commit): Promise<boolean>
  /** Resolves to a page of the records in a list. */
  list(query: ListQuery): Promise<RecordPage>
  /**
   * Resolves to at most `limit` records of a namespace (the first 8 characters of their ids) with a `dueAt`
   * at or before `before`, ascending by `(dueAt, id)`. Unlike `list`, it may lag behind commits.
   */
  due(
    kind: RecordKind,
    namespace: string,
    before: Instant,
    limit: number,
  ): Promise<readonly Stored[]>
  /** Removes a record if it is still at this version; resolves to whether it did. */
  remove(kind: RecordKind, id: string, version: number): Promise<boolean>
}

/**
 * The error with which a store inside the host's transaction rejects when that transaction cannot continue.
 * The library does not retry then; the host must roll back.
 */
export class TransactionError extends Error {
  /** With `ERR_RESTART_TRANSACTION`, the host may run the whole transaction again from the start. */
  readonly code: 'ERR_RESTART_TRANSACTION' | 'ERR_TRANSACTION_FAILED'

  constructor(code: TransactionError['code'], message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}
