import { createHash } from 'node:crypto'
import type { Store } from 'open-payments-server'
import type { ListQuery, RecordKind, Stored, VersionGuard } from 'open-payments-server/adapter'

/**
 * The part of a `redis` client that the store uses: clients of `createClient` and `createCluster` have it.
 */
export interface RedisClient {
  hmGet(key: string, fields: string[]): Promise<unknown[]>
  eval(script: string, options: ScriptOptions): Promise<unknown>
  evalSha(sha1: string, options: ScriptOptions): Promise<unknown>
}

interface ScriptOptions {
  readonly keys: string[]
  readonly arguments: string[]
}

/**
 * Stores records in Redis: a hash holds all records, a sorted set their places in lists, and one script
 * checks and writes both, so that no reader sees a partial commit. Before production:
 *
 * - Set `appendonly yes` and `appendfsync always`. With `everysec`, the default, a crash loses the
 *   acknowledged commits of the last second or two, including payments and used signatures.
 * - Set `maxmemory-policy noeviction` and monitor the memory, which holds all records. When it is full,
 *   commits reject and write nothing.
 * - Read from the primary only and cache nothing: leave `useReplicas` and `clientSideCache` off, because
 *   `load` must see every commit.
 * - Expect a failover to a replica to lose acknowledged commits, because replication is asynchronous. Where
 *   that is not acceptable, restart the primary from its file instead of failing over.
 *
 * The two keys share a hash tag, so one node of a cluster serves the whole store.
 *
 * @param prefix The prefix of the keys, without braces. Stores with different prefixes share no data.
 */
export function redisStore(
  client: RedisClient,
  { prefix = 'open-payments' }: { readonly prefix?: string } = {},
): Store {
  const recordsKey = `{${prefix}}:records`
  const keys = [recordsKey, `{${prefix}}:places`]

  /** Writes each field's text if all versions are as expected. */
  async function write(expected: readonly VersionGuard[], texts: readonly string[]) {
    const args = [...conditionsOf(expected), ...texts]
    return (await run(client, writeAll, { keys, arguments: args })) === 1
  }

  async function read(command: string, from: string, to: string, limit: number) {
    const args = [command, from, to, String(limit)]
    return ((await run(client, readRange, { keys, arguments: args })) as string[]).map(recordIn)
  }

  return {
    async load(keys) {
      const fields = keys.map(({ kind, id }) => fieldOf(kind, id))
      const texts = await client.hmGet(recordsKey, fields)
      return texts.map((text) => (typeof text === 'string' ? recordIn(text) : undefined))
    },

    async commit({ changes, guards }) {
      const written = changes.map(({ kind, next, expectedVersion: version }) => {
        return { kind, id: next.id, version }
      })
      const texts = changes.flatMap(({ kind, next }) => [fieldOf(kind, next.id), text(kind, next)])
      return write([...written, ...guards], texts)
    },

    async list(query) {
      const { forward, limit } = query
      const found = await read(...rangeOf(query), limit + 1)
      const records = found.slice(0, limit)
      return { records: forward ? records : records.reverse(), more: found.length > limit }
    },

    async due(kind, namespace, before, limit) {
      const list = dueOf(kind, namespace)
      return read('ZRANGEBYLEX', `[${list}`, `(${list}${position(before)}~`, limit)
    },

    async remove(records) {
      const args = records.flatMap(({ kind, id, version }) => [fieldOf(kind, id), String(version)])
      const removed = (await run(client, removeEach, { keys, arguments: args })) as number[]
      return removed.map((each) => each === 1)
    },
  }
}

interface Script {
  readonly lua: string
  readonly sha1: string
}

/** Returns the number of records, then the field of each and the version that it must have, 0 for none. */
function conditionsOf(expected: readonly VersionGuard[]): string[] {
  const pairs = expected.flatMap(({ kind, id, version }) => [fieldOf(kind, id), String(version)])
  return [String(expected.length), ...pairs]
}

