// #region store
import type { Kysely } from 'kysely'
import type { Store } from 'open-payments-server'
import { kyselyStore, migrate } from 'open-payments-server-kysely'

/** Creates the tables, and returns the store for the options of the servers. */
export async function openStore<Database>(db: Kysely<Database>): Promise<Store> {
  await migrate(db, { dialect: 'mysql' }) // or 'postgres', 'portable', 'sqlite'
  return kyselyStore(db, { dialect: 'mysql' })
}
// #endregion store
