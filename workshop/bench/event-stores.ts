import { randomBytes } from 'node:crypto'
import { mkdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from '@redis/client'
import { Kysely, MysqlDialect, sql } from 'kysely'
import { createPool } from 'mysql2'
import type { Store } from 'open-payments-server'
import { migrate as migratePostgres, postgresStore } from 'open-payments-server/postgres'
import { migrate as migrateSqlite, sqliteStore } from 'open-payments-server/sqlite'
import { kyselyStore, migrate as migrateKysely } from 'open-payments-server-kysely'
import { Pool } from 'pg'
import { redisStore } from '../../examples/stores/redis.js'
import { sqliteDrivers } from '../../test/support/sqlite.js'
import { connectionString } from './database.js'

const mariadbUrl = process.env['TEST_MARIADB_URL']
const redisUrl = process.env['TEST_REDIS_URL']
const openSqlite = sqliteDrivers['better-sqlite3'] ?? sqliteDrivers['node:sqlite']

/** A store of one process. */
export interface OpenStore {
  readonly store: Store
  close(): Promise<unknown>
}

interface StoreKind {
  /** Whether this machine has it. */
  readonly isHere: boolean
  /** How many processes deliver events. */
  readonly processes: readonly number[]
  /** Opens the store at a place, whose name is a schema, a database, a prefix of keys, or a folder. */
  open(place: string): OpenStore | Promise<OpenStore>
  create(place: string): Promise<unknown>
  drop(place: string): Promise<unknown>
}

async function onPostgres(statement: string): Promise<void> {
  const pool = new Pool({ connectionString, max: 1 })
  await pool.query(statement)
  await pool.end()
}

function mariadb(database?: string): Kysely<unknown> {
  const url = new URL(mariadbUrl ?? '')
  if (database !== undefined) url.pathname = `/${database}`
  const pool = createPool({ uri: url.href, supportBigNumbers: true, bigNumberStrings: true })
  return new Kysely<unknown>({ dialect: new MysqlDialect({ pool }) })
}

async function onMariadb(statement: string): Promise<void> {
  const db = mariadb()
  await sql.raw(statement).execute(db)
  await db.destroy()
}

const folderAt = (name: string) => join(tmpdir(), name)

/** The stores whose outbox is measured. */
export const storeKinds = {
  PostgreSQL: {
    isHere: true,
    processes: [1, 2, 4, 8],
    async open(schema) {
      const pool = new Pool({ connectionString, max: 10 })
      await Promise.all(Array.from({ length: 4 }, () => pool.query('SELECT 1')))
      return { store: postgresStore(pool, { schema }), close: () => pool.end() }
    },
    async create(schema) {
      await onPostgres(`CREATE SCHEMA ${schema}`)
      const pool = new Pool({ connectionString, max: 1 })
      await migratePostgres(pool, { schema })
      await pool.end()
    },
    drop: (schema) => onPostgres(`DROP SCHEMA ${schema} CASCADE`),
  },
  'MariaDB by Kysely': {
    isHere: mariadbUrl !== undefined,
    processes: [1, 2, 4, 8],
    open(database) {
      const db = mariadb(database)
      return { store: kyselyStore(db, { dialect: 'mysql' }), close: () => db.destroy() }
    },
    async create(database) {
      await onMariadb(`CREATE DATABASE ${database}`)
      const db = mariadb(database)
      await migrateKysely(db, { dialect: 'mysql' })
      await db.destroy()
    },
    drop: (database) => onMariadb(`DROP DATABASE ${database}`),
  },
  'Redis by the recipe': {
    isHere: redisUrl !== undefined,
    processes: [1, 2, 4, 8],
    async open(prefix) {
      const client = createClient({ url: redisUrl ?? '' })
      await client.connect()
      return { store: redisStore(client as never, { prefix }), close: () => client.close() }
    },
    create: async () => undefined,
    async drop(prefix) {
      const client = createClient({ url: redisUrl ?? '' })
      await client.connect()
      await client.del([`{${prefix}}:records`, `{${prefix}}:places`])
      await client.close()
    },
  },
  SQLite: {
    isHere: openSqlite !== undefined,
    processes: [1],
    async open(folder) {
      const database = openSqlite?.(join(folderAt(folder), 'records.db'))
      if (database === undefined) throw new Error('this Node has no driver of SQLite')
      await migrateSqlite(database)
      return { store: sqliteStore(database), close: async () => database.close() }
    },
    create: async (folder) => mkdirSync(folderAt(folder)),
    drop: async (folder) => rmSync(folderAt(folder), { recursive: true }),
  },
} as const satisfies Readonly<Record<string, StoreKind>>

export type StoreName = keyof typeof storeKinds

/** Calls `work` with a place for stores of this kind, which is removed afterwards. */
export async function withPlace<Result>(
  name: StoreName,
  work: (place: string) => Promise<Result>,
): Promise<Result> {
  const kind: StoreKind = storeKinds[name]
  const place = `bench_${randomBytes(6).toString('hex')}`
  await kind.create(place)
  try {
    return await work(place)
  } finally {
    await kind.drop(place)
  }
}
