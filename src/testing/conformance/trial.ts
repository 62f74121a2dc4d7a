import type {
  ListEntry,
  ListQuery,
  RecordChange,
  RecordKind,
  Store,
  Stored,
  VersionGuard,
} from 'open-payments-server'
import { type ConformanceRule, show } from './expectations.js'
import type { Needs, Shapes } from './shapes.js'

export {
  type ConformanceRule,
  demand,
  demandSame,
  isObject,
  isSame,
  show,
} from './expectations.js'

/** A store as a case uses it: records get the other members of a real record when they are committed. */
export interface TrialStore extends Store {
  /** The kind of record that is tried. */
  readonly kind: RecordKind
  /** A second kind of record, for cases that need two. */
  readonly other: RecordKind
}

/** The input of a case: a store, and names unique to this trial. */
export interface Trial {
  /** The store with checked results: a rejection or a result of the wrong type fails the case. */
  readonly store: TrialStore
  /** The same store, with records as they are. */
  readonly bare: TrialStore
  /** The store that `makeStore` returned. */
  readonly given: Store
  /** Checks the results of a store, and adds and removes the members of real records. */
  readonly present: (store: Store) => TrialStore
  /** Makes a second store over the same data; only cases with `stores: 2` may call it. */
  readonly another: () => Promise<TrialStore>
  /** Adds the members of a real record, for `bare`. */
  readonly dress: (record: Stored) => TestRecord
  /** The first 8 characters of every id of the case. */
  readonly namespace: string
  /** How long `due` may lag behind a commit, in milliseconds. */
  readonly dueLagMs: number
  /**
   * Runs the rounds of a search, a few concurrently: `count` times the option `searches`. The numbers of the rounds
   * differ between kinds, so that each kind is tried with other delays.
   */
  readonly rounds: (count: number, work: (round: number) => Promise<void>) => Promise<void>
  /** The kinds that the case may use in addition to its own; only its own kind if there is no other. */
  readonly others: readonly RecordKind[]
  /** How many times longer than by default a search runs. */
  readonly searches: number
  readonly shapes: Shapes
  /** Whether the library writes records of the kind that have the due time or the number of lists that a case needs. */
  readonly writes: (needs: Needs) => boolean
}

export interface CaseDefinition {
  readonly name: string
  readonly rule: ConformanceRule
  /** Whether the case needs two stores over the same data. */
  readonly stores?: 2
  /** Whether the case searches for a race, and so may miss a fault. */
  readonly search?: true
  /** `any` if the case writes records that the library never writes. */
  readonly shapes?: 'any'
  /** What the kind must have. */
  readonly needs?: Needs
  readonly check: (trial: Trial) => Promise<void>
}

/** A record of the suite: a stored record with any other JSON members. */
export interface TestRecord extends Stored {
  readonly [member: string]: unknown
}

/** A change, of the kind that is tried unless it names another. */
export interface TestChange extends Omit<RecordChange, 'kind'> {
  readonly kind?: RecordKind | undefined
}

/** A guard, on the kind that is tried unless it names another. */
export interface TestGuard extends Omit<VersionGuard, 'kind'> {
  readonly kind?: RecordKind | undefined
}

export const kinds: readonly RecordKind[] = [
  'grant',
  'incoming-payment',
  'outgoing-payment',
  'quote',
  'budget',
  'transfer',
  'nonce',
  'event',
]

/** Returns a record whose command id is made from text, by default from its id and version. */
export function record(
  id: string,
  version = 1,
  { commandId = `${id} ${version}`, ...more }: Partial<TestRecord> = {},
): TestRecord {
  return { id, version, commandId: commandIdOf(commandId), ...more }
}

/** Returns a command id of the library's form: short text padded, long text by its end. */
export function commandIdOf(text: string): string {
  return text
    .replace(/[^A-Za-z0-9-]/g, '-')
    .slice(-22)
    .padEnd(22, '_')
}

/** Returns the change that writes a record over its previous version. */
export function change(next: Stored, kind?: RecordKind): TestChange {
  return { kind, next, expectedVersion: next.version - 1 }
}

export function guard(id: string, version: number, kind?: RecordKind): TestGuard {
  return { kind, id, version }
}

