import { drizzle, type NodePgDatabase } from 'drizzle-orm/node-postgres'
import { Pool } from 'pg'

/** Opens the database that the library, the ledger and the readiness probe share. */
export function openDatabase(connectionString = process.env['DATABASE_URL']): {
  readonly pool: Pool
  readonly db: NodePgDatabase
} {
  const pool = new Pool({
    connectionString,
    connectionTimeoutMillis: 2_000,
    query_timeout: 2_000,
    statement_timeout: 1_500,
    idle_in_transaction_session_timeout: 5_000,
  })
  // Without both listeners, a connection that the server ends would end the process.
  pool.on('error', (error) => console.warn(error.message))
  pool.on('connect', (client) => client.on('error', () => undefined))
  return { pool, db: drizzle({ client: pool }) }
}
