import { hashedListName } from 'open-payments-server/adapter'
import { markSetting } from '../../../adapters/postgres/commit.js'
import { isTransient, isWithoutTables, sqlState } from '../../../adapters/postgres/driver.js'
import { columns, listNumbers, requiredColumns, typeOf } from '../../../adapters/sql/records.js'
import {
  atVersion,
  createStatements,
  type Dialect,
  listIndex,
  recordsTable,
} from '../../../adapters/sql/statements.js'
import { createMark } from '../../../adapters/sql/transactions.js'
import { DatabaseSettingsError, type Migration } from '../../../adapters/sql/versions.js'
import type { Client } from './client.js'
import type { Engine } from './engine.js'

/** What databases that speak the protocol of PostgreSQL do differently. */
export interface PortableOptions {
  /**
   * Whether the tables state `COLLATE "C"`, by which text is ordered by its bytes. Set it where the database has
   * another default order; some databases have this order alone and refuse the clause. Default false.
   */
  readonly collation?: boolean
  /** Whether indexes are made by `CREATE INDEX ASYNC`, which Aurora DSQL demands. Default false. */
  readonly asynchronousIndexes?: boolean
}

const dialect: Dialect = {
  // Also where an isolation level reads a snapshot, a record that another transaction changes is a conflict then.
  hold: (condition) =>
    `SELECT 1 AS found FROM ${recordsTable} WHERE ${atVersion} ${condition} FOR UPDATE`,
  unlessExists: 'ON CONFLICT DO NOTHING',
  returning: '',
  usingIndex: () => '',
  writesNamespace: true,
}

/**
 * Statements that distributed databases execute as PostgreSQL does: one change each, without `WITH`, savepoints or a
 * level of isolation. A transaction that meets another one is repeated as a whole.
 */
export const portable: Engine = {
  statements: createStatements(dialect),
  async statementsInside(run) {
    const mark = createMark()
    const marks = `current_setting('${markSetting}', true)`
    await run(`SELECT set_config('${markSetting}', concat(${marks}, '${mark}'), true)`)
    return createStatements(dialect, `AND strpos(${marks}, '${mark}') > 0`)
  },
  versionsTable: (name) => `CREATE TABLE IF NOT EXISTS ${name} (
  version integer PRIMARY KEY,
  name varchar(64) NOT NULL
)`,
  migrations: portableMigrations(),
  begin: ['BEGIN'],
  setSavepoint: async (run) => {
    await run('SAVEPOINT open_payments')
  },
  rollBackToSavepoint: ['ROLLBACK TO SAVEPOINT open_payments'],
  text: numbered,
  listName: hashedListName,
  parameter: (value) => value,
  isTransient: (error) => isTransient(error),
  mayMigrateAgain: isMigratedElsewhere,
  requireOrder: requireByteOrder,
  isDuplicate: () => false,
  isWithoutTables,
  // A commit of an outdated record is a conflict there, after which the host restarts its transaction.
  hasSnapshots: false,
}

const numberedTexts = new Map<string, string>()

/** Returns a text with `$1`, `$2` and so on in place of each `?`. The store has few texts. */
function numbered(text: string): string {
  const known = numberedTexts.get(text)
  if (known !== undefined) return known
  let count = 0
  const changed = text.replaceAll('?', () => `$${++count}`)
  if (numberedTexts.size < 1_000) numberedTexts.set(text, changed)
  return changed
}

export function portableMigrations(options: PortableOptions = {}): readonly Migration[] {
  const { collation = false, asynchronousIndexes = false } = options
  const text = (length: number) => `varchar(${length})${collation ? ' COLLATE "C"' : ''}`
  const types: Readonly<Record<string, string>> = {
    kind: text(32),
    id: text(128),
    // No query compares it.
    value: 'text',
  }
  const definitions = columns.map((column) => {
    const type = types[column] ?? (typeOf(column) === 'bigint' ? 'bigint' : text(64))
    return `  ${column} ${type}${requiredColumns.includes(column) ? ' NOT NULL' : ''},`
  })
  const index = asynchronousIndexes
    ? 'CREATE INDEX ASYNC IF NOT EXISTS'
    : 'CREATE INDEX IF NOT EXISTS'
  const statements = [
    // The key begins with the id, so that a database that divides the table by its key divides each kind.
    `CREATE TABLE IF NOT EXISTS ${recordsTable} (
${definitions.join('\n')}
  namespace ${text(8)} NOT NULL,
  PRIMARY KEY (id, kind)
)`,
    `${index} ${recordsTable}_due ON ${recordsTable} (namespace, kind, due_at, id)`,
    ...listNumbers.map(
      (n) => `${index} ${listIndex(n)} ON ${recordsTable} (list_${n}, kind, list_${n}_at, id)`,
    ),
  ]
  return [{ version: 1, name: 'records', statements }]
}

const uniqueViolation = '23505'
const duplicateTable = '42P07'

/**
 * Returns whether `migrate` may begin again: another process creates the same tables. `IF NOT EXISTS` does not see what
 * a transaction in progress creates.
 */
function isMigratedElsewhere(error: unknown): boolean {
  return isTransient(error) || [uniqueViolation, duplicateTable].includes(sqlState(error) ?? '')
}

/**
 * Refuses a table whose ids are not ordered by their bytes: pages of lists would skip records.
 *
 * @throws {DatabaseSettingsError}
 */
async function requireByteOrder({ run }: Client): Promise<void> {
  const ids = `SELECT id FROM ${recordsTable} WHERE 1 = 0 UNION ALL SELECT 'a' UNION ALL SELECT 'B' UNION ALL SELECT '~'`
  const { rows } = await run(`SELECT id AS value FROM (${ids}) AS ordered ORDER BY id`)
  if (rows.map(({ value }) => value).join('') === 'Ba~') return
  throw new DatabaseSettingsError(
    'the database orders text by a language: migrate with { collation: true }, into tables that do not exist yet',
  )
}
