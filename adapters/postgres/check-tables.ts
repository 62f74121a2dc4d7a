import { requireKnownOptions } from '../../src/entry-adapter.js'
import { missing } from '../sql/versions.js'
import {
  inOneTransaction,
  isLost,
  type PostgresClient,
  type PostgresDatabase,
  type PostgresPool,
  queryOn,
  requireDatabase,
  sqlState,
} from './driver.js'
import { type MigrateOptions, versionsIn } from './migrate.js'
import { migrationsOf } from './migrations.js'
import { type Settings, settingsOf } from './settings.js'
import { checkedSchema, onPrimary, tableIn } from './statements.js'

/** Whether the tables are there, and otherwise what is wrong. */
export type TablesCheck =
  | { readonly ok: true }
  | {
      readonly ok: false
      /** A sentence without the address, the names and the passwords of the database. */
      readonly problem: string
    }

/**
 * Checks that the database answers, has the tables that this version of the library needs, and that the connections of
 * this pool read and write them correctly: for a readiness probe, with the pool of the servers. It accepts the tables
 * of a later version. It waits as long as the time-outs of the pool allow.
 *
 * It only reads, and needs SELECT on both tables, except if row level security is active for the role, or the table has
 * triggers: it then writes a record, reads it back and rolls back. It refuses a standby, read-only transactions,
 * `array_nulls = off`, a driver that renames columns or misreads integers, and, without `allowLostCommits`, a database
 * that loses acknowledged commits.
 *
 * @param database the pool of the servers. With another client than a pool of `pg` or PGlite, active policies are
 *   refused.
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
  options: Pick<MigrateOptions, 'schema' | 'allowLostCommits'> = {},
): Promise<TablesCheck> {
  requireKnownOptions('', options, { schema: true, allowLostCommits: true })
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
    await queryOn(database, { text: `${onPrimary}SELECT FROM ${records} LIMIT 0`, values: [] })
    const settings = await settingsOf(database, schema)
    const loss = options.allowLostCommits === true ? undefined : settings.loss
    const refused =
      settings.problem ?? loss ?? (await problemOfWriting(database, records, settings))
    return refused ? { ok: false, problem: refused } : { ok: true }
  } catch (error) {
    return { ok: false, problem: problemOf(error) }
  }
}

/** Policies and triggers may be right: this writes a record as the servers do, and reads it back. */
async function problemOfWriting(
  database: PostgresClient,
  records: string,
  { hasPolicies, hasTriggers }: Settings,
): Promise<string | undefined> {
  if (!hasPolicies && !hasTriggers) return undefined
  const isPossible = 'transaction' in database || 'connect' in database
  if (!isPossible) return hasPolicies ? policiesProblem : undefined
  let isKept = false
  const id = `checks00-${crypto.randomUUID()}`
  const key = `kind = 'server' AND id = '${id}'`
  const steps = [
    `INSERT INTO ${records} (kind, id, version, value) VALUES ('server', '${id}', 1, '{}')`,
    `UPDATE ${records} SET version = 2 WHERE ${key}`,
    `DELETE FROM ${records} WHERE ${key} AND version = 2 RETURNING id`,
  ]
  const attempt = async (client: PostgresClient) => {
    for (const text of steps) {
      const { rows } = await client.query({ text, values: [] })
      if (text.startsWith('DELETE') && rows.length === 1) isKept = true
    }
    throw rolledBack
  }
  try {
    if ('transaction' in database) await (database as PostgresDatabase).transaction(attempt)
    else if ('connect' in database) await inOneTransaction(database as PostgresPool, attempt)
  } catch (error) {
    const state = sqlState(error)
    // Commits reject with what else a trigger raises, so that the host learns of it.
    if (!hasPolicies && state !== undefined && !isLost(error)) return undefined
    if (error !== rolledBack && state !== '42501' && !isLost(error)) throw error
  }
  if (isKept) return undefined
  return hasPolicies ? policiesProblem : triggersProblem
}

const rolledBack = new Error('the record of the check is rolled back')
const policiesProblem =
  'row level security keeps the role of the servers from its own records: give it a policy for all commands'
const triggersProblem =
  'a trigger of open_payments_records skips a row or divides by zero, which is a lost commit to the store: remove it'

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
