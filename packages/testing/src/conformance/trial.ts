import type { Store } from 'open-payments-server'
import {
  type Commit,
  type ListEntry,
  type ListQuery,
  type RecordChange,
  type RecordKind,
  type RecordPage,
  type Stored,
  storeBounds,
  type VersionGuard,
} from 'open-payments-server/adapter'
import { type ConformanceRule, demand, demandSame, isObject, show } from './expectations.js'
import type { Dresser, Needs, Shapes } from './records.js'

/** What the cases of a group have in common. */
interface Traits {
  readonly rule: ConformanceRule
  /** Whether the case needs two stores over the same data. */
  readonly stores?: 2
  /** Whether the case searches for a race, and so may miss a fault. */
  readonly search?: true
  /** `any` if the case writes records that the library never writes. */
  readonly shapes?: 'any'
  /** What the kind must have. */
  readonly needs?: Needs
}

export interface CaseDefinition extends Traits {
  readonly name: string
  readonly check: (t: Trial) => Promise<void>
}

/** Returns cases that have the same traits, each by its name. */
export function cases(
  traits: Traits,
  checks: Readonly<Record<string, CaseDefinition['check']>>,
): readonly CaseDefinition[] {
  return Object.entries(checks).map(([name, check]) => ({ ...traits, name, check }))
}

/** A record of the suite: a stored record with any other JSON members. */
export interface TestRecord extends Stored {
  readonly [member: string]: unknown
}

/** A change, of the kind that is tried unless it names another. */
export type TestChange = Omit<RecordChange, 'kind'> & { readonly kind?: RecordKind | undefined }

/** A guard, on the kind that is tried unless it names another. */
type TestGuard = Omit<VersionGuard, 'kind'> & { readonly kind?: RecordKind | undefined }

export const kinds: readonly RecordKind[] = [
  'grant',
  'ended-grant',
  'incoming-payment',
  'outgoing-payment',
  'doubt',
  'quote',
  'budget',
  'transfer',
  'replay',
  'event',
  'settlement',
  'server',
]

/** The records that a case has written: for `previous` of its changes, and to remove it at the end. */
export type Ledger = Map<string, Written>

interface Written {
  readonly kind: RecordKind
  readonly id: string
  /** The last version that the case knows of, with its places; `undefined` if it does not know one. */
  last?: Pick<Stored, 'version' | 'lists' | 'dueAt'> | undefined
}

interface Setting {
  readonly kind: RecordKind
  readonly other: RecordKind
  readonly namespace: string
  readonly dueLagMs: number
  readonly ledger: Ledger
  /** Absent for a store with records as they are. */
  readonly dresser?: Dresser
}

export type TrialStore = ReturnType<typeof trialStore>

/**
 * Returns a store as a case uses it: its methods fail the case if they reject or resolve to a value of the wrong type,
 * and records have the other members of a real record in the store. The further methods try one kind of record.
 */
