import type {
  Commit,
  ListQuery,
  RecordChange,
  RecordKey,
  RecordKind,
  RecordPage,
  Stored,
  VersionGuard,
} from '../../src/entry-adapter.js'
import { publicRecord } from '../../src/service/public-ids.js'

/** The length of the namespace, which the ids of payments and quotes have only in the store. */
export const namespaceLength = 8

/** The rules of the store contract that a database keeps. A planted mistake switches one off. */
export interface DatabaseRules {
  readonly checksVersions: boolean
  readonly checksGuards: boolean
  /** Whether a commit writes nothing if one of its changes fails. */
  readonly isAtomic: boolean
  /** Whether reads see the latest version of a record. */
  readonly readsLatest: boolean
}

export const contract: DatabaseRules = {
  checksVersions: true,
  checksGuards: true,
  isAtomic: true,
  readsLatest: true,
}

interface Slot {
  readonly text: string
  readonly record: Stored
  /** The version before, which a lagging `due` still sees. */
  readonly before: Stored | undefined
}

/** A write that has taken effect. */
export interface Written {
  readonly kind: RecordKind
  readonly before: Stored | undefined
  readonly after: Stored | undefined
}

interface DueQuery {
  readonly kind: RecordKind
  readonly namespace: string
  readonly before: number
  readonly limit: number
  readonly from?: number | undefined
  /** Whether the query sees the versions before. */
  readonly lags?: boolean
}

export type Database = ReturnType<typeof createDatabase>

/**
 * The records that all simulated processes share. Every call takes effect immediately; who waits for it, and what it
 * is told, is up to the caller. `watch` sees each commit and removal that took effect.
 */
export function createDatabase(
  rules: DatabaseRules,
  watch: (written: readonly Written[], commit?: Commit) => void,
) {
  const kinds = new Map<RecordKind, Map<string, Slot>>()
  /** The ids of all records that were ever stored, by the ids that laws and actors know. */
  const everStored = new Map<string, string>()

  function slots(kind: RecordKind): Map<string, Slot> {
    const found = kinds.get(kind)
    if (found !== undefined) return found
    const created = new Map<string, Slot>()
    kinds.set(kind, created)
    return created
  }

  const peek = (kind: RecordKind, id: string) => slots(kind).get(id)?.record
  const versionOf = (kind: RecordKind, id: string) => peek(kind, id)?.version ?? 0
  const copy = (record: Stored) => JSON.parse(JSON.stringify(record)) as Stored

  const holds = ({ kind, next, expectedVersion }: RecordChange) =>
    !rules.checksVersions || versionOf(kind, next.id) === expectedVersion

  /** Returns a record as laws and actors know it: a payment or a quote has its public id. */
  function known<Found extends Stored | undefined>(kind: RecordKind, record: Found): Found {
    return publicRecord(' '.repeat(namespaceLength), kind, record)
  }

  function write({ kind, next }: RecordChange): Written {
    const before = peek(kind, next.id)
    const text = JSON.stringify(next)
    const record = JSON.parse(text) as Stored
    slots(kind).set(next.id, { text, record, before })
    const after = known(kind, record)
    everStored.set(`${kind} ${after.id}`, next.id)
    return { kind, before: known(kind, before), after }
  }

  return {
    /** Returns a record by the id that laws and actors know. */
    peek: (kind: RecordKind, id: string) =>
      known(kind, peek(kind, everStored.get(`${kind} ${id}`) ?? '')),
    /** Whether a record was ever stored, also if it has been removed since. */
    wasWritten: (kind: RecordKind, id: string) => everStored.has(`${kind} ${id}`),
    records: (kind: RecordKind): readonly Stored[] =>
      Array.from(slots(kind).values(), ({ record }) => known(kind, record)),
    text: () => [...kinds.values()].flatMap((all) => Array.from(all.values(), ({ text }) => text)),

    load(keys: readonly RecordKey[]): readonly (Stored | undefined)[] {
      return keys.map(({ kind, id }) => {
        const slot = slots(kind).get(id)
        const seen = rules.readsLatest ? slot?.record : slot?.before
        return seen && copy(seen)
      })
    },

    commit(commit: Commit): boolean {
      const { changes, guards } = commit
      const isGuarded =
        !rules.checksGuards ||
        guards.every(({ kind, id, version }) => versionOf(kind, id) === version)
      if (!isGuarded) return false
      const isWhole = changes.every(holds)
      if (rules.isAtomic && !isWhole) return false
      const written = changes.filter(holds).map(write)
      watch(written, commit)
      return isWhole
    },

    remove(records: readonly VersionGuard[]): readonly boolean[] {
      return records.map(({ kind, id, version }) => {
        const before = peek(kind, id)
        if (before === undefined || before.version !== version) return false
        slots(kind).delete(id)
        watch([{ kind, before: known(kind, before), after: undefined }])
        return true
      })
    },

    list({ kind, list, cursor, forward, limit }: ListQuery): RecordPage {
      const places = Array.from(slots(kind).values(), ({ record }) => record).flatMap((record) => {
        const place = record.lists?.find((entry) => entry.list === list)
        return place === undefined ? [] : [{ record, at: place.at, id: record.id }]
      })
      places.sort(comparePlaces)
      const reachable = places.filter((place) => {
        if (cursor === undefined) return true
        return forward ? comparePlaces(place, cursor) > 0 : comparePlaces(place, cursor) < 0
      })
      const first = forward ? 0 : Math.max(0, reachable.length - limit)
      const found = reachable.slice(first, first + limit)
      return {
        records: found.map(({ record }) => copy(record)),
        more: reachable.length > found.length,
      }
    },

    /** With `lags`, the query sees the version before the last one of each record. */
    due({
      kind,
      namespace,
      before,
      limit,
      from = Number.MIN_SAFE_INTEGER,
      lags = false,
    }: DueQuery) {
      // The due time of an index may be that of an earlier version.
      const isFrom = ({ before, record }: Slot) =>
        [before, record].every((each) => (each?.dueAt ?? from) >= from)
      return Array.from(slots(kind).values())
        .filter(isFrom)
        .map((slot) => (lags ? slot.before : slot.record))
        .filter((record) => record !== undefined)
        .filter(({ id, dueAt = Number.POSITIVE_INFINITY }) => {
          return id.slice(0, 8) === namespace && dueAt <= before
        })
        .sort((a, b) => (a.dueAt ?? 0) - (b.dueAt ?? 0) || compareIds(a.id, b.id))
        .slice(0, limit)
        .map(copy)
    },
  }
}

type Place = NonNullable<ListQuery['cursor']>

function comparePlaces(a: Place, b: Place): number {
  return a.at - b.at || compareIds(a.id, b.id)
}

function compareIds(a: string, b: string): number {
  return a === b ? 0 : a < b ? -1 : 1
}