export function commit(
  store: TrialStore,
  changes: readonly TestChange[],
  guards: readonly TestGuard[] = [],
): Promise<boolean> {
  return store.commit({
    changes: changes.map(({ kind = store.kind, ...each }) => ({ kind, ...each })),
    guards: guards.map(({ kind = store.kind, ...each }) => ({ kind, ...each })),
  })
}

/** Tries to commit records, each over its previous version. */
export function put(store: TrialStore, ...records: readonly Stored[]): Promise<boolean> {
  return commit(
    store,
    records.map((next) => change(next)),
  )
}

/** Twelve records stay within `storeBounds.commitSize`, even if each leaves three lists and joins three others. */
const putMax = 12

/** Writes records that have no conflict, in as many commits as the bounds require. */
export async function mustPut(store: TrialStore, ...records: readonly Stored[]): Promise<void> {
  for (let from = 0; from < records.length; from += putMax) {
    const some = records.slice(from, from + putMax)
    await mustCommit(
      store,
      some.map((next) => change(next)),
    )
  }
}

/** Commits changes that have no conflict. */
export async function mustCommit(
  store: TrialStore,
  changes: readonly TestChange[],
  guards: readonly TestGuard[] = [],
): Promise<void> {
  const committed = await commit(store, changes, guards)
  if (committed === true) return
  const { kind: own } = store
  const parts = [
    ...changes.map(
      ({ kind = own, next }) => `${kind} ${next.id} written at version ${next.version}`,
    ),
    ...guards.map(({ kind = own, id, version }) => `${kind} ${id} guarded at version ${version}`),
  ]
  throw new Error(
    `commit returned ${show(committed)} although every record was at the expected version and there ` +
      `was no other writer (${parts.join(', ')}); expected true${changes.length > 0 ? ' and all records written' : ''}`,
  )
}

/** Returns the stored versions of records, 0 for those that do not exist. */
export function versionsOf(store: TrialStore, ids: readonly string[]): Promise<number[]> {
  return Promise.all(ids.map((id) => versionOf(store, id)))
}

export async function versionOf(
  store: TrialStore,
  id: string,
  kind: RecordKind = store.kind,
): Promise<number> {
  return (await store.load(kind, id))?.version ?? 0
}

/** Removes a record that is at this version and has no other writer. */
export async function mustRemove(store: TrialStore, id: string, version: number): Promise<void> {
  const removed = await store.remove(store.kind, id, version)
  if (removed !== true) {
    throw new Error(`remove of ${id} at its version returned ${show(removed)}; expected true`)
  }
}

/** Reads a page of records of the kind, by default the first 100 of the list. */
export function pageOf(store: TrialStore, list: string, query: Partial<ListQuery> = {}) {
  return store.list({ kind: store.kind, list, forward: true, limit: 100, ...query })
}

/** Returns the place of a record in a list. */
export function placeOf(stored: Stored, list: string): number {
  const place = stored.lists?.find((entry: ListEntry) => entry.list === list)
  if (place === undefined) {
    throw new Error(`list returned a record that is not in the list: ${show(stored)}`)
  }
  return place.at
}

export function idsOf(records: readonly Stored[]): string[] {
  return records.map(({ id }) => id)
}

/** Compares ids by their bytes; ids are ASCII, where bytes and code units agree. */
export function compareIds(a: string, b: string): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}

/** Runs `work` `count` times concurrently, each with its index. */
export function atOnce<Result>(
  count: number,
  work: (index: number) => Promise<Result>,
): Promise<Result[]> {
  return Promise.all(Array.from({ length: count }, (_, index) => work(index)))
}

/** The pause between two queries of a store that lags. */
const pauseMs = 20

/** Repeats a check of `due`, which may lag, until it passes or the permitted lag is over. */
export async function eventually<Result>(
  lagMs: number,
  check: () => Promise<Result>,
): Promise<Result> {
  const deadline = performance.now() + lagMs
  for (;;) {
    try {
      return await check()
    } catch (error) {
      if (performance.now() >= deadline) throw error
    }
    await new Promise((resolve) => setTimeout(resolve, pauseMs))
  }
}

/** Yields to pending work for a number of microtasks. */
export async function steps(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await undefined
}
