import type { Pool } from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type PostgresClient,
  type PostgresDatabase,
  postgresStore,
} from '../../../adapters/postgres.js'
import type { Store } from '../../../src/index.js'
import { type ConformanceCase, storeConformance } from '../../../src/testing/index.js'
import { type FreshPostgres, freshPglite, freshPostgres, servers } from '../../support/databases.js'

/** Runs the suite on a store that there is only once the tests have begun. */
function conformance(store: () => Store, rules?: readonly ConformanceCase['rule'][]): void {
  for (const { name, rule, run } of storeConformance(store)) {
    if (rules?.includes(rule) ?? true) test(name, run)
  }
}

describe('PGlite, which runs one statement after the other', () => {
  let database: PostgresDatabase & { close(): Promise<void> }
  beforeAll(async () => {
    database = await freshPglite()
  })
  afterAll(() => database.close())

  conformance(() => postgresStore(database))
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
    conformance(() => postgresStore(fresh.pool, { schema: fresh.schema, prepare: false }))
  })

  test('never has commits wait for each other in a circle, whatever they hold and replace', async () => {
    // A circle would be found at once, and broken by an error that the store would then retry.
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
    const ids = ['a', 'b', 'c', 'd', 'e'].map((name) => `circles.${name}`)
    const first = ids.map((id) => ({
      kind: 'grant' as const,
      next: { id, version: 1, by: 'start' },
      expectedVersion: 0,
    }))
    expect(await store.commit({ changes: first, guards: [] })).toBe(true)

    let landed = 0
    async function work(worker: number): Promise<void> {
      for (let turn = 0; turn < 20; turn++) {
        const records = await Promise.all(ids.map((id) => store.load('grant', id)))
        const known = records.filter((record) => record !== undefined)
        // Each worker begins elsewhere, and goes round in a direction of its own.
        const round = known.map((_, i) => known.at((worker + turn + i) % known.length))
        const picked = (worker % 2 === 0 ? round : round.toReversed()).filter(
          (one) => one !== undefined,
        )
        const by = `${worker} ${turn}`
        const changes = picked.slice(0, 2).map((record) => ({
          kind: 'grant' as const,
          next: { ...record, version: record.version + 1, by },
          expectedVersion: record.version,
        }))
        const guards = picked
          .slice(2, 4)
          .map(({ id, version }) => ({ kind: 'grant' as const, id, version }))
        if (await store.commit({ changes, guards })) landed += 1
      }
    }
    await Promise.all(Array.from({ length: 12 }, (_, worker) => work(worker)))
    expect(circles).toEqual([])
    expect(landed).toBeGreaterThan(10)
  })

  describe.each(['repeatable read', 'serializable'])('where %s is the default', (isolation) => {
    let pool: Pool
    beforeAll(() => {
      const level = isolation.replace(' ', '\\ ')
      pool = fresh.connect({ options: `-c default_transaction_isolation=${level}` })
    })

    test('has connections of that level', async () => {
      const { rows } = await pool.query('SHOW transaction_isolation')
      expect(rows).toEqual([{ transaction_isolation: isolation }])
    })

    conformance(() => postgresStore(pool, { schema: fresh.schema }), [1, 2])
  })
})
