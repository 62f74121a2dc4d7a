/**
 * Stores records in PostgreSQL, through a `pg` pool or through PGlite; it imports neither.
 *
 * @module
 */

export {
  fromPglite,
  type PgliteClient,
  type PgliteDatabase,
  type PostgresClient,
  type PostgresDatabase,
  type PostgresPool,
  type PostgresPoolClient,
  type PostgresRow,
  type PostgresStatement,
} from './postgres/driver.js'
export {
  DatabaseNewerError,
  type Migrated,
  type MigrateOptions,
  migrate,
} from './postgres/migrate.js'
export { type Migration, migrationsOf } from './postgres/migrations.js'
export {
  type PostgresStore,
  type PostgresStoreOptions,
  postgresStore,
} from './postgres/store.js'
