import { requireKnownOptions } from '../../src/entry-adapter.js'
import {
  inOneTransaction,
  type PostgresClient,
  type PostgresDatabase,
  type PostgresPool,
  sqlState,
} from './driver.js'
import { type Migration, migrationsOf } from './migrations.js'
import { checkedSchema, tableIn } from './statements.js'

/** The error of `migrate` if a later version of the library created the tables. */
export class DatabaseNewerError extends Error {
  readonly code = 'ERR_DATABASE_NEWER'
}

export interface MigrateOptions {
  /** The schema, as in the options of `postgresStore`. */
  readonly schema?: string
}

export interface Migrated {
  /** The names of the steps that this call applied; empty if the tables were up to date. */
  readonly applied: readonly string[]
}

const undefinedTable = '42P01'
/** Errors that PostgreSQL can raise when two processes run the same CREATE … IF NOT EXISTS concurrently. */
const createdByAnother: readonly (string | undefined)[] = ['23505', '42P07', '42710', 'XX000']

/**
 * Brings the tables up to date in one transaction. Any number of processes may call it concurrently: one
 * applies the steps while the others wait. If there is nothing to do, it only reads.
 *
 * @throws {DatabaseNewerError} if a later version of the library created the tables.
 * @throws {OptionError} for an invalid schema and for an unknown option.
 */
export async function migrate(
  database: PostgresPool | PostgresDatabase,
  options: MigrateOptions = {},
): Promise<Migrated> {
  requireKnownOptions('', options, { schema: true })
  const schema = checkedSchema(options.schema)
  const table = tableIn(schema, 'open_payments_migrations')
  const migrations = migrationsOf(schema)
  const done = await appliedVersions(database, table)
  if (done !== undefined && missing(migrations, done).length === 0) return { applied: [] }

  if (done === undefined) await createTable(database, table)
  return inOneTransaction(database, async (client) => {
    // The process that holds this row migrates; it is an ordinary lock on an ordinary row.
    const lock = `INSERT INTO ${table} (version, name) VALUES (0, 'lock') ON CONFLICT DO NOTHING`
    await client.query({ text: lock, values: [] })
    const hold = `SELECT version FROM ${table} WHERE version = 0 FOR UPDATE`
    await client.query({ text: hold, values: [] })
    const steps = missing(migrations, (await appliedVersions(client, table)) ?? [])
    for (const { version, name, statements } of steps) {
      for (const text of statements) await client.query({ text, values: [] })
      const record = `INSERT INTO ${table} (version, name) VALUES ($1, $2)`
      await client.query({ text: record, values: [version, name] })
    }
    return { applied: steps.map(({ name }) => name) }
  })
}

function missing(migrations: readonly Migration[], done: readonly number[]): Migration[] {
  const newest = Math.max(0, ...done)
  if (newest > migrations.length) {
    const supported = `this version of the library supports ${migrations.length}`
    throw new DatabaseNewerError(`the tables have version ${newest}, and ${supported}`)
  }
  return migrations.filter(({ version }) => !done.includes(version))
}

/** Returns the applied versions, or `undefined` if the table of versions does not exist. */
async function appliedVersions(
  client: PostgresClient,
  table: string,
): Promise<number[] | undefined> {
  try {
    const text = `SELECT version FROM ${table} WHERE version > 0`
    const { rows } = await client.query({ text, values: [] })
    return rows.map(({ version }) => Number(version))
  } catch (error) {
    if (sqlState(error) === undefinedTable) return undefined
    throw error
  }
}

async function createTable(client: PostgresClient, table: string): Promise<void> {
  const text = `CREATE TABLE IF NOT EXISTS ${table} (version integer PRIMARY KEY, name text NOT NULL)`
  try {
    await client.query({ text, values: [] })
  } catch (error) {
    if (!createdByAnother.includes(sqlState(error))) throw error
    // The other process may not have committed yet; this call waits for it.
    await client.query({ text, values: [] })
  }
}
