/**
 * Stores records in PostgreSQL, MySQL, MariaDB or SQLite through Kysely; it imports only the types of Kysely.
 *
 * @module open-payments-server/kysely
 */

export type { KyselyDialect } from './kysely/engines.js'
export { migrate, migrationsOf, OutdatedReadsError } from './kysely/migrate.js'
export { type KyselyStore, type KyselyStoreOptions, kyselyStore } from './kysely/store.js'
export type { TransactionResult } from './sql/host-transaction.js'
export {
  DatabaseNewerError,
  type Migrated,
  type Migration,
  TablesMissingError,
} from './sql/versions.js'
