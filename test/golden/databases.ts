import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CompiledQuery, Kysely, MysqlDialect } from 'kysely'
import { createPool } from 'mysql2'
import { kyselyStore, migrate as migrateKysely } from 'open-payments-server-kysely'
import { Pool } from 'pg'
import { migrate as migratePostgres, postgresStore } from '../../adapters/postgres.js'
import { migrate as migrateSqlite, sqliteStore } from '../../adapters/sqlite.js'
import type { Store } from '../../src/index.js'
import { servers } from '../support/databases.js'
import { mysqlUrl } from '../support/kysely.js'
import { sqliteDrivers } from '../support/sqlite.js'

/** A database that another process can open, too. */
export interface Address {
  readonly kind: 'postgres' | 'mariadb' | 'sqlite'
  /** A URL, or the path of a file. */
  readonly at: string
  /** The schema in PostgreSQL. */
  readonly schema?: string
}

type Row = Readonly<Record<string, unknown>>

/** A connection to a database, as this version of the library uses it. */
export interface Connection {
  readonly store: Store
  migrate(): Promise<unknown>
  run(text: string): Promise<readonly Row[]>
  /** The statements that create the tables as they are, with the versions of their migrations. */
  schema(): Promise<readonly string[]>
  close(): Promise<unknown>
}

/** A database without tables, for one test. */
export interface Fresh {
  readonly address: Address
  drop(): Promise<unknown>
}

/** The databases of this machine. */
export const databases: Readonly<Record<Address['kind'], (() => Promise<Fresh>) | undefined>> = {
  postgres: servers.PostgreSQL === undefined ? undefined : () => freshSchema(servers.PostgreSQL),
  mariadb: servers.MariaDB === undefined ? undefined : () => freshDatabase(servers.MariaDB),
  sqlite: openFile() === undefined ? undefined : freshFile,
}

const newName = () => `golden_${randomBytes(6).toString('hex')}`

async function freshSchema(url = ''): Promise<Fresh> {
  const schema = newName()
  const run = async (text: string) => {
    const pool = new Pool({ connectionString: url, max: 1 })
    await pool.query(text)
    await pool.end()
  }
  await run(`CREATE SCHEMA ${schema}`)
  const address = { kind: 'postgres', at: url, schema } as const
  return { address, drop: () => run(`DROP SCHEMA ${schema} CASCADE`) }
}

async function freshDatabase(url = ''): Promise<Fresh> {
  const name = newName()
  const run = async (text: string) => {
    const pool = createPool({ uri: mysqlUrl(url), connectionLimit: 1 }).promise()
    await pool.query(text)
    await pool.end()
  }
  await run(`CREATE DATABASE ${name}`)
  const at = new URL(`/${name}`, mysqlUrl(url)).href
  return { address: { kind: 'mariadb', at }, drop: () => run(`DROP DATABASE ${name}`) }
}

async function freshFile(): Promise<Fresh> {
  const directory = mkdtempSync(join(tmpdir(), 'open-payments-golden-'))
  const drop = async () => rmSync(directory, { recursive: true, force: true })
  return { address: { kind: 'sqlite', at: join(directory, 'records.db') }, drop }
}

function openFile() {
  return sqliteDrivers['node:sqlite'] ?? sqliteDrivers['better-sqlite3']
}

export function connect({ kind, at, schema }: Address): Connection {
  if (kind === 'postgres') return connectPostgres(at, schema)
  return kind === 'mariadb' ? connectMariadb(at) : connectSqlite(at)
}

function connectPostgres(connectionString: string, schema = 'public'): Connection {
  const pool = new Pool({ connectionString, options: `-c search_path=${schema}` })
  const run = async (text: string) => (await pool.query(text)).rows as Row[]
  return {
    store: postgresStore(pool),
    migrate: () => migratePostgres(pool, { reports: true }),
    run,
    async schema() {
      const rows = await run(postgresSchema)
      const statements = rows.map(({ statement }) => String(statement))
      const unqualified = statements.map((text) => text.replaceAll(`${schema}.`, ''))
      return [...unqualified, ...(await versionsIn(run, postgresVersions))]
    },
    close: () => pool.end(),
  }
}

const postgresVersions = ['open_payments_migrations', 'open_payments_report_migrations']

/**
 * The statements that create all that `migrate` can create in a schema: tables with their indexes, views and functions.
 */