async function run(
  client: RedisClient,
  { lua, sha1 }: Script,
  options: ScriptOptions,
): Promise<unknown> {
  try {
    return await client.evalSha(sha1, options)
  } catch (error) {
    // Redis forgets scripts when it restarts. It has not run this one then, so sending it again is safe.
    if (!String(error).includes('NOSCRIPT')) throw error
    return client.eval(lua, options)
  }
}

function script(lua: string): Script {
  return { lua, sha1: createHash('sha1').update(lua).digest('hex') }
}

// Redis does not undo a script that fails half-way. HSET, which it rejects when memory is full, therefore
// comes before ZREM, which it does not reject.
const writeAll = script(`
local last = 2 * tonumber(ARGV[1])
for i = 2, last, 2 do
  local stored = redis.call('HGET', KEYS[1], ARGV[i])
  if (stored and string.match(stored, '^%d+') or '0') ~= ARGV[i + 1] then return 0 end
end
for i = last + 2, #ARGV, 2 do
  local field, text = ARGV[i], ARGV[i + 1]
  local replaced = redis.call('HGET', KEYS[1], field) or ''
  redis.call('HSET', KEYS[1], field, text)
  for place in string.gmatch(replaced, '\\n(%l[^\\n]*)') do redis.call('ZREM', KEYS[2], place) end
  for place in string.gmatch(text, '\\n(%l[^\\n]*)') do redis.call('ZADD', KEYS[2], 0, place) end
end
return 1
`)

const removeEach = script(`
local removed = {}
for i = 1, #ARGV, 2 do
  local stored = redis.call('HGET', KEYS[1], ARGV[i]) or ''
  local isAt = string.match(stored, '^%d+') == ARGV[i + 1]
  if isAt then
    redis.call('HDEL', KEYS[1], ARGV[i])
    for place in string.gmatch(stored, '\\n(%l[^\\n]*)') do redis.call('ZREM', KEYS[2], place) end
  end
  removed[(i + 1) / 2] = isAt and 1 or 0
end
return removed
`)

const readRange = script(`
local found = redis.call(ARGV[1], KEYS[2], ARGV[2], ARGV[3], 'LIMIT', 0, ARGV[4])
for i, place in ipairs(found) do
  found[i] = redis.call('HGET', KEYS[1], string.match(place, ' ([^ ]+)$'))
end
return found
`)

/** A record as lines: version, JSON, places. No line contains a newline. Only places begin with a letter. */
function text(kind: RecordKind, record: Stored): string {
  const { id, version, dueAt, lists = [] } = record
  const places = lists.map(({ list: wanted, at }) => listOf(kind, wanted) + position(at))
  if (dueAt !== undefined) places.push(dueOf(kind, id.slice(0, 8)) + position(dueAt))
  const named = places.map((place) => `${place} ${fieldOf(kind, id)}`)
  return [version, JSON.stringify(record), ...named].join('\n')
}

function recordIn(text: string): Stored {
  return JSON.parse(text.split('\n', 2)[1] ?? '') as Stored
}

function fieldOf(kind: RecordKind, id: string): string {
  return `${kind}/${id}`
}

// Places are members of one sorted set with equal scores, so that Redis orders them by their bytes: by list,
// then position, then id. Scores would not work, because a cursor must be able to stop between equal times.

function listOf(kind: RecordKind, list: string): string {
  // As JSON, no list name is a prefix of another, and lone surrogates stay distinct.
  return `list/${kind}/${JSON.stringify(list)}`
}

function dueOf(kind: RecordKind, namespace: string): string {
  return `due/${kind}/${namespace}/`
}

/** Returns the command that finds a page of a list, and both ends of the range. */
function rangeOf({ kind, list: wanted, cursor, forward }: ListQuery): [string, string, string] {
  const list = listOf(kind, wanted)
  const edge = cursor && `(${list}${position(cursor.at)} ${fieldOf(kind, cursor.id)}`
  return forward
    ? ['ZRANGEBYLEX', edge ?? `[${list}`, `(${list}~`]
    : ['ZREVRANGEBYLEX', edge ?? `(${list}~`, `[${list}`]
}

/** Formats a safe integer as 17 digits that sort in numeric order, including negative integers. */
function position(at: number): string {
  return String(BigInt(at) + 2n ** 53n).padStart(17, '0')
}
