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

/** The decision of a write: what it results in once it is committed, and what must hold for that. */
export type Decided<Result> =
  /**
   * Records to write. The commit fails if one of them, or the guard, has another version than the one that was read:
   * all is loaded and decided again.
   */
  | (Recorded<Result> & { readonly type: 'commit'; readonly changes: readonly Change[] })
  /**
   * Nothing to write, so that no commit proves what was read: the guard must hold, and each record must have been
   * loaded since the host was asked. Otherwise all is loaded and decided again.
   */
  | (Recorded<Result> & { readonly type: 'answer' })
  /**
   * An earlier commit of this write, or of an identical one, took effect. As an answer, but the guard, which held then,
   * need not hold now.
   */
  | (Recorded<Result> & { readonly type: 'repeat' })
  /** The caller has to begin again, so that the request is not answered. Nothing needs to hold. */
  | { readonly type: 'interim'; readonly result: Result }

interface Recorded<Result> {
  readonly result: Result
  /** The id of the record that a repeat of the signed request gets. Default: its repeat gets none. */
  readonly resultId?: string
  /** Written in the same commit, even without `changes`: the record by which a signed request counts once. */
  readonly also?: readonly Change[]
}

/** Records on which a write is first decided, without loading them. */
export type Basis =
  /** Loaded since the host was last asked: an answer may rely on those that are there. */
  | { readonly type: 'loaded'; readonly records: Records }
  /**
   * Assumed, or loaded before the host was asked, whose answer may depend on later versions: only a commit proves them.
   * A record without an entry is assumed not to exist.
   */
  | { readonly type: 'assumed'; readonly records: Records }

/** The basis of a write whose records do not exist, as far as its caller knows. */
export const nothingExists: Basis = { type: 'assumed', records: new Map() }

/**
 * A write: the records that it depends on, and a pure decision over them. Its time, ids and secrets are fixed before,
 * because a write is decided again if its commit loses a race.
 */
export interface Write<Result> {
  /** Every record that `decide` reads or changes. */
  readonly reads: readonly RecordKey[]
  /** What the caller has loaded, or assumes, of `reads`. Default: the first attempt loads them. */
  readonly basis?: Basis
  /** A record whose version the commit guards, and the interim result if it has another version. */
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
  return { reads: [], basis: nothingExists, decide: () => ({ type: 'answer', result }) }
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
    basis: nothingExists,
    decide: (read) =>
      read(key) === undefined
        ? { type: 'commit', changes: [{ kind, next, events }], result, resultId: next.id }
        : { type: 'repeat', result, resultId: next.id },
  }
}
