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

/** What a write decides: the records to write, and the result to return once they are committed. */
export interface Decided<Result> {
  readonly result: Result
  /** Default: nothing is written. */
  readonly changes?: readonly Change[]
  /** Written in the same commit, even without `changes`: the record by which a signed request counts once. */
  readonly also?: readonly Change[]
  /**
   * Whether nothing changes because an earlier commit of this write, or of an identical one, took effect. The guard
   * held then, so that the result is not outdated. Default false.
   */
  readonly isRepeat?: boolean
}

/** Records on which a write is decided. */
export interface Known {
  /** A record that is missing is guessed not to exist. */
  readonly records: Records
  /**
   * Whether a port was called since they were loaded whose answer may follow a change that is not in them. Default
   * false.
   */
  readonly isOld?: boolean
}

/**
 * A write: the records that it depends on, and a pure decision over them. Its time, ids and secrets are fixed before,
 * because a write is decided again if its commit loses a race.
 */
export interface Write<Result> {
  /** Every record that `decide` reads or changes. */
  readonly reads: readonly RecordKey[]
  /**
   * What the caller knows of `reads`. The first attempt then loads nothing. A decision that changes something counts,
   * because its commit fails if a changed record is not as it was known. A decision that changes nothing counts only if
   * the records are one snapshot, which is not old, and no other record of `reads` is guessed not to exist. Otherwise,
   * all are loaded, and the write is decided again: an identical write may have taken effect.
   */
  readonly known?: Known
  /** A version that the commit guards, and the result if the record is no longer at this version. */
  readonly guard?: { readonly version: VersionGuard; readonly outdated: Result }
  /** Concurrent writes with the same name share a commit. Default: the write has a commit of its own. */
  readonly together?: string
  /** Reads its records as the writes before this one leave them. */
  decide(read: Read): Decided<Result>
  /** Decides about a byte-identical repeat of a request. `undefined` refuses it as a replay. */
  repeated?(read: Read): Decided<Result> | undefined
}

/** Executes a write, and resolves to its result once it is committed. */
export type RunWrite = <Result>(write: Write<Result>) => Promise<Result>

/** A write that reads and changes nothing. */
export function answered<Result>(result: Result): Write<Result> {
  return { reads: [], known: { records: new Map() }, decide: () => ({ result }) }
}

/**
 * A write of a new record. Its id is random, so the guess is that the record does not exist. If it does, the write was
 * committed, and the response of the store was lost.
 */
export function creating<Result>(
  kind: RecordKind,
  { record: next, events }: { readonly record: Stored; readonly events: readonly DomainEvent[] },
  result: Result,
): Write<Result> {
  const key = { kind, id: next.id }
  return {
    reads: [key],
    known: { records: new Map() },
    decide: (read) =>
      read(key) === undefined ? { changes: [{ kind, next, events }], result } : { result },
  }
}
