import type { Stored } from '../../core/stored.js'
import {
  type Commit,
  type RecordChange,
  type RecordKey,
  type RecordKind,
  storeBounds,
  type VersionGuard,
} from '../../ports/store.js'
import { eventRecords, type RecordedEvents, withLastEvent } from '../event-record.js'
import { nameOf, type Read, type Records } from '../load.js'
import { storedId } from '../public-ids.js'
import type { Basis, Change, Decided, Write } from './write.js'

/** The outcome of a write when several are decided for one commit. */
export type Outcome =
  /** It has this result once the commit takes effect. */
  | { readonly type: 'decided'; readonly result: unknown }
  /** Its `decide` threw an unexpected error, which does not affect the other writes of the commit. */
  | { readonly type: 'failed'; readonly error: unknown }
  /** It has to be loaded and decided again, apart from the others. */
  | { readonly type: 'again' }
  /** The commit has no room for it, nor for those behind it. */
  | { readonly type: 'later' }

/** The outcomes of some writes, in their order, and the commit that carries them out. */
export interface Round {
  readonly outcomes: readonly Outcome[]
  readonly commit: Commit
}

/** A change that is not yet committed: the stored record, the next one, and the events that are recorded. */
interface PendingChange extends Required<Change> {
  readonly before: Stored | undefined
}

/** Which events are recorded, and the namespace of the server, which their ids begin with. */
export interface EventSettings {
  readonly recordsEvents: RecordedEvents
  readonly namespace: string
}

/** Decides writes in their order, each on the records as the writes before it change them. Pure. */
export function decideInOrder(
  writes: readonly Write<unknown>[],
  { type: basis, records }: Basis,
  { recordsEvents, namespace }: EventSettings,
): Round {
  const pending = new Map<string, PendingChange>()
  const guards = new Map<string, VersionGuard>()
  let size = 0

  const read: Read = <Found extends Stored>(key: RecordKey) => {
    const name = nameOf(key)
    const change = pending.get(name)
    // With the stored version: several writes of one commit become one change, of the stored version plus 1.
    const changed = change && { ...change.next, version: change.before?.version ?? 0 }
    return (changed ?? records.get(name)) as Found | undefined
  }

  function outcomeOf({ reads, guard, decide }: Write<unknown>): Outcome {
    let decision: Decided<unknown>
    try {
      decision = decide(read)
    } catch (error) {
      return { type: 'failed', error }
    }
    const { type, result } = decision
    if (type === 'interim') return { type: 'decided', result }
    const { also = [] } = decision
    const changes = type === 'commit' ? decision.changes : []
    const isChanged = changes.length > 0
    if (guard !== undefined && type !== 'repeat' && !holds(guard.record, records)) {
      return { type: 'decided', result: guard.ifChanged }
    }
    if (!isChanged && !reads.every((key) => isProved(key, also))) return { type: 'again' }
    const isAdded = add([...changes, ...also], isChanged ? guard?.record : undefined)
    return isAdded ? { type: 'decided', result } : { type: 'later' }
  }

  /**
   * Whether a decision that changes nothing may rely on a record: the commit writes it, or it was loaded after the host
   * was asked. A record that an earlier write of this commit changes is not proved: that change is not committed yet.
   */
  function isProved(key: RecordKey, also: readonly Change[]): boolean {
    const isWritten = also.some(({ kind, next }) => kind === key.kind && next.id === key.id)
    return (
      isWritten || (basis === 'loaded' && records.has(nameOf(key)) && !pending.has(nameOf(key)))
    )
  }

  /** Adds changes and a guard to the commit, if it has room for them. A single write always fits. */
  function add(changes: readonly Change[], guard: VersionGuard | undefined): boolean {
    let needed = guard === undefined || guards.has(nameOf(guard)) ? 0 : 1
    const added = new Map<string, PendingChange>()
    for (const { kind, next, events = [] } of changes) {
      const name = nameOf({ kind, id: next.id })
      const earlier = pending.get(name)
      const recorded = events.filter(({ type }) => recordsEvents(type))
      const allEvents = earlier === undefined ? recorded : [...earlier.events, ...recorded]
      const change = { kind, next, events: allEvents, before: records.get(name) }
      needed += sizeOf(change) - (earlier === undefined ? 0 : sizeOf(earlier))
      added.set(name, change)
    }
    if (size > 0 && size + needed > storeBounds.commitSize) return false
    size += needed
    for (const [name, change] of added) pending.set(name, change)
    if (guard !== undefined) guards.set(nameOf(guard), guard)
    return true
  }

  let isFull = false
  const outcomes = writes.map((write): Outcome => {
    const outcome: Outcome = isFull ? { type: 'later' } : outcomeOf(write)
    isFull ||= outcome.type === 'later'
    return outcome
  })
  const changes: RecordChange[] = []
  for (const change of pending.values()) changes.push(...recordChanges(change, namespace))
  return { outcomes, commit: { changes, guards: [...guards.values()] } }
}

/** Whether a record is at this version, as far as it was loaded. */
function holds(guard: VersionGuard, records: Records): boolean {
  const name = nameOf(guard)
  return !records.has(name) || records.get(name)?.version === guard.version
}

/** Returns what a change adds to `storeBounds.commitSize`. An event is a record in no list. */
function sizeOf({ next: { lists = [] }, events, before }: PendingChange): number {
  const { lists: listsBefore = [] } = before ?? {}
  const names = new Set([...listsBefore, ...lists].map(({ list }) => list))
  const kept = lists.filter(({ list, at }) =>
    listsBefore.some((entry) => entry.list === list && entry.at === at),
  )
  return 1 + names.size - kept.length + events.length
}

function recordChanges(
  { kind, next, events, before }: PendingChange,
  namespace: string,
): readonly RecordChange[] {
  const key = { kind, id: storedId(namespace, kind, next.id) }
  const recorded = eventRecords(key, next, events, before?.lastEvent)
  const told = withLastEvent(next, recorded, before)
  const change = before === undefined ? newRecord(kind, told) : replacement(kind, before, told)
  return [change, ...recorded.map((event) => newRecord('event', event))]
}

/**
 * Returns the change of an existing record, with the lists and due time that it replaces: a store need not load them.
 */
function replacement(kind: RecordKind, before: Stored, next: Stored): RecordChange {
  const { version, lists, dueAt } = before
  const previous = dueAt === undefined ? {} : { dueAt }
  return {
    kind,
    next,
    expectedVersion: version,
    previous: lists === undefined ? previous : { lists, ...previous },
  }
}

function newRecord(kind: RecordKind, next: Stored): RecordChange {
  return { kind, next, expectedVersion: 0 }
}
