import type { Store } from 'open-payments-server'
import type {
  ListQuery,
  RecordKey,
  RecordKind,
  Stored,
  VersionGuard,
} from 'open-payments-server/adapter'

export interface EtcdOptions {
  /** The origins of the JSON gateways of the cluster's members, such as `http://127.0.0.1:2379`. */
  readonly urls: readonly string[]
  /** The prefix of the keys. Stores with different prefixes share no data. */
  readonly prefix?: string
}

/**
 * Stores records in etcd: a key for each record, for each of its places in lists and for its due time, and a
 * transaction for each commit. A record's version is the version that etcd counts for its key. Before production:
 *
 * - Start the members with `--max-txn-ops=512`: a commit writes up to 90 records and list entries, and moves due times.
 * - etcd is meant for up to 8 GB. Sweep often, and compact old revisions with `--auto-compaction-retention`.
 */
export function etcdStore({ urls, prefix = 'open-payments' }: EtcdOptions): Store {
  const cluster = clusterOf(urls)
  const { recordKey, placesOf, isAt, isDone, load, recordsIn, keysBetween } = keysOver(
    cluster,
    prefix,
  )

  async function removeOne({ kind, id, version }: VersionGuard): Promise<boolean> {
    const [record] = await load([{ kind, id }])
    if (record?.version !== version) return false
    const keys = [recordKey(kind, id), ...placesOf(kind, id, record)]
    return isDone([isAt(kind, id, version)], keys.map(remove))
  }

  return {
    load,

    async commit({ changes, guards }) {
      const conditions = [
        ...changes.map(({ kind, next, expectedVersion }) => isAt(kind, next.id, expectedVersion)),
        ...guards.map(({ kind, id, version }) => isAt(kind, id, version)),
      ]
      const writes = changes.flatMap(({ kind, next, previous }) => {
        const [before, after] = [placesOf(kind, next.id, previous), placesOf(kind, next.id, next)]
        return [
          put(recordKey(kind, next.id), JSON.stringify(next)),
          ...before.filter((key) => !after.includes(key)).map(remove),
          ...after.filter((key) => !before.includes(key)).map((key) => put(key, '')),
        ]
      })
      return isDone(conditions, writes)
    },

    async list(query) {
      const { kind, forward, limit } = query
      const keys = await keysBetween(...rangeOf(query), forward ? 'ASCEND' : 'DESCEND', limit + 1)
      const page = keys.slice(0, limit)
      const records = await recordsIn(kind, forward ? page : page.reverse())
      return { records, more: keys.length > limit }
    },

    async due(kind, namespace, before, limit) {
      const places = dueOf(kind, namespace)
      const keys = await keysBetween(places, `${places}${position(before)}~`, 'ASCEND', limit)
      return recordsIn(kind, keys)
    },

    remove: (records) => Promise.all(records.map(removeOne)),
  }
}

/** The keys of the records and of their places, and the requests that read and write them. */
function keysOver({ read, write }: Cluster, prefix: string) {
  const recordKey = (kind: RecordKind, id: string) => `${prefix}/record/${kind}/${id}`

  async function isDone(
    conditions: readonly object[],
    writes: readonly object[],
  ): Promise<boolean> {
    return (await write({ compare: conditions, success: writes })).succeeded === true
  }

  function isAt(kind: RecordKind, id: string, version: number) {
    const key = base64(recordKey(kind, id))
    return { key, target: 'VERSION', result: 'EQUAL', version: String(version) }
  }

  const placesOf = placesUnder(prefix)

  /** Resolves to the records of a range of places, in its order, except those removed meanwhile. */
  async function recordsIn(kind: RecordKind, keys: readonly string[]): Promise<Stored[]> {
    const found: Stored[] = []
    for (let i = 0; i < keys.length; i += 100) {
      const reads = keys.slice(i, i + 100).map((key) => {
        const id = key.slice(key.lastIndexOf('/') + 1)
        return { requestRange: { key: base64(recordKey(kind, id)) } }
      })
      const { responses = [] } = await read('txn', { success: reads })
      for (const { response_range: range } of responses)
        found.push(...(range?.kvs ?? []).map(recordIn))
    }
    return found
  }

  async function keysBetween(from: string, to: string, order: 'ASCEND' | 'DESCEND', limit: number) {
    const range = { key: base64(`${prefix}/${from}`), range_end: base64(`${prefix}/${to}`) }
    const sorted = { sort_target: 'KEY', sort_order: order, limit: String(limit), keys_only: true }
    return ((await read('range', { ...range, ...sorted })).kvs ?? []).map(({ key }) => text(key))
  }

  /** One transaction reads one revision. */
  async function load(keys: readonly RecordKey[]): Promise<(Stored | undefined)[]> {
    const reads = keys.map(({ kind, id }) => {
      return { requestRange: { key: base64(recordKey(kind, id)) } }
    })
    const { responses = [] } = await read('txn', { success: reads })
    return keys.map((_, i) => responses[i]?.response_range?.kvs?.map(recordIn)[0])
  }

  return { recordKey, placesOf, isAt, isDone, load, recordsIn, keysBetween }
}

