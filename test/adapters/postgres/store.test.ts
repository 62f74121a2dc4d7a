import { type ConformanceCase, storeConformance } from 'open-payments-server-testing'
import type { Pool } from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type PostgresClient,
  type PostgresDatabase,
  postgresStore,
} from '../../../adapters/postgres.js'
import type { Commit, RecordKind } from '../../../src/entry-adapter.js'
import type { Store } from '../../../src/index.js'
import { type FreshPostgres, freshPglite, freshPostgres, servers } from '../../support/databases.js'
import { loadOne } from '../../support/one-record.js'
import { isLong } from '../../support/runs.js'

function reversed({ changes, guards }: Commit): Commit {
  return { changes: changes.toReversed(), guards: guards.toReversed() }
}

/** Runs cases of the suite on a store that exists only after the tests begin. */
function conformance(store: () => Store, includes?: (each: ConformanceCase) => boolean): void {
  const some = includes === undefined ? ['grant', 'incoming-payment', 'event'] : ['grant', 'event']
  const cases = storeConformance(store, isLong ? {} : { kinds: some as RecordKind[] })
  for (const each of cases) if (includes?.(each) !== false) test(each.name, each.run)
}

/** `npm test` runs all cases on one database, and a part of them in each other setup, on some kinds of record. */
const some = ({ rule }: ConformanceCase) => isLong || rule === 1
const someRaces = (each: ConformanceCase) =>
  some(each) || /^exactly one of 16|^two commits that each guard/.test(each.name)

// Where there is a server, PGlite is tested by `npm run test:long`.
describe.runIf(isLong || servers.PostgreSQL === undefined)(
  'PGlite, which runs statements in sequence',
  () => {
    let database: PostgresDatabase & { close(): Promise<void> }
    beforeAll(async () => {
      database = await freshPglite()
    })
    afterAll(() => database.close())

    conformance(() => postgresStore(database))
  },
)

