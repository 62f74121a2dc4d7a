import type { Kysely } from 'kysely'
import { InvalidInputError } from 'open-payments-server'
import { requireKnownOptions } from 'open-payments-server/adapter'
import {
  checkTables as checkPostgres,
  type TablesCheck,
} from '../../../adapters/postgres/check-tables.js'
import { migrate as migratePostgres } from '../../../adapters/postgres/migrate.js'
import { migrationsOf as postgresMigrations } from '../../../adapters/postgres/migrations.js'
import { reportMigrationsOf as postgresReports } from '../../../adapters/postgres/reports.js'
import { reportMigrationsTable } from '../../../adapters/sql/reports.js'
import { sqliteLog } from '../../../adapters/sql/sqlite.js'
import { migrationsTable } from '../../../adapters/sql/statements.js'
import { retried } from '../../../adapters/sql/transactions.js'
import {
  DatabaseSettingsError,
  type Migrated,
  type Migration,
  missing,
} from '../../../adapters/sql/versions.js'
import { type Client, clientOf, postgresDatabaseOf } from './client.js'
import { engineOf, type KyselyDialect, requireDialect } from './engines.js'
import { requireMysqlSettings } from './mysql-settings.js'
import { type PortableOptions, portableMigrations } from './portable.js'
import type { KyselyStoreOptions } from './store.js'

/** Options of `migrate`. */
export interface KyselyMigrateOptions extends KyselyStoreOptions, PortableOptions {
  /**
   * Whether `migrate` creates the views for reports too, with their indexes: on PostgreSQL those of
   * `open-payments-server/postgres`, on SQLite and MariaDB those of payments; not with `portable`. Each new payment
   * then writes more index entries. Default false, which keeps existing views.
   */
  readonly reports?: boolean
  /**
   * Accepts a database that can lose acknowledged commits, because it is for tests: with
   * `innodb_flush_log_at_trx_commit = 0`, `synchronous_commit = off`, or an UNLOGGED table. Default false: `migrate`
   * warns, and `checkTables` refuses it.
   */
  readonly allowLostCommits?: boolean
}

/**
 * Returns all migration steps, for hosts with their own migration tool. The names of the tables are not qualified.
 *
 * @throws {InvalidInputError} for an unknown dialect or option.
 *
 * @example
 * ```ts
 * import { migrationsOf } from 'open-payments-server-kysely'
 *
 * for (const { version, name, statements } of migrationsOf('mysql')) {
 *   console.log(`-- ${version} ${name}\n${statements.join(';\n')};`) // for your own tool
 * }
 * ```
 */
export function migrationsOf(
  dialect: KyselyDialect,
  options: PortableOptions = {},
): readonly Migration[] {
  requireDialect(dialect)
  requireKnownOptions('options', options, portableOptions)
  if (dialect === 'postgres') return postgresMigrations()
  return dialect === 'portable' ? portableMigrations(options) : engineOf(dialect).migrations
}

const portableOptions = { collation: true, asynchronousIndexes: true } as const
const migrateOptions = {
  ...{ dialect: true, allowLostCommits: true, reports: true },
  ...portableOptions,
} as const

/**
 * Returns the migration steps of the views for reports, which `migrate` applies with `reports: true`.
 *
 * @throws {InvalidInputError} for `portable`, which has none.
 *
 * @example
 * ```ts
 * import { reportMigrationsOf } from 'open-payments-server-kysely'
 *
 * const [reports] = reportMigrationsOf('mysql')
 * console.log(reports?.statements.join(';\n')) // the views, for your own tool
 * ```
 */
export function reportMigrationsOf(dialect: KyselyDialect): readonly Migration[] {
  requireDialect(dialect)
  if (dialect === 'postgres') return postgresReports()
  const { reportMigrations } = engineOf(dialect)
  if (reportMigrations !== undefined) return reportMigrations
  throw new InvalidInputError('reports', 'must be false with this dialect')
}

/**
 * Brings the tables up to date, and with `reports` the views. Any number of processes may call it concurrently. If
 * there is nothing to do, it only reads. On SQLite it sets `journal_mode` to WAL, which the file keeps. Resolves to
 * `warnings` for a database that can lose acknowledged commits.
 *
 * @throws {DatabaseSettingsError} for a session or a database that would not return records unchanged and up to date,
 *   such as with the character set latin1 or the isolation level READ UNCOMMITTED.
 * @throws {DatabaseNewerError} if a later version of the library created the tables.
 * @throws {InvalidInputError} for an unknown dialect or option.
 *
 * @example
 * ```ts
 * import { Kysely, PostgresDialect } from 'kysely'
 * import { migrate } from 'open-payments-server-kysely'
 *
 * const db = new Kysely<object>({ dialect: new PostgresDialect({ pool }) })
 * const { applied } = await migrate(db, { dialect: 'postgres' })
 * ```
 */
