import type { RecordChange, RecordKind, Stored } from 'open-payments-server/adapter'
import { type Break, on } from './commits.js'
import type { OneRecordStore } from './one-record.js'

interface Translation {
  /** How an id changes before it is stored. */
  readonly id?: (id: string) => string
  readonly kind?: (kind: RecordKind) => RecordKind
  /** How a record changes before it is stored. */
  readonly value?: (record: Stored) => Stored
  /** How the name of a list changes. */
  readonly list?: (list: string) => string
}

/** Stores records under other ids or with other contents. Correct if nothing is translated. */
export function translated(translation: Translation): Break {
  const {
    id: idOf = same,
    kind: kindOf = same,
    value: translate = same,
    list: listOf = same,
  } = translation

  const wrap = (next: Stored): Stored => {
    const { version, commandId, dueAt, lists } = next
    return {
      id: idOf(next.id),
      version,
      commandId,
      ...(dueAt === undefined ? {} : { dueAt }),
      ...(lists && { lists: lists.map((entry) => ({ ...entry, list: listOf(entry.list) })) }),
      ...{ original: translate(next) },
    }
  }
  const unwrap = (stored: Stored): Stored => (stored as Stored & { original: Stored }).original
  const change = ({ kind, next, ...rest }: RecordChange): RecordChange => {
    return { ...rest, kind: kindOf(kind), next: wrap(next) }
  }

  return (store) => ({
    async load(kind, id) {
      const found = await store.load(kindOf(kind), idOf(id))
      return found && unwrap(found)
    },
    async loadAll(keys) {
      const stored = keys.map(({ kind, id }) => ({ kind: kindOf(kind), id: idOf(id) }))
      const found = await store.loadAll?.(stored)
      return (found ?? []).map((each) => each && unwrap(each))
    },
    commit({ changes, guards }) {
      return store.commit({
        changes: changes.map(change),
        guards: guards.map(({ kind, id, version }) => ({
          kind: kindOf(kind),
          id: idOf(id),
          version,
        })),
      })
    },
    async list(query) {
      const { cursor, kind, list: wanted } = query
      const from = cursor && { cursor: { at: cursor.at, id: idOf(cursor.id) } }
      const page = await store.list({ ...query, kind: kindOf(kind), list: listOf(wanted), ...from })
      return { ...page, records: page.records.map(unwrap) }
    },
    async due(kind, ...query) {
      return (await store.due(kindOf(kind), ...query)).map(unwrap)
    },
    remove: (kind, id, version) => store.remove(kindOf(kind), idOf(id), version),
  })
}

function same<Value>(value: Value): Value {
  return value
}

export const foldsCase = translated({ id: (id) => id.toLowerCase() })

/** Ignores a trailing dot, as file systems and hostnames do. */
export const dropsTrailingDots = translated({ id: (id) => id.replace(/(?<=.)[.]+$/, '') })

export const cutsLongIds = translated({ id: (id) => id.slice(0, 64) })

/** Cannot store an id that is shorter than a namespace. */
export const needsLongIds = on('load', async (store, kind, id) =>
  id.length < 9 ? undefined : store.load(kind, id),
)

/** Uses one table for all kinds, keyed by the id alone. */
export const ignoresKinds = translated({ kind: () => 'grant' })

export const cutsListNames = translated({ list: (list) => list.slice(0, 255) })

export const padsListNames = translated({ list: (list) => list.trimEnd() })

/** Maps every string and number of a record, including its keys. */
interface Mapping {
  readonly text?: (text: string) => string
  readonly number?: (n: number) => number
}

function mapped({ text = same, number = same }: Mapping): Break {
  const map = (value: unknown): unknown => {
    if (typeof value === 'string') return text(value)
    if (typeof value === 'number') return number(value)
    if (typeof value !== 'object' || value === null) return value
    if (Array.isArray(value)) return value.map(map)
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [text(key), map(each)]))
  }
  return translated({ value: (record) => map(record) as Stored })
}

export const dropsNulCharacters = mapped({ text: (text) => text.replaceAll('\u0000', '') })

/** Encodes text as UTF-8, which cannot represent lone surrogates. */
export const manglesSurrogates = mapped({ text: (text) => Buffer.from(text).toString() })

/** Stores text in columns with at most three bytes per character. */
export const dropsSupplementary = mapped({
  text: (text) => text.replace(/[\u{10000}-\u{10ffff}]/gu, '?'),
})

export const normalisesText = mapped({ text: (text) => text.normalize('NFC') })

export const stripsControls = mapped({
  text: (text) => text.replace(/(?!\0)[\p{Cc}\u2028\u2029]/gu, ''),
})

export const trimsText = mapped({ text: (text) => text.trim() })

export const stripsByteOrderMarks = mapped({ text: (text) => text.replace(/^\ufeff/, '') })

/** Escapes quotes and markup but does not unescape them. */
export const escapesText = mapped({
  text: (text) => text.replaceAll('\\', '\\\\').replaceAll("'", "''").replaceAll('<', '&lt;'),
})

/** Reads text that looks like a number or a constant as such a value. */
export const guessesTypes = mapped({ text: (text) => (text.startsWith('null ') ? 'null' : text) })

/** Cannot store an empty string, like one well-known database. */
export const emptyIsNull = mapped({ text: (text) => (text === '' ? 'null' : text) })

export const roundsNumbers = mapped({ number: (n) => Number(n.toPrecision(15)) })

