import { openDemoAccounts } from './ledger.js'
import { isProduction } from './settings.js'
import type { Database } from './sql.js'
import { checkTables, migrate } from './tables.js'

/**
 * Makes the database ready: for a first try, with tables and two accounts that have money. In production it only checks
 * the tables, and rejects if a step of the deployment has not migrated: a process that migrates when it starts could
 * not be rolled back, and accounts are opened by you.
 */
export async function prepare(database: Database, baseUrl: string): Promise<void> {
  if (!isProduction()) {
    await migrate(database)
    await openDemoAccounts(database, baseUrl)
    return
  }
  const problem = await checkTables(database)
  if (problem !== undefined) throw new Error(`${problem}: run npm run migrate`)
}