export async function migrate<Database>(
  db: Kysely<Database>,
  options: KyselyMigrateOptions,
): Promise<Migrated> {
  requireKnownOptions('', options, migrateOptions)
  const { dialect, allowLostCommits = false, reports = false, ...portable } = options
  requireDialect(dialect)
  if (dialect === 'postgres') {
    return migratePostgres(postgresDatabaseOf(db), { allowLostCommits, reports })
  }
  const client = clientOf(db)
  const tables = [{ table: migrationsTable, steps: migrationsOf(dialect, portable) }]
  if (reports) tables.push({ table: reportMigrationsTable, steps: reportMigrationsOf(dialect) })
  const loss = dialect === 'mysql' ? await requireMysqlSettings(client) : undefined
  const { mayMigrateAgain, requireOrder } = engineOf(dialect)
  const applied: string[] = []
  for (const { table, steps } of tables) {
    applied.push(...(await retried(() => migrated(client, dialect, table, steps), mayMigrateAgain)))
  }
  await requireOrder?.(client)
  const isTold = loss !== undefined && !allowLostCommits
  return { applied, ...(isTold && { warnings: [loss] }) }
}

async function migrated(
  client: Client,
  dialect: Exclude<KyselyDialect, 'postgres'>,
  table: string,
  migrations: readonly Migration[],
): Promise<readonly string[]> {
  if (dialect === 'sqlite') await client.run(sqliteLog)
  const done = await appliedVersions(client, table).catch(() => undefined)
  const steps = missing(migrations, done ?? [])
  if (done === undefined) await client.run(engineOf(dialect).versionsTable(table))
  for (const { version, name, statements } of steps) {
    for (const text of statements) await client.run(text)
    const record = `INSERT INTO ${table} (version, name) VALUES (${version}, '${name}')`
    await client.run(record).catch(async (error) => {
      // Another process has applied the same statements.
      if (!(await appliedVersions(client, table)).includes(version)) throw error
    })
  }
  return steps.map(({ name }) => name)
}

/**
 * Checks that the database answers, has the tables that this version of the library needs, and that the connections of
 * this Kysely instance read and write them correctly: for a readiness probe. It refuses what `migrate` refuses, and
 * without `allowLostCommits` a database that can lose acknowledged commits. On PostgreSQL it is the `checkTables` of
 * `open-payments-server/postgres`.
 *
 * @throws {InvalidInputError} for an unknown dialect or option. It rejects with no other error.
 *
 * @example
 * ```ts
 * import { Kysely, PostgresDialect } from 'kysely'
 * import { checkTables } from 'open-payments-server-kysely'
 *
 * const db = new Kysely<object>({ dialect: new PostgresDialect({ pool }) })
 * const check = await checkTables(db, { dialect: 'postgres' })
 * const [status, text] = check.ok ? [200, 'ready'] : [503, check.problem]
 * console.log(status, text)
 * ```
 */
export async function checkTables<Database>(
  db: Kysely<Database>,
  options: KyselyMigrateOptions,
): Promise<TablesCheck> {
  requireKnownOptions('', options, migrateOptions)
  const { dialect, allowLostCommits = false } = options
  requireDialect(dialect)
  if (dialect === 'postgres') return checkPostgres(postgresDatabaseOf(db), { allowLostCommits })
  const client = clientOf(db)
  try {
    const { migrations, isWithoutTables, requireOrder } = engineOf(dialect)
    const done = await appliedVersions(client).catch((error): number[] => {
      if (isWithoutTables(error) || dialect === 'sqlite') return []
      throw error
    })
    if (migrations.some(({ version }) => !done.includes(version))) {
      const problem = 'the tables of the library do not exist: run migrate(db, { dialect })'
      return { ok: false, problem }
    }
    await requireOrder?.(client)
    const loss = dialect === 'mysql' ? await requireMysqlSettings(client) : undefined
    return loss === undefined || allowLostCommits ? { ok: true } : { ok: false, problem: loss }
  } catch (error) {
    if (error instanceof DatabaseSettingsError) return { ok: false, problem: error.message }
    // The message of another error can contain the address of the database.
    const { code } = error as { readonly code?: unknown }
    const problem = `the database did not answer${typeof code === 'string' ? `: ${code}` : ''}`
    return { ok: false, problem }
  }
}

async function appliedVersions(client: Client, table = migrationsTable): Promise<number[]> {
  const { rows } = await client.run(`SELECT version AS value FROM ${table}`)
  return rows.map(({ value }) => Number(value))
}
