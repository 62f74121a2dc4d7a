import { CompiledQuery, Kysely, MysqlDialect } from 'kysely'
import {
  createPool,
  type PoolConnection,
  type Query,
  type QueryError,
  type QueryOptions,
} from 'mysql2'
import { kyselyStore, migrate } from 'open-payments-server-kysely'
import type { Database, OpenOptions, Row, Sql } from './sql.js'

const dialect = 'mysql'

const timeouts = {
  idle_transaction_timeout: 5, // the server ends the transaction of a process that was stopped
  max_statement_time: 1.5,
}

// #region mysql2
/** Below the time for the store (3 s). A server that is frozen ends no statement. */
const timeout = 2_000

/** Closes a connection without an answer in time: mysql2 itself closes none. */
function closeUnanswered(connection: PoolConnection): void {
  const query = connection.query.bind(connection) as unknown as TimedQuery
  const timed = (sql: string, values: QueryOptions['values'], done?: Answered) =>
    query({ sql, values, timeout }, (error, rows, fields) => {
      if (error?.code === 'PROTOCOL_SEQUENCE_TIMEOUT') connection.destroy()
      done?.(error, rows, fields)
    })
  connection.query = timed as typeof connection.query
}

type Answered = (error: QueryError | null, rows: never, fields: never) => void
type TimedQuery = (options: QueryOptions, done: Answered) => Query
// #endregion mysql2

/** Opens MariaDB at a URL, through Kysely. Any number of processes may use it. */
export function openDatabase(uri: string, { migrates = false }: OpenOptions = {}): Database {
  const variables = { innodb_lock_wait_timeout: 1, ...(!migrates && timeouts) }
  const assignments = Object.entries(variables).map(([name, seconds]) => `${name} = ${seconds}`)
  const pool = createPool({
    uri,
    connectTimeout: 2_000,
    // Numbers of JavaScript cannot represent all integers of a BIGINT column.
    supportBigNumbers: true,
    bigNumberStrings: true,
  })
  pool.on('connection', (connection) => {
    if (!migrates) closeUnanswered(connection)
    connection.query(`SET SESSION ${assignments.join(', ')}`)
  })
  const db = new Kysely<unknown>({ dialect: new MysqlDialect({ pool }) })
  return {
    store: kyselyStore(db, { dialect }),
    sql: sqlOn(db),
    // By default, MariaDB ignores case, accents, and spaces at the end: /ALICE would be the account /alice.
    tableOptions: 'CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin',
    migrateRecords: () => migrate(db, { dialect }),
    async transaction(work) {
      const { result } = await kyselyStore.transaction(
        db,
        async (trx, store) => ({ ok: true, result: await work(sqlOn(trx), store) }),
        { dialect },
      )
      return result
    },
    close: () => db.destroy(),
  }
}

function sqlOn(db: Kysely<unknown>): Sql {
  return async (statement, ...values) =>
    (await db.executeQuery<Row>(CompiledQuery.raw(statement, [...values]))).rows ?? []
}
