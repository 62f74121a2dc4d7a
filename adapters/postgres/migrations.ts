import { listNumbers } from '../sql/records.js'
import type { Migration } from '../sql/versions.js'
import { checkedSchema, tableIn } from './statements.js'

/**
 * Returns all migration steps, for hosts with their own migration tool. The same statements ship as files in
 * `dist/migrations`.
 *
 * @param schema the schema of the tables, which the statements quote: at most 40 lower-case letters, digits and
 *   underscores. Default: the names are not qualified, so that `search_path` decides.
 * @throws {InvalidInputError} for an invalid schema.
 *
 * @example
 * ```ts
 * import { migrationsOf } from 'open-payments-server/postgres'
 *
 * for (const { version, name, statements } of migrationsOf('payments')) {
 *   console.log(`-- ${version} ${name}\n${statements.join(';\n')};`) // for your own tool
 * }
 * ```
 */
export function migrationsOf(schema?: string): readonly Migration[] {
  const records = tableIn(checkedSchema(schema), 'open_payments_records')
  return [{ version: 1, name: 'records', statements: recordsStatements(records) }]
}

/**
 * The percentage of a page that new records fill. The rest is for updates: one that stays on its page and
 * changes no indexed column writes no index.
 */
const fillfactor = 70

/**
 * The fraction of the table that may be dead before PostgreSQL vacuums or analyzes it. docs/sizing.md has the
 * measurement. A fixed number of rows is not suitable: each vacuum reads all indexes, however few rows are dead.
 */
const deadFraction = 0.05

function recordsStatements(records: string): string[] {
  const lists = listNumbers.map((n) => `  list_${n} text COLLATE "C",\n  list_${n}_at bigint,`)
  return [
    `CREATE TABLE IF NOT EXISTS ${records} (
  kind text COLLATE "C" NOT NULL,
  id text COLLATE "C" NOT NULL,
  version bigint NOT NULL,
  value text NOT NULL,
  due_at bigint,
${lists.join('\n')}
  PRIMARY KEY (kind, id)
) WITH (
  fillfactor = ${fillfactor},
  autovacuum_vacuum_scale_factor = ${deadFraction},
  autovacuum_analyze_scale_factor = ${deadFraction}
)`,
    `CREATE INDEX IF NOT EXISTS open_payments_records_due
  ON ${records} (kind, left(id, 8), due_at, id) WHERE due_at IS NOT NULL`,
    ...listNumbers.map(
      (n) => `CREATE INDEX IF NOT EXISTS open_payments_records_list_${n}
  ON ${records} (kind, list_${n}, list_${n}_at, id) WHERE list_${n} IS NOT NULL`,
    ),
  ]
}
