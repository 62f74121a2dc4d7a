import type { Pool } from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type PostgresDatabase, postgresStore } from '../../../adapters/postgres.js'
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
