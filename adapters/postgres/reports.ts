import type { Migration } from '../sql/versions.js'
import { reportsText } from './reports/text.js'
import { checkedSchema, tableIn } from './statements.js'

/**
 * Returns the migration steps of the views for reports, which `migrate` applies with `reports: true`. They follow the
 * steps of `migrationsOf`, and have versions of their own. The same statements ship as files in
 * `dist/migrations/reports`.
 *
 * @param schema as in `migrationsOf`.
 * @throws {InvalidInputError} for an invalid schema.
 *
 * @example
 * ```ts
 * import { reportMigrationsOf } from 'open-payments-server/postgres'
 *
 * const [reports] = reportMigrationsOf('payments')
 * console.log(reports?.statements.join(';\n')) // the views, for your own tool
 * ```
 */
export function reportMigrationsOf(schema?: string): readonly Migration[] {
  return [
    { version: 1, name: 'reports', statements: statementsOf(reportsText(), checkedSchema(schema)) },
  ]
}

function statementsOf(text: string, schema: string | undefined): readonly string[] {
  // An index is in the schema of its table, and its name must be without one.
  const qualified = text.replace(/\bopen_payments_(?!report_)/g, (name) => tableIn(schema, name))
  return qualified.split(/;\n\n?/).filter((statement) => statement !== '')
}