const postgresSchema = `
  WITH own AS (SELECT oid AS space FROM pg_namespace WHERE nspname = current_schema()),
  columns AS (
    SELECT attrelid, string_agg(
      format('  %I %s', attname, format_type(atttypid, atttypmod))
        || coalesce(' COLLATE ' || quote_ident((
          SELECT collname FROM pg_collation WHERE pg_collation.oid = attcollation AND collname <> 'default')), '')
        || CASE WHEN attgenerated = 's' THEN format(' GENERATED ALWAYS AS (%s) STORED', pg_get_expr(adbin, adrelid))
          ELSE coalesce(' DEFAULT ' || pg_get_expr(adbin, adrelid), '') END
        || CASE WHEN attnotnull THEN ' NOT NULL' ELSE '' END,
      E',\\n' ORDER BY attnum) AS list
    FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
    WHERE attnum > 0 AND NOT attisdropped GROUP BY attrelid
  )
  SELECT statement FROM (
    SELECT 1 AS part, relname::text AS name, format(E'CREATE TABLE %I (\\n%s\\n)%s', relname, list,
      coalesce(' WITH (' || array_to_string(reloptions, ', ') || ')', '')) AS statement
    FROM pg_class JOIN own ON relnamespace = space JOIN columns ON attrelid = pg_class.oid WHERE relkind = 'r'
    UNION ALL
    SELECT 2, conname, format('ALTER TABLE %I ADD CONSTRAINT %I %s', relname, conname, pg_get_constraintdef(pg_constraint.oid))
    FROM pg_constraint JOIN own ON connamespace = space JOIN pg_class ON pg_class.oid = conrelid WHERE contype <> 'n'
    UNION ALL
    SELECT 3, relname, pg_get_indexdef(indexrelid)
    FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid JOIN own ON relnamespace = space
    WHERE NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid)
    UNION ALL
    SELECT 4, relname, format(E'CREATE VIEW %I%s AS\\n%s', relname,
      coalesce(' WITH (' || array_to_string(reloptions, ', ') || ')', ''), rtrim(pg_get_viewdef(pg_class.oid), ';'))
    FROM pg_class JOIN own ON relnamespace = space WHERE relkind = 'v'
    UNION ALL
    SELECT 5, proname, rtrim(pg_get_functiondef(pg_proc.oid)) FROM pg_proc JOIN own ON pronamespace = space
  ) AS statements ORDER BY part, name`

function connectMariadb(uri: string): Connection {
  const db = new Kysely<unknown>({ dialect: new MysqlDialect({ pool: createPool({ uri }) }) })
  const dialect = 'mysql'
  const run = async (text: string) => (await db.executeQuery<Row>(CompiledQuery.raw(text))).rows
  return {
    store: kyselyStore(db, { dialect }),
    migrate: () => migrateKysely(db, { dialect }),
    run,
    async schema() {
      const tables = (await run('SHOW TABLES')).map((row) => String(Object.values(row)[0]))
      const created = tables.map(async (table) => {
        return String((await run(`SHOW CREATE TABLE ${table}`))[0]?.['Create Table'])
      })
      return [...(await Promise.all(created)), ...(await versionsIn(run))]
    },
    close: () => db.destroy(),
  }
}

function connectSqlite(file: string): Connection {
  const database = openFile()?.(file)
  if (database === undefined) throw new Error('this Node has no driver of SQLite')
  const run = async (text: string) => {
    if (!text.startsWith('SELECT')) return database.exec(text) as never
    return database.prepare(text).all() as Row[]
  }
  return {
    store: sqliteStore(database),
    migrate: () => migrateSqlite(database),
    run,
    async schema() {
      const found = await run(
        'SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type DESC, name',
      )
      return [...found.map(({ sql }) => String(sql)), ...(await versionsIn(run))]
    },
    close: async () => database.close(),
  }
}

async function versionsIn(run: Connection['run'], tables = ['open_payments_migrations']) {
  const inserts = tables.map(async (table) => {
    const rows = await run(`SELECT version, name FROM ${table} ORDER BY version`)
    return rows.map(
      ({ version, name }) => `INSERT INTO ${table} (version, name) VALUES (${version}, '${name}')`,
    )
  })
  return (await Promise.all(inserts)).flat()
}
