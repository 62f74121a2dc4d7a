// #region pool
import { Pool } from 'pg'

/** Opens a pool for the store and for your own transactions. */
export function openPool(connectionString = process.env['DATABASE_URL']): Pool {
  const pool = new Pool({
    connectionString,
    max: 10, // of all pools and processes together: below max_connections
    connectionTimeoutMillis: 2_000,
    query_timeout: 2_000, // the driver closes a connection that does not respond
    statement_timeout: 1_500, // the server ends a statement that waits for a lock
    idle_in_transaction_session_timeout: 5_000, // of a hanging process
    keepAlive: true,
  })
  // Without both listeners, a connection that the server ends would end the process.
  pool.on('error', (error) => console.warn(error.message))
  pool.on('connect', (client) => client.on('error', () => undefined))
  return pool
}
// #endregion pool
