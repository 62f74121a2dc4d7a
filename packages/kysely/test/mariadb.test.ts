import { randomUUID } from 'node:crypto'
import { Kysely, MysqlDialect } from 'kysely'
import { createPool, type Pool } from 'mysql2'
import type { Store } from 'open-payments-server'
import { servers } from 'open-payments-test-support/databases'
import { type FreshKysely, mysqlUrl, onMysqlServers } from 'open-payments-test-support/kysely'
import { loadOne } from 'open-payments-test-support/one-record'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { kyselyStore, migrate } from '../src/index.js'

const dialect = 'mysql'

function change(id: string, version = 1) {
  const lists = [{ list: 'all', at: 1 }]
  const next = { id, version, commandId: `${id} ${version}`, lists }
  return { kind: 'grant', next, expectedVersion: version - 1 } as const
}

function put(store: Store, ...changes: readonly ReturnType<typeof change>[]): Promise<boolean> {
  return store.commit({ changes, guards: [] })
}

describe('a store of Kysely on MariaDB', () => {
  const { MariaDB: server } = servers
  if (server === undefined) return test.skip('skipped: there is no MariaDB', () => {})

  let fresh: FreshKysely
  let store: Store
  let url: string
  beforeAll(async () => {
    let name = ''
    fresh = await onMysqlServers([mysqlUrl(server)], [], {}, (database) => {
      name = database
    })
    const db = fresh.connect()
    await migrate(db, { dialect })
    store = kyselyStore(db, { dialect })
    const own = new URL(mysqlUrl(server))
    own.pathname = `/${name}`
    url = own.href
  })
  afterAll(() => fresh?.drop())

  /** A store that calls `before` ahead of each statement. */
  function watched(before: (pool: Pool, threadId: number, sql: string) => Promise<void>) {
    const pool = createPool({ uri: url, connectionLimit: 1 })
    pool.on('connection', (connection) => {
      const query = connection.query.bind(connection) as (...given: unknown[]) => unknown
      connection.query = ((...given: unknown[]) => {
        const send = () => void query(...given)
        void before(pool, connection.threadId, String(given[0])).then(send, send)
      }) as typeof connection.query
    })
    const db = new Kysely<object>({ dialect: new MysqlDialect({ pool }) })
    return { store: kyselyStore(db, { dialect }), close: () => db.destroy() }
  }

  test.each([1, 2, 3, 4, 5])(
    'writes nothing if its connection breaks before statement %i of a commit',
    async (fatal) => {
      const [changed, created] = [randomUUID(), randomUUID()].toSorted() as [string, string]
      await put(store, change(changed))
      const admin = createPool({ uri: url })
      let statements = 0
      const breaking = watched(async (_, threadId) => {
        if (++statements === fatal) await admin.promise().query(`KILL ${threadId}`)
      })
      const next = [change(changed, 2), change(created)]
      await expect(put(breaking.store, ...next)).rejects.toThrow()
      expect((await loadOne(store, 'grant', changed))?.version).toBe(1)
      expect(await loadOne(store, 'grant', created)).toBeUndefined()
      expect(await put(store, ...next)).toBe(true)
      await breaking.close()
      await admin.promise().end()
    },
  )

  test('begins a transaction again that was aborted to resolve a deadlock', async () => {
    const [first, second] = [randomUUID(), randomUUID()].toSorted() as [string, string]
    await put(store, change(first), change(second))
    const others = createPool({ uri: url, connectionLimit: 1 })
    const other = await others.promise().getConnection()
    const touch = (id: string) =>
      other.query(
        `UPDATE open_payments_records SET guarded = 1 WHERE kind = 'grant' AND id = '${id}'`,
      )
    await other.query('START TRANSACTION')
    await touch(second)
    // MariaDB aborts the transaction that has written less.
    for (let i = 0; i < 20; i++) {
      await other.query(
        `INSERT INTO open_payments_records (kind, id, version, value) VALUES ('x', '${first}${i}', 1, '')`,
      )
    }
    let [begun, updates] = [0, 0]
    let otherHasBoth: Promise<unknown> | undefined
    const deadlocking = watched(async (_pool, _threadId, sql) => {
      if (sql === 'START TRANSACTION') begun++
      if (!sql.startsWith('UPDATE')) return
      // The commit now holds the first record and is about to lock the second.
      if (++updates === 2) otherHasBoth = touch(first).then(() => other.query('ROLLBACK'))
    })
    try {
      expect(await put(deadlocking.store, change(first, 2), change(second, 2))).toBe(true)
      await otherHasBoth
    } finally {
      other.release()
      await others.promise().end()
      await deadlocking.close()
    }
    expect(begun).toBe(2)
  })
})
