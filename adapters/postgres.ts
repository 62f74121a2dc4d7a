/**
 * Stores records in PostgreSQL, through a `pg` pool or through PGlite; it imports neither.
 *
 * @module open-payments-server/postgres
 */

export { checkTables, type TablesCheck } from './postgres/check-tables.js'
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
  PreparedStatementError,
} from './postgres/driver.js'
export type { PostgresTransactions } from './postgres/host-transaction.js'
export { type MigrateOptions, migrate } from './postgres/migrate.js'
export { migrationsOf } from './postgres/migrations.js'
export {
  type DrizzleDatabase,
  type DrizzleSql,
  fromDrizzle,
  fromKnex,
  fromPrisma,
  fromTypeorm,
  type KnexDatabase,
  type PrismaDatabase,
  type PrismaTransactionOptions,
  type TypeormDatabase,
} from './postgres/query-builders.js'
export { reportMigrationsOf } from './postgres/reports.js'
export {
  type PostgresStore,
  type PostgresStoreOptions,
  postgresStore,
} from './postgres/store.js'
export type { TransactionResult } from './sql/transactions.js'
export {
  DatabaseNewerError,
  DatabaseSettingsError,
  type Migrated,
  type Migration,
  TablesMissingError,
} from './sql/versions.js'
