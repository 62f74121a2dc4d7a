import type { PGlite } from '@electric-sql/pglite'
import { Pool } from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  checkTables,
  fromPglite,
  migrate,
  type PostgresDatabase,
} from '../../../adapters/postgres.js'
import { emptyPglite } from '../../support/databases.js'

describe('a check of the tables', () => {
  let lite: PGlite
  beforeAll(async () => {
    lite = await emptyPglite()
  })
  afterAll(() => lite?.close())

  const check = (options?: { schema?: string }) => checkTables(fromPglite(lite), options)
  const without = {
    ok: false,
    problem: 'the tables of the library do not exist: run migrate(pool)',
  }

  test('follows the life of the database', async () => {
    expect(await check()).toEqual(without)
    await migrate(fromPglite(lite))
    expect(await check()).toEqual({ ok: true })

    const newer = "INSERT INTO open_payments_migrations VALUES (99, 'later')"
    await lite.exec(newer)
    expect(await check()).toEqual({ ok: true })

    await lite.exec('DELETE FROM open_payments_migrations WHERE version > 0')
    expect(await check()).toEqual(without)
    await lite.exec(newer)
    expect(await check()).toEqual(without)
    await lite.exec("INSERT INTO open_payments_migrations VALUES (1, 'records')")
    await lite.exec('ALTER TABLE open_payments_records RENAME TO moved')
    expect(await check()).toEqual(without)
    await lite.exec('ALTER TABLE moved RENAME TO open_payments_records')
    expect(await check()).toEqual({ ok: true })
  })

  test('names a missing privilege', async () => {
    await lite.exec('CREATE ROLE stranger; SET ROLE stranger')
    const problem = 'the role of the database may not read the tables'
    expect(await check()).toEqual({ ok: false, problem })
    await lite.exec('RESET ROLE')
  })

  test('and a migration with nothing to do read from the primary alone', async () => {
    await lite.exec('CREATE SCHEMA primary_only')
    await migrate(fromPglite(lite), { schema: 'primary_only' })
    const sent: string[] = []
    const { query, transaction } = fromPglite(lite)
    const recording: PostgresDatabase = {
      query(statement) {
        sent.push(statement.text)
        return query(statement)
      },
      transaction,
    }
    expect(await checkTables(recording, { schema: 'primary_only' })).toEqual({ ok: true })
    expect(await migrate(recording, { schema: 'primary_only' })).toEqual({ applied: [] })
    expect(sent.length).toBeGreaterThan(3)
    for (const text of sent) expect(text).toMatch(/^\/\*NO LOAD BALANCE\*\/ SELECT /)
  })

  test('is of one schema', async () => {
    expect(await check({ schema: 'other' })).toEqual(without)
    await lite.exec('CREATE SCHEMA other')
    await migrate(fromPglite(lite), { schema: 'other' })
    expect(await check({ schema: 'other' })).toEqual({ ok: true })
    await expect(check({ schema: 'Other"' })).rejects.toThrow(/^schema /)
    await expect(checkTables(fromPglite(lite), { table: 'x' } as never)).rejects.toThrow('table')
  })
})

test('a database that does not answer is named by the code alone', async () => {
  const pool = new Pool({ connectionString: 'postgres://owner:secret@127.0.0.1:1/wallet' })
  const check = await checkTables(pool)
  expect(check).toEqual({ ok: false, problem: 'the database did not answer: ECONNREFUSED' })
  await pool.end()
})

test.each([
  [
    Object.assign(new Error('password of owner'), { code: '28P01' }),
    /^the database refused .* 28P01$/,
  ],
  [new Error('timeout of db.internal'), /^the database did not answer$/],
  ['text', /^the database did not answer$/],
])('an error of the driver is shown without its message', async (error, problem) => {
  const query = () => Promise.reject(error)
  expect(await checkTables({ query })).toMatchObject({
    ok: false,
    problem: expect.stringMatching(problem),
  })
})