function trialStore(given: Store, setting: Setting) {
  const store = checkedStore(given, setting)
  const { kind, other, namespace, dueLagMs } = setting
  const commitOf = (changes: readonly TestChange[], guards: readonly TestGuard[] = []): Commit => ({
    changes: changes.map(({ kind: own = kind, ...each }) => ({ kind: own, ...each })),
    guards: guards.map(({ kind: own = kind, ...each }) => ({ kind: own, ...each })),
  })

  /** Commits changes that have no conflict. */
  async function mustWrite(changes: readonly TestChange[], guards?: readonly TestGuard[]) {
    const commit = commitOf(changes, guards)
    if (await store.commit(commit)) return
    const parts = [
      ...commit.changes.map(
        (each) => `${each.kind} ${each.next.id} at version ${each.next.version}`,
      ),
      ...commit.guards.map((each) => `${each.kind} ${each.id} guarded at version ${each.version}`),
    ]
    throw new Error(
      'commit returned false although every record was at the expected version and there was no other writer ' +
        `(${parts.join(', ')}); expected true${changes.length > 0 ? ' and all records written' : ''}`,
    )
  }

  /** Resolves to a record, or to `undefined` if it does not exist. */
  async function find(own: RecordKind, id: string): Promise<Stored | undefined> {
    const [found] = await store.load([{ kind: own, id }])
    return found
  }

  /** Removes one record if it is at this version; resolves to whether it did. */
  async function removeOne(own: RecordKind, id: string, version: number): Promise<boolean> {
    const [removed = false] = await store.remove([{ kind: own, id, version }])
    return removed
  }

  /** Resolves to the stored version, 0 for a record that does not exist. */
  async function version(id: string, own = kind): Promise<number> {
    return (await find(own, id))?.version ?? 0
  }

  /** Reads a page of a list, by default its first 100 records. */
  function page(list: string, query: Partial<ListQuery> = {}): Promise<RecordPage> {
    return store.list({ kind, list, forward: true, limit: 100, ...query })
  }

  return {
    ...store,
    kind,
    /** A second kind of record, for cases that need two. */
    other,
    mustWrite,
    find,
    removeOne,
    version,
    page,
    /** Tries to commit. */
    write: (changes: readonly TestChange[], guards?: readonly TestGuard[]) =>
      store.commit(commitOf(changes, guards)),
    /** Returns the size of a commit, which `storeBounds.commitSize` limits. */
    sizeOf: (changes: readonly TestChange[]) =>
      commitSizeOf(preparedCommit(commitOf(changes), setting)),
    /** Tries to commit records, each over its previous version. */
    put: (...records: readonly Stored[]) =>
      store.commit(commitOf(records.map((next) => change(next)))),
    /** Writes records that have no conflict, in as many commits as the bounds require. */
    async mustPut(...records: readonly Stored[]) {
      // Twelve records stay within the bound, even if each leaves three lists and joins three others.
      for (let from = 0; from < records.length; from += 12) {
        await mustWrite(records.slice(from, from + 12).map((next) => change(next)))
      }
    },
    /** Removes a record that is at this version and has no other writer. */
    async mustRemove(id: string, at: number) {
      const removed = await removeOne(kind, id, at)
      demand(removed, `remove of ${id} at its version returned false; expected true`)
    },
    versions: (ids: readonly string[]) => Promise.all(ids.map((id) => version(id))),
    /** Resolves to a record that must exist. */
    async existing(id: string): Promise<Stored> {
      const found = await find(kind, id)
      const written = 'which was written by a commit that returned true'
      demand(found !== undefined, `load does not find ${id}, ${written}`)
      return found
    },
    /** Fails unless `load` returns this record. */
    async finds(expected: Stored, what: string, own = kind) {
      demandSame(await find(own, expected.id), expected, what)
    },
    /** Fails unless these records are the page that `query` asks for, by default the whole list. */
    async lists(list: string, expected: readonly Stored[], what: string, query: PageQuery = {}) {
      const { more = false, ...asked } = query
      demandSame(await page(list, asked), { records: expected, more }, what)
    },
    /**
     * Repeats a query of `due`, for the namespace of the case and at most 100 records unless the query says
     * otherwise, until it returns these records or the permitted lag is over.
     */
    async dues(expected: readonly Stored[], query: DueQuery) {
      const { before, from, namespace: asked = namespace, limit = 100, kind: own = kind } = query
      await eventually(dueLagMs, async () => {
        const all = await store.due(own, asked, before, limit, from)
        const found = all.filter(({ dueAt = 0 }) => from === undefined || dueAt >= from)
        const foreign = found.find(({ id }) => id.slice(0, 8) !== asked)
        demand(
          foreign === undefined,
          `due for the namespace ${show(asked)} returned ${show(foreign?.id)}, which has another prefix`,
        )
        demand(
          found.length <= limit,
          `due returned ${found.length} records; its limit was ${limit}`,
        )
        demand(
          JSON.stringify(idsOf(found)) === JSON.stringify(idsOf(expected)),
          `due before ${before} with a limit of ${limit} returned ${show(idsOf(found))}; ` +
            `expected ${show(idsOf(expected))} within the permitted lag`,
        )
        demandSame(found, expected, 'the records from due, compared with the latest versions')
      })
    },
  }
}

