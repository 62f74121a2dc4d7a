import { randomBytes } from 'node:crypto'
import type { PGlite } from '@electric-sql/pglite'
import { Pool } from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  DatabaseNewerError,
  DatabaseSettingsError,
  fromPglite,
  migrate,
  migrationsOf,
  type PostgresDatabase,
  postgresStore,
  reportMigrationsOf,
} from '../../../adapters/postgres.js'
import { InvalidInputError } from '../../../src/index.js'
import { emptyPglite, type FreshPostgres, freshPostgres, servers } from '../../support/databases.js'
import { invalidInput } from '../../support/invalid-input.js'
import { loadOne } from '../../support/one-record.js'
import { isLong } from '../../support/runs.js'

const change = {
  kind: 'grant',
  next: { id: 'a', version: 1, commandId: 'b' },
  expectedVersion: 0,
} as const

describe.runIf(isLong || servers.PostgreSQL === undefined)('migrating PGlite', () => {
  let lite: PGlite
  let database: PostgresDatabase
  beforeAll(async () => {
    lite = await emptyPglite()
    database = fromPglite(lite)
  })
  afterAll(() => lite.close())

  test('creates the tables once, and then does nothing', async () => {
    expect(await migrate(database)).toEqual({ applied: ['records'] })
    expect(await postgresStore(database).commit({ changes: [change], guards: [] })).toBe(true)
    expect(await migrate(database)).toEqual({ applied: [] })
    expect(await loadOne(postgresStore(database), 'grant', 'a')).toEqual(change.next)
  })

  test('rejects tables of a later version of the library and does not change them', async () => {
    const text = "INSERT INTO open_payments_migrations (version, name) VALUES (99, 'later')"
    await database.query({ text, values: [] })
    const error = await migrate(database).catch((thrown) => thrown)
    expect(error).toBeInstanceOf(DatabaseNewerError)
    expect(error).toMatchObject({ code: 'ERR_DATABASE_NEWER' })
    await expect(migrate(database)).rejects.toThrow('the tables have version 99')
  })

  test.each(['', 'Wallet', 'a b', 'a"b', '1a', 'a'.repeat(41)])(
    'rejects %j as the name of a schema',
    async (schema) => {
      const error = await migrate(database, { schema }).catch((thrown) => thrown)
      expect(error).toBeInstanceOf(InvalidInputError)
      expect(error).toEqual(invalidInput('schema'))
      expect(() => postgresStore(database, { schema })).toThrow('schema must be')
    },
  )
})

describe.skipIf(servers.PostgreSQL === undefined)('a database in another encoding', () => {
  async function withEncoding(encoding: string, work: (pool: Pool) => Promise<void>) {
    const name = `encoding_${randomBytes(6).toString('hex')}`
    const admin = new Pool({ connectionString: servers.PostgreSQL, max: 1 })
    const url = new URL(servers.PostgreSQL ?? '')
    url.pathname = `/${name}`
    await admin.query(
      `CREATE DATABASE ${name} TEMPLATE template0 ENCODING '${encoding}' LC_COLLATE 'C' LC_CTYPE 'C'`,
    )
    const pool = new Pool({ connectionString: url.href })
    // The pool ends before the server has closed its connections, and DROP DATABASE ends them.
    pool.on('error', () => undefined)
    pool.on('connect', (client) => client.on('error', () => undefined))
    try {
      await work(pool)
    } finally {
      await pool.end()
      await admin.query(`DROP DATABASE ${name} WITH (FORCE)`)
      await admin.end()
    }
  }

  test('is refused if it cannot store all text', async () => {
    await withEncoding('LATIN1', async (pool) => {
      const error = await migrate(pool).catch((thrown) => thrown)
      expect(error).toBeInstanceOf(DatabaseSettingsError)
      expect(error).toMatchObject({
        code: 'ERR_DATABASE_SETTINGS',
        message: 'the encoding of the database is LATIN1, and must be UTF8',
      })
      const { rows } = await pool.query("SELECT FROM pg_tables WHERE tablename LIKE 'open%'")
      expect(rows).toEqual([])
    })
  })

  test('is accepted if it stores all bytes', async () => {
    await withEncoding('SQL_ASCII', async (pool) => {
      await migrate(pool)
      const next = { ...change.next, text: '\u20ac \ud83d\ude00' }
      const store = postgresStore(pool)
      expect(await store.commit({ changes: [{ ...change, next }], guards: [] })).toBe(true)
      expect(await loadOne(store, 'grant', 'a')).toEqual(next)
    })
  })
})

test('migration steps have consecutive, unique versions', () => {
  expect(migrationsOf().map(({ version }) => version)).toEqual(migrationsOf().map((_, i) => i + 1))
  const texts = migrationsOf().flatMap(({ statements }) => statements)
  expect(new Set(texts).size).toBe(texts.length)
})

test.each(['a"; DROP TABLE accounts; --', 'Payments', ''])(
  'migration steps are not written for the schema %j',
  (schema) => {
    expect(() => migrationsOf(schema)).toThrow(invalidInput('schema'))
    expect(() => reportMigrationsOf(schema)).toThrow(invalidInput('schema'))
  },
)

describe.skipIf(servers.PostgreSQL === undefined)('migrating PostgreSQL', () => {
  let fresh: FreshPostgres
  beforeAll(async () => {
    fresh = await freshPostgres({ migrated: false })
  })
  afterAll(() => fresh.drop())

  test('is performed by one of twelve processes that start concurrently', async () => {
    const pools = Array.from({ length: 12 }, () => fresh.connect({ max: 2 }))
    const { schema } = fresh
    const results = await Promise.all(pools.map((pool) => migrate(pool, { schema })))
    expect(results.flatMap(({ applied }) => applied)).toEqual(['records'])
  })

  test('needs no right to change tables if there is nothing to do', async () => {
    const { pool, schema } = fresh
    const role = `${schema}_reader`
    await pool.query(`CREATE ROLE ${role}`)
    const reader = fresh.connect({ max: 1 })
    try {
      await pool.query(`GRANT USAGE ON SCHEMA ${schema} TO ${role}`)
      await pool.query(`GRANT SELECT ON ALL TABLES IN SCHEMA ${schema} TO ${role}`)
      await reader.query(`SET ROLE ${role}`)
      expect(await migrate(reader, { schema })).toEqual({ applied: [] })
    } finally {
      await reader.query('RESET ROLE')
      await pool.query(`DROP OWNED BY ${role}`)
      await pool.query(`DROP ROLE ${role}`)
    }
  })

  test('leaves nothing behind after a failure, and returns its connection to the pool', async () => {
    const other = await freshPostgres({ migrated: false })
    try {
      const { schema } = other
      // The last index cannot be created, because another relation has its name.
      const name = `${schema}.open_payments_records_list_3`
      const pool = other.connect({ max: 1 })
      await pool.query(`CREATE SEQUENCE ${name}`)
      await pool.query(`CREATE VIEW ${schema}.open_payments_records AS SELECT 1 AS one`)
      await expect(migrate(pool, { schema })).rejects.toThrow()
      const { rows } = await pool.query(
        `SELECT count(*)::int AS done FROM ${schema}.open_payments_migrations`,
      )
      expect(rows).toEqual([{ done: 0 }])
      await pool.query(`DROP VIEW ${schema}.open_payments_records`)
      await pool.query(`DROP SEQUENCE ${name}`)
      expect(await migrate(pool, { schema })).toEqual({ applied: ['records'] })
    } finally {
      await other.drop()
    }
  })
})
