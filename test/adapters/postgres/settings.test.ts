import type { Pool } from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  checkTables,
  migrate,
  type PostgresClient,
  postgresStore,
} from '../../../adapters/postgres.js'
import { type FreshPostgres, freshPglite, freshPostgres, servers } from '../../support/databases.js'
import { loadOne } from '../../support/one-record.js'

const readOnly = 'transactions are read-only: set default_transaction_read_only = off'
const withoutNulls = 'array_nulls is off: set array_nulls = on'
const lossy = 'synchronous_commit is off, so that a crash loses acknowledged commits: set it to on'
const unlogged =
  'the table is UNLOGGED, so that a crash empties it: ALTER TABLE open_payments_records SET LOGGED'
const policies =
  'row level security keeps the role of the servers from its own records: give it a policy for all commands'
const notFlushed =
  'fsync is off, so that a crash of the machine loses acknowledged commits: set it to on'
const triggers =
  'a trigger of open_payments_records skips a row or divides by zero, which is a lost commit to the store: remove it'

describe.skipIf(servers.PostgreSQL === undefined)('a setting of PostgreSQL', () => {
  let fresh: FreshPostgres
  beforeAll(async () => {
    fresh = await freshPostgres()
  })
  afterAll(() => fresh?.drop())

  const withSetting = (setting: string) => fresh.connect({ options: `-c ${setting}` })

  test.each([
    ['default_transaction_read_only=on', readOnly],
    ['array_nulls=off', withoutNulls],
  ])('%s is refused, by checkTables and by migrate', async (setting, problem) => {
    const { schema } = fresh
    const pool = withSetting(setting)
    expect(await checkTables(pool, { schema })).toEqual({ ok: false, problem })
    const refusal = { code: 'ERR_DATABASE_SETTINGS', message: problem }
    await expect(migrate(pool, { schema })).rejects.toMatchObject(refusal)
  })

  test('synchronous_commit=off is refused by checkTables, and migrate warns, unless it is allowed', async () => {
    const { schema } = fresh
    const pool = withSetting('synchronous_commit=off')
    expect(await checkTables(pool, { schema })).toEqual({ ok: false, problem: lossy })
    expect(await migrate(pool, { schema })).toEqual({ applied: [], warnings: [lossy] })
    const allowed = { schema, allowLostCommits: true }
    expect(await checkTables(pool, allowed)).toEqual({ ok: true })
    expect(await migrate(pool, allowed)).toEqual({ applied: [] })
  })

  test('UNLOGGED is refused by checkTables, and migrate warns, unless it is allowed', async () => {
    const { schema, pool } = fresh
    await pool.query(`ALTER TABLE ${schema}.open_payments_records SET UNLOGGED`)
    expect(await checkTables(pool, { schema })).toEqual({ ok: false, problem: unlogged })
    expect(await migrate(pool, { schema })).toEqual({ applied: [], warnings: [unlogged] })
    expect(await checkTables(pool, { schema, allowLostCommits: true })).toEqual({ ok: true })
    await pool.query(`ALTER TABLE ${schema}.open_payments_records SET LOGGED`)
    expect(await checkTables(pool, { schema })).toEqual({ ok: true })
  })

  test.each([
    'default_transaction_isolation=serializable',
    'default_transaction_isolation=repeatable\\ read',
    'standard_conforming_strings=off',
    'client_encoding=latin1',
    'extra_float_digits=-15',
    'bytea_output=escape',
    'plan_cache_mode=force_generic_plan',
    'quote_all_identifiers=on',
    'transform_null_equals=on',
    'lock_timeout=1',
  ])('%s works', async (setting) => {
    const { schema } = fresh
    const pool = withSetting(setting)
    expect(await checkTables(pool, { schema })).toEqual({ ok: true })
    const store = postgresStore(pool, { schema })
    const text = "\u20ac \u0142 \ud83d\ude00 \\ ' \u0000"
    const id = `works-${setting.replaceAll(/[^a-z]/g, '-')}`
    const next = { id, version: 1, commandId: 'a', dueAt: 1_700_000_000_000, text }
    const changes = [{ kind: 'quote', next, expectedVersion: 0 }] as const
    expect(await store.commit({ changes, guards: [] })).toBe(true)
    expect(await loadOne(store, 'quote', id)).toEqual(next)
    const due = await store.due('quote', id.slice(0, 8), next.dueAt, 10_000)
    expect(due).toContainEqual(next)
  })
})

