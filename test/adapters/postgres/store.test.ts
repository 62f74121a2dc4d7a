import type { Pool } from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type PostgresClient,
  type PostgresDatabase,
  postgresStore,
} from '../../../adapters/postgres.js'
import type { Commit, Store } from '../../../src/index.js'
import { type ConformanceCase, storeConformance } from '../../../src/testing/index.js'
import { type FreshPostgres, freshPglite, freshPostgres, servers } from '../../support/databases.js'
import { isLong } from '../../support/runs.js'

function reversed({ changes, guards }: Commit): Commit {
  return { changes: changes.toReversed(), guards: guards.toReversed() }
}

/** Runs cases of the suite on a store that exists only after the tests begin. */
function conformance(
  store: () => Store,
  includes: (each: ConformanceCase) => boolean = () => true,
): void {
  for (const each of storeConformance(store)) if (includes(each)) test(each.name, each.run)
}

/** `npm test` runs the whole suite on one database, and a part of it in each other setup. */
const some = ({ rule }: ConformanceCase) => isLong || rule === 1
const someRaces = (each: ConformanceCase) =>
  some(each) || /^exactly one of 16|^two commits that each guard/.test(each.name)

describe('PGlite, which runs statements in sequence', () => {
  let database: PostgresDatabase & { close(): Promise<void> }
  beforeAll(async () => {
    database = await freshPglite()
  })
  afterAll(() => database.close())

  conformance(() => postgresStore(database), servers.PostgreSQL === undefined ? undefined : some)
})

describe.skipIf(servers.PostgreSQL === undefined)('PostgreSQL', () => {
  let fresh: FreshPostgres
  beforeAll(async () => {
    fresh = await freshPostgres()
  })
  afterAll(() => fresh.drop())

  describe('with prepared statements', () => {
    conformance(() => postgresStore(fresh.pool, { schema: fresh.schema }))
  })

  describe('without prepared statements', () => {
    const store = () => postgresStore(fresh.pool, { schema: fresh.schema, prepare: false })
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
            const version = isNew ? 0 : ((await store.load(kind, id))?.version ?? 0)
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
