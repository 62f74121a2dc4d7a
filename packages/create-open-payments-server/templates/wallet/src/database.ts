import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import { migrate, sqliteStore } from 'open-payments-server/sqlite'
import type { Database, OpenOptions, Row, Sql } from './sql.js'

/** Opens a file of SQLite on a local disk. Several processes on one machine may use it. */
export function openDatabase(file: string, _options: OpenOptions = {}): Database {
  const connection = new DatabaseSync(file)
  // The driver blocks the process while it waits for a lock. The store repeats operations without blocking.
  connection.exec('PRAGMA busy_timeout = 100')
  const store = sqliteStore(connection)
  const sql: Sql = async (statement, ...values: readonly SQLInputValue[]) => {
    const prepared = connection.prepare(statement)
    prepared.setReadBigInts(true)
    return prepared.all(...values) as Row[]
  }
  return {
    store,
    sql,
    tableOptions: '',
    migrateRecords: () => migrate(connection),
    // Other work on this connection waits until the transaction ends: never wait for a client inside of one.
    async transaction(work) {
      const { result } = await store.transaction(async (inside) => {
        return { ok: true, result: await work(sql, inside) }
      })
      return result
    },
    close: async () => connection.close(),
  }
}
