import type {
  ListEntry,
  RecordChange,
  RecordKind,
  Store,
  Stored,
  VersionGuard,
} from 'open-payments-server'

/** A rule of the contract in `Store`, by number, or the part of it that a case is about. */
export type ConformanceRule = 1 | 2 | 3 | 4 | 5 | 6 | 'ids' | 'due' | 'remove'

/** What a case is run with: a store, and names that nobody else has. */
export interface Trial {
  /** The store, whose every answer is looked at: a rejection or one of the wrong type fails the case. */
  readonly store: Store
  /** The store as it was given. */
  readonly given: Store
  /** A second store over the same data; only cases that ask for one may call it. */
  readonly another: () => Promise<Store>
  /** 8 characters that every id of the case begins with. */
  readonly namespace: string
  /** How long `due` may take to show a commit, in milliseconds. */
  readonly dueLagMs: number
}

export interface CaseDefinition {
  readonly name: string
  readonly rule: ConformanceRule
  /** Whether the case needs two stores over the same data. */
  readonly stores?: 2
  readonly check: (trial: Trial) => Promise<void>
}

/** A record of the suite: any JSON beside what every record has. */
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

/** The change that writes a record over the version before it. */
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

/** Tries to commit grants, each over the version before it. */
export function put(store: Store, ...records: readonly Stored[]): Promise<boolean> {
  return commit(
    store,
    records.map((next) => change(next)),
  )
}

/** Commits what nothing stands against. */
export async function mustPut(store: Store, ...records: readonly Stored[]): Promise<void> {
  await mustCommit(
    store,
    records.map((next) => change(next)),
  )
}

/** Commits what nothing stands against. */
export async function mustCommit(
  store: Store,
  changes: readonly RecordChange[],
  guards: readonly VersionGuard[] = [],
): Promise<void> {
  const committed = await commit(store, changes, guards)
  if (committed !== true) {
    const written = changes.map(({ kind, next }) => `${kind} ${next.id} at version ${next.version}`)
    throw new Error(
      `commit answered ${show(committed)} although every record was at the version that it expected ` +
        `and nobody else wrote (${written.join(', ')}); it should have written all of it and answered true`,
    )
  }
}

/** Versions of grants as they are stored, 0 for those that do not exist. */
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

/** The place that a record has in a list. */
export function placeOf(stored: Stored, commandId: string): number {
  const place = stored.lists?.find((entry: ListEntry) => entry.list === commandId)
  if (place === undefined) {
    throw new Error(`list answered a record that is not in the list: ${show(stored)}`)
  }
  return place.at
}

export function idsOf(records: readonly Stored[]): string[] {
  return records.map(({ id }) => id)
}

/** Compares ids as their bytes do; ids are ASCII, where bytes and code units are the same. */
export function compareIds(a: string, b: string): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}

/** Fails the case unless the condition holds. The message says what the store did and what it should do. */
export function demand(condition: boolean, message: string): asserts condition {
  if (!condition) throw new Error(message)
}

/** Fails the case unless both are the same JSON; the order of keys does not count. */
export function demandSame(actual: unknown, expected: unknown, what: string): void {
  const difference = differenceOf(expected, actual, '')
  if (difference !== undefined) throw new Error(`${what}: ${difference}`)
}

/** Whether both are the same JSON; the order of keys does not count. */
export function isSame(actual: unknown, expected: unknown): boolean {
  return differenceOf(expected, actual, '') === undefined
}

/** Runs `work` so many times at once, each with its number. */
export function atOnce<Result>(
  count: number,
  work: (index: number) => Promise<Result>,
): Promise<Result[]> {
  return Promise.all(Array.from({ length: count }, (_, index) => work(index)))
}

/** Lets whatever waits go on, so many steps far. */
export async function steps(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await undefined
}

/** Any value on one line, short enough for a message and with nothing invisible in it. */
export function show(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value)
  const visible = text.replace(/[^ -~]/g, escaped)
  return visible.length > 160 ? `${visible.slice(0, 157)}…` : visible
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}

/** Where two JSON values first differ, in words. */
function differenceOf(expected: unknown, actual: unknown, path: string): string | undefined {
  const here = path === '' ? 'the whole value' : path
  if (!isObject(expected) || !isObject(actual)) {
    if (JSON.stringify(expected) === JSON.stringify(actual)) return undefined
    return `${here} should be ${show(expected)} and is ${show(actual)}`
  }
  if (Array.isArray(expected) !== Array.isArray(actual)) {
    return `${here} should be ${show(expected)} and is ${show(actual)}`
  }
  for (const key of Object.keys(expected)) {
    if (!Object.hasOwn(actual, key)) return `${here} lacks ${show(key)}`
    const inner = differenceOf(expected[key], actual[key], `${path}[${show(key)}]`)
    if (inner !== undefined) return inner
  }
  const extra = Object.keys(actual).find((key) => !Object.hasOwn(expected, key))
  return extra === undefined ? undefined : `${here} has ${show(extra)}, which it should not have`
}

/** Whether a value is an object or an array. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
