import { checkTables, migrate, postgresStore } from 'open-payments-server/postgres'
import { Pool, type PoolClient } from 'pg'
import type { Database, OpenOptions, Sql } from './sql.js'

const timeouts = {
  query_timeout: 2_000, // the driver closes a connection that does not respond
  statement_timeout: 1_500, // the server ends a statement that waits for a lock
  idle_in_transaction_session_timeout: 5_000, // and the transaction of a process that was stopped
}

/** Opens PostgreSQL at a URL. Any number of processes may use it. */
export function openDatabase(
  connectionString: string,
  { migrates = false }: OpenOptions = {},
): Database {
  const pool = new Pool({
    connectionString,
    max: 10, // of all processes together: below max_connections
    connectionTimeoutMillis: 2_000,
    keepAlive: true,
    ...(!migrates && timeouts),
  })
  // Without both listeners, a connection that the server ends would end the process.
  pool.on('error', (error) => console.error(`PostgreSQL: ${error.message}`))
  pool.on('connect', (client) => client.on('error', () => undefined))
  return databaseOn(pool)
}

/** Returns the database of a wallet on a pool. */
export function databaseOn(pool: Pool): Database {
  return {
    store: postgresStore(pool),
    sql: sqlOn(pool),
    tableOptions: '',
    migrateRecords: () => migrate(pool),
    async checkRecords() {
      const check = await checkTables(pool)
      return check.ok ? undefined : check.problem
    },
    async transaction(work) {
      const { result } = await postgresStore.transaction(
        pool,
        async (client: PoolClient, store) => {
          return { ok: true, result: await work(sqlOn(client), store) }
        },
      )
      return result
    },
    close: () => pool.end(),
  }
}

function sqlOn(client: Pool | PoolClient): Sql {
  return async (statement, ...values) => {
    let count = 0
    const numbered = statement.replace(/\?/g, () => `$${++count}`)
    return (await client.query(numbered, [...values])).rows
  }
}