type Entries = [string, unknown][]

/** Rebuilds each object of a record from its members. */
function rebuilt(build: (entries: Entries) => object): Break {
  const rebuild = (value: unknown): unknown => {
    if (typeof value !== 'object' || value === null) return value
    if (Array.isArray(value)) return value.map(rebuild)
    return build(Object.entries(value).map(([key, each]) => [key, rebuild(each)]))
  }
  return translated({ value: (record) => rebuild(record) as Stored })
}

/** Reads members into an ordinary object, where __proto__ is not a member. */
export const losesProto = rebuilt((entries) => {
  const target: Record<string, unknown> = {}
  for (const [key, each] of entries) target[key] = each
  return target
})

/** Sorts keys by their length and then alphabetically, as jsonb does. */
export const sortsKeys = rebuilt((entries) =>
  Object.fromEntries(entries.sort(([a], [b]) => a.length - b.length || (a < b ? -1 : 1))),
)

/** Drops the null values of a record. */
export const dropsEmpty = translated({
  value: (record) =>
    Object.fromEntries(Object.entries(record).filter(([, each]) => each !== null)) as never,
})

/** Stores at most 100 levels. */
export const cutsDepth = translated({ value: (record) => cut(record, 100) as Stored })

function cut(value: unknown, depth: number): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (depth === 0) return null
  if (Array.isArray(value)) return value.map((each) => cut(each, depth - 1))
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, cut(each, depth - 1)]))
}

/** Changes the members of records that have a name. */
function withMember(name: string, changed: (value: unknown) => unknown): Break {
  const map = (value: unknown): unknown => {
    if (typeof value !== 'object' || value === null) return value
    if (Array.isArray(value)) return value.map(map)
    return Object.fromEntries(
      Object.entries(value).flatMap(([key, each]) => {
        const kept = key === name ? changed(each) : map(each)
        return kept === undefined ? [] : [[key, kept]]
      }),
    )
  }
  return translated({ value: (record) => map(record) as Stored })
}

export const dropsMetadata = withMember('metadata', () => undefined)

/** Stores amounts in columns of floating-point numbers. */
export const floatAmounts = withMember('value', (value) => `${BigInt(Number(value))}`)

/** Stores `assetCode` in upper case. */
export const raisesAssetCodes = withMember('assetCode', (code) => String(code).toUpperCase())

/** Stores instants in columns with a precision of one second. */
export const cutsInstants = mapped({ number: (n) => (n > 1e12 ? n - (n % 1_000) : n) })

/** Stores hashes in columns that compare and keep no case. */
export const lowersHashes = mapped({
  text: (text) => (/^[\w-]{43}$/.test(text) ? text.toLowerCase() : text),
})

/** Unescapes the paths of URLs. */
export const unescapesUrls = mapped({ text: (text) => text.replace('%2F', '/') })

export const cutsTextAt32 = mapped({ text: (text) => text.slice(0, 32) })

export const cutsLongText = mapped({ text: (text) => text.slice(0, 65_535) })

/** Merges the next version into the previous one. */
export const mergesVersions = on('commit', async (store, { changes, guards }) => {
  const merged = await Promise.all(
    changes.map(async ({ kind, next, expectedVersion }) => {
      const before = await store.load(kind, next.id)
      return { kind, next: { ...before, ...next }, expectedVersion }
    }),
  )
  return store.commit({ changes: merged, guards })
})

/** Returns the stored objects themselves. */
export function handsOutItsOwn(store: OneRecordStore): OneRecordStore {
  const kept = new Map<string, { readonly text: string; readonly value: Stored }>()
  const own = (kind: RecordKind, found: Stored): Stored => {
    const key = `${kind} ${found.id}`
    const text = JSON.stringify(found)
    const known = kept.get(key)
    if (known?.text === text) return known.value
    kept.set(key, { text, value: found })
    return found
  }
  return {
    ...store,
    async load(kind, id) {
      const found = await store.load(kind, id)
      return found && own(kind, found)
    },
    async list(query) {
      const page = await store.list(query)
      return { ...page, records: page.records.map((found) => own(query.kind, found)) }
    },
    async due(kind, ...query) {
      return (await store.due(kind, ...query)).map((found) => own(kind, found))
    },
  }
}

/** Keeps the object that was passed to `commit`. */
export function keepsWhatWasPassed(store: OneRecordStore): OneRecordStore {
  const passed = new Map<string, Stored>()
  return {
    ...store,
    async commit(commit) {
      const committed = await store.commit(commit)
      for (const { kind, next } of committed ? commit.changes : []) {
        passed.set(`${kind} ${next.id}`, next)
      }
      return committed
    },
    async load(kind, id) {
      const found = await store.load(kind, id)
      return found && structuredClone(passed.get(`${kind} ${id}`) ?? found)
    },
  }
}

/** Reads a value in two steps: first its members, then its lists. */
export const readsTwice = on('commit', async (store, { changes, guards }) => {
  const early = structuredClone(changes)
  for (let i = 0; i < 4; i++) await undefined
  const torn = early.map((change, i) => {
    return { ...change, next: { ...change.next, marks: markOf(changes[i]?.next) } as Stored }
  })
  return store.commit({ changes: torn, guards })
})

function markOf(next: object | undefined): unknown {
  return next && 'marks' in next ? structuredClone(next.marks) : undefined
}
