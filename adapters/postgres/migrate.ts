import { requireKnownOptions } from '../../src/entry-adapter.js'
import { DatabaseSettingsError, type Migrated, type Migration, missing } from '../sql/versions.js'
import {
  inOneTransaction,
  type PostgresClient,
  type PostgresDatabase,
  type PostgresPool,
  queryOn,
  requireDatabase,
  sqlState,
} from './driver.js'
import { migrationsOf } from './migrations.js'
import { reportMigrationsOf } from './reports.js'
import { requireSettings } from './settings.js'
import { checkedSchema, onPrimary, tableIn } from './statements.js'

/** Where the tables are created, and whether the views for reports are, too. */
export interface MigrateOptions {
  /** The schema, as in the options of `postgresStore`. */
  readonly schema?: string
  /**
   * Whether to create the views for reports too, with their indexes and columns. Each new payment or quote then writes
   * two more index entries. Default false, which keeps existing views.
   */
  readonly reports?: boolean
  /**
   * Accepts a database that can lose acknowledged commits, because it is for tests: with `synchronous_commit = off`,
   * `fsync = off`, or an UNLOGGED table. Default false: `migrate` warns, and `checkTables` refuses it. A lost commit
   * makes a spent amount available again, and a revoked token valid.
   */
  readonly allowLostCommits?: boolean
}

const undefinedTable = '42P01'
/** Errors that PostgreSQL can raise when two processes run the same CREATE … IF NOT EXISTS concurrently. */
const createdByAnother: readonly (string | undefined)[] = ['23505', '42P07', '42710', 'XX000']

/**
 * Brings the tables up to date, and with `reports` the views, each in one transaction. Any number of processes may call
 * it concurrently: one applies the steps while the others wait. If there is nothing to do, it only reads.
 *
 * @throws {DatabaseNewerError} if a later version of the library created the tables.
 * Resolves to `warnings` for a database that can lose acknowledged commits.
 *
 * @throws {DatabaseSettingsError} for a database or a connection with which records would be changed or outdated
 *   silently: another encoding than UTF8 and SQL_ASCII, a standby, read-only transactions, `array_nulls = off`, or a
 *   driver that renames columns or misreads integers.
 * @throws {InvalidInputError} for an invalid schema and for an unknown option.
 *
 * @example
 * ```ts
 * import { migrate } from 'open-payments-server/postgres'
 *
 * const { applied, warnings = [] } = await migrate(pool, { reports: true }) // when you deploy
 * console.log(applied, ...warnings)
 * ```
 */
export async function migrate(
  database: PostgresPool | PostgresDatabase,
  options: MigrateOptions = {},
): Promise<Migrated> {
  requireKnownOptions('', options, { schema: true, reports: true, allowLostCommits: true })
  requireDatabase(database)
  const schema = checkedSchema(options.schema)
  const { loss } = await requireSettings(database, schema)
  const steps = [await applied(database, schema, 'open_payments_migrations', migrationsOf(schema))]
  if (options.reports === true) {
    const table = 'open_payments_report_migrations'
    steps.push(await applied(database, schema, table, reportMigrationsOf(schema)))
  }
  const isTold = loss !== undefined && options.allowLostCommits !== true
  return { applied: steps.flat(), ...(isTold && { warnings: [loss] }) }
}

/** Applies the steps that are missing in a table of versions, and returns their names. */
async function applied(
  database: PostgresPool | PostgresDatabase,
  schema: string | undefined,
  versions: string,
  migrations: readonly Migration[],
): Promise<readonly string[]> {
  const table = tableIn(schema, versions)
  const done = await versionsIn(database, table)
  if (done !== undefined && missing(migrations, done).length === 0) return []

  if (done === undefined) await createTable(database, table)
  const apply = async (client: PostgresClient) => {
    // The process that holds this row migrates; it is an ordinary lock on an ordinary row.
    const lock = `INSERT INTO ${table} (version, name) VALUES (0, 'lock') ON CONFLICT DO NOTHING`
    await client.query({ text: lock, values: [] })
    const hold = `SELECT version FROM ${table} WHERE version = 0 FOR UPDATE`
    await client.query({ text: hold, values: [] })
    const steps = missing(migrations, (await versionsIn(client, table)) ?? [])
    for (const { version, name, statements } of steps) {
      for (const text of statements) await client.query({ text, values: [] })
      const record = `INSERT INTO ${table} (version, name) VALUES ($1, $2)`
      await client.query({ text: record, values: [version, name] })
    }
    return steps.map(({ name }) => name)
  }
  try {
    if ('transaction' in database) return await database.transaction(apply)
    return await inOneTransaction(database, apply)
  } catch (error) {
    // PgBouncer in statement mode refuses BEGIN so, without a word on what to do.
    if (sqlState(error) !== '08P01') throw error
    throw new DatabaseSettingsError(withoutTransactions, { cause: error })
  }
}

const withoutTransactions =
  'the pooler allows no transactions, as in statement mode: run migrate on a connection without it'

/** Returns the applied versions, or `undefined` if the table of versions does not exist. */
export async function versionsIn(
  client: PostgresClient,
  table: string,
): Promise<number[] | undefined> {
  try {
    const text = `${onPrimary}SELECT version FROM ${table} WHERE version > 0`
    const rows = await queryOn(client, { text, values: [] })
    return rows.map(({ version }) => Number(version))
  } catch (error) {
    if (sqlState(error) === undefinedTable) return undefined
    throw error
  }
}

async function createTable(client: PostgresClient, table: string): Promise<void> {
  const text = `CREATE TABLE IF NOT EXISTS ${table} (version integer PRIMARY KEY, name text NOT NULL)`
  try {
    await queryOn(client, { text, values: [] })
  } catch (error) {
    if (!createdByAnother.includes(sqlState(error))) throw error
    // The other process may not have committed yet; this call waits for it.
    await queryOn(client, { text, values: [] })
  }
}
