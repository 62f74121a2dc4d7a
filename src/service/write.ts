import type { Stored } from '../core/stored.js'
import type { Random } from '../ports/host.js'
import {
  type Commit,
  type RecordChange,
  type RecordKey,
  type RecordKind,
  type Store,
  storeBounds,
  type VersionGuard,
} from '../ports/store.js'
import { InvalidInputError } from '../util/input.js'
import { type DomainEvent, eventRecords, type RecordedEvents } from './events/record.js'
import { loadRecords, nameOf, type Read, type Records } from './load.js'
import type { Namespace } from './namespace.js'
import { ContentionError, isTransactionError, withinTime } from './store-guard.js'
import type { Pacing } from './time.js'

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

/** A write that reads and changes nothing. */
export function answered<Result>(result: Result): Write<Result> {
  return { reads: [], known: new Map(), decide: () => ({ result }) }
}

export interface RunnerContext {
  readonly store: Store
  readonly random: Random
  readonly pacing: Pacing
  readonly recordsEvents: RecordedEvents
  /** How long an operation tries to commit, in milliseconds. */
  readonly storeTimeoutMs: number
  /** Resolves once the store says that the namespace of the records belongs to this server. */
  readonly claim: Namespace['claim']
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

/** Executes a write, and resolves to its result once it is committed. */
export type RunWrite = <Result>(write: Write<Result>) => Promise<Result>

/** The maximum number of writes that wait for others with the same name. */
export const waitingMax = 1_000

/** The minimum time for a call of the store, in milliseconds, even if it begins just before the deadline. */
const settleMinMs = 500

const pauseMaxMs = 64

/**
 * Returns the function that executes every write:
 *
 * 1. Load everything that the writes read, unless the caller has done so.
 * 2. Decide one write after the other, each on the records as the writes before it leave them.
 * 3. Commit all of it at once. If the commit loses a race, or its outcome is unknown, begin again.
 *
 * While a write with a name is in progress, other writes with this name wait, and then share one load and one commit.
 * With commits of their own, all but one would lose the race for the same record. A record with the command id of a
 * write shows that an earlier commit of it took effect; its decision then returns the same result without a change.
 *
 * The function rejects with a `ContentionError` if other writers keep changing the records until the deadline, if too
 * many writes wait, or if the write has waited too long; with the error of the store if an outcome is unknown at the
 * deadline; and with a `TransactionError` at once.
 *
 * @param inTransaction whether the store is inside a transaction of the host. Writes then do not wait for others, which
 *   may wait for a lock of that transaction, and no store call is limited in time.
 */
export function createRunner(context: RunnerContext, inTransaction = false): RunWrite {
  const { pacing, storeTimeoutMs } = context
  const waitingFor = new Map<string, Waiting[]>()

  return function run<Result>(write: Write<Result>): Promise<Result> {
    return new Promise<Result>((resolve, reject) => {
      const member = { write, resolve, reject } as Member
      const name = inTransaction ? undefined : write.together
      if (name === undefined) return void execute(context, [member], inTransaction)
      const waiting = waitingFor.get(name)
      if (waiting === undefined) void lead(name, member)
      else if (waiting.length >= waitingMax) reject(new ContentionError())
      else void wait(waiting, member)
    })
  }

  /** Executes the first write with a name, and then the writes that have waited for it. */
  async function lead(name: string, first: Member): Promise<void> {
    const waiting: Waiting[] = []
    waitingFor.set(name, waiting)
    await execute(context, [first])
    while (waiting.length > 0) {
      const batch = nextBatch(waiting)
      for (const { begun } of batch) begun.abort()
      const left = await execute(context, batch)
      const isOver = ({ endsAt }: Waiting) => pacing.elapsedMs() >= endsAt
      const behind = batch.slice(batch.length - left)
      waiting.unshift(...behind.filter((member) => !isOver(member)))
      for (const member of behind.filter(isOver)) member.reject(new ContentionError())
    }
    waitingFor.delete(name)
  }

  async function wait(waiting: Waiting[], member: Member): Promise<void> {
    const begun = new AbortController()
    const endsAt = pacing.elapsedMs() + storeTimeoutMs
    const entry = { ...member, write: withoutKnown(member.write), begun, endsAt }
    waiting.push(entry)
    await pacing.sleep(storeTimeoutMs, begun.signal)
    if (begun.signal.aborted) return
    waiting.splice(waiting.indexOf(entry), 1)
    entry.reject(new ContentionError())
  }
}

/** A write with the promise of its result. The runner does not know the type of the result. */
interface Member {
  readonly write: Write<unknown>
  readonly resolve: (result: unknown) => void
  readonly reject: (error: unknown) => void
}

/** A write that waits for others with the same name. `begun` is aborted when it is executed. */
interface Waiting extends Member {
  readonly begun: AbortController
  /** When it has waited too long; set if a commit that it joined had no room for it. */
  readonly endsAt: number
}

/** What was known before a write waited may be outdated. */
function withoutKnown({ known: _known, ...write }: Write<unknown>): Write<unknown> {
  return write
}

/** Removes the first waiting writes from the queue, as many as one call of `load` can load. */
function nextBatch(waiting: Waiting[]): readonly Waiting[] {
  const names = new Set<string>()
  const last = waiting.findIndex(({ write }) => {
    for (const key of keysOf(write)) names.add(nameOf(key))
    return names.size > storeBounds.loadKeys
  })
  return waiting.splice(0, last === -1 ? waiting.length : Math.max(last, 1))
}

/** Executes writes in one commit. Resolves to how many of them, the last ones, do not fit into it. Never rejects. */
async function execute(
  context: RunnerContext,
  members: readonly Member[],
  inTransaction = false,
): Promise<number> {
  try {
    const { decided, unchanged, left } = await committed(context, members, inTransaction)
    for (const { member, result } of decided) member.resolve(result)
    // Concurrently, so that a slow store delays the last of them no longer than the first.
    await Promise.all(unchanged.map((member) => execute(context, [member])))
    return left
  } catch (error) {
    for (const { reject } of members) reject(error)
    return 0
  }
}

/** Loads, decides and commits, until a commit takes effect. */
async function committed(
  { store, random, pacing, recordsEvents, storeTimeoutMs, claim }: RunnerContext,
  members: readonly Member[],
  inTransaction: boolean,
): Promise<Pick<Round, 'decided' | 'unchanged' | 'left'>> {
  const endsAt = pacing.elapsedMs() + storeTimeoutMs
  let records = knownRecords(members)
  // The error of a commit that may still take effect, also after a later commit has lost a race.
  let unknown: unknown
  for (let attempt = 1; ; attempt++) {
    const within = <Value>(call: keyof Store, work: () => Promise<Value>): Promise<Value> =>
      attempt === 1 || inTransaction
        ? work()
        : withinTime(call, Math.max(endsAt - pacing.elapsedMs(), settleMinMs), work)
    const load = (keys: readonly RecordKey[]) => within('load', () => loadRecords(store, keys))
    const reload = () => load(members.flatMap(({ write }) => keysOf(write)))
    let failure: unknown
    let isCommitting = false
    try {
      records ??= await reload()
      let round = decideInOrder(members, records, recordsEvents)
      const again = await load(round.unconfirmed)
      if ([...again.values()].some((record) => record !== undefined)) {
        // Everything is loaded after the record that shows the repeat, and so includes its effect.
        records = await reload()
        round = decideInOrder(members, records, recordsEvents)
      }
      const { commit } = round
      if (commit.changes.length === 0) return round
      isCommitting = true
      await claim(store, inTransaction)
      if (await within('commit', () => store.commit(commit))) return round
    } catch (error) {
      // Before the first commit nothing is at stake, so that the caller learns of an outage at once.
      const isFirstLoad = attempt === 1 && !isCommitting
      if (isFirstLoad || isTransactionError(error) || error instanceof InvalidInputError)
        throw error
      if (error instanceof ContentionError) {
        // The signature of one member has expired. It must not fail the others.
        if (members.length > 1) return { ...nothingDecided, unchanged: members }
        throw unknown ?? error
      }
      failure = error
      if (isCommitting) unknown = error
    }
    if (pacing.elapsedMs() >= endsAt) throw failure ?? unknown ?? new ContentionError()
    if (attempt > 1 || failure !== undefined) await pacing.sleep(pauseMs(random, attempt))
    records = undefined
  }
}

/** The decisions on some writes, and the commit that carries them out. */
interface Round {
  readonly commit: Commit
  readonly decided: readonly { readonly member: Member; readonly result: unknown }[]
  /** Records to look for again before the decision counts, because it changes nothing. */
  readonly unconfirmed: readonly RecordKey[]
  /** Writes to execute on their own, such as writes that change nothing while others do. */
  readonly unchanged: readonly Member[]
  /** How many writes, the last ones, the commit has no room for. */
  readonly left: number
}

/** A change that is not yet committed: the stored record, the next one, and the events that are recorded. */
interface PendingChange extends Required<Change> {
  readonly before: Stored | undefined
}

const nothingDecided = { decided: [], left: 0 }

function decideInOrder(
  members: readonly Member[],
  records: Records,
  recordsEvents: RecordedEvents,
): Round {
  const pending = new Map<string, PendingChange>()
  const guards = new Map<string, VersionGuard>()
  const decided: { member: Member; result: unknown }[] = []
  const unchanged: Member[] = []
  let unconfirmed: readonly RecordKey[] = []
  let left = 0
  let size = 0

  const read: Read = <Found extends Stored>(key: RecordKey) => {
    const name = nameOf(key)
    const change = pending.get(name)
    // At the version in the store, because a commit contains one next version of a record.
    const changed = change && { ...change.next, version: change.before?.version ?? 0 }
    return (changed ?? records.get(name)) as Found | undefined
  }

  for (const [index, member] of members.entries()) {
    const { guard, creates = [], decide } = member.write
    let decision: Decided<unknown>
    try {
      decision = decide(read)
    } catch (error) {
      member.reject(error)
      continue
    }
    const { changes = [], also = [], result } = decision
    const isUnchanged = changes.length === 0
    // An earlier commit of this write, or of an identical one, may have taken effect while the guard held.
    const isRepeat = isUnchanged && creates.some((key) => read(key) !== undefined)
    if (guard !== undefined && !isRepeat && isOutdated(guard.version, records)) {
      decided.push({ member, result: guard.outdated })
      continue
    }
    const unproven = isUnchanged
      ? creates.filter((key) => !also.some(({ next }) => next.id === key.id))
      : []
    if (unproven.length > 0 && members.length > 1) {
      unchanged.push(member)
      continue
    }
    unconfirmed = unproven
    const guarded = guard === undefined || isUnchanged ? [] : [guard.version]
    let needed = guarded.filter((version) => !guards.has(nameOf(version))).length
    const next = new Map<string, PendingChange>()
    for (const change of [...changes, ...also]) {
      const name = nameOf({ kind: change.kind, id: change.next.id })
      const earlier = pending.get(name)
      const recorded = change.events?.filter(({ type }) => recordsEvents(type)) ?? []
      const events = earlier === undefined ? recorded : [...earlier.events, ...recorded]
      const extended = { kind: change.kind, next: change.next, events, before: records.get(name) }
      needed += sizeOf(extended) - (earlier ? sizeOf(earlier) : 0)
      next.set(name, extended)
    }
    // Any write fits alone.
    if (size > 0 && size + needed > storeBounds.commitSize) {
      left = members.length - index
      break
    }
    size += needed
    for (const [name, change] of next) pending.set(name, change)
    for (const version of guarded) guards.set(nameOf(version), version)
    decided.push({ member, result })
  }
  const changes: RecordChange[] = []
  for (const { kind, next, events, before } of pending.values()) {
    changes.push(before === undefined ? newRecord(kind, next) : replacement(kind, before, next))
    for (const event of eventRecords(kind, next, events)) changes.push(newRecord('event', event))
  }
  return {
    commit: { changes, guards: [...guards.values()] },
    decided,
    unconfirmed,
    unchanged,
    left,
  }
}

/** Whether a record was loaded and is no longer at this version. */
function isOutdated(guard: VersionGuard, records: Records): boolean {
  const name = nameOf(guard)
  return records.has(name) && records.get(name)?.version !== guard.version
}

/** Returns what a change adds to `storeBounds.commitSize`. An event is a record with one list entry. */
function sizeOf({ next: { lists = [] }, events, before }: PendingChange): number {
  const { lists: listsBefore = [] } = before ?? {}
  const names = new Set([...listsBefore, ...lists].map(({ list }) => list))
  const kept = lists.filter(({ list, at }) =>
    listsBefore.some((entry) => entry.list === list && entry.at === at),
  )
  return 1 + names.size - kept.length + 2 * events.length
}

/** Says where the replaced version is found, so that a store need not load it. */
function replacement(kind: RecordKind, before: Stored, next: Stored): RecordChange {
  const { version, lists, dueAt } = before
  const due = dueAt === undefined ? {} : { dueAt }
  const previous = lists === undefined ? due : { lists, ...due }
  return { kind, next, expectedVersion: version, previous }
}

function newRecord(kind: RecordKind, next: Stored): RecordChange {
  return { kind, next, expectedVersion: 0 }
}

function keysOf({ reads, guard }: Write<unknown>): readonly RecordKey[] {
  return guard === undefined ? reads : [...reads, guard.version]
}

/** Returns what the caller of a single write has loaded. Writes that have waited know nothing. */
function knownRecords(members: readonly Member[]): Records | undefined {
  for (const { write } of members) {
    if (write.known !== undefined) return write.known
  }
  return undefined
}

/** Returns a random delay below a bound that doubles, so that concurrent losers do not collide again. */
function pauseMs(random: Random, attempt: number): number {
  const [byte = 0] = random.getRandomValues(new Uint8Array(1))
  return (byte / 255) * Math.min(pauseMaxMs, 2 ** attempt)
}