/** What to read, and whether more records are expected to follow. Default: none. */
type PageQuery = Partial<ListQuery> & { readonly more?: boolean }

interface DueQuery {
  readonly before: number
  /** Only records that are due from then on are compared. */
  readonly from?: number
  readonly namespace?: string
  readonly limit?: number
  readonly kind?: RecordKind
}

interface TrialOptions {
  readonly kind: RecordKind
  /** The kinds to try, and what the case needs of a kind. */
  readonly tried: readonly RecordKind[]
  readonly needs: Needs
  /** The store that `makeStore` returned, and a function that makes another one over the same data. */
  readonly given: Store
  readonly another: () => Promise<Store>
  readonly shapes: Shapes
  readonly dresser: Dresser
  readonly ledger: Ledger
  readonly dueLagMs: number
  readonly searches: number
}

/** The input of a case: a store, and names that no other case has. */
export type Trial = ReturnType<typeof createTrial>

export function createTrial(options: TrialOptions) {
  const { kind, tried, needs, given, another, shapes, dresser, ledger, dueLagMs, searches } =
    options
  // Other kinds are those to try or, if there is only one, all kinds.
  const pool = (tried.length > 1 ? tried : kinds).filter((each) => dresser.writes(each, needs))
  const start = pool.indexOf(kind)
  const rotated = [...pool.slice(start + 1), ...pool.slice(0, start)]
  const others = rotated.length > 0 ? rotated : [kind]
  const [other = kind] = others
  const namespace = newNamespace()
  const setting = { kind, other, namespace, dueLagMs, ledger }
  /** Returns a store for the case to use. */
  const present = (store: Store) => trialStore(store, { ...setting, dresser })
  return {
    ...present(given),
    /** The same store, with records as they are. */
    bare: trialStore(given, setting),
    given,
    present,
    /** Makes a second store over the same data; only cases with `stores: 2` may call it. */
    another: async () => present(await another()),
    /** Adds the members of a real record, for `bare`. */
    dress: (each: Stored) => structuredClone(dresser.dress(kind, each)) as TestRecord,
    /** The first 8 characters of every id of the case. */
    namespace,
    /** Returns an id, or the name of a list, that only this case uses. */
    id: (name: string | number) => `${namespace}-${name}`,
    listName: (name: string | number = 'list') => `${namespace} ${name}`,
    /** The kinds that the case may use in addition to its own; only its own kind if there is no other. */
    others,
    /** How many times longer than by default a search runs. */
    searches,
    /**
     * Runs the rounds of a search, four concurrently: `count` times the option `searches`. The numbers of the rounds
     * differ between kinds, so that each kind is tried with other delays.
     */
    async rounds(count: number, work: (round: number) => Promise<void>) {
      const first = kinds.indexOf(kind) * count
      for (let done = 0; done < count * searches; done += 4) {
        await atOnce(Math.min(4, count * searches - done), (i) => work(first + done + i))
      }
    },
    shapes,
    /** Whether the library writes records of a kind, by default the one that is tried, with what a case needs. */
    writes: (wanted: Needs, own = kind) => dresser.writes(own, wanted),
  }
}

/** Returns 8 characters without upper case, so that a store which folds case cannot confuse two cases. */
function newNamespace(): string {
  const alphabet = 'abcdefghijklmnopqrstuvwxyz0123456789'
  const bytes = crypto.getRandomValues(new Uint8Array(8))
  return Array.from(bytes, (byte) => alphabet[byte % alphabet.length]).join('')
}

