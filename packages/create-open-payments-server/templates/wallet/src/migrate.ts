import { openDatabase } from './database.js'
import { readSettings } from './settings.js'
import { migrate } from './tables.js'

// A program: npm run migrate.
const database = openDatabase(readSettings().database, { migrates: true })
await migrate(database)
await database.close()
