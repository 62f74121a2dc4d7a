import type { Kysely } from 'kysely'
import { requireKnownOptions } from 'open-payments-server/adapter'
import { migrate as migratePostgres } from '../../../adapters/postgres/migrate.js'
import { migrationsOf as postgresMigrations } from '../../../adapters/postgres/migrations.js'
import { sqliteLog } from '../../../adapters/sql/sqlite.js'
import { migrationsTable } from '../../../adapters/sql/statements.js'
import {
  DatabaseSettingsError,
  type Migrated,
  type Migration,
  missing,
} from '../../../adapters/sql/versions.js'
import { type Client, clientOf, postgresDatabaseOf } from './client.js'
import { engineOf, type KyselyDialect, requireDialect } from './engines.js'
import type { KyselyStoreOptions } from './store.js'

/**
 * Returns all migration steps, for hosts with their own migration tool.
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
export function migrationsOf(dialect: KyselyDialect): readonly Migration[] {
  requireDialect(dialect)
  return dialect === 'postgres' ? postgresMigrations() : engineOf(dialect).migrations
}

/**
 * Brings the tables up to date. Any number of processes may call it concurrently. If there is nothing to do, it only
 * reads. On SQLite it sets `journal_mode` to WAL, which the file keeps.
 *
 * @throws {DatabaseSettingsError} for a session or a database that would not return records unchanged and up to date,
 *   such as with the character set latin1.
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
  options: KyselyStoreOptions,
): Promise<Migrated> {
  requireKnownOptions('', options, { dialect: true })
  const { dialect } = options
  requireDialect(dialect)
  if (dialect === 'postgres') return migratePostgres(postgresDatabaseOf(db))
  const client = clientOf(db)
  if (dialect === 'mysql') await requireSettings(client)
  else await client.run(sqliteLog)
  const { migrations, versionsTable } = engineOf(dialect)
  const done = await appliedVersions(client).catch(() => undefined)
  const steps = missing(migrations, done ?? [])
  if (done === undefined) await client.run(versionsTable)
  for (const { version, name, statements } of steps) {
    for (const text of statements) await client.run(text)
    const record = `INSERT INTO ${migrationsTable} (version, name) VALUES (${version}, '${name}')`
    await client.run(record).catch(async (error) => {
      // Another process has applied the same statements.
      if (!(await appliedVersions(client)).includes(version)) throw error
    })
  }
  return { applied: steps.map(({ name }) => name) }
}

async function appliedVersions(client: Client): Promise<number[]> {
  const { rows } = await client.run(`SELECT version AS value FROM ${migrationsTable}`)
  return rows.map(({ value }) => Number(value))
}

/** The store cannot see the sessions that a pool opens later: this checks one. */
async function requireSettings(client: Client): Promise<void> {
  const charsets = ['character_set_client', 'character_set_connection', 'character_set_results']
  const names = ['autocommit', 'sql_mode', 'wsrep_on', 'wsrep_sync_wait', ...charsets]
  const { rows } = await client.run(
    `SHOW VARIABLES WHERE Variable_name IN (${names.map((name) => `'${name}'`).join(', ')})`,
  )
  const variables = rows as readonly { readonly Variable_name?: string; readonly Value?: string }[]
  const setting = (name: string) => variables.find((row) => row.Variable_name === name)?.Value ?? ''

  for (const name of charsets) {
    const charset = setting(name)
    // Without a character set for results, the server returns text as it is stored.
    if (/^utf8(?:mb[34])?$/.test(charset) || (name === charsets[2] && charset === '')) continue
    throw new DatabaseSettingsError(`${name} is ${charset}, and must be utf8mb4`)
  }
  if (setting('sql_mode').includes('NO_BACKSLASH_ESCAPES')) {
    throw new DatabaseSettingsError('sql_mode must not contain NO_BACKSLASH_ESCAPES')
  }
  if (setting('autocommit') !== 'ON') {
    throw new DatabaseSettingsError('autocommit must be ON in each session')
  }
  // A node of a Galera cluster may not yet have the commits of another node. Other servers do not have these variables.
  if (setting('wsrep_on') === 'ON' && (Number(setting('wsrep_sync_wait')) & 1) === 0) {
    const remedy = 'set wsrep_sync_wait = 1 in each session, when the pool opens it'
    throw new DatabaseSettingsError(`on Galera, ${remedy}`)
  }
}