/** Wraps a store so that it dresses and undresses records, and a rejection or a wrong result fails the case. */
function checkedStore(store: Store, setting: Setting): Store {
  const { ledger, dresser } = setting
  const undress = (kind: RecordKind, found: Stored, method: string) =>
    dresser?.undress(kind, found, method) ?? found

  return {
    async load(keys) {
      const found: unknown = await answerOf('load', store.load(keys))
      demand(
        Array.isArray(found) &&
          found.length === keys.length &&
          found.every((each) => each === undefined || isObject(each)),
        () =>
          `load returned ${show(found)} for ${keys.length} keys; expected an array with a record, or undefined if ` +
          'it does not exist, for each key',
      )
      return keys.map(({ kind, id }, i) => {
        const loaded = (found as readonly (Stored | undefined)[])[i]
        if (loaded === undefined) return undefined
        const written = ledger.get(`${kind} ${id}`)
        if (written && (written.last?.version ?? 0) < loaded.version)
          written.last = placesOf(loaded)
        return undress(kind, loaded, 'load')
      })
    },
    async list(query) {
      const found: unknown = await answerOf('list', store.list(query))
      demand(
        isObject(found) && Array.isArray(found['records']) && typeof found['more'] === 'boolean',
        () => `list returned ${show(found)}; expected { records: [...], more: true or false }`,
      )
      const page = found as unknown as RecordPage
      return { ...page, records: page.records.map((each) => undress(query.kind, each, 'list')) }
    },
    async due(kind, namespace, before, limit, ...from) {
      const found: unknown = await answerOf(
        'due',
        store.due(kind, namespace, before, limit, ...from),
      )
      demand(
        Array.isArray(found),
        () => `due returned ${show(found)}; expected an array of records`,
      )
      return found.map((each) => undress(kind, each, 'due'))
    },
    async commit(requested) {
      const commit = preparedCommit(requested, setting)
      const size = commitSizeOf(commit)
      if (size > storeBounds.commitSize) throw new Error(`the case commits ${size} at once`)
      // The case may change its records during the commit.
      const places = commit.changes.map(({ kind, next }) => {
        const key = `${kind} ${next.id}`
        const written = ledger.get(key) ?? { kind, id: next.id }
        ledger.set(key, written)
        return { written, last: placesOf(next) }
      })
      const committed = boolean('commit', await answerOf('commit', store.commit(commit)))
      for (const { written, last } of committed ? places : []) {
        const isLater = last.version > (written.last?.version ?? 0)
        if (isLater || last.version === 1) written.last = last
      }
      return committed
    },
    async remove(records) {
      const removed: unknown = await answerOf('remove', store.remove(records))
      demand(
        Array.isArray(removed) &&
          removed.length === records.length &&
          removed.every((each) => typeof each === 'boolean'),
        () =>
          `remove returned ${show(removed)} for ${records.length} records; expected an array with true or false ` +
          'for each record',
      )
      return records.map(({ kind, id, version }, i) => {
        const isRemoved = (removed as readonly boolean[])[i] === true
        const written = ledger.get(`${kind} ${id}`)
        if (isRemoved && written?.last?.version === version) written.last = undefined
        return isRemoved
      })
    },
  }
}

/** Adds the members of real records to the changes, and `previous` to those that replace a version. */
function preparedCommit({ changes, guards }: Commit, { ledger, dresser }: Setting): Commit {
  const prepared = changes.map((each) => {
    const { kind, expectedVersion } = each
    const next = dresser?.dress(kind, each.next) ?? each.next
    if (expectedVersion === 0) return { ...each, next }
    const { version, ...previous } = ledger.get(`${kind} ${next.id}`)?.last ?? { version: 0 }
    return { ...each, next, previous: version === expectedVersion ? previous : {} }
  })
  return { changes: prepared, guards }
}

function placesOf({ version, lists, dueAt }: Stored) {
  return {
    version,
    ...(lists !== undefined && { lists: lists.map((entry) => ({ ...entry })) }),
    ...(dueAt !== undefined && { dueAt }),
  }
}

/** Returns the size of a commit that `storeBounds.commitSize` limits. */
export function commitSizeOf({ changes, guards }: Commit): number {
  return changes.reduce((size, each) => size + 1 + movedEntries(each), guards.length)
}

