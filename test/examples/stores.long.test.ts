import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { createPool, type Pool, type QueryOptions } from 'mariadb'
import { storeConformance } from 'open-payments-server-testing'
import { createClient } from 'redis'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createMariadbTables, mariadbStore } from '../../examples/stores/mariadb.js'
import { type RedisClient, redisStore } from '../../examples/stores/redis.js'
import type { Stored } from '../../src/entry-adapter.js'
import { memoryStore, type Store } from '../../src/index.js'
import { loadOne, removeOne } from '../support/one-record.js'
import { patient } from '../support/runs.js'

const { TEST_REDIS_URL: redisUrl, TEST_MARIADB_URL: mariadbUrl } = process.env

/** Two stores over the same data, each with its own connections. */
type Pair = readonly [Store, Store]

function record(id: string, version = 1, more: object = {}): Stored {
  return { id, version, commandId: `${id} ${version}`, ...more }
}

function put(store: Store, ...records: readonly Stored[]): Promise<boolean> {
  const changes = records.map((next) => {
    return { kind: 'grant' as const, next, expectedVersion: next.version - 1 }
  })
  return store.commit({ changes, guards: [] })
}

function behavesAsAStore(pair: () => Pair): void {
  describe('keeps the contract', () => {
    let made = 0
    const makeStore = () => pair()[made++ % 2] as Store
    for (const { name, rule, run } of storeConformance(makeStore, patient)) {
      test(`${name} (${rule})`, run)
    }
  })

  test('orders, pages and lists due records like the memory store, for all instants', async () => {
    const [store] = pair()
    const instant = fc.oneof(
      fc.maxSafeInteger(),
      fc.integer({ min: -2, max: 2 }),
      fc.constantFrom(Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER, -0),
      fc.integer({ min: 1_700_000_000_000, max: 1_700_000_000_003 }),
    )
    const id = fc.stringMatching(/^[A-Za-z0-9._-]{1,4}$/)
    const cursor = fc.record({ at: instant, id: fc.oneof(id, fc.constant('')) })
    const script = fc.record({
      places: fc.uniqueArray(fc.record({ id, at: instant }), {
        maxLength: 12,
        selector: (place) => place.id,
      }),
      queries: fc.array(
        fc.record(
          { cursor, forward: fc.boolean(), limit: fc.integer({ min: 0, max: 6 }) },
          { requiredKeys: ['forward', 'limit'] },
        ),
        { minLength: 1, maxLength: 4 },
      ),
      before: instant,
    })
    await fc.assert(
      fc.asyncProperty(script, async ({ places, queries, before }) => {
        const model = memoryStore()
        const namespace = randomUUID().slice(0, 8)
        const wanted = `${namespace} Zoë\ud800 ${'x'.repeat(300)}`
        const records = places.map((place) => {
          const lists = [{ list: wanted, at: place.at }]
          return record(`${namespace}${place.id}`, 1, { dueAt: place.at, lists })
        })
        for (const each of [store, model]) expect(await put(each, ...records)).toBe(true)
        for (const { cursor, ...rest } of queries) {
          const near = cursor && { cursor: { ...cursor, id: `${namespace}${cursor.id}` } }
          const query = { kind: 'grant' as const, list: wanted, ...rest, ...near }
          expect(await store.list(query)).toEqual(await model.list(query))
        }
        const asked = ['grant', namespace, before, 5] as const
        expect(await store.due(...asked)).toEqual(await model.due(...asked))
      }),
      { numRuns: 60 },
    )
  })
}

describe('the Redis recipe', () => {
  if (redisUrl === undefined) return test.skip('skipped: TEST_REDIS_URL is not set', () => {})

  const prefix = `test-${randomUUID()}`
  const clients = [createClient({ url: redisUrl }), createClient({ url: redisUrl })] as const
  const [client] = clients
  const keys = () => client.keys(`*${prefix}*`)

  beforeAll(async () => {
    await Promise.all(clients.map((each) => each.connect()))
  })
  afterAll(async () => {
    await client.del(await keys())
    await Promise.all(clients.map((each) => each.close()))
  })

  behavesAsAStore(() => [redisStore(clients[0], { prefix }), redisStore(clients[1], { prefix })])

  test('uses one hash tag in all its keys, so that a cluster keeps them in one slot', async () => {
    await put(redisStore(client, { prefix }), record(randomUUID(), 1, { dueAt: 1 }))
    const tags = (await keys()).map((key) => key.slice(0, key.indexOf('}') + 1))
    expect(tags).toEqual([`{${prefix}}`, `{${prefix}}`])
  })

  test('leaves nothing of a removed record behind', async () => {
    const own = `${prefix}-removed`
    const store = redisStore(client, { prefix: own })
    const lists = [1, 2, 3].map((at) => ({ list: `list ${at}`, at }))
    await put(store, record('a', 1, { dueAt: 1, lists }))
    await put(store, record('a', 2, { dueAt: 2, lists: lists.slice(1) }))
    expect(await client.zCard(`{${own}}:places`)).toBe(3)
    expect(await removeOne(store, 'grant', 'a', 2)).toBe(true)
    expect((await keys()).filter((key) => key.includes(own))).toEqual([])
  })

  test('continues when Redis has forgotten its scripts', async () => {
    let forgotten = 0
    const forgetful: RedisClient = {
      hmGet: (key, fields) => client.hmGet(key, fields),
      eval: (script, options) => client.eval(script, options),
      evalSha: (_, options) => client.evalSha(String(forgotten++).padStart(40, '0'), options),
    }
    const store = redisStore(forgetful, { prefix })
    const id = randomUUID()
    expect([await put(store, record(id)), await put(store, record(id))]).toEqual([true, false])
    expect(await store.due('grant', id.slice(0, 8), 0, 1)).toEqual([])
    expect(forgotten).toBe(3)
  })
})

