import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { SqliteDatabase } from 'open-payments-server/sqlite'

export interface SqliteConnection extends SqliteDatabase {
  close(): unknown
}

type Open = (file: string) => SqliteConnection

/** `better-sqlite3` contains its binaries, for Node 22 and later: on Node 20 they end the process. */
const hasBinaries = Number(process.versions.node.split('.')[0]) >= 22

const builtIn = process.getBuiltinModule('node:sqlite') as unknown as
  | { readonly DatabaseSync: new (file: string) => SqliteConnection }
  | undefined

/** The drivers, each with a function that opens a file, or `undefined` where this Node does not have it. */
export const sqliteDrivers: Readonly<Record<string, Open | undefined>> = {
  'better-sqlite3': hasBinaries ? await betterSqlite() : undefined,
  'node:sqlite':
    builtIn === undefined
      ? undefined
      : (file) => {
          const database = new builtIn.DatabaseSync(file)
          database.exec('PRAGMA busy_timeout = 100')
          return database
        },
}

async function betterSqlite(): Promise<Open> {
  const { default: Database } = await import('better-sqlite3')
  return (file) => new Database(file, { timeout: 100 })
}

export const withoutSqlite =
  'skipped: this Node has no driver of SQLite, which Node 22 and later have'

/** A file that belongs to one test, and its connections. */
export function freshSqlite(open: Open) {
  const directory = mkdtempSync(join(tmpdir(), 'open-payments-sqlite-'))
  const file = join(directory, 'records.db')
  const connections: SqliteConnection[] = []
  return {
    file,
    connect(): SqliteConnection {
      const connection = open(file)
      connections.push(connection)
      return connection
    },
    drop(): void {
      for (const connection of connections) connection.close()
      rmSync(directory, { recursive: true, force: true })
    },
  }
}