/** Returns a function that returns the keys under which a version is found. */
function placesUnder(prefix: string) {
  return (kind: RecordKind, id: string, at: Pick<Stored, 'lists' | 'dueAt'> = {}) => {
    const { lists = [], dueAt } = at
    const places = lists.map(
      ({ list: wanted, at }) => `${listOf(kind, wanted)}${position(at)}/${id}`,
    )
    if (dueAt !== undefined) places.push(`${dueOf(kind, id.slice(0, 8))}${position(dueAt)}/${id}`)
    return places.map((place) => `${prefix}/${place}`)
  }
}

interface Pair {
  readonly key: string
  readonly value?: string
}

interface Answer {
  readonly kvs?: readonly Pair[]
  readonly succeeded?: boolean
  readonly responses?: readonly { readonly response_range?: { readonly kvs?: readonly Pair[] } }[]
}

/** The members of a cluster. One of them answers until it does not. */
type Cluster = ReturnType<typeof clusterOf>

/** Below the time for the store (3 s), also if a second member has to be asked. */
const timeoutMs = 1_400

function clusterOf(urls: readonly string[]) {
  let current = 0

  /** Asks one member after the other until one answers, as long as the request may be sent again. */
  async function call(path: string, body: object, mayRepeat: (error: unknown) => boolean) {
    for (let asked = 1; ; asked++) {
      try {
        return await post(`${urls[current]}/v3/kv/${path}`, body)
      } catch (error) {
        current = (current + 1) % urls.length
        if (asked >= urls.length || !mayRepeat(error)) throw error
      }
    }
  }

  return {
    read: (path: 'range' | 'txn', body: object) => call(path, body, () => true),
    /** A transaction that may have reached a member is not sent again: its outcome is unknown. */
    write: (body: object) => call('txn', body, isUnsent),
  }
}

/** Returns whether no connection could be opened. */
function isUnsent(error: unknown): boolean {
  const { cause } = error as { readonly cause?: { readonly code?: string } }
  return cause?.code === 'ECONNREFUSED'
}

async function post(url: string, body: object): Promise<Answer> {
  const signal = AbortSignal.timeout(timeoutMs)
  const response = await fetch(url, { method: 'POST', body: JSON.stringify(body), signal })
  if (!response.ok)
    throw new Error(`etcd responded with ${response.status}: ${await response.text()}`)
  return (await response.json()) as Answer
}

function put(key: string, value: string) {
  return { requestPut: { key: base64(key), value: base64(value) } }
}

function remove(key: string) {
  return { requestDeleteRange: { key: base64(key) } }
}

function recordIn({ value = '' }: Pair): Stored {
  return JSON.parse(text(value)) as Stored
}

function listOf(kind: RecordKind, list: string): string {
  // As JSON, no list name is a prefix of another, and lone surrogates stay distinct.
  return `list/${kind}/${JSON.stringify(list)}/`
}

function dueOf(kind: RecordKind, namespace: string): string {
  return `due/${kind}/${namespace}/`
}

/** Returns both ends of the range of a page; the second is not part of it. */
function rangeOf({ kind, list: wanted, cursor, forward }: ListQuery): [string, string] {
  const list = listOf(kind, wanted)
  if (cursor === undefined) return [list, `${list}~`]
  const edge = `${list}${position(cursor.at)}/${cursor.id}`
  // No key is between an id and the id with a character that is less than all characters of ids.
  return forward ? [`${edge}!`, `${list}~`] : [list, edge]
}

/** Formats a safe integer as 17 digits that sort in numeric order, including negative integers. */
function position(at: number): string {
  return String(BigInt(at) + 2n ** 53n).padStart(17, '0')
}

function base64(plain: string): string {
  return Buffer.from(plain).toString('base64')
}

function text(encoded: string): string {
  return Buffer.from(encoded, 'base64').toString()
}
