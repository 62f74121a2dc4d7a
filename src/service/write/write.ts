import type { Stored } from '../../core/stored.js'
import type { RecordKey, RecordKind, VersionGuard } from '../../ports/store.js'
import type { DomainEvent } from '../events/record.js'
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
  /** Whether the changes themselves record the signature of the request. Default false. */
  readonly recordsSignature?: boolean
}

/**
 * A write: the records that it depends on, and a pure decision over them. Its time, ids and secrets are fixed before,
 * because a write is decided again if its commit loses a race.
 */
export interface Write<Result> {
  /** Every record that `decide` reads or changes. */
  readonly reads: readonly RecordKey[]
  /** The records of `reads`, if the caller has loaded them. The first attempt then loads nothing. */
  readonly known?: Records
  /**
   * The records of `reads` that exist if an identical earlier write was committed. A store need not read several
   * records at one instant. A decision that changes nothing therefore counts only if these records were read before and
   * after the others.
   */
  readonly creates?: readonly RecordKey[]
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
  return { reads: [], known: new Map(), decide: () => ({ result }) }
}

/**
 * A write of a new record. Its id is random, so a record with this id shows that the write was committed and the
 * response of the store was lost.
 */
export function creating<Result>(
  kind: RecordKind,
  { record: next, events }: { readonly record: Stored; readonly events: readonly DomainEvent[] },
  result: Result,
): Write<Result> {
  const key = { kind, id: next.id }
  return {
    reads: [key],
    known: new Map(),
    decide: (read) =>
      read(key) === undefined ? { changes: [{ kind, next, events }], result } : { result },
  }
}
