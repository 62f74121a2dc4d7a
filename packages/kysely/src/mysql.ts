import { causesOf } from '../../../adapters/sql/causes.js'
import { columns, listNumbers, requiredColumns, typeOf } from '../../../adapters/sql/records.js'
import { type ReportDialect, reportLists, reportMigrations } from '../../../adapters/sql/reports.js'
import {
  atVersion,
  createStatements,
  type Dialect,
  listIndex,
  recordsTable,
} from '../../../adapters/sql/statements.js'
import type { Migration } from '../../../adapters/sql/versions.js'

const dialect: Dialect = {
  // A node of a Galera cluster replicates the rows that a transaction changes, not those that it locks.
  hold: (condition) =>
    `UPDATE ${recordsTable} SET guarded = 1 - guarded WHERE ${atVersion} ${condition}`,
  unlessExists: '',
  returning: '',
  usingIndex: (name) => `FORCE INDEX (${name})`,
}

export const mysqlStatements = createStatements(dialect)

/** MariaDB finds and writes nothing outside of a transaction. MySQL has no such variable, and reads a comment. */
export const mysqlStatementsInside = createStatements(dialect, '/*M! AND @@in_transaction = 1 */')

const noSuchTable = 1146
const duplicateKey = 1062
const lockWaitTimeout = 1205
const deadlock = 1213
/** Conflicts of writes in TiDB, which has rolled the transaction back. */
const tidbConflicts = [8002, 8005, 8022, 9007]
const conflicts = [deadlock, lockWaitTimeout, ...tidbConflicts]

export function isDuplicate(error: unknown): boolean {
  return numberOf(error) === duplicateKey
}

export function isWithoutTables(error: unknown): boolean {
  return numberOf(error) === noSuchTable
}

/**
 * Returns whether an error, or one of its causes, is a deadlock, a lock wait timeout, or a conflict in a Galera
 * cluster or in TiDB.
 */
export function isMysqlConflict(error: unknown): boolean {
  return causesOf(error).some((each) => conflicts.includes(numberOf(each) ?? 0))
}

function numberOf(error: unknown): number | undefined {
  return error instanceof Error ? (error as { readonly errno?: number }).errno : undefined
}

/** Creates a table of the versions that were applied. */
export function mysqlVersionsTable(name: string): string {
  return `CREATE TABLE IF NOT EXISTS ${name} (
  version INTEGER PRIMARY KEY,
  name VARCHAR(64) NOT NULL
) ENGINE = InnoDB`
}

export function mysqlMigrations(): readonly Migration[] {
  return [{ version: 1, name: 'records', statements: [recordsStatement()] }]
}

/** Binary strings compare byte for byte, without case, padding or character sets. */
const types: Readonly<Record<string, string>> = {
  kind: 'VARBINARY(32)',
  id: 'VARBINARY(128)',
  value: 'LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin',
}

function recordsStatement(): string {
  const definitions = columns.map((column) => {
    const type = types[column] ?? (typeOf(column) === 'bigint' ? 'BIGINT' : 'VARBINARY(64)')
    return `  ${column} ${type}${requiredColumns.includes(column) ? ' NOT NULL' : ''},`
  })
  const lists = listNumbers.map(
    (n) => `  INDEX ${listIndex(n)} (kind, list_${n}, list_${n}_at, id)`,
  )
  return `CREATE TABLE IF NOT EXISTS ${recordsTable} (
${definitions.join('\n')}
  namespace VARBINARY(8) GENERATED ALWAYS AS (LEFT(id, 8)) STORED,
  guarded TINYINT NOT NULL DEFAULT 0,
  PRIMARY KEY (kind, id),
  INDEX ${recordsTable}_due (kind, namespace, due_at, id),
${lists.join(',\n')}
) ENGINE = InnoDB`
}

/** An index has at most 3,072 bytes, and URLs are ASCII. A value that is not is null, and fails no write. */
const ascii = (value: string, length: number) =>
  `CASE WHEN ${value} REGEXP '^[ -~]*$' THEN LEFT(CONVERT(${value} USING ascii), ${length}) END`

const listed = {
  account: 'payment_account',
  receiver: 'payment_receiver',
  createdAt: 'payment_created_at',
  paymentId: 'payment_id',
}

const reportDialect: ReportDialect = {
  read: (path) => `JSON_VALUE(value, '${path}')`,
  integer: (value) => `CAST(${value} AS SIGNED)`,
  isTrue: (value) => `${value} IN ('1', 'true')`,
  paymentId: 'SUBSTRING(id, 9)',
  columns: () => listed,
  // MariaDB has no index of an expression, but of a column that is computed.
  indexes(values) {
    const column = (name: string, type: string, value: string) =>
      `  ADD COLUMN IF NOT EXISTS ${name} ${type} AS (CASE WHEN kind IN ('incoming-payment', 'outgoing-payment')
    THEN ${value} END) VIRTUAL`
    const text = (length: number) => `VARCHAR(${length}) CHARACTER SET ascii COLLATE ascii_bin`
    const indexes = reportLists.map(({ name, by }) => {
      const columns = [
        'kind',
        ...by.map((each) => listed[each]),
        listed.createdAt,
        listed.paymentId,
      ]
      return `  ADD INDEX IF NOT EXISTS open_payments_report_${name} (${columns.join(', ')})`
    })
    return [
      `ALTER TABLE ${recordsTable}
${[
  column(listed.account, text(2_048), ascii(values.account, 2_048)),
  column(listed.receiver, text(2_048), ascii(values.receiver, 2_048)),
  column(listed.createdAt, 'BIGINT', values.createdAt),
  column(listed.paymentId, text(128), `CONVERT(${values.paymentId} USING ascii)`),
  ...indexes,
].join(',\n')}`,
    ]
  },
  createView: 'CREATE OR REPLACE VIEW',
}

export function mysqlReportMigrations(): readonly Migration[] {
  return reportMigrations(reportDialect)
}
