import {
  isBusy,
  sqliteBegin,
  sqliteLog,
  sqliteMigrations,
  sqliteVersionsTable,
} from '../sql/sqlite.js'
import { migrationsTable } from '../sql/statements.js'
import { DatabaseSettingsError, type Migrated, missing } from '../sql/versions.js'
import { type Session, type SqliteDatabase, sessionOn } from './driver.js'

/**
 * Brings the tables up to date, and sets `journal_mode` to WAL, which the file keeps. Several processes may call it
 * concurrently. If there is nothing to do, it only reads.
 *
 * @throws {DatabaseNewerError} if a later version of the library created the tables.
 * @throws {DatabaseSettingsError} if the connection returns rows as arrays, or is of an unknown driver.
 *
 * @example
 * ```ts
 * import Database from 'better-sqlite3'
 * import { migrate } from 'open-payments-server/sqlite'
 *
 * const { applied } = await migrate(new Database('wallet.db'))
 * console.log(applied)
 * ```
 */
export function migrate(database: SqliteDatabase): Promise<Migrated> {
  const session = sessionOn(database)
  return session.run(() => {
    requireSupportedDriver(session, database)
    session.exec(sqliteLog)
    if (missing(sqliteMigrations(), appliedVersions(session)).length === 0) return { applied: [] }
    session.exec(sqliteBegin)
    try {
      const applied = migrateIn(session)
      session.exec('COMMIT')
      return { applied }
    } catch (error) {
      session.exec('ROLLBACK')
      throw error
    }
  })
}

function requireSupportedDriver(session: Session, database: SqliteDatabase): void {
  const text = 'SELECT ? AS value'
  if (typeof database.prepare(text).all !== 'function') {
    throw new DatabaseSettingsError(`the statements of the connection have no \`all\`: ${drivers}`)
  }
  const [row] = rowsOf(() => session.rows({ text, values: ['bound'] }))
  if (row?.value === 'bound') return
  throw new DatabaseSettingsError(
    Array.isArray(row)
      ? 'the rows of the connection must be objects: open it without `returnArrays`'
      : `the connection does not bind each argument of \`all\` to a parameter: ${drivers}`,
  )
}

/** A driver that takes its values in another form may refuse them. */
function rowsOf(read: () => ReturnType<Session['rows']>): ReturnType<Session['rows']> {
  try {
    return read()
  } catch (error) {
    if (isBusy(error)) throw error
    return []
  }
}

const drivers = 'use better-sqlite3 or node:sqlite'

function migrateIn(session: Session): readonly string[] {
  session.exec(sqliteVersionsTable)
  const steps = missing(sqliteMigrations(), appliedVersions(session))
  for (const { version, name, statements } of steps) {
    for (const text of statements) session.exec(text)
    const text = `INSERT INTO ${migrationsTable} (version, name) VALUES (?, ?) RETURNING 1`
    session.rows({ text, values: [version, name] })
  }
  return steps.map(({ name }) => name)
}

function appliedVersions(session: Session): number[] {
  const exists = `SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?`
  if (session.rows({ text: exists, values: [migrationsTable] }).length === 0) return []
  const text = `SELECT version AS value FROM ${migrationsTable}`
  return session.rows({ text, values: [] }).map(({ value }) => Number(value))
}
