import { readFileSync } from 'node:fs'
import { storeConformance } from 'open-payments-server-testing'
import type { Pool } from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { checkTables, migrate, postgresStore } from '../../../adapters/postgres.js'
import type { RecordKind } from '../../../src/entry-adapter.js'
import { type FreshPostgres, freshPostgres, servers } from '../../support/databases.js'
import { isLong } from '../../support/runs.js'

/** The two blocks of statements in docs/production.md, for roles and a schema of the test's own. */
function documentedStatements(schema: string, database: string): readonly string[] {
  const document = readFileSync('docs/production.md', 'utf8')
  const [, section = ''] = document.split('## Privileges of the database role\n')
  const [upToNext = ''] = section.split('\n## ')
  return [...upToNext.matchAll(/```sql\n([\s\S]*?)```/g)].map(([, statements = '']) =>
    statements
      .replaceAll('…', schema)
      .replaceAll('DATABASE wallet ', `DATABASE ${database} `)
      .replaceAll(/SCHEMA open_payments\b/g, `SCHEMA ${schema}`)
      .replaceAll('open_payments.open_payments', `${schema}.open_payments`)
      .replaceAll(/\bop_(migrator|runner)\b/g, `${schema}_$1`),
  )
}

describe.skipIf(servers.PostgreSQL === undefined)('the privileges that the documents name', () => {
  let fresh: FreshPostgres
  let running: Pool
  beforeAll(async () => {
    fresh = await freshPostgres({ migrated: false })
    const { pool, schema } = fresh
    await pool.query(`DROP SCHEMA ${schema}`) // the statements create it
    const { rows } = await pool.query('SELECT current_database() AS name')
    const [before = '', after = ''] = documentedStatements(schema, rows[0].name)
    await pool.query(before)
    const connect = (role: string) => {
      const url = new URL(servers.PostgreSQL ?? '')
      url.username = `${schema}_${role}`
      url.password = schema
      return fresh.connect({ connectionString: url.href })
    }
    const migrating = connect('migrator')
    running = connect('runner')
    await migrate(migrating, { schema, reports: true })
    await migrating.query(after)
  })
  afterAll(async () => {
    const { pool, schema } = fresh
    await pool.query(`DROP OWNED BY ${schema}_runner`)
    await pool.query(`DROP OWNED BY ${schema}_migrator CASCADE`)
    await pool.query(`DROP ROLE ${schema}_migrator, ${schema}_runner`)
    await pool.query(`CREATE SCHEMA ${schema}`) // drop() removes it
    await fresh.drop()
  })

  test('let the running role call migrate, which finds nothing to do, and checkTables', async () => {
    expect(await migrate(running, { schema: fresh.schema })).toEqual({ applied: [] })
    expect(await checkTables(running, { schema: fresh.schema })).toEqual({ ok: true })
  })

  const kinds: RecordKind[] = ['grant']
  const ofVersions = 1 // the other cases need no other privilege
  const store = () => postgresStore(running, { schema: fresh.schema })
  for (const each of storeConformance(store, isLong ? {} : { kinds })) {
    if (isLong || (each.rule === ofVersions && !each.search))
      test(`suffice for the store: ${each.name}`, each.run)
  }

  test.each([
    'DROP TABLE records',
    'TRUNCATE records',
    'ALTER TABLE records ADD COLUMN another text',
    'CREATE INDEX ON records (version)',
    'CREATE TABLE another (id text)',
    "INSERT INTO migrations VALUES (99, 'later')",
    'DELETE FROM migrations',
    'DELETE FROM report_migrations',
  ])('refuse the running role %s', async (statement) => {
    const text = statement.replace(
      /(records|report_migrations|migrations|another \()/,
      `${fresh.schema}.open_payments_$1`,
    )
    await expect(running.query(text)).rejects.toMatchObject({ code: '42501' })
  })
})
