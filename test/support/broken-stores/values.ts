import type { RecordChange, RecordKind, Store, Stored } from '../../../src/index.js'

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
export function translated(store: Store, translation: Translation): Store {
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

  return {
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
  }
}

function same<Value>(value: Value): Value {
  return value
}

export function foldsCase(store: Store): Store {
  return translated(store, { id: (id) => id.toLowerCase() })
}

/** Ignores a trailing dot, as file systems and hostnames do. */
export function dropsTrailingDots(store: Store): Store {
  return translated(store, { id: (id) => id.replace(/(?<=.)[.]+$/, '') })
}

export function cutsLongIds(store: Store): Store {
  return translated(store, { id: (id) => id.slice(0, 64) })
}

/** Cannot store an id that is shorter than a namespace. */
export function needsLongIds(store: Store): Store {
  return {
    ...store,
    load: async (kind, id) => (id.length < 9 ? undefined : store.load(kind, id)),
  }
}

/** Uses one table for all kinds, keyed by the id alone. */
export function ignoresKinds(store: Store): Store {
  return translated(store, { kind: () => 'grant' })
}

export function cutsListNames(store: Store): Store {
  return translated(store, { list: (list) => list.slice(0, 255) })
}

export function padsListNames(store: Store): Store {
  return translated(store, { list: (list) => list.trimEnd() })
}

/** Maps every string and number of a record, including its keys. */
function mapped(
  store: Store,
  {
    text = same,
    number = same,
  }: { text?: (text: string) => string; number?: (n: number) => number },
): Store {
  const map = (value: unknown): unknown => {
    if (typeof value === 'string') return text(value)
    if (typeof value === 'number') return number(value)
    if (typeof value !== 'object' || value === null) return value
    if (Array.isArray(value)) return value.map(map)
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [text(key), map(each)]))
  }
  return translated(store, { value: (record) => map(record) as Stored })
}

export function dropsNulCharacters(store: Store): Store {
  return mapped(store, { text: (text) => text.replaceAll('\u0000', '') })
}

/** Encodes text as UTF-8, which cannot represent lone surrogates. */
export function manglesSurrogates(store: Store): Store {
  return mapped(store, { text: (text) => Buffer.from(text).toString() })
}

/** Stores text in columns with at most three bytes per character. */
export function dropsSupplementary(store: Store): Store {
  return mapped(store, { text: (text) => text.replace(/[\u{10000}-\u{10ffff}]/gu, '?') })
}

export function normalisesText(store: Store): Store {
  return mapped(store, { text: (text) => text.normalize('NFC') })
}

export function stripsControls(store: Store): Store {
  return mapped(store, {
    text: (text) => text.replace(/(?!\0)[\p{Cc}\u2028\u2029]/gu, ''),
  })
}

export function trimsText(store: Store): Store {
  return mapped(store, { text: (text) => text.trim() })
}

export function stripsByteOrderMarks(store: Store): Store {
  return mapped(store, { text: (text) => text.replace(/^\ufeff/, '') })
}

/** Escapes quotes and markup but does not unescape them. */
export function escapesText(store: Store): Store {
  const escaped = (text: string) =>
    text.replaceAll('\\', '\\\\').replaceAll("'", "''").replaceAll('<', '&lt;')
  return mapped(store, { text: escaped })
}

/** Reads text that looks like a number or a constant as such a value. */
export function guessesTypes(store: Store): Store {
  return mapped(store, { text: (text) => (text.startsWith('null ') ? 'null' : text) })
}

/** Cannot store an empty string, like one well-known database. */
export function emptyIsNull(store: Store): Store {
  return mapped(store, { text: (text) => (text === '' ? 'null' : text) })
}

export function roundsNumbers(store: Store): Store {
  return mapped(store, { number: (n) => Number(n.toPrecision(15)) })
}

/** Reads members into an ordinary object, where __proto__ is not a member. */
export function losesProto(store: Store): Store {
  const copy = (value: unknown): unknown => {
    if (typeof value !== 'object' || value === null) return value
    if (Array.isArray(value)) return value.map(copy)
    const target: Record<string, unknown> = {}
    for (const [key, each] of Object.entries(value)) target[key] = copy(each)
    return target
  }
  return translated(store, { value: (record) => copy(record) as Stored })
}

