import { EventEmitter } from 'node:events'
import type { Pool } from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  fromPglite,
  migrate,
  type PostgresPool,
  postgresStore,
} from '../../../adapters/postgres.js'
import type { Store } from '../../../src/index.js'
import { emptyPglite, type FreshPostgres, freshPostgres, servers } from '../../support/databases.js'
import { loadOne } from '../../support/one-record.js'

const instant = '1700000000001'

/** A pool of `pg` whose client reports the end of its connection as soon as it is passed on. */
function poolOfEndedConnections() {
  const released: unknown[] = []
  const ended = Object.assign(new Error('terminating connection'), { code: '57P01' })
  const client = Object.assign(new EventEmitter(), {
    query: () => Promise.reject(ended),
    release: (broken?: boolean) => void released.push(broken),
  })
  const pool = {
    totalCount: 1,
    // The tables of versions are empty.
    query: async ({ text }: { readonly text: string }) => ({
      rows: text.includes('server_encoding') ? [{ encoding: 'UTF8', due_at: instant }] : [],
    }),
    connect(callback?: (error: unknown, taken: typeof client) => void) {
      callback?.(undefined, client)
      client.emit('error', ended)
      return Promise.resolve(client)
    },
  }
  return { pool: pool as unknown as PostgresPool, client, released, ended }
}

describe('a connection that ends as soon as the pool passes it on', () => {
  test('rejects the operation, and does not end the process', async () => {
    const { pool, client, released, ended } = poolOfEndedConnections()
    await expect(loadOne(postgresStore(pool), 'grant', 'any')).rejects.toBe(ended)
    expect(released).toEqual([true])
    expect(client.listenerCount('error')).toBe(0)
  })

  test.each(['a transaction of the host', 'a migration'])(
    'rejects %s, and does not end the process',
    async (name) => {
      const { pool, client, released, ended } = poolOfEndedConnections()
      const run =
        name === 'a migration'
          ? migrate(pool)
          : postgresStore.transaction(pool, async () => ({ ok: true }))
      await expect(run).rejects.toBe(ended)
      expect(released).toEqual([true])
      expect(client.listenerCount('error')).toBe(0)
    },
  )
})

describe.skipIf(servers.PostgreSQL === undefined)(
  'a pool of PostgreSQL that the host has wrapped',
  () => {
    let fresh: FreshPostgres
    beforeAll(async () => {
      fresh = await freshPostgres({ migrated: false })
    })
    afterAll(() => fresh.drop())

    test.each<[string, (pool: Pool) => PostgresPool]>([
      [
        'by a subclass whose `connect` is asynchronous',
        (pool) => {
          const connect = pool.connect.bind(pool)
          const traced = async () => connect()
          return Object.assign(pool, { connect: traced }) as unknown as PostgresPool
        },
      ],
      [
        'by an object whose `connect` takes no callback',
        (pool) =>
          ({
            totalCount: 0,
            connect: async () => pool.connect(),
            query: (statement) => pool.query(statement),
          }) as PostgresPool,
      ],
    ])('%s works, and gets all its connections back', async (_, wrap) => {
      const { schema } = fresh
      const pool = fresh.connect({ max: 1 })
      const wrapped = wrap(pool)
      await migrate(wrapped, { schema })
      const id = 'wrapped-pool'
      const change = { kind: 'quote', next: { id, version: 1, commandId: id } } as const
      const commit = { changes: [{ ...change, expectedVersion: 0 }], guards: [] }
      const store = postgresStore(wrapped, { schema })
      await store.commit(commit)
      const work = async (_: unknown, inside: Store) => ({
        ok: (await loadOne(inside, 'quote', id)) !== undefined,
      })
      expect(await postgresStore.transaction(wrapped, work, { schema })).toEqual({ ok: true })
      expect([pool.totalCount, pool.idleCount]).toEqual([1, 1])
    })

    test('rejects with the error of its `connect`', async () => {
      const refused = new Error('no connection today')
      const connect = async () => {
        throw refused
      }
      const wrapped = Object.assign(fresh.connect(), { connect }) as unknown as PostgresPool
      await expect(loadOne(postgresStore(wrapped), 'quote', 'any-quote')).rejects.toBe(refused)
    })
  },
)

test('a store whose tables do not exist says what creates them', async () => {
  const database = await emptyPglite()
  const cause = expect.objectContaining({ code: '42P01' })
  const missing = expect.objectContaining({
    code: 'ERR_TABLES_MISSING',
    message:
      'the tables of the library do not exist: ' +
      'run migrate(pool) of open-payments-server/postgres before the store is used',
    cause,
  })
  const store = postgresStore(fromPglite(database))
  const change = { kind: 'quote', next: { id: 'no-tables', version: 1, commandId: 'a' } } as const
  const commit = { changes: [{ ...change, expectedVersion: 0 }], guards: [] }
  await expect(loadOne(store, 'quote', 'no-tables')).rejects.toEqual(missing)
  await expect(store.commit(commit)).rejects.toEqual(missing)
  await database.transaction(async (inside) => {
    const within = postgresStore.inTransaction(fromPglite(inside))
    const failed = { code: 'ERR_TRANSACTION_FAILED', cause: { code: 'ERR_TABLES_MISSING', cause } }
    await expect(within.commit(commit)).rejects.toMatchObject(failed)
    await inside.rollback()
  })
  await database.close()
})

test('a connection string in the place of a pool is refused, and not quoted', async () => {
  const database = 'postgres://user:password@database.example' as never
  for (const refused of [async () => postgresStore(database), () => migrate(database)]) {
    const error = await refused().catch((thrown) => thrown)
    expect(error).toMatchObject({ code: 'ERR_INVALID_INPUT', path: ['database'] })
    expect(error.message).toMatch(/^database must be a pool or a connection with a method query/)
    expect(error.message).not.toContain('password')
  }
})
