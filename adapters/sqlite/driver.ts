import { InvalidInputError } from '../../src/index.js'
import type { Row } from '../sql/records.js'
import { isBusy, isWithoutTables, sqliteDurable } from '../sql/sqlite.js'
import type { SqlStatement } from '../sql/statements.js'
import { retried } from '../sql/transactions.js'
import { TablesMissingError } from '../sql/versions.js'

/**
 * The part of a connection that the library uses: a `Database` of `better-sqlite3` and a `DatabaseSync` of
 * `node:sqlite` have it.
 */
export interface SqliteDatabase {
  exec(sql: string): unknown
  prepare(sql: string): SqliteStatement
}

/** The part of a prepared statement that the store uses. */
export interface SqliteStatement {
  // biome-ignore lint/suspicious/noExplicitAny: drivers declare their parameters differently
  all(...values: any[]): unknown[]
}

/** A connection that the stores over it share. */
export interface Session {
  exec(sql: string): void
  /** Sets `synchronous` unless it was set. Throws while another connection holds the lock. */
  makeDurable(): void
  rows(statement: SqlStatement): readonly Row[]
  /**
   * Runs work that does not wait, while no transaction of the host is open on the connection. Repeats it for up to
   * 3 s while another connection holds the lock.
   */
  run<Result>(work: () => Result): Promise<Result>
  /** Keeps all other work waiting until a transaction of the host has ended. */
  alone<Result>(work: () => Promise<Result>): Promise<Result>
}

const sessions = new WeakMap<SqliteDatabase, Session>()

export function sessionOn(database: SqliteDatabase): Session {
  if (typeof database?.prepare !== 'function') {
    const problem = 'must be a Database of better-sqlite3 or a DatabaseSync of node:sqlite'
    throw new InvalidInputError('database', problem)
  }
  const known = sessions.get(database) ?? createSession(database)
  sessions.set(database, known)
  return known
}

function createSession(database: SqliteDatabase): Session {
  let isDurable = false
  function makeDurable(): void {
    if (!isDurable) database.exec(sqliteDurable)
    isDurable = true
  }
  try {
    makeDurable()
  } catch (error) {
    // Another connection holds the lock, such as one that starts, too: the first operation repeats this.
    if (!isBusy(error)) throw error
  }
  const prepared = new Map<string, SqliteStatement>()
  let occupied: Promise<unknown> | undefined

  function rows({ text, values }: SqlStatement): readonly Row[] {
    const statement = prepared.get(text) ?? preparedOn(database, text)
    prepared.set(text, statement)
    // A driver may write a number as a floating-point number.
    const bound = values.map((value) => (typeof value === 'number' ? BigInt(value) : value))
    return statement.all(...bound) as readonly Row[]
  }

  async function whenFree<Result>(work: () => Result): Promise<Result> {
    while (occupied !== undefined) await occupied
    return work()
  }

  return {
    exec: (sql) => void database.exec(sql),
    makeDurable,
    rows,
    run(work) {
      const durably = () => {
        makeDurable()
        return work()
      }
      return retried(() => whenFree(durably), isBusy)
    },
    async alone(work) {
      const { working } = await whenFree(() => {
        const working = work()
        occupied = working.catch(() => undefined)
        return { working }
      })
      try {
        return await working
      } finally {
        occupied = undefined
      }
    },
  }
}

function preparedOn(database: SqliteDatabase, text: string): SqliteStatement {
  try {
    return database.prepare(text)
  } catch (error) {
    if (!isWithoutTables(error)) throw error
    throw new TablesMissingError('open-payments-server/sqlite', 'migrate(database)', error)
  }
}