/** Sorts keys by their length and then alphabetically, as jsonb does. */
export function sortsKeys(store: Store): Store {
  const sorted = (value: unknown): unknown => {
    if (typeof value !== 'object' || value === null) return value
    if (Array.isArray(value)) return value.map(sorted)
    const entries = Object.entries(value).sort(
      ([a], [b]) => a.length - b.length || (a < b ? -1 : 1),
    )
    return Object.fromEntries(entries.map(([key, each]) => [key, sorted(each)]))
  }
  return translated(store, { value: (record) => sorted(record) as Stored })
}

/** Drops null and empty values. */
export function dropsEmpty(store: Store): Store {
  const drop = (value: unknown): unknown => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
    return Object.fromEntries(Object.entries(value).filter(([, each]) => each !== null))
  }
  return translated(store, { value: (record) => drop(record) as Stored })
}

/** Stores at most 100 levels. */
export function cutsDepth(store: Store): Store {
  const cut = (value: unknown, depth: number): unknown => {
    if (typeof value !== 'object' || value === null) return value
    if (depth === 0) return null
    if (Array.isArray(value)) return value.map((each) => cut(each, depth - 1))
    return Object.fromEntries(
      Object.entries(value).map(([key, each]) => [key, cut(each, depth - 1)]),
    )
  }
  return translated(store, { value: (record) => cut(record, 100) as Stored })
}

/** Changes the members of records that have a name. */
function withMember(store: Store, name: string, changed: (value: unknown) => unknown): Store {
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
  return translated(store, { value: (record) => map(record) as Stored })
}

export function dropsMetadata(store: Store): Store {
  return withMember(store, 'metadata', () => undefined)
}

/** Stores amounts in columns of floating-point numbers. */
export function floatAmounts(store: Store): Store {
  return withMember(store, 'value', (value) => `${BigInt(Number(value))}`)
}

/** Stores `assetCode` in upper case. */
export function raisesAssetCodes(store: Store): Store {
  return withMember(store, 'assetCode', (code) => String(code).toUpperCase())
}

/** Stores instants in columns with a precision of one second. */
export function cutsInstants(store: Store): Store {
  return mapped(store, { number: (n) => (n > 1e12 ? n - (n % 1_000) : n) })
}

/** Stores hashes in columns that compare and keep no case. */
export function lowersHashes(store: Store): Store {
  return mapped(store, { text: (text) => (/^[\w-]{43}$/.test(text) ? text.toLowerCase() : text) })
}

/** Unescapes the paths of URLs. */
export function unescapesUrls(store: Store): Store {
  return mapped(store, { text: (text) => text.replace('%2F', '/') })
}

export function cutsTextAt32(store: Store): Store {
  return mapped(store, { text: (text) => text.slice(0, 32) })
}

export function cutsLongText(store: Store): Store {
  return mapped(store, { text: (text) => text.slice(0, 65_535) })
}

/** Merges the next version into the previous one. */
export function mergesVersions(store: Store): Store {
  return {
    ...store,
    async commit({ changes, guards }) {
      const merged = await Promise.all(
        changes.map(async ({ kind, next, expectedVersion }) => {
          const before = await store.load(kind, next.id)
          return { kind, next: { ...before, ...next }, expectedVersion }
        }),
      )
      return store.commit({ changes: merged, guards })
    },
  }
}

/** Returns the stored objects themselves. */
export function handsOutItsOwn(store: Store): Store {
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
export function keepsWhatWasPassed(store: Store): Store {
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
export function readsTwice(store: Store): Store {
  return {
    ...store,
    async commit({ changes, guards }) {
      const early = structuredClone(changes)
      for (let i = 0; i < 4; i++) await undefined
      const torn = early.map((change, i) => {
        return { ...change, next: { ...change.next, marks: markOf(changes[i]?.next) } as Stored }
      })
      return store.commit({ changes: torn, guards })
    },
  }
}

function markOf(next: object | undefined): unknown {
  return next && 'marks' in next ? structuredClone(next.marks) : undefined
}
