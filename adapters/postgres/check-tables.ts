import { requireKnownOptions } from '../../src/entry-adapter.js'
import { missing } from '../sql/versions.js'
import { type PostgresClient, requireDatabase, sqlState } from './driver.js'
import { type MigrateOptions, versionsIn } from './migrate.js'
import { migrationsOf } from './migrations.js'
import { checkedSchema, tableIn } from './statements.js'

/** Whether the tables are there, and otherwise what is wrong. */
export type TablesCheck =
  | { readonly ok: true }
  | {
      readonly ok: false
      /** A sentence without the address, the names and the passwords of the database. */
      readonly problem: string
    }

/**
 * Checks that the database answers, and has the tables that this version of the library needs: for a readiness probe.
 * It accepts the tables of a later version. It only reads, and needs SELECT on both tables. It waits as long as the
 * time-outs of the pool allow.
 *
 * @throws {InvalidInputError} for an invalid schema and for an unknown option. It rejects with no other error.
 *
 * @example
 * ```ts
 * import { checkTables } from 'open-payments-server/postgres'
 *
 * const check = await checkTables(pool)
 * const [status, text] = check.ok ? [200, 'ready'] : [503, check.problem]
 * console.log(status, text)
 * ```
 */
export async function checkTables(
  database: PostgresClient,
  options: Pick<MigrateOptions, 'schema'> = {},
): Promise<TablesCheck> {
  requireKnownOptions('', options, { schema: true })
  requireDatabase(database)
  const schema = checkedSchema(options.schema)
  const migrations = migrationsOf(schema)
  try {
    const done = await versionsIn(database, tableIn(schema, 'open_payments_migrations'))
    // The tables of a later version serve this one too.
    const known = done?.filter((version) => version <= migrations.length) ?? []
    const [first, ...more] = missing(migrations, known)
    if (done === undefined || (first !== undefined && known.length === 0)) return without
    if (first !== undefined) {
      const names = [first, ...more].map(({ name }) => name).join(', ')
      return { ok: false, problem: `the tables lack ${names}: run migrate(pool)` }
    }
    const records = tableIn(schema, 'open_payments_records')
    await database.query({ text: `SELECT FROM ${records} LIMIT 0`, values: [] })
    return { ok: true }
  } catch (error) {
    return { ok: false, problem: problemOf(error) }
  }
}

const without = {
  ok: false,
  problem: 'the tables of the library do not exist: run migrate(pool)',
} as const

/** Describes an error by its code. Its message can contain the address of the database. */
function problemOf(error: unknown): string {
  const state = sqlState(error)
  if (state === '42P01') return without.problem
  if (state === '42501') return 'the role of the database may not read the tables'
  if (state !== undefined) return `the database refused a query with SQLSTATE ${state}`
  const { code } = error as { readonly code?: unknown }
  return `the database did not answer${typeof code === 'string' ? `: ${code}` : ''}`
}
