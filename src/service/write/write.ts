import type { Stored } from '../../core/stored.js'
import type { RecordKey, RecordKind, VersionGuard } from '../../ports/store.js'
import type { DomainEvent } from '../event-record.js'
import type { Read, Records } from '../load.js'

/** A record to write, and the events that tell the host about it. Its version is the version that was read plus 1. */
export interface Change {
  readonly kind: RecordKind
  readonly next: Stored
  readonly events?: readonly DomainEvent[]
}

/**
 * The decision of a write: the records to write, and the result to return once they are committed.
 *
 * - With `changes`, the commit fails if a changed record or the guard has another version: all is loaded and decided
 *   again.
 * - Without changes, the result is only as good as what was read: the guard must hold, and each record must have been
 *   loaded since the host was asked. Otherwise all is loaded and decided again.
 * - With `tookEffect` and without changes, the guard held for the earlier commit, so it need not hold now.
 */
export interface Decided<Result> {
  readonly result: Result
  /** Default: nothing is written. */
  readonly changes?: readonly Change[]
  /** Written in the same commit, even without `changes`: the record by which a signed request counts once. */
  readonly also?: readonly Change[]
  /** The id of the record that a repeat of the signed request gets. Default: its repeat gets none. */
  readonly resultId?: string
  /** Whether an earlier commit of this write, or of an identical one, took effect. Default false. */
  readonly tookEffect?: boolean
  /** Whether the caller decides again after this result, so that it does not answer the request. Default false. */
  readonly isInterim?: boolean
}

/** Records on which a write is decided without loading them. */
export interface Assumed {
  /** A key without an entry is assumed not to exist; if the record exists, the commit fails. */
  readonly records: Records
  /**
   * Whether the host was asked after these records were loaded: its answer may depend on later versions. Default false.
   */
  readonly hostAskedSince?: boolean
}

/**
 * A write: the records that it depends on, and a pure decision over them. Its time, ids and secrets are fixed before,
 * because a write is decided again if its commit loses a race.
 */
export interface Write<Result> {
  /** Every record that `decide` reads or changes. */
  readonly reads: readonly RecordKey[]
  /** What the caller has loaded, or assumes, of `reads`. If present, the first attempt loads nothing. */
  readonly assumed?: Assumed
  /** A record whose version the commit guards, and the result if it has another version. */
  readonly guard?: { readonly record: VersionGuard; readonly ifChanged: Result }
  /** Concurrent writes with the same name share a commit. Default: the write has a commit of its own. */
  readonly together?: string | undefined
  /** Reads its records as the writes before this one leave them. */
  decide(read: Read): Decided<Result>
}

/** Executes a write, and resolves to its result once it is committed. */
export type RunWrite = <Result>(write: Write<Result>) => Promise<Result>

/** A write that reads and changes nothing. */
export function answerWrite<Result>(result: Result): Write<Result> {
  return { reads: [], assumed: { records: new Map() }, decide: () => ({ result }) }
}

/**
 * A write of a new record. Its id is random, so it is assumed not to exist. If it does, the write was committed, and
 * the response of the store was lost.
 */
export function creationWrite<Result>(
  kind: RecordKind,
  { record: next, events }: { readonly record: Stored; readonly events: readonly DomainEvent[] },
  result: Result,
): Write<Result> {
  const key = { kind, id: next.id }
  return {
    reads: [key],
    assumed: { records: new Map() },
    decide: (read) => ({
      result,
      resultId: next.id,
      ...(read(key) === undefined && { changes: [{ kind, next, events }] }),
    }),
  }
}