describe.skipIf(servers.PostgreSQL === undefined)('PostgreSQL', () => {
  let fresh: FreshPostgres
  let plain: FreshPostgres
  beforeAll(async () => {
    // The indexes of the views are written with each record, and must not break a rule.
    fresh = await freshPostgres({ reports: true })
    plain = await freshPostgres()
  })
  afterAll(() => Promise.all([fresh.drop(), plain.drop()]))

  describe('with prepared statements, beside the views for reports', () => {
    conformance(() => postgresStore(fresh.pool, { schema: fresh.schema }))
  })

  describe('without prepared statements and views', () => {
    const store = () => postgresStore(plain.pool, { schema: plain.schema, prepare: false })
    conformance(store, some)
  })

  test('commits never deadlock, whatever they guard, replace and create', async () => {
    // The database detects a deadlock quickly here, and raises an error that the store would retry.
    const pool = fresh.connect({ options: '-c deadlock_timeout=5ms', max: 12 })
    const circles: unknown[] = []
    const watched: PostgresClient = {
      query: (statement) =>
        pool.query(statement).catch((error) => {
          if (error.code === '40P01') circles.push(error)
          throw error
        }),
    }
    const store = postgresStore(watched, { schema: fresh.schema })
    const [replaced, held] = [
      ['budget', 'event', 'quote'] as const,
      ['grant', 'outgoing-payment'] as const,
    ]
    const id = 'circle'
    const start = [...replaced, ...held].map((kind) => {
      return { kind, next: { id, version: 1, commandId: 'start' }, expectedVersion: 0 }
    })
    expect(await store.commit({ changes: start, guards: [] })).toBe(true)

    let landed = 0
    async function work(worker: number): Promise<void> {
      for (let turn = 0; turn < 30; turn++) {
        const commandId = `${worker} ${turn}`
        // The workers name records in different orders, and some try to create an existing record.
        const picked = [worker, worker + turn].map((number) => replaced[number % replaced.length])
        const changes = await Promise.all(
          [...new Set(picked)].map(async (kind = 'budget', i) => {
            const isNew = worker % 3 === 0 && i === 0
            const version = isNew ? 0 : ((await loadOne(store, kind, id))?.version ?? 0)
            return { kind, next: { id, version: version + 1, commandId }, expectedVersion: version }
          }),
        )
        const guards = held.map((kind) => ({ kind, id, version: 1 }))
        const named = worker % 2 === 0 ? { changes, guards } : reversed({ changes, guards })
        if (await store.commit(named)) landed += 1
      }
    }
    await Promise.all(Array.from({ length: 12 }, (_, worker) => work(worker)))
    expect(circles).toEqual([])
    expect(landed).toBeGreaterThan(10)
  })

  test('a thousand lost commits close no connection', async () => {
    const pool = fresh.connect({ max: 4 })
    const connections = { opened: 0, closed: 0 }
    pool.on('connect', () => (connections.opened += 1))
    pool.on('remove', () => (connections.closed += 1))
    const store = postgresStore(pool, { schema: fresh.schema })
    const record = (id: string, version: number) => {
      const next = { id, version, commandId: `${id} ${version}` }
      return { kind: 'quote', next, expectedVersion: version - 1 } as const
    }
    expect(await store.commit({ changes: [record('lost', 1)], guards: [] })).toBe(true)
    const guards = [{ kind: 'quote', id: 'lost', version: 2 }] as const
    const losing: Commit[] = [
      { changes: [record('lost', 1)], guards: [] },
      { changes: [record('lost', 3)], guards: [] },
      { changes: [record('lost', 3), record('new', 1)], guards: [] },
      { changes: [record('new', 1), record('lost', 1)], guards: [] },
      { changes: [record('new', 1)], guards },
    ]
    const commits = Array.from({ length: 200 }, () => losing).flat()
    const outcomes = await Promise.all(commits.map((each) => store.commit(each)))
    expect(outcomes).toEqual(commits.map(() => false))
    expect(await loadOne(store, 'quote', 'new')).toBeUndefined()
    expect(connections).toEqual({ opened: 4, closed: 0 })
  })

  test('a commit whose second record is created meanwhile undoes the first, on the same connection', async () => {
    const pool = fresh.connect({ max: 1, application_name: `${fresh.schema}_waiting` })
    let closed = 0
    pool.on('remove', () => (closed += 1))
    const store = postgresStore(pool, { schema: fresh.schema })
    const record = (id: string) => {
      const next = { id, version: 1, commandId: id }
      return { kind: 'quote', next, expectedVersion: 0 } as const
    }
    const [first, second] = ['meanwhile-b', 'meanwhile-a']
    const client = await fresh.pool.connect()
    try {
      await client.query('BEGIN')
      const inside = postgresStore.inTransaction(client, { schema: fresh.schema })
      expect(await inside.commit({ changes: [record(second)], guards: [] })).toBe(true)
      const waiting = store.commit({ changes: [record(first), record(second)], guards: [] })
      const waits = `SELECT count(*)::int AS waits FROM pg_stat_activity
        WHERE application_name = '${fresh.schema}_waiting' AND wait_event_type = 'Lock'`
      await expect.poll(async () => (await fresh.pool.query(waits)).rows).toEqual([{ waits: 1 }])
      await client.query('COMMIT')
      expect(await waiting).toBe(false)
    } finally {
      await client.query('ROLLBACK')
      client.release()
    }
    expect(await loadOne(store, 'quote', first)).toBeUndefined()
    expect(closed).toBe(0)
  })

  describe('a record that becomes due later', () => {
    const kind = 'grant'
    const namespace = 'later-on'
    const store = () => postgresStore(fresh.pool, { schema: fresh.schema })
    const write = async (id: string, version: number, dueAt?: number) => {
      const own = { id: `${namespace}-${id}`, version, commandId: `${id} ${version}` }
      const next = { ...own, ...(dueAt !== undefined && { dueAt }) }
      const changes = [{ kind, next, expectedVersion: version - 1 } as const]
      expect(await store().commit({ changes, guards: [] })).toBe(true)
    }
    const indexed = async (id: string) => {
      const text = `SELECT due_at::int FROM ${fresh.schema}.open_payments_records WHERE id = $1`
      return (await fresh.pool.query(text, [`${namespace}-${id}`])).rows[0].due_at
    }
    const due = async (before: number, limit = 10) => {
      const found = await store().due(kind, namespace, before, limit)
      return found.map(({ id }) => id.slice(namespace.length + 1))
    }

    test('stays where it is in the index until it is looked for, and is not found early', async () => {
      await write('a', 1, 10)
      await write('a', 2, 30)
      await write('b', 1, 10)
      await write('b', 2)
      expect([await indexed('a'), await indexed('b')]).toEqual([10, 10])
      expect(await due(20)).toEqual([])
      expect([await indexed('a'), await indexed('b')]).toEqual([30, null])
      expect(await due(30)).toEqual(['a'])
    })

    test('is found in the order of its own time, and takes no place of another record', async () => {
      await write('c', 1, 11)
      await write('c', 2, 15)
      await write('d', 1, 12)
      expect(await due(20, 1)).toEqual(['d'])
      expect(await due(20, 2)).toEqual(['d', 'c'])
    })

    test('moves at once when it becomes due earlier, or due at all', async () => {
      await write('e', 1)
      await write('e', 2, 18)
      await write('e', 3, 17)
      expect(await indexed('e')).toBe(17)
    })

    test('can be replaced while its row moves in the index', async () => {
      await write('f', 1, 13)
      await write('f', 2, 40)
      const client = await fresh.pool.connect()
      const pool = fresh.connect({ max: 1, application_name: `${fresh.schema}_moving` })
      try {
        await client.query('BEGIN')
        const inside = postgresStore.inTransaction(client, { schema: fresh.schema })
        await inside.due(kind, namespace, 20, 10)
        const next = { id: `${namespace}-f`, version: 3, commandId: 'f 3', dueAt: 50 }
        const event = { id: `${namespace}-event`, version: 1, commandId: 'f 3' }
        const replacing = postgresStore(pool, { schema: fresh.schema }).commit({
          changes: [
            { kind, next, expectedVersion: 2 },
            { kind: 'event', next: event, expectedVersion: 0 },
          ],
          guards: [{ kind, id: `${namespace}-e`, version: 3 }],
        })
        const waits = `SELECT count(*)::int AS waits FROM pg_stat_activity
          WHERE application_name = '${fresh.schema}_moving' AND wait_event_type = 'Lock'`
        await expect.poll(async () => (await fresh.pool.query(waits)).rows).toEqual([{ waits: 1 }])
        await client.query('COMMIT')
        expect(await replacing).toBe(true)
      } finally {
        await client.query('ROLLBACK')
        client.release()
      }
      expect(await indexed('f')).toBe(40)
      expect(await loadOne(store(), 'event', `${namespace}-event`)).toBeDefined()
    })
  })

  describe('behind a pooler that loses prepared statements', () => {
    const lost = {
      code: 'ERR_PREPARED_STATEMENT',
      message: expect.stringContaining('set { prepare: false } in the options of postgresStore'),
    }

    test('an operation names the option to set', async () => {
      const client = await fresh.connect({ max: 1 }).connect()
      try {
        const store = postgresStore(client, { schema: fresh.schema })
        expect(await loadOne(store, 'grant', 'any')).toBeUndefined()
        await client.query('DEALLOCATE ALL')
        await expect(loadOne(store, 'grant', 'any')).rejects.toMatchObject(lost)
      } finally {
        client.release(true)
      }
    })

    test('so does one whose statement another client has prepared on its connection', async () => {
      const pool = fresh.connect({ max: 1 })
      const store = postgresStore(pool, { schema: fresh.schema })
      await pool.query(`PREPARE op_load_1_${fresh.schema} AS SELECT 1`)
      await expect(loadOne(store, 'grant', 'any')).rejects.toMatchObject(lost)
      const unprepared = postgresStore(pool, { schema: fresh.schema, prepare: false })
      expect(await loadOne(unprepared, 'grant', 'any')).toBeUndefined()
    })

    test('so does one in a transaction of the host', async () => {
      const client = await fresh.connect({ max: 1 }).connect()
      try {
        await client.query('BEGIN')
        await client.query(`PREPARE op_load_1_${fresh.schema} AS SELECT 1`)
        const inside = postgresStore.inTransaction(client, { schema: fresh.schema })
        await expect(loadOne(inside, 'grant', 'any')).rejects.toMatchObject({
          code: 'ERR_TRANSACTION_FAILED',
          message: lost.message,
        })
      } finally {
        await client.query('ROLLBACK')
        client.release(true)
      }
    })
  })

  describe.each(['repeatable read', 'serializable'])(
    'with %s as the default isolation level',
    (isolation) => {
      let pool: Pool
      beforeAll(() => {
        const level = isolation.replace(' ', '\\ ')
        pool = fresh.connect({ options: `-c default_transaction_isolation=${level}` })
      })

      test('connections have that level', async () => {
        const { rows } = await pool.query('SHOW transaction_isolation')
        expect(rows).toEqual([{ transaction_isolation: isolation }])
      })

      conformance(
        () => postgresStore(pool, { schema: fresh.schema }),
        (each) => (each.rule === 1 || each.rule === 2) && someRaces(each),
      )
    },
  )
})
