import { CompiledQuery, Kysely, MysqlDialect } from 'kysely'
import { createPool } from 'mysql2'
import type { Store } from 'open-payments-server'
import { kyselyStore, migrate } from 'open-payments-server-kysely'
import type { Database, Row, Sql } from './sql.js'

const dialect = 'mysql'
const attemptsMax = 5

/** Opens MariaDB at a URL, through Kysely. Any number of processes may use it. */
export function openDatabase(uri: string): Database {
  const pool = createPool({
    uri,
    connectTimeout: 5_000,
    // Numbers of JavaScript cannot represent all integers of a BIGINT column.
    supportBigNumbers: true,
    bigNumberStrings: true,
  })
  pool.on('connection', (connection) => {
    connection.query('SET SESSION innodb_lock_wait_timeout = 1')
  })
  const db = new Kysely<unknown>({ dialect: new MysqlDialect({ pool }) })
  return {
    store: kyselyStore(db, { dialect }),
    sql: sqlOn(db),
    // By default, MariaDB ignores case, accents, and spaces at the end: /ALICE would be the account /alice.
    tableOptions: 'CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin',
    migrateRecords: () => migrate(db, { dialect }),
    transaction: (work) => transaction(db, work),
    close: () => db.destroy(),
  }
}

function sqlOn(db: Kysely<unknown>): Sql {
  return async (statement, ...values) =>
    (await db.executeQuery<Row>(CompiledQuery.raw(statement, [...values]))).rows ?? []
}

async function transaction<Result>(
  db: Kysely<unknown>,
  work: (sql: Sql, store: Store) => Promise<Result>,
): Promise<Result> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await db
        .transaction()
        .setIsolationLevel('read committed')
        .execute((trx) => work(sqlOn(trx), kyselyStore.inTransaction(trx, { dialect })))
    } catch (error) {
      if (attempt === attemptsMax || !mayRestart(error)) throw error
    }
  }
}

/** After a deadlock or a lock that was not free in time, nothing was written. */
function mayRestart(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? `${error.code}` : ''
  return ['ER_LOCK_DEADLOCK', 'ER_LOCK_WAIT_TIMEOUT', 'ERR_RESTART_TRANSACTION'].includes(code)
}
