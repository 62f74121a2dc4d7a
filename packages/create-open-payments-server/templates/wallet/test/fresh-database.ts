import { openDatabase } from '../src/database.js'
import type { Database } from '../src/sql.js'

/** Opens an empty database for one test, and removes it when it is closed. */
export async function freshDatabase(): Promise<Database> {
  return openDatabase(':memory:')
}
