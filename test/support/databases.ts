import { randomBytes } from 'node:crypto'
import { PGlite } from '@electric-sql/pglite'
import { Pool, type PoolConfig } from 'pg'
import { fromPglite, migrate, type PostgresDatabase } from '../../adapters/postgres.js'

/** The servers that tests with real ones need, each given by a URL, or absent. */
export const servers = {
  PostgreSQL: process.env['TEST_DATABASE_URL'],
  Redis: process.env['TEST_REDIS_URL'],
  MariaDB: process.env['TEST_MARIADB_URL'],
}

/** Tables of a test's own. */
export interface FreshPostgres {
  readonly pool: Pool
  readonly schema: string
  /** Another pool on the same tables. */
  connect(config?: PoolConfig): Pool
  drop(): Promise<void>
}

/** Makes a schema of its own on the PostgreSQL server of `TEST_DATABASE_URL`, migrated unless told otherwise. */
export async function freshPostgres(
  options: { readonly migrated?: boolean } = {},
): Promise<FreshPostgres> {
  const connectionString = servers.PostgreSQL
  if (connectionString === undefined) throw new Error('TEST_DATABASE_URL is not set')
  const schema = `test_${randomBytes(6).toString('hex')}`
  const pools: Pool[] = []
  const connect = (config: PoolConfig = {}) => {
    const pool = new Pool({ connectionString, max: 10, ...config })
    // A connection that the server ends while it is idle would otherwise end the process.
    pool.on('error', () => undefined)
    pools.push(pool)
    return pool
  }
  const pool = connect()
  await pool.query(`CREATE SCHEMA ${schema}`)
  if (options.migrated !== false) await migrate(pool, { schema })
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

/** An embedded PostgreSQL in memory, migrated. It runs one statement after the other and so hides races. */
export async function freshPglite(): Promise<PostgresDatabase & { close(): Promise<void> }> {
  const lite = await PGlite.create()
  const database = fromPglite(lite)
  await migrate(database)
  return { ...database, close: () => lite.close() }
}
