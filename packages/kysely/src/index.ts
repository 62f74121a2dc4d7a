/**
 * Stores records in PostgreSQL, MySQL, MariaDB or SQLite through Kysely; it imports only the types of Kysely.
 *
 * @module open-payments-server-kysely
 */

export type { TablesCheck } from '../../../adapters/postgres/check-tables.js'
export type { TransactionResult } from '../../../adapters/sql/transactions.js'
export {
  DatabaseNewerError,
  DatabaseSettingsError,
  type Migrated,
  type Migration,
  TablesMissingError,
} from '../../../adapters/sql/versions.js'
export type { KyselyDialect } from './engines.js'
export {
  checkTables,
  type KyselyMigrateOptions,
  migrate,
  migrationsOf,
  reportMigrationsOf,
} from './migrate.js'
export type { PortableOptions } from './portable.js'
export { type KyselyStore, type KyselyStoreOptions, kyselyStore } from './store.js'
