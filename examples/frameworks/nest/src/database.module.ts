// #region nest-database
import { Logger, Module, type OnApplicationShutdown } from '@nestjs/common'
import { checkTables, migrate } from 'open-payments-server/postgres'
import { Pool } from 'pg'
import { tables } from './tables.js'

const logger = new Logger('Database')

/** Opens the database, with the tables of the library and your own. */
async function openPool() {
  const pool = new Pool({
    connectionString: process.env['DATABASE_URL'],
    connectionTimeoutMillis: 2_000,
    query_timeout: 2_000,
    statement_timeout: 1_500,
    idle_in_transaction_session_timeout: 5_000,
  })
  // Without both listeners, a connection that the server ends would end the process.
  pool.on('error', (error) => logger.warn(error.message))
  pool.on('connect', (client) => client.on('error', () => undefined))
  if (process.env['NODE_ENV'] === 'production') {
    // A job of the deployment has migrated: an old version can start again.
    const check = await checkTables(pool)
    if (!check.ok) throw new Error(check.problem)
    return pool
  }
  await migrate(pool)
  await pool.query(tables)
  return pool
}

@Module({ providers: [{ provide: Pool, useFactory: openPool }], exports: [Pool] })
export class DatabaseModule implements OnApplicationShutdown {
  constructor(private readonly pool: Pool) {}

  /** After the last request. */
  async onApplicationShutdown() {
    await this.pool.end()
  }
}
// #endregion nest-database