describe.skipIf(servers.PostgreSQL === undefined)('lock_timeout on PostgreSQL', () => {
  let fresh: FreshPostgres
  beforeAll(async () => {
    fresh = await freshPostgres()
  })
  afterAll(() => fresh?.drop())

  test('that ends a wait for another commit is a collision, which the store repeats', async () => {
    const { schema, pool } = fresh
    const waits = fresh.connect({ options: '-c lock_timeout=1' })
    let attempts = 0
    waits.on('release', () => {
      attempts++
    })
    const store = postgresStore(waits, { schema })
    const first = { id: 'waited-for', version: 1, commandId: 'a' }
    const create = { kind: 'quote', next: first, expectedVersion: 0 } as const
    expect(await store.commit({ changes: [create], guards: [] })).toBe(true)

    const holder = await pool.connect()
    await holder.query('BEGIN')
    await holder.query(`SELECT FROM ${schema}.open_payments_records WHERE id = $1 FOR UPDATE`, [
      first.id,
    ])
    const replace = { kind: 'quote', next: { ...first, version: 2 }, expectedVersion: 1 } as const
    const waiting = store.commit({ changes: [replace], guards: [] })
    await expect.poll(() => attempts).toBeGreaterThan(3) // the creation, and some that waited
    await holder.query('COMMIT')
    holder.release()
    expect(await waiting).toBe(true)
  })
})

describe.skipIf(servers.PostgreSQL === undefined)('a trigger of the host on PostgreSQL', () => {
  let fresh: FreshPostgres
  beforeAll(async () => {
    fresh = await freshPostgres()
  })
  afterAll(() => fresh?.drop())

  /** Runs work while the table has a trigger with this body. */
  async function withTrigger(when: string, body: string, work: () => Promise<void>) {
    const { pool, schema } = fresh
    const text = `CREATE FUNCTION ${schema}.own() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${body} END $$`
    await pool.query(text)
    const table = `${schema}.open_payments_records`
    await pool.query(
      `CREATE TRIGGER own ${when} ON ${table} FOR EACH ROW EXECUTE FUNCTION ${schema}.own()`,
    )
    await work()
    await pool.query(`DROP FUNCTION ${schema}.own() CASCADE`)
  }

  const check = () => checkTables(fresh.pool, { schema: fresh.schema })

  test.each([
    ['skips updates', 'BEFORE UPDATE', 'RETURN NULL;'],
    ['skips new rows', 'BEFORE INSERT', 'RETURN NULL;'],
    ['divides by zero', 'AFTER UPDATE', 'PERFORM 1 / 0; RETURN NULL;'],
  ])('that %s is refused by checkTables', async (_, when, body) => {
    await withTrigger(when, body, async () => {
      expect(await check()).toEqual({ ok: false, problem: triggers })
    })
    expect(await check()).toEqual({ ok: true })
  })

  test.each([
    ['writes elsewhere', 'AFTER INSERT OR UPDATE', 'RETURN NULL;'],
    ['raises an error of its own', 'BEFORE UPDATE', "RAISE EXCEPTION 'not now';"],
  ])('that %s is accepted', async (_, when, body) => {
    await withTrigger(when, body, async () => {
      expect(await check()).toEqual({ ok: true })
    })
  })
})

