import type { Kysely } from 'kysely'
import { requireKnownOptions } from 'open-payments-server/adapter'
import { migrate as migratePostgres } from '../../../adapters/postgres/migrate.js'
import { migrationsOf as postgresMigrations } from '../../../adapters/postgres/migrations.js'
import { sqliteLog } from '../../../adapters/sql/sqlite.js'
import { migrationsTable } from '../../../adapters/sql/statements.js'
import { type Migrated, type Migration, missing } from '../../../adapters/sql/versions.js'
import { type Client, clientOf, postgresDatabaseOf } from './client.js'
import { engineOf, type KyselyDialect, requireDialect } from './engines.js'
import type { KyselyStoreOptions } from './store.js'

/** The error of `migrate` on a node of a Galera cluster that may not yet have the commits of another node. */
export class OutdatedReadsError extends Error {
  readonly code = 'ERR_OUTDATED_READS'
}

/** Returns all migration steps, for hosts with their own migration tool. */
export function migrationsOf(dialect: KyselyDialect): readonly Migration[] {
  requireDialect(dialect)
  return dialect === 'postgres' ? postgresMigrations() : engineOf(dialect).migrations
}

/**
 * Brings the tables up to date. Any number of processes may call it concurrently. If there is nothing to do, it only
 * reads. On SQLite it sets `journal_mode` to WAL, which the file keeps.
 *
 * @throws {OutdatedReadsError} on a node of a Galera cluster whose connections may read outdated rows.
 * @throws {DatabaseNewerError} if a later version of the library created the tables.
 * @throws {InvalidInputError} for an unknown dialect or option.
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
  if (dialect === 'mysql') await requireCurrentReads(client)
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

/** On Galera, a node may not yet have the commits of another node. Other servers do not have these variables. */
async function requireCurrentReads(client: Client): Promise<void> {
  const text = `SHOW VARIABLES WHERE Variable_name IN ('wsrep_on', 'wsrep_sync_wait')`
  const { rows } = await client.run(text)
  const variables = rows as readonly { readonly Variable_name?: string; readonly Value?: string }[]
  const setting = (name: string) => variables.find((row) => row.Variable_name === name)?.Value
  if (setting('wsrep_on') === 'ON' && (Number(setting('wsrep_sync_wait')) & 1) === 0) {
    const remedy = 'set wsrep_sync_wait = 1 in each session, when the pool opens it'
    throw new OutdatedReadsError(`on Galera, ${remedy}`)
  }
}