/** Returns the number of list entries that a change adds, moves or removes. */
function movedEntries({ next: { lists: after = [] }, previous }: RecordChange): number {
  const before = previous?.lists ?? []
  const same = (one: ListEntry, other: ListEntry) => one.list === other.list && one.at === other.at
  const kept = after.filter((entry) => before.some((old) => same(old, entry)))
  return new Set([...before, ...after].map(({ list }) => list)).size - kept.length
}

async function answerOf<Answer>(method: string, answer: Promise<Answer>): Promise<Answer> {
  try {
    return await answer
  } catch (error) {
    const problem = error instanceof Error ? error.message : show(error)
    throw new Error(
      `${method} rejected with: ${problem}. The outcome of a call that rejects is unknown. If this is a conflict ` +
        'while the database is available, return false for a conflict with another writer, and ' +
        'retry serialization failures and deadlocks',
      { cause: error },
    )
  }
}

function boolean(method: string, answer: unknown): boolean {
  demand(
    typeof answer === 'boolean',
    () => `${method} returned ${show(answer)}; expected true or false`,
  )
  return answer
}

/** Removes everything that a case wrote. Rejects if the store does not remove it. */
export async function removeWritten(store: Store, ledger: Ledger): Promise<void> {
  const written = [...ledger.values()]
  const known = written.flatMap(({ kind, id, last }) =>
    last ? [{ kind, id, version: last.version }] : [],
  )
  await removeAll(store, known)
  const { loadKeys } = storeBounds
  for (let from = 0; from < written.length; from += loadKeys) {
    const keys = written.slice(from, from + loadKeys).map(({ kind, id }) => ({ kind, id }))
    const found = await store.load(keys)
    const left = keys.flatMap((key, i) => {
      const version = found[i]?.version
      return version === undefined ? [] : [{ ...key, version }]
    })
    const [first] = await removeAll(store, left)
    if (first === undefined) continue
    const { kind, id, version } = first
    throw new Error(`the suite could not remove its record, ${kind} ${id} at version ${version}`)
  }
}

/** Removes records, 100 at a time. Resolves to those that were not removed. */
async function removeAll(
  store: Store,
  records: readonly VersionGuard[],
): Promise<readonly VersionGuard[]> {
  const left: VersionGuard[] = []
  for (let from = 0; from < records.length; from += 100) {
    const some = records.slice(from, from + 100)
    const removed = await answerOf('remove', store.remove(some))
    left.push(...some.filter((_, i) => removed[i] !== true))
  }
  return left
}

/** Returns a record whose command id is made from text, by default from its id and version. */
export function record(
  id: string,
  version = 1,
  { commandId = `${id} ${version}`, ...more }: Partial<TestRecord> = {},
): TestRecord {
  // Makes a valid command id: pads a short text, and keeps the end of a long one.
  const text = commandId.replace(/[^A-Za-z0-9-]/g, '-')
  return { id, version, commandId: text.slice(-22).padEnd(22, '_'), ...more }
}

/** Returns the change that writes a record over its previous version. */
export function change(next: Stored, kind?: RecordKind): TestChange {
  return { kind, next, expectedVersion: next.version - 1 }
}

export function guard(id: string, version: number, kind?: RecordKind): TestGuard {
  return { kind, id, version }
}

export function idsOf(records: readonly Stored[]): string[] {
  return records.map(({ id }) => id)
}

/** Fails unless exactly one of the concurrent calls returned `true`. */
export function demandOne(outcomes: readonly boolean[], what: string): void {
  const winners = outcomes.filter(Boolean).length
  demand(winners === 1, `${what}, and ${winners} of them returned true; expected exactly one`)
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

/** Repeats a check of `due`, which may lag, every 20 ms until it passes or the permitted lag is over. */
async function eventually(lagMs: number, check: () => Promise<void>): Promise<void> {
  const deadline = performance.now() + lagMs
  for (;;) {
    try {
      return await check()
    } catch (error) {
      if (performance.now() >= deadline) throw error
    }
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

/** Yields to pending work for a number of microtasks. */
export async function steps(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await undefined
}
