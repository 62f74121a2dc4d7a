import { requireKnownOptions } from '../../src/entry-adapter.js'
import { reportMigrationsTable } from '../sql/reports.js'
import {
  isBusy,
  sqliteBegin,
  sqliteLog,
  sqliteMigrations,
  sqliteReportMigrations,
  sqliteVersionsTable,
} from '../sql/sqlite.js'
import { migrationsTable } from '../sql/statements.js'
import { DatabaseSettingsError, type Migrated, type Migration, missing } from '../sql/versions.js'
import { type Session, type SqliteDatabase, sessionOn } from './driver.js'

/** Whether the views are created, too. */
export interface SqliteMigrateOptions {
  /**
   * Whether to create the views of payments too, with their indexes. Each new payment then writes two or three more
   * index entries. Default false, which keeps existing views.
   */
  readonly reports?: boolean
}

/**
 * Brings the tables up to date, with `reports` also the views of payments, and sets `journal_mode` to WAL, which the
 * file keeps. Several processes may call it concurrently. If there is nothing to do, it only reads.
 *
 * @throws {DatabaseNewerError} if a later version of the library created the tables.
 * @throws {DatabaseSettingsError} if the connection returns rows as arrays, or is of an unknown driver.
 * @throws {InvalidInputError} for an unknown option.
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
export async function migrate(
  database: SqliteDatabase,
  options: SqliteMigrateOptions = {},
): Promise<Migrated> {
  requireKnownOptions('', options, { reports: true })
  const tables: Steps[] = [{ versions: migrationsTable, migrations: sqliteMigrations() }]
  if (options.reports === true) {
    tables.push({ versions: reportMigrationsTable, migrations: sqliteReportMigrations() })
  }
  const session = sessionOn(database)
  return session.run(() => {
    requireSupportedDriver(session, database)
    session.exec(sqliteLog)
    if (tables.every((steps) => missingIn(session, steps).length === 0)) return { applied: [] }
    session.exec(sqliteBegin)
    try {
      const applied = tables.flatMap((steps) => migrateIn(session, steps))
      session.exec('COMMIT')
      return { applied }
    } catch (error) {
      session.exec('ROLLBACK')
      throw error
    }
  })
}

interface Steps {
  readonly versions: string
  readonly migrations: readonly Migration[]
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

function migrateIn(session: Session, steps: Steps): readonly string[] {
  const { versions } = steps
  session.exec(sqliteVersionsTable(versions))
  const applied = missingIn(session, steps)
  for (const { version, name, statements } of applied) {
    for (const text of statements) session.exec(text)
    const text = `INSERT INTO ${versions} (version, name) VALUES (?, ?) RETURNING 1`
    session.rows({ text, values: [version, name] })
  }
  return applied.map(({ name }) => name)
}

function missingIn(session: Session, { versions, migrations }: Steps): Migration[] {
  const exists = `SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?`
  if (session.rows({ text: exists, values: [versions] }).length === 0) return [...migrations]
  const rows = session.rows({ text: `SELECT version AS value FROM ${versions}`, values: [] })
  const done = rows.map(({ value }) => Number(value))
  return missing(migrations, done)
}
