/**
 * Stores records in SQLite, through `better-sqlite3` or `node:sqlite`; it imports neither.
 *
 * @module open-payments-server/sqlite
 */

export {
  sqliteMigrations as migrationsOf,
  sqliteReportMigrations as reportMigrationsOf,
} from './sql/sqlite.js'
export type { TransactionResult } from './sql/transactions.js'
export {
  DatabaseNewerError,
  DatabaseSettingsError,
  type Migrated,
  type Migration,
  TablesMissingError,
} from './sql/versions.js'
export type { SqliteDatabase, SqliteStatement } from './sqlite/driver.js'
export { migrate, type SqliteMigrateOptions } from './sqlite/migrate.js'
export { type SqliteStore, sqliteStore } from './sqlite/store.js'
