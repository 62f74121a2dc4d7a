import { causesOf } from './causes.js'
import { columns, listNumbers, requiredColumns, typeOf } from './records.js'
import { type ReportDialect, reportLists, reportMigrations } from './reports.js'
import {
  atVersion,
  createStatements,
  type Dialect,
  listIndex,
  recordsTable,
  type Statements,
} from './statements.js'
import { createMark } from './transactions.js'
import type { Migration } from './versions.js'

const dialect: Dialect = {
  // The transaction has the only write lock, so that the record stays as it is read.
  hold: (condition) => `SELECT 1 FROM ${recordsTable} WHERE ${atVersion} ${condition}`,
  unlessExists: 'ON CONFLICT DO NOTHING',
  returning: 'RETURNING 1',
  usingIndex: () => '',
}

export const sqliteStatements = createStatements(dialect)

const marksTable = 'temp.open_payments_marks'

/**
 * Marks the transaction, and returns statements that find and write nothing without the mark, which ROLLBACK removes.
 * The table belongs to the connection.
 */
export async function sqliteMarked(run: (text: string) => Promise<unknown>): Promise<Statements> {
  const mark = createMark()
  await run(`CREATE TABLE IF NOT EXISTS ${marksTable} (mark TEXT)`)
  // COMMIT keeps the mark.
  await run(`DELETE FROM ${marksTable} WHERE rowid <= (SELECT max(rowid) FROM ${marksTable}) - 100`)
  await run(`INSERT INTO ${marksTable} VALUES ('${mark}')`)
  return createStatements(
    dialect,
    `AND EXISTS (SELECT 1 FROM ${marksTable} WHERE mark = '${mark}')`,
  )
}

/** As JSON, lone surrogates stay distinct, and no name contains U+0000. */
export function sqliteListName(list: string): string {
  return JSON.stringify(list)
}

/**
 * Returns whether an error, or one of its causes, means that another connection holds the lock. The drivers report it
 * differently: `better-sqlite3` by the name of the code, `node:sqlite` by its number.
 */
export function isBusy(error: unknown): boolean {
  return causesOf(error).some(saysBusy)
}

function saysBusy(error: Error): boolean {
  const { code, errcode } = error as { readonly code?: unknown; readonly errcode?: unknown }
  if (typeof code === 'string' && /^SQLITE_(?:BUSY|LOCKED)/.test(code)) return true
  // An extended code has the primary one in its lowest byte.
  return typeof errcode === 'number' && [busy, locked].includes(errcode & 0xff)
}

/** Only the text of the driver's error shows that a table does not exist. */
export function isWithoutTables(error: unknown): boolean {
  return error instanceof Error && error.message.includes(`no such table: ${recordsTable}`)
}

const busy = 5
const locked = 6

export const sqliteBegin = 'BEGIN IMMEDIATE'
/** In a database with a write-ahead log, a lower level loses acknowledged commits when the power fails. */
export const sqliteDurable = 'PRAGMA synchronous = FULL'
/** Lets readers and a writer work at the same time. The file keeps the setting. */
export const sqliteLog = 'PRAGMA journal_mode = WAL'

export function sqliteVersionsTable(name: string): string {
  return `CREATE TABLE IF NOT EXISTS ${name} (version INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT`
}

/**
 * Returns the steps of `migrate`, for a migration tool of your own.
 *
 * @example
 * ```ts
 * import { migrationsOf } from 'open-payments-server/sqlite'
 *
 * for (const { version, name, statements } of migrationsOf()) {
 *   console.log(`-- ${version} ${name}\n${statements.join(';\n')};`) // for your own tool
 * }
 * ```
 */
export function sqliteMigrations(): readonly Migration[] {
  return [{ version: 1, name: 'records', statements: recordsStatements() }]
}

function recordsStatements(): string[] {
  const definitions = columns.map((column) => {
    const type = typeOf(column) === 'bigint' ? 'INTEGER' : 'TEXT'
    return `  ${column} ${type}${requiredColumns.includes(column) ? ' NOT NULL' : ''},`
  })
  return [
    `CREATE TABLE IF NOT EXISTS ${recordsTable} (
${definitions.join('\n')}
  namespace TEXT GENERATED ALWAYS AS (substr(id, 1, 8)) VIRTUAL,
  PRIMARY KEY (kind, id)
) STRICT`,
    `CREATE INDEX IF NOT EXISTS ${recordsTable}_due
  ON ${recordsTable} (kind, namespace, due_at, id) WHERE due_at IS NOT NULL`,
    ...listNumbers.map(
      (n) => `CREATE INDEX IF NOT EXISTS ${listIndex(n)}
  ON ${recordsTable} (kind, list_${n}, list_${n}_at, id) WHERE list_${n} IS NOT NULL`,
    ),
  ]
}

const kinds = ['incoming', 'outgoing'] as const

const reportDialect: ReportDialect = {
  read: (path) => `json_extract(value, '${path}')`,
  integer: (value) => value,
  isTrue: (value) => `${value} = 1`,
  paymentId: 'substr(id, 9)',
  // SQLite finds an expression by an index of the same expression.
  columns: (values) => values,
  indexes: ({ createdAt, paymentId, ...values }) =>
    kinds.flatMap((kind) =>
      reportLists
        .filter(({ name }) => kind === 'outgoing' || name !== 'receiver')
        .map(({ name, by }) => {
          // The primary key begins with the kind, too, and would be taken for a list of all payments.
          const columns = ['kind', ...by.map((each) => values[each]), createdAt, paymentId]
          return `CREATE INDEX IF NOT EXISTS open_payments_report_${kind}_${name}
  ON ${recordsTable} (${columns.join(', ')}) WHERE kind = '${kind}-payment'`
        }),
    ),
  createView: 'CREATE VIEW IF NOT EXISTS',
}

/**
 * Returns the steps of the views of payments, which `migrate` applies with `reports: true`, for a migration tool of
 * your own.
 *
 * @example
 * ```ts
 * import { reportMigrationsOf } from 'open-payments-server/sqlite'
 *
 * const [reports] = reportMigrationsOf()
 * console.log(reports?.statements.join(';\n')) // the views and their indexes
 * ```
 */
export function sqliteReportMigrations(): readonly Migration[] {
  return reportMigrations(reportDialect)
}
