import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { PGlite } from '@electric-sql/pglite'
import type { Store } from 'open-payments-server'
import {
  fromPglite,
  migrate,
  type PostgresDatabase,
  postgresStore,
} from 'open-payments-server/postgres'
import { Pool, type PoolConfig } from 'pg'

/** The servers that tests need, each with its URL, or absent. */
export const servers = {
  PostgreSQL: process.env['TEST_DATABASE_URL'],
  Redis: process.env['TEST_REDIS_URL'],
  MariaDB: process.env['TEST_MARIADB_URL'],
}

/** A database schema that belongs to one test. */
export interface FreshPostgres {
  readonly pool: Pool
  readonly schema: string
  /** Another connection pool on the same tables. */
  connect(config?: PoolConfig): Pool
  drop(): Promise<void>
}

/**
 * Creates a schema on the PostgreSQL server of `TEST_DATABASE_URL`, and migrates it unless stated otherwise.
 */
export async function freshPostgres(
  options: { readonly migrated?: boolean; readonly reports?: boolean } = {},
): Promise<FreshPostgres> {
  const connectionString = servers.PostgreSQL
  if (connectionString === undefined) throw new Error('TEST_DATABASE_URL is not set')
  const schema = `test_${randomBytes(6).toString('hex')}`
  const pools: Pool[] = []
  const connect = (config: PoolConfig = {}) => {
    const pool = new Pool({ connectionString, max: 10, ...config })
    // Without a listener, a connection that the server closes while it is idle would end the process.
    pool.on('error', () => undefined)
    pools.push(pool)
    return pool
  }
  const pool = connect()
  await pool.query(`CREATE SCHEMA ${schema}`)
  const { migrated = true, reports = false } = options
  if (migrated) await migrate(pool, { schema, reports })
  return {
    pool,
    schema,
    connect,
    async drop() {
      await pool.query(`DROP SCHEMA ${schema} CASCADE`)
      await Promise.all(pools.map((each) => each.end()))
    },
  }
}

/** Opens stores on PostgreSQL, each in a schema of its own, until `drop` removes them. */
export function freshStores() {
  const schemas: FreshPostgres[] = []
  return {
    async open(): Promise<Store> {
      const fresh = await freshPostgres()
      schemas.push(fresh)
      return postgresStore(fresh.pool, { schema: fresh.schema })
    },
    drop: () => Promise.all(schemas.splice(0).map((schema) => schema.drop())),
  }
}

const root = join(import.meta.dirname, '../..')
const { devDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
const version = devDependencies['@electric-sql/pglite']
const clusterFile = join(root, `node_modules/.cache/pglite-${version}.tar`)

/**
 * An embedded PostgreSQL in memory, without tables. It starts as a copy of a cluster that the first run of the tests
 * writes to disk: to create a cluster takes five times as much CPU time.
 */
export async function emptyPglite(): Promise<PGlite> {
  if (!existsSync(clusterFile)) {
    const lite = await PGlite.create()
    const dump = await lite.dumpDataDir('none')
    await lite.close()
    mkdirSync(dirname(clusterFile), { recursive: true })
    // Other workers may read the file at any time.
    writeFileSync(`${clusterFile}.${process.pid}`, Buffer.from(await dump.arrayBuffer()))
    renameSync(`${clusterFile}.${process.pid}`, clusterFile)
  }
  const loadDataDir = new Blob([readFileSync(clusterFile)], { type: 'application/x-tar' })
  return PGlite.create({ loadDataDir })
}

/** An embedded PostgreSQL in memory, migrated. It runs one statement at a time and therefore hides races. */
export async function freshPglite({
  reports = false,
} = {}): Promise<PostgresDatabase & { close(): Promise<void> }> {
  const lite = await emptyPglite()
  const database = fromPglite(lite)
  await migrate(database, { reports })
  return { ...database, close: () => lite.close() }
}

/** The tables of the server if there is one, otherwise of an embedded PostgreSQL. */
export async function anyPostgres({ reports = false } = {}) {
  if (servers.PostgreSQL === undefined) {
    const { close, ...client } = await freshPglite({ reports })
    return { client, prefix: '', options: {}, close }
  }
  const { pool, schema, drop } = await freshPostgres({ reports })
  return { client: pool, prefix: `${schema}.`, options: { schema }, close: drop }
}