describe('the MariaDB recipe', () => {
  if (mariadbUrl === undefined) return test.skip('skipped: TEST_MARIADB_URL is not set', () => {})

  const prefix = `test_${randomUUID().replaceAll('-', '')}`
  // The second pool has a very different configuration.
  const pools = [
    'connectionLimit=6',
    'connectionLimit=4&foundRows=false&rowsAsArray=true&metaAsArray=true',
  ].map((options) =>
    createPool(`${mariadbUrl}?${options}&acquireTimeout=300000&bigIntAsNumber=true`),
  ) as [Pool, Pool]
  const [pool] = pools
  const store = mariadbStore(pool, { prefix })
  const lists = [{ list: prefix, at: 1 }]
  const rowsIn = async (table: string) => {
    const [{ rows }] = await pool.query(`SELECT COUNT(*) AS \`rows\` FROM ${prefix}_${table}`)
    return Number(rows)
  }

  beforeAll(async () => {
    // Several processes may start concurrently.
    await Promise.all(pools.map((each) => createMariadbTables(each, { prefix })))
  })
  afterAll(async () => {
    await pool.query(`DROP TABLE ${prefix}_records, ${prefix}_places`)
    await Promise.all(pools.map((each) => each.end()))
  })

  behavesAsAStore(() => [store, mariadbStore(pools[1], { prefix })])

  test('refuses sessions that read what may be rolled back', async () => {
    const initSql = encodeURIComponent("SET tx_isolation = 'READ-UNCOMMITTED'")
    const dirty = createPool(`${mariadbUrl}?initSql=${initSql}`)
    const created = createMariadbTables(dirty, { prefix })
    await expect(created).rejects.toThrow('the isolation level is READ UNCOMMITTED')
    await dirty.end()
  })

  /** A store that calls `before` ahead of each statement of its transactions. */
  function watched(before: (threadId: number, sql: string) => Promise<void>): Store {
    const getConnection = async () => {
      const connection = await pool.getConnection()
      const { query, execute, threadId } = connection
      const watch =
        (call: typeof query) => async (sql: string | QueryOptions, values?: unknown) => {
          await before(threadId ?? 0, typeof sql === 'string' ? sql : sql.sql)
          return call.call(connection, sql, values)
        }
      return Object.assign(connection, { query: watch(query), execute: watch(execute) })
    }
    const escapeId = (name: string) => pool.escapeId(name)
    return mariadbStore({ getConnection, escapeId } as Pool, { prefix })
  }

  test.each([1, 2, 3, 4, 5, 6, 7])(
    'writes nothing if its connection breaks before statement %i of a commit',
    async (fatal) => {
      const [changed, created] = [randomUUID(), randomUUID()].toSorted() as [string, string]
      await put(store, record(changed, 1, { lists }))
      const before = [await rowsIn('records'), await rowsIn('places')]
      let statements = 0
      const breaking = watched(async (threadId) => {
        if (++statements === fatal) await pool.query(`KILL ${threadId}`)
      })
      const next = [record(changed, 2), record(created, 1, { lists })]
      await expect(put(breaking, ...next)).rejects.toThrow()
      expect((await loadOne(store, 'grant', changed))?.version).toBe(1)
      expect([await rowsIn('records'), await rowsIn('places')]).toEqual(before)
      expect(pool.activeConnections()).toBe(0)
      expect(await put(store, ...next)).toBe(true)
    },
  )

  test('retries a transaction that was aborted to resolve a deadlock', async () => {
    const [first, second] = [randomUUID(), randomUUID()].toSorted() as [string, string]
    await put(store, record(first), record(second))
    const other = await pool.getConnection()
    const touch = (id: string) =>
      other.query(`UPDATE ${prefix}_records SET namespace = 'x' WHERE kind = 'grant' AND id = ?`, [
        id,
      ])
    await other.query('START TRANSACTION')
    await touch(second)
    // MariaDB aborts the transaction that has written less.
    for (let i = 0; i < 20; i++) {
      const columns = '(kind, id, version, body, namespace)'
      const row = `('other', '${first}${i}', 1, '', '')`
      await other.query(`INSERT INTO ${prefix}_records ${columns} VALUES ${row}`)
    }

    let [begun, updates] = [0, 0]
    let otherHasBoth: Promise<unknown> | undefined
    const deadlocking = watched(async (_, sql) => {
      if (sql === 'START TRANSACTION') begun++
      if (!sql.startsWith('UPDATE')) return
      // The commit now holds the first record and is about to lock the second.
      if (++updates === 2) otherHasBoth = touch(first).then(() => other.query('ROLLBACK'))
    })
    const next = [record(first, 2), record(second, 2)]
    try {
      expect(await put(deadlocking, ...next)).toBe(true)
      await otherHasBoth
    } finally {
      await other.release()
    }
    expect(begun).toBe(2)
  })

  test('leaves nothing of a removed record behind', async () => {
    const id = randomUUID()
    const before = [await rowsIn('records'), await rowsIn('places')]
    await put(store, record(id, 1, { lists: [...lists, { list: `${prefix} ${id}`, at: 2 }] }))
    expect(await removeOne(store, 'grant', id, 1)).toBe(true)
    expect([await rowsIn('records'), await rowsIn('places')]).toEqual(before)
  })
})
