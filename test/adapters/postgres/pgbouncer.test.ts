import { randomUUID } from 'node:crypto'
import { storeConformance } from 'open-payments-server-testing'
import type { Pool } from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  checkTables,
  migrate,
  PreparedStatementError,
  postgresStore,
} from '../../../adapters/postgres.js'
import { type FreshPostgres, freshPostgres } from '../../support/databases.js'

/** PgBouncer, before the server of `TEST_DATABASE_URL`. `.ci/pgbouncer` sets it. */
const connectionString = process.env['TEST_PGBOUNCER_URL']

const withoutTransactions =
  'the pooler allows no transactions, as in statement mode: run migrate on a connection without it'

describe.each([
  ['transaction', ''],
  ['statement', '-statements'],
])('behind PgBouncer in %s mode, the store', (mode, suffix) => {
  if (connectionString === undefined)
    return test.skip('skipped: TEST_PGBOUNCER_URL is not set', () => {})

  let fresh: FreshPostgres
  let pools: readonly Pool[]
  beforeAll(async () => {
    fresh = await freshPostgres()
    pools = [0, 1].map(() => fresh.connect({ connectionString: connectionString + suffix }))
  })
  afterAll(() => fresh.drop())

  test('is ready, once migrate has run', async () => {
    const pool = pools[0] as Pool
    const { schema } = fresh
    expect(await checkTables(pool, { schema })).toEqual({ ok: true })
    expect(await migrate(pool, { schema })).toEqual({ applied: [] })
    const empty = `${schema}_empty`
    await fresh.pool.query(`CREATE SCHEMA ${empty}`)
    const outcome = await migrate(pool, { schema: empty }).catch((error: Error) => error.message)
    expect(outcome).toEqual(
      mode === 'statement' ? withoutTransactions : { applied: expect.anything() },
    )
    await fresh.pool.query(`DROP SCHEMA ${empty} CASCADE`)
  })

  describe('keeps the contract with `prepare: false`', () => {
    let made = 0
    const makeStore = () => {
      const pool = pools[made++ % 2] as Pool
      return postgresStore(pool, { schema: fresh.schema, prepare: false })
    }
    for (const { name, rule, run } of storeConformance(makeStore, { sameData: true })) {
      test(`${name} (${rule})`, run)
    }
  })

  test('without `prepare: false`, operations reject with an error that names the option', async () => {
    const store = postgresStore(pools[0] as Pool, { schema: fresh.schema })
    // Concurrent loads share a statement, commits do not.
    const commits = Array.from({ length: 40 }, () => {
      const next = { id: randomUUID(), version: 1, commandId: 'A'.repeat(22) }
      const changes = [{ kind: 'replay', next, expectedVersion: 0 } as const]
      return store.commit({ changes, guards: [] })
    })
    const failed = (await Promise.allSettled(commits)).filter(({ status }) => status === 'rejected')
    expect(failed).not.toEqual([])
    for (const { reason } of failed as PromiseRejectedResult[]) {
      expect(reason).toBeInstanceOf(PreparedStatementError)
      expect(reason.message).toContain('{ prepare: false }')
    }
  })
})
