import type {
  ListEntry,
  ListQuery,
  RecordChange,
  RecordKind,
  Store,
  Stored,
  VersionGuard,
} from 'open-payments-server'

/** A rule of the `Store` contract, by number, or the part of it that a case checks. */
export type ConformanceRule = 1 | 2 | 3 | 4 | 5 | 6 | 'ids' | 'due' | 'remove'

/** The input of a case: a store, and names unique to this trial. */
export interface Trial {
  /** The store with checked results: a rejection or a result of the wrong type fails the case. */
  readonly store: Store
  /** The store that `makeStore` returned. */
  readonly given: Store
  /** Makes a second store over the same data; only cases with `stores: 2` may call it. */
  readonly another: () => Promise<Store>
  /** The first 8 characters of every id of the case. */
  readonly namespace: string
  /** How long `due` may lag behind a commit, in milliseconds. */
  readonly dueLagMs: number
}

export interface CaseDefinition {
  readonly name: string
  readonly rule: ConformanceRule
  /** Whether the case needs two stores over the same data. */
  readonly stores?: 2
  readonly check: (trial: Trial) => Promise<void>
}

/** A record of the suite: a stored record with any other JSON members. */
export interface TestRecord extends Stored {
  readonly [member: string]: unknown
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

export function record(id: string, version = 1, more: object = {}): TestRecord {
  return { id, version, commandId: `${id} ${version}`, ...more }
}

/** Returns the change that writes a record over its previous version. */
export function change(next: Stored, kind: RecordKind = 'grant'): RecordChange {
  return { kind, next, expectedVersion: next.version - 1 }
}

export function guard(id: string, version: number, kind: RecordKind = 'grant'): VersionGuard {
  return { kind, id, version }
}

export function commit(
  store: Store,
  changes: readonly RecordChange[],
  guards: readonly VersionGuard[] = [],
): Promise<boolean> {
  return store.commit({ changes, guards })
}

/** Tries to commit grants, each over its previous version. */
export function put(store: Store, ...records: readonly Stored[]): Promise<boolean> {
  return commit(
    store,
    records.map((next) => change(next)),
  )
}

/** Commits grants that have no conflict. */
export async function mustPut(store: Store, ...records: readonly Stored[]): Promise<void> {
  await mustCommit(
    store,
    records.map((next) => change(next)),
  )
}

/** Commits changes that have no conflict. */
export async function mustCommit(
  store: Store,
  changes: readonly RecordChange[],
  guards: readonly VersionGuard[] = [],
): Promise<void> {
  const committed = await commit(store, changes, guards)
  if (committed !== true) {
    const written = changes.map(({ kind, next }) => `${kind} ${next.id} at version ${next.version}`)
    throw new Error(
      `commit returned ${show(committed)} although every record was at the expected version and there ` +
        `was no other writer (${written.join(', ')}); expected true and all records written`,
    )
  }
}

/** Returns the stored versions of grants, 0 for those that do not exist. */
export function versionsOf(store: Store, ids: readonly string[]): Promise<number[]> {
  return Promise.all(ids.map((id) => versionOf(store, id)))
}

export async function versionOf(
  store: Store,
  id: string,
  kind: RecordKind = 'grant',
): Promise<number> {
  return (await store.load(kind, id))?.version ?? 0
}

/** Reads a page of grants, by default the first 100 of the list. */
export function pageOf(store: Store, list: string, query: Partial<ListQuery> = {}) {
  return store.list({ kind: 'grant', list, forward: true, limit: 100, ...query })
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

/** Fails the case unless the condition holds. The message states what the store did and what was expected. */
export function demand(condition: boolean, message: string): asserts condition {
  if (!condition) throw new Error(message)
}

/** Fails the case unless both are the same JSON, regardless of key order. */
export function demandSame(actual: unknown, expected: unknown, what: string): void {
  const difference = differenceOf(expected, actual, '')
  if (difference !== undefined) throw new Error(`${what}: ${difference}`)
}

/** Returns whether both are the same JSON, regardless of key order. */
export function isSame(actual: unknown, expected: unknown): boolean {
  return differenceOf(expected, actual, '') === undefined
}

/** Runs `work` `count` times concurrently, each with its index. */
export function atOnce<Result>(
  count: number,
  work: (index: number) => Promise<Result>,
): Promise<Result[]> {
  return Promise.all(Array.from({ length: count }, (_, index) => work(index)))
}

/** Yields to pending work for a number of microtasks. */
export async function steps(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await undefined
}

/** Prints a value on one line, shortened for messages and without invisible characters. */
export function show(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value)
  const visible = text.replace(/[^ -~]/g, escaped)
  return visible.length > 160 ? `${visible.slice(0, 157)}…` : visible
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}

/** Describes the first difference between two JSON values. */
function differenceOf(expected: unknown, actual: unknown, path: string): string | undefined {
  const here = path === '' ? 'the whole value' : path
  if (!isObject(expected) || !isObject(actual)) {
    if (JSON.stringify(expected) === JSON.stringify(actual)) return undefined
    return `${here} must be ${show(expected)} and is ${show(actual)}`
  }
  if (Array.isArray(expected) !== Array.isArray(actual)) {
    return `${here} must be ${show(expected)} and is ${show(actual)}`
  }
  for (const key of Object.keys(expected)) {
    if (!Object.hasOwn(actual, key)) return `${here} lacks ${show(key)}`
    const inner = differenceOf(expected[key], actual[key], `${path}[${show(key)}]`)
    if (inner !== undefined) return inner
  }
  const extra = Object.keys(actual).find((key) => !Object.hasOwn(expected, key))
  return extra === undefined ? undefined : `${here} has the unexpected member ${show(extra)}`
}

/** Returns whether a value is an object or an array. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
