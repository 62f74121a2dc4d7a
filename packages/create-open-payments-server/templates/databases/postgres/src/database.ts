import { migrate, postgresStore } from 'open-payments-server/postgres'
import { Pool, type PoolClient } from 'pg'
import type { Database, Sql } from './sql.js'

/** Opens PostgreSQL at a URL. Any number of processes may use it. */
export function openDatabase(connectionString: string): Database {
  const pool = new Pool({
    connectionString,
    // Without both time-outs, a database that is frozen holds every request.
    connectionTimeoutMillis: 5_000,
    query_timeout: 8_000,
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