describe.skipIf(servers.PostgreSQL === undefined)('row level security on PostgreSQL', () => {
  let fresh: FreshPostgres
  let running: Pool
  let role: string
  let table: string
  beforeAll(async () => {
    fresh = await freshPostgres()
    const { pool, schema } = fresh
    role = `${schema}_runner`
    table = `${schema}.open_payments_records`
    await pool.query(`CREATE ROLE ${role} LOGIN`)
    await pool.query(`GRANT USAGE ON SCHEMA ${schema} TO ${role}`)
    await pool.query(`GRANT ALL ON ALL TABLES IN SCHEMA ${schema} TO ${role}`)
    const url = new URL(servers.PostgreSQL ?? '')
    url.username = role
    running = fresh.connect({ connectionString: url.href })
    await pool.query(`ALTER TABLE ${table} ENABLE ROW LEVEL SECURITY`)
  })
  afterAll(async () => {
    await fresh.pool.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`)
    await fresh.drop()
  })

  const check = (client: PostgresClient = running) => checkTables(client, { schema: fresh.schema })

  test.each([
    ['without a policy', ''],
    ['for SELECT alone', 'FOR SELECT USING (true)'],
    [
      'without UPDATE',
      'FOR INSERT WITH CHECK (true); CREATE POLICY two ON table FOR SELECT USING (true)',
    ],
    ['that hides what is written', 'USING (false) WITH CHECK (true)'],
  ])('%s is refused by checkTables', async (_, policy) => {
    const { pool } = fresh
    const text = `CREATE POLICY one ON table ${policy}`.replaceAll('table', table)
    if (policy !== '') await pool.query(text)
    expect(await check()).toEqual({ ok: false, problem: policies })
    await pool.query(`DROP POLICY IF EXISTS one ON ${table}`)
    await pool.query(`DROP POLICY IF EXISTS two ON ${table}`)
  })

  test('that is right is accepted, and the check leaves nothing behind', async () => {
    await fresh.pool.query(`CREATE POLICY one ON ${table} USING (true)`)
    expect(await check()).toEqual({ ok: true })
    const { rows } = await fresh.pool.query(`SELECT count(*)::int AS count FROM ${table}`)
    expect(rows).toEqual([{ count: 0 }])
    const queries = { query: (statement: never) => running.query(statement) }
    expect(await check(queries)).toEqual({ ok: false, problem: policies })
    await fresh.pool.query(`DROP POLICY one ON ${table}`)
  })

  test('does not concern the owner of the table', async () => {
    expect(await check(fresh.pool)).toEqual({ ok: true })
  })
})

describe('fsync = off, as PGlite has it,', () => {
  let lite: Awaited<ReturnType<typeof freshPglite>>
  beforeAll(async () => {
    lite = await freshPglite()
  })
  afterAll(() => lite.close())

  test('is refused for another database, unless it is allowed', async () => {
    const database: PostgresClient = { query: (statement) => lite.query(statement) }
    expect(await checkTables(database)).toEqual({ ok: false, problem: notFlushed })
    expect(await checkTables(database, { allowLostCommits: true })).toEqual({ ok: true })
    expect(await checkTables(lite)).toEqual({ ok: true })
  })
})

test('a standby is refused', async () => {
  const rows: Readonly<Record<string, readonly object[]>> = {
    '/*NO LOAD BALANCE*/ SELECT version': [{ version: 1 }],
    '/*NO LOAD BALANCE*/ SELECT current_setting': [
      {
        encoding: 'UTF8',
        standby: 'true',
        readonly: 'on',
        nulls: 'on',
        waits: 'on',
        flushes: 'on',
        due_at: '1700000000001',
      },
    ],
  }
  const standby: PostgresClient = {
    async query({ text }) {
      const [, found = []] = Object.entries(rows).find(([start]) => text.startsWith(start)) ?? []
      return { rows: found as never }
    },
  }
  const problem = 'the database is a standby: connect to the primary'
  expect(await checkTables(standby)).toEqual({ ok: false, problem })
})
